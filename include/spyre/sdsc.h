/* SPDX-License-Identifier: MIT */
/* SDSC builder: bundles and kernels from operations by name, planned for the card. */
#ifndef SPYRE_SDSC_H
#define SPYRE_SDSC_H

#include <spyre/layout.h>
#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An operand of an operation to build: host shape and device layout. */
typedef struct spyre_sdsc_operand {
	uint32_t rank;
	int64_t size[SPYRE_MAX_RANK];
	spyre_layout layout;
} spyre_sdsc_operand;

/** A named number that an operation takes: {"dim", -1}, {"eps", 1e-5}. */
typedef struct spyre_sdsc_attribute {
	const char *name;
	double value;
} spyre_sdsc_attribute;

/** A chain of operations that becomes one bundle or kernel. Not thread safe. */
typedef struct spyre_sdsc_graph spyre_sdsc_graph;

/** As the output of an operation: the graph makes an intermediate. */
#define SPYRE_SDSC_NEW UINT32_MAX

/** Names of the operations that the builder knows, NULL-terminated. Since 0.1. */
SPYRE_API const char *const *spyre_sdsc_operations(void);

/**
 * How many inputs an operation takes. Since 0.1.
 * Errors: INVALID_ARGUMENT (a NULL), UNSUPPORTED (no such operation).
 */
SPYRE_API spyre_status spyre_sdsc_operation_inputs(const char *op, uint32_t *least,
						   uint32_t *most);

/**
 * Writes bundle.mlir and the sdsc_*.json of one operation to @directory (made
 * if it is missing). @op is a name of spyre_sdsc_operations(). @operands are
 * the inputs in order, then the output. @cores: 1..32, or 0 for SENCORES
 * (default 32); fewer are used where the shape does not divide. Attributes
 * have their defaults: reductions are along the last dimension. Since 0.1.
 * Errors: UNSUPPORTED (operation), ARGUMENT_MISMATCH (shapes), LAYOUT (sticks),
 * FORMAT, SPAN_LIMIT, FILE.
 */
SPYRE_API spyre_status spyre_sdsc_build(const char *op, const spyre_sdsc_operand *operands,
					uint32_t num_operands, uint32_t cores,
					const char *directory);

/** Makes an empty graph, to be ended with spyre_sdsc_graph_destroy(). Since 0.1. */
SPYRE_API spyre_status spyre_sdsc_graph_create(spyre_sdsc_graph **graph);
/** Frees a graph; kernels loaded from it live on. NULL is fine. Since 0.1. */
SPYRE_API void spyre_sdsc_graph_destroy(spyre_sdsc_graph *graph);

/**
 * Adds an argument of the kernel; they are numbered in the order of these
 * calls. @tensor becomes its name in the graph. What it is, input or output,
 * follows from its use. A layout with a larger device_size than the operand's
 * size needs, or one above 1 where no dimension is (dim_map -1), is a window: a
 * part of a larger tensor, whose address at a launch is that of the first stick
 * of the part; say what lies around it by spyre_sdsc_graph_set_padding().
 * Since 0.1.
 * Errors: INVALID_ARGUMENT, ARGUMENT_MISMATCH, LAYOUT.
 */
SPYRE_API spyre_status spyre_sdsc_graph_add_argument(spyre_sdsc_graph *graph,
						     const spyre_sdsc_operand *operand,
						     uint32_t *tensor);

/** What lies in an argument's layout beyond the tensor's size. Since 0.1. */
typedef enum spyre_sdsc_padding {
	/** Zeros, as a copy to the card leaves it: what arguments have unless told otherwise. */
	SPYRE_SDSC_PADDING_ZERO = 0,
	/**
	 * Anything: lanes of a last stick hold what an operation left there, rows
	 * are of a neighbour. No result depends on it; rows beyond the size are
	 * neither read nor written.
	 */
	SPYRE_SDSC_PADDING_UNKNOWN = 1,
	/**
	 * What belongs to others, as round a window of a larger tensor: like
	 * UNKNOWN, and an operation whose output it is does not write lanes of a
	 * last stick either. Where that cannot be had it is refused (LAYOUT).
	 */
	SPYRE_SDSC_PADDING_FOREIGN = 2,
} spyre_sdsc_padding;

/**
 * Says what the padding of argument @tensor holds, for the operations that are
 * added from then on. An argument that an operation writes is UNKNOWN after it,
 * or stays FOREIGN. Since 0.1.
 * Errors: INVALID_ARGUMENT (a NULL, no such argument, no such kind).
 */
SPYRE_API spyre_status spyre_sdsc_graph_set_padding(spyre_sdsc_graph *graph, uint32_t tensor,
						    spyre_sdsc_padding padding);

/** As the dim of a split: what a product sums over. */
#define SPYRE_SDSC_SUMMED 0
/** Splits that can be asked for at a time. */
#define SPYRE_SDSC_MAX_SPLITS 8

/** A dimension of an operation, and into how many slices it is divided. */
typedef struct spyre_sdsc_split {
	/**
	 * Counted from the end: -1 is the last dimension of the result, or of the
	 * input where the operation reduces it; or SPYRE_SDSC_SUMMED.
	 */
	int32_t dim;
	int64_t slices;
} spyre_sdsc_split;

