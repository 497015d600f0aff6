// SPDX-License-Identifier: MIT
/* Device memory for storages. */
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include "layout.h"
#include "spyre.h"

namespace torch_spyre {

c10::DeviceAllocator *device_allocator();

/* Allocates @bytes on the card for the current stream, as a DataPtr with a Block. */
c10::DataPtr allocate(c10::DeviceIndex device, uint64_t bytes,
		      PlacementPtr placement);

/* The memory of @storage from @offset on, with another placement; keeps the storage alive. */
c10::DataPtr alias(const c10::Storage &storage, uint64_t offset, PlacementPtr placement);

/* The memory of @block; keeps @keeper alive, which owns it. */
c10::DataPtr alias_block(const Block &block, c10::Storage keeper);

/* The live block of @device that contains @address, or NULL. */
Block *find_block(c10::DeviceIndex device, spyre_devptr address);
/* The card whose memory contains @address, or -1. */
c10::DeviceIndex device_of_address(spyre_devptr address);

/* Frees the card's memory and detaches its context, which the caller may destroy. */
spyre_context *drop_memory(c10::DeviceIndex device);

} // namespace torch_spyre
