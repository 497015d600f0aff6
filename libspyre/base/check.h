/* SPDX-License-Identifier: MIT */
/* Checks of the arguments of public functions. Internal. */
#ifndef SPYRE_CHECK_H
#define SPYRE_CHECK_H

#include <string.h>

#include <spyre/types.h>

/* Returns INVALID_ARGUMENT, with a text that names both. */
spyre_status spyre_null_argument(const char *function, const char *argument);
/* SUCCESS if @out, a size-tagged struct of type spyre_@type, can be written. */
spyre_status spyre_struct_check(const char *function, const char *type, const void *out);

/* Writes as much of a size-tagged struct as its reader knows. */
static inline void spyre_struct_write(void *out, size_t out_size, const void *in, size_t in_size)
{
	memcpy(out, in, out_size < in_size ? out_size : in_size);
	*(size_t *)out = out_size;
}

#endif /* SPYRE_CHECK_H */
