// SPDX-License-Identifier: MIT
/* Pinned host memory, cached; what streams were recorded to use it waits for them. */
#pragma once

/* Its alignment is its own affair. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winterference-size"
#include <set>

#include <ATen/core/CachingHostAllocator.h>
#pragma GCC diagnostic pop

#include "spyre.h"

namespace torch_spyre {

at::HostAllocator *host_allocator();
/* Interior pointers too. */
bool is_pinned(const void *pointer);
/* Whether memory that the card's context pinned is left, in use or cached. */
bool holds_pinned(c10::DeviceIndex device);
/* Keeps pinned memory from being reused before @stream gets past this point. */
bool record_pinned(const void *pointer, c10::Stream stream);

/* Keeps the memory that @pointer lies in, after its tensors too; to be released. */
void *hold_pinned(const void *pointer);
/* @streams of @device may have copies queued that use it. */
void release_pinned(void *held, c10::DeviceIndex device, const std::set<int> &streams);

} // namespace torch_spyre
