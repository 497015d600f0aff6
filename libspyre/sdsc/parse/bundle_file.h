/* SPDX-License-Identifier: MIT */
/* Files of a bundle directory. Internal. */
#ifndef SPYRE_SDSC_BUNDLE_FILE_H
#define SPYRE_SDSC_BUNDLE_FILE_H

#include <spyre/types.h>

/* Zeros behind a file's text, for yyjson to read in place. */
#define BUNDLE_FILE_PADDING 8u

/*
 * A whole file of the bundle, to be freed; zeros follow that @size does not
 * count. @text is NULL, without an error, if the file is @optional and
 * missing.
 */
spyre_status bundle_file_load(const char *directory, const char *file, bool optional, char **text,
			      size_t *size);

#endif /* SPYRE_SDSC_BUNDLE_FILE_H */
