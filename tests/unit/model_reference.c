// SPDX-License-Identifier: MIT
#include "model_reference.h"

#include <math.h>
#include <string.h>

static float from_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, 4);
	return x;
}

static uint32_t to_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, 4);
	return bits;
}

static float load(uint32_t format, const uint8_t *p)
{
	uint32_t w;
	uint16_t h;

	memcpy(&h, p, 2);
	switch (format) {
	case SPYRE_FMT_SEN169_FP16:
		return from_bits(spyre_dl16_to_fp32(h));
	case SPYRE_FMT_IEEE_FP16:
		return from_bits(spyre_fp16_to_fp32(h));
	case SPYRE_FMT_BFLOAT16:
		return from_bits(spyre_bf16_to_fp32(h));
	default:
		memcpy(&w, p, 4);
		return from_bits(w);
	}
}

static void store(uint32_t format, uint8_t *p, float x)
{
	uint32_t w = isnan(x) ? 0x7fc00000 : to_bits(x);
	uint16_t h;

	switch (format) {
	case SPYRE_FMT_SEN169_FP16:
		h = spyre_fp32_to_dl16(w);
		break;
	case SPYRE_FMT_IEEE_FP16:
		h = spyre_fp32_to_fp16(w);
		break;
	case SPYRE_FMT_BFLOAT16:
		h = spyre_fp32_to_bf16(w);
		break;
	default:
		memcpy(p, &w, 4);
		return;
	}
	memcpy(p, &h, 2);
}

static float larger(float a, float b)
{
	if (isnan(a) || isnan(b))
		return NAN;
	if (a == b)
		return signbit(a) ? b : a;
	return a > b ? a : b;
}

static float smaller(float a, float b)
{
	return -larger(-a, -b);
}

static float norm_scale(float mean, float squares, float eps)
{
	float variance = fmaf(-mean, mean, squares);

	return 1 / sqrtf((variance < 0 ? 0 : variance) + eps);
}

/* Functions of IEEE operations only; model_functions.c has the others. */
static float apply(const struct spyre_instr *in, const float *x)
{
	float a = x[0], b = x[1], low = from_bits(in->imm[0]), high = from_bits(in->imm[1]);

	switch (in->func) {
	case SPYRE_FUNC_IDENTITY: return a;
	case SPYRE_FUNC_RELU: return isnan(a) ? NAN : a > 0 ? a : 0;
	case SPYRE_FUNC_NEG: return -a;
	case SPYRE_FUNC_ABS: return fabsf(a);
	case SPYRE_FUNC_ADD: return a + b;
	case SPYRE_FUNC_SUB: return a - b;
	case SPYRE_FUNC_MUL: return a * b;
	case SPYRE_FUNC_MAX: return larger(a, b);
	case SPYRE_FUNC_MIN: return smaller(a, b);
	case SPYRE_FUNC_EQ: return a == b;
	case SPYRE_FUNC_NE: return a != b;
	case SPYRE_FUNC_GT: return a > b;
	case SPYRE_FUNC_LT: return a < b;
	case SPYRE_FUNC_GE: return a >= b;
	case SPYRE_FUNC_LE: return a <= b;
	case SPYRE_FUNC_REVSUB: return b - a;
	case SPYRE_FUNC_REALDIV: return a / b;
	case SPYRE_FUNC_RECIPROCAL: return 1 / a;
	case SPYRE_FUNC_SQRT: return sqrtf(a);
	case SPYRE_FUNC_RSQRT: return 1 / sqrtf(a);
	case SPYRE_FUNC_FLOOR: return floorf(a);
	case SPYRE_FUNC_CLIP: a = a < low ? low : a; return a > high ? high : a;
	case SPYRE_FUNC_LAYERNORMSCALE: return norm_scale(a, b, low);
	case SPYRE_FUNC_LAYERNORMNORM: return (a - b) * x[2] * x[3] + x[4];
	default: return a != 0 ? b : x[2];
	}
}

struct at {
	const struct spyre_instr *in;
	const struct spyre_view *view;
	uint8_t *base[SPYRE_MAX_VIEWS];
	uint32_t c[SPYRE_MAX_DIMS];
};

