/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reductions of the SFU: points are combined lane by lane into accumulators of
 * fp32, and a tree finally combines these across the lanes. Each unit includes this
 * once.
 */
#ifndef SPYRE_MODEL_SIMD_REDUCE_H
#define SPYRE_MODEL_SIMD_REDUCE_H

#include "convert.h"
#include "integer.h"

/* The operation that combines an element with the accumulator. */
enum combine {
	COMBINE_SUM,
	COMBINE_SQUARES,
	COMBINE_PRODUCTS,	/* of two inputs */
	COMBINE_PRODUCTS_EXACT,	/* of two inputs, whose products fp32 holds exactly */
	COMBINE_AMAX,
	COMBINE_AMIN,
	COMBINE_ABSMAX,
};

static ALWAYS_INLINE enum combine combine_of(u32 func)
{
	switch (func) {
	case SPYRE_FUNC_AMAX:
		return COMBINE_AMAX;
	case SPYRE_FUNC_AMIN:
		return COMBINE_AMIN;
	case SPYRE_FUNC_ABSMAX:
	case SPYRE_FUNC_QUANTSCALE:
		return COMBINE_ABSMAX;
	case SPYRE_FUNC_MULSUM:
		return COMBINE_PRODUCTS;
	default:
		return COMBINE_SUM;
	}
}

static ALWAYS_INLINE bool has_squares(u32 func)
{
	return func == SPYRE_FUNC_EXX2 || func == SPYRE_FUNC_EXX2_ZEROMEAN;
}

static ALWAYS_INLINE vf reduce_apply(enum combine how, vf acc, vf x, vf y)
{
	switch (how) {
	case COMBINE_AMAX:
		return vf_max(acc, x);
	case COMBINE_AMIN:
		return vf_min(acc, x);
	case COMBINE_ABSMAX:
		return vf_max(acc, vf_abs(x));
	case COMBINE_SQUARES:
		return acc + x * x;
	case COMBINE_PRODUCTS:
		return VF_FUSED(x, y, acc);
	case COMBINE_PRODUCTS_EXACT:
		return VF_FMA(x, y, acc);
	default:
		return acc + x;
	}
}

static void unit_reduce_begin(u32 func, void *acc)
{
	vf *a = acc;
	vf first = { 0 };
	long i;

	if (spyre_func_integer(func))
		return integer_reduce_begin(func, acc);
	if (func == SPYRE_FUNC_AMAX)
		first = (vf)vu_splat(0xff800000);
	else if (func == SPYRE_FUNC_AMIN)
		first = (vf)vu_splat(0x7f800000);
	for (i = 0; i < (long)SPYRE_ACC_BYTES / 4 / VL; i++)
		a[i] = first;
}

/* @how is a constant. */
static ALWAYS_INLINE void reduce_tile(enum combine how, vf *acc, const vf *x, const vf *y, long n)
{
	vf part;
	long i;

	if (n >= TILE) {
		for (i = 0; i < TILE_VECS; i++)
			acc[i] = reduce_apply(how, acc[i], x[i], y[i]);
		return;
	}
#pragma GCC unroll 1
	for (i = 0; n >= VL; i++, n -= VL)
		acc[i] = reduce_apply(how, acc[i], x[i], y[i]);
	if (n > 0) {
		part = reduce_apply(how, acc[i], x[i], y[i]);
		__builtin_memcpy(&acc[i], &part, 4 * n);
	}
}

static NOINLINE void reduce_any_tile(enum combine how, vf *acc, const vf *x, const vf *y, long n)
{
	switch (how) {
	case COMBINE_AMAX:
		return reduce_tile(COMBINE_AMAX, acc, x, y, n);
	case COMBINE_AMIN:
		return reduce_tile(COMBINE_AMIN, acc, x, y, n);
	case COMBINE_ABSMAX:
		return reduce_tile(COMBINE_ABSMAX, acc, x, y, n);
	case COMBINE_SQUARES:
		return reduce_tile(COMBINE_SQUARES, acc, x, y, n);
	case COMBINE_PRODUCTS:
		return reduce_tile(COMBINE_PRODUCTS, acc, x, y, n);
	default:
		return reduce_tile(COMBINE_SUM, acc, x, y, n);
	}
}

