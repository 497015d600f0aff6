// SPDX-License-Identifier: MIT
/* Device memory for storages. */
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include "layout.h"
#include "spyre.h"

namespace torch_spyre {

c10::DeviceAllocator *device_allocator();

/* Memory of the current stream behind a DataPtr with a Block; @bytes on the card. */
c10::DataPtr allocate(c10::DeviceIndex device, uint64_t bytes,
		      PlacementPtr placement);

/* The memory of @storage from @offset on, under another placement. Keeps it alive. */
c10::DataPtr alias(const c10::Storage &storage, uint64_t offset, PlacementPtr placement);

/* The same memory as @block, which lives for as long as @keeper does. */
c10::DataPtr alias_block(const Block &block, c10::Storage keeper);

/* The live block of @device that @address lies in, or NULL. */
Block *find_block(c10::DeviceIndex device, spyre_devptr address);
/* The card whose memory @address, also an interior one, lies in, or -1. */
c10::DeviceIndex device_of_address(spyre_devptr address);

/* Frees the card's memory and leaves its context, which the caller may destroy. */
spyre_context *drop_memory(c10::DeviceIndex device);

} // namespace torch_spyre
