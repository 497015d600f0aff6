// SPDX-License-Identifier: MIT
/*
 * Indirect access: before an operation, the rows of tables that it reads are gathered into
 * tiles in LX; rows of its output are scattered from a tile after it. An identity moves rows
 * without tiles. Rows that do not fit LX are moved in parts.
 */
#include "libspyre/sdsc/lower/lower_indirect.h"

#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/lower/lower_convert.h"
#include "libspyre/sdsc/lower/operations.h"
#include "libspyre/sdsc/lower/stage.h"
#include "libspyre/sdsc/lower/written.h"

struct indirect {
	lower_rule_fn *rule;
	enum spyre_func func;
	uint32_t read, written;		/* tables (bits) */
	/* The part whose tables are tiles. */
	struct lower inner;
	struct ir_sdsc part;
};

/*
 * Finds the end of a table in its operand. An intermediate has the size with which it was
 * written; 0: an argument, whose size a launch tells.
 */
static spyre_status find_end(struct lower *l, uint32_t tensor, uint32_t core, uint64_t *end)
{
	const struct address *at = l->address[tensor];
	const struct spyre_bundle_operand *kind = &l->encoder->kind[at[core].operand];
	uint64_t start = at[core].offset;

	*end = 0;
	if (kind->kind == SPYRE_OPERAND_ARG)
		return SPYRE_SUCCESS;
	for (uint32_t c = 0; c < l->sdsc->num_cores; c++)
		if (at[c].operand == at[core].operand && at[c].offset < start)
			start = at[c].offset;
	TRY(written_table(l->written, l, tensor, at[core].operand, start, end));
	if (!*end && kind->arg)
		*end = l->bundle->mem[kind->arg - 1].bytes;
	if (!*end)
		return lower_unsupported(l, "Tensor%u is a table in the pool that no earlier SDSC writes, so that its number of rows is unknown",
					 tensor);
	return SPYRE_SUCCESS;
}

bool indirect_is_index(const struct ir_sdsc *s, uint32_t tensor)
{
	for (uint32_t i = 0; i < s->num_tensors; i++)
		if (s->tensor[i].indexed && s->tensor[i].index == tensor)
			return true;
	return false;
}

/* Adds the rows that the file states; those of single elements as the sticks that hold them. */
static void add_stated(const struct ir_tensor *t, struct overlap_box *box)
{
	uint64_t bytes = (t->rows - 1) * t->row;
	bool elements = t->row < SPYRE_STICK_BYTES;

	if (!bytes)
		return;
	box->dim[box->num_dims].stride = elements ? SPYRE_STICK_BYTES : t->row;
	box->dim[box->num_dims++].last = elements ? bytes / SPYRE_STICK_BYTES : t->rows - 1;
}

spyre_status indirect_rows(struct lower *l, uint32_t table, uint32_t core,
			   struct overlap_box *box)
{
	const struct encoder *e = l->encoder;
	uint64_t row = l->sdsc->tensor[table].row, end, reach, more;

	overlap_box(l, table, core, box);
	if (l->sdsc->tensor[table].rows) {
		add_stated(&l->sdsc->tensor[table], box);
		return SPYRE_SUCCESS;
	}
	TRY(find_end(l, table, core, &end));
	if (!end || end > SPYRE_MAX_EXTENT)
		end = SPYRE_MAX_EXTENT;
	reach = box->at.offset + lower_box_bytes(l->sdsc, &l->sdsc->tensor[table]);
	for (uint32_t i = 0; i < e->depth && reach < end; i++)
		if (__builtin_mul_overflow(e->iters[i] - 1, box->at.per_iter[i], &more) ||
		    __builtin_add_overflow(reach, more, &reach))
			reach = end;
	if (!row || reach >= end)	/* one row, or none, which the encoder refuses */
		return SPYRE_SUCCESS;
	box->dim[box->num_dims].stride = row;
	box->dim[box->num_dims++].last = (end - reach) / row;
	return SPYRE_SUCCESS;
}

/* Gathers rows of a table to @dense, or scatters them from there. */
static spyre_status move_rows(struct lower *l, enum spyre_opcode opcode, uint32_t tensor,
			      const struct stage_operand *dense, uint32_t core,
			      const struct box *box)
{
	const struct ir_tensor *t = &l->sdsc->tensor[tensor];
	uint32_t table = opcode == SPYRE_OP_GATHER;
	struct stage stage = { .in = { .opcode = (uint16_t)opcode, .num_views = 3 },
			       .row = t->row };

	stage.operand[table] = tensor_operand(l, tensor, core);
	stage.operand[!table] = *dense;
	stage.operand[2] = tensor_operand(l, t->index, core);
	l->encoder->table_rows = (uint32_t)t->rows;
	if (!t->rows)
		TRY(find_end(l, tensor, core, &l->encoder->table_end));
	return stage_emit(l, &stage, box);
}

