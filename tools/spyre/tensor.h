/* SPDX-License-Identifier: MIT */
/* Tensors of a launch: their host memory, source and destination. */
#ifndef SPYRE_TOOL_TENSOR_H
#define SPYRE_TOOL_TENSOR_H

#include "npy.h"
#include "shape.h"

/* The distributions of "init" in case.json, and ones. */
enum tensor_init {
	TENSOR_ONES,
	TENSOR_RANDN,
	TENSOR_SMALL,	 /* randn / 10 */
	TENSOR_POSITIVE, /* |randn| + 0.5 */
	TENSOR_BOOL,	 /* 0 or 1 */
	TENSOR_INTS,	 /* 0, 1, 2 or 3 */
	TENSOR_ZERO,
	TENSOR_INIT_COUNT
};

struct tensor {
	bool output;
	/* Position among the inputs or among the outputs: the N of inN.npy. */
	uint32_t position;
	/* Position among the kernel's arguments. */
	int arg_index;
	/* The source of its elements. */
	enum tensor_init init;
	/* Owned; @host describes the elements in it. */
	void *data;
	spyre_host_tensor host;
	/* The layout on the card; given by the user or chosen for the kernel. */
	spyre_layout layout;
	bool layout_given;
	/* The file of an input or output; owned, may be NULL. */
	char *path;
	spyre_devptr address;
};

#define TENSOR_MAX 256

/* Inputs first, then outputs. */
struct tensor_list {
	struct tensor *at;
	uint32_t count;
	uint32_t inputs;
};

/* Appends a zeroed tensor; NULL with @why if there are too many. */
struct tensor *tensor_add(struct tensor_list *list, bool output, struct text *why);
void tensor_list_fini(struct tensor_list *list);

enum tensor_init tensor_init_from_name(const char *name);
const char *tensor_init_name(enum tensor_init init);

/* Sets shape and format of @tensor and allocates its memory. */
int tensor_alloc(struct tensor *tensor, uint32_t rank, const int64_t *size, spyre_format format,
		 struct text *why);
/* Fills the elements according to tensor->init. Values for a DL16 layout are exact in DL16. */
void tensor_fill(struct tensor *tensor, uint64_t seed);
/*
 * Reads a .npy file; @format INVALID takes the file's own. Elements keep their
 * order in the file (C or Fortran) unless they are converted; uint16 read as bf16
 * is taken as its bit pattern.
 */
int tensor_load(struct tensor *tensor, const char *path, spyre_format format, struct text *why);
/* Writes the elements in their own type, bf16 as uint16 bit patterns. */
int tensor_save(const struct tensor *tensor, const char *path, struct text *why);

/* Returns the element at @index. */
double tensor_value(const struct tensor *tensor, const int64_t *index);
/*
 * The FNV-1a hash, 64 bits, of the elements' bytes in row-major order, little endian as in a .npy
 * file. The tensor must be dense.
 */
uint64_t tensor_checksum(const struct tensor *tensor);

#endif /* SPYRE_TOOL_TENSOR_H */
