// SPDX-License-Identifier: MIT
/* Third pass: divisions of all other operations, the stick dim first. */
#include <math.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/lower/lower.h"
#include "libspyre/sdsc/plan/asked.h"
#include "libspyre/sdsc/plan/divide.h"
#include "libspyre/sdsc/plan/matmul.h"
#include "libspyre/sdsc/plan/plan.h"
#include "libspyre/sdsc/plan/span.h"

#define HBM_BYTES_PER_US 204.8e3
#define RING_BYTES_PER_US (128 * 1500.0)	/* per core */
#define LANES_PER_US (64 * 1500.0)	/* per core's SFU */

struct walk {
	const struct ir_sdsc *s;
	uint32_t whole;
	const int64_t *least;
	int64_t slices[IR_MAX_DIMS];
	void (*visit)(void *arg, const int64_t *slices);
	void *arg;
};

static void walk(struct walk *w, uint32_t dim, int64_t cores)
{
	int64_t points;

	if (dim == w->s->num_dims) {
		w->visit(w->arg, w->slices);
		return;
	}
	points = w->whole >> dim & 1 ? 1 : ir_points(w->s, dim);
	for (int64_t n = 1; n <= points && n <= cores; n++) {
		if (points % n || n < w->least[dim])
			continue;
		w->slices[dim] = n;
		walk(w, dim + 1, cores / n);
	}
}

void plan_each(const struct ir_sdsc *s, uint32_t whole, const int64_t *least, uint32_t cores,
	       void (*visit)(void *arg, const int64_t *slices), void *arg)
{
	struct walk w = { .s = s, .whole = whole, .least = least, .visit = visit, .arg = arg };

	walk(&w, 0, cores);
}

/*
 * Models the time as the longest of three: bytes of all cores at the bandwidth of
 * device memory, bytes of one core at that of its ring, and points of one core at
 * the SFU's rate. Partial results count as often as they are written.
 */
static double plain_cost(const struct build_step *step, const int64_t *slices)
{
	const struct ir_sdsc *s = &step->sdsc;
	double points = 1, cores = 1, memory = 0, all = 0;

	for (uint32_t d = 0; d < s->num_dims; d++) {
		points *= (double)s->size[d] / (double)slices[d];
		cores *= (double)slices[d];
	}
	for (uint32_t i = 0; i < s->num_tensors; i++) {
		const struct ir_tensor *t = &s->tensor[i];
		double own = t->word;

		for (uint32_t d = 0; d < s->num_dims; d++)
			if (t->scale[d] > 0)
				own *= (double)s->size[d] / (double)slices[d];
			else if (d == t->stick)
				own *= t->lanes;
		all += own;
		memory += t->lx ? 0 : own * cores;
	}
	return fmax(fmax(memory / HBM_BYTES_PER_US, all / RING_BYTES_PER_US),
		    points / LANES_PER_US);
}

double plan_cost(const struct build_step *step, const int64_t *slices)
{
	return step->op->kind == BUILD_MATMUL ? plan_matmul_cost(&step->sdsc, slices) :
						plain_cost(step, slices);
}

struct ranking {
	const struct build_step *step;
	struct plan_choice *choice;
	uint32_t count, capacity;
};

static int64_t cores_of(const int64_t *slices, uint32_t num_dims)
{
	int64_t cores = 1;

	for (uint32_t d = 0; d < num_dims; d++)
		cores *= slices[d];
	return cores;
}

/* Orders choices by cost; of equal ones the one with more busy cores comes first. */
static bool beats(const struct plan_choice *a, const struct plan_choice *b, uint32_t num_dims)
{
	if (a->cost != b->cost)
		return a->cost < b->cost;
	return cores_of(a->slices, num_dims) > cores_of(b->slices, num_dims);
}

static void rank(void *arg, const int64_t *slices)
{
	struct ranking *r = arg;
	uint32_t n = r->step->sdsc.num_dims, at = r->count;
	struct plan_choice c = { .cost = plan_cost(r->step, slices) };

	if (!memcmp(slices, r->step->sdsc.slices, n * sizeof(*slices)))
		return;
	memcpy(c.slices, slices, n * sizeof(*slices));
	while (at && beats(&c, &r->choice[at - 1], n))
		at--;
	if (at >= r->capacity)
		return;
	if (r->count < r->capacity)
		r->count++;
	memmove(&r->choice[at + 1], &r->choice[at], (r->count - 1 - at) * sizeof(c));
	r->choice[at] = c;
}