/**
 * Says how the operations that are added from then on are divided over the
 * cores, in the place of the planner; no splits: the planner again. Each step
 * is divided along the dimensions that it has of those, and along no other;
 * one that has none of them is left to the planner, and so is a step that only
 * brings an operand into form. Sticks are not cut: the dimension along them
 * has as many points as sticks. The plan says what was asked of each step
 * (spyre_sdsc_plan_step.asked). Since 0.1.
 * Errors: INVALID_ARGUMENT (a NULL, more than SPYRE_SDSC_MAX_SPLITS, a
 * dimension above 0 or named twice, slices below 1). Adding an operation fails
 * with INVALID_ARGUMENT if the slices divide the dimension in no step that has
 * it; planning with INVALID_ARGUMENT (a step is to have more slices than there
 * are cores), SPAN_LIMIT or LX_OVERFLOW (too much for one core).
 */
SPYRE_API spyre_status spyre_sdsc_graph_set_division(spyre_sdsc_graph *graph,
						     const spyre_sdsc_split *splits,
						     uint32_t num_splits);

/**
 * Adds an operation; they run in the order of these calls. @tensor names its
 * output: an argument, or SPYRE_SDSC_NEW for an intermediate, and then becomes
 * the intermediate's name. Since 0.1.
 * Errors: UNSUPPORTED (operation), INVALID_ARGUMENT (attributes),
 * ARGUMENT_MISMATCH (shapes), LAYOUT (sticks), FORMAT.
 */
SPYRE_API spyre_status spyre_sdsc_graph_add_op(spyre_sdsc_graph *graph, const char *op,
					       const spyre_sdsc_attribute *attributes,
					       uint32_t num_attributes, const uint32_t *inputs,
					       uint32_t num_inputs, uint32_t *tensor);

/**
 * The shape and layout of a tensor of a graph, intermediates too. Since 0.1.
 * Errors: INVALID_ARGUMENT (a NULL, or no such tensor).
 */
SPYRE_API spyre_status spyre_sdsc_graph_get_tensor(const spyre_sdsc_graph *graph, uint32_t tensor,
						   spyre_sdsc_operand *operand);

/** Plans the graph for @cores (0: SENCORES) and writes it as a bundle. Since 0.1.
 * Errors: SPAN_LIMIT, FILE, CONFIGURATION. */
SPYRE_API spyre_status spyre_sdsc_graph_write(const spyre_sdsc_graph *graph, uint32_t cores,
					      const char *directory);

/** Plans and compiles the graph for the card of @context, without files. Since 0.1.
 * Errors: as spyre_sdsc_graph_write() and spyre_kernel_load(). */
SPYRE_API spyre_status spyre_sdsc_graph_load(spyre_context *context,
					     const spyre_sdsc_graph *graph, uint32_t cores,
					     spyre_kernel **kernel);

#define SPYRE_SDSC_MAX_DIMS 12
#define SPYRE_SDSC_MAX_TENSORS 8
#define SPYRE_SDSC_MAX_CHOICES 4

/** Where a plan keeps a tensor. */
typedef enum spyre_sdsc_place {
	SPYRE_SDSC_ARGUMENT,	/**< device memory of the caller */
	SPYRE_SDSC_POOL,	/**< device memory of the kernel */
	SPYRE_SDSC_LX,		/**< each core's scratchpad */
} spyre_sdsc_place;

/** A tensor of a plan. */
typedef struct spyre_sdsc_plan_tensor {
	spyre_sdsc_place place;
	/** Argument number; byte offset within the pool or LX. */
	uint64_t at;
	/** Bytes in all; for LX, of one core. */
	uint64_t bytes;
	/** Steps between which it holds something. */
	uint32_t first, last;
} spyre_sdsc_plan_tensor;

/** A division of a step over the cores, and what it is modelled to cost. */
typedef struct spyre_sdsc_plan_choice {
	int64_t slices[SPYRE_SDSC_MAX_DIMS];
	double microseconds;
} spyre_sdsc_plan_choice;

/** One SDSC of a plan. */
typedef struct spyre_sdsc_plan_step {
	char op[32];
	uint32_t num_dims;
	char dim[SPYRE_SDSC_MAX_DIMS][16];
	int64_t size[SPYRE_SDSC_MAX_DIMS];
	uint32_t num_cores;
	/** The chosen division first, then the cheapest others. */
	uint32_t num_choices;
	spyre_sdsc_plan_choice choice[SPYRE_SDSC_MAX_CHOICES];
	/** Index into the plan's tensors; the last is the output. */
	uint32_t num_tensors;
	uint32_t tensor[SPYRE_SDSC_MAX_TENSORS];
	/** Bytes of one core's share of each, and from its first to its last. */
	uint64_t core_bytes[SPYRE_SDSC_MAX_TENSORS];
	uint64_t core_span[SPYRE_SDSC_MAX_TENSORS];
	/** Slices that spyre_sdsc_graph_set_division() asked for; 0: none. */
	int64_t asked[SPYRE_SDSC_MAX_DIMS];
} spyre_sdsc_plan_step;

/** What the planners make of a graph. */
typedef struct spyre_sdsc_plan {
	uint32_t num_steps;
	uint32_t num_tensors;
	spyre_sdsc_plan_step *step;
	spyre_sdsc_plan_tensor *tensor;
	/** LX that the planner may use, and does, per core. */
	uint64_t lx_capacity, lx_bytes;
	uint64_t pool_bytes;
	/** Modelled cost of one launch of the compiled program. */
	uint64_t cycles, bytes_read, bytes_written, macs;
} spyre_sdsc_plan;

/** Plans a graph as spyre_sdsc_graph_write() would. Since 0.1. */
SPYRE_API spyre_status spyre_sdsc_graph_plan(const spyre_sdsc_graph *graph, uint32_t cores,
					     spyre_sdsc_plan **plan);
/** Frees a plan. NULL is fine. Since 0.1. */
SPYRE_API void spyre_sdsc_plan_free(spyre_sdsc_plan *plan);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_SDSC_H */
