/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Functions that are computed in double and rounded to fp32 once, on half as many lanes
 * as a vector of fp32 has. They use +, -, *, / and comparisons only, never a fused
 * multiply-add, so all units produce the same bits. docs/numerics.md states the errors;
 * tests/unit/model_functions.c measures them.
 *
 * NaN propagates as in math.h.
 */
#ifndef SPYRE_MODEL_SIMD_WIDE_H
#define SPYRE_MODEL_SIMD_WIDE_H

#include "tile.h"

#define WIDE_LANES (VL / 2)

typedef double wd __attribute__((vector_size(4 * VL)));
typedef s64 wl __attribute__((vector_size(4 * VL)));
typedef u64 wu __attribute__((vector_size(4 * VL)));
typedef float wf __attribute__((vector_size(2 * VL)));
typedef float wf_mem __attribute__((vector_size(2 * VL), aligned(1), may_alias));

#define WIDE_ROUND_MAGIC 0x1.8p52	/* adding it rounds to an integer, in the low bits */

static ALWAYS_INLINE wd wd_splat(double x)
{
	return x - (wd){ 0 };
}

/* The @index-th half vector of a tile. */
static ALWAYS_INLINE wd wd_load(const vf *tile, long index)
{
	return __builtin_convertvector(((const wf_mem *)tile)[index], wd);
}

static ALWAYS_INLINE void wd_store(vf *tile, long index, wd x)
{
	((wf_mem *)tile)[index] = __builtin_convertvector(x, wf);
}

static ALWAYS_INLINE wd wd_select(wl mask, wd yes, wd no)
{
	return (wd)((mask & (wl)yes) | (~mask & (wl)no));
}

static ALWAYS_INLINE wd wd_abs(wd x)
{
	return (wd)((wl)x & 0x7fffffffffffffff);
}

/* x with the sign of @sign; @x is not negative. */
static ALWAYS_INLINE wd wd_signed(wd x, wd sign)
{
	return (wd)((wu)x | ((wu)sign & 0x8000000000000000));
}

/* V_ANY() for this length; AVX-512 has a test that is cheap here only. */
#ifndef WD_ANY
#define WD_ANY(mask) V_ANY((vi)(mask))
#endif

/* An angle as r + n pi/2, |r| <= pi/4; only the two low bits of n are meaningful. */
struct wd_angle {
	wd r;
	wu n;
};

#define TWO_OVER_PI 0x1.45f306dc9c883p-1
#define HALF_PI_HIGH 0x1.921fb544p+0	/* 31 bits: times n is exact up to ANGLE_MAX */
#define HALF_PI_LOW 0x1.0b4611a626331p-34
#define HALF_PI_UNIT 0x1.921fb54442d18p-64	/* pi/2 * 2^-64 */
#define ANGLE_MAX 0x1p21

/* The bits of 2/pi, after a word of zeros. */
static const u32 two_over_pi[8] = {
	0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
};

/*
 * Reduces one angle m * 2^e with |m| < 2^24 and e from -2 to 104, which are the fp32 numbers from
 * ANGLE_MAX on. Of the bits of 2/pi, those before @first only add multiples of 4 to the number
 * of quarters, and those after the next 96 change the result by less than 2^-68 quarters. The 62
 * bits after the point that are kept leave 32 bits of the smallest remainder, which is above
 * 2^-30.
 */
static ALWAYS_INLINE void reduce_large(u64 m, u32 e, double *r, u64 *n)
{
	u32 first = e + 30, word = first / 32, shift = first % 32;
	u64 a = (u64)two_over_pi[word] << 32 | two_over_pi[word + 1];
	u64 b = (u64)two_over_pi[word + 2] << 32 | two_over_pi[word + 3];
	u64 high = shift ? a << shift | b >> (64 - shift) : a;
	u64 low = b << shift >> 32;
	u64 quarters = m * high + (m * low >> 32);	/* modulo 4, times 2^62 */

	*n = (quarters + (1ull << 61)) >> 62;
	*r = (double)(s64)(quarters << 2) * HALF_PI_UNIT;
}

/* Replaces the lanes that wd_reduce() cannot reduce. Infinite angles are NaN. */
static NOINLINE void wd_reduce_large(const wu *x, struct wd_angle *angle)
{
	long i;

	for (i = 0; i < WIDE_LANES; i++) {
		u64 bits = (*x)[i];
		u32 exponent = bits >> 52 & 0x7ff;
		u64 n;
		double r;

		if (exponent < 1023 + 21)
			continue;
		if (exponent == 0x7ff) {
			angle->r[i] = __builtin_nan("");
			continue;
		}
		reduce_large(1u << 23 | (bits >> 29 & 0x7fffff), exponent - 1023 - 23, &r, &n);
		angle->r[i] = bits >> 63 ? -r : r;
		angle->n[i] = bits >> 63 ? 0 - n : n;
	}
}

