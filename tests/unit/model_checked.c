// SPDX-License-Identifier: MIT
#include "model_checked.h"
#include "model_reference.h"
#include "tests/order.h"

#include "model/simd/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct machine {
	const struct spyre_program *prog;
	uint8_t *const *operand;
	uint8_t *const *lx;
	uint32_t iter[SPYRE_MAX_LOOPS];
	char *fault;
	size_t fault_bytes;
	bool failed;
	bool index;		/* failed because of an index */
	uint64_t nowhere[16];	/* target of accesses that are not permitted */
	/* the current instruction */
	const struct spyre_instr *in;
	const struct spyre_view *view;
	uint32_t core;
	uint32_t c[SPYRE_MAX_DIMS];
	/* checks of the order of accesses, if any */
	struct checked_order *order;
	uint32_t phase;		/* number of its first instruction */
	uint32_t point;
	uint32_t element;	/* of the next access */
};

/* The element is not one that an output may replace. */
#define NO_ELEMENT ~0u
/* Of all outputs of GATHER and SCATTER, which may replace each other: the last remains. */
#define ANY_ELEMENT (~0u - 1)
#define SEVERAL_CORES 255u

static bool ended(const struct machine *m)
{
	return m->failed || (m->order && (m->order->open || m->order->given_up));
}

/* The next access is to lane @lane of a view at this point. */
static void set_element(struct machine *m, uint32_t v, uint32_t lane)
{
	bool pointwise = m->in->opcode == SPYRE_OP_MOVE ||
			 m->in->opcode == SPYRE_OP_SFU || m->in->opcode == SPYRE_OP_INT;

	if (m->view[v].format == SPYRE_FMT_SENINT4)
		lane &= ~1u;
	m->element = (m->point * SPYRE_MAX_LANES + lane) * 32 + m->view[v].format;
	if (spyre_indirect_view(m->in) < 2)
		m->element = v ? NO_ELEMENT : ANY_ELEMENT;
	else if (v && (!pointwise || m->view[v].lanes == SPYRE_LANES_SPLAT))
		m->element = NO_ELEMENT;
}

static void order_read(struct machine *m, struct checked_byte *b)
{
	struct checked_order *o = m->order;
	bool in_phase = b->read >= m->phase;

	o->open |= b->written == o->instr ||
		   (b->written >= m->phase && b->write_core != m->core);
	if (b->read == o->instr && b->read_element != m->element)
		b->read_element = NO_ELEMENT;
	else
		b->read_element = m->element;
	b->read_core = in_phase && b->read_core != m->core ? SEVERAL_CORES : m->core;
	b->read = o->instr;
}

static void order_write(struct machine *m, struct checked_byte *b)
{
	struct checked_order *o = m->order;

	o->open |= (b->written >= m->phase && b->write_core != m->core) ||
		   (b->read >= m->phase && b->read_core != m->core) ||
		   (b->written == o->instr && b->write_element != m->element) ||
		   (b->read == o->instr && b->read_element != m->element);
	b->write_element = m->element;
	b->write_core = m->core;
	b->written = o->instr;
}

static void look_at_order(struct machine *m, struct checked_byte *b, uint32_t bytes, bool write)
{
	if (!m->order->accesses)
		m->order->given_up = true;
	else
		m->order->accesses--;
	for (; bytes; bytes--, b++) {
		if (write)
			order_write(m, b);
		else
			order_read(m, b);
	}
}

static void *not_allowed(struct machine *m, uint32_t v, uint64_t offset, uint32_t bytes,
			 uint64_t limit, const char *why)
{
	if (!m->failed)
		snprintf(m->fault, m->fault_bytes,
			 "%s: core %u opcode %u func %u view %u operand %x: %u bytes at %llu of %llu",
			 why, m->core, m->in->opcode, m->in->func, v, m->view[v].operand, bytes,
			 (unsigned long long)offset, (unsigned long long)limit);
	m->failed = true;
	return m->nowhere;
}

