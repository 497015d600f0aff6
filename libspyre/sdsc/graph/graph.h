/* SPDX-License-Identifier: MIT */
/*
 * Builder: operations by name to SDSCs. An operation is first put into the
 * form that the parser makes of a file; the planners (plan.h) divide the work
 * and place what lies between operations; then it is written or compiled.
 * Internal.
 */
#ifndef SPYRE_SDSC_BUILD_H
#define SPYRE_SDSC_BUILD_H

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
	BUILD_RECIPE,		/* made of others */
};

enum {
	BUILD_LX = 1,		/* the result may stay in LX */
	BUILD_IN_PLACE = 2,	/* may overwrite an input that nobody needs any more */
	BUILD_CONVERTS = 4,	/* input and output differ in format */
	BUILD_SPLAT = 8,	/* reads single lanes even where all operands are sparse */
};

struct build_call;

struct build_op {
	const char *name;	/* what callers say */
	const char *func;	/* opFuncName */
	enum build_kind kind;
	uint32_t inputs, most_inputs;
	uint32_t flags;
	spyre_status (*recipe)(const struct build_call *call);
	/* Attributes, and for pointwise operations the constants they become. */
	struct {
		const char *name;
		const char *constant;
		double fallback;	/* NAN: has to be given */
	} attr[BUILD_MAX_ATTRS];
};

struct build_tensor {
	spyre_sdsc_operand operand;
	bool argument;
	uint32_t arg;
	spyre_sdsc_padding padding;
};

/* One SDSC to be. */
struct build_step {
	struct ir_sdsc sdsc;
	const struct build_op *op;
	uint32_t tensor[IR_MAX_TENSORS];	/* of the graph, by operand */
	/* Host dim that a dim walks, counted from the right; BUILD_NO_KEY: none. */
	int8_t key[IR_MAX_DIMS];
	uint32_t whole;		/* dims (bits) that are never divided */
	uint32_t reduced;	/* dims that are reduced, but not along sticks */
	int64_t asked[IR_MAX_DIMS];	/* slices that the caller wants, 0: no matter */
	bool helps;		/* brings an operand into form */
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
	size_t room_tensors, room_steps;
	/* The division that is asked for (build_division.c). */
	spyre_sdsc_split split[SPYRE_SDSC_MAX_SPLITS];
	uint32_t num_splits;
	bool helping;		/* what is added brings operands into form */
};

/* An operand as an operation sees it: often the tensor itself. */
struct build_use {
	uint32_t tensor;
	spyre_sdsc_operand view;
	uint32_t clean;		/* dims (bits) beyond which there are zeros */
};

/* A recipe works on this; @in[] and @out are tensors, @out may be SPYRE_SDSC_NEW. */
struct build_call {
	spyre_sdsc_graph *graph;
	const struct build_op *op;
	const spyre_sdsc_attribute *attr;
	uint32_t num_attrs;
	uint32_t num_inputs;
	uint32_t in[BUILD_MAX_INPUTS];
	uint32_t *out;
};

/* build_ops.c */
const struct build_op *build_op_find(const char *name);
bool build_has_attr(const struct build_call *call, const char *name);
double build_attr(const struct build_call *call, const char *name);
/* The value of the attribute that is given for the @n-th time, or the last one. */
double build_attr_nth(const struct build_call *call, const char *name, uint32_t n);
spyre_status build_check_attrs(const struct build_call *call);

/* build_graph.c: tensors and steps */
spyre_status build_new_tensor(spyre_sdsc_graph *graph, const spyre_sdsc_operand *operand,
			      uint32_t *tensor);
spyre_status build_add_step(const struct build_call *call, struct build_use *uses);
const spyre_sdsc_operand *build_operand(const spyre_sdsc_graph *graph, uint32_t tensor);
/* Adds an operation by its name, to an intermediate if *@out is SPYRE_SDSC_NEW. */
spyre_status build_add(spyre_sdsc_graph *graph, const char *op, const spyre_sdsc_attribute *attr,
		       uint32_t num_attrs, const uint32_t *in, uint32_t num_inputs, uint32_t *out);

