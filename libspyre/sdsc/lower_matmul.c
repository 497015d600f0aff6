// SPDX-License-Identifier: MIT
/*
 * batchmatmul: PT instructions. A has K in its lanes, B and C have N; every
 * other dim is rows (B does not vary along it) or batch.
 */
#include <inttypes.h>
#include <string.h>

#include "libspyre/sdsc/lower.h"

#define STICK 64u		/* elements; the PT works on 16-bit formats */
#define MAX_BATCH 3u
#define MAX_UNROLL 4096u

enum { C, A, B };

struct dim {
	uint64_t count;
	uint64_t stride[3];
};

struct matmul {
	const struct ir_tensor *tensor[3];
	uint32_t index[3];
	uint32_t k, n;		/* dims */
	struct dim rows;
	uint32_t num_batch;
	struct dim batch[IR_MAX_DIMS];
};

static spyre_status find_k(struct lower *l, struct matmul *m)
{
	uint32_t found = 0;

	for (uint32_t d = 0; d < l->sdsc->num_dims; d++)
		if (!lower_varies(m->tensor[C], d)) {
			m->k = d;
			found++;
		}
	if (found != 1)
		return lower_unsupported(l, "%u dimensions are not in the output, there must be one to sum over",
					 found);
	return SPYRE_SUCCESS;
}

static spyre_status find_roles(struct lower *l, struct matmul *m)
{
	const struct ir_sdsc *s = l->sdsc;
	spyre_status status;

	m->index[C] = s->output;
	m->tensor[C] = &s->tensor[s->output];
	m->n = m->tensor[C]->stick;
	status = find_k(l, m);
	if (status != SPYRE_SUCCESS)
		return status;
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t role = s->tensor[s->input[i]].stick == m->k ? A : B;

		m->index[role] = s->input[i];
		m->tensor[role] = &s->tensor[s->input[i]];
	}
	if (!m->tensor[A] || !m->tensor[B] || m->tensor[B]->stick != m->n ||
	    !lower_varies(m->tensor[A], m->k) || !lower_varies(m->tensor[B], m->k) ||
	    !lower_varies(m->tensor[B], m->n) || lower_varies(m->tensor[A], m->n))
		return lower_unsupported(l, "one input must have its sticks along %s, the other and the output along %s",
					 s->dim[m->k], s->dim[m->n]);
	for (uint32_t i = 0; i < 3; i++)
		if (m->tensor[i]->lanes != STICK || m->tensor[i]->format == SPYRE_FMT_SENINT16)
			return lower_unsupported(l, "Tensor%u is %s, the PT works on SEN169_FP16, IEEE_FP16 and BFLOAT16",
						 m->index[i],
					 spyre_format_name(
						 (spyre_format)m->tensor[i]->format));
	return SPYRE_SUCCESS;
}

/* Joins dims that all operands walk as one. */
static void join(struct dim *dim, uint32_t *num)
{
	for (uint32_t i = 0; i < *num; i++)
		for (uint32_t k = 0; k < *num; k++) {
			const struct dim *inner = &dim[k];
			bool same = i != k;

			for (uint32_t v = 0; v < 3; v++)
				same = same && dim[i].stride[v] == inner->stride[v] * inner->count;
			if (!same)
				continue;
			dim[k].count *= dim[i].count;
			memmove(&dim[i], &dim[i + 1], (--*num - i) * sizeof(*dim));
			i = k = 0;
		}
}

/* Largest first: it becomes the rows. */
static void largest_first(struct dim *dim, uint32_t num)
{
	for (uint32_t i = 1; i < num; i++)
		if (dim[i].count > dim[0].count) {
			struct dim swap = dim[0];

			dim[0] = dim[i];
			dim[i] = swap;
		}
}

/* @out: the result's tensor, the output or an fp32 tile. */
static void collect(const struct ir_sdsc *s, struct matmul *m, const struct ir_tensor *out)
{
	const struct ir_tensor *tensor[3] = { out, m->tensor[A], m->tensor[B] };
	struct dim rows[IR_MAX_DIMS];
	uint32_t num_rows = 0;

	m->num_batch = 0;
	m->rows = (struct dim){ .count = 1 };
	for (uint32_t d = 0; d < s->num_dims; d++) {
		struct dim dim = { .count = (uint64_t)s->el[d] };

		if (d == m->k || d == m->n || dim.count == 1)
			continue;
		for (uint32_t i = 0; i < 3; i++)
			dim.stride[i] = tensor[i]->stride[d];
		if (lower_varies(m->tensor[B], d))
			m->batch[m->num_batch++] = dim;
		else
			rows[num_rows++] = dim;
	}
	join(rows, &num_rows);
	largest_first(rows, num_rows);
	if (num_rows)
		m->rows = rows[0];
	for (uint32_t i = 1; i < num_rows; i++)
		m->batch[m->num_batch++] = rows[i];
	join(m->batch, &m->num_batch);
}

