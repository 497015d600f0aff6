// SPDX-License-Identifier: MIT
/*
 * shuffle: a tensor in LX changes its division over the cores. Each core reads the parts of
 * its new slice from the cores that hold them, over the ring.
 */
#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/lower/rules.h"
#include "libspyre/sdsc/lower/stage.h"

struct shuffle {
	const struct ir_tensor *in, *out;
	uint32_t core;			/* index of the core that reads */
	struct stage_operand to;	/* of that core */
};

/* The part of the tensor that a core holds, in coordinates of the tensor. */
static void slice_box(const struct ir_sdsc *s, const struct ir_tensor *t, uint32_t core,
		      struct box *box)
{
	for (uint32_t d = 0; d < s->num_dims; d++) {
		box->len[d] = lower_varies(t, d) ? ir_share(s, t, d) : 1;
		box->start[d] = box->len[d] * t->slice[core][d];
	}
}

/* Intersects two boxes; returns the number of common elements. */
static int64_t box_common(const struct ir_sdsc *s, const struct box *a, const struct box *b,
			  struct box *common)
{
	int64_t elements = 1;

	for (uint32_t d = 0; d < s->num_dims; d++) {
		int64_t end = a->start[d] + a->len[d], other = b->start[d] + b->len[d];

		common->start[d] = a->start[d] > b->start[d] ? a->start[d] : b->start[d];
		common->len[d] = (end < other ? end : other) - common->start[d];
		if (common->len[d] <= 0)
			return 0;
		elements *= common->len[d];
	}
	return elements;
}

/*
 * A core reads a slice that several cores hold from itself if it is one of them, from the
 * lowest otherwise.
 */
static bool reads_from(const struct ir_sdsc *s, const struct shuffle *sh, uint32_t source)
{
	const uint8_t *slice = sh->in->slice[source];

	if (source == sh->core)
		return true;
	if (!memcmp(slice, sh->in->slice[sh->core], s->num_dims))
		return false;
	for (uint32_t i = 0; i < source; i++)
		if (!memcmp(slice, sh->in->slice[i], s->num_dims))
			return false;
	return true;
}

/* Copies @common, in coordinates of the tensor, from core @source, whose slice is @held. */
static spyre_status copy_part(struct lower *l, const struct shuffle *sh, uint32_t source,
			      const struct box *held, const struct box *wanted,
			      const struct box *common)
{
	const struct ir_sdsc *s = l->sdsc;
	struct stage stage = { .in = { .opcode = SPYRE_OP_MOVE, .num_views = 2 },
			       .operand = { sh->to, tensor_operand(l, s->input[0], source) } };
	struct stage_operand *from = &stage.operand[1];
	struct box box;

	for (uint32_t d = 0; d < s->num_dims; d++) {
		int64_t skip = common->start[d] - held->start[d];

		box.start[d] = common->start[d] - wanted->start[d];
		box.len[d] = common->len[d];
		if (skip % (int64_t)ir_unit(sh->in, d) ||
		    box.start[d] % (int64_t)ir_unit(sh->out, d))
			return lower_unsupported(l, "slices of %s that begin within a stick",
						 s->dim[d]);
		from->at.offset += ir_bits(sh->in, d, (uint64_t)skip) / 8;
	}
	/* The source's coordinates begin at the box, whose place is part of the address. */
	from->tile = true;
	if (source != sh->core)
		from->at.operand = (uint16_t)(SPYRE_VIEW_RING | s->core[source]);
	return stage_emit(l, &stage, &box);
}

static spyre_status read_slice(struct lower *l, const struct shuffle *sh)
{
	const struct ir_sdsc *s = l->sdsc;
	struct box wanted, held, common;
	int64_t elements, total;

	slice_box(s, sh->out, sh->core, &wanted);
	total = box_common(s, &wanted, &wanted, &common);
	TRY(encoder_stream(l->encoder, s->core[sh->core]));
	for (uint32_t source = 0; source < s->num_cores; source++) {
		if (!reads_from(s, sh, source))
			continue;
		slice_box(s, sh->in, source, &held);
		elements = box_common(s, &held, &wanted, &common);
		if (!elements)
			continue;
		TRY(copy_part(l, sh, source, &held, &wanted, &common));
		total -= elements;
	}
	if (total)
		return spyre_error(SPYRE_ERROR_PARSE,
				   "%s: no core holds %" PRId64 " of the elements that core %u receives; coreIdToWkSlice_ of the input must have a core for each slice",
				   s->file, total, s->core[sh->core]);
	return SPYRE_SUCCESS;
}

