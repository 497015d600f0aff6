// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The unit for any CPU: four lanes, which is SSE2 on x86-64.  It has no fused
 * multiply-add instruction and may not call libc's, so it makes its own.
 */
#ifndef __CHECKER__	/* sparse knows no vector types */
#define VL 4
#define PT_ROWS 2
#define PT_VECS 4
/* Only for products that are exact in fp32: then one rounding is all there is. */
#define VF_FMA(a, b, c) ((a) * (b) + (c))
#define VI_MIN(a, b) vi_pick((a) < (b), a, b)
#define VI_MAX(a, b) vi_pick((a) > (b), a, b)

#include "../types.h"

typedef s32 vi_ __attribute__((vector_size(4 * VL)));

static inline vi_ vi_pick(vi_ mask, vi_ yes, vi_ no)
{
	return (mask & yes) | (~mask & no);
}

#include "convert.h"
#include "pt.h"
#include "sfu.h"
#include "transpose.h"

/*
 * a * b + c rounded once.  The product of two floats is exact in double; the
 * sum is rounded to odd there, so that rounding it again to float gives what
 * one rounding would have given.
 */
static float fused(float a, float b, float c)
{
	union {
		double d;
		u64 u;
	} sum;
	double p = (double)a * b, z = c;
	double t, err;

	sum.d = p + z;
	if ((sum.u >> 52 & 0x7ff) == 0x7ff)
		return (float)sum.d;
	t = sum.d - p;
	err = (p - (sum.d - t)) + (z - t);
	if (err != 0 && !(sum.u & 1)) {
		/* Away from zero if the error has the sign of the sum. */
		if ((err > 0) == (sum.d > 0))
			sum.u++;
		else
			sum.u--;
	}
	return (float)sum.d;
}

static void pt_inexact(const struct spyre_pt_run *run)
{
	const float *b = run->b;
	float *c = run->c;
	long r, k, n;

	for (r = 0; r < run->rows; r++) {
		const float *a = (const float *)((const u8 *)run->a + r * run->a_stride);

		for (k = 0; k < run->k; k++)
			for (n = 0; n < 64; n++)
				c[r * 64 + n] = fused(a[k], b[k * 64 + n], c[r * 64 + n]);
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
	.pt_rows = PT_ROWS,
	.sfu = unit_sfu,
	.reduce_begin = unit_reduce_begin,
	.reduce = unit_reduce,
	.reduce_end = unit_reduce_end,
	.convert = unit_convert,
	.pt = unit_pt,
	.transpose = unit_transpose,
};

#endif /* __CHECKER__ */
