// SPDX-License-Identifier: MIT
/*
 * Overlap of strided boxes: see overlap.h. Two sticks overlap if their distance is less than
 * 128 bytes, so the question is whether a sum of terms, one for each dim of either box, each
 * loop, and the distance, has a solution: sum of step[i] * x[i] = target, 0 <= x[i] <= last[i].
 */
#include "libspyre/sdsc/lower/overlap.h"

#include <stdlib.h>

#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/lower/window.h"

#define MAX_TERMS (2 * (IR_MAX_DIMS + 1) + SPYRE_MAX_LOOPS + 1)
#define MAX_STEPS 65536u

struct term {
	int64_t step, last;
};

struct sum {
	uint32_t num;
	struct term term[MAX_TERMS];	/* ascending; the first one has step 1 */
	/* By number of terms: their largest sum, and the common divisor without the first. */
	int64_t most[MAX_TERMS + 1], divisor[MAX_TERMS + 1];
	int64_t target;
};

/* Elements along a dim that a core reaches; its window ends with the input, before padding. */
static uint64_t reached(const struct ir_sdsc *s, const struct ir_tensor *t, uint32_t dim,
			uint32_t core)
{
	for (uint32_t k = 0; k < 2; k++)
		if (t->windowed && s->axis[k].dim == dim)
			return (uint64_t)window_reach(s, &s->axis[k], core);
	return (uint64_t)ir_share(s, t, dim);
}

void overlap_box(const struct lower *l, uint32_t tensor, uint32_t core, struct overlap_box *box)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *t = &s->tensor[tensor];

	box->at = l->address[tensor][core];
	box->num_dims = 0;
	for (uint32_t d = 0; d < s->num_dims; d++) {
		uint64_t unit = ir_unit(t, d), steps;

		if (!lower_varies(t, d))
			continue;
		steps = (reached(s, t, d, core) + unit - 1) / unit;
		if (steps < 2)
			continue;
		box->dim[box->num_dims].stride = t->stride[d];
		box->dim[box->num_dims++].last = steps - 1;
	}
}

/* Adds a term; a negative step counts down from its last multiple. False if that overflows. */
static bool add(struct sum *sum, int64_t step, uint64_t last)
{
	int64_t whole;

	if (!step || !last)
		return true;
	if (__builtin_mul_overflow(step, last, &whole) || whole == INT64_MIN)
		return false;
	if (step < 0 && __builtin_sub_overflow(sum->target, whole, &sum->target))
		return false;
	sum->term[sum->num++] = (struct term){ step < 0 ? -step : step, (int64_t)last };
	return true;
}

static bool add_all(struct sum *sum, const struct overlap_box *a, const struct overlap_box *b,
		    const uint32_t *iters, uint32_t depth)
{
	bool fits = add(sum, 1, 2 * (SPYRE_STICK_BYTES - 1));

	sum->target = (int64_t)(b->at.offset - a->at.offset) + SPYRE_STICK_BYTES - 1;
	for (uint32_t i = 0; i < a->num_dims; i++)
		fits = fits && add(sum, (int64_t)a->dim[i].stride, a->dim[i].last);
	for (uint32_t i = 0; i < b->num_dims; i++)
		fits = fits && add(sum, -(int64_t)b->dim[i].stride, b->dim[i].last);
	for (uint32_t i = 0; i < depth; i++)
		fits = fits && add(sum, (int64_t)(a->at.per_iter[i] - b->at.per_iter[i]),
				   iters[i] - 1);
	return fits;
}

static int by_step(const void *a, const void *b)
{
	const struct term *x = a, *y = b;

	return x->step < y->step ? -1 : x->step > y->step;
}

/* Merges terms that make up a run of multiples, as the dims of contiguous memory do. */
static bool merge(struct sum *sum)
{
	uint32_t n = 0;

	qsort(sum->term, sum->num, sizeof(sum->term[0]), by_step);
	for (uint32_t i = 0; i < sum->num; i++) {
		struct term *t = &sum->term[i], *before = &sum->term[n ? n - 1 : 0];
		int64_t more;

		if (!n || t->step % before->step || t->step / before->step > before->last + 1) {
			sum->term[n++] = *t;
			continue;
		}
		if (__builtin_mul_overflow(t->step / before->step, t->last, &more) ||
		    __builtin_add_overflow(before->last, more, &before->last))
			return false;
	}
	sum->num = n;
	return true;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static bool measure(struct sum *sum)
{
	for (uint32_t i = 0; i < sum->num; i++) {
		int64_t whole;

		if (__builtin_mul_overflow(sum->term[i].step, sum->term[i].last, &whole) ||
		    __builtin_add_overflow(sum->most[i], whole, &sum->most[i + 1]))
			return false;
		sum->divisor[i + 1] = i ? common_divisor(sum->term[i].step, sum->divisor[i]) : 0;
	}
	return true;
}

/* True if the first @num terms can make @rest. */
static bool solve(const struct sum *sum, uint32_t num, int64_t rest, uint32_t *steps)
{
	const struct term *t = &sum->term[num - 1];
	int64_t least = 0, most;

	if (rest < 0 || rest > sum->most[num])
		return false;
	if (num == 1)
		return true;
	if (rest % sum->divisor[num] > sum->term[0].last)
		return false;
	most = rest / t->step < t->last ? rest / t->step : t->last;
	if (rest > sum->most[num - 1])
		least = (rest - sum->most[num - 1] + t->step - 1) / t->step;
	for (int64_t x = most; x >= least; x--) {
		if (*steps == MAX_STEPS)
			return true;
		(*steps)++;
		if (solve(sum, num - 1, rest - x * t->step, steps))
			return true;
	}
	return false;
}

bool overlap_boxes(const struct overlap_box *a, const struct overlap_box *b,
		   const uint32_t *iters, uint32_t depth)
{
	struct sum sum = { .num = 0 };
	uint32_t steps = 0;

	if (a->at.operand != b->at.operand)
		return false;
	/* A sum beyond 63 bits is beyond the segment, which the encoder refuses. */
	if (!add_all(&sum, a, b, iters, depth) || !merge(&sum) || !measure(&sum))
		return false;
	return solve(&sum, sum.num, sum.target, &steps);
}
