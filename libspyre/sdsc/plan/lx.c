// SPDX-License-Identifier: MIT
/*
 * LX keeps results of which each core reads only its own share, and copies of
 * arguments that several steps of a group read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/ops.h"
#include "libspyre/sdsc/plan/group.h"
#include "libspyre/sdsc/plan/lx.h"
#include "libspyre/sdsc/plan/memory.h"
#include "libspyre/sdsc/plan/plan.h"

struct lx {
	struct plan *plan;
	struct plan_block *block;
	uint32_t count;
	uint32_t *alias;	/* tensor that a tensor shares its address with, by tensor */
	uint32_t *copy_at;	/* by argument tensor: the step before which it is copied */
};

/* Steps have odd times, the copies before them even ones. */
static uint32_t time_of(uint32_t step)
{
	return 2 * step + 1;
}

/* True if a tensor is written by one step and used by steps of its group in the same way. */
static bool stays(const struct plan *p, uint32_t tensor, uint32_t *step, uint32_t *operand)
{
	const struct plan_tensor *t = &p->tensor[tensor];
	const struct build_step *from = &p->step[t->first <= t->last ? t->first : 0];

	*operand = from->sdsc.output;
	*step = t->first;
	if (t->place != SPYRE_SDSC_POOL || t->first >= t->last ||
	    from->tensor[*operand] != tensor || !(from->op->flags & BUILD_LX || from->fused))
		return false;
	for (uint32_t i = t->first; i <= t->last; i++)
		for (uint32_t k = 0; k < p->step[i].sdsc.num_tensors; k++) {
			bool output = k == p->step[i].sdsc.output;

			if (p->step[i].tensor[k] != tensor || (output && i == t->first))
				continue;
			if (i == t->first || output || p->step[i].group != from->group ||
			    !plan_same_walk(from, *operand, &p->step[i], k))
				return false;
		}
	return true;
}

static bool varies_everywhere(const struct build_step *step, uint32_t tensor)
{
	for (uint32_t d = 0; d < step->sdsc.num_dims; d++)
		if (step->sdsc.tensor[tensor].scale[d] < 1)
			return false;
	return true;
}

/* True if several steps of a group read an argument in the same way. */
static bool worth_a_copy(const struct plan *p, uint32_t tensor, uint32_t *step, uint32_t *operand)
{
	const struct plan_tensor *t = &p->tensor[tensor];
	uint32_t readers = 0;

	*step = *operand = 0;

	if (t->place != SPYRE_SDSC_ARGUMENT || t->first >= t->last)
		return false;
	for (uint32_t i = t->first; i <= t->last; i++) {
		const struct build_step *s = &p->step[i];
		bool reads = false;

		for (uint32_t k = 0; k < s->sdsc.num_tensors; k++) {
			if (s->tensor[k] != tensor)
				continue;
			if (k == s->sdsc.output || s->group != p->step[t->first].group ||
			    s->offset[k] || !varies_everywhere(s, k))
				return false;
			if (!readers && !reads) {
				*step = i;
				*operand = k;
			} else if (!plan_same_walk(&p->step[*step], *operand, s, k)) {
				return false;
			}
			reads = true;
		}
		readers += reads;
	}
	return readers > 1;
}

static void collect(struct lx *lx)
{
	struct plan *p = lx->plan;

	lx->count = 0;
	for (uint32_t i = 0; i < p->num_tensors; i++) {
		uint32_t step, operand;
		bool copy = worth_a_copy(p, i, &step, &operand);

		lx->alias[i] = i;
		lx->copy_at[i] = copy ? step : UINT32_MAX;
		if (!copy && !stays(p, i, &step, &operand))
			continue;
		lx->block[lx->count++] = (struct plan_block){
			.bytes = plan_share(&p->step[step], operand), .tensor = i,
			.first = time_of(step) - copy, .last = time_of(p->tensor[i].last) };
	}
}

static struct plan_block *find(struct lx *lx, uint32_t tensor)
{
	for (uint32_t i = 0; i < lx->count; i++)
		if (lx->block[i].tensor == tensor)
			return &lx->block[i];
	return NULL;
}

/* Lets results overwrite an input whose last use is in their step. */
static void share_places(struct lx *lx)
{
	struct plan *p = lx->plan;

	for (uint32_t i = 0; i < p->num_steps; i++) {
		const struct build_step *s = &p->step[i];
		struct plan_block *out = find(lx, s->tensor[s->sdsc.output]);

		if (!out || !(s->op->flags & BUILD_IN_PLACE) || out->first != time_of(i))
			continue;
		for (uint32_t k = 0; k < s->sdsc.output; k++) {
			uint32_t root = lx->alias[s->tensor[k]];
			struct plan_block *in = find(lx, root);

			if (!in || in->last != time_of(i) || in->bytes != out->bytes ||
			    s->sdsc.tensor[k].format != s->sdsc.tensor[s->sdsc.output].format ||
			    !plan_same_walk(s, k, s, s->sdsc.output))
				continue;
			in->last = out->last;
			lx->alias[out->tensor] = root;
			*out = lx->block[--lx->count];
			break;
		}
	}
}

