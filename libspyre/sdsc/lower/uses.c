// SPDX-License-Identifier: MIT
/* Tensors that statements read and write: see uses.h. */
#include "libspyre/sdsc/lower/uses.h"

#include "libspyre/base/array.h"
#include "libspyre/sdsc/lower/written.h"

/* The loops around a statement. */
struct loops {
	uint32_t depth;
	uint32_t count[SPYRE_MAX_LOOPS];
};

/* The end of a tensor that moves from iteration to iteration; INT64_MAX if it overflows. */
static int64_t reach_of(const struct loops *loops, const struct place *place, int64_t end)
{
	for (uint32_t d = 0; d < loops->depth && d < SPYRE_MAX_LOOPS; d++) {
		int64_t step = place->value.per_iter[d], moved;

		if (step <= 0 || !loops->count[d])
			continue;
		if (__builtin_mul_overflow(step, (int64_t)loops->count[d] - 1, &moved) ||
		    __builtin_add_overflow(end, moved, &end))
			return INT64_MAX;
	}
	return end;
}

/* Fills in how a statement uses a tensor; false if it does not, or not in one memory. */
static bool use_of(struct lower *l, uint32_t stmt, uint32_t tensor, const struct loops *loops,
		   struct use *use)
{
	const struct ir_sdsc *s = bundle_source_sdsc(l->written->source, stmt);
	const struct ir_tensor *t = &s->tensor[tensor];
	struct place place;

	*use = (struct use){ .stmt = stmt, .write = tensor == s->output };
	if (t->lx || (!use->write && !lower_is_input(s, tensor)))
		return false;
	if (use->write ? !place_of(l, stmt, t, 0, &place) :
			 !place_range(l, stmt, s, t, &place, &use->first, &use->end))
		return false;
	if (use->write)
		use->first = place.value.constant;
	use->base = place.value.base;
	use->arg = place.value.arg;
	use->reach = reach_of(loops, &place, use->end);
	return true;
}

/* Appends the uses of a statement: inputs come before the output, which may replace them. */
static bool collect_stmt(struct uses *uses, struct lower *l, uint32_t stmt,
			 const struct loops *loops)
{
	const struct ir_sdsc *s = bundle_source_sdsc(l->written->source, stmt);

	if (!spyre_array_reserve(&uses->list, &uses->capacity, uses->num + s->num_tensors,
				 sizeof(*uses->list)))
		return false;
	for (uint32_t t = 0; t < s->num_tensors; t++)
		if (t != s->output)
			uses->num += use_of(l, stmt, t, loops, &uses->list[uses->num]);
	uses->num += use_of(l, stmt, s->output, loops, &uses->list[uses->num]);
	return true;
}

bool uses_collect(struct uses *uses, struct lower *l)
{
	struct loops loops = { .depth = 0 };

	/* The statement that asks has itself a use: the table. */
	if (uses->num)
		return true;
	for (uint32_t i = 0; i < l->bundle->num_stmts; i++) {
		const struct ir_stmt *stmt = &l->bundle->stmts[i];

		if (stmt->kind == IR_STMT_LOOP && loops.depth < SPYRE_MAX_LOOPS)
			loops.count[loops.depth] = stmt->count;
		if (stmt->kind == IR_STMT_LOOP)
			loops.depth++;
		else if (stmt->kind == IR_STMT_END)
			loops.depth--;
		else if (!collect_stmt(uses, l, i, &loops))
			return false;
	}
	return true;
}

/* The first use of a statement or of one behind it. */
static size_t uses_from(const struct uses *uses, uint32_t stmt)
{
	size_t low = 0, high = uses->num;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (uses->list[middle].stmt < stmt)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void uses_find(const struct uses *uses, const struct use_range *range, bool *alone,
	       uint32_t *used)
{
	*alone = false;
	*used = 0;
	for (size_t i = uses_from(uses, range->readers); i < uses->num; i++) {
		const struct use *use = &uses->list[i];

		if (use->stmt == range->stmt || use->first >= range->end ||
		    use->base != range->value.base || use->arg != range->value.arg)
			continue;
		if (use->write && use->stmt > range->stmt && use->first == range->first)
			return;
		if (use->write || use->reach <= range->first)
			continue;
		if (use->stmt > range->stmt && !*used)
			*used = use->stmt;
		*alone = *alone || use->first >= range->first;
		if (*alone && *used)
			return;
	}
}
