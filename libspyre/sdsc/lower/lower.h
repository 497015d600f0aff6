/* SPDX-License-Identifier: MIT */
/* Lowering: one SDSC to the phases of a program. Internal. */
#ifndef SPYRE_SDSC_LOWER_H
#define SPYRE_SDSC_LOWER_H

#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/lower/encode.h"

#define SPAN_LIMIT (256ull << 20)	/* bytes of a tensor that one core reaches */

struct nest;
struct written;

/* The steps that lower_sdsc() takes: both, or one of an output that is made in LX first. */
enum lower_pass {
	LOWER_ALL,
	LOWER_MAKE,
	LOWER_STORE,
};

/* Start address of a tensor for one core. */
struct address {
	uint16_t operand;
	uint64_t offset;
	uint64_t per_iter[SPYRE_MAX_LOOPS];
};

struct lower {
	struct encoder *encoder;
	const struct ir_bundle *bundle;
	const struct ir_stmt *stmt;
	const struct ir_sdsc *sdsc;
	bool baked_pool;		/* baked addresses in segment 0 belong to the pool */
	uint32_t scratch;		/* first LX byte that no tensor of the bundle uses */
	struct written *written;	/* outputs of earlier SDSCs */
	uint32_t idle;			/* taps of the bundle that produced no instruction */
	enum lower_pass pass;
	/* by tensor and index into sdsc->core[] */
	struct address address[IR_MAX_TENSORS + 1][SPYRE_MAX_CORES];
};

/* Finds the addresses of @tensor on every core, and checks its reach. */
spyre_status lower_resolve(struct lower *l, uint32_t tensor);
spyre_status lower_unsupported(const struct lower *l, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void lower_view(struct spyre_view *view, const struct ir_tensor *t, const struct address *at);
/* Last byte (exclusive) of one core's box, from its start. */
uint64_t lower_box_bytes(const struct ir_sdsc *s, const struct ir_tensor *t);
/*
 * True if the operation reads the tensor. Reductions list their output among the inputs,
 * although they do not read it; indices are read, although they are not among the inputs.
 */
bool lower_is_input(const struct ir_sdsc *s, uint32_t tensor);
bool lower_varies(const struct ir_tensor *t, uint32_t dim);
/* Refuses coordinateMasking_ of the dims with a bit in @dims, which the output lacks. */
spyre_status lower_unmasked(struct lower *l, uint32_t dims);
/* Resolves a number from the file: a byte address, or a symbol that bundle.mlir binds. */
spyre_status lower_value(struct lower *l, int64_t start, struct ir_value *value);
/* Finds the argument that starts at @start, SPYRE_MAX_OPERANDS if none does. */
spyre_status lower_argument(struct lower *l, int64_t start, uint32_t *arg);
/* True if constantInfo_ has the constant; lower_constant() reads it as fp32 bits. */
bool lower_has_constant(const struct lower *l, const char *name);
spyre_status lower_constant(struct lower *l, const char *name, uint32_t *bits);
/* Reads a constant of IEEE_INT32 as it is. */
spyre_status lower_integer_constant(struct lower *l, const char *name, uint32_t *bits);

/*
 * Adds the iteration dims to a nest whose views are those of @tensor[]; the
 * lanes are along dim @lane_dim, @nest->in.lanes elements of it. Dims with a
 * bit in @skip are left out, those in @reduce are reduced. @el: the core's box.
 */
spyre_status lower_dims(struct lower *l, struct nest *nest, const struct ir_tensor *const *tensor,
			uint32_t num_tensors, uint32_t lane_dim, const int64_t *el, uint32_t skip,
			uint32_t reduce);

#endif /* SPYRE_SDSC_LOWER_H */
