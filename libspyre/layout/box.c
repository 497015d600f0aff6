// SPDX-License-Identifier: MIT
/* From a box with strides on both sides to the DMA engine's descriptor. */
#include "libspyre/layout/box.h"

#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"

#define MAX_SIZE (INT64_C(1) << 31)

static_assert(SPYRE_MAX_BOX_RANK == SPYRE_DMA_MAX_DIMS, "a box is one descriptor");
static_assert((int)SPYRE_COPY_H2D == (int)SPYRE_DMA_H2D &&
	      (int)SPYRE_COPY_D2H == (int)SPYRE_DMA_D2H, "directions");

/* One side of a box, in elements. */
struct side {
	const char *name;
	const int64_t *stride;
	int64_t offset;
	uint64_t element_bytes;
	/* Distance from the first to the last element. */
	int64_t reach;
};

spyre_status spyre_box_copy_check(const spyre_box_copy *copy)
{
	const char *host = spyre_format_name(copy->host_format);
	const char *device = spyre_format_name(copy->device_format);

	if (copy->direction != SPYRE_COPY_H2D && copy->direction != SPYRE_COPY_D2H)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "cannot copy boxes: direction %d is neither SPYRE_COPY_H2D nor SPYRE_COPY_D2H",
				   (int)copy->direction);
	if (!spyre_fmt_convertible((enum spyre_fmt)copy->host_format,
				   (enum spyre_fmt)copy->device_format))
		return spyre_error(SPYRE_ERROR_FORMAT,
				   "cannot copy boxes: the DMA engine has no conversion between host format %s and device format %s",
				   host ? host : "?", device ? device : "?");
	if (!copy->host)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "cannot copy boxes: the host pointer is NULL");
	return SPYRE_SUCCESS;
}

static spyre_status check_sizes(const spyre_box *box, uint32_t index, bool *empty)
{
	*empty = false;
	if (box->rank > SPYRE_MAX_BOX_RANK)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "cannot copy box %u: it has %u dimensions, the limit is %d; split it",
				   index, box->rank, SPYRE_MAX_BOX_RANK);
	for (uint32_t d = 0; d < box->rank; d++) {
		if (box->size[d] < 0 || box->size[d] > MAX_SIZE)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "cannot copy box %u: dimension %u has size %" PRId64 ", expected 0 to 2^31",
					   index, d, box->size[d]);
		*empty |= !box->size[d];
	}
	return SPYRE_SUCCESS;
}

/* Computes the reach of a side; neither it nor its bytes overflow then. */
static spyre_status check_side(const spyre_box *box, uint32_t index, struct side *side)
{
	const int64_t limit = INT64_MAX / (int64_t)side->element_bytes - 1;
	int64_t step, end;

	if (side->offset < 0 || side->offset > limit)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "cannot copy box %u: %s offset of %" PRId64 " elements, expected 0 to %" PRId64,
				   index, side->name, side->offset, limit);
	for (uint32_t d = 0; d < box->rank; d++) {
		if (side->stride[d] < 0)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "cannot copy box %u: dimension %u has the negative %s stride %" PRId64,
					   index, d, side->name, side->stride[d]);
		if (__builtin_mul_overflow(box->size[d] - 1, side->stride[d], &step) ||
		    __builtin_add_overflow(side->reach, step, &side->reach) ||
		    __builtin_add_overflow(side->reach, side->offset, &end) || end > limit)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "cannot copy box %u: dimension %u of size %" PRId64 " with %s stride %" PRId64 " reaches beyond 2^63 bytes",
					   index, d, box->size[d], side->name, side->stride[d]);
	}
	return SPYRE_SUCCESS;
}

