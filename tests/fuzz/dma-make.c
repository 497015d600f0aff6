// SPDX-License-Identifier: MIT
/* Random descriptors: all forms with all pairs of formats, on small tensors. */
#include "tests/fuzz/dma.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static uint32_t pair_of[SPYRE_FMT_COUNT][SPYRE_FMT_COUNT], pairs;
static uint8_t formats_of[SPYRE_FMT_COUNT * SPYRE_FMT_COUNT][2];

uint32_t dma_pairs(void)
{
	uint32_t host, device;

	if (pairs)
		return pairs;
	for (host = 0; host < SPYRE_FMT_COUNT; host++) {
		for (device = 0; device < SPYRE_FMT_COUNT; device++) {
			if (!spyre_fmt_convertible(host, device))
				continue;
			formats_of[pairs][0] = host;
			formats_of[pairs][1] = device;
			pair_of[host][device] = pairs++;
		}
	}
	return pairs;
}

uint32_t dma_pair(uint32_t host_format, uint32_t device_format)
{
	return pair_of[host_format][device_format];
}

void dma_pair_formats(uint32_t pair, uint32_t *host_format, uint32_t *device_format)
{
	*host_format = formats_of[pair][0];
	*device_format = formats_of[pair][1];
}

static uint32_t some_lanes(void)
{
	static const uint8_t lanes[] = {
		1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 130,
	};

	return lanes[fuzz_random(fuzz_random(4) ? 12 : sizeof(lanes))];
}

/* Chooses the counts of all dims, with few elements, so that many inputs run. */
static void some_counts(struct spyre_dma_desc *desc, uint32_t shape)
{
	uint32_t d, limit = fuzz_random(8) ? 128 : 3000, lane = desc->num_dims - 1;

	if (shape == DMA_FORM_TILE) {
		uint32_t lanes = 128 / spyre_fmt_bytes(desc->host_format);

		desc->dim[lane].count = lanes + (fuzz_random(2) ? fuzz_random(65) : 0);
		desc->dim[lane - 1].count = 64 + (fuzz_random(4) ? 0 : fuzz_random(70));
		for (d = 0; d + 1 < lane; d++)
			desc->dim[d].count = 1 + !fuzz_random(4);
		return;
	}
	desc->dim[lane].count = some_lanes();
	if (shape != DMA_FORM_ROWS && desc->dim[lane].count == 1)
		desc->dim[lane].count = 2;
	limit /= desc->dim[lane].count;
	for (d = lane; d--;) {
		desc->dim[d].count = 1 + fuzz_random(limit < 1 ? 1 : limit > 130 ? 130 : limit);
		if (shape == DMA_FORM_TRANSPOSED && d == lane - 1 && desc->dim[d].count == 1)
			desc->dim[d].count = 2 + fuzz_random(6);
		limit /= desc->dim[d].count;
	}
}

/* Strides of a host tensor with gaps, with dims in any order that @shape permits. */
static uint64_t some_strides(struct spyre_dma_desc *desc, uint32_t shape)
{
	uint32_t lane = desc->num_dims - 1, order[SPYRE_DMA_MAX_DIMS], d, i, n = 0;
	uint64_t stride = spyre_fmt_bytes(desc->host_format), end = stride;

	if (shape == DMA_FORM_ROWS)
		order[n++] = lane;
	if (shape == DMA_FORM_TRANSPOSED || shape == DMA_FORM_TILE)
		order[n++] = lane - 1;
	for (d = 0, i = n; d < desc->num_dims; d++)
		if (!n || d != order[0])
			order[i++] = d;
	for (i = n; i + 1 < desc->num_dims; i++) {
		uint32_t at = i + fuzz_random(desc->num_dims - i), was = order[i];

		order[i] = order[at];
		order[at] = was;
	}
	if (shape == DMA_FORM_STRIDED)
		stride += 1 + fuzz_random(3 * stride);
	for (i = 0; i < desc->num_dims; i++) {
		d = order[i];
		/* Repeats a host element, sometimes in other dims as well. */
		if (d == lane ? shape == DMA_FORM_REPEATED :
		    shape != DMA_FORM_TILE && (i || !n) && !fuzz_random(12))
			continue;
		desc->dim[d].host_stride = stride;
		end += (desc->dim[d].count - 1) * stride;
		stride *= desc->dim[d].count;
		if (!fuzz_random(3))
			stride += fuzz_random(2) ? fuzz_random(9) : 64;
	}
	return end;
}

