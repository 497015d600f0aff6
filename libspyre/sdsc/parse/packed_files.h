/* SPDX-License-Identifier: MIT */
/*
 * The files of a bundle in one piece of memory, as a compiled bundle with symbols carries them:
 * per file 64 bytes of name, u64 bytes (little endian), the text, zeros up to a multiple of 8.
 * Internal.
 */
#ifndef SPYRE_SDSC_PACKED_FILES_H
#define SPYRE_SDSC_PACKED_FILES_H

#include <spyre/types.h>

struct packed_files {
	uint8_t *data;		/* owned */
	size_t bytes, capacity;
};

/* Appends a file; OUT_OF_HOST_MEMORY. */
spyre_status packed_files_add(struct packed_files *files, const char *name, const char *text,
			      size_t size);
void packed_files_fini(struct packed_files *files);

/*
 * Copies a file out of @bytes of packed files, which may be damaged or hostile, as
 * bundle_file_load() does.
 */
spyre_status packed_files_load(const uint8_t *data, size_t bytes, const char *name, bool optional,
			       char **text, size_t *size);

#endif /* SPYRE_SDSC_PACKED_FILES_H */