/* A core that writes where others still read needs a barrier between. */
static bool in_place(struct lower *l)
{
	const struct ir_sdsc *s = l->sdsc;
	uint64_t in_bytes = lower_box_bytes(s, &s->tensor[s->input[0]]);
	uint64_t out_bytes = lower_box_bytes(s, &s->tensor[s->output]);

	for (uint32_t c = 0; c < s->num_cores; c++) {
		uint64_t in = l->address[s->input[0]][c].offset;
		uint64_t out = l->address[s->output][c].offset;

		if (in < out + out_bytes && out < in + in_bytes)
			return true;
	}
	return false;
}

/* Collects all slices behind the bundle's tensors in LX, and stores them in a second phase. */
static spyre_status shuffle_in_place(struct lower *l, struct shuffle *sh)
{
	const struct ir_sdsc *s = l->sdsc;
	uint64_t bytes = lower_box_bytes(s, sh->out);
	struct stage stage = { .in = { .opcode = SPYRE_OP_MOVE, .num_views = 2 } };
	struct stage_operand copy = tile_operand(l, sh->out, 0);
	struct box box;

	if (bytes > SPYRE_LX_BYTES - l->scratch)
		return spyre_error(SPYRE_ERROR_LX_OVERFLOW,
				   "%s: input and output overlap in LX, which needs %" PRIu64 " bytes from byte %u on; a core has %u; plan them apart",
				   s->file, bytes, l->scratch, SPYRE_LX_BYTES);
	copy.tile = false;
	sh->to = copy;
	for (sh->core = 0; sh->core < s->num_cores; sh->core++)
		TRY(read_slice(l, sh));
	TRY(encoder_phase(l->encoder));
	for (uint32_t c = 0; c < s->num_cores; c++) {
		slice_box(s, sh->out, c, &box);
		memset(box.start, 0, sizeof(box.start));
		stage.operand[0] = tensor_operand(l, s->output, c);
		stage.operand[1] = copy;
		TRY(encoder_stream(l->encoder, s->core[c]));
		TRY(stage_emit(l, &stage, &box));
	}
	return SPYRE_SUCCESS;
}

static spyre_status check(struct lower *l, const struct ir_tensor *in, const struct ir_tensor *out)
{
	const struct ir_sdsc *s = l->sdsc;

	if (!in->lx || !out->lx)
		return lower_unsupported(l, "a tensor in HBM; it moves data from LX to LX");
	if (in->format != out->format || !out->word)
		return lower_unsupported(l, "%s to %s; elements of whole bytes keep their format",
					 spyre_format_name((spyre_format)in->format),
					 spyre_format_name((spyre_format)out->format));
	if (in->stick != out->stick)
		return lower_unsupported(l, "sticks along %s that become sticks along %s; restickify first",
					 s->dim[in->stick], s->dim[out->stick]);
	for (uint32_t d = 0; d < s->num_dims; d++)
		if (lower_varies(in, d) != lower_varies(out, d) && s->size[d] > 1)
			return lower_unsupported(l, "a tensor that does not vary along %s",
						 s->dim[d]);
	return SPYRE_SUCCESS;
}

spyre_status lower_shuffle(struct lower *l, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	struct shuffle sh = { .in = &s->tensor[s->input[0]], .out = &s->tensor[s->output] };

	(void)func;
	TRY(check(l, sh.in, sh.out));
	if (in_place(l))
		return shuffle_in_place(l, &sh);
	for (sh.core = 0; sh.core < s->num_cores; sh.core++) {
		sh.to = tensor_operand(l, s->output, sh.core);
		TRY(read_slice(l, &sh));
	}
	return SPYRE_SUCCESS;
}
