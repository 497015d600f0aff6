/* SPDX-License-Identifier: MIT */
/* Where the elements of a tensor lie. Internal. */
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
/* True if coordinates of @dim turn into another part or stick at multiples of @x. */
bool ir_breaks(const struct ir_tensor *t, uint32_t dim, uint64_t x);

/* Elements along a dim that a stick of some tensor holds: padding is less than that. */
int64_t ir_longest_stick(const struct ir_sdsc *s, uint32_t dim);
/* Points of a dim that can be divided: whole sticks of the tensors along it. */
int64_t ir_points(const struct ir_sdsc *s, uint32_t dim);

/* Elements along a dim that one core reaches in a tensor that varies along it. */
int64_t ir_share(const struct ir_sdsc *s, const struct ir_tensor *t, uint32_t dim);

/*
 * A ReStickifyOpHBM of the June 2026 generator gives what its memory lacks of the padded
 * iteration as a gap above 0; makes these gaps negative. docs/sdsc.md
 */
void ir_turn_gaps(struct ir_sdsc *s);

#endif /* SPYRE_SDSC_ADDRESS_H */
