// SPDX-License-Identifier: MIT
/* Numbers in calls: constants of a kernel, or data where they keep changing. */
#pragma once

#include "runtime/program.h"

namespace torch_spyre {

/*
 * A constant makes a kernel faster, but each value compiles another kernel. Returns
 * true for a new @value after calls of @program with this place, format and shape have
 * had more values than constants are worth (schedules, corrections of optimisers).
 */
bool keeps_changing(const Program &program, unsigned place, spyre_format format,
		    at::IntArrayRef size, double value);

/* @value in a tensor without dimensions, rounded as a constant, so that results are equal. */
at::Tensor one_element(double value, spyre_format format, c10::DeviceIndex device);

} // namespace torch_spyre
