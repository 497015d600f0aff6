/* SPDX-License-Identifier: MIT */
/*
 * Bundles of one SDSC that a test describes in a few words, run on a bare card with
 * every arithmetic unit. Elements are raw codes; their addresses are computed here
 * from the field reference, independently of the compiler.
 */
#ifndef SDSC_BUNDLE_H
#define SDSC_BUNDLE_H

#include <spyre/spyre.h>

#include "model/format.h"

#define BUNDLE_DIMS 8
#define BUNDLE_TENSORS 4
#define BUNDLE_PARTS 4

struct bundle_tensor {
	enum spyre_fmt format;
	int num_order, order[BUNDLE_DIMS];
	int num_parts, part_dim[BUNDLE_PARTS], part_size[BUNDLE_PARTS];
	int scale[BUNDLE_DIMS];		/* 0: the tensor lacks the dim */
	uint32_t *code;			/* row-major over the dims it varies along */
	size_t count;
	uint8_t *memory;
	size_t bytes;
};

struct bundle_case {
	const char *op;
	int num_dims, cores;
	char dim[BUNDLE_DIMS][16];
	int64_t size[BUNDLE_DIMS], slices[BUNDLE_DIMS];
	int num_tensors;		/* the last is the output */
	struct bundle_tensor tensor[BUNDLE_TENSORS];
	int num_constants;
	struct {
		const char *name;
		uint32_t bits;		/* IEEE_FP32 */
	} constant[2];
};

/* @dims: "mb 4/2, in 256, out 128": sizes, and slices if there are several. */
void bundle_begin(struct bundle_case *c, const char *op, const char *dims);
/*
 * @text: "SEN143_FP8 [in 8, mb 2, in 8] mb in": format, stick, order in memory,
 * both from inside out. "in-" is a dim of scale -1, "in=" of -2.
 */
void bundle_tensor(struct bundle_case *c, const char *text);
void bundle_constant(struct bundle_case *c, const char *name, float value);
void bundle_end(struct bundle_case *c);

/* Returns the code of an element; dims that the tensor lacks are ignored. */
uint32_t *bundle_at(const struct bundle_case *c, int tensor, const int64_t *x);
/* Steps through all coordinates of @c; returns false after the last. */
bool bundle_next(const struct bundle_case *c, int64_t *x);

/* Draws random codes whose numbers have a magnitude of about @size. */
void bundle_draw(struct bundle_case *c, int tensor, float size);

/* Compiles and runs; all units must leave the same bits in the output's memory. */
void bundle_run(struct bundle_case *c);
/* Compiling must fail with this status and text. */
void bundle_refused(struct bundle_case *c, spyre_status status, const char *words);

float bundle_number(enum spyre_fmt format, uint32_t code);
uint32_t bundle_code(enum spyre_fmt format, float number);

#endif /* SDSC_BUNDLE_H */
