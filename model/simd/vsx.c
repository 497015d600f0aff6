// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * VSX of POWER9, little endian: four lanes in 64 registers. POWER8 has the instructions but for
 * loads and stores in the order of memory, and would exchange halves of each vector.
 */
#ifndef __CHECKER__	/* sparse does not support vector types */
#define VF_FMA(a, b, c) __builtin_vsx_xvmaddsp(a, b, c)
#define VF_SQRT(a) __builtin_vsx_xvsqrtsp(a)
#define VI_MIN(a, b) __builtin_altivec_vminsw(a, b)
#define VI_MAX(a, b) __builtin_altivec_vmaxsw(a, b)
#define HLS_MAX(a, b) __builtin_altivec_vmaxsh(a, b)
#define HL_PACK(a, b) __builtin_altivec_vpkswss((vi)(a), (vi)(b))

#include "four.h"

UNIT_OF_FOUR(vsx);

#endif /* __CHECKER__ */
