// SPDX-License-Identifier: MIT
/* Cards beyond what all files need: bounds and the life of contexts. */
#pragma once

#include "spyre.h"

namespace torch_spyre {

constexpr int MAX_DEVICES = 64;

/* @index, or the current device for -1; throws if there is no such card. */
c10::DeviceIndex check_index(int index);
void set_current_device_unchecked(c10::DeviceIndex index) noexcept;

/* Counts the contexts that a card has had: memory and streams belong to one. */
uint64_t generation(c10::DeviceIndex index) noexcept;
/*
 * Leaves the card's context; the next use opens another. Returns what the caller may
 * destroy, holding no lock that host functions of streams take. NULL if there is
 * none, or if another thread may be using it: then it stays, and refuses work.
 */
spyre_context *leave_context(c10::DeviceIndex index);
/* A use of the context by a thread that this file does not see. */
void share_context(c10::DeviceIndex index);
/* @kernel, to be unloaded if its context, of @generation, is still the card's. */
std::shared_ptr<spyre_kernel> keep_kernel(spyre_kernel *kernel, c10::DeviceIndex index,
					  uint64_t generation);

} // namespace torch_spyre
