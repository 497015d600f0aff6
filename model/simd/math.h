/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The SFU's transcendental functions on vectors of fp32. Every operation here is
 * exact or rounded as IEEE specifies (+, -, *, /, square root, fused multiply-add,
 * integers, comparisons), so all units produce the same bits. docs/numerics.md
 * states the errors; tests/unit/model_functions.c measures them. The polynomials
 * are minimax fits with rounded coefficients.
 *
 * NaN propagates through every function: comparisons with it are false, so each
 * vf_select() here has NaN take the operand that preserves it.
 */
#ifndef SPYRE_MODEL_SIMD_MATH_H
#define SPYRE_MODEL_SIMD_MATH_H

#include "vec.h"

#define LN2 0x1.62e430p-1f		/* ln 2, rounded, and the remainder */
#define LN2_REST (-0x1.05c610p-29f)
#define LN2_SHORT 0x1.62e4p-1f		/* 15 bits: times an exponent is exact */
#define LN2_SHORT_REST 0x1.7f7d1cp-20f
#define LOG2_E 0x1.715476p+0f
#define ROUND_MAGIC 0x1.8p+23f		/* adding it rounds to an integer */
#define EXP_MAX 89.0f			/* e^x is infinite from here on */
#define EXP_MIN (-110.0f)		/* e^x, also times 100, is 0 down from here */

/* e^x in two factors: p * lo * hi; p within [0.7, 1.42] or 0. */
struct vf_exp {
	vf p, lo, hi;
};

/* e^(x + rest); @rest is far below an ulp of 1. */
static ALWAYS_INLINE struct vf_exp vf_exp_parts(vf x, vf rest)
{
	struct vf_exp e;
	vf t, n, r, p;
	vi half, k;

	x = vf_select(x > EXP_MAX, vf_splat(EXP_MAX), x);
	x = vf_select(x < EXP_MIN, vf_splat(EXP_MIN), x);
	t = VF_FUSED(x, vf_splat(LOG2_E), vf_splat(ROUND_MAGIC));
	n = t - ROUND_MAGIC;
	r = VF_FUSED(n, vf_splat(-LN2), x);
	r = VF_FUSED(n, vf_splat(-LN2_REST), r) + rest;
	p = vf_splat(0x1.6a229ap-10f);
	p = VF_FUSED(p, r, vf_splat(0x1.123b02p-7f));
	p = VF_FUSED(p, r, vf_splat(0x1.5558f8p-5f));
	p = VF_FUSED(p, r, vf_splat(0x1.555490p-3f));
	p = VF_FUSED(p, r, vf_splat(0x1.fffffcp-2f));
	p = VF_FUSED(p, r * r, r) + 1.0f;
	/* Results this far below skip products in the slow subnormal range. */
	e.p = (vf)((vu)p & ~(vu)(x == EXP_MIN));
	k = (vi)t - (vi)vf_splat(ROUND_MAGIC);
	half = k >> 1;
	e.lo = (vf)((vu)(half + 127) << 23);
	e.hi = (vf)((vu)(k - half + 127) << 23);
	return e;
}

static ALWAYS_INLINE vf vf_exp(vf x)
{
	struct vf_exp e = vf_exp_parts(x, (vf){ 0 });

	return e.p * e.lo * e.hi;
}

/* log(1 + f) + k ln 2 for f in [sqrt(1/2) - 1, sqrt(2) - 1]. */
static ALWAYS_INLINE vf vf_log_core(vf f, vf k)
{
	vf s = f * f;
	vf q = vf_splat(0x1.146310p-4f);

	q = VF_FUSED(q, f, vf_splat(-0x1.de4f9ep-4f));
	q = VF_FUSED(q, f, vf_splat(0x1.e6f606p-4f));
	q = VF_FUSED(q, f, vf_splat(-0x1.fc1f6cp-4f));
	q = VF_FUSED(q, f, vf_splat(0x1.2336e4p-3f));
	q = VF_FUSED(q, f, vf_splat(-0x1.555c5ap-3f));
	q = VF_FUSED(q, f, vf_splat(0x1.99a4bcp-3f));
	q = VF_FUSED(q, f, vf_splat(-0x1.000006p-2f));
	q = VF_FUSED(q, f, vf_splat(0x1.555548p-2f));
	q = VF_FUSED(f * s, q, s * -0.5f);
	q = VF_FUSED(k, vf_splat(LN2_SHORT_REST), q);
	return VF_FUSED(k, vf_splat(LN2_SHORT), f + q);
}

