// SPDX-License-Identifier: MIT
/* Placement in LX or in the pool: blocks with disjoint lifetimes may share bytes. */
#include <stdlib.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/plan/memory.h"
#include "libspyre/sdsc/plan/plan.h"

uint64_t plan_share(const struct build_step *step, uint32_t tensor)
{
	const struct ir_sdsc *s = &step->sdsc;
	const struct ir_tensor *t = &s->tensor[tensor];
	uint64_t bytes = SPYRE_STICK_BYTES;

	for (uint32_t d = 0; d < s->num_dims; d++) {
		uint64_t el = (uint64_t)(s->size[d] / s->slices[d]);

		if (t->scale[d] > 0)
			bytes *= d == t->stick ? (el + t->lanes - 1) / t->lanes : el;
	}
	return bytes;
}

static int compare(const struct plan_block *a, const struct plan_block *b, bool smallest_first)
{
	if (a->bytes != b->bytes)
		return (a->bytes < b->bytes) == smallest_first ? -1 : 1;
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return a->tensor < b->tensor ? -1 : a->tensor > b->tensor;
}

static int up(const void *a, const void *b)
{
	return compare(a, b, true);
}

static int down(const void *a, const void *b)
{
	return compare(a, b, false);
}

/* Lowest address that is free during the lifetime of @b. */
static uint64_t lowest(const struct plan_block *block, uint32_t done, const struct plan_block *b)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < done; i++) {
		const struct plan_block *o = &block[i];

		if (!o->placed || o->last < b->first || b->last < o->first ||
		    o->at >= at + b->bytes || o->at + o->bytes <= at)
			continue;
		/* The blocks overlap: try the address after this one, against all blocks again. */
		at = o->at + o->bytes;
		i = UINT32_MAX;
	}
	return at;
}

uint64_t plan_memory(struct plan_block *block, uint32_t count, uint64_t limit, bool smallest_first)
{
	uint64_t used = 0;

	qsort(block, count, sizeof(*block), smallest_first ? up : down);
	for (uint32_t i = 0; i < count; i++) {
		struct plan_block *b = &block[i];

		b->placed = false;
		b->at = lowest(block, i, b);
		if (b->bytes > limit || b->at > limit - b->bytes)
			continue;
		b->placed = true;
		if (b->at + b->bytes > used)
			used = b->at + b->bytes;
	}
	return used;
}

spyre_status plan_pool(struct plan *p)
{
	const uint64_t limit = 1ull << IR_SEGMENT_SHIFT;
	struct plan_block *block = calloc(p->num_tensors + 1, sizeof(*block));
	uint64_t used[2];
	uint32_t n = 0;

	if (!block)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory to plan a pool of %u tensors",
				   p->num_tensors);
	for (uint32_t i = 0; i < p->num_tensors; i++) {
		const struct plan_tensor *t = &p->tensor[i];

		if (t->place == SPYRE_SDSC_POOL && t->first <= t->last)
			block[n++] = (struct plan_block){
				.bytes = t->bytes, .tensor = i,
				.first = p->reuse_pool ? t->first : 0,
				.last = p->reuse_pool ? t->last : p->num_steps };
	}
	used[0] = plan_memory(block, n, limit, false);
	used[1] = plan_memory(block, n, limit, true);
	p->pool_bytes = used[1];
	if (used[0] <= used[1])
		p->pool_bytes = plan_memory(block, n, limit, false);
	for (uint32_t i = 0; i < n; i++) {
		p->tensor[block[i].tensor].at = block[i].at;
		if (block[i].placed)
			continue;
		free(block);
		return spyre_error(SPYRE_ERROR_SPAN_LIMIT,
				   "the intermediates need more than the %llu bytes of a segment",
				   (unsigned long long)limit);
	}
	free(block);
	return SPYRE_SUCCESS;
}