static uint8_t *point(const struct at *at, int v)
{
	uint64_t offset = 0;
	uint32_t d;

	for (d = 0; d < at->in->num_dims; d++)
		offset += at->c[d] * at->view[v].stride[d];
	return at->base[v] + offset;
}

static float input(const struct at *at, int v, uint32_t lane)
{
	uint32_t format = at->view[v].format;

	if (at->view[v].lanes == SPYRE_LANES_SPLAT)
		lane = 0;
	return load(format, point(at, v) + lane * spyre_fmt_bytes(format));
}

/* Counts c[] up over the dims of @mask; false after the last point. */
static bool next(struct at *at, uint32_t mask)
{
	int d;

	for (d = (int)at->in->num_dims - 1; d >= 0; d--) {
		if (!(mask & 1u << d))
			continue;
		if (++at->c[d] < at->in->count[d])
			return true;
		at->c[d] = 0;
	}
	return false;
}

static void do_sfu(struct at *at)
{
	uint32_t format = at->view[0].format, views = at->in->num_views;
	float r[128];
	uint32_t lane, v;

	do {
		for (lane = 0; lane < at->in->lanes; lane++) {
			float x[SPYRE_MAX_VIEWS - 1] = { 0 };

			for (v = 1; v < views; v++)
				x[v - 1] = input(at, v, lane);
			r[lane] = apply(at->in, x);
		}
		for (lane = 0; lane < at->in->lanes; lane++)
			store(format, point(at, 0) + lane * spyre_fmt_bytes(format), r[lane]);
	} while (next(at, ~0u));
}

static float combine(uint32_t func, float acc, float x)
{
	switch (func) {
	case SPYRE_FUNC_AMAX: return larger(acc, x);
	case SPYRE_FUNC_AMIN: return smaller(acc, x);
	case SPYRE_FUNC_ABSMAX: return larger(acc, fabsf(x));
	default: return acc + x;
	}
}

static void do_reduce_point(struct at *at, float *acc, bool square)
{
	const struct spyre_instr *in = at->in;
	float first = in->func == SPYRE_FUNC_AMAX ? -INFINITY :
		      in->func == SPYRE_FUNC_AMIN ? INFINITY : 0;
	uint64_t seen = 0;
	uint32_t lane, half;

	for (lane = 0; lane < 128; lane++)
		acc[lane] = first;
	do {
		for (lane = 0; lane < in->lanes; lane++, seen++) {
			float x = input(at, 1, lane);

			if (!in->valid || seen < in->valid)
				acc[lane] = combine(in->func, acc[lane], square ? x * x : x);
		}
	} while (next(at, in->reduce_mask));
	if (in->flags & SPYRE_INSTR_REDUCE_LANES) {
		for (half = 64; half; half /= 2)
			for (lane = 0; lane < half; lane++)
				acc[lane] = combine(in->func, acc[lane], acc[lane + half]);
		for (lane = 1; lane < 128; lane++)
			acc[lane] = acc[0];
	}
}

static void do_reduce(struct at *at)
{
	uint32_t format = at->view[0].format, lane;
	float acc[128];

	do {
		struct at start = *at;

		do_reduce_point(at, acc, false);
		if (at->in->func == SPYRE_FUNC_EXX2) {
			float squares[128];

			do_reduce_point(&start, squares, true);
			memset(acc + 1, 0, sizeof(acc) - 4);
			acc[1] = squares[0];
		}
		for (lane = 0; lane < at->in->lanes; lane++) {
			if (spyre_func_imms(at->in->func))
				acc[lane] *= from_bits(at->in->imm[0]);
			store(format, point(at, 0) + lane * spyre_fmt_bytes(format), acc[lane]);
		}
	} while (next(at, ~(uint32_t)at->in->reduce_mask));
}

