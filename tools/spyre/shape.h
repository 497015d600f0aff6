/* SPDX-License-Identifier: MIT */
/* Operands as words of the command line: 512x1024@fp16, x.npy@bf16, … */
#ifndef SPYRE_TOOL_SHAPE_H
#define SPYRE_TOOL_SHAPE_H

#include "spyre.h"

enum shape_order {
	/* Dense, or what fits the kernel. */
	SHAPE_ORDER_AUTO,
	/* One element per stick, dimensions in their order. */
	SHAPE_ORDER_SPARSE,
	SHAPE_ORDER_GIVEN,
};

/* SHAPE@FORMAT[:ORDER], and for files FILE.npy[@FORMAT[:ORDER]]. */
struct shape_spec {
	/* The .npy file to read or write, NULL for none. Owned. */
	char *path;
	bool has_shape;
	uint32_t rank;
	int64_t size[SPYRE_MAX_RANK];
	/* INVALID: the file's. */
	spyre_format format;
	enum shape_order order;
	uint32_t order_len;
	int32_t dim_order[SPYRE_MAX_RANK + 1];
};

/* An input: a shape to fill or a file. 0, or -1 and @why. */
int shape_parse_input(const char *word, struct shape_spec *spec, struct text *why);
/* An output: SHAPE@FORMAT[:ORDER][=FILE.npy]. */
int shape_parse_output(const char *word, struct shape_spec *spec, struct text *why);
void shape_fini(struct shape_spec *spec);

/* Elements of a shape; -1 if they pass what a card could hold. */
int64_t shape_elements(uint32_t rank, const int64_t *size);
/* "512x1024", "scalar" for rank 0. */
void shape_format(uint32_t rank, const int64_t *size, char *buffer, size_t bytes);
/* Short name of a format: "fp16"; the public one where there is none. */
const char *shape_format_name(spyre_format format);

/* The layout that @spec asks for, dense for AUTO. Sets spyre_last_error(). */
spyre_status shape_layout(const struct shape_spec *spec, spyre_layout *layout);

#endif /* SPYRE_TOOL_SHAPE_H */