static void bound_dim(struct spyre_dma_desc *desc, uint32_t d, uint64_t limit)
{
	struct spyre_dma_bound *bound = &desc->bound[desc->num_bounds++];

	bound->coef[d] = 1;
	bound->limit = limit;
}

static void some_bounds(struct spyre_dma_desc *desc, uint32_t shape)
{
	uint32_t lane = desc->num_dims - 1, d;
	uint64_t reach = 0;

	/* In D2H a repeated element may be written by coordinate 0 alone. */
	for (d = 0; d < desc->num_dims && desc->direction == SPYRE_DMA_D2H; d++)
		if (!desc->dim[d].host_stride && desc->dim[d].count > 1)
			bound_dim(desc, d, 1);
	if (shape == DMA_FORM_TILE) {
		if (desc->dim[lane].count > 128 / spyre_fmt_bytes(desc->host_format))
			bound_dim(desc, lane, 128 / spyre_fmt_bytes(desc->host_format));
		return;
	}
	if (fuzz_random(2) || desc->num_bounds == SPYRE_DMA_MAX_BOUNDS)
		return;
	if (fuzz_random(2)) {
		bound_dim(desc, lane, 1 + fuzz_random(desc->dim[lane].count));
		return;
	}
	for (d = 0; d < desc->num_dims; d++) {
		uint64_t coef = fuzz_random(3) * fuzz_random(20);

		desc->bound[desc->num_bounds].coef[d] = coef;
		reach += coef * (desc->dim[d].count - 1);
	}
	desc->bound[desc->num_bounds++].limit = 1 + fuzz_random(reach + 8);
}

void dma_make(struct dma_input *input)
{
	static uint32_t calls;
	uint32_t number = calls++, host, device, shape;
	struct spyre_dma_desc *desc = &input->desc;

	memset(input, 0, sizeof(*input));
	dma_pair_formats(number % dma_pairs(), &host, &device);
	number /= dma_pairs();
	desc->host_format = host;
	desc->device_format = device;
	desc->direction = number % 2;
	number /= 2;
	input->seed = fuzz_random(~0u);
	if (!fuzz_random(3)) {
		shape = number % DMA_BOX_SHAPES;
		if (shape == DMA_BOX_TILE && (fuzz_random(3) || (spyre_fmt_bytes(host) != 2 &&
								 spyre_fmt_bytes(host) != 4)))
			shape = DMA_BOX_TRANSPOSED;
		dma_make_box(input, shape);
		return;
	}
	if (!fuzz_random(12))
		input->kind = 1 + fuzz_random(DMA_INPUT_KINDS - 1);
	/* Only a few inputs use the unit's tiles, which have thousands of elements. */
	shape = number % DMA_FORM_SHAPES;
	if (shape == DMA_FORM_TILE && (fuzz_random(5) || (spyre_fmt_bytes(host) != 2 &&
							  spyre_fmt_bytes(host) != 4)))
		shape = DMA_FORM_TRANSPOSED;
	desc->num_dims = 2 + (fuzz_random(2) ? fuzz_random(fuzz_random(8) ? 4 : 7) : 0);
	if (shape == DMA_FORM_ROWS && !fuzz_random(8))
		desc->num_dims = 1;
	desc->host_offset = fuzz_random(2) ? 0 : fuzz_random(200);
	some_counts(desc, shape);
	input->host_bytes = desc->host_offset + some_strides(desc, shape);
	some_bounds(desc, shape);
	/* Makes the span too short, or longer. */
	if (!fuzz_random(4))
		input->host_bytes -= fuzz_random(1 + input->host_bytes / (1 + fuzz_random(20)));
	else if (!fuzz_random(8))
		input->host_bytes += fuzz_random(100);
}
