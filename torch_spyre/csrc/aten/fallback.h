// SPDX-License-Identifier: MIT
/* Operations that run on the CPU for want of a kernel of the card. */
#pragma once

#include <map>
#include <string>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "runtime/spyre.h"

namespace torch_spyre {

/* Counts @op as one that runs on the CPU, with a warning the first time; refused in a graph. */
void note_fallback(const c10::OperatorHandle &op, const torch::jit::Stack &stack);

/*
 * Runs @op on the CPU and copies its results to the card. Operations without a CPU
 * kernel for 16-bit floats run in fp32; results have the dtype of the arguments.
 */
void cpu_fallback(const c10::OperatorHandle &op, torch::jit::Stack *stack);

/* How often each operation fell back, by name with overload. */
std::map<std::string, int64_t> fallback_counts();
void reset_fallback_counts();

} // namespace torch_spyre
