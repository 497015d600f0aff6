/* SPDX-License-Identifier: MIT */
/* Device sizes as a bundle implies them and as a layout has them. Internal. */
#ifndef SPYRE_SDSC_SIZES_H
#define SPYRE_SDSC_SIZES_H

#include <spyre/types.h>

/* True if the two are the same tensor; row-major. */
bool bundle_same_sizes(const int64_t *a, uint32_t a_rank, const int64_t *b, uint32_t b_rank);

#endif /* SPYRE_SDSC_SIZES_H */
