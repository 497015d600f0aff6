// SPDX-License-Identifier: MIT
/* Builder: conversion between layouts and the dims, order and gaps of a tensor. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/layout/stick.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/layout.h"

/* Host dim with the largest stride that divides the stride of device dim @j. */
static int owner(const spyre_sdsc_operand *o, const int64_t *stride, uint32_t j)
{
	int64_t step = o->layout.stride_map[j];
	int best = -1;

	for (uint32_t d = 0; d < o->rank && step > 0; d++)
		if (o->size[d] > 1 && step % stride[d] == 0 &&
		    (best < 0 || stride[d] > stride[best]))
			best = (int)d;
	return best;
}

static spyre_status check_operand(const char *op, uint32_t index, const spyre_sdsc_operand *o)
{
	if (o->rank > SPYRE_MAX_RANK)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: operand %u has rank %u, the limit is %d", op, index,
				   o->rank, SPYRE_MAX_RANK);
	for (uint32_t d = 0; d < o->rank; d++)
		if (o->size[d] < 1 || o->size[d] > INT64_C(1) << 40)
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "%s: operand %u has size[%u] = %" PRId64 "; there is nothing to compute on empty tensors, and 2^40 is the limit",
					   op, index, d, o->size[d]);
	if (o->layout.device_rank < 2 || o->layout.device_rank > SPYRE_MAX_DEVICE_RANK)
		return spyre_error(SPYRE_ERROR_LAYOUT,
				   "%s: operand %u has no valid layout; use a spyre_layout_init function",
				   op, index);
	for (uint32_t j = 0; j < o->layout.device_rank; j++)
		if (o->layout.device_size[j] < 1)
			return spyre_error(SPYRE_ERROR_LAYOUT,
					   "%s: operand %u has device_size[%u] = %" PRId64, op,
					   index, j, o->layout.device_size[j]);
	if (o->layout.device_size[o->layout.device_rank - 1] !=
	    spyre_stick_elements(o->layout.device_format))
		return spyre_error(SPYRE_ERROR_LAYOUT,
				   "%s: operand %u has sticks of %" PRId64 " elements, those of %s have %" PRId64,
				   op, index, o->layout.device_size[o->layout.device_rank - 1],
				   spyre_format_name(o->layout.device_format),
				   (int64_t)spyre_stick_elements(o->layout.device_format));
	if (o->layout.arrangement != SPYRE_EA_STANDARD && o->layout.arrangement != SPYRE_EA_EXX2)
		return spyre_error(SPYRE_ERROR_LAYOUT,
				   "%s: operand %u has element arrangement %d; the builder takes lanes in their plain order",
				   op, index, (int)o->layout.arrangement);
	return SPYRE_SUCCESS;
}

spyre_status build_normalize(const char *op, uint32_t index, spyre_sdsc_operand *o)
{
	spyre_layout *l = &o->layout;
	int64_t stride[SPYRE_MAX_RANK], step = 1;

	TRY(check_operand(op, index, o));
	for (uint32_t d = o->rank; d-- > 0;) {
		stride[d] = step;
		if (__builtin_mul_overflow(step, o->size[d], &step))
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "%s: operand %u has 2^63 elements or more", op, index);
	}
	for (uint32_t j = 0; j < l->device_rank; j++) {
		int dim = l->mapped ? l->dim_map[j] : owner(o, stride, j);

		if (dim >= (int)o->rank)
			dim = -1;
		l->dim_map[j] = (int8_t)dim;
	}
	l->mapped = true;
	return SPYRE_SUCCESS;
}

int build_stick_dim(const spyre_sdsc_operand *o)
{
	const spyre_layout *l = &o->layout;
	int dim = l->device_rank ? l->dim_map[l->device_rank - 1] : -1;

	return dim >= 0 && o->size[dim] > 1 ? dim : -1;
}

void build_layout(spyre_sdsc_operand *o, spyre_format format, int stick, uint32_t pad)
{
	int64_t lanes = spyre_stick_elements(format);
	spyre_layout *l = &o->layout;
	int order[SPYRE_MAX_RANK + 1];
	uint32_t n = 0, r = 0;

	memset(l, 0, sizeof(*l));
	l->struct_size = sizeof(*l);
	l->device_format = format;
	l->mapped = true;
	for (uint32_t d = 0; d < o->rank; d++)
		if ((int)d != stick && (stick >= 0 || o->size[d] > 1 || (pad >> d & 1)))
			order[n++] = (int)d;
	order[n++] = stick;
	if (n >= SPYRE_MAX_DEVICE_RANK)
		return;		/* too many for a layout, which build_normalize() reports */
	for (uint32_t i = 1; i < n; i++)
		l->dim_map[r++] = (int8_t)order[i];
	l->dim_map[r++] = (int8_t)order[0];
	l->dim_map[r++] = (int8_t)stick;
	l->device_rank = r;
	for (uint32_t j = 0; j < r; j++) {
		int dim = l->dim_map[j];
		int64_t size = dim < 0 ? 1 : o->size[dim];

		if (dim >= 0 && (dim == stick || (pad >> dim & 1)))
			size = (size + lanes - 1) / lanes;
		if (dim >= 0 && dim != stick && (pad >> dim & 1))
			size *= lanes;
		l->device_size[j] = j + 1 == r ? lanes : size;
		l->stride_map[j] = -1;
	}
}

void build_unsqueeze(spyre_sdsc_operand *o, uint32_t dim)
{
	spyre_layout *l = &o->layout;

	memmove(&o->size[dim + 1], &o->size[dim], (o->rank - dim) * sizeof(o->size[0]));
	o->size[dim] = 1;
	o->rank++;
	for (uint32_t j = 0; j < l->device_rank; j++)
		l->dim_map[j] += l->dim_map[j] >= (int)dim;
}