/* build_division.c: asks a step for what it has of the graph's division */
void build_ask(const spyre_sdsc_graph *graph, struct build_step *step);
/* True if one of the steps from @first on takes each split that any of them has. */
spyre_status build_check_division(const spyre_sdsc_graph *graph, const char *op, uint32_t first);
/* The dim of a step that a split is of, -1 if it has none such. */
int build_split_dim(const struct build_step *step, int32_t dim);

/* build_layout.c */
/* Finds the host dim of each device dim; dense row-major strides are assumed. */
spyre_status build_normalize(const char *op, uint32_t index, spyre_sdsc_operand *o);
/*
 * The host dim along sticks, -1 if each element has a stick of its own or there is
 * no layout. No index: it is checked before it is one.
 */
int build_stick_dim(const spyre_sdsc_operand *o);
/*
 * A row-major layout with sticks along @stick (-1: an element per stick); dims
 * with a bit in @pad have whole sticks' worth of room.
 */
void build_layout(spyre_sdsc_operand *o, spyre_format format, int stick, uint32_t pad);
/* Adds dim @dim of size 1. */
void build_unsqueeze(spyre_sdsc_operand *o, uint32_t dim);
void build_swap_dims(spyre_sdsc_operand *o, uint32_t a, uint32_t b);
/*
 * Adds a tensor to @s: @dim[] is the iteration dim of each host dim, -1 for
 * none; @stick the one along sticks, which the tensor varies along if @varies.
 */
spyre_status build_place_tensor(struct ir_sdsc *s, const char *op, const spyre_sdsc_operand *o,
				const int *dim, uint32_t stick, bool varies);
/* Dims of one point that came up with a tensor, from @first on, are dims of all. */
void build_share_singles(struct ir_sdsc *s, uint32_t first);

/* build_infer.c: the view of an output that the caller left open */
spyre_status build_infer(const struct build_call *call, const struct build_use *uses,
			 spyre_sdsc_operand *out);

/* build_shapes.c: what the shapes of all operations are made with */
int build_add_dim(struct build_step *step, const char *name, int64_t size, int key);
/* Constants are stored in DL16 or fp32. */
void build_add_constant(struct ir_sdsc *s, const char *name, float value);
/* Names the operation; the last of @count operands is its output. */
void build_finish(struct build_step *step, const struct build_use *uses, uint32_t count,
		  const char *func);

/* Dims and tensors of a step; the work is not divided yet. */
spyre_status build_shapes(const struct build_call *call, struct build_use *uses,
			  struct build_step *step);

/* build_fit.c: operands brought into form */
int64_t build_whole_sticks(int64_t size, int64_t lanes);
/* Elements of a stick. */
int64_t build_lanes(const spyre_sdsc_operand *o);
/*
 * True if steps may go as far as @size along @dim: lanes of a last stick are a
 * tensor's own, what lies beyond that is if its padding is.
 */
bool build_has_room(const spyre_sdsc_graph *graph, const struct build_use *use, uint32_t dim,
		    int64_t size);
/* The same for an output; what an argument has beyond its size is never written. */
bool build_may_write(const spyre_sdsc_graph *graph, const struct build_use *use, uint32_t dim,
		     int64_t size);
/* True if zeros follow up to a whole stick's worth of dim @dim. */
bool build_is_clean(const struct build_use *use, uint32_t dim);
/* A copy with zeros in the lanes beyond dim @k, which is along its sticks. */
spyre_status build_clean_lanes(spyre_sdsc_graph *graph, struct build_use *use, uint32_t k);
/* A tensor as it is; SPYRE_SDSC_NEW has no view yet. */
struct build_use build_use_of(const spyre_sdsc_graph *graph, uint32_t tensor);
/* One step of a plain operation on given views. */
spyre_status build_emit(spyre_sdsc_graph *graph, const char *op, const struct build_use *in,
			uint32_t num_inputs, struct build_use *out);
/*
 * A copy that has room for whole sticks along the dims in @pad (bits). With
 * @clean, the room holds zeros.
 */
spyre_status build_pad_copy(spyre_sdsc_graph *graph, struct build_use *use, uint32_t pad,
			    bool clean);
/*
 * Brings @from into sticks along @stick, or with -1 into one stick per element;
 * @to may be left open.
 */
