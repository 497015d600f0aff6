// SPDX-License-Identifier: MIT
/* PT instructions for a box of a product: see matmul_pt.h. */
#include "libspyre/sdsc/lower/lower_matmul.h"

#include <inttypes.h>
#include <string.h>

#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/lower/matmul_pt.h"

#define C MATMUL_C
#define A MATMUL_A
#define B MATMUL_B

#define MAX_BATCH 3u
#define MAX_UNROLL 4096u	/* instructions for batches beyond three dims */

struct dim {
	uint64_t count;
	uint64_t stride[3];
};

struct pt {
	const struct ir_tensor *tensor[3];
	struct spyre_instr in;
	struct spyre_view view[3];
	struct dim rows;
	uint64_t most_rows;		/* limit of one instruction */
	uint32_t num_batch;
	struct dim batch[IR_MAX_DIMS + 1];
	uint32_t budget;
};

int64_t matmul_max_k(const struct matmul *m)
{
	uint32_t depth = spyre_pt_depth(m->tensor[A]->format);

	return SPYRE_MAX_COUNT / depth * depth;
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

/* Moves the largest dim to the front, where it becomes the rows. */
static void largest_first(struct dim *dim, uint32_t num)
{
	for (uint32_t i = 1; i < num; i++)
		if (dim[i].count > dim[0].count) {
			struct dim swap = dim[0];

			dim[0] = dim[i];
			dim[i] = swap;
		}
}

/* Collects dims: one that B lacks becomes the rows, all others become batches. */
static void collect(const struct lower *l, const struct matmul *m, const struct box *box,
		    struct pt *pt)
{
	struct dim rows[IR_MAX_DIMS];
	uint32_t num_rows = 0;

	for (uint32_t d = 0; d < l->sdsc->num_dims; d++) {
		struct dim dim = { .count = (uint64_t)box->len[d] };

		if (d == m->k || d == m->n || (dim.count == 1 && !(m->paired && d == m->rows)))
			continue;
		for (uint32_t i = 0; i < 3; i++)
			dim.stride[i] = pt->tensor[i]->stride[d];
		if (m->paired && d == m->rows) {
			dim.count += dim.count & 1;
			pt->rows = dim;
		} else if (lower_varies(m->tensor[B], d) || m->paired) {
			pt->batch[pt->num_batch++] = dim;
		} else {
			rows[num_rows++] = dim;
		}
	}
	join(rows, &num_rows);
	largest_first(rows, num_rows);
	if (num_rows)
		pt->rows = rows[0];
	for (uint32_t i = 1; i < num_rows; i++)
		pt->batch[pt->num_batch++] = rows[i];
	join(pt->batch, &pt->num_batch);
}

static void advance(struct pt *pt, const struct dim *dim, uint64_t steps)
{
	for (uint32_t i = 0; i < 3; i++)
		pt->view[i].offset += steps * dim->stride[i];
}

static spyre_status write_rows(struct lower *l, struct pt *pt)
{
	uint64_t left = pt->rows.count, step = pt->rows.stride[A];
	struct pt part = *pt;
	spyre_status status = SPYRE_SUCCESS;

	part.view[C].stride[3] = pt->rows.stride[C];
	part.view[A].stride[3] = step;
	while (left && !status) {
		uint64_t count = left < pt->most_rows ? left : pt->most_rows;

		if (!pt->budget--)
			return lower_unsupported(l, "the batch needs more than %u instructions",
						 MAX_UNROLL);
		part.in.count[3] = (uint32_t)count;
		status = encoder_instr(l->encoder, &part.in, part.view);
		part.view[C].offset += count * pt->rows.stride[C];
		/* Counts of paired rows are even, and @step is the stride of a pair. */
		part.view[A].offset += count * step /
				       (pt->tensor[A]->format == SPYRE_FMT_SENINT4 ? 2 : 1);
		left -= count;
	}
	return status;
}

/* Writes batch dims beyond the third as one instruction per point. */
static spyre_status write_batch(struct lower *l, struct pt *pt, uint32_t next)
{
	spyre_status status = SPYRE_SUCCESS;
	struct pt part = *pt;

	if (pt->num_batch - next <= MAX_BATCH) {
		for (uint32_t i = next; i < pt->num_batch; i++) {
			if (pt->batch[i].count > SPYRE_MAX_COUNT)
				return lower_unsupported(l, "a batch of %" PRIu64,
							 pt->batch[i].count);
			part.in.count[i - next] = (uint32_t)pt->batch[i].count;
			for (uint32_t v = 0; v < 3; v++)
				part.view[v].stride[i - next] = pt->batch[i].stride[v];
		}
		status = write_rows(l, &part);
		pt->budget = part.budget;
		return status;
	}
	for (uint64_t i = 0; i < pt->batch[next].count && !status; i++) {
		status = write_batch(l, &part, next + 1);
		advance(&part, &pt->batch[next], 1);
	}
	pt->budget = part.budget;
	return status;
}

/* Writes @count columns from the start of the views, a multiple of both sticks. */
static spyre_status write_columns(struct lower *l, const struct matmul *m, const struct pt *model,
				  uint64_t count)
{
	uint64_t wide = ir_unit(model->tensor[B], m->n), own = ir_unit(model->tensor[C], m->n);
	uint64_t lanes = wide < own ? wide : own;
	struct pt pt = *model;

	wide = wide > own ? wide : own;
	if (lanes > 64 || wide > 64)
		lanes = wide = 64;	/* a tile's stick may be wider */
	pt.in.lanes = (uint32_t)lanes;
	if (lanes == wide || count < wide) {
		pt.in.count[4] = (uint32_t)(count / lanes);
	} else {
		/* The columns are the parts of a wide stick; the wide sticks become a batch. */
		struct dim *sticks = &pt.batch[pt.num_batch++];

		pt.in.count[4] = (uint32_t)(wide / lanes);
		*sticks = (struct dim){ .count = count / wide };
		sticks->stride[C] = ir_bits(pt.tensor[C], m->n, wide) / 8;
		sticks->stride[B] = ir_bits(pt.tensor[B], m->n, wide) / 8;
		if (sticks->count == 1)
			pt.num_batch--;
	}
	if (count / lanes > SPYRE_MAX_COUNT)
		return lower_unsupported(l, "%" PRIu64 " columns of a core", count);
	pt.view[C].stride[4] = ir_bits(pt.tensor[C], m->n, lanes) / 8;
	pt.view[B].stride[4] = ir_bits(pt.tensor[B], m->n, lanes) / 8;
	return write_batch(l, &pt, 0);
}

static spyre_status write_k(struct lower *l, const struct matmul *m, const struct pt *model,
			    const struct box *box, uint64_t from)
{
	uint64_t columns = (uint64_t)box->len[m->n], whole = columns / 64 * 64;
	struct pt pt = *model;
	spyre_status status = SPYRE_SUCCESS;

	pt.view[A].offset += ir_bits(pt.tensor[A], m->k, from) / 8;
	pt.view[B].offset += ir_bits(pt.tensor[B], m->k, from) / 8;
	if (whole)
		status = write_columns(l, m, &pt, whole);
	if (status || whole == columns)
		return status;
	pt.view[C].offset += ir_bits(pt.tensor[C], m->n, whole) / 8;
	pt.view[B].offset += ir_bits(pt.tensor[B], m->n, whole) / 8;
	return write_columns(l, m, &pt, columns - whole);
}

spyre_status matmul_emit(struct lower *l, const struct matmul *m, const struct box *box,
			 const struct stage_operand *c, bool accumulate)
{
	struct stage_operand o[3] = { *c, tensor_operand(l, m->index[A], m->core),
				      tensor_operand(l, m->index[B], m->core) };
	struct pt pt = { .in = { .opcode = SPYRE_OP_PT, .num_dims = 6, .num_views = 3,
				 .count = { 1, 1, 1, 1, 1, 1 } },
			 .rows = { .count = 1 }, .most_rows = SPYRE_MAX_COUNT - m->paired,
			 .budget = MAX_UNROLL };
	const struct ir_tensor *b = m->tensor[B];
	int64_t most = matmul_max_k(m);
	spyre_status status = SPYRE_SUCCESS;

	for (uint32_t i = 0; i < 3; i++) {
		pt.tensor[i] = o[i].tensor;
		lower_view(&pt.view[i], o[i].tensor, &o[i].at);
		for (uint32_t d = 0; d < l->sdsc->num_dims && !o[i].tile; d++)
			pt.view[i].offset += ir_bits(o[i].tensor, d, (uint64_t)box->start[d]) / 8;
	}
	collect(l, m, box, &pt);
	pt.view[A].stride[5] = m->tensor[A]->stride[m->k];
	pt.view[B].stride[5] = b->stride[m->k];
	for (int64_t k = 0; k < box->len[m->k] && !status; k += most) {
		int64_t left = box->len[m->k] - k;

		pt.in.count[5] = (uint32_t)(left < most ? left : most);
		pt.in.flags = accumulate || k ? SPYRE_INSTR_ACCUMULATE : 0;
		status = write_k(l, m, &pt, box, (uint64_t)k);
	}
	return status;
}
