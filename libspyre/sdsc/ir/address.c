// SPDX-License-Identifier: MIT
/* Addresses of the elements of a tensor. */
#include "libspyre/sdsc/ir/address.h"

#include <string.h>

uint64_t ir_unit(const struct ir_tensor *t, uint32_t dim)
{
	uint64_t unit = 1;

	for (uint32_t i = 0; i < t->num_parts; i++)
		if (t->part[i].dim == dim)
			unit *= t->part[i].size;
	return unit;
}

uint64_t ir_bits(const struct ir_tensor *t, uint32_t dim, uint64_t x)
{
	uint64_t unit = ir_unit(t, dim), place = 0, step = 1, rest = x % unit;

	if (t->scale[dim] < 1)
		return 0;
	for (uint32_t i = 0; i < t->num_parts; i++) {
		if (t->part[i].dim == dim) {
			place += rest % t->part[i].size * step;
			rest /= t->part[i].size;
		}
		step *= t->part[i].size;
	}
	return x / unit * t->stride[dim] * 8 + place * spyre_fmt_bits(t->format);
}

bool ir_breaks(const struct ir_tensor *t, uint32_t dim, uint64_t x)
{
	uint64_t run = 1;

	if (t->scale[dim] < 1)
		return false;
	for (uint32_t i = 0; i < t->num_parts; i++) {
		if (t->part[i].dim != dim)
			continue;
		run *= t->part[i].size;
		if (run == x)
			return true;
	}
	return false;
}

static const struct ir_axis *axis_of(const struct ir_sdsc *s, const struct ir_tensor *t,
				     uint32_t dim)
{
	for (uint32_t k = 0; k < 2 && t->windowed; k++)
		if (s->axis[k].dim == dim)
			return &s->axis[k];
	return NULL;
}

int64_t ir_share(const struct ir_sdsc *s, const struct ir_tensor *t, uint32_t dim)
{
	const struct ir_axis *a = axis_of(s, t, dim);
	int64_t taps, reach;

	if (t->divided)
		return s->size[dim] / t->slices[dim];
	if (!a)
		return s->el[dim];
	taps = a->tap == IR_NO_DIM ? 1 : s->el[a->tap];
	reach = (s->el[dim] - 1) * a->stride + (taps - 1) * a->dilation + 1;
	return reach < a->size ? reach : a->size;
}

static int64_t whole(const struct ir_sdsc *s, const struct ir_tensor *t, uint32_t dim)
{
	const struct ir_axis *a = axis_of(s, t, dim);

	return a ? a->size : s->size[dim];
}

bool ir_place(const struct ir_sdsc *s, struct ir_tensor *t)
{
	uint64_t step = SPYRE_STICK_BYTES, row = 0;

	if (!t->num_parts) {
		t->num_parts = 1;
		t->part[0] = (struct ir_part){ t->stick, t->lanes };
	}
	for (uint32_t k = 0; k < t->num_order; k++) {
		uint32_t d = t->order[k];
		uint64_t n = 1, unit = ir_unit(t, d);

		t->stride[d] = 0;
		if (t->scale[d] > 0) {
			/* A core's LX holds that core's share only. */
			n = (uint64_t)(t->lx ? ir_share(s, t, d) : whole(s, t, d));
			n = (n + unit - 1) / unit;
			t->stride[d] = step;
		}
		/* The parser ensures that a negative gap is not longer than the dim. */
		n = (uint64_t)((int64_t)n + t->gap[d] / (int64_t)unit);
		t->extent[d] = n;
		if (!row && t->rows && (t->indexed >> d & 1) && (n > 1 || d == t->stick))
			row = d == t->stick ? t->word : step;
		if (__builtin_mul_overflow(step, n, &step) || step > INT64_MAX)
			return false;
	}
	t->row = t->indexed ? row ?: step : 0;
	return true;
}

int64_t ir_longest_stick(const struct ir_sdsc *s, uint32_t dim)
{
	int64_t longest = 1;

	for (uint32_t t = 0; t < s->num_tensors; t++)
		if (s->tensor[t].scale[dim] > 0 && (int64_t)ir_unit(&s->tensor[t], dim) > longest)
			longest = (int64_t)ir_unit(&s->tensor[t], dim);
	return longest;
}

void ir_negate_gaps(struct ir_sdsc *s)
{
	if (strcmp(s->op, "ReStickifyOpHBM"))
		return;
	for (uint32_t i = 0; i < s->num_tensors; i++) {
		struct ir_tensor *t = &s->tensor[i];

		for (uint32_t d = 0; d < s->num_dims; d++) {
			int64_t stick = ir_longest_stick(s, d);

			/* Padded dims are not divided, and their padding is less than a stick. */
			if (t->lx || t->scale[d] < 1 || ir_unit(t, d) > 1 || t->gap[d] < 1 ||
			    t->gap[d] >= stick || s->size[d] % stick || s->slices[d] > 1 ||
			    t->stated >> d & 1)
				continue;
			t->gap[d] = -t->gap[d];
		}
		/* Cannot overflow, because the tensor takes less memory than before. */
		ir_place(s, t);
	}
}

int64_t ir_points(const struct ir_sdsc *s, uint32_t dim)
{
	int64_t unit = 1;

	for (uint32_t i = 0; i < s->num_tensors; i++)
		if (s->tensor[i].stick == dim && s->tensor[i].lanes > unit)
			unit = s->tensor[i].lanes;
	return s->size[dim] / unit;
}
