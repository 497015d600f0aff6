// SPDX-License-Identifier: MIT
/* Fallbacks that the CPU refuses for 16-bit floats, once more in fp32. */
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace torch_spyre {

/* State for a second run: the arguments, and the generators' states before the first. */
class Retry {
public:
	Retry(const c10::OperatorHandle &op, const torch::jit::Stack &stack);

	/*
	 * Runs the operation in fp32 if @error shows that the CPU lacks it in 16 bits only.
	 * Results are then on @stack in the arguments' dtype, and arguments that it
	 * writes are updated. Returns false, with nothing changed, for other errors.
	 */
	bool run(const c10::Error &error, torch::jit::Stack *stack);

private:
	const c10::OperatorHandle &op;
	size_t base;			/* size of the stack below the arguments */
	torch::jit::Stack given;
	std::vector<std::pair<at::Generator, at::Tensor>> generators;
};

} // namespace torch_spyre