/* The only access to memory: @bytes at @offset of the memory that a view names. */
static void *reach(struct machine *m, uint32_t v, uint64_t offset, uint32_t bytes, bool write)
{
	const struct spyre_prog_header *h = m->prog->header;
	uint32_t operand = m->view[v].operand;
	uint64_t limit = h->lx_bytes;
	struct checked_byte *seen = NULL;
	uint8_t *base;

	if (operand < h->num_operands) {
		const struct spyre_prog_operand *op = &m->prog->operands[operand];

		if (!(op->flags & (write ? SPYRE_OPERAND_WRITE : SPYRE_OPERAND_READ)))
			return not_allowed(m, v, offset, bytes, op->flags, "access");
		limit = op->extent;
		base = m->operand[operand];
		seen = m->order ? m->order->operand[operand] : NULL;
	} else if (operand == SPYRE_VIEW_LX) {
		base = m->lx[m->core];
		seen = m->order ? m->order->lx[m->core] : NULL;
	} else {
		if (write || (operand & ~31u) != SPYRE_VIEW_RING || (operand & 31) >= h->num_cores)
			return not_allowed(m, v, offset, bytes, h->num_cores, "ring");
		base = m->lx[operand & 31];
		seen = m->order ? m->order->lx[operand & 31] : NULL;
	}
	if (offset > limit || limit - offset < bytes)
		return not_allowed(m, v, offset, bytes, limit, "range");
	if (seen)
		look_at_order(m, seen + offset, bytes, write);
	return base + offset;
}

/* Offset of a view in this iteration, for the dims in @dims that are not indirect. */
static uint64_t place(const struct machine *m, uint32_t v, uint32_t dims)
{
	bool indirect = v == (m->in->opcode == SPYRE_OP_GATHER) &&
			(m->in->opcode == SPYRE_OP_GATHER ||
			 m->in->opcode == SPYRE_OP_SCATTER);

	if (indirect)
		dims &= ~(uint32_t)m->in->reduce_mask;
	uint64_t offset = m->view[v].offset;
	uint32_t d;

	for (d = 0; d < SPYRE_MAX_LOOPS; d++)
		offset += m->iter[d] * m->view[v].loop_stride[d];
	for (d = 0; d < m->in->num_dims; d++)
		if (dims & 1u << d)
			offset += m->c[d] * m->view[v].stride[d];
	return offset;
}

/* Returns element @i of those at @offset. */
static float get(struct machine *m, uint32_t v, uint64_t offset, uint32_t i)
{
	uint32_t bits = spyre_fmt_bits(m->view[v].format);

	offset += (uint64_t)i * bits / 8;
	set_element(m, v, i);
	return reference_load(m->view[v].format, reach(m, v, offset, (bits + 7) / 8, false),
			      bits == 4 ? i % 2 : 0);
}

static void put(struct machine *m, uint64_t offset, uint32_t i, float x)
{
	uint32_t bits = spyre_fmt_bits(m->view->format);

	offset += (uint64_t)i * bits / 8;
	set_element(m, 0, i);
	reference_store(m->view->format, reach(m, 0, offset, (bits + 7) / 8, true),
			bits == 4 ? i % 2 : 0, x);
}

/* The same of integer functions. */
static int32_t integer_lane(struct machine *m, uint32_t v, uint32_t lane)
{
	uint32_t bits = spyre_fmt_bits(m->view[v].format);

	lane = m->view[v].lanes == SPYRE_LANES_SPLAT ? 0 : lane;
	set_element(m, v, lane);
	return reference_load_integer(m->view[v].format,
				      reach(m, v, place(m, v, ~0u) + (uint64_t)lane * bits / 8,
					    (bits + 7) / 8, false), bits == 4 ? lane % 2 : 0);
}

static void put_integer(struct machine *m, uint32_t lane, int32_t x)
{
	uint32_t bits = spyre_fmt_bits(m->view->format);

	set_element(m, 0, lane);
	reference_store_integer(m->view->format,
				reach(m, 0, place(m, 0, ~0u) + (uint64_t)lane * bits / 8,
				      (bits + 7) / 8, true), bits == 4 ? lane % 2 : 0, x);
}

static float lane_of(struct machine *m, uint32_t v, uint32_t lane)
{
	return get(m, v, place(m, v, ~0u), m->view[v].lanes == SPYRE_LANES_SPLAT ? 0 : lane);
}

