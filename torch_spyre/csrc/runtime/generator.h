// SPDX-License-Identifier: MIT
/* Random numbers are drawn on the host: each card's generator holds one of the CPU's. */
#pragma once

#include <ATen/core/Generator.h>

#include "spyre.h"

namespace torch_spyre {

const at::Generator &default_generator(c10::DeviceIndex device);
at::Generator new_generator(c10::DeviceIndex device);
/* The CPU generator inside @generator, or inside the device's default one. */
at::Generator host_generator(const std::optional<at::Generator> &generator,
			     c10::DeviceIndex device);

} // namespace torch_spyre