uint32_t plan_choices(const struct build_step *step, uint32_t cores, struct plan_choice *choice,
		      uint32_t capacity)
{
	static const int64_t none[IR_MAX_DIMS];	/* no dim has a minimum of slices */
	struct ranking r = { .step = step, .choice = choice, .capacity = capacity };

	plan_each(&step->sdsc, step->whole | step->reduced, none, cores, rank, &r);
	return r.count;
}

struct division {
	struct ir_sdsc *s;
	const int64_t *least;
	uint32_t done;
	int64_t cores;		/* cores left for this and the remaining dims */
};

/* Gives a dim as many cores as it can use, except those that the other dims require. */
static void take(struct division *v, uint32_t dim)
{
	int64_t rest = v->cores;

	for (uint32_t d = 0; d < v->s->num_dims; d++)
		if (d != dim && !(v->done >> d & 1))
			rest /= v->least[d];
	v->s->slices[dim] = plan_divisor(ir_points(v->s, dim), rest);
	v->cores /= v->s->slices[dim];
	v->done |= 1u << dim;
}

static int largest(const struct division *v, uint32_t among)
{
	int best = -1;

	for (uint32_t d = 0; d < v->s->num_dims; d++)
		if ((among >> d & 1) && !(v->done >> d & 1) &&
		    (best < 0 || ir_points(v->s, d) > ir_points(v->s, (uint32_t)best)))
			best = (int)d;
	return best;
}

bool plan_partial_fits(const struct build_step *step)
{
	const struct ir_sdsc *s = &step->sdsc;
	const struct ir_tensor *out = &s->tensor[s->output];
	double bytes = 4;

	for (uint32_t d = 0; d < s->num_dims; d++)
		if (out->scale[d] > 0)
			bytes *= (double)s->size[d] / (double)s->slices[d];
	return bytes <= PLAN_PARTIAL_BYTES;
}

/* Divides the stick dim, then the others from the largest down, and reduced dims last. */
static void divide_box(struct build_step *step, const int64_t *least, uint32_t whole,
		       uint32_t reduced, int64_t cores)
{
	struct ir_sdsc *s = &step->sdsc;
	uint32_t all = (1u << s->num_dims) - 1, stick = s->tensor[s->output].stick;
	struct division v = { .s = s, .least = least, .cores = cores };
	int d;

	for (uint32_t i = 0; i < s->num_dims; i++)
		s->slices[i] = whole >> i & 1 ? 1 : least[i];
	v.done = whole;
	if (!((whole | reduced) >> stick & 1))
		take(&v, stick);
	while ((d = largest(&v, all & ~reduced)) >= 0)
		take(&v, (uint32_t)d);
	while ((d = largest(&v, reduced)) >= 0 && plan_partial_fits(step))
		take(&v, (uint32_t)d);
}

static int dim_of_key(const struct build_step *step, int8_t key)
{
	for (uint32_t d = 0; d < step->sdsc.num_dims; d++)
		if (step->key[d] == key && key != BUILD_NO_KEY)
			return (int)d;
	return -1;
}

/* Dims that a member of a group cannot be divided along; the sticks of products are fused whole. */
static uint32_t whole_in_group(const struct build_step *step)
{
	uint32_t whole = step->whole | step->reduced;

	if (step->op->kind == BUILD_MATMUL)
		whole |= 1u << step->sdsc.tensor[0].stick | 1u << step->sdsc.tensor[2].stick;
	return whole;
}

/* A product that may be fused has the same order of sums if it is not. */
static uint32_t whole_alone(const struct build_step *step)
{
	return step->whole | (step->fused ? 1u << step->sdsc.tensor[0].stick : 0);
}