/* Increments c[] over the dims in @dims; returns false after the last point. */
static bool next(struct machine *m, uint32_t dims)
{
	int d;

	if (ended(m))
		return false;
	m->point++;
	for (d = (int)m->in->num_dims - 1; d >= 0; d--) {
		if (!(dims & 1u << d))
			continue;
		if (++m->c[d] < m->in->count[d])
			return true;
		m->c[d] = 0;
	}
	return false;
}

/* Functions that are not IEEE operations use one element of the scalar unit. */
static float polynomial(const struct spyre_instr *in, const float *x)
{
	float r;
	struct spyre_sfu_run run = {
		.func = in->func, .lanes = 1, .points = 1, .imm = { in->imm[0], in->imm[1] },
		.v = {
			{ .p = (uint8_t *)&r, .format = SPYRE_FMT_SCRATCH_FP32 },
			{ .p = (uint8_t *)x, .format = SPYRE_FMT_SCRATCH_FP32 },
			{ .p = (uint8_t *)(x + 1), .format = SPYRE_FMT_SCRATCH_FP32 },
		},
	};

	spyre_unit_find("scalar")->sfu(&run);
	return r;
}

static bool is_polynomial(uint32_t func)
{
	return func == SPYRE_FUNC_EXP || func == SPYRE_FUNC_LOG ||
	       (func >= SPYRE_FUNC_TANH && func <= SPYRE_FUNC_GELU) ||
	       func == SPYRE_FUNC_SOFTPLUS || func == SPYRE_FUNC_MISH ||
	       (func >= SPYRE_FUNC_SIN && func <= SPYRE_FUNC_ERF) || func == SPYRE_FUNC_POW;
}

static uint32_t coordinate(const struct machine *m)
{
	uint32_t at = 0, fall = 0, d;

	for (d = 0; d < m->in->num_dims; d++)
		if (m->in->reduce_mask & 1u << d)
			at = at * m->in->count[d] + m->c[d];
		else if (m->in->imm[2] & 1u << d)
			fall = fall * m->in->count[d] + m->c[d];
	return m->in->imm[1] + at * m->in->lanes - fall;
}

static void do_sfu(struct machine *m)
{
	float r[SPYRE_MAX_LANES];
	uint32_t lane, v;

	do {
		for (lane = 0; lane < m->in->lanes; lane++) {
			float x[SPYRE_MAX_VIEWS - 1] = { 0 };

			for (v = 1; v < m->in->num_views; v++)
				x[v - 1] = lane_of(m, v, lane);
			r[lane] = is_polynomial(m->in->func) ? polynomial(m->in, x) :
				  reference_apply(m->in->func, m->in->imm, coordinate(m) + lane, x);
		}
		for (lane = 0; lane < m->in->lanes; lane++)
			put(m, place(m, 0, ~0u), lane, r[lane]);
	} while (next(m, ~0u));
}

static void do_integers(struct machine *m)
{
	int32_t r[SPYRE_MAX_LANES];
	uint32_t lane, v;

	do {
		for (lane = 0; lane < m->in->lanes; lane++) {
			/* Immediates take the place of inputs. */
			int32_t x[3] = { 0, (int32_t)m->in->imm[0], (int32_t)m->in->imm[1] };

			for (v = 1; v < m->in->num_views; v++)
				x[v - 1] = integer_lane(m, v, lane);
			r[lane] = reference_apply_integer(m->in->func, x);
		}
		for (lane = 0; lane < m->in->lanes; lane++)
			put_integer(m, lane, r[lane]);
	} while (next(m, ~0u));
}

static void reduce_integers(struct machine *m, int32_t *acc)
{
	const struct spyre_instr *in = m->in;
	uint64_t seen = 0;
	uint32_t lane;

	for (lane = 0; lane < SPYRE_MAX_LANES; lane++)
		acc[lane] = reference_first_integer(in->func);
	do {
		for (lane = 0; lane < in->lanes; lane++, seen++) {
			int32_t x = integer_lane(m, 1, lane);

			if (!in->valid || seen < in->valid)
				acc[lane] = reference_combine_integer(in->func, acc[lane], x);
		}
	} while (next(m, in->reduce_mask));
	if (!(in->flags & SPYRE_INSTR_REDUCE_LANES))
		return;
	for (lane = 1; lane < SPYRE_MAX_LANES; lane++)
		acc[0] = reference_combine_integer(in->func, acc[0], acc[lane]);
	for (lane = 1; lane < SPYRE_MAX_LANES; lane++)
		acc[lane] = acc[0];
}

