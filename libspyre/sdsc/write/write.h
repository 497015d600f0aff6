/* SPDX-License-Identifier: MIT */
/* Planned graphs as files, and one operation as a graph. Internal. */
#ifndef SPYRE_SDSC_WRITE_H
#define SPYRE_SDSC_WRITE_H

#include <spyre/sdsc.h>

/*
 * Does the work of spyre_sdsc_build() with a given division: slices of the dims in
 * their order, or NULL for the planner's.
 */
spyre_status build_bundle(const char *op, const spyre_sdsc_operand *operands,
			  uint32_t num_operands, uint32_t cores, const int64_t *slices,
			  const char *directory);

#endif /* SPYRE_SDSC_WRITE_H */
