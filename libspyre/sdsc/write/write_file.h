/* SPDX-License-Identifier: MIT */
/* A file of a bundle, written at once. Internal. */
#ifndef SPYRE_SDSC_WRITE_FILE_H
#define SPYRE_SDSC_WRITE_FILE_H

#include <spyre/types.h>

spyre_status build_write_file(const char *directory, const char *file, const char *text,
			      size_t size);

#endif /* SPYRE_SDSC_WRITE_FILE_H */
