/* SPDX-License-Identifier: MIT */
/* From a layout and a host tensor to a DMA descriptor. Internal. */
#ifndef SPYRE_TRANSFER_H
#define SPYRE_TRANSFER_H

#include <spyre/layout.h>

#include "model/dma.h"

struct spyre_transfer {
	struct spyre_dma_desc desc;
	/* Host span: the bytes from the tensor's first to its last element. */
	uint8_t *host;
	uint64_t host_bytes;
	uint64_t device_bytes;
};

/*
 * Checks that @layout describes @tensor and builds the descriptor. A tensor of
 * no elements gives device_bytes 0 and a descriptor that must not be queued.
 */
spyre_status spyre_transfer_init(struct spyre_transfer *transfer, enum spyre_dma_dir direction,
				 const spyre_layout *layout, const spyre_host_tensor *tensor);

#endif /* SPYRE_TRANSFER_H */
