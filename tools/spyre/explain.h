/* SPDX-License-Identifier: MIT */
/* Prints a plan as text or JSON. */
#ifndef SPYRE_TOOL_EXPLAIN_H
#define SPYRE_TOOL_EXPLAIN_H

#include "spyre.h"

void explain_text(const char *op, const spyre_sdsc_plan *plan);
void explain_json(const char *op, const spyre_sdsc_plan *plan);

#endif /* SPYRE_TOOL_EXPLAIN_H */
