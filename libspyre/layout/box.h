/* SPDX-License-Identifier: MIT */
/* From a box with strides on both sides to a DMA descriptor. Internal. */
#ifndef SPYRE_BOX_H
#define SPYRE_BOX_H

#include <spyre/memory.h>

#include "libspyre/layout/transfer.h"

/* Checks everything in @copy but its boxes. */
spyre_status spyre_box_copy_check(const spyre_box_copy *copy);

/*
 * Checks box @index of @copy, which spyre_box_copy_check() has accepted, and builds its
 * descriptor. An empty box gives device_bytes 0 and a descriptor that must not be queued.
 */
spyre_status spyre_box_transfer_init(struct spyre_transfer *transfer, const spyre_box_copy *copy,
				     uint32_t index);

#endif /* SPYRE_BOX_H */