static uint64_t placed_bytes(const struct lx *lx, bool *all)
{
	uint64_t bytes = 0;

	*all = true;
	for (uint32_t i = 0; i < lx->count; i++) {
		bytes += lx->block[i].placed ? lx->block[i].bytes : 0;
		*all = *all && lx->block[i].placed;
	}
	return bytes;
}

/* Places all tensors if they fit, else with results in place, else as many as fit. */
static uint64_t place(struct lx *lx)
{
	uint64_t limit = lx->plan->lx_capacity, used, up, down;
	bool all;

	used = plan_memory(lx->block, lx->count, limit, true);
	placed_bytes(lx, &all);
	if (all)
		return used;
	share_places(lx);
	used = plan_memory(lx->block, lx->count, limit, true);
	up = placed_bytes(lx, &all);
	if (all)
		return used;
	plan_memory(lx->block, lx->count, limit, false);
	down = placed_bytes(lx, &all);
	return plan_memory(lx->block, lx->count, limit, up >= down && !all);
}

/* Makes the step that copies an argument to LX. */
static void make_copy(struct plan *p, uint32_t tensor, uint32_t copy, uint32_t reader,
		      struct build_step *step)
{
	const struct build_step *model = &p->step[reader];
	struct ir_sdsc *s = &step->sdsc;
	uint32_t k = 0;

	while (model->tensor[k] != tensor)
		k++;
	*step = *model;
	step->op = build_op_find("identity");
	step->tensor[0] = tensor;
	step->tensor[1] = copy;
	step->offset[0] = step->offset[1] = 0;
	snprintf(s->op, sizeof(s->op), "identity");
	s->tensor[0] = s->tensor[1] = model->sdsc.tensor[k];
	s->num_tensors = 2;
	s->num_inputs = 1;
	s->input[0] = 0;
	s->output = 1;
	s->num_masks = s->num_constants = 0;
}

/* Inserts the copies before their first readers, which then read the copies. */
static void insert_copies(struct lx *lx, const uint32_t *copy, uint32_t tensors)
{
	struct plan *p = lx->plan;

	for (uint32_t t = 0; t < tensors; t++) {
		uint32_t at = lx->copy_at[t];

		if (copy[t] == UINT32_MAX)
			continue;
		memmove(&p->step[at + 1], &p->step[at], (p->num_steps - at) * sizeof(*p->step));
		p->num_steps++;
		make_copy(p, t, copy[t], at + 1, &p->step[at]);
		for (uint32_t i = at + 1; i < p->num_steps; i++)
			for (uint32_t k = 0; k < p->step[i].sdsc.num_tensors; k++)
				if (p->step[i].tensor[k] == t)
					p->step[i].tensor[k] = copy[t];
		for (uint32_t o = t + 1; o < tensors; o++)
			if (lx->copy_at[o] != UINT32_MAX && lx->copy_at[o] >= at)
				lx->copy_at[o]++;
	}
}

static void settle(struct lx *lx, uint32_t *copy)
{
	struct plan *p = lx->plan;
	uint32_t tensors = p->num_tensors;

	for (uint32_t i = 0; i < tensors; i++) {
		const struct plan_block *b = find(lx, lx->alias[i]);
		struct plan_tensor *t = &p->tensor[i];

		copy[i] = UINT32_MAX;
		if (!b || !b->placed)
			continue;
		if (lx->copy_at[i] != UINT32_MAX) {
			copy[i] = p->num_tensors++;
			t = &p->tensor[copy[i]];
			t->source = (int32_t)i;
		}
		t->place = SPYRE_SDSC_LX;
		t->at = b->at;
		t->bytes = b->bytes;
	}
	insert_copies(lx, copy, tensors);
}

spyre_status plan_lx(struct plan *p)
{
	uint32_t most = p->num_tensors + p->num_args;
	struct lx lx = { .plan = p };
	uint32_t *copy;

	if (!p->use_lx)
		return SPYRE_SUCCESS;
	lx.block = calloc(most, sizeof(*lx.block));
	lx.alias = calloc(most, sizeof(*lx.alias));
	lx.copy_at = calloc(most, sizeof(*lx.copy_at));
	copy = calloc(most, sizeof(*copy));
	if (lx.block && lx.alias && lx.copy_at && copy) {
		collect(&lx);
		p->lx_bytes = place(&lx);
		settle(&lx, copy);
	}
	free(lx.block);
	free(lx.alias);
	free(lx.copy_at);
	if (!copy)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory to plan LX");
	free(copy);
	return SPYRE_SUCCESS;
}
