// SPDX-License-Identifier: MIT
/* Second pass: divisions of matrix products by modelled cost (docs/planning.md). */
#include <math.h>
#include <string.h>

#include "libspyre/sdsc/plan/divide.h"
#include "libspyre/sdsc/plan/matmul.h"
#include "libspyre/sdsc/plan/plan.h"

#define PT_ROWS 8.0
#define TARGET_PASSES 8.0
#define FULL_ROWS (PT_ROWS * TARGET_PASSES)	/* of a core that works with full efficiency */
#define MACS_PER_US 1.536e6		/* per core */
#define HBM_BYTES_PER_US 204.8e3
#define PSUM_US 1.4e-4			/* per element and hop */
#define COHORT 8.0			/* cores that share one fetch */
#define BATCH_EXPONENT 1.4
#define M_PENALTY_US 50.0

struct sizes {
	double m, n, k, batch;		/* per core; batch is the number of sequential products */
	double split_m, split_n, split_k;
};

/* Along these dims the second operand does not vary. */
static bool is_row(const struct ir_sdsc *s, uint32_t d)
{
	return d != s->tensor[0].stick && d != s->tensor[s->output].stick &&
	       s->tensor[1].scale[d] < 1 && !(s->tensor[1].indexed >> d & 1);
}

static struct sizes sizes_of(const struct ir_sdsc *s, const int64_t *slices)
{
	struct sizes z = { 1, 1, 1, 1, 1, 1, 1 };

	for (uint32_t d = 0; d < s->num_dims; d++) {
		double part = (double)s->size[d] / (double)slices[d];

		if (d == s->tensor[0].stick) {
			z.k = part;
			z.split_k = (double)slices[d];
		} else if (d == s->tensor[s->output].stick) {
			z.n = part;
			z.split_n = (double)slices[d];
		} else if (is_row(s, d)) {
			z.m *= part;
			z.split_m *= (double)slices[d];
		} else {
			z.batch *= part;
		}
	}
	return z;
}

double plan_matmul_cost(const struct ir_sdsc *s, const int64_t *slices)
{
	struct sizes z = sizes_of(s, slices);
	double passes = ceil(z.m / PT_ROWS), word = s->tensor[0].word;
	double efficiency = fmin(1, sqrt(passes / TARGET_PASSES));
	double compute = z.m * z.n * z.k / (MACS_PER_US * efficiency);
	double m = z.m * z.split_m, n = z.n * z.split_n, k = z.k * z.split_k;
	/* Cores do not share what they gather. */
	double cohort = s->tensor[1].indexed ? 1 : COHORT;
	double bytes = word * (m * k * ceil(z.split_n / COHORT) + k * n * ceil(z.split_m / cohort) +
			       m * n);
	double psum = z.m * z.n * (z.split_k - 1) * PSUM_US;

	if (s->tensor[1].indexed)
		return (compute + bytes / HBM_BYTES_PER_US) * z.batch;
	return (compute + bytes / HBM_BYTES_PER_US + psum + M_PENALTY_US / z.split_m) *
	       pow(z.batch, BATCH_EXPONENT);
}

struct search {
	struct build_step *step;
	double best;
	bool full;		/* only divisions whose cores have full rows, */
	double split_k;		/* and this many slices of what the product sums over */
};

/* Cores that share columns each read the second operand, which pays only with full rows. */
static bool has_full_rows(const struct sizes *z)
{
	return z->split_m == 1 || fmod(z->m, FULL_ROWS) == 0;
}

static void visit(void *arg, const int64_t *slices)
{
	struct search *search = arg;
	struct ir_sdsc *s = &search->step->sdsc;
	struct sizes z = sizes_of(s, slices);
	double cost = plan_matmul_cost(s, slices);

	if (cost >= search->best)
		return;
	if (search->full && (z.split_k != search->split_k || !has_full_rows(&z)))
		return;
	search->best = cost;
	memcpy(s->slices, slices, s->num_dims * sizeof(*slices));
}

/*
 * The dims of rows if one pass of the PT array computes all of them and columns can be divided:
 * a division of the rows would save no pass, and each of its cores would read the second operand.
 */
static uint32_t rows_of_one_pass(const struct ir_sdsc *s, const int64_t *least, uint32_t whole)
{
	int64_t rows = 1;
	uint32_t dims = 0;

	if (whole >> s->tensor[s->output].stick & 1)
		return 0;
	for (uint32_t d = 0; d < s->num_dims; d++) {
		if (!is_row(s, d))
			continue;
		rows *= s->size[d];
		if (least[d] == 1)
			dims |= 1u << d;
	}
	return rows <= (int64_t)PT_ROWS ? dims : 0;
}

/*
 * Gives cores full rows, where the rows consist of such parts or are fewer. The slices of K stay
 * as they are, and with them the order of sums.
 */
static void fill_rows(struct build_step *step, const int64_t *least, uint32_t whole, uint32_t cores)
{
	const struct ir_sdsc *s = &step->sdsc;
	struct sizes z = sizes_of(s, s->slices);
	double rows = z.m * z.split_m;
	struct search search = { .step = step, .best = INFINITY, .full = true,
				 .split_k = z.split_k };

	if (s->tensor[1].indexed || whole >> s->tensor[s->output].stick & 1)
		return;
	if (rows <= FULL_ROWS || fmod(rows, FULL_ROWS) == 0)
		plan_each(s, whole, least, cores, visit, &search);
}

void plan_matmul(struct build_step *step, const int64_t *least, uint32_t whole, uint32_t cores)
{
	struct search search = { .step = step, .best = INFINITY };

	whole |= rows_of_one_pass(&step->sdsc, least, whole);
	plan_each(&step->sdsc, whole, least, cores, visit, &search);
	fill_rows(step, least, whole, cores);
}
