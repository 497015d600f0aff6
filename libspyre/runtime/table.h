/* SPDX-License-Identifier: MIT */
/* Tables among the arguments of a launch. Internal. */
#ifndef SPYRE_RUNTIME_TABLE_H
#define SPYRE_RUNTIME_TABLE_H

#include "libspyre/runtime/kernel.h"

/* Writes the sizes of dims, "[4, 2, 64]", to @text and returns it. */
const char *sizes_text(char *text, size_t bytes, const int64_t *size, uint32_t rank);

/*
 * Gets the bytes of the table that a launch passes as argument @index: those of its layout, or
 * the memory from its address on. Errors: ARGUMENT_MISMATCH if the layout has less than a row,
 * or rows of another width than the program's; as spyre_pointer_query().
 */
spyre_status table_bytes(struct spyre_kernel *kernel, uint32_t index,
			 const spyre_launch_arg *arg, uint64_t *bytes);

#endif /* SPYRE_RUNTIME_TABLE_H */
