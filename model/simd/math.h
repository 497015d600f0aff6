/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The SFU's transcendental functions on vectors of fp32.  Every operation here
 * is exact or rounded as IEEE says (+, -, *, /, square root, fused
 * multiply-add, integers, comparisons), so all units give the same bits.
 * docs/numerics.md states the errors; tests/unit/model_functions.c measures
 * them.  The polynomials are minimax fits with rounded coefficients.
 *
 * NaN goes through every function: comparisons with it are false, so each
 * vf_select() here has NaN take the path that keeps it.
 */
#ifndef SPYRE_MODEL_SIMD_MATH_H
#define SPYRE_MODEL_SIMD_MATH_H

#include "vec.h"

#define LN2 0x1.62e430p-1f		/* ln 2 rounded, and the rest */
#define LN2_REST (-0x1.05c610p-29f)
#define LN2_SHORT 0x1.62e4p-1f		/* 15 bits: times an exponent is exact */
#define LN2_SHORT_REST 0x1.7f7d1cp-20f
#define LOG2_E 0x1.715476p+0f
#define ROUND_MAGIC 0x1.8p+23f		/* adding it rounds to an integer */
#define EXP_MAX 89.0f			/* e^x is infinite from here on */
#define EXP_MIN (-110.0f)		/* e^x, also times 100, is 0 up to here */

/* e^x in two steps: p * lo * hi; p within [0.7, 1.42] or 0. */
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
	/* Far below there is no need for products in the slow subnormal range. */
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

/* w / (1 + w) or 1 / (1 + w) with w = e^-|x|: neither overflows nor cancels. */
static ALWAYS_INLINE vf vf_sigmoid(vf x)
{
	vf w = vf_exp(-vf_abs(x));

	return vf_select(x < 0, w, vf_splat(1.0f)) / (1.0f + w);
}

/* The tail is scaled last, so that it is rounded once where it is subnormal. */
static ALWAYS_INLINE vf vf_silu(vf x)
{
	vf y = vf_select(x < EXP_MIN - 1, vf_splat(EXP_MIN - 1), x);
	struct vf_exp e = vf_exp_parts(-vf_abs(y), (vf){ 0 });
	vf r = vf_select(y < 0, y * e.p, y) / (1.0f + e.p * e.lo * e.hi);

	return vf_select(y < 0, r * e.lo * e.hi, r);
}

/* x * tanh(log(1 + e^x)), as a ratio of polynomials in w = e^-|x|. */
static ALWAYS_INLINE vf vf_mish(vf x)
{
	vf y = vf_select(x < EXP_MIN - 1, vf_splat(EXP_MIN - 1), x);
	struct vf_exp e = vf_exp_parts(-vf_abs(y), (vf){ 0 });
	vf w = e.p * e.lo * e.hi;
	vf right = VF_FUSED(vf_splat(2.0f), w, vf_splat(1.0f));
	vf left = w + 2.0f;
	vf top = vf_select(y < 0, y * e.p * left, y * right);
	vf r = top / vf_select(y < 0, VF_FUSED(w, left, vf_splat(2.0f)),
			       VF_FUSED(w + w, w, right));

	return vf_select(y < 0, r * e.lo * e.hi, r);
}

/*
 * x * Phi(x) = x * (1 + erf(x / sqrt 2)) / 2.  Phi(-t) = e^(-t^2 / 2) * G(t);
 * G(t) * (t + 3) is a polynomial in (t - 3) / (t + 3) for t up to 15, where
 * Phi(-t) is 0 in fp32.
 */
static ALWAYS_INLINE vf vf_gelu(vf x)
{
	vf y = vf_select(x < -15.0f, vf_splat(-15.0f), x);
	vf t = vf_select(vf_abs(y) > 15.0f, vf_splat(15.0f), vf_abs(y));
	vf square = t * t;
	vf rest = VF_FUSED(t, t, -square);
	struct vf_exp e = vf_exp_parts(square * -0.5f, rest * -0.5f);
	vf inverse = 1.0f / (t + 3.0f);
	vf u = VF_FUSED(vf_splat(-6.0f), inverse, vf_splat(1.0f));
	vf g = vf_splat(0x1.c91666p-15f);

	g = VF_FUSED(g, u, vf_splat(0x1.136b60p-13f));
	g = VF_FUSED(g, u, vf_splat(-0x1.009e3ap-12f));
	g = VF_FUSED(g, u, vf_splat(-0x1.0eaed8p-10f));
	g = VF_FUSED(g, u, vf_splat(0x1.0ca214p-10f));
	g = VF_FUSED(g, u, vf_splat(0x1.c8bda4p-8f));
	g = VF_FUSED(g, u, vf_splat(-0x1.56d5ecp-7f));
	g = VF_FUSED(g, u, vf_splat(-0x1.832d0ap-5f));
	g = VF_FUSED(g, u, vf_splat(0x1.d71386p-3f));
	g = VF_FUSED(g, u, vf_splat(-0x1.04c72ap-1f));
	g = VF_FUSED(g, u, vf_splat(0x1.754a76p-1f));
	g = g * inverse * e.p;
	return vf_select(y < 0, y * g * e.lo * e.hi, y * (1.0f - g * e.lo * e.hi));
}

/* x beta > threshold ? x : log(1 + e^(x beta)) / beta */
static ALWAYS_INLINE vf vf_softplus(vf x, vf beta, vf threshold)
{
	vf y = x * beta;
	vf rest = VF_FUSED(x, beta, -y);
	struct vf_exp e;
	vf w, r;
	vi big;

	/* Also keeps the rest of an infinite product out. */
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

/* To an integer, towards zero. */
static ALWAYS_INLINE vf vf_trunc(vf x)
{
	vf t = vf_abs(x);
	vf r = (t + 0x1p23f) - 0x1p23f;

	r = r - (vf)((vu)(r > t) & 0x3f800000);
	return vf_select(t < 0x1p23f, vf_copysign(r, x), x);
}

/* Whether integers are below @x, exactly; nothing is below NaN. */
static ALWAYS_INLINE vi vu_below(vu n, vf x)
{
	vi high = x >= 0x1p31f;
	vf rest = x - (vf)((vu)high & 0x4f000000);
	vf low = vf_select((rest > 0) & (rest < 0x1p31f), rest, (vf){ 0 });
	vi whole = __builtin_convertvector(low, vi);
	vu above;

	/* n < x is n < the next integer from x up. */
	whole -= __builtin_convertvector(whole, vf) < low;
	above = (vu)whole | ((vu)high & 0x80000000);
	return ((vi)(n ^ 0x80000000) < (vi)(above ^ 0x80000000)) | (x >= 0x1p32f);
}

/* A bound of NaN bounds nothing; the upper one is applied last. */
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
