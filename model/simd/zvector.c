// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The vector facility of IBM Z from z14 on, whose predecessor has no vectors of fp32: four lanes
 * in 32 registers.
 */
#ifndef __CHECKER__	/* sparse does not support vector types */
#define VF_FMA(a, b, c) __builtin_s390_vfmasb(a, b, c)
#define VF_SQRT(a) __builtin_s390_vfsqsb(a)
#define VI_MIN(a, b) __builtin_s390_vmnf(a, b)
#define VI_MAX(a, b) __builtin_s390_vmxf(a, b)
#define HLS_MAX(a, b) __builtin_s390_vmxh(a, b)
#define HL_PACK(a, b) __builtin_s390_vpksf((vi)(a), (vi)(b))

#include "four.h"

UNIT_OF_FOUR(zvector);

#endif /* __CHECKER__ */
