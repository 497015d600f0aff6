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

/*
 * @value as the CPU rounds it to @dtype before it adds, compares or selects it, where DL16 has
 * another number for it: fp16 is infinite from 65520 on, and its numbers below 2^-14 are
 * multiples of 2^-24. Others are returned as they are; DL16 rounds them once.
 */
double number_in(at::ScalarType dtype, double value);
/*
 * @value as a tensor of a floating-point @dtype keeps it on the card; @value itself for other
 * dtypes.
 */
double stored_number(at::ScalarType dtype, double value);
/* Rounds *@value by number_in(); false if it is finite and beyond @dtype, which the CPU refuses. */
bool fit_number(at::ScalarType dtype, double *value);
/*
 * True if the card's format of @dtype has a factor or divisor, which the CPU takes in fp32; else
 * it would become 0 or the largest number of DL16.
 */
bool is_factor(at::ScalarType dtype, double value);

/* @value in a tensor without dimensions, rounded as a constant, so that results are equal. */
at::Tensor one_element(double value, spyre_format format, c10::DeviceIndex device);

} // namespace torch_spyre