static ALWAYS_INLINE void reduce_input(vf *tile, const struct spyre_span *in, long point,
				       long lane, long n)
{
	const u8 *p = in->p + point * in->stride;

	if (in->splat)
		tile_splat(tile, in->format, p);
	else
		tile_load(tile, in->format, p + vf_bytes(in->format, lane), n);
}

static NOINLINE void reduce_tiles(const struct spyre_reduce_run *run)
{
	enum combine how = combine_of(run->func);
	bool two = run->func == SPYRE_FUNC_MULSUM, squares = has_squares(run->func);
	vf x[TILE_VECS], y[TILE_VECS] = { { 0 } };
	vf *acc = run->acc;
	long point, lane;

	for (point = 0; point < run->points; point++) {
		for (lane = 0; lane < run->lanes; lane += TILE) {
			long n = run->lanes - lane;

			reduce_input(x, &run->in, point, lane, n);
			if (two)
				reduce_input(y, &run->in2, point, lane, n);
			reduce_any_tile(how, acc + lane / VL, x, y, n);
			if (squares)
				reduce_any_tile(COMBINE_SQUARES,
						acc + (SPYRE_ACC_LANES + lane) / VL, x, y, n);
		}
	}
}

/*
 * Rows of whole sticks. As many rows as fit in registers are reduced at once, so
 * that adjacent memory is read together; accumulators stay in registers.
 */
#define ROWS (VL >= 16 ? 4 : 1)
#define SQUARE_ROWS (VL >= 16 ? 2 : 1)
#define SQUARES (SPYRE_ACC_LANES / VL)

static ALWAYS_INLINE vf *reduce_acc(const struct spyre_reduce_run *run, long row)
{
	return (vf *)((u8 *)run->acc + row * SPYRE_ACC_BYTES);
}

static ALWAYS_INLINE const u8 *reduce_at(const struct spyre_span *in, u64 row_stride, long row,
					 long point)
{
	return in->p + row * row_stride + point * in->stride;
}

/* Points may lie far apart, where no hardware prefetcher follows. */
static ALWAYS_INLINE void reduce_prefetch(const struct spyre_reduce_run *run, const u8 *p)
{
	const unsigned long at = (unsigned long)p + 6 * run->in.stride;

	__builtin_prefetch((const u8 *)at);
	__builtin_prefetch((const u8 *)(at + 64));
}

/* The @i-th two vectors of a stick; those of DL16 have the order of pairs. */
static ALWAYS_INLINE struct vf_two reduce_load(u32 format, const u8 *p, long i)
{
	return format == SPYRE_FMT_SEN169_FP16 ? dl16_load_pair(p + i * 2 * HL) :
						 vf_two_load(p + i * 4 * HL);
}

/* Loads the accumulators of @lanes in the order of reduce_load(), or stores them. */
static ALWAYS_INLINE void reduce_acc_load(struct vf_two *to, u32 format, const vf *acc,
					  long lanes)
{
	long i;

#pragma GCC unroll 8
	for (i = 0; i < lanes / HL; i++) {
		to[i] = (struct vf_two) { acc[2 * i], acc[2 * i + 1] };
		if (format == SPYRE_FMT_SEN169_FP16)
			to[i] = vf_two_swap(to[i]);
	}
}

static ALWAYS_INLINE void reduce_acc_store(const struct vf_two *from, u32 format, vf *acc,
					   long lanes)
{
	long i;

#pragma GCC unroll 8
	for (i = 0; i < lanes / HL; i++) {
		struct vf_two x = from[i];

		if (format == SPYRE_FMT_SEN169_FP16)
			x = vf_two_swap(x);
		acc[2 * i] = x.first;
		acc[2 * i + 1] = x.second;
	}
}