static void do_pt(struct at *at)
{
	const struct spyre_view *a = &at->view[1], *b = &at->view[2], *c = &at->view[0];
	uint32_t k, n;

	do {
		for (n = 0; n < 64; n++) {
			float acc = 0;

			for (k = 0; k < at->in->count[5]; k++)
				acc = fmaf(load(a->format, point(at, 1) + k / 64 * a->stride[5] +
						k % 64 * spyre_fmt_bytes(a->format)),
					   load(b->format, point(at, 2) + k * b->stride[5] +
						n * spyre_fmt_bytes(b->format)), acc);
			store(c->format, point(at, 0) + n * spyre_fmt_bytes(c->format), acc);
		}
	} while (next(at, 0x1f));
}

static void do_move(struct at *at)
{
	do {
		memmove(point(at, 0), point(at, 1),
			at->in->lanes * spyre_fmt_bytes(at->view[0].format));
	} while (next(at, ~0u));
}

static void do_restick(struct at *at)
{
	uint32_t i, j;

	do {
		for (i = 0; i < 64; i++)
			for (j = 0; j < 64; j++)
				memcpy(point(at, 0) + j * at->view[0].stride[5] + i * 2,
				       point(at, 1) + i * at->view[1].stride[4] + j * 2, 2);
	} while (next(at, 0xf));
}

static void do_instr(const struct spyre_instr *in, uint32_t core, const uint32_t *turn,
		     uint8_t *const *operand, uint8_t *const *lx)
{
	struct at at = { .in = in, .view = spyre_instr_views(in) };
	uint32_t v, l;

	for (v = 0; v < in->num_views; v++) {
		uint32_t op = at.view[v].operand;

		at.base[v] = op < 64 ? operand[op] : lx[op == SPYRE_VIEW_LX ? core : op & 31];
		at.base[v] += at.view[v].offset;
		for (l = 0; l < SPYRE_MAX_LOOPS; l++)
			at.base[v] += turn[l] * at.view[v].loop_stride[l];
	}
	switch (in->opcode) {
	case SPYRE_OP_MOVE: do_move(&at); break;
	case SPYRE_OP_SFU: do_sfu(&at); break;
	case SPYRE_OP_REDUCE: do_reduce(&at); break;
	case SPYRE_OP_PT: do_pt(&at); break;
	default: do_restick(&at);
	}
}

static uint32_t do_steps(const struct spyre_program *prog, uint32_t i, uint32_t level,
			 uint32_t *turn, uint8_t *const *operand, uint8_t *const *lx)
{
	uint32_t s, n, end = i;

	for (; i < prog->header->num_steps; i++) {
		const struct spyre_prog_step *step = &prog->steps[i];

		if (step->kind == SPYRE_STEP_END)
			return i;
		if (step->kind == SPYRE_STEP_LOOP) {
			for (turn[level] = 0; turn[level] < step->count; turn[level]++)
				end = do_steps(prog, i + 1, level + 1, turn, operand, lx);
			turn[level] = 0;
			i = end;
			continue;
		}
		for (s = 0; s < step->num_streams; s++) {
			const struct spyre_prog_stream *st =
				&prog->streams[step->first_stream + s];
			const struct spyre_instr *in =
				(const void *)(prog->instrs + st->offset);

			for (n = 0; n < st->num_instrs; n++, in = spyre_instr_next(in))
				do_instr(in, st->core, turn, operand, lx);
		}
	}
	return i;
}

void reference_exec(const struct spyre_program *prog, uint8_t *const *operand,
		    uint8_t *const *lx)
{
	uint32_t turn[SPYRE_MAX_LOOPS] = { 0 };
	uint32_t c;

	for (c = 0; lx && c < prog->header->num_cores; c++)
		memset(lx[c], 0, prog->header->lx_bytes);
	do_steps(prog, 0, 0, turn, operand, lx);
}

static bool is_float(uint32_t f)
{
	return f == SPYRE_FMT_SEN169_FP16 || f == SPYRE_FMT_IEEE_FP32 ||
	       f == SPYRE_FMT_IEEE_FP16 || f == SPYRE_FMT_BFLOAT16 || f == SPYRE_FMT_FP64;
}

