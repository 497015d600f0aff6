// SPDX-License-Identifier: MIT
/* Cards beyond what all files need: bounds and the life of contexts. */
#pragma once

#include "spyre.h"

namespace torch_spyre {

constexpr int MAX_DEVICES = 64;

/* @index, or the current device for -1; throws if there is no such card. */
c10::DeviceIndex check_index(int index);
void set_current_device_unchecked(c10::DeviceIndex index) noexcept;

/* Counts the contexts of a card; memory and streams belong to one of them. */
uint64_t generation(c10::DeviceIndex index) noexcept;
/*
 * Detaches the card's context; the next use opens another. Returns the context, which
 * the caller destroys without holding a lock that host functions of streams take. NULL
 * if no context is open, or if another thread may use it: then it stays and refuses work.
 */
spyre_context *leave_context(c10::DeviceIndex index);
/* Registers a use of the context by a thread that does not call context(). */
void share_context(c10::DeviceIndex index);
/* Owns @kernel; unloads it at the end if the card still has the context of @generation. */
std::shared_ptr<spyre_kernel> keep_kernel(spyre_kernel *kernel, c10::DeviceIndex index,
					  uint64_t generation);

} // namespace torch_spyre