/* Starts at row @first; all arguments but @run and @first are constants. */
static ALWAYS_INLINE void reduce_sticks(const struct spyre_reduce_run *run, enum combine how,
					u32 format, long lanes, long first, long rows)
{
	bool two = how == COMBINE_PRODUCTS || how == COMBINE_PRODUCTS_EXACT;
	struct vf_two acc[ROWS][64 / HL];
	long point, row, i;

#pragma GCC unroll 4
	for (row = 0; row < rows; row++)
		reduce_acc_load(acc[row], format, reduce_acc(run, first + row), lanes);
	for (point = 0; point < run->points; point++) {
#pragma GCC unroll 4
		for (row = 0; row < rows; row++) {
			const u8 *p = reduce_at(&run->in, run->row_stride, first + row, point);
			const u8 *q = two ? reduce_at(&run->in2, run->row_stride2, first + row,
						      point) : p;

			reduce_prefetch(run, p);
#pragma GCC unroll 16
			for (i = 0; i < lanes / HL; i++) {
				struct vf_two x = reduce_load(format, p, i);
				struct vf_two y = two ? reduce_load(format, q, i) : x;
				struct vf_two *a = &acc[row][i];

				a->first = reduce_apply(how, a->first, x.first, y.first);
				a->second = reduce_apply(how, a->second, x.second, y.second);
			}
		}
	}
#pragma GCC unroll 4
	for (row = 0; row < rows; row++)
		reduce_acc_store(acc[row], format, reduce_acc(run, first + row), lanes);
}

/* Lanes whose sums and squares fit in registers, for all rows. */
#define SQUARE_LANES (VL >= 16 ? 64 : 32)

/* Accumulates sums and sums of squares of @lanes from @lane on, which are constants. */
static ALWAYS_INLINE void reduce_squares_part(const struct spyre_reduce_run *run, u32 format,
					      long lane, long lanes, long first, long rows)
{
	struct vf_two sum[SQUARE_ROWS][SQUARE_LANES / HL], square[SQUARE_ROWS][SQUARE_LANES / HL];
	long point, row, i;

#pragma GCC unroll 4
	for (row = 0; row < rows; row++) {
		const vf *acc = reduce_acc(run, first + row) + lane / VL;

		reduce_acc_load(sum[row], format, acc, lanes);
		reduce_acc_load(square[row], format, acc + SQUARES, lanes);
	}
	for (point = 0; point < run->points; point++) {
#pragma GCC unroll 4
		for (row = 0; row < rows; row++) {
			const u8 *p = reduce_at(&run->in, run->row_stride, first + row, point);

			reduce_prefetch(run, p);
#pragma GCC unroll 16
			for (i = 0; i < lanes / HL; i++) {
				struct vf_two x = reduce_load(format, p, lane / HL + i);

				sum[row][i].first += x.first;
				sum[row][i].second += x.second;
				square[row][i].first += x.first * x.first;
				square[row][i].second += x.second * x.second;
			}
		}
	}
#pragma GCC unroll 4
	for (row = 0; row < rows; row++) {
		vf *acc = reduce_acc(run, first + row) + lane / VL;

		reduce_acc_store(sum[row], format, acc, lanes);
		reduce_acc_store(square[row], format, acc + SQUARES, lanes);
	}
}

static ALWAYS_INLINE void reduce_squares(const struct spyre_reduce_run *run, u32 format,
					 long lanes, long first, long rows)
{
	long lane;

#pragma GCC unroll 2
	for (lane = 0; lane < lanes; lane += SQUARE_LANES)
		reduce_squares_part(run, format, lane,
				    lanes < SQUARE_LANES ? lanes : SQUARE_LANES, first, rows);
}

static ALWAYS_INLINE hls hls_min(hls a, hls b)
{
	return (hls)hl_select(a < b, (hl)a, (hl)b);
}

static ALWAYS_INLINE hls hls_max(hls a, hls b)
{
	return (hls)hl_select(a > b, (hl)a, (hl)b);
}

