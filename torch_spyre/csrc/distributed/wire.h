// SPDX-License-Identifier: MIT
/*
 * Tensors in the form in which ranks exchange them: dense, in the default layout of their sizes,
 * so that the bytes mean the same on all ranks. Others are copied, by the plugin's own copies, in
 * the order of the current stream.
 */
#pragma once

#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <spyre/collective.h>

#include "runtime/spyre.h"

namespace torch_spyre {

struct Wire {
	/* The caller's tensor, or a copy of it. */
	at::Tensor tensor;
	spyre_devptr address;
	spyre_layout layout;
	/* The tensor is a copy, so that results must be copied back. */
	bool copied;

	bool empty() const { return tensor.numel() == 0; }
	spyre_comm_part part() const;
};

/* A tensor to send. */
Wire wire_of(const at::Tensor &tensor);
/* A tensor to receive; deliver() puts the result in its place. */
Wire wire_for(const at::Tensor &tensor);
/* A tensor to send and to receive. */
Wire wire_both(const at::Tensor &tensor);
/* Ends the reception of @wire for @tensor, in the order of the current stream. */
void deliver(const at::Tensor &tensor, const Wire &wire);

/*
 * Tensors that follow each other in a larger one, such as what all-gather writes. Each has a part
 * of the larger one's memory where its sticks are its own, and a copy where they are not.
 */
class Chunks {
public:
	/* @sizes are those of the chunks, whose elements are all of @whole, in their order. */
	Chunks(const at::Tensor &whole, std::vector<std::vector<int64_t>> sizes, bool send);

	const std::vector<spyre_comm_part> &parts() const { return parts_; }
	/* Ends the reception. */
	void deliver() const;

private:
	bool divide(const std::vector<std::vector<int64_t>> &sizes);
	void copy_chunks(const std::vector<std::vector<int64_t>> &sizes, bool send);

	at::Tensor whole_;
	Wire wire_;
	std::vector<Wire> copies_;
	std::vector<spyre_comm_part> parts_;
};

} // namespace torch_spyre