struct pt {
	struct spyre_instr in;
	struct spyre_view view[3];
	uint32_t budget;
};

static void advance(struct pt *pt, const struct dim *dim, uint64_t steps)
{
	for (uint32_t i = 0; i < 3; i++)
		pt->view[i].offset += steps * dim->stride[i];
}

static spyre_status write_rows(struct lower *l, const struct matmul *m, struct pt *pt)
{
	uint64_t left = m->rows.count;
	spyre_status status = SPYRE_SUCCESS;
	struct pt part = *pt;

	for (uint32_t i = 0; i < 3; i++)
		part.view[i].stride[3] = left > 1 ? m->rows.stride[i] : 0;
	while (left && status == SPYRE_SUCCESS) {
		uint64_t count = left > SPYRE_MAX_COUNT ? 65472 : left;

		if (!pt->budget--)
			return lower_unsupported(l, "the loops need more than %u instructions",
						 MAX_UNROLL);
		part.in.count[3] = (uint32_t)count;
		status = encoder_instr(l->encoder, &part.in, part.view);
		advance(&part, &m->rows, count);
		left -= count;
	}
	return status;
}

/* Batch dims beyond the third are one instruction per point. */
static spyre_status write_batch(struct lower *l, const struct matmul *m, struct pt *pt,
				uint32_t next)
{
	spyre_status status = SPYRE_SUCCESS;
	struct pt part = *pt;

	if (m->num_batch - next <= MAX_BATCH) {
		for (uint32_t i = next; i < m->num_batch; i++) {
			if (m->batch[i].count > SPYRE_MAX_COUNT)
				return lower_unsupported(l, "a batch of %" PRIu64,
							 m->batch[i].count);
			part.in.count[i - next] = (uint32_t)m->batch[i].count;
			for (uint32_t v = 0; v < 3; v++)
				part.view[v].stride[i - next] = m->batch[i].stride[v];
		}
		status = write_rows(l, m, &part);
		pt->budget = part.budget;
		return status;
	}
	for (uint64_t i = 0; i < m->batch[next].count && status == SPYRE_SUCCESS; i++) {
		status = write_batch(l, m, &part, next + 1);
		advance(&part, &m->batch[next], 1);
	}
	pt->budget = part.budget;
	return status;
}

static spyre_status emit_core(struct lower *l, struct matmul *m, const struct partial *p,
			      uint32_t core)
{
	const struct ir_sdsc *s = l->sdsc;
	bool tile = partial_core(p, s, core);
	const struct ir_tensor *out = tile ? &p->tile : m->tensor[C];
	struct pt pt = { .in = { .opcode = SPYRE_OP_PT, .num_dims = 6, .num_views = 3,
				 .lanes = STICK, .count = { 1, 1, 1, 1, 1, 1 } },
			 .budget = MAX_UNROLL };
	spyre_status status;

	collect(s, m, out);
	pt.in.count[4] = (uint32_t)(s->el[m->n] / STICK);
	pt.in.count[5] = (uint32_t)s->el[m->k];
	lower_view(&pt.view[C], out, tile ? &p->tile_address : &l->address[m->index[C]][core]);
	lower_view(&pt.view[A], m->tensor[A], &l->address[m->index[A]][core]);
	lower_view(&pt.view[B], m->tensor[B], &l->address[m->index[B]][core]);
	pt.view[C].stride[4] = out->stride[m->n];
	pt.view[A].stride[5] = m->tensor[A]->stride[m->k];
	pt.view[B].stride[4] = m->tensor[B]->stride[m->n];
	pt.view[B].stride[5] = m->tensor[B]->stride[m->k];
	status = encoder_stream(l->encoder, s->core[core]);
	return status == SPYRE_SUCCESS ? write_batch(l, m, &pt, 0) : status;
}

spyre_status lower_matmul(struct lower *l, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	struct matmul m = { 0 };
	struct partial partial;
	spyre_status status;

	status = find_roles(l, &m);
	if (status != SPYRE_SUCCESS)
		return status;
	if (s->el[m.k] % STICK || s->el[m.n] % STICK || s->el[m.k] > SPYRE_MAX_COUNT ||
	    s->el[m.n] / STICK > SPYRE_MAX_COUNT)
		return lower_unsupported(l, "a core's share is %s %" PRId64 " and %s %" PRId64 "; both must be multiples of %u, K at most 65472",
					 s->dim[m.k], s->el[m.k], s->dim[m.n], s->el[m.n], STICK);
	status = partial_plan(l, 0, &partial);
	for (uint32_t c = 0; c < s->num_cores && status == SPYRE_SUCCESS; c++)
		status = emit_core(l, &m, &partial, c);
	if (status != SPYRE_SUCCESS || !partial.active)
		return status;
	return partial_combine(l, &partial, SPYRE_FUNC_SUM, 0);
}
