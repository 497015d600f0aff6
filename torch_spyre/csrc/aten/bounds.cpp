// SPDX-License-Identifier: MIT
/* The ranges of the numbers of int64 tensors. */
#include "bounds.h"

#include <ATen/ops/aminmax.h>

#include "runtime/graph.h"

namespace torch_spyre {

using at::ScalarType;
using at::Tensor;

namespace {

/* Larger tensors are data rather than positions and masks, and their range is not determined. */
constexpr int64_t kMostRead = 1 << 16;

/*
 * True if the range of @block is that of its elements as int64. That of memory in a graph is known
 * while the graph is captured, for the operations that follow in it.
 */
bool holds_long(const Block &block)
{
	return block.placement && block.placement->dtype == ScalarType::Long && !block.shared &&
	       (!block.in_graph || is_capturing(block.device));
}

} // namespace

Range range_of(const Tensor &tensor)
{
	switch (tensor.scalar_type()) {
	case ScalarType::Bool:
		return { 0, 1 };
	case ScalarType::Byte:
		return { 0, 255 };
	case ScalarType::Char:
		return { -128, 127 };
	case ScalarType::Short:
		return { -32768, 32767 };
	case ScalarType::Long: {
		const Block *block = block_of(tensor.storage());

		return block && holds_long(*block) ? block->range : Range();
	}
	default:
		return {};
	}
}

Range range_of_host(const Tensor &tensor)
{
	if (!c10::isIntegralType(tensor.scalar_type(), false) || tensor.numel() > kMostRead)
		return tensor.scalar_type() == ScalarType::Bool ? Range{ 0, 1 } : Range();
	/* Work that is queued may still write pinned memory. */
	if (!tensor.numel() || tensor.is_pinned())
		return {};

	auto [least, most] = at::aminmax(tensor);
	Range range = { least.item<int64_t>(), most.item<int64_t>() };

	return range.fits() ? range : Range();
}

void set_range(const Tensor &tensor, Range range, Range before)
{
	Block *block = block_of(tensor.storage());

	if (!block)
		return;
	if (!range.fits() || !holds_long(*block) || tensor.scalar_type() != ScalarType::Long)
		block->range = Range();
	else if (c10::multiply_integers(block->placement->size) == tensor.numel())
		block->range = range;
	else
		block->range = united(before, range);
}

} // namespace torch_spyre
