// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * AVX2 with FMA: eight lanes.
 */
#ifndef __CHECKER__	/* sparse does not support vector types */
#define VL 8
#define PT_ROWS 6
#define PT_VECS 2
#define PT_FEW_ROWS 6
#define PT_FEW_SUMS 4	/* GCC keeps the sums of three rows of more columns in memory */
#define PT_FEW_MOST 12
/* Zen 4 reads adjacent lines at 19 GB/s by itself, as fast as it can, and at 15 with prefetches. */
#define PT_FEW_NEAR 256
#if defined(__clang__)
#define VF_FMA(a, b, c) __builtin_elementwise_fma(a, b, c)
#define VF_SQRT(a) __builtin_elementwise_sqrt(a)
#define VI_MIN(a, b) __builtin_elementwise_min(a, b)
#define VI_MAX(a, b) __builtin_elementwise_max(a, b)
#else
#define VF_FMA(a, b, c) __builtin_ia32_vfmaddps256(a, b, c)
#define VF_SQRT(a) __builtin_ia32_sqrtps256(a)
#define VF_LEAST(a, b) __builtin_ia32_minps256(a, b)
#define VF_MOST(a, b) __builtin_ia32_maxps256(a, b)
#define VI_MIN(a, b) ((vi)__builtin_ia32_pminsd256((v8si)(a), (v8si)(b)))
#define VI_MAX(a, b) ((vi)__builtin_ia32_pmaxsd256((v8si)(a), (v8si)(b)))
#endif

typedef int v8si __attribute__((vector_size(32)));

#if !defined(__clang__)
#define V_STREAM(p, x) __builtin_ia32_movntdq256((v4di *)(p), (v4di)(x))
#define V_STREAM_HALF(p, x) __builtin_ia32_movntdq((v2di *)(p), (v2di)(x))
#define V_FENCE() __builtin_ia32_sfence()
#define HL_ANY(mask) V_ANY(mask)
#define HL_LOW(a, b) __builtin_ia32_punpcklwd256((v16hi)(a), (v16hi)(b))
#define HL_HIGH(a, b) __builtin_ia32_punpckhwd256((v16hi)(a), (v16hi)(b))
#define HL_SPREAD(x) ((hl)__builtin_ia32_permdi256((v4di)(x), 0xd8))
#define HL_MAX(a, b) ((hl)__builtin_ia32_pmaxuw256((v16hi)(a), (v16hi)(b)))
#define HL_ADD_SOME(x, y, z) \
	((x) + (hl)__builtin_ia32_psignw256((v16hi)(y), (v16hi)(z)))
#define V_ANY(mask) (!__builtin_ia32_ptestz256((v4di)(mask), (v4di)(mask)))

typedef int v4si __attribute__((vector_size(16)));
typedef short v8hi __attribute__((vector_size(16)));
typedef short v16hi __attribute__((vector_size(32)));
typedef long long v4di __attribute__((vector_size(32), may_alias));
typedef long long v2di __attribute__((vector_size(16), may_alias));

static inline __attribute__((__always_inline__)) int v8hi_any(v8hi x)
{
	return !__builtin_ia32_ptestz128((v2di)x, (v2di)x);
}

#include "avx2_dl16.h"
#endif

#include "functions.h"

const struct spyre_unit spyre_unit_avx2 = {
	.name = "avx2",
	.budget = 512u << 10,
	.inexact_factor = 1,
	.long_factor = 4,
	.pt = pt_fused,
	UNIT_FUNCTIONS,
};

#endif /* __CHECKER__ */
