/* SPDX-License-Identifier: MIT */
/* SDSC builder: plans named operations for the card and makes bundles and kernels of them. */
#ifndef SPYRE_SDSC_H
#define SPYRE_SDSC_H

#include <spyre/layout.h>
#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An operand of an operation: its host shape and device layout. Since 0.1. */
typedef struct spyre_sdsc_operand {
	uint32_t rank;
	int64_t size[SPYRE_MAX_RANK];
	spyre_layout layout;
} spyre_sdsc_operand;

/** A named number that parametrises an operation: {"dim", -1}, {"eps", 1e-5}. Since 0.1. */
typedef struct spyre_sdsc_attribute {
	const char *name;
	double value;
} spyre_sdsc_attribute;

/** Operations that are compiled to one bundle or kernel. Not thread safe. Since 0.1. */
typedef struct spyre_sdsc_graph spyre_sdsc_graph;

/** Output argument of an operation that makes the graph create an intermediate. */
#define SPYRE_SDSC_NEW UINT32_MAX

/**
 * Returns the names of the builder's operations, NULL-terminated. The library owns the
 * array. Since 0.1.
 */
SPYRE_API const char *const *spyre_sdsc_operations(void);

/**
 * Returns the smallest and the largest number of inputs of operation @op. Since 0.1.
 * Errors: INVALID_ARGUMENT (NULL), UNSUPPORTED (unknown operation).
 */
SPYRE_API spyre_status spyre_sdsc_operation_inputs(const char *op, uint32_t *least,
						   uint32_t *most);

/**
 * Writes bundle.mlir and the sdsc_*.json of one operation to @directory, which is
 * created if it does not exist. @op is a name of spyre_sdsc_operations(). @operands
 * holds the inputs in order, then the output. @cores is 1 to 32, or 0 for the value of
 * SENCORES (default 32); fewer are used if the shape does not divide. Attributes have
 * their default values; reductions reduce the last dimension. Since 0.1.
 * Errors: UNSUPPORTED (operation), ARGUMENT_MISMATCH (shapes), LAYOUT (sticks),
 * FORMAT, and those of spyre_sdsc_graph_write().
 */
SPYRE_API spyre_status spyre_sdsc_build(const char *op, const spyre_sdsc_operand *operands,
					uint32_t num_operands, uint32_t cores,
					const char *directory);

/**
 * Creates an empty graph. The caller destroys it with spyre_sdsc_graph_destroy().
 * Since 0.1.
 * Errors: OUT_OF_HOST_MEMORY.
 */
SPYRE_API spyre_status spyre_sdsc_graph_create(spyre_sdsc_graph **graph);

/**
 * Frees a graph. Kernels loaded from it remain valid. NULL is allowed and has no
 * effect. Since 0.1.
 */
SPYRE_API void spyre_sdsc_graph_destroy(spyre_sdsc_graph *graph);

/**
 * Adds an argument of the kernel. Arguments are numbered in the order of these calls;
 * @tensor returns the argument's number in the graph. It is an input or an output
 * according to its use.
 *
 * A layout whose device_size is larger than the operand needs, or above 1 in a
 * synthetic dimension (dim_map -1), makes the argument a window: part of a larger
 * tensor. A launch then passes the address of the first stick of the part.
 * spyre_sdsc_graph_set_padding() declares the memory around it. Since 0.1.
 * Errors: INVALID_ARGUMENT, ARGUMENT_MISMATCH, LAYOUT.
 */
SPYRE_API spyre_status spyre_sdsc_graph_add_argument(spyre_sdsc_graph *graph,
						     const spyre_sdsc_operand *operand,
						     uint32_t *tensor);

/** Contents of an argument's memory beyond the tensor's size. Since 0.1. */
typedef enum spyre_sdsc_padding {
	/** Zeros, as copies to the card write; the default. */
	SPYRE_SDSC_PADDING_ZERO = 0,
	/**
	 * Undefined: an operation may have left values in lanes of the last stick, and
	 * further rows may belong to a neighbour. No result depends on them; rows
	 * beyond the size are neither read nor written.
	 */
	SPYRE_SDSC_PADDING_UNKNOWN = 1,
	/**
	 * Data of others, as around a window of a larger tensor: like UNKNOWN, but
	 * an operation that writes the argument must also preserve the lanes of the last
	 * stick. Operations that cannot do so are rejected with LAYOUT.
	 */
	SPYRE_SDSC_PADDING_FOREIGN = 2,
} spyre_sdsc_padding;

