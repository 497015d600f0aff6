// SPDX-License-Identifier: MIT
/*
 * Reductions of torch.distributed in formats that the card reduces. Floats, int32 and bool are
 * reduced as they are. Smaller integers are reduced as int32 and wrap at their own size. Sums of
 * int64, which has 32 bits on the card, are those of the upper and lower halves, and exceed
 * nothing: a total that needs more than 32 bits is a fault of the context.
 */
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <spyre/collective.h>

namespace torch_spyre {

class Reduction {
public:
	/* Throws if @dtype has no such operator. */
	Reduction(const c10d::ReduceOp &op, at::ScalarType dtype);

	const spyre_reduction &native() const { return native_; }
	/* True if tensors are reduced as they are. */
	bool direct() const { return form_ == Form::kDirect; }
	/* The tensors that are reduced for @tensor. */
	std::vector<at::Tensor> split(const at::Tensor &tensor) const;
	/* Tensors for the results of a tensor of @sizes. */
	std::vector<at::Tensor> empty(const at::Tensor &like) const;
	/* Writes the reduced @parts into @tensor. */
	void join(const std::vector<at::Tensor> &parts, const at::Tensor &tensor) const;

private:
	enum class Form { kDirect, kInt32, kHalves };

	spyre_reduction native_;
	Form form_ = Form::kDirect;
};

} // namespace torch_spyre
