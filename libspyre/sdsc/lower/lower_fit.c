// SPDX-License-Identifier: MIT
/*
 * Memory that ends before the iteration does. An iteration is padded to whole sticks of all
 * its tensors; a tensor with sticks along another dim, or with shorter ones, has no memory for
 * the padding. The padding needs no computation, so the iteration is cut to the memory.
 */
#include "libspyre/sdsc/lower/lower.h"

#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/lower/lower_fit.h"
#include "libspyre/sdsc/lower/lower_reach.h"
#include "libspyre/sdsc/lower/operations.h"

/* Lists the dims of the argument in the order of device sizes, outermost first. */
static uint32_t device_dims(const struct ir_tensor *t, uint32_t *dim)
{
	uint32_t n = 0;

	for (uint32_t k = t->num_order; k-- > 0;)
		if (t->order[k] == t->stick || t->scale[t->order[k]] > 0)
			dim[n++] = t->order[k];
	return n;
}

/*
 * Computes the gaps of a layout that lacks only padding of the iteration. False for any other
 * layout, which launch_spec_apply() reports.
 */
static bool gaps_of_layout(const struct ir_sdsc *s, const struct ir_tensor *t,
			   const struct launch_spec_arg *arg, int64_t *gap)
{
	uint32_t dim[IR_MAX_DIMS], n = device_dims(t, dim);

	if (arg->device_format != (spyre_format)t->format || arg->device_rank != n + 1 ||
	    arg->device_size[n] != t->lanes)
		return false;
	memcpy(gap, t->gap, sizeof(t->gap));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t d = dim[i];
		int64_t unit = (int64_t)ir_unit(t, d);
		int64_t whole = (int64_t)t->extent[d] * unit - t->gap[d];

		gap[d] = arg->device_size[i] * unit - whole;
		if (gap[d] == t->gap[d] || (t->gap[d] < 0 && gap[d] == -t->gap[d]))
			continue;
		if (t->gap[d] || gap[d] > 0 || -gap[d] >= ir_longest_stick(s, d) || t->scale[d] < 1)
			return false;
	}
	return true;
}

static spyre_status take_layout(struct lower *l, const struct launch_spec *spec,
				struct ir_sdsc *s, struct ir_tensor *t)
{
	int64_t gap[IR_MAX_DIMS];
	spyre_status status;
	uint32_t arg;

	if (t->lx || t->windowed || t->indexed || s->symbolic || !spec->has_args)
		return SPYRE_SUCCESS;
	status = lower_argument(l, t->start[0], &arg);
	if (status || arg >= spec->num_args ||
	    !spec->args[arg].spec.has_layout || !gaps_of_layout(s, t, &spec->args[arg], gap))
		return status;
	memcpy(t->gap, gap, sizeof(gap));
	return ir_place(s, t) ? SPYRE_SUCCESS :
	       lower_unsupported(l, "argument %u has a layout of 2^63 bytes or more", arg);
}

/* Number of elements along a dim that all tensors have memory for. */
static int64_t capacity(const struct ir_sdsc *s, uint32_t dim)
{
	int64_t least = s->size[dim];

	for (uint32_t i = 0; i < s->num_tensors; i++) {
		const struct ir_tensor *t = &s->tensor[i];
		int64_t has = (int64_t)(t->extent[dim] * ir_unit(t, dim));

		if (t->scale[dim] > 0 && t->gap[dim] < 0 && has < least)
			least = has;
	}
	return least;
}

/* Ends the iteration along @dim after @size elements and leaves memory as it is. */
static void end_at(struct ir_sdsc *s, uint32_t dim, int64_t size)
{
	s->size[dim] = size;
	s->el[dim] = size;
	for (uint32_t i = 0; i < s->num_tensors; i++) {
		struct ir_tensor *t = &s->tensor[i];
		int64_t unit = (int64_t)ir_unit(t, dim);

		if (t->scale[dim] > 0)
			t->gap[dim] = ((int64_t)t->extent[dim] - (size + unit - 1) / unit) * unit;
	}
	for (uint32_t i = 0; i < s->num_masks; i++) {
		struct ir_mask *m = &s->mask[i];

		if (m->dim != dim)
			continue;
		m->start = m->start < size ? m->start : size;
		m->length = m->length < size - m->start ? m->length : size - m->start;
	}
}

/*
 * True if no tensor has @dim, so that each of its iterations does the same. The public front-end
 * leaves a dimension of a product in the copies around it.
 */
static bool repeats(const struct ir_sdsc *s, uint32_t dim)
{
	if (s->size[dim] == 1 || s->slices[dim] > 1 || s->symbol[dim][0] || s->size_id[dim])
		return false;
	for (uint32_t i = 0; i < s->num_tensors; i++)
		if (s->tensor[i].scale[dim])
			return false;
	for (uint32_t i = 0; i < s->num_masks; i++)
		if (s->mask[i].dim == dim)
			return false;
	return true;
}

/* Cuts repetitions of copies and conversions, whose output does not accumulate, to one. */
static void drop_repetitions(struct ir_sdsc *s)
{
	lower_rule_fn *rule = lower_rule(s->op);

	if (rule != lower_convert && rule != lower_restickify)
		return;
	for (uint32_t d = 0; d < s->num_dims; d++)
		if (repeats(s, d))
			end_at(s, d, 1);
}

spyre_status lower_fit(struct lower *l, const struct bundle_source *source, struct ir_sdsc *s)
{
	spyre_status status = SPYRE_SUCCESS;

	if (s->has_window)
		return SPYRE_SUCCESS;
	drop_repetitions(s);
	for (uint32_t i = 0; i < s->num_tensors && !status; i++)
		status = take_layout(l, &source->spec, s, &s->tensor[i]);
	if (!status)
		lower_reach(l, source, s);
	for (uint32_t d = 0; d < s->num_dims && !status; d++) {
		int64_t size = capacity(s, d);

		if (size == s->size[d])
			continue;
		if (s->slices[d] > 1 || s->symbol[d][0])
			return lower_unsupported(l, "memory holds %" PRId64 " of the %" PRId64 " elements of %s, which is %s; pad the tensor",
						 size, s->size[d], s->dim[d],
						 s->symbol[d][0] ? "symbolic" :
						 "divided over cores");
		end_at(s, d, size);
	}
	return status;
}
