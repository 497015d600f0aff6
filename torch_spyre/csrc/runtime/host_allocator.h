// SPDX-License-Identifier: MIT
/* Pinned host memory, cached; what streams were recorded to use it waits for them. */
#pragma once

/* PyTorch's header aligns to a constant that this warning reports. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winterference-size"
#include <set>

#include <ATen/core/CachingHostAllocator.h>
#pragma GCC diagnostic pop

#include "spyre.h"

namespace torch_spyre {

at::HostAllocator *host_allocator();
/* True for addresses in pinned memory, also interior ones. */
bool is_pinned(const void *pointer);
/* True if memory exists that the card's context pinned, in use or cached. */
bool holds_pinned(c10::DeviceIndex device);
/* Keeps pinned memory from being reused before @stream gets past this point. */
bool record_pinned(const void *pointer, c10::Stream stream);

/* Keeps the memory at @pointer beyond the life of its tensors, until release_pinned(). */
void *hold_pinned(const void *pointer);
/* Releases it; @streams of @device may have queued copies that use it. */
void release_pinned(void *held, c10::DeviceIndex device, const std::set<int> &streams);

} // namespace torch_spyre
