// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The unit for any CPU: four lanes, which is SSE2 on x86-64 and NEON on arm64. It may not call
 * libc, so it computes its own fused multiply-add where the compiler's target has none.
 */
#ifndef __CHECKER__	/* sparse does not support vector types */
#define VL 4
#define PT_ROWS 2
#define PT_VECS 4
#define PT_FEW_ROWS 1
#define PT_FEW_SUMS 16
#define PT_FEW_MOST 1
/* Only for products that are exact in fp32, where the addition is the only rounding. */
#define VF_FMA(a, b, c) ((a) * (b) + (c))
#define VF_FUSED(a, b, c) vf_fused(a, b, c)
#define VF_REST(a, b, c) vf_rest(a, b, c)
#define VF_SQRT(a) vf_sqrt(a)
#ifdef __SSE2__
#define VF_LEAST(a, b) __builtin_ia32_minps(a, b)
#define VF_MOST(a, b) __builtin_ia32_maxps(a, b)
#endif
#define VI_MIN(a, b) vi_pick((a) < (b), a, b)
#define VI_MAX(a, b) vi_pick((a) > (b), a, b)

#include "../types.h"

typedef s32 vi_ __attribute__((vector_size(4 * VL)));

static inline vi_ vi_pick(vi_ mask, vi_ yes, vi_ no)
{
	return (mask & yes) | (~mask & no);
}

typedef s64 vi_halves __attribute__((vector_size(4 * VL)));

static inline __attribute__((__always_inline__)) int vi_any(vi_ mask)
{
	vi_halves halves = (vi_halves)mask;

	return (halves[0] | halves[1]) != 0;
}

#define V_ANY(mask) vi_any(mask)

typedef float vf_ __attribute__((vector_size(16)));
#ifdef __FP_FAST_FMAF
/* Four instructions of the target, which the compiler joins to one of vectors if there is one. */
static inline __attribute__((__always_inline__)) vf_ vf_fused(vf_ a, vf_ b, vf_ c)
{
	return (vf_){ __builtin_fmaf(a[0], b[0], c[0]), __builtin_fmaf(a[1], b[1], c[1]),
		      __builtin_fmaf(a[2], b[2], c[2]), __builtin_fmaf(a[3], b[3], c[3]) };
}

static inline __attribute__((__always_inline__)) vf_ vf_rest(vf_ a, vf_ b, vf_ c)
{
	return vf_fused(a, b, c);
}
#else
typedef double vd_ __attribute__((vector_size(32)));
typedef s64 vl_ __attribute__((vector_size(32)));

/*
 * a * b + c rounded once. The product of two floats is exact in double. The sum is
 * rounded to odd there, so that rounding it to float gives the result of a single
 * rounding. The error of a sum that is not finite is NaN, which compares false and
 * corrects nothing.
 */
static inline __attribute__((__always_inline__)) vf_ vf_fused(vf_ a, vf_ b, vf_ c)
{
	vd_ p = __builtin_convertvector(a, vd_) * __builtin_convertvector(b, vd_);
	vd_ z = __builtin_convertvector(c, vd_);
	vd_ sum = p + z;
	vd_ t = sum - p;
	vd_ err = (p - (sum - t)) + (z - t);
	vl_ even = ((vl_)sum & 1) - 1;
	/* Rounds away from zero if the error has the sign of the sum. */
	vl_ step = ((err > 0) ^ (sum > 0)) | 1;

	sum = (vd_)((vl_)sum + (step & even & ((err > 0) | (err < 0))));
	return __builtin_convertvector(sum, vf_);
}

/* The same for sums that are exact in double. */
static inline __attribute__((__always_inline__)) vf_ vf_rest(vf_ a, vf_ b, vf_ c)
{
	return __builtin_convertvector(__builtin_convertvector(a, vd_) *
				       __builtin_convertvector(b, vd_) +
				       __builtin_convertvector(c, vd_), vf_);
}
#endif

static inline __attribute__((__always_inline__)) vf_ vf_sqrt(vf_ x)
{
#ifdef __SSE2__
	return __builtin_ia32_sqrtps(x);
#else
	vf_ r;
	long i;

	for (i = 0; i < VL; i++)
		r[i] = __builtin_sqrtf(x[i]);
	return r;
#endif
}

#include "functions.h"

static void pt_inexact(const struct spyre_pt_run *run)
{
	const vf_mem *b = run->b;
	vf_mem *c;
	long r, k, n;

	for (r = 0; r < run->rows; r++) {
		const float *a = (const float *)((const u8 *)run->a + r * run->a_stride);

		c = (vf_mem *)run->c + r * (64 / VL);
		for (k = 0; k < run->k; k++)
			for (n = 0; n < 64 / VL; n++)
				c[n] = vf_fused(vf_splat(a[k]), b[k * 64 / VL + n], c[n]);
	}
}

static void unit_pt(const struct spyre_pt_run *run)
{
	if (run->exact)
		pt_fused(run);
	else
		pt_inexact(run);
}

const struct spyre_unit spyre_unit_scalar = {
	.name = "scalar",
	.budget = 128u << 10,
	.inexact_factor = 16,
	.long_factor = 16,
	.pt = unit_pt,
	UNIT_FUNCTIONS,
};

#endif /* __CHECKER__ */
