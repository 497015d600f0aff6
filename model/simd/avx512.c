// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * AVX-512 (F, BW, VL, DQ): sixteen lanes.
 */
#ifndef __CHECKER__	/* sparse does not support vector types */
#define VL 16
#define PT_ROWS 6
#define PT_VECS 4
#define PT_FEW_ROWS 8
#define PT_FEW_SUMS 24
#define PT_FEW_MOST 12
#if defined(__clang__)
#define VF_FMA(a, b, c) __builtin_elementwise_fma(a, b, c)
#define VF_SQRT(a) __builtin_elementwise_sqrt(a)
#define VI_MIN(a, b) __builtin_elementwise_min(a, b)
#define VI_MAX(a, b) __builtin_elementwise_max(a, b)
#else
/* All lanes, in the rounding mode of MXCSR. */
#define VF_FMA(a, b, c) __builtin_ia32_vfmaddps512_mask(a, b, c, (unsigned short)-1, 4)
#define VF_SQRT(a)						\
	__builtin_ia32_sqrtps512_mask(a, (vf){ 0 }, (unsigned short)-1, 4)
#define VF_LEAST(a, b)						\
	__builtin_ia32_minps512_mask(a, b, (vf){ 0 }, (unsigned short)-1, 4)
#define VF_MOST(a, b)						\
	__builtin_ia32_maxps512_mask(a, b, (vf){ 0 }, (unsigned short)-1, 4)
#define VI_MIN(a, b)						\
	((vi)__builtin_ia32_pminsd512_mask((v16si)(a), (v16si)(b), (v16si){ 0 }, (u16)-1))
#define VI_MAX(a, b)						\
	((vi)__builtin_ia32_pmaxsd512_mask((v16si)(a), (v16si)(b), (v16si){ 0 }, (u16)-1))
#define VU_WIDEN(x)						\
	((vu)__builtin_ia32_pmovzxwd512_mask((v16hi)(x), (v16si){ 0 }, (unsigned short)-1))
#define VH_NARROW(x)						\
	((vh)__builtin_ia32_pmovdw512_mask((v16si)(x), (v16hi){ 0 }, (unsigned short)-1))
#define VB_NARROW(x)						\
	((vb)__builtin_ia32_pmovdb512_mask((v16si)(x), (v16qi){ 0 }, (unsigned short)-1))
#endif

typedef char v16qi __attribute__((vector_size(16)));
typedef short v16hi __attribute__((vector_size(32)));
typedef int v16si __attribute__((vector_size(64)));
typedef short v32hi __attribute__((vector_size(64)));

#if !defined(__clang__)
#define V_STREAM(p, x) __builtin_ia32_movntdq512((v8di *)(p), (v8di)(x))
#define V_STREAM_HALF(p, x) __builtin_ia32_movntdq256((v4di *)(p), (v4di)(x))
#define V_FENCE() __builtin_ia32_sfence()
#define HL_LOW(a, b)							\
	__builtin_ia32_punpcklwd512_mask((v32hi)(a), (v32hi)(b), (v32hi){ 0 }, (u32)-1)
#define HL_HIGH(a, b)							\
	__builtin_ia32_punpckhwd512_mask((v32hi)(a), (v32hi)(b), (v32hi){ 0 }, (u32)-1)
#define HL_MAX(a, b)							\
	((hl)__builtin_ia32_pmaxuw512_mask((v32hi)(a), (v32hi)(b), (v32hi){ 0 }, (u32)-1))
#define HL_SOME(z) __builtin_ia32_ptestmw512((v32hi)(z), (v32hi)(z), (u32)-1)
#define HL_ADD_SOME(x, y, z)						\
	((hl)__builtin_ia32_paddw512_mask((v32hi)(x), (v32hi)(y), (v32hi)(x), HL_SOME(z)))
/* Leaves each group of four elements where HL_LOW and HL_HIGH of the result keep their order. */
#define HL_SPREAD_QUADS V_KEEP(((v8di){ 0, 4, 1, 5, 2, 6, 3, 7 }))
#define HL_SPREAD(x)							\
	((hl)__builtin_ia32_permvardi512_mask((v8di)(x), HL_SPREAD_QUADS, (v8di){ 0 }, (u8)-1))
#define HL_ANY_ABOVE(x, y)						\
	(__builtin_ia32_ucmpw512_mask((v32hi)(x), (v32hi)(y), 6, (u32)-1) != 0)
#define HL_ANY(mask) (__builtin_ia32_ptestmw512((v32hi)(mask), (v32hi)(mask), (u32)-1) != 0)
/* The first @n of 32 elements; the others are 0, and memory beyond the first is not touched. */
#define HL_FIRST(n) ((u32)-1 >> (32 - (n)))
#define HL_LOAD_PART(p, n)							\
	((hl)__builtin_ia32_loaddquhi512_mask((const void *)(p), (v32hi){ 0 }, HL_FIRST(n)))
#define HL_STORE_PART(p, x, n)							\
	__builtin_ia32_storedquhi512_mask((void *)(p), (v32hi)(x), HL_FIRST(n))
#define WD_ANY(mask) (__builtin_ia32_ptestmq512((v8di)(mask), (v8di)(mask), (u8)-1) != 0)

typedef long long v8di __attribute__((vector_size(64), may_alias));
typedef long long v4di __attribute__((vector_size(32), may_alias));

#include "../types.h"
#include "avx512_dl16.h"
#endif

#include "functions.h"

const struct spyre_unit spyre_unit_avx512 = {
	.name = "avx512",
	.budget = 1024u << 10,
	.inexact_factor = 1,
	.long_factor = 4,
	.pt = pt_fused,
	UNIT_FUNCTIONS,
};

#endif /* __CHECKER__ */
