/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The arithmetic units, the only code of the card that uses floating point.
 * Functions take pointers and integers only, so callers may be built without FPU
 * registers; the caller brackets calls with fpu_begin/fpu_end.
 *
 * All units produce the same bits for the same calls.
 */
#ifndef SPYRE_MODEL_UNIT_H
#define SPYRE_MODEL_UNIT_H

#include "../format.h"
#include "../program.h"

/* A run of points of one operand: point i is at p + i * stride. */
struct spyre_span {
	u8 *p;
	u64 stride;
	u32 format;
	bool splat;
};

struct spyre_sfu_run {
	u32 func;
	u32 lanes;		/* consecutive elements of each point */
	u32 points;
	u32 imm[2];
	u32 coord;		/* MASKBYINDEX: coordinate of the first lane of the first point, */
	u32 coord_step;		/* its increment from point to point, modulo 2^32, */
	u32 width;		/* and the coordinates kept below the index, 0: all */
	bool stream;		/* the output is 64-byte aligned and not needed soon */
	struct spyre_span v[SPYRE_MAX_VIEWS];	/* v[0] is the output */
};

/* Lane accumulators of a reduction: fp32 or 32-bit integers, part of the worker's scratch. */
#define SPYRE_ACC_LANES 128u
/* EXX2 has a second set, of the squares, after the first. */
#define SPYRE_ACC_BYTES (2 * 4 * SPYRE_ACC_LANES)

struct spyre_reduce_run {
	u32 func;
	u32 rows;		/* outputs: input row_stride apart, accumulators ACC_BYTES apart */
	u64 row_stride;
	u64 row_stride2;
	u32 lanes;		/* lanes that take part, <= 128 */
	u32 points;
	struct spyre_span in;
	struct spyre_span in2;	/* MULSUM */
	void *acc;
};

struct spyre_reduce_end {
	u32 func;
	u32 lanes;		/* lanes of the output point */
	u32 imm;		/* MEAN, EXX2, EXX2_ZEROMEAN, QUANTSCALE: factor, fp32 bits */
	bool across;		/* reduce across the lanes, fill all of them */
	u8 *out;
	u32 format;
	void *acc;
};

/*
 * rows x lanes elements from one format to another; rows of SENINT4 have an even
 * number of lanes. Integers are stored like the SFU's, nearest and saturating, or
 * like C casts.
 */
struct spyre_convert_run {
	u8 *dst;
	const u8 *src;
	u64 dst_stride;
	u64 src_stride;
	u32 rows;
	u32 lanes;
	u32 dst_format;
	u32 src_format;
	bool cast;		/* floats towards zero, integers modulo: the DMA engine */
	bool stream;		/* dst is 64-byte aligned and not needed soon */
};

/* Rows of raw bytes. */
struct spyre_copy_run {
	u8 *dst;
	const u8 *src;
	u64 dst_stride;
	u64 src_stride;
	u32 rows;
	u32 bytes;
	bool stream;		/* dst is 64-byte aligned and not needed soon */
};

/* c[rows][64] += a[rows][k] x b[k][64], all fp32. */
struct spyre_pt_run {
	void *c;
	const void *a;
	const void *b;
	u32 rows;
	u32 k;
	u32 a_stride;		/* bytes from row to row of a */
	bool exact;		/* products of elements are exact in fp32 */
};

/* c[rows][64] += a[rows][k] x b[k][64]; c and a are fp32, lines of b are DL16 or bf16. */
struct spyre_pt_few_run {
	void *c;
	const void *a;
	const u8 *b;
	u64 b_stride;
	u32 rows;
	u32 k;
	u32 a_stride;		/* bytes from row to row of a */
	u32 format;		/* of b; products of DL16 are exact in fp32 */
};

struct spyre_unit {
	const char *name;
	/* Multiply-adds in about 20 us; pointwise work costs 16 per element. */
	u32 budget;
	/* Extra cost of a multiply-add whose product is not exact in fp32. */
	u32 inexact_factor;
	/* Cost of an element of a function of two beats relative to one beat. */
	u32 long_factor;
	u32 pt_rows;		/* the PT kernel's preferred number of rows */
	u32 few_rows;		/* up to which pt_few() is faster than pt() */
	void (*sfu)(const struct spyre_sfu_run *run);
	void (*reduce_begin)(u32 func, void *acc);
	void (*reduce)(const struct spyre_reduce_run *run);
	void (*reduce_end)(const struct spyre_reduce_end *end);
	void (*convert)(const struct spyre_convert_run *run);
	void (*pt)(const struct spyre_pt_run *run);
	void (*pt_few)(const struct spyre_pt_few_run *run);
	/* 64 x 64 tile of 16-bit elements: out[j][i] = in[i][j] */
	void (*transpose)(u8 *out, u64 out_stride, const u8 *in, u64 in_stride);
	/* The same for rows x columns of 32-bit elements, multiples of 4 and of 16. */
	void (*transpose32)(u8 *out, u64 out_stride, const u8 *in, u64 in_stride, u32 rows,
			    u32 columns);
	void (*copy)(const struct spyre_copy_run *run);
};

extern const struct spyre_unit spyre_unit_scalar;
extern const struct spyre_unit spyre_unit_avx2;
extern const struct spyre_unit spyre_unit_avx512;
extern const struct spyre_unit spyre_unit_neon;
extern const struct spyre_unit spyre_unit_vsx;
extern const struct spyre_unit spyre_unit_zvector;

#endif /* SPYRE_MODEL_UNIT_H */