spyre_status build_restick(spyre_sdsc_graph *graph, struct build_use from, int stick,
			   struct build_use *to);
/* A dense vector along the sticks as one with an element per stick. */
spyre_status build_sparse(spyre_sdsc_graph *graph, struct build_use *use);
spyre_status build_restick_new(spyre_sdsc_graph *graph, struct build_use *use, int stick);
/* Inputs of pointwise operations that have their sticks along another dim than the output. */
spyre_status build_align(const struct build_call *call, struct build_use *uses);
/* An attribute that names a dim; negative ones count from the end. */
spyre_status build_attr_dim(const struct build_call *call, const char *name, double value,
			    uint32_t rank, uint32_t *dim);

/* One value that is 0 whatever memory holds; any value made of it. */
spyre_status build_zero(spyre_sdsc_graph *graph, spyre_format format, uint32_t *tensor);
spyre_status build_constant(spyre_sdsc_graph *graph, spyre_format format, double value,
			    uint32_t *tensor);

/* One file each. */
spyre_status build_matmul(const struct build_call *call);
spyre_status build_transpose(const struct build_call *call);
/* Of 16 or 32 bits. */
bool build_is_float(spyre_format format);
spyre_status build_cast(const struct build_call *call);
spyre_status build_quantise(const struct build_call *call);
spyre_status build_scaled_mm(const struct build_call *call);
spyre_status build_fill(const struct build_call *call);
spyre_status build_reduce(const struct build_call *call);

/* build_math.c */
spyre_status build_alpha(const struct build_call *call);
spyre_status build_where(const struct build_call *call);
spyre_status build_ceil(const struct build_call *call);
spyre_status build_sign(const struct build_call *call);
spyre_status build_square(const struct build_call *call);
spyre_status build_pow(const struct build_call *call);
spyre_status build_logical_not(const struct build_call *call);
spyre_status build_logical(const struct build_call *call);
spyre_status build_trunc(const struct build_call *call);
spyre_status build_round(const struct build_call *call);
spyre_status build_mm(const struct build_call *call);
spyre_status build_gelu_tanh(const struct build_call *call);
spyre_status build_batch_norm(const struct build_call *call);

/* build_statistics.c */
spyre_status build_var(const struct build_call *call);
spyre_status build_vector_norm(const struct build_call *call);

/* build_window.c */
spyre_status build_conv2d(const struct build_call *call);
spyre_status build_pool2d(const struct build_call *call);
/* Dims, tensors and axes of a step of BUILD_WINDOW. */
spyre_status build_window_shapes(const struct build_call *call, struct build_use *uses,
				 struct build_step *step);

/* build_topk.c */
spyre_status build_topk(const struct build_call *call);
spyre_status build_argmax(const struct build_call *call);
spyre_status build_topk_shapes(const struct build_call *call, struct build_use *uses,
			       struct build_step *step);

/* build_recipes.c */
spyre_status build_softmax(const struct build_call *call);
spyre_status build_log_softmax(const struct build_call *call);
spyre_status build_layer_norm(const struct build_call *call);
spyre_status build_rms_norm(const struct build_call *call);
spyre_status build_swiglu(const struct build_call *call);
spyre_status build_linear(const struct build_call *call);
spyre_status build_addmm(const struct build_call *call);
/* e^(x - max x) and its sum, along @dim of the first input. */
spyre_status build_exponentials(const struct build_call *call, double dim, uint32_t *shifted,
				uint32_t *power, uint32_t *sum);

/* build_attention.c */
spyre_status build_attention(const struct build_call *call);

/* The number of cores to plan for: @cores, or SENCORES if it is 0. */
spyre_status build_cores(uint32_t *cores);

/* Writes the files. */
spyre_status build_write_json(const struct build_step *step, const char *directory);
spyre_status build_write_file(const char *directory, const char *file, const char *text,
			      size_t size);

/*
 * spyre_sdsc_build() with a division of the caller's choice: slices of the
 * dims in their order, NULL for the usual one.
 */
spyre_status build_bundle(const char *op, const spyre_sdsc_operand *operands,
			  uint32_t num_operands, uint32_t cores, const int64_t *slices,
			  const char *directory);

#endif /* SPYRE_SDSC_BUILD_H */
