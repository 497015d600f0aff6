// SPDX-License-Identifier: MIT
#define _GNU_SOURCE	/* tdestroy() */
/* Tensors that have been written: see written.h. */
#include "libspyre/sdsc/lower/written.h"

#include <search.h>
#include <stdlib.h>

#include "libspyre/base/error.h"

struct tensor {
	uint64_t offset, bytes;
	uint16_t operand;
};

static int compare(const void *a, const void *b)
{
	const struct tensor *x = a, *y = b;

	if (x->operand != y->operand)
		return x->operand < y->operand ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Bytes of a tensor's memory; its strides fit 63 bits (ir_place()). */
static uint64_t whole_bytes(const struct ir_tensor *t)
{
	uint64_t bytes = SPYRE_STICK_BYTES;

	for (uint32_t k = 0; k < t->num_order; k++)
		bytes *= t->extent[t->order[k]];
	return bytes;
}

/* End of the last byte that a core's box reaches in all iterations; encode.c has limited it. */
static uint64_t box_end(const struct lower *l, const struct address *at)
{
	const struct encoder *e = l->encoder;
	uint64_t end = at->offset + lower_box_bytes(l->sdsc, &l->sdsc->tensor[l->sdsc->output]);

	for (uint32_t d = 0; d < e->depth; d++)
		end += (e->iters[d] - 1) * at->per_iter[d];
	return end;
}

/* Finds the first byte of the output and its bytes: iterations may each write a part of it. */
static void measure(const struct lower *l, struct tensor *tensor)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct address *at = l->address[s->output];
	uint64_t end = 0;

	tensor->operand = at[0].operand;
	tensor->offset = at[0].offset;
	for (uint32_t c = 0; c < s->num_cores; c++) {
		if (at[c].operand != at[0].operand)
			continue;
		if (at[c].offset < tensor->offset)
			tensor->offset = at[c].offset;
		if (box_end(l, &at[c]) > end)
			end = box_end(l, &at[c]);
	}
	tensor->bytes = whole_bytes(&s->tensor[s->output]);
	if (end - tensor->offset > tensor->bytes)
		tensor->bytes = end - tensor->offset;
}

spyre_status written_note(struct written *w, const struct lower *l)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *t = &s->tensor[s->output];
	struct tensor *tensor, **found;

	/* Addresses are those of the last part of a symbolic SDSC. */
	if (t->lx || t->indexed || s->symbolic)
		return SPYRE_SUCCESS;
	tensor = calloc(1, sizeof(*tensor));
	if (tensor)
		measure(l, tensor);
	found = tensor ? tsearch(tensor, &w->tree, compare) : NULL;
	if (!found) {
		free(tensor);
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory to compile a bundle");
	}
	(*found)->bytes = tensor->bytes;
	if (*found != tensor)
		free(tensor);
	return SPYRE_SUCCESS;
}

bool written_find(const struct written *w, uint16_t operand, uint64_t offset, uint64_t *bytes)
{
	const struct tensor key = { .operand = operand, .offset = offset };
	struct tensor *const *found = tfind(&key, &w->tree, compare);

	if (found)
		*bytes = (*found)->bytes;
	return found;
}

void written_fini(struct written *w)
{
	tdestroy(w->tree, free);
	w->tree = NULL;
}
