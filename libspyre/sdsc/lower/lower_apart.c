// SPDX-License-Identifier: MIT
/* Outputs that overlap what is read: see lower_apart.h. */
#include "libspyre/sdsc/lower/lower_apart.h"

#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/lower/lower_indirect.h"
#include "libspyre/sdsc/lower/nest.h"

/* Only MOVE and SFU may store over an input, and only element for element (docs/isa.md). */
static bool works_in_place(lower_rule_fn *rule)
{
	return rule == lower_pointwise || rule == lower_convert || rule == lower_mask_by_index;
}

/* True if a core's share of two tensors has the same elements at the same bytes. */
static bool same_elements(const struct lower *l, uint32_t a, uint32_t b, uint32_t core)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *x = &s->tensor[a], *y = &s->tensor[b];

	if (memcmp(&l->address[a][core], &l->address[b][core], sizeof(l->address[a][core])) ||
	    spyre_fmt_bits(x->format) != spyre_fmt_bits(y->format) ||
	    x->num_parts != y->num_parts ||
	    memcmp(x->part, y->part, x->num_parts * sizeof(x->part[0])))
		return false;
	for (uint32_t d = 0; d < s->num_dims; d++) {
		if (s->el[d] > 1 && lower_varies(x, d) != lower_varies(y, d))
			return false;
		if ((uint64_t)s->el[d] > ir_unit(x, d) && x->stride[d] != y->stride[d])
			return false;
	}
	return true;
}

/* True if the cores' shares lie apart without regard to gaps, and move alike in all loops. */
static bool far_apart(const struct address *from, uint64_t reads, const struct address *to,
		      uint64_t writes)
{
	return !memcmp(from->per_iter, to->per_iter, sizeof(from->per_iter)) &&
	       (from->offset >= to->offset + writes || to->offset >= from->offset + reads);
}

/* True if no core has two tensors in the same operand, as most kernels: no pairs to compare. */
static bool other_operands(const struct lower *l, uint32_t a, uint32_t b)
{
	uint32_t first = l->address[a][0].operand, second = l->address[b][0].operand;

	if (first == second)
		return false;
	for (uint32_t c = 1; c < l->sdsc->num_cores; c++)
		if (l->address[a][c].operand != first || l->address[b][c].operand != second)
			return false;
	return true;
}

/* True if an output of any core overlaps what a core reads of @input. */
static bool clashes_with(const struct lower *l, uint32_t input, bool in_place)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *in = &s->tensor[input], *out = &s->tensor[s->output];
	uint64_t reads = lower_box_bytes(s, in), writes = lower_box_bytes(s, out);
	uint32_t same = 0;

	if (in->lx != out->lx || other_operands(l, input, s->output))
		return false;
	for (uint32_t c = 0; c < s->num_cores && in_place; c++)
		same += same_elements(l, input, s->output, c);
	/* Then the cores' shares are as far apart as those of the output. */
	if (same == s->num_cores)
		return false;
	for (uint32_t i = 0; i < s->num_cores; i++)
		for (uint32_t o = 0; o < s->num_cores; o++) {
			const struct address *from = &l->address[input][i];
			const struct address *to = &l->address[s->output][o];
			struct overlap_box a, b;

			if (from->operand != to->operand || (in->lx && i != o) ||
			    far_apart(from, reads, to, writes) ||
			    (i == o && in_place && same_elements(l, input, s->output, i)))
				continue;
			overlap_box(l, input, i, &a);
			overlap_box(l, s->output, o, &b);
			if (overlap_boxes(&a, &b, l->encoder->iters, l->encoder->depth))
				return true;
		}
	return false;
}

/* The same for the rows of a table, of which indices may select any. */
static spyre_status clashes_with_table(struct lower *l, uint32_t table, bool *clash)
{
	const struct ir_sdsc *s = l->sdsc;
	struct overlap_box rows, out;

	for (uint32_t i = 0; i < s->num_cores; i++) {
		TRY(indirect_rows(l, table, i, &rows));
		for (uint32_t o = 0; o < s->num_cores && !*clash; o++) {
			overlap_box(l, s->output, o, &out);
			*clash = overlap_boxes(&rows, &out, l->encoder->iters, l->encoder->depth);
		}
	}
	return SPYRE_SUCCESS;
}

spyre_status lower_clashes(struct lower *l, lower_rule_fn *rule, bool *clash)
{
	const struct ir_sdsc *s = l->sdsc;

	*clash = false;
	for (uint32_t i = 0; i < s->num_tensors && !*clash; i++) {
		if (i == s->output || !lower_is_input(s, i))
			continue;
		if (s->tensor[i].indexed)
			TRY(clashes_with_table(l, i, clash));
		else
			*clash = clashes_with(l, i, works_in_place(rule) &&
					      !indirect_is_index(s, i));
	}
	return SPYRE_SUCCESS;
}

/* Makes the tensor in LX that stands for the output; returns its bytes. */
static uint64_t make_copy(const struct ir_sdsc *s, struct ir_tensor *t)
{
	*t = s->tensor[s->output];
	t->lx = true;
	memset(t->gap, 0, sizeof(t->gap));
	return ir_place(s, t) ? lower_box_bytes(s, t) : UINT64_MAX;
}