static void do_integer_reduce(struct machine *m)
{
	int32_t acc[SPYRE_MAX_LANES];
	uint32_t lane;

	do {
		reduce_integers(m, acc);
		for (lane = 0; lane < m->in->lanes; lane++)
			put_integer(m, lane, acc[lane]);
	} while (next(m, ~(uint32_t)m->in->reduce_mask));
}

static void reduce_point(struct machine *m, float *acc, bool square)
{
	const struct spyre_instr *in = m->in;
	uint64_t seen = 0;
	uint32_t lane;

	for (lane = 0; lane < SPYRE_MAX_LANES; lane++)
		acc[lane] = reference_first(in->func);
	do {
		for (lane = 0; lane < in->lanes; lane++, seen++) {
			float x = lane_of(m, 1, lane);
			float y = in->num_views > 2 ? lane_of(m, 2, lane) : 0;

			if (!in->valid || seen < in->valid)
				acc[lane] = reference_combine(in->func, acc[lane], x, y, square);
		}
	} while (next(m, in->reduce_mask));
	if (in->flags & SPYRE_INSTR_REDUCE_LANES)
		reference_across(in->func, acc);
}

static void do_reduce(struct machine *m)
{
	float acc[SPYRE_MAX_LANES], squares[SPYRE_MAX_LANES], factor;
	uint32_t lane;

	if (spyre_func_integer(m->in->func)) {
		do_integer_reduce(m);
		return;
	}
	memcpy(&factor, m->in->imm, 4);
	do {
		reduce_point(m, acc, false);
		reduce_point(m, squares, true);
		reference_finish(m->in->func, factor, acc, squares);
		for (lane = 0; lane < m->in->lanes; lane++)
			put(m, place(m, 0, ~0u), lane, acc[lane]);
	} while (next(m, ~(uint32_t)m->in->reduce_mask));
}

struct found {
	float x;
	uint32_t at;
};

