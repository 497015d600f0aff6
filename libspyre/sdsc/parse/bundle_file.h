/* SPDX-License-Identifier: MIT */
/* Files of a bundle directory. Internal. */
#ifndef SPYRE_SDSC_BUNDLE_FILE_H
#define SPYRE_SDSC_BUNDLE_FILE_H

#include <spyre/types.h>

/* Zeros after a file's text, which yyjson needs to parse in place. */
#define BUNDLE_FILE_PADDING 8u

/*
 * Reads a whole file of the bundle, followed by zeros that @size does not count;
 * the caller frees it. @text is NULL, without an error, if the file is @optional
 * and missing.
 */
spyre_status bundle_file_load(const char *directory, const char *file, bool optional, char **text,
			      size_t *size);

#endif /* SPYRE_SDSC_BUNDLE_FILE_H */