/* Converts sign and magnitude to an integer with -0 below +0, and back. */
static ALWAYS_INLINE hls dl16_flip(hls x)
{
	return x ^ ((x >> 15) & 0x7fff);
}

/* The best codes of a stick, flipped, and 0 where one of them was NaN. */
struct order {
	hls best[64 / HL];
	hls numbers[64 / HL];
};

/*
 * Converts @order to floats and combines them with the accumulators, including NaN
 * if there was one.
 */
static ALWAYS_INLINE void reduce_order_end(vf *acc, enum combine how, const struct order *order)
{
	long i;

#pragma GCC unroll 8
	for (i = 0; i < 64 / HL; i++) {
		hl best = (hl)dl16_flip(order->best[i]);
		u8 code[4 * VL];

		*(hl_mem *)code = hl_le(hl_select(order->numbers[i] == 0,
						  (hl){ 0 } + SPYRE_DL16_NAN, best));
		acc[2 * i] = reduce_apply(how, acc[2 * i], vf_load(SPYRE_FMT_SEN169_FP16, code),
					  (vf){ 0 });
		acc[2 * i + 1] = reduce_apply(how, acc[2 * i + 1],
					      vf_load(SPYRE_FMT_SEN169_FP16, code + 2 * VL),
					      (vf){ 0 });
	}
}

/*
 * Finds the largest or smallest of sticks of DL16 by their flipped codes, twice as
 * many lanes at a time. NaN's codes are ordered as well, but NaN is tracked
 * separately.
 */
static ALWAYS_INLINE void reduce_order(const struct spyre_reduce_run *run, enum combine how,
				       long first, long rows)
{
	bool min = how == COMBINE_AMIN;
	const hls lowest = (hls){ 0 } - 0x7fff - 1, highest = (hls){ 0 } + 0x7fff;
	struct order order[ROWS];
	long point, row, i;

#pragma GCC unroll 4
	for (row = 0; row < rows; row++)
		for (i = 0; i < 64 / HL; i++) {
			order[row].best[i] = min ? highest : lowest;
			order[row].numbers[i] = highest;
		}
	for (point = 0; point < run->points; point++) {
#pragma GCC unroll 4
		for (row = 0; row < rows; row++) {
			const u8 *p = reduce_at(&run->in, run->row_stride, first + row, point);

			reduce_prefetch(run, p);
#pragma GCC unroll 8
			for (i = 0; i < 64 / HL; i++) {
				hls x = (hls)hl_le(*(const hl_mem *)(p + i * 2 * HL));
				hls *best = &order[row].best[i], *numbers = &order[row].numbers[i];
				hls number = (x & 0x7fff) ^ SPYRE_DL16_NAN;

				x = how == COMBINE_ABSMAX ? x & 0x7fff : dl16_flip(x);
				*best = min ? hls_min(x, *best) : hls_max(x, *best);
				*numbers = hls_min(number, *numbers);
			}
		}
	}
#pragma GCC unroll 4
	for (row = 0; row < rows; row++)
		reduce_order_end(reduce_acc(run, first + row), how, &order[row]);
}

/* Reduces all rows, several at once and the remainder one by one. */
#define REDUCE_ROWS(name, at_once, value)					\
static NOINLINE void reduce_##name(const struct spyre_reduce_run *run)		\
{										\
	long first = 0;								\
										\
	for (; first + at_once <= run->rows; first += at_once) {		\
		const long rows = at_once;					\
										\
		value;								\
	}									\
	for (; first < run->rows; first++) {					\
		const long rows = 1;						\
										\
		value;								\
	}									\
}

#define DL16 SPYRE_FMT_SEN169_FP16
#define FP32 SPYRE_FMT_IEEE_FP32

