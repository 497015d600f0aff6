// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Checks DMA descriptors. Afterwards no sum of coordinate times stride or
 * coefficient can overflow, so the engine computes without checks.
 */
#include "dma.h"
#include "verify.h"

#define MAX_COUNT 0x80000000u
#define MAX_LANES 256u
#define MAX_SUM (1ull << 62)

/* Adds (count - 1) * factor to *sum; returns false if it exceeds the limit. */
static bool add_reach(u64 *sum, u32 count, u64 factor)
{
	if (count <= 1 || !factor)
		return true;
	if (factor > MAX_SUM / (count - 1))
		return false;
	*sum += (count - 1) * factor;
	return *sum <= MAX_SUM;
}

static bool is_box(const struct spyre_dma_desc *desc)
{
	return desc->flags & SPYRE_DMA_BOX;
}

static bool dims_ok(const struct spyre_dma_desc *desc)
{
	const u32 lanes = is_box(desc) ? MAX_COUNT : MAX_LANES;
	u64 sum = desc->host_offset;
	u32 i, n = desc->num_dims;

	if (!n || n > SPYRE_DMA_MAX_DIMS || sum > MAX_SUM)
		return false;
	for (i = 0; i < SPYRE_DMA_MAX_DIMS; i++) {
		const struct spyre_dma_dim *dim = &desc->dim[i];

		if (dim->reserved)
			return false;
		if (i >= n && (dim->count > 1 || dim->host_stride))
			return false;
		if (i < n && (!dim->count || dim->count > (i == n - 1 ? lanes : MAX_COUNT)))
			return false;
		if (!add_reach(&sum, dim->count, dim->host_stride))
			return false;
	}
	return true;
}

static bool bounds_ok(const struct spyre_dma_desc *desc)
{
	u32 b, i;

	if (desc->num_bounds > SPYRE_DMA_MAX_BOUNDS)
		return false;
	for (b = 0; b < SPYRE_DMA_MAX_BOUNDS; b++) {
		const struct spyre_dma_bound *bound = &desc->bound[b];
		u64 sum = 0;

		if (b >= desc->num_bounds && bound->limit)
			return false;
		for (i = 0; i < SPYRE_DMA_MAX_DIMS; i++) {
			if (bound->coef[i] && (i >= desc->num_dims || b >= desc->num_bounds))
				return false;
			if (!add_reach(&sum, desc->dim[i].count, bound->coef[i]))
				return false;
		}
	}
	return true;
}

/*
 * Checks the device side of a box; *reach becomes the distance of its last element.
 * Repeated elements may be read, but each may be written only once.
 */
static bool box_ok(const struct spyre_dma_desc *desc, u64 *reach)
{
	const struct spyre_dma_box *box = &desc->box;
	u32 b, i;

	*reach = box->device_offset;
	if (desc->num_bounds || *reach > MAX_SUM)
		return false;
	for (i = 0; i < SPYRE_DMA_MAX_DIMS; i++) {
		u32 count = desc->dim[i].count;

		if (i >= desc->num_dims && box->device_stride[i])
			return false;
		if (count > 1 && !(desc->direction == SPYRE_DMA_H2D ? box->device_stride[i] :
				   desc->dim[i].host_stride))
			return false;
		if (!add_reach(reach, count, box->device_stride[i]))
			return false;
	}
	/* The box occupies the first bound. */
	for (b = 1; b < SPYRE_DMA_MAX_BOUNDS; b++) {
		if (desc->bound[b].limit)
			return false;
		for (i = 0; i < SPYRE_DMA_MAX_DIMS; i++)
			if (desc->bound[b].coef[i])
				return false;
	}
	return true;
}

/* Repeated host elements may be read, but each may be written only once. */
static bool repeats_ok(const struct spyre_dma_desc *desc)
{
	u32 b, i;

	if (desc->direction == SPYRE_DMA_H2D)
		return true;
	for (i = 0; i < desc->num_dims; i++) {
		if (desc->dim[i].host_stride || desc->dim[i].count == 1)
			continue;
		for (b = 0; b < desc->num_bounds; b++)
			if (desc->bound[b].coef[i] >= desc->bound[b].limit)
				break;
		if (b == desc->num_bounds)
			return false;
	}
	return true;
}

/* Runs of elements that are contiguous on the device. */
static u64 box_rows(const struct spyre_dma_desc *desc, u64 elements, u64 bytes)
{
	u32 i, lanes = 1;

	for (i = 0; i < desc->num_dims; i++)
		if (desc->dim[i].count > 1 && desc->box.device_stride[i] == bytes)
			lanes = desc->dim[i].count;
	return elements / lanes;
}

static void cost_of(const struct spyre_dma_desc *desc, u64 elements, u64 bytes,
		    struct spyre_counters *cost)
{
	u64 rows = is_box(desc) ? box_rows(desc, elements, bytes) : 0;

	spyre_cost_dma(elements * spyre_fmt_bytes(desc->host_format), elements * bytes, rows,
		       desc->direction == SPYRE_DMA_H2D, cost);
}

enum spyre_stop spyre_dma_check(const struct spyre_dma_desc *desc,
				u64 *device_bytes, struct spyre_counters *cost)
{
	u64 elements = 1, reach = 0, bytes = spyre_fmt_bytes(desc->device_format);
	u32 i;

	if (desc->direction > SPYRE_DMA_D2H || (desc->flags & ~SPYRE_DMA_BOX) ||
	    desc->reserved[0] || desc->reserved[1])
		return SPYRE_STOP_DMA_SHAPE;
	if (!dims_ok(desc))
		return SPYRE_STOP_DMA_SHAPE;
	if (is_box(desc) ? !box_ok(desc, &reach) : !bounds_ok(desc) || !repeats_ok(desc))
		return SPYRE_STOP_DMA_SHAPE;
	if (!spyre_fmt_convertible(desc->host_format, desc->device_format))
		return SPYRE_STOP_DMA_FORMAT;
	for (i = 0; i < desc->num_dims; i++) {
		/* Divides because the product may exceed 64 bits and wrap to a small number. */
		if (desc->dim[i].count > SPYRE_MAX_EXTENT / elements)
			return SPYRE_STOP_DMA_RANGE;
		elements *= desc->dim[i].count;
	}
	if (elements * bytes > SPYRE_MAX_EXTENT || reach + bytes > SPYRE_MAX_EXTENT)
		return SPYRE_STOP_DMA_RANGE;
	*device_bytes = is_box(desc) ? reach + bytes : elements * bytes;
	if (cost)
		cost_of(desc, elements, bytes, cost);
	return SPYRE_STOP_NONE;
}

enum spyre_stop spyre_dma_check_host(const struct spyre_dma_desc *desc, u64 host_bytes)
{
	u64 end = desc->host_offset + spyre_fmt_bytes(desc->host_format);
	u32 i;

	if (!is_box(desc))
		return SPYRE_STOP_NONE;
	for (i = 0; i < desc->num_dims; i++)
		end += (desc->dim[i].count - 1) * desc->dim[i].host_stride;
	return end <= host_bytes ? SPYRE_STOP_NONE : SPYRE_STOP_DMA_RANGE;
}