/* Each stride must exceed what the dimensions with smaller strides reach. */
static spyre_status check_overlap(const spyre_box *box, uint32_t index, const struct side *side)
{
	uint32_t left = 0;
	int64_t reach = 0;

	for (uint32_t d = 0; d < box->rank && d < SPYRE_MAX_BOX_RANK; d++)
		left |= (uint32_t)(box->size[d] > 1) << d;
	while (left) {
		uint32_t least = (uint32_t)__builtin_ctz(left);

		for (uint32_t d = least + 1; d < box->rank; d++)
			if (left >> d & 1 && side->stride[d] < side->stride[least])
				least = d;
		if (side->stride[least] <= reach)
			return spyre_error(SPYRE_ERROR_LAYOUT,
					   "cannot copy box %u: it writes %s elements twice (dimension %u has stride %" PRId64 ", smaller strides reach %" PRId64 " elements); use a larger stride or several boxes",
					   index, side->name, least, side->stride[least], reach);
		reach += (box->size[least] - 1) * side->stride[least];
		left &= ~(1u << least);
	}
	return SPYRE_SUCCESS;
}

static void fill_desc(struct spyre_transfer *transfer, const spyre_box_copy *copy,
		      const spyre_box *box, const struct side *host, const struct side *device)
{
	struct spyre_dma_desc *desc = &transfer->desc;

	desc->direction = (uint8_t)copy->direction;
	desc->host_format = (uint8_t)copy->host_format;
	desc->device_format = (uint8_t)copy->device_format;
	desc->flags = SPYRE_DMA_BOX;
	/* A box of rank 0 is one element, which takes a dimension of size 1. */
	desc->num_dims = box->rank ? (uint8_t)box->rank : 1;
	desc->dim[0].count = 1;
	desc->box.device_offset = (uint64_t)device->offset * device->element_bytes;
	for (uint32_t d = 0; d < box->rank; d++) {
		desc->dim[d].count = (uint32_t)box->size[d];
		/* The stride of a dimension of one element has no effect. */
		if (box->size[d] == 1)
			continue;
		desc->dim[d].host_stride = (uint64_t)host->stride[d] * host->element_bytes;
		desc->box.device_stride[d] = (uint64_t)device->stride[d] * device->element_bytes;
	}
	/* The span begins with the first element, so that no page before it is pinned. */
	transfer->host = (uint8_t *)copy->host + (uint64_t)host->offset * host->element_bytes;
	transfer->host_bytes = ((uint64_t)host->reach + 1) * host->element_bytes;
	transfer->device_bytes = ((uint64_t)device->offset + (uint64_t)device->reach + 1) *
				 device->element_bytes;
}

spyre_status spyre_box_transfer_init(struct spyre_transfer *transfer, const spyre_box_copy *copy,
				     uint32_t index)
{
	const spyre_box *box = &copy->boxes[index];
	struct side host = { "host", box->host_stride, box->host_offset,
			     spyre_format_bytes(copy->host_format), 0 };
	struct side device = { "device", box->device_stride, box->device_offset,
			       spyre_format_bytes(copy->device_format), 0 };
	uint64_t end, bytes;
	bool empty;

	memset(transfer, 0, sizeof(*transfer));
	TRY(check_sizes(box, index, &empty));
	if (empty)
		return SPYRE_SUCCESS;
	TRY(check_side(box, index, &host));
	TRY(check_side(box, index, &device));
	TRY(check_overlap(box, index, copy->direction == SPYRE_COPY_H2D ? &device : &host));
	end = ((uint64_t)host.offset + (uint64_t)host.reach + 1) * host.element_bytes;
	if (end > copy->host_bytes)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "cannot copy box %u: it ends at byte %" PRIu64 " of the host memory, which has %" PRIu64,
				   index, end, copy->host_bytes);
	fill_desc(transfer, copy, box, &host, &device);
	if (spyre_dma_check(&transfer->desc, &bytes, NULL) != SPYRE_STOP_NONE)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "cannot copy box %u: it has or spans more than the 16 GiB of a transfer; split it",
				   index);
	return SPYRE_SUCCESS;
}
