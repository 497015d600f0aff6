// SPDX-License-Identifier: MIT
/* Bundles whose modelled cost `spyre estimate` adds up; nothing is written or launched. */
#include <string.h>

#include "bundle.h"

/* Elements of fp16 in a stick. */
#define STICK_LANES (SPYRE_STICK / 2)

void bundle_begin(struct bundle *b)
{
	memset(b, 0, sizeof(*b));
	b->status = spyre_sdsc_graph_create(&b->graph);
}

static uint32_t add(struct bundle *b, const spyre_sdsc_operand *operand)
{
	uint32_t tensor = 0;

	if (!b->status)
		b->status = spyre_sdsc_graph_add_argument(b->graph, operand, &tensor);
	return tensor;
}

uint32_t bundle_argument(struct bundle *b, spyre_format format, uint32_t rank, const int64_t *size)
{
	spyre_sdsc_operand operand = { .rank = rank };

	memcpy(operand.size, size, rank * sizeof(*size));
	if (!b->status)
		b->status = spyre_layout_init(&operand.layout, rank, size, format);
	return add(b, &operand);
}

uint32_t bundle_counted(struct bundle *b, uint32_t rank, const int64_t *size, double *bytes)
{
	double elements = 1;

	for (uint32_t d = 0; d < rank; d++)
		elements *= size[d];
	*bytes += 2 * elements;
	b->bytes.needed += 2 * elements;
	return bundle_argument(b, SPYRE_FORMAT_IEEE_FP16, rank, size);
}

/* Adds a weight of fp16 with its dims in @order; the summed one, @inner, gets whole sticks. */
static uint32_t add_weight(struct bundle *b, uint32_t rank, const int64_t *size,
			   const int32_t *order, int inner)
{
	int64_t stride[SPYRE_MAX_RANK], step = 1, padded;
	spyre_sdsc_operand operand = { .rank = rank };
	spyre_layout *l = &operand.layout;

	memcpy(operand.size, size, rank * sizeof(*size));
	for (uint32_t d = rank; d-- > 0; step *= size[d])
		stride[d] = step;
	if (b->status)
		return 0;
	b->status = spyre_layout_init_strided(l, rank, size, stride,
					      SPYRE_FORMAT_IEEE_FP16, order, rank);
	padded = (size[inner] + STICK_LANES - 1) / STICK_LANES * STICK_LANES;
	for (uint32_t k = 0; !b->status && k + 1 < l->device_rank; k++)
		if (l->dim_map[k] == inner && l->device_size[k] < padded)
			l->device_size[k] = padded;
	return add(b, &operand);
}

uint32_t bundle_linear_weight(struct bundle *b, int64_t columns, int64_t rows)
{
	const int32_t order[] = { 1, 0 };
	double bytes = 2.0 * columns * rows;

	b->bytes.weights += bytes;
	b->bytes.needed += bytes;
	return add_weight(b, 2, SIZES(columns, rows), order, 1);
}

uint32_t bundle_table(struct bundle *b, int64_t experts, int64_t rows, int64_t columns,
		      int64_t chosen)
{
	/* The experts lie side by side below each stick of columns, so that a core's is short. */
	const int32_t order[] = { 1, 0, 2 };
	double bytes = 2.0 * rows * columns;

	b->bytes.weights += experts * bytes;
	b->bytes.needed += (chosen < experts ? chosen : experts) * bytes;
	return add_weight(b, 3, SIZES(experts, rows, columns), order, 1);
}

static uint32_t add_op(struct bundle *b, const char *op, const uint32_t *inputs,
		       uint32_t num_inputs, const spyre_sdsc_attribute *attribute, uint32_t output)
{
	if (!b->status)
		b->status = spyre_sdsc_graph_add_op(b->graph, op, attribute, attribute ? 1 : 0,
						    inputs, num_inputs, &output);
	return b->status ? 0 : output;
}

uint32_t bundle_op(struct bundle *b, const char *op, const uint32_t *inputs, uint32_t num_inputs)
{
	return add_op(b, op, inputs, num_inputs, NULL, SPYRE_SDSC_NEW);
}

uint32_t bundle_op_with(struct bundle *b, const char *op, const uint32_t *inputs,
			uint32_t num_inputs, spyre_sdsc_attribute attribute)
{
	return add_op(b, op, inputs, num_inputs, &attribute, SPYRE_SDSC_NEW);
}

void bundle_op_to(struct bundle *b, const char *op, const uint32_t *inputs, uint32_t num_inputs,
		  spyre_sdsc_attribute attribute, uint32_t output)
{
	add_op(b, op, inputs, num_inputs, attribute.name ? &attribute : NULL, output);
}

spyre_status bundle_finish(struct bundle *b, int64_t launches, struct cost *cost)
{
	spyre_sdsc_plan *plan = NULL;

	if (!b->status)
		b->status = spyre_sdsc_graph_plan(b->graph, 0, &plan);
	if (!b->status) {
		cost->cycles += plan->cycles * launches;
		cost->bytes_read += plan->bytes_read * launches;
		cost->bytes_written += plan->bytes_written * launches;
		cost->needed += b->bytes.needed * launches;
		cost->weights += b->bytes.weights * launches;
		cost->cache += b->bytes.cache * launches;
	}
	spyre_sdsc_plan_free(plan);
	spyre_sdsc_graph_destroy(b->graph);
	return b->status;
}