/**
 * Declares the padding contents of argument @tensor for the operations that are added
 * from now on. An argument written by an operation becomes UNKNOWN, or stays FOREIGN.
 * Since 0.1.
 * Errors: INVALID_ARGUMENT (NULL, no such argument, no such kind).
 */
SPYRE_API spyre_status spyre_sdsc_graph_set_padding(spyre_sdsc_graph *graph, uint32_t tensor,
						    spyre_sdsc_padding padding);

/** Value of spyre_sdsc_split.dim for the dimension that a product sums over. */
#define SPYRE_SDSC_SUMMED 0
/** Largest number of splits in a request. */
#define SPYRE_SDSC_MAX_SPLITS 8

/** A dimension of an operation and its number of slices. Since 0.1. */
typedef struct spyre_sdsc_split {
	/**
	 * Dimension of the result, or of the input for reductions, counted from the
	 * end: -1 is the last one. Or SPYRE_SDSC_SUMMED.
	 */
	int32_t dim;
	int64_t slices;
} spyre_sdsc_split;

/**
 * Requests a division over the cores for the operations that are added from now on,
 * instead of the planner's choice; @num_splits 0 returns the choice to the planner.
 * Each step is divided along exactly those of the requested dimensions that it has.
 * The planner still divides steps that have none of them, and steps that only convert
 * an operand. Sticks are not cut: the stick dimension has as many points as it has
 * sticks. spyre_sdsc_plan_step.asked returns the request of each step. Since 0.1.
 * Errors: INVALID_ARGUMENT (NULL, more than SPYRE_SDSC_MAX_SPLITS, a dimension above 0
 * or repeated, slices below 1). Adding an operation fails with INVALID_ARGUMENT if no
 * step that has the dimension is divisible by the slices. Planning fails with
 * INVALID_ARGUMENT (a step would have more slices than cores), SPAN_LIMIT or
 * LX_OVERFLOW (too much for one core).
 */
SPYRE_API spyre_status spyre_sdsc_graph_set_division(spyre_sdsc_graph *graph,
						     const spyre_sdsc_split *splits,
						     uint32_t num_splits);

/**
 * Adds operation @op; operations execute in the order of these calls. @tensor is the
 * output: an argument's number, or SPYRE_SDSC_NEW for an intermediate, whose number it
 * then returns. Since 0.1.
 * Errors: UNSUPPORTED (operation), INVALID_ARGUMENT (attributes), ARGUMENT_MISMATCH
 * (shapes), LAYOUT (sticks), FORMAT. The graph is unchanged after an error.
 */
SPYRE_API spyre_status spyre_sdsc_graph_add_op(spyre_sdsc_graph *graph, const char *op,
					       const spyre_sdsc_attribute *attributes,
					       uint32_t num_attributes, const uint32_t *inputs,
					       uint32_t num_inputs, uint32_t *tensor);

/**
 * Marks the state of a graph that is being built. @mark returns a number for
 * spyre_sdsc_graph_rollback(); the graph owns the mark and frees it when it is
 * destroyed. The time taken does not depend on the size of the graph. Since 0.1.
 * Errors: INVALID_ARGUMENT (NULL), OUT_OF_HOST_MEMORY.
 */
SPYRE_API spyre_status spyre_sdsc_graph_mark(spyre_sdsc_graph *graph, uint32_t *mark);

/**
 * Returns a graph to the state that it had at @mark: the arguments, intermediates and
 * operations added since are removed and their numbers are given out again, paddings
 * and the requested division are restored. @mark remains valid, so that one mark serves
 * several attempts; marks made after it end. Plans, bundles and kernels made from the
 * graph are not affected. Since 0.1.
 * Errors: INVALID_ARGUMENT (NULL, no such mark). The graph is unchanged after an error.
 */
SPYRE_API spyre_status spyre_sdsc_graph_rollback(spyre_sdsc_graph *graph, uint32_t mark);

/**
 * Returns the shape and layout of a tensor of the graph, argument or intermediate.
 * Since 0.1.
 * Errors: INVALID_ARGUMENT (NULL, or no such tensor).
 */
SPYRE_API spyre_status spyre_sdsc_graph_get_tensor(const spyre_sdsc_graph *graph, uint32_t tensor,
						   spyre_sdsc_operand *operand);

