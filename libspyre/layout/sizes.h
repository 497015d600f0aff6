/* SPDX-License-Identifier: MIT */
/* Compares device sizes that a bundle implies with those of a layout. Internal. */
#ifndef SPYRE_SDSC_SIZES_H
#define SPYRE_SDSC_SIZES_H

#include <spyre/types.h>

/* True if two row-major shapes describe the same tensor. */
bool bundle_same_sizes(const int64_t *a, uint32_t a_rank, const int64_t *b, uint32_t b_rank);

#endif /* SPYRE_SDSC_SIZES_H */
