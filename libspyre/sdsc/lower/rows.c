// SPDX-License-Identifier: MIT
/* The rows of tables: see rows.h. */
#include "libspyre/sdsc/lower/rows.h"

/* A program image; the fields are within it, which the verifier has proved. */
struct walk {
	const struct spyre_bundle *bundle;
	/* Called for each instruction that accesses the table of argument @arg. */
	void (*visit)(struct walk *w, struct spyre_instr *in, uint32_t arg);
	const uint64_t *bytes;
	struct rows_width *width;
	struct spyre_prog_operand *operands;
	uint32_t iters[SPYRE_MAX_LOOPS];
	uint32_t depth;
};

/*
 * *end += (count - 1) * stride, false when that overflows. As in the verifier, even the stride
 * of one point is limited.
 */
static bool reach(uint64_t *end, uint64_t count, uint64_t stride)
{
	uint64_t part;

	if (stride > SPYRE_MAX_EXTENT)
		return false;
	return count < 2 || (!__builtin_mul_overflow(count - 1, stride, &part) &&
			     !__builtin_add_overflow(*end, part, end));
}

bool rows_view_end(const uint32_t *iters, uint32_t depth, const struct spyre_instr *in,
		   uint32_t index, const struct spyre_view *view, uint64_t *end)
{
	*end = view->offset;
	for (uint32_t d = 0; d < in->num_dims; d++)
		if (!reach(end, spyre_view_count(in, view, index, d), view->stride[d]))
			return false;
	for (uint32_t d = 0; d < depth; d++)
		if (!reach(end, iters[d], view->loop_stride[d]))
			return false;
	return !__builtin_add_overflow(*end, spyre_view_bytes(in, view, index), end);
}

bool rows_set(const uint32_t *iters, uint32_t depth, struct spyre_instr *in,
	      const struct spyre_view *views, uint64_t table_end, uint64_t *end)
{
	uint32_t index = spyre_indirect_view(in);
	uint64_t row = views[index].stride[__builtin_ctz(in->reduce_mask)], more;

	in->imm[0] = 1;
	if (table_end > SPYRE_MAX_EXTENT)
		table_end = SPYRE_MAX_EXTENT;
	if (!rows_view_end(iters, depth, in, index, &views[index], end) || *end > table_end)
		return false;
	more = row ? (table_end - *end) / row : 0;
	if (more > SPYRE_MAX_INDEX - 1)
		more = SPYRE_MAX_INDEX - 1;
	in->imm[0] += (uint32_t)more;
	*end += more * row;
	return true;
}

static void set_instr(struct walk *w, struct spyre_instr *in, uint32_t arg)
{
	const struct spyre_view *views = spyre_instr_views(in);
	struct spyre_prog_operand *operand = &w->operands[views[spyre_indirect_view(in)].operand];
	uint64_t end;

	if (rows_set(w->iters, w->depth, in, views, w->bytes[arg], &end) && end > operand->extent)
		operand->extent = end;
}

static void get_width(struct walk *w, struct spyre_instr *in, uint32_t arg)
{
	const struct spyre_view *view = spyre_instr_views(in) + spyre_indirect_view(in);
	uint64_t row = view->stride[__builtin_ctz(in->reduce_mask)];
	struct rows_width *width = &w->width[arg];

	if (!width->least || row < width->least)
		width->least = row;
	if (row > width->most)
		width->most = row;
}

static void visit_instr(struct walk *w, struct spyre_instr *in)
{
	const struct spyre_view *view = spyre_instr_views(in);
	const struct spyre_bundle_operand *o;

	if (in->opcode != SPYRE_OP_GATHER && in->opcode != SPYRE_OP_SCATTER)
		return;
	view += spyre_indirect_view(in);
	if (view->operand >= w->bundle->num_operands)
		return;
	o = &w->bundle->operands[view->operand];
	if (o->kind == SPYRE_OPERAND_ARG && w->bundle->table[o->arg])
		w->visit(w, in, o->arg);
}

static void walk(struct walk *w, void *image)
{
	const struct spyre_prog_header *h = image;
	const struct spyre_prog_step *steps;
	const struct spyre_prog_stream *streams;
	uint8_t *at;

	w->operands = (void *)(h + 1);
	steps = (void *)(w->operands + h->num_operands);
	streams = (void *)(steps + h->num_steps);
	at = (uint8_t *)(streams + h->num_streams);
	for (uint32_t i = 0; i < h->num_steps; i++) {
		const struct spyre_prog_step *step = &steps[i];

		if (step->kind == SPYRE_STEP_LOOP)
			w->iters[w->depth++] = step->count;
		else if (step->kind == SPYRE_STEP_END)
			w->depth--;
		/* Instructions are stored in the order of the phases, without gaps. */
		for (uint32_t k = 0; k < step->num_streams; k++)
			for (uint32_t n = 0; n < streams[step->first_stream + k].num_instrs; n++) {
				struct spyre_instr *in = (struct spyre_instr *)at;

				visit_instr(w, in);
				at += sizeof(*in) + in->num_views * sizeof(struct spyre_view);
			}
	}
}

void rows_of_launch(void *image, const struct spyre_bundle *bundle, const uint64_t *bytes)
{
	struct walk w = { .bundle = bundle, .visit = set_instr, .bytes = bytes };

	walk(&w, image);
}

void rows_get_width(void *image, const struct spyre_bundle *bundle, struct rows_width *width)
{
	struct walk w = { .bundle = bundle, .visit = get_width, .width = width };

	walk(&w, image);
}
