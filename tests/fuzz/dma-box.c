// SPDX-License-Identifier: MIT
/* Random boxes: strides with gaps on both sides, with the dims in any order. */
#include "tests/fuzz/dma.h"
#include "tests/fuzz/fuzz.h"

static void some_counts(struct spyre_dma_desc *desc, enum dma_box_shape shape, uint32_t lane,
			uint32_t row)
{
	uint32_t limit = fuzz_random(8) ? 100 : 3000, d;

	for (d = 0; d < desc->num_dims; d++) {
		desc->dim[d].count = 1 + fuzz_random(limit < 70 ? limit : 70);
		if ((d == lane || d == row) && desc->dim[d].count == 1)
			desc->dim[d].count = 2;
		limit = limit / desc->dim[d].count ? limit / desc->dim[d].count : 1;
	}
	if (shape != DMA_BOX_LONG && shape != DMA_BOX_TILE)
		return;
	for (d = 0; d < desc->num_dims; d++)
		desc->dim[d].count = 1 + !fuzz_random(4);
	desc->dim[lane].count = 257 + fuzz_random(600);
	if (shape == DMA_BOX_TILE) {
		desc->dim[lane].count = 128 / spyre_fmt_bytes(desc->host_format);
		desc->dim[row].count = 64 + (fuzz_random(4) ? 0 : fuzz_random(70));
	}
}

/* A random order of the dims with @first in front. */
static void some_order(uint32_t *order, uint32_t n, uint32_t first)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		order[i] = i;
	order[first] = 0;
	order[0] = first;
	for (i = 1; i + 1 < n; i++) {
		uint32_t at = i + fuzz_random(n - i), was = order[i];

		order[i] = order[at];
		order[at] = was;
	}
}

/*
 * Nests the dims of one side: the one in front has @stride, each other one steps over
 * those before it. Returns the bytes of the side.
 */
static uint64_t nest(const struct spyre_dma_desc *desc, const uint32_t *order, uint64_t *strides,
		     uint64_t stride, uint64_t bytes)
{
	uint32_t i, d;

	for (i = 0; i < desc->num_dims; i++) {
		d = order[i];
		strides[d] = stride;
		bytes += (desc->dim[d].count - 1) * stride;
		stride *= desc->dim[d].count;
		if (!fuzz_random(3))
			stride += fuzz_random(2) ? fuzz_random(9) : 64;
	}
	return bytes;
}

void dma_make_box(struct dma_input *input, enum dma_box_shape shape)
{
	struct spyre_dma_desc *desc = &input->desc;
	uint32_t n = 2 + (fuzz_random(2) ? fuzz_random(fuzz_random(8) ? 3 : 7) : 0), d;
	uint32_t lane = fuzz_random(n), row = (lane + 1 + fuzz_random(n - 1)) % n;
	uint64_t hb = spyre_fmt_bytes(desc->host_format), host[SPYRE_DMA_MAX_DIMS];
	uint64_t db = spyre_fmt_bytes(desc->device_format);
	uint32_t order[SPYRE_DMA_MAX_DIMS];

	desc->flags = SPYRE_DMA_BOX;
	desc->num_dims = n;
	some_counts(desc, shape, lane, row);
	some_order(order, n, lane);
	nest(desc, order, desc->box.device_stride,
	     shape == DMA_BOX_SCATTERED ? db + 1 + fuzz_random(3 * db) : db, db);
	some_order(order, n, shape == DMA_BOX_TRANSPOSED || shape == DMA_BOX_TILE ? row : lane);
	desc->host_offset = fuzz_random(2) ? 0 : fuzz_random(200);
	desc->box.device_offset = fuzz_random(2) ? 0 : fuzz_random(200);
	input->host_bytes = desc->host_offset +
			    nest(desc, order, host,
				 shape == DMA_BOX_STRIDED ? hb + 1 + fuzz_random(3 * hb) : hb, hb);
	for (d = 0; d < n; d++)
		desc->dim[d].host_stride = host[d];
	if (shape == DMA_BOX_REPEATED) {
		d = fuzz_random(2) ? lane : row;
		if (desc->direction == SPYRE_DMA_D2H) {
			desc->box.device_stride[d] = 0;
		} else {
			input->host_bytes -= (desc->dim[d].count - 1) * host[d];
			desc->dim[d].host_stride = 0;
		}
	}
	/* The span is too short for some boxes, which then must not move anything. */
	if (!fuzz_random(8))
		input->host_bytes -= fuzz_random(2) ? 1 : fuzz_random(input->host_bytes);
	else if (!fuzz_random(8))
		input->host_bytes += fuzz_random(100);
}

enum dma_box_shape dma_box_shape(const struct spyre_dma_desc *desc)
{
	uint32_t hb = spyre_fmt_bytes(desc->host_format), db = spyre_fmt_bytes(desc->device_format);
	uint32_t lane = desc->num_dims, row = desc->num_dims, lanes, d;

	for (d = 0; d < desc->num_dims; d++) {
		if (desc->dim[d].count == 1)
			continue;
		if (!desc->dim[d].host_stride || !desc->box.device_stride[d])
			return DMA_BOX_REPEATED;
		if (desc->box.device_stride[d] == db)
			lane = d;
		else if (desc->dim[d].host_stride == hb)
			row = d;
	}
	if (lane == desc->num_dims)
		return DMA_BOX_SCATTERED;
	lanes = desc->dim[lane].count;
	if (lanes > 256)
		return DMA_BOX_LONG;
	if (desc->dim[lane].host_stride == hb)
		return DMA_BOX_ROWS;
	if (row == desc->num_dims)
		return DMA_BOX_STRIDED;
	return lanes * hb == 128 && desc->dim[row].count >= 64 && (hb == 2 || hb == 4) ?
	       DMA_BOX_TILE : DMA_BOX_TRANSPOSED;
}
