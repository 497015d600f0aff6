/* SPDX-License-Identifier: MIT */
/* Addresses of the elements of a tensor. Internal. */
#ifndef SPYRE_SDSC_ADDRESS_H
#define SPYRE_SDSC_ADDRESS_H

#include "libspyre/sdsc/ir/ir.h"

/*
 * Derives strides and extents of a tensor from its order, from the inside out,
 * starting at one stick. False if they do not fit in 63 bits.
 */
bool ir_place(const struct ir_sdsc *s, struct ir_tensor *t);

/* Elements of a dim that one stick holds, 1 if the stick does not run along it. */
uint64_t ir_unit(const struct ir_tensor *t, uint32_t dim);
/* Bits from coordinate 0 to @x of a dim, 0 if the tensor does not vary along it. */
uint64_t ir_bits(const struct ir_tensor *t, uint32_t dim, uint64_t x);
/* True if another part or stick begins at multiples of @x along @dim. */
bool ir_breaks(const struct ir_tensor *t, uint32_t dim, uint64_t x);

/* Elements of the longest stick along a dim; padding is less than that. */
int64_t ir_longest_stick(const struct ir_sdsc *s, uint32_t dim);
/* Number of divisible units of a dim: whole sticks of all tensors along it. */
int64_t ir_points(const struct ir_sdsc *s, uint32_t dim);

/* Elements along a dim that one core reaches in a tensor that varies along it. */
int64_t ir_share(const struct ir_sdsc *s, const struct ir_tensor *t, uint32_t dim);

/*
 * The June 2026 generator states missing memory of a ReStickifyOpHBM's padded iteration as
 * positive gaps; makes these gaps negative (docs/sdsc.md).
 */
void ir_negate_gaps(struct ir_sdsc *s);

#endif /* SPYRE_SDSC_ADDRESS_H */