static ALWAYS_INLINE vf vf_log(vf x)
{
	vi small = x < 0x1p-126f;
	vf y = vf_select(small, x * 0x1p25f, x);
	vi bits = (vi)((vu)y - 0x3f3504f3);	/* sqrt(1/2); wraps for x <= 0 */
	vi k = (bits >> 23) - (small & 25);
	vf m = (vf)((bits & 0x7fffff) + 0x3f3504f3);
	vf r = vf_log_core(m - 1.0f, __builtin_convertvector(k, vf));

	r = vf_select(x == __builtin_inff(), x, r);
	r = vf_select(x == 0, (vf)vu_splat(0xff800000), r);
	return vf_select((x < 0) | (x != x), vf_nan(), r);
}

static ALWAYS_INLINE vf vf_tanh(vf x)
{
	vf t = vf_abs(x), s = t * t;
	vf w = vf_exp(-2.0f * t);
	vf big = 1.0f - 2.0f * w / (1.0f + w);
	vf p = vf_splat(0x1.23e50cp-9f);

	p = VF_FUSED(p, s, vf_splat(-0x1.0ec0fcp-7f));
	p = VF_FUSED(p, s, vf_splat(0x1.6411a6p-6f));
	p = VF_FUSED(p, s, vf_splat(-0x1.b9f9e6p-5f));
	p = VF_FUSED(p, s, vf_splat(0x1.11109cp-3f));
	p = VF_FUSED(p, s, vf_splat(-0x1.555554p-2f));
	p = VF_FUSED(t * s, p, t);
	return vf_copysign(vf_select(t < 0.6f, p, big), x);
}

/*
 * For x < 0 sigmoid, silu, gelu and mish are a product that must be accurate to the
 * last bits even where it is tiny. It is computed from t = |x| in pairs of floats,
 * h + l, where l is the error of h. For x > 0 the function is 1 or x minus a number
 * of the same form that is at most half as large.
 */
struct vf_pair {
	vf h, l;
};

/* a * b; @b is a pair. */
static ALWAYS_INLINE struct vf_pair vf_times(vf a, struct vf_pair b)
{
	vf h = a * b.h;

	return (struct vf_pair){ h, VF_FUSED(a, b.l, VF_REST(a, b.h, -h)) };
}

static ALWAYS_INLINE struct vf_pair vf_pair_times(struct vf_pair a, struct vf_pair b)
{
	struct vf_pair r = vf_times(a.h, b);

	r.l = VF_FUSED(a.l, b.h, r.l);
	return r;
}

/* a + b for |a| >= |b| or of one exponent. */
static ALWAYS_INLINE struct vf_pair vf_sum(vf a, vf b)
{
	vf h = a + b;

	return (struct vf_pair){ h, b - (h - a) };
}

/* n / d, rounded. */
static ALWAYS_INLINE vf vf_ratio(struct vf_pair n, struct vf_pair d)
{
	vf inverse = 1.0f / d.h;
	vf q = n.h * inverse;
	vf rest = VF_REST(-q, d.h, n.h) + VF_FUSED(-q, d.l, n.l);

	return VF_FUSED(rest, inverse, q);
}

/* e^-t = p * lo * hi. */
struct vf_decay {
	struct vf_pair p;
	vf lo, hi;
};

#define DECAY_MAX 120.0f	/* 0 in fp32, also times all that functions multiply it with */

/* e^-t for t.h within [0, DECAY_MAX]; @exact: t.l is 0. */
static ALWAYS_INLINE struct vf_decay vf_decay(struct vf_pair t, bool exact)
{
	struct vf_decay e;
	vf magic = VF_FUSED(t.h, vf_splat(-LOG2_E), vf_splat(ROUND_MAGIC));
	vf n = magic - ROUND_MAGIC;
	/* Computed exactly, then split into two floats. */
	vf r0 = VF_REST(n, vf_splat(-LN2_SHORT), -t.h);
	vf r1 = exact ? r0 : r0 - t.l;
	vf r = VF_REST(n, vf_splat(-LN2_SHORT_REST), r1);
	vf rest = VF_REST(n, vf_splat(-LN2_SHORT_REST), r1 - r);
	vf p = vf_splat(0x1.6a229ap-10f);
	vi k = (vi)magic - (vi)vf_splat(ROUND_MAGIC);
	vi half = k >> 1;

	if (!exact)
		rest += (r0 - r1) - t.l;
	p = VF_FUSED(p, r, vf_splat(0x1.123b02p-7f));
	p = VF_FUSED(p, r, vf_splat(0x1.5558f8p-5f));
	p = VF_FUSED(p, r, vf_splat(0x1.555490p-3f));
	p = VF_FUSED(p, r, vf_splat(0x1.fffffcp-2f));
	rest = VF_FUSED(p, r * r, rest);
	e.p = vf_sum(vf_splat(1.0f), r);
	/* The remainder may reach 0.06 and is therefore added to the first float. */
	e.p = vf_sum(e.p.h, e.p.l + rest);
	e.lo = (vf)((vu)(half + 127) << 23);
	e.hi = (vf)((vu)(k - half + 127) << 23);
	return e;
}

