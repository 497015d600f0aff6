/* SPDX-License-Identifier: MIT */
/* Bundles in temporary folders, to be edited. */
#ifndef BUNDLE_FILES_H
#define BUNDLE_FILES_H

#include <spyre/spyre.h>

#include "libspyre/sdsc/write/write.h"

#define FILES_MAX_TEXT (1u << 20)

/* A new folder; removed with all that is in it by files_remove(). */
void files_make(char folder[64]);
void files_remove(const char *folder);

/* A bundle of @op on fp16 tensors of rank 2, row-major; @slices NULL: one core. */
void files_build(const char *folder, const char *op, int64_t (*size)[2], uint32_t count,
		 const int64_t *slices);
void files_write(const char *folder, const char *file, const char *text);
/* To be freed. */
char *files_read(const char *folder, const char *file);
/* Replaces the first @from, which must be there. */
void files_edit(const char *folder, const char *file, const char *from, const char *to);
bool files_exist(const char *folder, const char *file);

#endif /* BUNDLE_FILES_H */