REDUCE_ROWS(dl16_amax, ROWS, reduce_order(run, COMBINE_AMAX, first, rows))
REDUCE_ROWS(dl16_amin, ROWS, reduce_order(run, COMBINE_AMIN, first, rows))
REDUCE_ROWS(dl16_absmax, ROWS, reduce_order(run, COMBINE_ABSMAX, first, rows))
REDUCE_ROWS(dl16_sum, ROWS, reduce_sticks(run, COMBINE_SUM, DL16, 64, first, rows))
REDUCE_ROWS(dl16_mulsum, ROWS, reduce_sticks(run, COMBINE_PRODUCTS_EXACT, DL16, 64, first, rows))
REDUCE_ROWS(dl16_squares, SQUARE_ROWS, reduce_squares(run, DL16, 64, first, rows))
REDUCE_ROWS(fp32_amax, ROWS, reduce_sticks(run, COMBINE_AMAX, FP32, 32, first, rows))
REDUCE_ROWS(fp32_amin, ROWS, reduce_sticks(run, COMBINE_AMIN, FP32, 32, first, rows))
REDUCE_ROWS(fp32_absmax, ROWS, reduce_sticks(run, COMBINE_ABSMAX, FP32, 32, first, rows))
REDUCE_ROWS(fp32_sum, ROWS, reduce_sticks(run, COMBINE_SUM, FP32, 32, first, rows))
REDUCE_ROWS(fp32_mulsum, ROWS, reduce_sticks(run, COMBINE_PRODUCTS, FP32, 32, first, rows))
REDUCE_ROWS(fp32_squares, SQUARE_ROWS, reduce_squares(run, FP32, 32, first, rows))

#undef DL16
#undef FP32

#define REDUCE_FORMAT(format)							\
static void reduce_##format(const struct spyre_reduce_run *run)			\
{										\
	switch (combine_of(run->func)) {					\
	case COMBINE_AMAX:							\
		return reduce_##format##_amax(run);				\
	case COMBINE_AMIN:							\
		return reduce_##format##_amin(run);				\
	case COMBINE_ABSMAX:							\
		return reduce_##format##_absmax(run);				\
	case COMBINE_PRODUCTS:							\
		return reduce_##format##_mulsum(run);				\
	default:								\
		return has_squares(run->func) ? reduce_##format##_squares(run) :	\
						reduce_##format##_sum(run);	\
	}									\
}

REDUCE_FORMAT(dl16)
REDUCE_FORMAT(fp32)

/*
 * Points of one row that are reduced before those of the next row, where few rows fit in
 * registers: sticks of adjacent rows are adjacent, while those of a row may have a page and a
 * cache set each. Codes that are compared need more work at the end of a part.
 */
#define REDUCE_POINTS (ROWS > 1 ? 0x7fffffff : 8)
#define REDUCE_ORDER_POINTS (ROWS > 1 ? 0x7fffffff : 16)

static ALWAYS_INLINE void reduce_in_parts(const struct spyre_reduce_run *run,
					  void (*reduce)(const struct spyre_reduce_run *run))
{
	bool sums = combine_of(run->func) <= COMBINE_PRODUCTS_EXACT;
	const u32 most = sums ? REDUCE_POINTS : REDUCE_ORDER_POINTS;
	struct spyre_reduce_run part = *run;
	u32 done;

	for (done = 0; done < run->points; done += part.points) {
		part.points = run->points - done < most ? run->points - done : most;
		part.in.p = run->in.p + done * run->in.stride;
		if (run->func == SPYRE_FUNC_MULSUM)
			part.in2.p = run->in2.p + done * run->in2.stride;
		reduce(&part);
	}
}

static void reduce_each_row(const struct spyre_reduce_run *run)
{
	struct spyre_reduce_run one = *run;
	u32 row;

	for (row = 0; row < run->rows; row++) {
		one.in.p = run->in.p + row * run->row_stride;
		if (run->func == SPYRE_FUNC_MULSUM)
			one.in2.p = run->in2.p + row * run->row_stride2;
		one.acc = reduce_acc(run, row);
		if (spyre_func_integer(run->func))
			integer_reduce(&one);
		else
			reduce_tiles(&one);
	}
}