static ALWAYS_INLINE struct wd_angle wd_reduce(wd x)
{
	wd magic = x * TWO_OVER_PI + WIDE_ROUND_MAGIC;
	wd n = magic - WIDE_ROUND_MAGIC;
	struct wd_angle angle = {
		/* The first difference is exact. */
		.r = (x - n * HALF_PI_HIGH) - n * HALF_PI_LOW,
		.n = (wu)magic,
	};

	if (WD_ANY(~(wd_abs(x) < ANGLE_MAX))) {
		wu bits = (wu)x;

		wd_reduce_large(&bits, &angle);
	}
	return angle;
}

/* sin(x + quarters pi/2). The form r * (1 + ...) keeps the sign of a zero. */
static ALWAYS_INLINE wd wd_sine(wd x, u64 quarters)
{
	struct wd_angle angle = wd_reduce(x);
	wu n = angle.n + quarters;
	wl odd = (wl)(0 - (n & 1));
	wd s = angle.r * angle.r;
	wd p = wd_splat(-0x1.a9615f79f6e96p-26), q = wd_splat(0x1.1b8b6a41d1f62p-29);

	p = p * s + 0x1.71d76c63e80d7p-19;
	p = p * s - 0x1.a019f93820e80p-13;
	p = p * s + 0x1.1111110c864b0p-7;
	p = p * s - 0x1.555555555222dp-3;
	p = angle.r * (p * s + 1.0);
	q = q * s - 0x1.27df45699f179p-22;
	q = q * s + 0x1.a019f81b220aap-16;
	q = q * s - 0x1.6c16c16408ddfp-10;
	q = q * s + 0x1.555555554f08ep-5;
	q = q * s - 0x1.fffffffffff96p-2;
	q = q * s + 1.0;
	p = wd_select(odd, q, p);
	return (wd)((wu)p ^ (n & 2) << 62);
}

#define ERF_MAX 4.0	/* the result is 1 in fp32 from here on */

/*
 * Below 1 it is x times a polynomial in x^2, from there a polynomial in |x|, shifted and scaled
 * to [-1, 1].
 */
static ALWAYS_INLINE wd wd_erf(wd x)
{
	wd t = wd_abs(x), s = t * t, v;
	wd p = wd_splat(0x1.1b8c5027205b4p-20), q = wd_splat(-0x1.f4da0b36554ccp-17);

	p = p * s - 0x1.d25cfb5f81654p-17;
	p = p * s + 0x1.f56be739ebd5cp-14;
	p = p * s - 0x1.bfdf590b4be98p-11;
	p = p * s + 0x1.56586cddd610ep-8;
	p = p * s - 0x1.b82cb8f23b817p-6;
	p = p * s + 0x1.ce2f209752319p-4;
	p = p * s - 0x1.812746adb21bap-2;
	p = p * s + 0x1.20dd750428b20p+0;
	v = (wd_select(t < ERF_MAX, t, wd_splat(ERF_MAX)) - 2.5) * 0x1.5555555555555p-1;
	q = q * v + 0x1.15cc1ab97ccf1p-15;
	q = q * v + 0x1.39063efd13e44p-14;
	q = q * v - 0x1.34dd69e9cbd58p-12;
	q = q * v + 0x1.b4855174c672ap-14;
	q = q * v + 0x1.e26a3c834fea9p-11;
	q = q * v - 0x1.e88e8f557e909p-10;
	q = q * v + 0x1.cfc9dbd16cd4bp-12;
	q = q * v + 0x1.2ae255fe55c8dp-8;
	q = q * v - 0x1.3b47cec9c2676p-7;
	q = q * v + 0x1.b587750fdbc39p-8;
	q = q * v + 0x1.2fae6111f2066p-7;
	q = q * v - 0x1.05207a30d0c04p-5;
	q = q * v + 0x1.7c8c44a5305dfp-5;
	q = q * v - 0x1.65966d861f406p-5;
	q = q * v + 0x1.cdba00033c172p-6;
	q = q * v - 0x1.91805497ec442p-7;
	q = q * v + 0x1.ac44a27e380f4p-9;
	q = q * v + 0x1.ffcaa8f4b584dp-1;
	return wd_select(t >= 1.0, wd_signed(q, x), x * p);
}

#define POWER_MAX 200.0		/* 2^x is infinite in fp32 from here on, and 0 from -x on */
#define SQRT_HALF 0x3fe6a09e00000000	/* the high bits of sqrt(1/2) */