/* The same as one float, precise enough in a sum with 1. */
static ALWAYS_INLINE vf vf_decay_value(struct vf_decay e)
{
	return e.p.h * e.lo * e.hi;
}

/* |x|, limited to vf_decay()'s range. */
static ALWAYS_INLINE vf vf_decay_range(vf x)
{
	return vf_least(vf_splat(DECAY_MAX), vf_abs(x));
}

/* x > 0 ? x - v : -v, with the sign of x even where the result is 0. */
static ALWAYS_INLINE vf vf_gate(vf x, vf v)
{
	vf r = vf_most((vf){ 0 }, x) - v;

	return (vf)((vu)r | ((vu)x & 0x80000000));
}

/* v = w / (1 + w) with w = e^-|x|, or 1 - v. */
static ALWAYS_INLINE vf vf_sigmoid(vf x)
{
	struct vf_decay e = vf_decay((struct vf_pair){ .h = vf_decay_range(x) }, true);
	vf v = vf_ratio(e.p, vf_sum(vf_splat(1.0f), vf_decay_value(e)));

	v = v * e.lo * e.hi;
	return vf_abs((vf)((vu)(x >= 0) & 0x3f800000) - v);
}

static ALWAYS_INLINE vf vf_silu(vf x)
{
	vf t = vf_decay_range(x);
	struct vf_decay e = vf_decay((struct vf_pair){ .h = t }, true);
	vf v = vf_ratio(vf_times(t, e.p), vf_sum(vf_splat(1.0f), vf_decay_value(e)));

	return vf_gate(x, v * e.lo * e.hi);
}

/*
 * x * tanh(log(1 + e^x)). With w = e^-t: for x < 0 it is -t w (2 + w) / (2 + w (2 +
 * w)), for x > 0 it is t - t w 2w / (1 + 2w (1 + w)).
 */
static ALWAYS_INLINE vf vf_mish(vf x)
{
	vi below = x < 0;
	vf one = vf_splat(1.0f), two = vf_splat(2.0f);
	vf t = vf_decay_range(x), rest;
	struct vf_decay e = vf_decay((struct vf_pair){ .h = t }, true);
	vf w = vf_decay_value(e), twice = w + w;
	vf first = vf_select(below, two, one), base = vf_select(below, w, twice);
	struct vf_pair sum = vf_sum(first, w), line = vf_times(base, sum), factor;

	factor.h = vf_select(below, sum.h, twice);
	factor.l = (vf)((vu)sum.l & (vu)below);
	rest = line.l;
	line = vf_sum(first, line.h);
	line.l += rest;
	return vf_gate(x, vf_ratio(vf_pair_times(vf_times(t, e.p), factor), line) * e.lo * e.hi);
}

/*
 * x * Phi(x) = x * (1 + erf(x / sqrt 2)) / 2. Phi(-t) = e^(-t^2 / 2) * G(t); g =
 * G(t) * (t + c) is a polynomial in u = (t - c) / (t + c) for t up to 15, where
 * Phi(-t) is 0 in fp32. It stays near its first coefficient.
 */
#define GELU_C 3.125f

