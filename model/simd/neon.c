// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * NEON of arm64: four lanes in 32 registers.
 */
#ifndef __CHECKER__	/* sparse does not support vector types */
#define VF_FMA(a, b, c) __builtin_aarch64_fmav4sf(a, b, c)
#define VF_SQRT(a) __builtin_aarch64_sqrtv4sf(a)
#define VI_MIN(a, b) __builtin_aarch64_sminv4si(a, b)
#define VI_MAX(a, b) __builtin_aarch64_smaxv4si(a, b)
#define HLS_MAX(a, b) __builtin_aarch64_smaxv8hi(a, b)
#define HL_PACK(a, b) \
	__builtin_aarch64_sqxtn2v4si(__builtin_aarch64_sqmovnv4si((vi)(a)), (vi)(b))
/* Vectors of eight bytes are a type of NEON. */
#define VU_WIDEN(x) __builtin_convertvector(x, vu)
#define VH_NARROW(x) __builtin_convertvector(x, vh)

#include "four.h"

UNIT_OF_FOUR(neon);

#endif /* __CHECKER__ */