/* Dims (bits) that not all members of a group walk alike, which are not divided. */
static uint32_t common_whole(const struct plan *p, uint32_t leader)
{
	const struct build_step *first = &p->step[leader];
	uint32_t whole = whole_in_group(first);

	for (uint32_t d = 0; d < first->sdsc.num_dims; d++)
		for (uint32_t i = 0; i < p->num_steps; i++) {
			const struct build_step *other = &p->step[i];
			int e;

			if (other->group != leader)
				continue;
			e = dim_of_key(other, first->key[d]);
			if (e < 0 || other->sdsc.size[e] != first->sdsc.size[d] ||
			    (whole_in_group(other) >> e & 1) ||
			    ir_points(&other->sdsc, (uint32_t)e) !=
			    ir_points(&first->sdsc, d))
				whole |= 1u << d;
		}
	return whole;
}

static void follow(struct build_step *step, const struct build_step *leader)
{
	for (uint32_t d = 0; d < step->sdsc.num_dims; d++) {
		int e = dim_of_key(leader, step->key[d]);

		step->sdsc.slices[d] = e >= 0 && step->sdsc.size[d] == leader->sdsc.size[e] ?
				       leader->sdsc.slices[e] : 1;
	}
}

/* Finds the fewest slices for all members, by the leader's dims. */
static spyre_status group_span(struct plan *p, uint32_t leader, int64_t *least)
{
	struct build_step *first = &p->step[leader];

	for (uint32_t i = leader; i < p->num_steps; i++) {
		struct build_step *step = &p->step[i];
		int64_t own[IR_MAX_DIMS];

		if (step->group != leader)
			continue;
		for (uint32_t d = 0; d < step->sdsc.num_dims; d++) {
			int e = dim_of_key(first, step->key[d]);

			own[d] = e >= 0 && i != leader ? least[e] : 1;
		}
		TRY(plan_span(step, p->cores, own));
		for (uint32_t d = 0; d < step->sdsc.num_dims; d++) {
			int e = i == leader ? (int)d : dim_of_key(first, step->key[d]);

			if (e >= 0 && own[d] > least[e])
				least[e] = own[d];
		}
	}
	return SPYRE_SUCCESS;
}

static void cheaper(void *arg, const int64_t *slices)
{
	struct ranking *r = arg;
	uint32_t n = r->step->sdsc.num_dims;
	struct plan_choice c = { .cost = plan_cost(r->step, slices) };

	memcpy(c.slices, slices, n * sizeof(*slices));
	if (r->count && !beats(&c, r->choice, n))
		return;
	*r->choice = c;
	r->count = 1;
}

/* Tries all divisions, because windows overlap and channels are often few. */
static void divide_window(struct build_step *step, const int64_t *least, uint32_t cores)
{
	struct plan_choice best = { .cost = 0 };
	struct ranking r = { .step = step, .choice = &best, .capacity = 1 };

	plan_each(&step->sdsc, step->whole, least, cores, cheaper, &r);
	if (r.count)
		memcpy(step->sdsc.slices, best.slices, sizeof(best.slices));
}

spyre_status plan_divide(struct plan *p)
{
	for (uint32_t i = 0; i < p->num_steps; i++) {
		struct build_step *step = &p->step[i];
		int64_t least[IR_MAX_DIMS];
		bool alone = true;

		for (uint32_t d = 0; d < IR_MAX_DIMS; d++)
			least[d] = 1;

		if (step->group != i) {
			follow(step, &p->step[step->group]);
			continue;
		}
		for (uint32_t k = 0; k < p->num_steps; k++)
			alone = alone && (k == i || p->step[k].group != i);
		if (plan_is_asked(step)) {
			TRY(plan_asked(step, p->cores));
			continue;
		}
		TRY(group_span(p, i, least));
		if (step->op->kind == BUILD_MATMUL)
			plan_matmul(step, least, alone ? whole_alone(step) : common_whole(p, i),
				    p->cores);
		else if (step->op->kind == BUILD_WINDOW)
			divide_window(step, least, p->cores);
		else
			divide_box(step, least, alone ? step->whole : common_whole(p, i),
				   alone ? step->reduced : 0, p->cores);
	}
	return SPYRE_SUCCESS;
}