static void unit_reduce(const struct spyre_reduce_run *run)
{
	u32 format = run->in.format;
	bool splat = run->in.splat;

	if (run->func == SPYRE_FUNC_MULSUM) {
		splat |= run->in2.splat;
		format = run->in2.format == format ? format : 0;
	}
	if (!run->points)
		return;
	if (spyre_func_integer(run->func))
		reduce_each_row(run);
	else if (format == SPYRE_FMT_SEN169_FP16 && run->lanes == 64 && !splat)
		reduce_in_parts(run, reduce_dl16);
	else if (format == SPYRE_FMT_IEEE_FP32 && run->lanes == 32 && !splat)
		reduce_in_parts(run, reduce_fp32);
	else
		reduce_each_row(run);
}

/*
 * The tree: lane i += lane i + 64, then 32, 16, 8, 4, 2, 1. Lane 0 has the result;
 * the other lanes are undefined. @how is a constant.
 */
static ALWAYS_INLINE void reduce_halves(enum combine how, float *acc)
{
	vf none = { 0 }, *first = (vf *)acc, x;
	long half, i;
	vi at;

	for (half = SPYRE_ACC_LANES / 2; half >= VL; half /= 2)
		for (i = 0; i < half / VL; i++)
			first[i] = reduce_apply(how, first[i], first[half / VL + i], none);
#pragma GCC unroll 16
	for (i = 0; i < VL; i++)
		at[i] = i;
	x = first[0];
#pragma GCC unroll 4
	for (; half; half /= 2)
		x = reduce_apply(how, x, __builtin_shuffle(x, at + vi_splat(half)), none);
	first[0] = x;
}

static NOINLINE void reduce_tree(enum combine how, float *acc)
{
	switch (how) {
	case COMBINE_AMAX:
		return reduce_halves(COMBINE_AMAX, acc);
	case COMBINE_AMIN:
		return reduce_halves(COMBINE_AMIN, acc);
	case COMBINE_ABSMAX:
		return reduce_halves(COMBINE_ABSMAX, acc);
	default:
		return reduce_halves(COMBINE_SUM, acc);
	}
}

/* Writes both sums to the first two lanes and +0.0 to the others. */
static void squares_end(const struct spyre_reduce_end *end, float factor)
{
	float *acc = end->acc, *squares = acc + SPYRE_ACC_LANES;
	float both[2];

	reduce_tree(COMBINE_SUM, acc);
	reduce_tree(COMBINE_SUM, squares);
	both[0] = end->func == SPYRE_FUNC_EXX2 ? acc[0] * factor : 0;
	both[1] = squares[0] * factor;
	__builtin_memset(acc, 0, 4 * SPYRE_ACC_LANES);
	__builtin_memcpy(acc, both, sizeof(both));
}

static void unit_reduce_end(const struct spyre_reduce_end *end)
{
	enum combine how = combine_of(end->func);
	vf factor = (vf)vu_splat(end->imm);
	vf *acc = end->acc;
	long i;

	if (spyre_func_integer(end->func))
		return integer_reduce_end(end);
	if (has_squares(end->func)) {
		squares_end(end, factor[0]);
	} else {
		if (end->across) {
			reduce_tree(how == COMBINE_PRODUCTS ? COMBINE_SUM : how, end->acc);
			acc[0] = vf_splat(acc[0][0]);
			for (i = 1; i < (long)SPYRE_ACC_LANES / VL; i++)
				acc[i] = acc[0];
		}
		if (end->func == SPYRE_FUNC_MEAN || end->func == SPYRE_FUNC_QUANTSCALE)
			for (i = 0; i < (long)SPYRE_ACC_LANES / VL; i++)
				acc[i] *= factor;
	}
	for (i = 0; i < end->lanes; i += TILE)
		tile_store(acc + i / VL, end->format, end->out + vf_bytes(end->format, i),
			   end->lanes - i);
}

#endif /* SPYRE_MODEL_SIMD_REDUCE_H */
