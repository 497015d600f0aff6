// SPDX-License-Identifier: MIT
/* Builder: how the work is divided over the cores. */
#include "libspyre/sdsc/build.h"

/* The largest divisor of @n that is at most @limit. */
static int64_t divisor(int64_t n, int64_t limit)
{
	for (int64_t d = n < limit ? n : limit; d > 1; d--)
		if (n % d == 0)
			return d;
	return 1;
}

/* Points of a dim that can be divided: whole sticks of the tensors along it. */
static int64_t points(const struct ir_sdsc *s, uint32_t dim)
{
	int64_t unit = 1;

	for (uint32_t i = 0; i < s->num_tensors; i++)
		if (s->tensor[i].stick == dim && s->tensor[i].lanes > unit)
			unit = s->tensor[i].lanes;
	return s->size[dim] / unit;
}

/* The stick dim first, then the others from the largest down; @skip is not divided. */
static void divide_box(struct ir_sdsc *s, uint32_t stick, uint32_t skip, int64_t cores)
{
	uint32_t done = skip;

	if (!(skip >> stick & 1)) {
		s->slices[stick] = divisor(points(s, stick), cores);
		cores /= s->slices[stick];
		done |= 1u << stick;
	}
	for (;;) {
		int best = -1;

		for (uint32_t d = 0; d < s->num_dims; d++)
			if (!(done >> d & 1) && (best < 0 || points(s, d) > points(s, best)))
				best = (int)d;
		if (best < 0)
			return;
		s->slices[best] = divisor(points(s, best), cores);
		cores /= s->slices[best];
		done |= 1u << best;
	}
}

/*
 * As many cores as the shape allows; among such divisions the one that reads
 * least: A is read once per slice of N, B once per slice of M.
 */
static void divide_matmul(struct ir_sdsc *s, int64_t cores)
{
	uint32_t n = s->tensor[2].stick, k = s->tensor[0].stick;
	int64_t batch = 1, best_cores = 0, best_cost = 0, rows = 1;
	int m = -1;

	for (uint32_t d = 0; d < s->num_dims; d++) {
		if (d == n || d == k)
			continue;
		if (s->tensor[1].scale[d])
			batch *= s->slices[d] = divisor(points(s, d), cores / batch);
		else
			m = (int)d;
	}
	if (m >= 0)
		rows = s->size[m];
	cores /= batch;
	for (int64_t sm = 1; sm <= cores; sm++)
		for (int64_t sn = 1; sn * sm <= cores; sn++) {
			int64_t cost = rows * sn + s->size[n] * sm;

			if (rows % sm || points(s, n) % sn || sm * sn < best_cores ||
			    (sm * sn == best_cores && cost >= best_cost))
				continue;
			best_cores = sm * sn;
			best_cost = cost;
			if (m >= 0)
				s->slices[m] = sm;
			s->slices[n] = sn;
		}
}

void build_divide(const struct build_op *op, uint32_t cores, struct ir_sdsc *s)
{
	uint32_t stick = s->tensor[s->output].stick;

	for (uint32_t d = 0; d < s->num_dims; d++)
		s->slices[d] = 1;
	if (op->kind == BUILD_MATMUL)
		divide_matmul(s, cores);
	else
		divide_box(s, stick, op->kind == BUILD_REDUCE ? 1u << stick : 0, cores);
}
