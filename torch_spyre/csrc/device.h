// SPDX-License-Identifier: MIT
/* Cards beyond what all files need: bounds and the life of contexts. */
#pragma once

#include "spyre.h"

namespace torch_spyre {

constexpr int MAX_DEVICES = 64;

/* @index, or the current device for -1; throws if there is no such card. */
c10::DeviceIndex check_index(c10::DeviceIndex index);
void set_current_device_unchecked(c10::DeviceIndex index) noexcept;

/* Counts the contexts that a card has had: memory and streams belong to one. */
uint64_t generation(c10::DeviceIndex index) noexcept;
/* Leaves the card's context; the next use opens another. With @destroy it ends, and
 * with it all memory that it pinned. */
void replace_context(c10::DeviceIndex index, bool destroy);

} // namespace torch_spyre
