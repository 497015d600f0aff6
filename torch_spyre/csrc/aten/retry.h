// SPDX-License-Identifier: MIT
/* Fallbacks that the CPU refuses for 16-bit floats, once more in fp32. */
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace torch_spyre {

/* What a second run needs of the first: the arguments, and generators as they were. */
class Retry {
public:
	Retry(const c10::OperatorHandle &op, const torch::jit::Stack &stack);

	/*
	 * After @error: whether the CPU has the operation, but not in 16 bits, and ran
	 * it in fp32. Results are then on @stack in the dtype that went in, and what is
	 * written in place is written. Else nothing of the caller's has changed.
	 */
	bool run(const c10::Error &error, torch::jit::Stack *stack);

private:
	const c10::OperatorHandle &op;
	size_t base;			/* what is on the stack below the arguments */
	torch::jit::Stack given;
	std::vector<std::pair<at::Generator, at::Tensor>> generators;
};

} // namespace torch_spyre