/* True if cores may write the same row, which they then do one after the other. */
static bool rows_shared(const struct ir_sdsc *s, const struct ir_tensor *t)
{
	for (uint32_t d = 0; d < s->num_dims; d++)
		if ((t->indexed >> d & 1) && s->slices[d] > 1)
			return true;
	return false;
}

/* Begins the work of a core, in a phase of its own if @alone. */
static spyre_status begin_core(struct lower *l, uint32_t core, bool alone)
{
	if (alone || !core)
		TRY(encoder_phase(l->encoder));
	return encoder_stream(l->encoder, l->sdsc->core[core]);
}

/* The form of a table's selected rows: one for each coordinate of the indices. */
static struct ir_tensor selected(const struct ir_tensor *t)
{
	struct ir_tensor rows = *t;

	rows.indexed = 0;
	for (uint32_t k = 0; k < t->num_order; k++)
		if (t->indexed >> t->order[k] & 1)
			rows.scale[t->order[k]] = 1;
	return rows;
}

/* Makes the tile of a table for a box; returns its bytes. */
static uint64_t make_tile(const struct ir_sdsc *s, uint32_t table, const struct box *box,
			  struct ir_tensor *tile)
{
	struct ir_tensor rows = selected(&s->tensor[table]);

	return tile_make(s, box, &rows, rows.format, rows.stick, rows.lanes, tile);
}

static uint64_t need(struct lower *l, void *arg, const struct box *box)
{
	const struct indirect *x = arg;
	struct ir_tensor tile;
	uint64_t bytes = 0;

	for (uint32_t t = 0; t < l->sdsc->num_tensors; t++)
		if ((x->read | x->written) >> t & 1)
			bytes += make_tile(l->sdsc, t, box, &tile);
	return bytes;
}

/*
 * Cuts the operation to a box: shares end with it, addresses begin with it, and tables are
 * replaced by tiles behind the LX in use.
 */
static void cut(struct lower *l, struct indirect *x, const struct box *box)
{
	const struct ir_sdsc *s = l->sdsc;

	box_narrow(l, box, &x->inner, &x->part);
	x->part.indirect = false;
	for (uint32_t t = 0; t < s->num_tensors; t++) {
		uint64_t bytes;

		if (!((x->read | x->written) >> t & 1))
			continue;
		bytes = make_tile(s, t, box, &x->part.tensor[t]);
		for (uint32_t c = 0; c < s->num_cores; c++)
			x->inner.address[t][c] = tile_operand(&x->inner, &x->part.tensor[t], 0).at;
		x->inner.scratch += (uint32_t)bytes;
	}
}

static struct stage_operand tile_of(const struct indirect *x, uint32_t tensor)
{
	return (struct stage_operand){ .tensor = &x->part.tensor[tensor], .tile = true,
				       .at = x->inner.address[tensor][0] };
}

static spyre_status emit(struct lower *l, void *arg, const struct box *box)
{
	const struct ir_sdsc *s = l->sdsc;
	struct indirect *x = arg;
	struct stage_operand tile;

	cut(l, x, box);
	for (uint32_t c = 0; c < s->num_cores && x->read; c++) {
		TRY(begin_core(l, c, false));
		for (uint32_t t = 0; t < s->num_tensors; t++) {
			if (!(x->read >> t & 1))
				continue;
			tile = tile_of(x, t);
			TRY(move_rows(l, SPYRE_OP_GATHER, t, &tile, c, box));
		}
	}
	TRY(encoder_phase(l->encoder));
	TRY(x->rule(&x->inner, x->func));
	tile = tile_of(x, s->output);
	for (uint32_t c = 0; c < s->num_cores && x->written; c++) {
		TRY(begin_core(l, c, rows_shared(s, &s->tensor[s->output])));
		TRY(move_rows(l, SPYRE_OP_SCATTER, s->output, &tile, c, box));
	}
	return SPYRE_SUCCESS;
}

/*
 * Refuses cores that make parts of one row, or the same row: each scatters its own tile, and
 * cores find that they share an output by its address in HBM.
 */
static spyre_status check_written(struct lower *l)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *out = &s->tensor[s->output];

	for (uint32_t d = 0; d < s->num_dims; d++)
		if (s->slices[d] > 1 && !lower_varies(out, d) && !(out->indexed >> d & 1))
			return lower_unsupported(l, "%s is split over %" PRId64 " cores, and the output, rows of a table, lacks it; divide other dimensions",
						 s->dim[d], s->slices[d]);
	return SPYRE_SUCCESS;
}

