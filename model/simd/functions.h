/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The functions of a unit, which each unit compiles from the same source for vectors of
 * its own length (vec.h).
 */
#ifndef SPYRE_MODEL_SIMD_FUNCTIONS_H
#define SPYRE_MODEL_SIMD_FUNCTIONS_H

#include "convert.h"
#include "math.h"
#include "pt.h"
#include "pt_few.h"
#include "reduce.h"
#include "sfu.h"
#include "transpose.h"

/* These members of struct spyre_unit are the same in all units. */
#define UNIT_FUNCTIONS				\
	.pt_rows = PT_ROWS,			\
	.few_rows = PT_FEW_MOST,		\
	.sfu = unit_sfu,			\
	.reduce_begin = unit_reduce_begin,	\
	.reduce = unit_reduce,			\
	.reduce_end = unit_reduce_end,		\
	.convert = unit_convert,		\
	.pt_few = unit_pt_few,			\
	.transpose = unit_transpose,		\
	.transpose32 = unit_transpose32,	\
	.copy = unit_copy

#endif /* SPYRE_MODEL_SIMD_FUNCTIONS_H */
