// SPDX-License-Identifier: MIT
/*
 * Values and the reference. An element's value is taken from a table of its rank by a hash of
 * the element's place, so that an element of another rank or place differs. The same hash for
 * all ranks lets the reductions be computed once for each entry of the table.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/perf.h"

#define VALUES 511
#define MAX_ELEMENT 4

/* Stored elements; the last table is the reduction of the others. */
static uint8_t (*tables)[VALUES][MAX_ELEMENT];

/* A number that every format of the command line has. */
static double number_of(const struct perf_options *options, uint32_t rank, int i)
{
	if (options->format->integer)
		return (double)((i * 7 + (int)rank * 13) % 101 - 50);
	/* Signs and powers of two that cancel, so that 64 ranks stay within the range of DL16. */
	if (options->op->op == SPYRE_REDUCE_PRODUCT && (i + rank) % 3 == 0)
		return rank % 4 == 2 ? -0.5 : -1;
	if (options->op->op == SPYRE_REDUCE_PRODUCT)
		return rank % 4 == 0 && i % 2 ? 2 : 1;
	return (i - VALUES / 2) / 64.0 * (1 + rank % 8) + rank;
}

static float reduce_floats(spyre_reduce_op op, float a, float b)
{
	switch (op) {
	case SPYRE_REDUCE_PRODUCT:
		return a * b;
	case SPYRE_REDUCE_MIN:
		return b < a ? b : a;
	case SPYRE_REDUCE_MAX:
		return b > a ? b : a;
	default:
		return a + b;
	}
}

static int32_t reduce_integers(spyre_reduce_op op, int32_t a, int32_t b)
{
	switch (op) {
	case SPYRE_REDUCE_PRODUCT:
		return (int32_t)((uint32_t)a * (uint32_t)b);
	case SPYRE_REDUCE_MIN:
		return b < a ? b : a;
	case SPYRE_REDUCE_MAX:
		return b > a ? b : a;
	case SPYRE_REDUCE_BAND:
		return a & b;
	case SPYRE_REDUCE_BOR:
		return a | b;
	case SPYRE_REDUCE_BXOR:
		return a ^ b;
	default:
		return (int32_t)((uint32_t)a + (uint32_t)b);
	}
}

/* Stores a number as an element. */
static bool store(const struct perf_options *options, double number, uint8_t *element)
{
	return !spyre_format_encode(options->format->device, &number, 1, element);
}

/* Adds in the order of the ranks, in fp32, and rounds once, as collectives do. */
static double reduced_float(const struct perf_options *options, int i)
{
	const spyre_reduce_op op = options->op->op;
	float sum = 0;

	for (uint32_t rank = 0; rank < options->ranks; rank++) {
		double number;
		float x;

		spyre_format_decode(options->format->device, tables[rank][i], 1, &number);
		x = (float)number;
		if (op == SPYRE_REDUCE_PREMUL_SUM)
			x *= PERF_FACTOR;
		sum = rank ? reduce_floats(op, sum, x) : x;
	}
	return op == SPYRE_REDUCE_AVG ? sum * (1.0f / (float)options->ranks) : sum;
}

static void reduce_integer(const struct perf_options *options, int i)
{
	int32_t sum = 0, x;

	for (uint32_t rank = 0; rank < options->ranks; rank++) {
		memcpy(&x, tables[rank][i], sizeof(x));
		sum = rank ? reduce_integers(options->op->op, sum, x) : x;
	}
	memcpy(tables[options->ranks][i], &sum, sizeof(sum));
}

/* Plain copies move the elements to device memory, which is little endian on every host. */
static void order_elements(const struct perf_options *options)
{
	const size_t bytes = spyre_format_bytes(options->format->device);

	if (__BYTE_ORDER__ != __ORDER_BIG_ENDIAN__)
		return;
	for (uint32_t rank = 0; rank <= options->ranks; rank++)
		for (int i = 0; i < VALUES; i++)
			for (size_t k = 0; k < bytes / 2; k++) {
				uint8_t *element = tables[rank][i], byte = element[k];

				element[k] = element[bytes - 1 - k];
				element[bytes - 1 - k] = byte;
			}
}

bool perf_values_init(const struct perf_options *options)
{
	tables = calloc(options->ranks + 1, sizeof(*tables));
	if (!tables)
		return false;
	for (uint32_t rank = 0; rank < options->ranks; rank++)
		for (int i = 0; i < VALUES; i++)
			if (!store(options, number_of(options, rank, i), tables[rank][i]))
				return false;
	for (int i = 0; options->operation->reduces && i < VALUES; i++) {
		if (options->format->integer)
			reduce_integer(options, i);
		else if (!store(options, reduced_float(options, i), tables[options->ranks][i]))
			return false;
	}
	order_elements(options);
	return true;
}

static uint32_t entry_of(uint64_t element)
{
	return (uint32_t)(element * 2654435761u) % VALUES;
}

void perf_fill(const struct perf_options *options, uint32_t rank, uint64_t first, uint8_t *to,
	       uint64_t bytes)
{
	const size_t size = spyre_format_bytes(options->format->device);

	for (uint64_t at = 0; at < bytes; at += size)
		memcpy(to + at, tables[rank][entry_of((first + at) / size)], size);
}

uint64_t perf_compare(const struct perf_options *options, const struct perf_source *source,
		      const uint8_t *got)
{
	const uint32_t table = source->rank == PERF_REDUCED ? options->ranks : source->rank;
	const size_t size = spyre_format_bytes(options->format->device);
	uint64_t wrong = 0;

	for (uint64_t at = 0; at < source->bytes; at += size) {
		const uint32_t entry = entry_of((source->first + at) / size);

		wrong += !!memcmp(got + at, tables[table][entry], size);
	}
	return wrong;
}
