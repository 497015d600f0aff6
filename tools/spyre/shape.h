/* SPDX-License-Identifier: MIT */
/* Operands of the command line: 512x1024@fp16, x.npy@bf16, … */
#ifndef SPYRE_TOOL_SHAPE_H
#define SPYRE_TOOL_SHAPE_H

#include "spyre.h"

enum shape_order {
	/* Dense, or another layout that the kernel expects. */
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
	/* SPYRE_FORMAT_INVALID: the format of the file. */
	spyre_format format;
	enum shape_order order;
	uint32_t order_len;
	int32_t dim_order[SPYRE_MAX_RANK + 1];
};

/* Parses an input: a shape to fill, or a file. Returns 0, or -1 with @why. */
int shape_parse_input(const char *word, struct shape_spec *spec, struct text *why);
/* Parses an output: SHAPE@FORMAT[:ORDER][=FILE.npy]. */
int shape_parse_output(const char *word, struct shape_spec *spec, struct text *why);
/* Parses SHAPE[@FORMAT[:ORDER]], whose format is @format if the word has none. */
int shape_parse_default(const char *word, spyre_format format, struct shape_spec *spec,
			struct text *why);
void shape_fini(struct shape_spec *spec);

/* Number of elements of a shape; -1 if it exceeds the memory of any card. */
int64_t shape_elements(uint32_t rank, const int64_t *size);
/* Formats a shape as "512x1024"; "scalar" for rank 0. */
void shape_format(uint32_t rank, const int64_t *size, char *buffer, size_t bytes);
/* Short name of a format, such as "fp16"; the public name if it has none. */
const char *shape_format_name(spyre_format format);

/* Creates the layout of @spec, dense for AUTO. Sets spyre_last_error(). */
spyre_status shape_layout(const struct shape_spec *spec, spyre_layout *layout);

#endif /* SPYRE_TOOL_SHAPE_H */
