// SPDX-License-Identifier: MIT
/*
 * Groups: steps whose intermediates LX can keep, because each core reads only the
 * share that it wrote. All members of a group have the same division.
 */
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/plan/asked.h"
#include "libspyre/sdsc/plan/group.h"
#include "libspyre/sdsc/plan/plan.h"
#include "libspyre/sdsc/plan/span.h"

/* Key of a dim in an operand: what a product sums over is the last dim of its first factor. */
static int key_of(const struct build_step *step, uint32_t tensor, uint32_t d)
{
	if (step->op->kind == BUILD_MATMUL && !tensor && d == step->sdsc.tensor[0].stick)
		return 0;
	return step->key[d];
}

/* Host dims that an operand varies along, as bits by key. */
static uint64_t keys_of(const struct build_step *step, uint32_t tensor)
{
	const struct ir_tensor *t = &step->sdsc.tensor[tensor];
	uint64_t keys = 0;

	for (uint32_t d = 0; d < step->sdsc.num_dims; d++)
		if (t->scale[d] > 0 && key_of(step, tensor, d) != BUILD_NO_KEY)
			keys |= 1ull << key_of(step, tensor, d);
	return keys;
}

static int64_t size_along(const struct build_step *step, uint32_t tensor, int key)
{
	for (uint32_t d = 0; d < step->sdsc.num_dims; d++)
		if (step->sdsc.tensor[tensor].scale[d] > 0 && key_of(step, tensor, d) == key)
			return step->sdsc.size[d];
	return 0;
}

static bool has_gap(const struct build_step *step, uint32_t tensor)
{
	for (uint32_t d = 0; d < step->sdsc.num_dims; d++)
		if (step->sdsc.tensor[tensor].gap[d])
			return true;
	return false;
}

bool plan_same_walk(const struct build_step *a, uint32_t ta, const struct build_step *b,
		    uint32_t tb)
{
	uint64_t keys = keys_of(a, ta);

	if (keys != keys_of(b, tb) || has_gap(a, ta) || has_gap(b, tb))
		return false;
	for (int key = 0; key < 64; key++)
		if ((keys >> key & 1) && size_along(a, ta, key) != size_along(b, tb, key))
			return false;
	return true;
}

/* Host dims that a step can be divided along. */
static uint64_t divisible(const struct build_step *step)
{
	uint64_t keys = 0;

	for (uint32_t d = 0; d < step->sdsc.num_dims; d++)
		if (!((step->whole | step->reduced) >> d & 1) && step->key[d] != BUILD_NO_KEY &&
		    ir_points(&step->sdsc, d) > 1)
			keys |= 1ull << step->key[d];
	return keys;
}

/* Number of busy cores of a step that is divided along @keys only. */
static int64_t busy(const struct build_step *step, uint64_t keys, int64_t cores)
{
	int64_t used = 1;

	for (uint32_t d = 0; d < step->sdsc.num_dims; d++)
		if (step->key[d] != BUILD_NO_KEY && (keys >> step->key[d] & 1))
			used *= plan_divisor(ir_points(&step->sdsc, d), cores / used);
	return used;
}

static bool joins(const struct build_step *step)
{
	return step->op->kind == BUILD_POINTWISE || step->op->kind == BUILD_REDUCE;
}

struct groups {
	struct plan *plan;
	uint64_t *keys;		/* by group: dims that all members can be divided along */
};

/* Joins the groups of a producer and a reader unless that leaves most cores idle. */
static void join(struct groups *g, uint32_t from, uint32_t out, uint32_t to, uint32_t in)
{
	struct plan *p = g->plan;
	uint32_t a = p->step[from].group, b = p->step[to].group, low = a < b ? a : b;
	uint64_t keys = g->keys[a] & g->keys[b] & keys_of(&p->step[from], out);

	/* What fused steps compute is the same in every graph, so no other step joins them. */
	if (a == b || p->step[from].fused != p->step[to].fused)
		return;
	if (!joins(&p->step[from]) || !joins(&p->step[to]) ||
	    !plan_asked_alike(&p->step[from], &p->step[to], keys) ||
	    !plan_same_walk(&p->step[from], out, &p->step[to], in))
		return;
	for (uint32_t i = 0; i < p->num_steps; i++) {
		const struct build_step *step = &p->step[i];

		if ((step->group != a && step->group != b) || plan_is_asked(step))
			continue;
		if (2 * busy(step, keys, p->cores) < busy(step, divisible(step), p->cores))
			return;
	}
	for (uint32_t i = 0; i < p->num_steps; i++)
		if (p->step[i].group == a || p->step[i].group == b)
			p->step[i].group = low;
	g->keys[low] = keys;
}

/* Host dims that a fused step can be divided along: products only along rows and batches. */
static uint64_t fused_keys(const struct build_step *step)
{
	uint64_t keys = divisible(step);

	for (uint32_t d = 0; d < step->sdsc.num_dims && step->op->kind == BUILD_MATMUL; d++)
		if (d == step->sdsc.tensor[2].stick)
			keys &= ~(1ull << step->key[d]);
	return keys;
}

/*
 * Makes a group of the steps of one number, with the products among them, unless that
 * leaves most cores idle: for few rows it is better to divide keys.
 */
static void fuse(struct groups *g, uint32_t first)
{
	struct plan *p = g->plan;
	uint32_t number = p->step[first].fused;
	uint64_t keys = UINT64_MAX;

	for (uint32_t i = first; i < p->num_steps; i++) {
		if (p->step[i].fused != number)
			continue;
		if (plan_is_asked(&p->step[i]))
			return;
		keys &= fused_keys(&p->step[i]);
	}
	for (uint32_t i = first; i < p->num_steps; i++)
		if (p->step[i].fused == number &&
		    2 * busy(&p->step[i], keys, p->cores) <
		    busy(&p->step[i], divisible(&p->step[i]), p->cores))
			return;
	for (uint32_t i = first; i < p->num_steps; i++)
		if (p->step[i].fused == number)
			p->step[i].group = first;
	g->keys[first] = keys;
}

/* The only step that writes an intermediate, -1 if there are several. */
static int writer(const struct plan *p, uint32_t tensor)
{
	int found = -1;

	for (uint32_t i = p->tensor[tensor].first; i <= p->tensor[tensor].last; i++)
		if (p->step[i].tensor[p->step[i].sdsc.output] == tensor) {
			if (found >= 0)
				return -1;
			found = (int)i;
		}
	return found;
}

void plan_groups(struct plan *p)
{
	uint64_t keys[BUILD_MAX_STEPS];
	struct groups g = { .plan = p, .keys = keys };

	for (uint32_t i = 0; i < p->num_steps; i++) {
		p->step[i].group = i;
		keys[i] = divisible(&p->step[i]);
	}
	/* Without LX as well, because the division of a product may change its bits. */
	for (uint32_t i = 0, last = 0; i < p->num_steps; i++)
		if (p->step[i].fused > last) {
			last = p->step[i].fused;
			fuse(&g, i);
		}
	if (!p->use_lx)
		return;
	for (uint32_t i = 0; i < p->num_steps; i++) {
		const struct ir_sdsc *s = &p->step[i].sdsc;

		for (uint32_t k = 0; k < s->num_tensors; k++) {
			uint32_t t = p->step[i].tensor[k];
			int from;

			if (k == s->output || p->tensor[t].place == SPYRE_SDSC_ARGUMENT)
				continue;
			from = writer(p, t);
			if (from >= 0 && (uint32_t)from < i &&
			    (p->step[from].op->flags & BUILD_LX))
				join(&g, (uint32_t)from, p->step[from].sdsc.output, i, k);
		}
	}
}
