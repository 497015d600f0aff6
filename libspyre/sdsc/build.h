/* SPDX-License-Identifier: MIT */
/*
 * Builder: one operation to a bundle directory. The operation is first put
 * into the same form that the parser makes of a file, then written out.
 * Internal.
 */
#ifndef SPYRE_SDSC_BUILD_H
#define SPYRE_SDSC_BUILD_H

#include <spyre/sdsc.h>

#include "libspyre/sdsc/ir.h"

enum build_kind {
	BUILD_POINTWISE,
	BUILD_REDUCE,
	BUILD_MATMUL,
};

struct build_op {
	const char *name;	/* what callers say */
	const char *func;	/* opFuncName */
	enum build_kind kind;
	uint32_t inputs;
};

/* Dims, sizes and tensors of an operation; the work is not divided yet. */
spyre_status build_shapes(const struct build_op *op, const spyre_sdsc_operand *operands,
			  uint32_t num_operands, struct ir_sdsc *sdsc);
/* Divides the work: fills slices of each dim, at most @cores in all. */
void build_divide(const struct build_op *op, uint32_t cores, struct ir_sdsc *sdsc);
/* Follows the division: shares, slices of cores, strides and symbols. */
spyre_status build_place(struct ir_sdsc *sdsc);

/* Writes the two files. */
spyre_status build_write_json(const struct ir_sdsc *sdsc, enum build_kind kind,
			      const char *directory);
spyre_status build_write_mlir(const struct ir_sdsc *sdsc, const char *directory);
spyre_status build_write_file(const char *directory, const char *file, const char *text,
			      size_t size);

/* Byte offset of a core's share within a tensor. */
uint64_t build_offset(const struct ir_sdsc *s, const struct ir_tensor *t, uint32_t core);

/*
 * spyre_sdsc_build() with a division of the caller's choice: slices of the
 * dims in their order, NULL for the usual one.
 */
spyre_status build_bundle(const char *op, const spyre_sdsc_operand *operands,
			  uint32_t num_operands, uint32_t cores, const int64_t *slices,
			  const char *directory);

#endif /* SPYRE_SDSC_BUILD_H */