void build_swap_dims(spyre_sdsc_operand *o, uint32_t a, uint32_t b)
{
	int64_t size = o->size[a];
	spyre_layout *l = &o->layout;

	o->size[a] = o->size[b];
	o->size[b] = size;
	for (uint32_t j = 0; j < l->device_rank; j++)
		l->dim_map[j] = (int8_t)(l->dim_map[j] == (int)a ? (int)b :
					 l->dim_map[j] == (int)b ? (int)a : l->dim_map[j]);
}

/* Size that the iteration space requires of device dim @j. */
static int64_t wanted(const struct ir_sdsc *s, const struct ir_tensor *t,
		      const spyre_sdsc_operand *o, const int *dim, uint32_t j)
{
	int host = o->layout.dim_map[j];

	if (host < 0 || dim[host] < 0)
		return 1;
	if ((uint32_t)dim[host] != t->stick)
		return s->size[dim[host]];
	return t->scale[t->stick] < 1 ? 1 : (s->size[t->stick] + t->lanes - 1) / t->lanes;
}

static spyre_status refuse(const struct ir_sdsc *s, const char *op, const struct ir_tensor *t,
			   const spyre_sdsc_operand *o, const int *dim)
{
	char want[192] = "", got[512];
	size_t used = 0;

	for (uint32_t j = 0; j + 1 < o->layout.device_rank && used < sizeof(want); j++)
		used += (size_t)snprintf(want + used, sizeof(want) - used, "%" PRId64 ", ",
					 wanted(s, t, o, dim, j));
	spyre_layout_format_string(&o->layout, got, sizeof(got));
	return spyre_error(SPYRE_ERROR_LAYOUT,
			   "%s: operand %u needs device_size [%s%u], its layout is %s", op,
			   s->num_tensors - 1, want, t->lanes, got);
}

static bool is_tile(const struct ir_tensor *t, const spyre_sdsc_operand *o, const int *dim,
		    uint32_t j)
{
	const spyre_layout *l = &o->layout;
	int host = l->dim_map[j];

	return host < 0 ? l->dim_map[l->device_rank - 1] < 0 :
	       host == l->dim_map[l->device_rank - 1] || dim[host] == (int)t->stick;
}

/* Adds an iteration dim of size 1, for a device dim of a tensor that is longer. */
static int add_single(struct ir_sdsc *s)
{
	if (s->num_dims == IR_MAX_DIMS)
		return -1;
	snprintf(s->dim[s->num_dims], sizeof(s->dim[0]), "one%u", s->num_dims);
	s->size[s->num_dims] = 1;
	return (int)s->num_dims++;
}

void build_share_singles(struct ir_sdsc *s, uint32_t first)
{
	for (uint32_t d = first; d < s->num_dims; d++)
		for (uint32_t i = 0; i < s->num_tensors && s->size[d] == 1; i++) {
			struct ir_tensor *t = &s->tensor[i];

			if (t->scale[d])
				continue;
			t->scale[d] = 1;
			t->order[t->num_order++] = d;
		}
}

spyre_status build_place_tensor(struct ir_sdsc *s, const char *op, const spyre_sdsc_operand *o,
				const int *dim, uint32_t stick, bool varies)
{
	struct ir_tensor *t = &s->tensor[s->num_tensors++];
	const spyre_layout *l = &o->layout;
	uint32_t seen = 0;

	memset(t, 0, sizeof(*t));
	t->format = (enum spyre_fmt)l->device_format;
	t->lanes = (uint32_t)spyre_stick_elements(l->device_format);
	t->word = SPYRE_STICK_BYTES / t->lanes;
	t->stick = stick;
	t->scale[stick] = varies ? 1 : -2;
	for (uint32_t j = l->device_rank - 1; j-- > 0;) {
		bool tile = is_tile(t, o, dim, j);
		int d = tile ? (int)stick : l->dim_map[j] < 0 ? -1 : dim[l->dim_map[j]];
		int64_t need = 1, capacity = l->device_size[j];

		/* A dim of the stick's own dim that follows its tile index. */
		if (d >= 0 && l->dim_map[j] < 0 && (seen >> d & 1)) {
			tile = false;
			d = -1;
		}
		/* Dims of size 1 do not affect addresses. */
		if (capacity == 1 && (d < 0 || (seen >> d & 1) || (!tile && s->size[d] > 1)))
			continue;
		if (d < 0)
			d = add_single(s);
		if (d < 0 || (seen >> d & 1))
			return refuse(s, op, t, o, dim);
		if (!tile)
			t->scale[d] = 1;
		if (t->scale[d] > 0)
			need = tile ? (s->size[d] + t->lanes - 1) / t->lanes : s->size[d];
		if (capacity < need)
			return refuse(s, op, t, o, dim);
		seen |= 1u << d;
		t->order[t->num_order++] = (uint32_t)d;
		t->gap[d] = (capacity - need) * (tile ? t->lanes : 1);
	}
	if (!(seen >> stick & 1)) {
		if (varies && s->size[stick] > t->lanes)
			return refuse(s, op, t, o, dim);
		t->order[t->num_order++] = stick;
		seen |= 1u << stick;
	}
	for (uint32_t d = 0; d < o->rank; d++)
		if (dim[d] >= 0 && !(seen >> dim[d] & 1))
			return refuse(s, op, t, o, dim);
	return SPYRE_SUCCESS;
}
