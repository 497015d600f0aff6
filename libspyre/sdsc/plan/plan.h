/* SPDX-License-Identifier: MIT */
/*
 * Planners: how the work of each step is divided over the cores, and where
 * what lies between steps is kept (docs/planning.md). Internal.
 */
#ifndef SPYRE_SDSC_PLAN_H
#define SPYRE_SDSC_PLAN_H

#include "libspyre/sdsc/graph/graph.h"

struct plan_tensor {
	spyre_sdsc_place place;
	uint64_t at;		/* argument number, or byte offset */
	uint64_t bytes;		/* in all; for LX, of one core */
	/* Steps in which it is used; first > last: none. */
	uint32_t first, last;
	int32_t source;		/* argument that this is an LX copy of, or -1 */
};

struct plan {
	uint32_t cores;
	bool use_lx, reuse_pool, k_fastest;
	uint64_t lx_capacity;
	/* Copies of the graph's, and what the planner adds. */
	struct build_step *step;
	uint32_t num_steps;
	struct plan_tensor *tensor;
	uint32_t num_tensors;
	uint32_t num_args;
	uint64_t lx_bytes, pool_bytes;
};

/* A division with its modelled cost. */
struct plan_choice {
	int64_t slices[IR_MAX_DIMS];
	double cost;		/* microseconds */
};

/* @forced: slices of the first step's dims, NULL to plan. */
spyre_status plan_make(struct plan *plan, const spyre_sdsc_graph *graph, uint32_t cores,
		       const int64_t *forced);
void plan_fini(struct plan *plan);

struct spyre_bundle;
/* Plans and compiles a graph without files, for a card of @max_cores. */
spyre_status plan_compile(const spyre_sdsc_graph *graph, uint32_t cores, uint32_t max_cores,
			  struct spyre_bundle *bundle);

/* plan_span.c: the fewest slices of each dim with which every core's reach is in limits. */
spyre_status plan_span(struct build_step *step, uint32_t cores, int64_t *least);
/* The largest divisor of @n that is at most @limit. */
int64_t plan_divisor(int64_t n, int64_t limit);

/* plan_matmul.c */
double plan_matmul_cost(const struct ir_sdsc *s, const int64_t *slices);
void plan_matmul(struct build_step *step, const int64_t *least, uint32_t cores);

#define PLAN_PARTIAL_BYTES (1u << 20)	/* of LX, for partial sums */

/* plan_divide.c */
double plan_cost(const struct build_step *step, const int64_t *slices);
/*
 * Calls @visit with each division of the dims outside @whole that takes at
 * least @least slices and at most @cores cores.
 */
void plan_each(const struct ir_sdsc *s, uint32_t whole, const int64_t *least, uint32_t cores,
	       void (*visit)(void *arg, const int64_t *slices), void *arg);
/* The best others than the chosen one, cheapest first; returns their number. */
uint32_t plan_choices(const struct build_step *step, uint32_t cores, struct plan_choice *choice,
		      uint32_t room);
/* True if the partial results of one core fit beside the tensors that LX holds. */
bool plan_partial_fits(const struct build_step *step);
spyre_status plan_divide(struct plan *plan);

/* build_division.c: divisions that the caller asks for */
bool plan_is_asked(const struct build_step *step);
/* True if two steps are asked for the same, along the dims in @keys only. */
bool plan_asked_alike(const struct build_step *a, const struct build_step *b, uint64_t keys);
/* Divides a step as asked, and along no other dim. */
spyre_status plan_asked(struct build_step *step, uint32_t cores);

/* plan_group.c: steps that share a division, so that LX may keep what they pass on. */
bool plan_same_walk(const struct build_step *a, uint32_t ta, const struct build_step *b,
		    uint32_t tb);
void plan_groups(struct plan *plan);

/* plan_lx.c: which tensors LX keeps, with copies of arguments that are read often */
spyre_status plan_lx(struct plan *plan);

/* plan_memory.c: places for tensors that live between steps */
struct plan_block {
	uint64_t bytes, at;
	uint32_t first, last;	/* times in which it is in use, inclusive */
	uint32_t tensor;
	bool placed;
};
/* Bytes of one core's share of an operand. */
uint64_t plan_share(const struct build_step *step, uint32_t tensor);
/* Places what fits below @limit; returns the bytes in use. */
uint64_t plan_memory(struct plan_block *block, uint32_t count, uint64_t limit, bool smallest_first);
spyre_status plan_pool(struct plan *plan);

/* plan_bind.c: strides, slices, addresses and symbols of all steps */
spyre_status plan_bind(struct plan *plan);
/* The statements of bundle.mlir. */
spyre_status plan_bundle(const struct plan *plan, struct ir_bundle *bundle);

/* build_mlir.c */
spyre_status build_write_mlir(const struct plan *plan, const char *directory);

#endif /* SPYRE_SDSC_PLAN_H */
