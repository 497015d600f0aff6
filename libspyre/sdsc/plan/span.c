// SPDX-License-Identifier: MIT
/* First pass: minimum splits, which limit the bytes of a tensor that a core addresses. */
#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/lower/lower.h"
#include "libspyre/sdsc/plan/plan.h"
#include "libspyre/sdsc/plan/span.h"

int64_t plan_divisor(int64_t n, int64_t limit)
{
	for (int64_t d = n < limit ? n : limit; d > 1; d--)
		if (n % d == 0)
			return d;
	return 1;
}

/* The next larger divisor of a dim's points, 0 if there is none. */
static int64_t next_divisor(int64_t points, int64_t slices, int64_t most)
{
	for (int64_t n = slices + 1; n <= points && n <= most; n++)
		if (points % n == 0)
			return n;
	return 0;
}

static int64_t product(const int64_t *slices, uint32_t n)
{
	int64_t p = 1;

	for (uint32_t d = 0; d < n; d++)
		p *= slices[d];
	return p;
}

/* The dim that contributes most to a tensor's reach and can be divided further. */
static int widest(const struct ir_sdsc *s, const struct ir_tensor *t, const int64_t *least,
		  uint32_t whole, int64_t cores)
{
	uint64_t most = 0;
	int best = -1;

	for (uint32_t d = 0; d < s->num_dims; d++) {
		int64_t unit = d == t->stick ? t->lanes : 1;
		uint64_t reach = (uint64_t)(s->el[d] / unit - 1) * t->stride[d];

		if (t->scale[d] < 1 || (whole >> d & 1) || reach <= most ||
		    !next_divisor(ir_points(s, d), least[d],
				  cores / (product(least, s->num_dims) / least[d])))
			continue;
		most = reach;
		best = (int)d;
	}
	return best;
}

static void split(struct ir_sdsc *s, int64_t *least, uint32_t dim, int64_t cores)
{
	least[dim] = next_divisor(ir_points(s, dim), least[dim],
				  cores / (product(least, s->num_dims) / least[dim]));
	s->el[dim] = s->size[dim] / least[dim];
}

/* Splits K until it fits the PT's counter of 16 bits. */
static spyre_status limit_k(struct ir_sdsc *s, int64_t *least, int64_t cores)
{
	uint32_t k = s->tensor[0].stick;

	while (s->el[k] > (int64_t)SPYRE_MAX_COUNT) {
		int64_t most = cores / (product(least, s->num_dims) / least[k]);

		if (!next_divisor(ir_points(s, k), least[k], most))
			return spyre_error(SPYRE_ERROR_SPAN_LIMIT,
					   "%s: %s of %" PRId64 " does not divide over %" PRId64 " cores so that one has %u at most",
					   s->op, s->dim[k], s->size[k], cores, SPYRE_MAX_COUNT);
		split(s, least, k, cores);
	}
	return SPYRE_SUCCESS;
}

spyre_status plan_span(struct build_step *step, uint32_t cores, int64_t *least)
{
	struct ir_sdsc *s = &step->sdsc;

	for (uint32_t d = 0; d < s->num_dims; d++)
		s->el[d] = s->size[d] / least[d];
	if (step->op->kind == BUILD_MATMUL)
		TRY(limit_k(s, least, cores));
	for (uint32_t i = 0; i < s->num_tensors; i++) {
		struct ir_tensor *t = &s->tensor[i];
		uint64_t box;

		if (!ir_place(s, t))
			return spyre_error(SPYRE_ERROR_LAYOUT, "%s: operand %u has 2^63 bytes or more",
					   s->op, i);
		while ((box = lower_box_bytes(s, t)) > SPAN_LIMIT) {
			int dim = widest(s, t, least, step->whole, cores);

			if (dim < 0)
				return spyre_error(SPYRE_ERROR_SPAN_LIMIT,
						   "%s: operand %u: one of %u cores reaches over %" PRIu64 " bytes, the limit is %llu; use %ssmaller tensors",
						   s->op, i, cores, box, SPAN_LIMIT,
						   cores < SPYRE_MAX_CORES ? "more cores or " : "");
			split(s, least, (uint32_t)dim, cores);
		}
	}
	return SPYRE_SUCCESS;
}
