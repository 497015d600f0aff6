// SPDX-License-Identifier: MIT
/* Pinned host memory, cached; what streams were recorded to use it waits for them. */
#pragma once

#include <ATen/core/CachingHostAllocator.h>

#include "spyre.h"

namespace torch_spyre {

at::HostAllocator *host_allocator();
/* Interior pointers too. */
bool is_pinned(const void *pointer);
/* Keeps pinned memory from being reused before @stream gets past this point. */
bool record_pinned(const void *pointer, c10::Stream stream);

} // namespace torch_spyre