/* Refuses outputs that cores share: in LX, they would not find each other's results. */
static spyre_status check_private(struct lower *l)
{
	const struct ir_sdsc *s = l->sdsc;

	for (uint32_t d = 0; d < s->num_dims; d++)
		if (s->slices[d] > 1 && !lower_varies(&s->tensor[s->output], d))
			return lower_unsupported(l, "the output overlaps inputs and is that of %" PRId64 " cores which divide %s; place them apart",
						 s->slices[d], s->dim[d]);
	return SPYRE_SUCCESS;
}

/* Stores sticks as they are: all of their lanes are results, whatever their dim's extent. */
static spyre_status store_sticks(struct lower *l, uint32_t copy)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *tensor[2] = { &s->tensor[s->output], &s->tensor[copy] };
	struct nest nest = { .in = { .opcode = SPYRE_OP_MOVE, .num_views = 2,
				     .lanes = tensor[0]->lanes } };

	for (uint32_t d = 0; d < s->num_dims; d++) {
		uint64_t unit = ir_unit(tensor[0], d);

		if (!lower_varies(tensor[0], d))
			continue;
		nest.dim[nest.num_dims++] = (struct nest_dim){
			.count = ((uint64_t)s->el[d] + unit - 1) / unit,
			.stride = { tensor[0]->stride[d], tensor[1]->stride[d] },
		};
	}
	for (uint32_t c = 0; c < s->num_cores; c++) {
		struct nest own;

		nest_copy(&own, &nest);
		TRY(encoder_stream(l->encoder, s->core[c]));
		lower_view(&own.view[0], tensor[0], &l->address[s->output][c]);
		lower_view(&own.view[1], tensor[1], &l->address[copy][c]);
		TRY(nest_emit(l, &own));
	}
	return SPYRE_SUCCESS;
}

/* Stores the copy of the output, @part being the SDSC that has it as a tensor of its own. */
static spyre_status store(struct lower *l, struct ir_sdsc *part, uint32_t output)
{
	uint32_t copy = part->output;
	const struct ir_tensor *out = &part->tensor[output];

	TRY(encoder_phase(l->encoder));
	part->output = output;
	if (out->scale[out->stick] < 1 && out->num_parts == 1)
		return store_sticks(l, copy);
	strcpy(part->op, "identity");
	part->num_inputs = 1;
	part->input[0] = copy;
	for (uint32_t d = 0; d < part->num_dims; d++)
		if (!lower_varies(out, d))
			part->el[d] = 1;
	return lower_convert(l, SPYRE_FUNC_IDENTITY);
}

spyre_status lower_apart(struct lower *l, lower_rule_fn *rule, enum spyre_func func)
{
	const struct ir_sdsc *whole = l->sdsc;
	uint32_t scratch = l->scratch, copy = whole->num_tensors;
	spyre_status status = SPYRE_SUCCESS;
	struct ir_sdsc part;
	uint64_t bytes;

	TRY(check_private(l));
	ir_copy_sdsc(&part, whole);
	bytes = make_copy(whole, &part.tensor[copy]);
	if (bytes > SPYRE_LX_BYTES - scratch)
		return spyre_error(SPYRE_ERROR_LX_OVERFLOW,
				   "%s: %s: the output overlaps inputs, and a copy of %" PRIu64 " bytes does not fit in LX behind byte %u, a core has %u; place them apart",
				   whole->file, whole->op, bytes, scratch, SPYRE_LX_BYTES);
	for (uint32_t c = 0; c < whole->num_cores; c++)
		l->address[copy][c] = (struct address){ .operand = SPYRE_VIEW_LX,
							.offset = scratch };
	l->sdsc = &part;
	l->scratch += (uint32_t)bytes;
	part.num_tensors++;
	part.output = copy;
	/* A reduction lists its output among its inputs. */
	for (uint32_t i = 0; i < part.num_inputs; i++)
		if (part.input[i] == whole->output)
			part.input[i] = copy;
	if (l->pass != LOWER_STORE)
		status = operation_emit(l, rule, func);
	if (!status && l->pass != LOWER_MAKE)
		status = store(l, &part, whole->output);
	l->scratch = scratch;
	l->sdsc = whole;
	return status;
}

/* True if @box, which a core of a later group reads, overlaps an output of the groups. */
static bool overwritten(const struct apart_groups *groups, const struct lower *l,
			const struct overlap_box *box)
{
	for (uint32_t i = 0; i < groups->num; i++)
		if (overlap_boxes(box, &groups->output[i], l->encoder->iters, l->encoder->depth))
			return true;
	return false;
}

spyre_status apart_add_group(struct apart_groups *groups, struct lower *l, bool *clash)
{
	const struct ir_sdsc *s = l->sdsc;
	struct overlap_box box;

	for (uint32_t t = 0; t < s->num_tensors; t++)
		TRY(lower_resolve(l, t));
	for (uint32_t t = 0; t < s->num_tensors && groups->num; t++)
		for (uint32_t c = 0; c < s->num_cores && !*clash; c++) {
			/* LX is private, and each core is in one group. */
			if (t == s->output || s->tensor[t].lx || !lower_is_input(s, t))
				continue;
			overlap_box(l, t, c, &box);
			*clash = overwritten(groups, l, &box);
		}
	for (uint32_t c = 0; c < s->num_cores; c++)
		overlap_box(l, s->output, c, &groups->output[groups->num++]);
	return SPYRE_SUCCESS;
}