static ALWAYS_INLINE vf vf_gelu(vf x)
{
	vf t = vf_least(vf_splat(15.0f), vf_abs(x));
	struct vf_decay e = vf_decay(vf_times(t * 0.5f, (struct vf_pair){ .h = t }), false);
	struct vf_pair top = { .h = t - GELU_C }, line = { .h = t + GELU_C };
	vf inverse = 1.0f / line.h;
	vf u = top.h * inverse, rest;
	vf c0 = vf_splat(0x1.77873cp-1f), c1 = vf_splat(-0x1.0cc7f4p-1f);
	vf q = vf_splat(0x1.46c5cep-15f);
	struct vf_pair g;
	vf v;

	/* This is exact, because the sums are multiples of their last places. */
	top.l = t - (top.h + GELU_C);
	line.l = t - (line.h - GELU_C);
	rest = VF_REST(-u, line.h, top.h) + VF_FUSED(-u, line.l, top.l);
	q = VF_FUSED(q, u, vf_splat(0x1.57eaf2p-13f));
	q = VF_FUSED(q, u, vf_splat(-0x1.b330a0p-15f));
	q = VF_FUSED(q, u, vf_splat(-0x1.2d3b1ep-10f));
	q = VF_FUSED(q, u, vf_splat(-0x1.6d2a5cp-15f));
	q = VF_FUSED(q, u, vf_splat(0x1.063e18p-7f));
	q = VF_FUSED(q, u, vf_splat(-0x1.5d5bd2p-8f));
	q = VF_FUSED(q, u, vf_splat(-0x1.056f3ap-4f));
	q = VF_FUSED(q, u, vf_splat(0x1.02b9c0p-2f));
	q = VF_FUSED(q, u, c1);
	g.h = VF_FUSED(q, u, c0);
	/* The error of this sum, and of u multiplied by the approximate slope. */
	g.l = VF_FUSED(q, u, c0 - g.h);
	g.l = VF_FUSED(rest * inverse, VF_FUSED(vf_splat(2.0f), q, -c1), g.l);
	g = vf_pair_times(vf_times(t, e.p), g);
	v = g.h * inverse;
	rest = VF_REST(-v, line.h, g.h) + VF_FUSED(-v, line.l, g.l);
	return vf_gate(x, VF_FUSED(rest, inverse, v) * e.lo * e.hi);
}

/* x beta > threshold ? x : log(1 + e^(x beta)) / beta */
static ALWAYS_INLINE vf vf_softplus(vf x, vf beta, vf threshold)
{
	vf y = x * beta;
	vf rest = VF_FUSED(x, beta, -y);
	struct vf_exp e;
	vf w, r;
	vi big;

	/* This also discards the remainder of an infinite product. */
	rest = vf_select(vf_abs(y) < 128.0f, rest, (vf){ 0 });
	e = vf_exp_parts(-vf_abs(y), vf_select(y < 0, rest, -rest));
	w = e.p * e.lo * e.hi;
	big = w > 0.41421354f;
	r = vf_log_core(vf_select(big, (w - 1.0f) * 0.5f, w),
			vf_select(big, vf_splat(1.0f), (vf){ 0 }));
	r = (vf_select(y > 0, y, (vf){ 0 }) + r) / beta;
	return vf_select(y > threshold, x, r);
}

static ALWAYS_INLINE vf vf_floor(vf x)
{
	vf t = vf_abs(x);
	vf r = vf_copysign((t + 0x1p23f) - 0x1p23f, x);

	r = r - (vf)((vu)(r > x) & 0x3f800000);
	return vf_select(t < 0x1p23f, vf_copysign(r, x), x);
}

/* Rounds to an integer, towards zero. */
static ALWAYS_INLINE vf vf_trunc(vf x)
{
	vf t = vf_abs(x);
	vf r = (t + 0x1p23f) - 0x1p23f;

	r = r - (vf)((vu)(r > t) & 0x3f800000);
	return vf_select(t < 0x1p23f, vf_copysign(r, x), x);
}

/* Compares integers @n < @x exactly; false if @x is NaN. */
static ALWAYS_INLINE vi vu_below(vu n, vf x)
{
	vi high = x >= 0x1p31f;
	vf rest = x - (vf)((vu)high & 0x4f000000);
	vf low = vf_select((rest > 0) & (rest < 0x1p31f), rest, (vf){ 0 });
	vi whole = __builtin_convertvector(low, vi);
	vu above;

	/* n < x is equivalent to n < ceil(x). */
	whole -= __builtin_convertvector(whole, vf) < low;
	above = (vu)whole | ((vu)high & 0x80000000);
	return ((vi)(n ^ 0x80000000) < (vi)(above ^ 0x80000000)) | (x >= 0x1p32f);
}

/* A NaN bound has no effect; the upper bound is applied last. */
static ALWAYS_INLINE vf vf_clip(vf x, vf low, vf high)
{
	x = vf_select(x < low, low, x);
	return vf_select(x > high, high, x);
}

static ALWAYS_INLINE vf vf_rsqrt(vf x)
{
	return 1.0f / VF_SQRT(x);
}

#endif /* SPYRE_MODEL_SIMD_MATH_H */
