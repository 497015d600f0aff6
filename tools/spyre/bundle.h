/* SPDX-License-Identifier: MIT */
/* A bundle under construction whose cost is asked for: arguments, operations, its plan. */
#ifndef SPYRE_TOOL_BUNDLE_H
#define SPYRE_TOOL_BUNDLE_H

#include <spyre/spyre.h>

/* Cost of launches, as the card's model of time has it. */
struct cost {
	uint64_t cycles, bytes_read, bytes_written;
	/* Bytes of weights, caches and states that have to be read in any case. */
	double needed;
	/* Bytes of weights that the card keeps, and of caches and states. */
	double weights, cache;
};

/* Errors stay: after one, calls have no effect until bundle_finish() returns it. */
struct bundle {
	spyre_sdsc_graph *graph;
	spyre_status status;
	struct cost bytes;
};

/* A number of an operation, such as { "dim", 1 }. */
#define NUMBER(name, value) ((spyre_sdsc_attribute){ name, value })
#define SIZES(...) ((const int64_t[]){ __VA_ARGS__ })
#define RANK(...) (sizeof(SIZES(__VA_ARGS__)) / sizeof(int64_t))
#define INPUTS(...) ((const uint32_t[]){ __VA_ARGS__ }), (sizeof((uint32_t[]){ __VA_ARGS__ }) / 4)

void bundle_begin(struct bundle *b);

/* Adds an argument of fp16, an input or an output, and returns its number. */
#define bundle_tensor(b, ...) \
	bundle_argument(b, SPYRE_FORMAT_IEEE_FP16, RANK(__VA_ARGS__), SIZES(__VA_ARGS__))
uint32_t bundle_argument(struct bundle *b, spyre_format format, uint32_t rank,
			 const int64_t *size);

/*
 * Adds the weight of a product, stored as it reads it: sticks along its columns, whole
 * sticks of rows. linear's is [columns, rows].
 */
uint32_t bundle_linear_weight(struct bundle *b, int64_t columns, int64_t rows);
/* Adds a table [experts, rows, columns], of which a launch reads @chosen matrices. */
uint32_t bundle_table(struct bundle *b, int64_t experts, int64_t rows, int64_t columns,
		      int64_t chosen);
/* Adds an argument of fp16 that belongs to the weights. */
#define bundle_weight(b, ...) \
	bundle_counted(b, RANK(__VA_ARGS__), SIZES(__VA_ARGS__), &(b)->bytes.weights)
/* Adds an argument of fp16 that belongs to a cache or to a state. */
#define bundle_cache(b, ...) \
	bundle_counted(b, RANK(__VA_ARGS__), SIZES(__VA_ARGS__), &(b)->bytes.cache)
uint32_t bundle_counted(struct bundle *b, uint32_t rank, const int64_t *size, double *bytes);

/* Adds an operation and returns its result. */
uint32_t bundle_op(struct bundle *b, const char *op, const uint32_t *inputs, uint32_t num_inputs);
/* The same with an attribute. */
uint32_t bundle_op_with(struct bundle *b, const char *op, const uint32_t *inputs,
			uint32_t num_inputs, spyre_sdsc_attribute attribute);
/* The same; the result is written to argument @output. */
void bundle_op_to(struct bundle *b, const char *op, const uint32_t *inputs, uint32_t num_inputs,
		  spyre_sdsc_attribute attribute, uint32_t output);

/*
 * Plans the bundle, adds the cost of @launches of it to @cost, if it succeeds, and frees
 * the bundle. Each launch has weights and caches of its own.
 */
spyre_status bundle_finish(struct bundle *b, int64_t launches, struct cost *cost);

#endif /* SPYRE_TOOL_BUNDLE_H */
