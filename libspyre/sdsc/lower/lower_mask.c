// SPDX-License-Identifier: MIT
/*
 * Masked elements of a pointwise operation: coordinateMasking_ with samv-maskvalue makes
 * the operation read that value there. The front-end seeds the padding of exp with
 * exp(-inf) = 0, so that products over padded sticks add nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/lower/box.h"
#include "libspyre/sdsc/lower/lower_mask.h"
#include "libspyre/sdsc/lower/nest.h"

#define MAX_BOXES 4096u	/* of a core's share */

/* box = func(box, box, ...): all views are the output itself. */
static spyre_status emit(struct lower *l, const struct cuts *cuts, uint32_t core,
			 const struct spyre_instr *in)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *out = &s->tensor[s->output];
	const struct ir_tensor *tensor[SPYRE_MAX_VIEWS];
	struct address at = l->address[s->output][core];
	struct nest nest = { .in = *in };
	int64_t size[IR_MAX_DIMS];
	uint32_t flat = 0;

	for (uint32_t d = 0; d < s->num_dims; d++) {
		size[d] = cuts->piece[d][cuts->at[d]].size;
		flat |= lower_varies(out, d) ? 0 : 1u << d;
	}
	nest.in.lanes = out->lanes;
	if (!(flat >> out->stick & 1) && size[out->stick] < out->lanes)
		nest.in.lanes = (uint32_t)size[out->stick];
	at.offset += box_offset(s, out, cuts);
	for (uint32_t i = 0; i < in->num_views; i++) {
		tensor[i] = out;
		lower_view(&nest.view[i], out, &at);
	}
	TRY(lower_dims(l, &nest, tensor, in->num_views, out->stick, size, flat, 0));
	return nest_emit(l, &nest);
}

/* A clip to one value gives the value; x > x is 0 for all x, also for NaN. */
static spyre_status fill(struct lower *l, const struct cuts *cuts, uint32_t core, uint32_t bits,
			 const struct spyre_instr *op)
{
	const struct spyre_instr zero = { .opcode = SPYRE_OP_SFU, .func = SPYRE_FUNC_GT,
					  .num_views = 3 };
	const struct spyre_instr clip = { .opcode = SPYRE_OP_SFU, .func = SPYRE_FUNC_CLIP,
					  .num_views = 2, .imm = { bits, bits } };

	const struct spyre_instr integer = { .opcode = SPYRE_OP_INT, .func = SPYRE_FUNC_INT_CLIP,
					     .num_views = 2, .imm = { bits, bits } };

	if (op->opcode == SPYRE_OP_INT) {
		TRY(emit(l, cuts, core, &integer));
		return emit(l, cuts, core, op);
	}
	TRY(emit(l, cuts, core, &zero));
	if (bits)
		TRY(emit(l, cuts, core, &clip));
	return emit(l, cuts, core, op);
}

static spyre_status fill_boxes(struct lower *l, struct cuts *cuts, uint32_t core, uint32_t bits,
			       const struct spyre_instr *op)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *out = &s->tensor[s->output];
	uint32_t kept = 0, boxes = 1;

	if (!box_cut(s, core, &out, 1, out->stick, out->lanes, cuts))
		return lower_unsupported(l, "coordinateMasking_ cuts a dimension into more than %u parts",
					 BOX_MAX_PIECES);
	for (uint32_t d = 0; d < s->num_dims; d++) {
		kept |= lower_varies(out, d) ? 1u << d : 0;
		boxes *= cuts->num[d];
		if (boxes > MAX_BOXES)
			return lower_unsupported(l, "coordinateMasking_ cuts a core's share into more than %u boxes",
						 MAX_BOXES);
	}
	do {
		if (box_masked(cuts, kept))
			TRY(fill(l, cuts, core, bits, op));
	} while (box_next(cuts, kept));
	return SPYRE_SUCCESS;
}

spyre_status lower_mask(struct lower *l, uint32_t core, const struct spyre_instr *op)
{
	struct cuts *cuts;
	uint32_t bits = 0;
	spyre_status status;

	if (!l->sdsc->num_masks || op->num_views != 2 || !lower_has_constant(l, "samv-maskvalue"))
		return SPYRE_SUCCESS;
	if (op->opcode == SPYRE_OP_INT)
		TRY(lower_integer_constant(l, "samv-maskvalue", &bits));
	else
		TRY(lower_constant(l, "samv-maskvalue", &bits));
	cuts = calloc(1, sizeof(*cuts));
	if (!cuts)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "%s: no memory to compile it",
				   l->sdsc->file);
	status = fill_boxes(l, cuts, core, bits, op);
	free(cuts);
	return status;
}
