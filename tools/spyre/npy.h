/* SPDX-License-Identifier: MIT */
/* NumPy .npy files, versions 1 and 2. In memory elements have the host's byte order. */
#ifndef SPYRE_TOOL_NPY_H
#define SPYRE_TOOL_NPY_H

#include "spyre.h"

struct npy {
	/* As in descr: kind 'f', 'i', 'u' or 'b', and bytes per element. */
	char kind;
	uint8_t item;
	bool fortran;
	/* The file's byte order is not the host's. */
	bool swapped;
	uint32_t rank;
	int64_t size[SPYRE_MAX_RANK];
	/* In elements, not bytes. */
	int64_t stride[SPYRE_MAX_RANK];
	int64_t elements;
	size_t bytes;
	/* Owned; NULL when there are no elements. */
	void *data;
};

/*
 * Reads a whole file. Returns 0, or -1 with the file, the offset and what was found
 * there in @why.
 */
int npy_read(const char *path, struct npy *npy, struct text *why);
void npy_fini(struct npy *npy);

/* Writes a dense row-major array, little endian; removes a file that could not be completed. */
int npy_write(const char *path, char kind, uint8_t item, uint32_t rank, const int64_t *size,
	      const void *data, struct text *why);

#endif /* SPYRE_TOOL_NPY_H */
