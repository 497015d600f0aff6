/* SPDX-License-Identifier: MIT */
/*
 * Builder: turns operations by name into SDSCs. An operation first becomes the
 * struct that the parser makes from a file; the planners (plan/) divide the work
 * and place intermediates; then it is written or compiled. Internal.
 */
#ifndef SPYRE_SDSC_GRAPH_H
#define SPYRE_SDSC_GRAPH_H

#include <spyre/sdsc.h>

#include "libspyre/sdsc/ir/ir.h"

#define BUILD_MAX_INPUTS 6u
#define BUILD_MAX_ATTRS 8u
#define BUILD_MAX_TENSORS 4096u
#define BUILD_MAX_STEPS 1024u

enum build_kind {
	BUILD_POINTWISE,
	BUILD_REDUCE,
	BUILD_MATMUL,
	BUILD_RESTICK,
	BUILD_WINDOW,		/* convolutions and pooling */
	BUILD_TOPK,
	BUILD_INDEX,		/* rows or elements at indices */
	BUILD_RECIPE,		/* composed of other operations */
};

enum {
	BUILD_LX = 1,		/* the result may stay in LX */
	BUILD_IN_PLACE = 2,	/* may overwrite an input at its last use */
	BUILD_CONVERTS = 4,	/* input and output differ in format */
	BUILD_SPLAT = 8,	/* reads single lanes even where all operands are sparse */
	BUILD_INTEGER = 16,	/* computes on IEEE_INT32 only */
};

struct build_call;

struct build_op {
	const char *name;	/* name for callers */
	const char *func;	/* opFuncName */
	enum build_kind kind;
	uint32_t inputs, most_inputs;
	uint32_t flags;
	spyre_status (*recipe)(const struct build_call *call);
	/* Attributes; those of pointwise operations become constants of the SDSC. */
	struct {
		const char *name;
		const char *constant;
		double fallback;	/* NAN: the attribute is required */
	} attr[BUILD_MAX_ATTRS];
};

struct build_tensor {
	spyre_sdsc_operand operand;
	bool argument;
	uint32_t arg;
	spyre_sdsc_padding padding;
};

/* A step, which becomes one SDSC. */
struct build_step {
	struct ir_sdsc sdsc;
	const struct build_op *op;
	uint32_t tensor[IR_MAX_TENSORS];	/* of the graph, by operand */
	uint64_t offset[IR_MAX_TENSORS];	/* bytes from the start of the tensor */
	/* Host dim that a dim walks, counted from the right; BUILD_NO_KEY: none. */
	int8_t key[IR_MAX_DIMS];
	uint32_t whole;		/* dims (bits) that are never divided */
	uint32_t reduced;	/* dims that are reduced, but not along sticks */
	int64_t asked[IR_MAX_DIMS];	/* slices that the caller requests, 0: none requested */
	bool helps;		/* adapts an operand */
	/* Steps of one number, other than 0, keep their intermediates in LX if that is possible. */
	uint32_t fused;
	/* Filled by the planner. */
	uint32_t group;
	struct ir_symbol *symbols;
	uint32_t num_symbols;
};

#define BUILD_NO_KEY 127

struct spyre_sdsc_graph {
	struct build_tensor *tensor;
	struct build_step *step;
	uint32_t num_tensors, num_steps, num_args;
	size_t capacity_tensors, capacity_steps;
	/* The requested division (division.c). */
	spyre_sdsc_split split[SPYRE_SDSC_MAX_SPLITS];
	uint32_t num_splits;
	bool helping;		/* the steps being added adapt operands */
	uint32_t fusing;	/* build_step.fused of the steps being added */
	uint32_t num_fused;
	/* Marks, and the paddings that have changed (mark.c). */
	struct build_mark *mark;
	struct build_change *change;
	uint32_t num_marks, num_changes;
	size_t capacity_marks, capacity_changes;
};

/* A tensor with the view that an operation takes of it, often the whole tensor. */
struct build_use {
	uint32_t tensor;
	spyre_sdsc_operand view;
	uint64_t offset;	/* bytes from the start of the tensor to the view */
	uint32_t clean;		/* dims (bits) whose padding is zeros */
};

/* Arguments of a recipe; @in[] and @out are tensors, @out may be SPYRE_SDSC_NEW. */
struct build_call {
	spyre_sdsc_graph *graph;
	const struct build_op *op;
	const spyre_sdsc_attribute *attr;
	uint32_t num_attrs;
	uint32_t num_inputs;
	uint32_t in[BUILD_MAX_INPUTS];
	uint32_t *out;
};

/* Tensors and steps. */
spyre_status build_new_tensor(spyre_sdsc_graph *graph, const spyre_sdsc_operand *operand,
			      uint32_t *tensor);
spyre_status build_add_step(const struct build_call *call, struct build_use *uses);
const spyre_sdsc_operand *build_operand(const spyre_sdsc_graph *graph, uint32_t tensor);
/* Adds an operation by its name, to an intermediate if *@out is SPYRE_SDSC_NEW. */
spyre_status build_add(spyre_sdsc_graph *graph, const char *op, const spyre_sdsc_attribute *attr,
		       uint32_t num_attrs, const uint32_t *in, uint32_t num_inputs, uint32_t *out);

#endif /* SPYRE_SDSC_GRAPH_H */