/* log2(x) of a positive normal number: k + log2(m), m within [sqrt(1/2), sqrt(2)]. */
static ALWAYS_INLINE wd wd_log2(wd x)
{
	wu bits = (wu)x + (0x3ff0000000000000 - SQRT_HALF);
	wd k = (wd)((bits >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
	wd m = (wd)((bits & 0xfffffffffffff) + SQRT_HALF);
	wd s = (m - 1.0) / (m + 1.0), z = s * s;
	wd p = wd_splat(0x1.f1871a8365f9cp-3);

	p = p * z + 0x1.0bb7a5c72514cp-2;
	p = p * z + 0x1.484facd9a607dp-2;
	p = p * z + 0x1.a6175674989a2p-2;
	p = p * z + 0x1.2776c516ab38bp-1;
	p = p * z + 0x1.ec709dc39c9d5p-1;
	p = p * z + 0x1.71547652b82ffp+1;
	return k + s * p;
}

/* 2^x for |x| up to POWER_MAX; exact for integers. */
static ALWAYS_INLINE wd wd_exp2(wd x)
{
	wd magic = x + WIDE_ROUND_MAGIC;
	wd f = x - (magic - WIDE_ROUND_MAGIC);
	wd p = wd_splat(0x1.b3ddd57c6c79ap-24);

	p = p * f + 0x1.63e6b4083df8ap-20;
	p = p * f + 0x1.ffce307dfbd99p-17;
	p = p * f + 0x1.430897dab8149p-13;
	p = p * f + 0x1.5d87fd9323c4fp-10;
	p = p * f + 0x1.3b2ab7241df70p-7;
	p = p * f + 0x1.c6b08d70c8c59p-5;
	p = p * f + 0x1.ebfbdff81bda3p-3;
	p = p * f + 0x1.62e42fefa37d0p-1;
	return (1.0 + p * f) * (wd)(((wu)magic << 52) + 0x3ff0000000000000);
}

/*
 * x^y as IEEE 754 defines pow(). The power of |x| is correct for finite numbers but 0, for
 * infinite y, and, as |x| is 1 or the product is clamped, never NaN; the rest are exceptions.
 */
static ALWAYS_INLINE wd wd_pow(wd x, wd y)
{
	wd a = wd_abs(x), b = wd_abs(y), whole = b + 0x1p52;
	wl integer = (whole - 0x1p52 == b) | (b >= 0x1p52);
	wu odd = (wu)((b < 0x1p52) & integer) & (wu)whole & 1;
	wu sign = (wu)x & odd << 63;
	wd p = y * wd_log2(a), r;

	p = wd_select(p < POWER_MAX, p, wd_splat(POWER_MAX));
	p = wd_select(p > -POWER_MAX, p, wd_splat(-POWER_MAX));
	r = wd_exp2(p);
	/* 0^y and Inf^y depend on the sign of y alone. */
	r = wd_select((a == 0) | (a == __builtin_inf()),
		      (wd)((wl)wd_splat(__builtin_inf()) & ~((a == 0) ^ (y < 0))), r);
	r = wd_select(a == 1.0, wd_splat(1.0), r);
	r = (wd)((wu)r ^ sign);
	r = wd_select((x != x) | (y != y) | ((x < 0) & (a < __builtin_inf()) & ~integer),
		      wd_splat(__builtin_nan("")), r);
	return wd_select((x == 1.0) | (y == 0), wd_splat(1.0), r);
}

/* Quotients of fp32 numbers are below 2^277; each step but the last leaves 28 bits fewer. */
#define FMOD_STEPS 10

/*
 * x - n y for the integer n next to x / y towards zero, exactly. A step subtracts a multiple of
 * y scaled by a power of two, so that the quotient is below 2^28. A remainder has at most 24
 * significant bits and the product at most 52, so both are exact; the quotient is never rounded
 * up to an integer, because it differs from each by 2^-24 at least.
 */
static ALWAYS_INLINE wd wd_fmod(wd x, wd y)
{
	wd a = wd_abs(x), b = wd_abs(y);
	wl small = a < b, valid = (a < __builtin_inf()) & (b > 0);
	wl done = small | ~valid;
	wd r = (wd)((wl)a & ~done), d = wd_select(done, wd_splat(1.0), b);
	long i;

	for (i = 0; i < FMOD_STEPS; i++) {
		wd q = r / d, scaled, whole;
		wl big = q >= 0x1p28;
		/* The power of two that leaves a quotient within [2^27, 2^28), or 1. */
		wu scale = ((wu)q & 0x7ff0000000000000) - (27ull << 52);

		scale = (wu)wd_select(big, (wd)scale, wd_splat(1.0));
		scaled = q * (wd)(0x7fe0000000000000 - scale);
		whole = (scaled + 0x1p52) - 0x1p52;
		whole = whole - (wd)((wl)wd_splat(1.0) & (whole > scaled));
		r = r - whole * (d * (wd)scale);
		if (!WD_ANY(big))
			break;
	}
	r = wd_select(small, a, r);
	return wd_select(valid, wd_signed(r, x), wd_splat(__builtin_nan("")));
}

/* The remainder with the sign of y: fmod(x, y), plus y if the signs differ. */
static ALWAYS_INLINE wd wd_remainder(wd x, wd y)
{
	wd r = wd_fmod(x, y);

	return wd_select((r != 0) & ((r < 0) ^ (y < 0)), r + y, r);
}

#endif /* SPYRE_MODEL_SIMD_WIDE_H */
