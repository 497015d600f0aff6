// SPDX-License-Identifier: MIT
/* Steps with a division that the caller requests. */
#include <inttypes.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/plan/asked.h"
#include "libspyre/sdsc/plan/divide.h"

bool plan_is_asked(const struct build_step *step)
{
	for (uint32_t d = 0; d < step->sdsc.num_dims; d++)
		if (step->asked[d])
			return true;
	return false;
}

/* Host dims with requested slices, as bits by key. */
static uint64_t asked_keys(const struct build_step *step)
{
	uint64_t keys = 0;

	for (uint32_t d = 0; d < step->sdsc.num_dims; d++)
		if (step->asked[d] && step->key[d] != BUILD_NO_KEY)
			keys |= 1ull << step->key[d];
	return keys;
}

bool plan_asked_alike(const struct build_step *a, const struct build_step *b, uint64_t keys)
{
	if (asked_keys(a) != asked_keys(b) || (asked_keys(a) & ~keys))
		return false;
	for (uint32_t d = 0; d < a->sdsc.num_dims; d++)
		for (uint32_t e = 0; e < b->sdsc.num_dims; e++)
			if (a->asked[d] && a->key[d] == b->key[e] && a->asked[d] != b->asked[e])
				return false;
	return true;
}

/* Checks the share of one core: K must fit in the PT's counter, partial results in LX. */
static spyre_status check_share(const struct build_step *step)
{
	const struct ir_sdsc *s = &step->sdsc;
	uint32_t k = s->tensor[0].stick;

	if (step->op->kind == BUILD_MATMUL && s->size[k] / s->slices[k] > (int64_t)SPYRE_MAX_COUNT)
		return spyre_error(SPYRE_ERROR_SPAN_LIMIT,
				   "%s: %s of %" PRId64 " in the %" PRId64 " slices that are asked for is more than the %u that one core sums; ask for more",
				   s->op, s->dim[k], s->size[k], s->slices[k], SPYRE_MAX_COUNT);
	for (uint32_t d = 0; d < s->num_dims; d++)
		if ((step->reduced >> d & 1) && s->slices[d] > 1 && !plan_partial_fits(step))
			return spyre_error(SPYRE_ERROR_LX_OVERFLOW,
					   "%s: with %s in the %" PRId64 " slices that are asked for, the partial results of one core take more than %u bytes of LX; divide what is kept, too",
					   s->op, s->dim[d], s->slices[d], PLAN_PARTIAL_BYTES);
	return SPYRE_SUCCESS;
}

spyre_status plan_asked(struct build_step *step, uint32_t cores)
{
	struct ir_sdsc *s = &step->sdsc;
	int64_t product = 1;

	for (uint32_t d = 0; d < s->num_dims; d++) {
		s->slices[d] = step->asked[d] ? step->asked[d] : 1;
		if (s->slices[d] > cores || (product *= s->slices[d]) > cores)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s: %" PRId64 " slices of %s are asked for, %" PRId64 " in all, of %u cores",
					   s->op, s->slices[d], s->dim[d],
					   s->slices[d] > cores ? s->slices[d] : product, cores);
	}
	return check_share(step);
}