/* Ascending, NaN last, equal numbers by place. */
static int ascending(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (isnan(x->x) != isnan(y->x))
		return isnan(x->x) ? 1 : -1;
	if (!isnan(x->x) && x->x != y->x)
		return x->x < y->x ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

/* The reverse order, but equal numbers still by place. */
static int descending(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	bool equal = isnan(x->x) ? isnan(y->x) : x->x == y->x;

	return equal ? ascending(a, b) : ascending(b, a);
}

static void do_topk(struct machine *m)
{
	const struct spyre_instr *in = m->in;
	struct found *found;
	uint64_t size = in->lanes, n;
	uint32_t d, lane;

	for (d = 0; d < in->num_dims; d++)
		size *= in->reduce_mask & 1u << d ? in->count[d] : 1;
	found = calloc(size, sizeof(*found));
	do {
		n = 0;
		do {
			for (lane = 0; lane < in->lanes; lane++, n++)
				found[n] = (struct found){ lane_of(m, 1, lane), n };
		} while (next(m, in->reduce_mask));
		n = in->valid ? in->valid : n;
		qsort(found, n, sizeof(*found),
		      in->flags & SPYRE_INSTR_SMALLEST ? ascending : descending);
		for (lane = 0; lane < in->lanes; lane++) {
			uint64_t rank = (uint64_t)in->imm[0] + lane;
			float x = 0;

			if (lane < in->imm[1] && rank < n)
				x = in->func == SPYRE_FUNC_TOPK_VALUE ? found[rank].x :
				    (float)(found[rank].at + in->imm[2]);
			put(m, place(m, 0, ~0u), lane, x);
		}
	} while (next(m, ~(uint32_t)in->reduce_mask));
	free(found);
}

#define BATCH 7u

/* A: sticks of K; a 4-bit one is [K 16, rows 2, K 8] of two rows. */
static float element_a(struct machine *m, uint32_t k)
{
	const struct spyre_view *a = &m->view[1];
	uint32_t depth = 1024 / spyre_fmt_bits(a->format), row = m->c[3], i;

	if (a->format != SPYRE_FMT_SENINT4)
		return get(m, 1, place(m, 1, BATCH | 8) + k / depth * a->stride[5], k % depth);
	i = k % 128 / 16 * 32 + row % 2 * 16 + k % 16;
	return get(m, 1, place(m, 1, BATCH) + row / 2 * a->stride[3] + k / 128 * a->stride[5], i);
}

/* B: groups of interleaved rows of K. */
static float element_b(struct machine *m, uint32_t k, uint32_t column)
{
	const struct spyre_view *b = &m->view[2];
	uint32_t bits = spyre_fmt_bits(b->format);
	uint32_t p = bits == 4 ? 4 : bits == 8 ? 2 : 1;

	return get(m, 2, place(m, 2, BATCH | 16) + k / p * b->stride[5], column * p + k % p);
}

static void integer_product(struct machine *m, const float *a, uint32_t column)
{
	uint64_t out = place(m, 0, ~0u);
	uint32_t k, sum = 0;

	set_element(m, 0, column);
	if (m->in->flags & SPYRE_INSTR_ACCUMULATE)
		sum = (uint32_t)get_le(reach(m, 0, out + column * 4, 4, false), 4);
	for (k = 0; k < m->in->count[5]; k++)
		sum += (uint32_t)((int)a[k] * (int)element_b(m, k, column));
	set_element(m, 0, column);
	if (m->view->format == SPYRE_FMT_IEEE_INT32)
		put_le(reach(m, 0, out + column * 4, 4, true), sum, 4);
	else
		put(m, out, column, (float)(int32_t)sum);
}

static void do_pt(struct machine *m)
{
	bool integer = m->view[1].format == SPYRE_FMT_SENINT4 ||
		       m->view[1].format == SPYRE_FMT_SENINT8;
	float *a = calloc(m->in->count[5], sizeof(*a));
	uint32_t column, k;

	do {
		for (k = 0; k < m->in->count[5]; k++)
			a[k] = element_a(m, k);
		for (column = 0; column < m->in->lanes; column++) {
			float sum = 0;

			if (integer) {
				integer_product(m, a, column);
				continue;
			}
			if (m->in->flags & SPYRE_INSTR_ACCUMULATE)
				sum = get(m, 0, place(m, 0, ~0u), column);
			for (k = 0; k < m->in->count[5]; k++)
				sum = fmaf(a[k], element_b(m, k, column), sum);
			put(m, place(m, 0, ~0u), column, sum);
		}
	} while (next(m, 0x1f));
	free(a);
}

static void do_move(struct machine *m)
{
	uint32_t bytes = spyre_fmt_bytes(m->view->format), lane;

	do {
		for (lane = 0; lane < m->in->lanes; lane++) {
			const void *from;

			set_element(m, 1, lane);
			from = reach(m, 1, place(m, 1, ~0u) + lane * bytes, bytes, false);
			set_element(m, 0, lane);
			memmove(reach(m, 0, place(m, 0, ~0u) + lane * bytes, bytes, true), from,
				bytes);
		}
	} while (next(m, ~0u));
}

/* Adds the indices of this point, times their strides, to the offset of view @v. */
static uint64_t indirect_place(struct machine *m, uint32_t v)
{
	uint64_t offset = place(m, v, ~0u);
	uint32_t d, index, k = 0;

	for (d = 0; d < m->in->num_dims && !ended(m); d++) {
		if (!(m->in->reduce_mask & 1u << d))
			continue;
		m->element = NO_ELEMENT;
		index = (uint32_t)get_le(reach(m, 2 + k, place(m, 2 + k, ~0u), 4, false), 4);
		if (index >= m->in->imm[k] && !ended(m)) {
			snprintf(m->fault, m->fault_bytes,
				 "index %u of core %u is %u, its extent %u", k, m->core, index,
				 m->in->imm[k]);
			m->failed = true;
			m->index = true;
		}
		offset += index * m->view[v].stride[d];
		k++;
	}
	return offset;
}

static void do_indirect(struct machine *m)
{
	uint32_t bytes = spyre_fmt_bytes(m->view->format), lane;
	bool gather = m->in->opcode == SPYRE_OP_GATHER;

	do {
		uint64_t at = indirect_place(m, gather), from, to;

		from = gather ? at : place(m, 1, ~0u);
		to = gather ? place(m, 0, ~0u) : at;
		for (lane = 0; lane < m->in->lanes && !ended(m); lane++) {
			const void *p;

			set_element(m, 1, lane);
			p = reach(m, 1, from + lane * bytes, bytes, false);
			set_element(m, 0, lane);
			memmove(reach(m, 0, to + lane * bytes, bytes, true), p, bytes);
		}
	} while (next(m, ~0u));
}

static void do_restick(struct machine *m)
{
	uint32_t bytes = spyre_fmt_bytes(m->view->format), i, j;

	do {
		uint64_t out = place(m, 0, 15), from = place(m, 1, 15);

		for (i = 0; i < m->in->count[4]; i++)
			for (j = 0; j < m->in->count[5]; j++) {
				const void *p;

				m->element = NO_ELEMENT;
				p = reach(m, 1, from + i * m->view[1].stride[4] + j * bytes,
					  bytes, false);
				/* Each output has its own number, which no input has. */
				m->element = (m->point * 128 + i) * 128 + j;
				memcpy(reach(m, 0, out + j * m->view[0].stride[5] + i * bytes,
					     bytes, true), p, bytes);
			}
	} while (next(m, 15));
}

static void do_instr(struct machine *m, const struct spyre_instr *in, uint32_t core)
{
	m->in = in;
	m->view = spyre_instr_views(in);
	m->core = core;
	m->point = 0;
	if (m->order)
		m->order->instr++;
	memset(m->c, 0, sizeof(m->c));
	switch (in->opcode) {
	case SPYRE_OP_MOVE: do_move(m); break;
	case SPYRE_OP_SFU: do_sfu(m); break;
	case SPYRE_OP_INT: do_integers(m); break;
	case SPYRE_OP_REDUCE: do_reduce(m); break;
	case SPYRE_OP_PT: do_pt(m); break;
	case SPYRE_OP_TOPK: do_topk(m); break;
	case SPYRE_OP_GATHER: case SPYRE_OP_SCATTER: do_indirect(m); break;
	default: do_restick(m);
	}
}

static void do_phase(struct machine *m, const struct spyre_prog_step *step)
{
	uint32_t s, n;

	m->phase = m->order ? m->order->instr + 1 : 0;
	for (s = 0; s < step->num_streams; s++) {
		const struct spyre_prog_stream *stream =
			&m->prog->streams[step->first_stream + s];
		const struct spyre_instr *in = (const void *)(m->prog->instrs + stream->offset);

		for (n = 0; n < stream->num_instrs && !ended(m); n++, in = spyre_instr_next(in))
			do_instr(m, in, stream->core);
	}
}

/* Runs the steps from @i to the end of their loop; returns the end's index. */
static uint32_t do_steps(struct machine *m, uint32_t i, uint32_t level)
{
	uint32_t end = i;

	for (; i < m->prog->header->num_steps && !ended(m); i++) {
		const struct spyre_prog_step *step = &m->prog->steps[i];

		if (step->kind == SPYRE_STEP_END)
			return i;
		if (step->kind == SPYRE_STEP_PHASE) {
			do_phase(m, step);
			continue;
		}
		for (m->iter[level] = 0; m->iter[level] < step->count && !ended(m);
		     m->iter[level]++)
			end = do_steps(m, i + 1, level + 1);
		m->iter[level] = 0;
		i = end;
	}
	return i;
}

bool checked_exec(const struct spyre_program *prog, uint8_t *const *operand, uint8_t *const *lx,
		  char *fault, size_t fault_bytes)
{
	return checked_exec_ordered(prog, operand, lx, NULL, fault, fault_bytes);
}

bool checked_exec_ordered(const struct spyre_program *prog, uint8_t *const *operand,
			  uint8_t *const *lx, struct checked_order *order, char *fault,
			  size_t fault_bytes)
{
	struct machine m = {
		.prog = prog, .operand = operand, .lx = lx, .order = order,
		.fault = fault, .fault_bytes = fault_bytes,
	};
	uint32_t c;

	for (c = 0; prog->header->lx_bytes && c < prog->header->num_cores; c++)
		memset(lx[c] + prog->header->lx_kept, 0,
		       prog->header->lx_bytes - prog->header->lx_kept);
	do_steps(&m, 0, 0);
	if (order)
		order->index = m.index;
	return !m.failed;
}