/**
 * Plans the graph for @cores (1 to 32, or 0 for SENCORES) and writes it to @directory
 * as a bundle. Since 0.1.
 * Errors: SPAN_LIMIT, LX_OVERFLOW, FILE, INVALID_ARGUMENT (more than 32 cores, an empty
 * graph), CONFIGURATION (SENCORES and the planner's variables).
 */
SPYRE_API spyre_status spyre_sdsc_graph_write(const spyre_sdsc_graph *graph, uint32_t cores,
					      const char *directory);

/**
 * Plans the graph for @cores (1 to 32, or 0 for SENCORES) and compiles it for the card
 * of @context, without files. The caller unloads @kernel. Since 0.1.
 * Errors: those of spyre_sdsc_graph_write() and spyre_kernel_load().
 */
SPYRE_API spyre_status spyre_sdsc_graph_load(spyre_context *context,
					     const spyre_sdsc_graph *graph, uint32_t cores,
					     spyre_kernel **kernel);

#define SPYRE_SDSC_MAX_DIMS 12
#define SPYRE_SDSC_MAX_TENSORS 8
#define SPYRE_SDSC_MAX_CHOICES 4

/** Memory in which a plan places a tensor. Since 0.1. */
typedef enum spyre_sdsc_place {
	SPYRE_SDSC_ARGUMENT,	/**< device memory of the caller */
	SPYRE_SDSC_POOL,	/**< device memory of the kernel */
	SPYRE_SDSC_LX,		/**< each core's scratchpad */
} spyre_sdsc_place;

/** A tensor of a plan. Since 0.1. */
typedef struct spyre_sdsc_plan_tensor {
	spyre_sdsc_place place;
	/** Argument number, or byte offset in the pool or in LX. */
	uint64_t at;
	/** Size in bytes; for LX, of one core's share. */
	uint64_t bytes;
	/** First and last step between which its contents are needed. */
	uint32_t first, last;
} spyre_sdsc_plan_tensor;

/** A division of a step over the cores and its modelled time. Since 0.1. */
typedef struct spyre_sdsc_plan_choice {
	int64_t slices[SPYRE_SDSC_MAX_DIMS];
	double microseconds;
} spyre_sdsc_plan_choice;

/** One SDSC of a plan. Since 0.1. */
typedef struct spyre_sdsc_plan_step {
	char op[32];
	uint32_t num_dims;
	char dim[SPYRE_SDSC_MAX_DIMS][16];
	int64_t size[SPYRE_SDSC_MAX_DIMS];
	uint32_t num_cores;
	/** The chosen division, followed by the cheapest alternatives. */
	uint32_t num_choices;
	spyre_sdsc_plan_choice choice[SPYRE_SDSC_MAX_CHOICES];
	/** Indices into the plan's tensors; the last one is the output. */
	uint32_t num_tensors;
	uint32_t tensor[SPYRE_SDSC_MAX_TENSORS];
	/** Bytes of one core's share of each tensor, and bytes from its first to its last. */
	uint64_t core_bytes[SPYRE_SDSC_MAX_TENSORS];
	uint64_t core_span[SPYRE_SDSC_MAX_TENSORS];
	/** Slices requested by spyre_sdsc_graph_set_division(); 0 if none. */
	int64_t asked[SPYRE_SDSC_MAX_DIMS];
} spyre_sdsc_plan_step;

/** The planned form of a graph. Since 0.1. */
typedef struct spyre_sdsc_plan {
	uint32_t num_steps;
	uint32_t num_tensors;
	spyre_sdsc_plan_step *step;
	spyre_sdsc_plan_tensor *tensor;
	/** LX bytes per core that the planner may use, and uses. */
	uint64_t lx_capacity, lx_bytes;
	uint64_t pool_bytes;
	/** Modelled cost of one launch of the compiled program. */
	uint64_t cycles, bytes_read, bytes_written, macs;
} spyre_sdsc_plan;

/**
 * Plans a graph as spyre_sdsc_graph_write() does and returns the plan, which the
 * caller frees with spyre_sdsc_plan_free(). Since 0.1.
 * Errors: those of spyre_sdsc_graph_write().
 */
SPYRE_API spyre_status spyre_sdsc_graph_plan(const spyre_sdsc_graph *graph, uint32_t cores,
					     spyre_sdsc_plan **plan);

/** Frees a plan. NULL is allowed and has no effect. Since 0.1. */
SPYRE_API void spyre_sdsc_plan_free(spyre_sdsc_plan *plan);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_SDSC_H */