static int64_t load_int(uint32_t format, const uint8_t *p)
{
	int64_t x = 0;

	memcpy(&x, p, spyre_fmt_bytes(format));
	switch (format) {
	case SPYRE_FMT_SENINT8: return (int8_t)x;
	case SPYRE_FMT_SENINT16: return (int16_t)x;
	case SPYRE_FMT_IEEE_INT32: return (int32_t)x;
	case SPYRE_FMT_BOOL: return x != 0;
	default: return x;
	}
}

static int64_t float_to_int(uint32_t format, float x)
{
	double lo, hi;

	switch (format) {
	case SPYRE_FMT_BOOL: return x != 0;
	case SPYRE_FMT_UINT8: lo = 0; hi = 255; break;
	case SPYRE_FMT_SENUINT32: lo = 0; hi = 4294967295.0; break;
	case SPYRE_FMT_SENINT8: lo = -128; hi = 127; break;
	case SPYRE_FMT_SENINT16: lo = -32768; hi = 32767; break;
	case SPYRE_FMT_IEEE_INT32: lo = -2147483648.0; hi = 2147483647.0; break;
	default:
		if (isnan(x))
			return 0;
		return x >= 0x1p63f ? INT64_MAX : x < -0x1p63f ? INT64_MIN : (int64_t)x;
	}
	if (isnan(x))
		return 0;
	return trunc(x) < lo ? (int64_t)lo : trunc(x) > hi ? (int64_t)hi : (int64_t)x;
}

static void convert(uint32_t to, uint8_t *dst, uint32_t from, const uint8_t *src)
{
	float x;
	double d;
	int64_t i;

	if (to == from) {
		memcpy(dst, src, spyre_fmt_bytes(to));
		return;
	}
	if (!is_float(to) && !is_float(from)) {
		i = load_int(from, src);
		if (to == SPYRE_FMT_BOOL)
			i = i != 0;
		memcpy(dst, &i, spyre_fmt_bytes(to));
		return;
	}
	if (from == SPYRE_FMT_FP64) {
		memcpy(&d, src, 8);
		x = (float)d;
	} else if (is_float(from)) {
		uint8_t buf[4] = { 0 };

		memcpy(buf, src, spyre_fmt_bytes(from));
		x = load(from, buf);
	} else {
		x = (float)load_int(from, src);
	}
	if (to == SPYRE_FMT_FP64) {
		uint64_t bits = 0x7ff8ull << 48;

		d = x;
		memcpy(dst, isnan(x) ? (void *)&bits : (void *)&d, 8);
	} else if (is_float(to)) {
		store(to, dst, x);
	} else {
		i = float_to_int(to, x);
		memcpy(dst, &i, spyre_fmt_bytes(to));
	}
}

void reference_dma(const struct spyre_dma_desc *desc, uint8_t *device, uint8_t *host,
		   uint64_t host_bytes)
{
	uint32_t c[SPYRE_DMA_MAX_DIMS] = { 0 };
	uint64_t hb = spyre_fmt_bytes(desc->host_format);
	uint64_t db = spyre_fmt_bytes(desc->device_format);
	uint32_t b, d;

	for (;; device += db) {
		uint64_t at = desc->host_offset;
		bool real = true;

		for (d = 0; d < desc->num_dims; d++)
			at += c[d] * desc->dim[d].host_stride;
		for (b = 0; b < desc->num_bounds; b++) {
			uint64_t sum = 0;

			for (d = 0; d < desc->num_dims; d++)
				sum += c[d] * desc->bound[b].coef[d];
			real = real && sum < desc->bound[b].limit;
		}
		real = real && at + hb <= host_bytes;
		if (desc->direction == SPYRE_DMA_D2H) {
			if (real)
				convert(desc->host_format, host + at, desc->device_format, device);
		} else if (real) {
			convert(desc->device_format, device, desc->host_format, host + at);
		} else {
			memset(device, 0, db);
		}
		for (d = desc->num_dims; d--;) {
			if (++c[d] < desc->dim[d].count)
				break;
			c[d] = 0;
		}
		if (d == (uint32_t)-1)
			return;
	}
}
