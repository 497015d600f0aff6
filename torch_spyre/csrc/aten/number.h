// SPDX-License-Identifier: MIT
/* Numbers in calls: constants of a kernel, or data where they keep changing. */
#pragma once

#include "runtime/program.h"

namespace torch_spyre {

/*
 * A number in a kernel makes it quick, but each value compiles one. True once
 * calls of @program with this place, format and shape have brought more values
 * than a constant is worth (schedules, corrections of optimisers), and @value is a
 * new one.
 */
bool keeps_changing(const Program &program, unsigned place, spyre_format format,
		    at::IntArrayRef size, double value);

/* @value as the constant would be, in a tensor of no dimensions: same bits in every result. */
at::Tensor one_element(double value, spyre_format format, c10::DeviceIndex device);

} // namespace torch_spyre
