/* SPDX-License-Identifier: MIT */
/* Output of spyre estimate. */
#ifndef SPYRE_TOOL_ESTIMATE_H
#define SPYRE_TOOL_ESTIMATE_H

#include "decode.h"

#define MAX_CARDS 8

/* The estimates of a model; @why replaces one that is not possible. */
struct estimate {
	struct model model;
	struct decode_options options;
	uint32_t count;
	struct decode decode[MAX_CARDS];
	bool possible[MAX_CARDS];
	struct text why[MAX_CARDS];
};

void estimate_text(const struct estimate *estimate);
/* Returns an exit_code. */
int estimate_json(const struct estimate *estimate);

#endif /* SPYRE_TOOL_ESTIMATE_H */
