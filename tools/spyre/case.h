/* SPDX-License-Identifier: MIT */
/* case.json: the operands of a bundle, with their device layouts. */
#ifndef SPYRE_TOOL_CASE_H
#define SPYRE_TOOL_CASE_H

#include "tensor.h"

/*
 * Reads the file and fills @list: shapes, formats and memory of every operand,
 * explicit layouts, argument positions and the distribution of inputs. 0, or
 * -1 and a text with the file and the field.
 */
int case_read(const char *path, struct tensor_list *list, struct text *why);

#endif /* SPYRE_TOOL_CASE_H */
