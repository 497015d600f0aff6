/* SPDX-License-Identifier: MIT */
/* The output of `spyre launch`. */
#ifndef SPYRE_TOOL_REPORT_H
#define SPYRE_TOOL_REPORT_H

#include "run.h"

void report_text(const struct run *run, const struct tensor_list *list, bool stats);
/* Prints one object on one line; spyre-launch(1) has the schema. Returns -1 if out of memory. */
int report_json(const struct run *run, const struct run_options *options,
		const struct tensor_list *list);

#endif /* SPYRE_TOOL_REPORT_H */
