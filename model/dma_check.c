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

static bool dims_ok(const struct spyre_dma_desc *desc)
{
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
		if (i < n && (!dim->count || dim->count > (i == n - 1 ? MAX_LANES : MAX_COUNT)))
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

enum spyre_stop spyre_dma_check(const struct spyre_dma_desc *desc,
				u64 *device_bytes, struct spyre_counters *cost)
{
	u64 elements = 1, bytes = spyre_fmt_bytes(desc->device_format);
	u32 i;

	if (desc->direction > SPYRE_DMA_D2H || desc->reserved[0] || desc->reserved[1] ||
	    desc->reserved[2])
		return SPYRE_STOP_DMA_SHAPE;
	if (!dims_ok(desc) || !bounds_ok(desc) || !repeats_ok(desc))
		return SPYRE_STOP_DMA_SHAPE;
	if (!spyre_fmt_convertible(desc->host_format, desc->device_format))
		return SPYRE_STOP_DMA_FORMAT;
	for (i = 0; i < desc->num_dims; i++) {
		/* Divides because the product may exceed 64 bits and wrap to a small number. */
		if (desc->dim[i].count > SPYRE_MAX_EXTENT / elements)
			return SPYRE_STOP_DMA_RANGE;
		elements *= desc->dim[i].count;
	}
	if (elements * bytes > SPYRE_MAX_EXTENT)
		return SPYRE_STOP_DMA_RANGE;
	*device_bytes = elements * bytes;
	if (cost)
		spyre_cost_dma(elements * spyre_fmt_bytes(desc->host_format), *device_bytes,
			       desc->direction == SPYRE_DMA_H2D, cost);
	return SPYRE_STOP_NONE;
}
