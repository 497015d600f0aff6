/* SPDX-License-Identifier: MIT */
/* Shared by tiled and plain copies. Internal. */
#ifndef SPYRE_COPY_H
#define SPYRE_COPY_H

#include "libspyre/runtime/stream.h"

/* SUCCESS if a span is 128-byte aligned and its @bytes lie within one allocation. */
spyre_status spyre_copy_check_device(struct spyre_context *context, const char *what,
				     spyre_devptr device, uint64_t bytes);

#endif /* SPYRE_COPY_H */
