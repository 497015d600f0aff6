// SPDX-License-Identifier: MIT
/*
 * Conversions that store where other elements still have to be read. Front-ends give a tensor
 * of less than a stick no memory of its own, so that the output of one core may lie in the
 * input of another. Such an output is made in LX and stored after a barrier.
 */
#include "libspyre/sdsc/lower/lower_apart.h"

#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/lower/rules.h"

static bool clash(const struct lower *l, uint32_t input)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *in = &s->tensor[input], *out = &s->tensor[s->output];
	uint64_t reads = lower_box_bytes(s, in), writes = lower_box_bytes(s, out);

	/* Elements of one width may be interleaved, as the slices of a tensor are. */
	if (spyre_fmt_bits(in->format) == spyre_fmt_bits(out->format))
		return false;
	for (uint32_t i = 0; i < s->num_cores; i++)
		for (uint32_t o = 0; o < s->num_cores; o++) {
			const struct address *from = &l->address[input][i];
			const struct address *to = &l->address[s->output][o];

			if (from->operand == to->operand && from->offset < to->offset + writes &&
			    to->offset < from->offset + reads)
				return true;
		}
	return false;
}

bool lower_clashes(const struct lower *l)
{
	const struct ir_sdsc *s = l->sdsc;
	bool found = false;

	if (s->tensor[s->output].lx || s->num_tensors == IR_MAX_TENSORS)
		return false;
	for (uint32_t i = 0; i < s->num_inputs && !found; i++)
		found = s->input[i] != s->output && !s->tensor[s->input[i]].lx &&
			clash(l, s->input[i]);
	return found;
}

/* Makes the tensor in LX that stands for the output; returns its bytes. */
static uint64_t make_copy(const struct ir_sdsc *s, struct ir_tensor *t)
{
	*t = s->tensor[s->output];
	t->lx = true;
	memset(t->gap, 0, sizeof(t->gap));
	return ir_place(s, t) ? lower_box_bytes(s, t) : UINT64_MAX;
}

spyre_status lower_apart(struct lower *l, lower_rule_fn *rule, enum spyre_func func)
{
	const struct ir_sdsc *whole = l->sdsc;
	uint32_t output = whole->output, scratch = l->scratch, copy = whole->num_tensors;
	struct ir_sdsc part = *whole;
	uint64_t bytes = make_copy(whole, &part.tensor[copy]);
	spyre_status status;

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
	status = rule(l, func);
	strcpy(part.op, "identity");
	part.num_inputs = 1;
	part.input[0] = copy;
	part.output = output;
	if (!status)
		status = encoder_phase(l->encoder);
	if (!status)
		status = lower_convert(l, SPYRE_FUNC_IDENTITY);
	l->scratch = scratch;
	l->sdsc = whole;
	return status;
}
