/* SPDX-License-Identifier: MIT */
/* Bundles in temporary folders, which tests can edit. */
#ifndef BUNDLE_FILES_H
#define BUNDLE_FILES_H

#include <spyre/spyre.h>

#include "libspyre/sdsc/write/write.h"

#define FILES_MAX_TEXT (1u << 20)

/* Creates a folder; files_remove() removes it with its contents. */
void files_make(char folder[64]);
void files_remove(const char *folder);

/* A bundle of @op on fp16 tensors of rank 2, row-major; @slices NULL: one core. */
void files_build(const char *folder, const char *op, int64_t (*size)[2], uint32_t count,
		 const int64_t *slices);
void files_write(const char *folder, const char *file, const char *text);
/* The caller frees the result. */
char *files_read(const char *folder, const char *file);
/* Replaces the first occurrence of @from, which must exist. */
void files_edit(const char *folder, const char *file, const char *from, const char *to);
/*
 * Makes the size of a dim that is divided into @slices a parameter with symbol s0, as the
 * public front-end does.
 */
void files_size_param(const char *folder, const char *dim, int64_t granularity, int64_t max,
		      int64_t slices);
/* Copies a recorded bundle of the conformance tests. */
void files_copy(const char *folder, const char *name);
bool files_exist(const char *folder, const char *file);

#endif /* BUNDLE_FILES_H */
