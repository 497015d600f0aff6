// SPDX-License-Identifier: MIT
/* Places of tensors in other statements: see place.h. */
#include "libspyre/sdsc/lower/place.h"

#include <string.h>

bool place_of(struct lower *l, uint32_t stmt, const struct ir_tensor *t, uint32_t core,
	      struct place *place)
{
	const struct ir_stmt *now = l->stmt;
	spyre_status status = SPYRE_SUCCESS;

	memset(place, 0, sizeof(*place));
	place->lx = t->lx;
	if (t->lx) {
		place->value.constant = t->start[core];
		return true;
	}
	l->stmt = &l->bundle->stmts[stmt];
	status = lower_value(l, t->start[core], &place->value);
	l->stmt = now;
	return !status;
}

bool place_same(const struct place *a, const struct place *b)
{
	return a->lx == b->lx && a->value.base == b->value.base && a->value.arg == b->value.arg &&
	       a->value.constant == b->value.constant;
}

bool place_range(struct lower *l, uint32_t stmt, const struct ir_sdsc *s,
		 const struct ir_tensor *t, struct place *base, int64_t *first, int64_t *end)
{
	uint64_t box = lower_box_bytes(s, t);

	if (box > SPYRE_MAX_EXTENT || !place_of(l, stmt, t, 0, base))
		return false;
	*first = base->value.constant;
	*end = *first + (int64_t)box;
	for (uint32_t c = 1; c < s->num_cores; c++) {
		struct place other;

		if (!place_of(l, stmt, t, c, &other) || other.value.base != base->value.base ||
		    other.value.arg != base->value.arg)
			return false;
		if (other.value.constant < *first)
			*first = other.value.constant;
		if (other.value.constant + (int64_t)box > *end)
			*end = other.value.constant + (int64_t)box;
	}
	return true;
}