static spyre_status refuse(const struct lower *l, uint32_t tensor, const char *remedy)
{
	const struct ir_sdsc *s = l->sdsc;

	return lower_unsupported(l, "Tensor%u, whose rows it stores, overlaps Tensor%u, which it still reads then; %s",
				 s->output, tensor, remedy);
}

/*
 * Refuses an output table that overlaps what is read while rows are stored: all inputs, or
 * if these are all read before (@before), the table's own indices.
 */
static spyre_status check_rows_apart(struct lower *l, bool before, const char *remedy)
{
	const struct ir_sdsc *s = l->sdsc;
	struct overlap_box rows, read;

	for (uint32_t t = 0; t < s->num_tensors; t++) {
		if (t == s->output || !lower_is_input(s, t) ||
		    (before && t != s->tensor[s->output].index))
			continue;
		for (uint32_t o = 0; o < s->num_cores; o++) {
			TRY(indirect_rows(l, s->output, o, &rows));
			for (uint32_t i = 0; i < s->num_cores; i++) {
				if (s->tensor[t].indexed)
					TRY(indirect_rows(l, t, i, &read));
				else
					overlap_box(l, t, i, &read);
				if (overlap_boxes(&rows, &read, l->encoder->iters,
						  l->encoder->depth))
					return refuse(l, t, remedy);
			}
		}
	}
	return SPYRE_SUCCESS;
}

/* An identity of one table: each row goes directly to its place. */
static spyre_status move_directly(struct lower *l, uint32_t table, uint32_t other)
{
	const struct ir_sdsc *s = l->sdsc;
	bool scatter = table == s->output;
	struct ir_tensor as = s->tensor[other], rows = selected(&s->tensor[table]);
	struct box box;

	TRY(convert_check(l, scatter ? &as : &rows, scatter ? &rows : &as));
	if (scatter)
		TRY(check_rows_apart(l, false, "place them apart"));
	as.format = rows.format;
	box_share(s, &box);
	for (uint32_t c = 0; c < s->num_cores; c++) {
		struct stage_operand dense = tensor_operand(l, other, c);

		dense.tensor = &as;
		TRY(begin_core(l, c, scatter && rows_shared(s, &s->tensor[table])));
		TRY(move_rows(l, scatter ? SPYRE_OP_SCATTER : SPYRE_OP_GATHER, table, &dense, c,
			      &box));
	}
	return SPYRE_SUCCESS;
}

static bool is_move(struct lower *l, const struct indirect *x)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *in = &s->tensor[s->input[0]], *out = &s->tensor[s->output];

	return x->rule == lower_convert && !in->indexed != !out->indexed && out->word &&
	       convert_is_raw(l, in, out);
}

/*
 * Aligns boxes to the sticks of what the operation computes with. The indices are read one
 * by one, so that their sticks do not keep tiles, of which LX may hold few, in one box.
 */
static void align_boxes(const struct ir_sdsc *s, int64_t *align)
{
	box_align(s, align);
	for (uint32_t d = 0; d < s->num_dims; d++) {
		int64_t longest = 1;

		for (uint32_t t = 0; t < s->num_tensors; t++)
			if (!indirect_is_index(s, t) && s->tensor[t].scale[d] > 0 &&
			    (int64_t)ir_unit(&s->tensor[t], d) > longest)
				longest = (int64_t)ir_unit(&s->tensor[t], d);
		if (align[d] > longest)
			align[d] = longest;
	}
}

spyre_status lower_indirect(struct lower *l, lower_rule_fn *rule, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	struct indirect x = { .rule = rule, .func = func };
	struct blocks blocks = { .need = need, .emit = emit, .arg = &x };
	struct box box;

	if (!lower_takes_share(rule) || s->has_window)
		return lower_unsupported(l, "indirect access; only pointwise operations, reductions, products, conversions and restickify have it");
	for (uint32_t i = 0; i < s->num_inputs; i++)
		if (s->tensor[s->input[i]].indexed &&
		    (s->input[i] != s->output || rule != lower_reduce))
			x.read |= 1u << s->input[i];
	x.written = s->tensor[s->output].indexed ? 1u << s->output : 0;
	if (x.written)
		TRY(check_written(l));
	if (is_move(l, &x))
		return x.read ? move_directly(l, s->input[0], s->output) :
				move_directly(l, s->output, s->input[0]);
	align_boxes(s, blocks.align);
	box_share(s, &box);
	if (x.written)
		TRY(check_rows_apart(l, need(l, &x, &box) <= SPYRE_LX_BYTES - l->scratch,
				     "place them apart, or divide the work over more cores"));
	return box_blocks(l, &blocks, &box);
}
