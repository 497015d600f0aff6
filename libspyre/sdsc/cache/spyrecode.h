/* SPDX-License-Identifier: MIT */
/* spyrecode.json. Internal. */
#ifndef SPYRE_SDSC_SPYRECODE_H
#define SPYRE_SDSC_SPYRECODE_H

#include "libspyre/sdsc/ir/bundle.h"

/* spyrecode.json for a binary of @binary bytes; the caller frees it. NULL if memory is short. */
char *spyrecode_text(const struct spyre_bundle *bundle, size_t binary, size_t *size);

#endif /* SPYRE_SDSC_SPYRECODE_H */
