/* SPDX-License-Identifier: MIT */
/* SDSC builder: writes bundle directories in the public form. */
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

/** Names of the operations that the builder knows, NULL-terminated. Since 0.1. */
SPYRE_API const char *const *spyre_sdsc_operations(void);

/**
 * Writes bundle.mlir and sdsc_0.json for one operation to @directory (made if
 * it is missing). @op is an operation name ("add", "mul", "relu", "sum",
 * "matmul"): "sum" reduces the last dimension. @operands are the inputs in
 * order, then the output. @cores: 1..32, or 0 for SENCORES (default 32); fewer
 * are used where the shape does not divide. Since 0.1.
 * Errors: UNSUPPORTED (operation), ARGUMENT_MISMATCH (shapes), LAYOUT (sticks),
 * FORMAT, SPAN_LIMIT, FILE.
 */
SPYRE_API spyre_status spyre_sdsc_build(const char *op, const spyre_sdsc_operand *operands,
					uint32_t num_operands, uint32_t cores,
					const char *directory);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_SDSC_H */
