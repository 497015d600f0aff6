// SPDX-License-Identifier: MIT
/* Copies on the card, and tensors put together of others. */
#include "ops_view.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include <torch/library.h>

#include "bounds.h"
#include "operand.h"
#include "pointwise.h"

namespace torch_spyre {

namespace {

using at::ScalarType;
using at::Tensor;

/* Converts to the output's format; elements other than 0 become true. */
void build_copy(Graph &graph, const Call &call)
{
	Graph::Tensor in = graph.argument(0);

	if (!call.num_attributes) {
		graph.store(in);
		return;
	}
	Graph::Tensor truth = graph.add("ne", { in }, { { "other", 0 } });
	graph.store(truth);
}

const Program kCopy = { "aten::copy_", "identity", build_copy, true };

/* True if a kernel converts as PyTorch does, and without changes for equal dtypes. */
bool can_convert(ScalarType from, ScalarType to)
{
	if (from == to)
		return from == at::kBool || is_float(from) || from == at::kInt ||
		       from == at::kLong || is_float8(from);
	if (is_float(to))
		return is_float(from) || from == at::kBool;
	return to == at::kBool && is_float(from);
}

Tensor concatenated(at::ArrayRef<Tensor> parts, int64_t dim, Tensor out)
{
	int64_t at = 0;
	Range range;

	for (const Tensor &part : parts) {
		if (part.dim() == 1 && !part.numel())
			continue;
		range = at ? united(range, range_of(part)) : range_of(part);
		Tensor place = out.narrow(dim, at, part.size(dim));
		torch_spyre::copy(place, part, true);
		at += part.size(dim);
	}
	set_range(out, range, block_of(out.storage())->range);
	return out;
}

/* The shape of the result; ignores empty tensors of one dimension, as PyTorch does. */
c10::DimVector whole_size(at::ArrayRef<Tensor> parts, int64_t &dim)
{
	const Tensor *first = nullptr;
	c10::DimVector size;

	for (const Tensor &part : parts) {
		TORCH_CHECK(part.dim() > 0, "zero-dimensional tensor cannot be concatenated");
		if (part.dim() == 1 && !part.numel())
			continue;
		if (!first) {
			first = &part;
			dim = at::maybe_wrap_dim(dim, part.dim());
			size.assign(part.sizes().begin(), part.sizes().end());
			continue;
		}
		TORCH_CHECK(part.dim() == first->dim(),
			    "Tensors must have same number of dimensions: got ", first->dim(),
			    " and ", part.dim());
		for (int64_t d = 0; d < part.dim(); d++)
			TORCH_CHECK(d == dim || part.size(d) == first->size(d),
				    "Sizes of tensors must match except in dimension ", dim,
				    ". Expected size ", first->size(d), " but got size ",
				    part.size(d), " for tensor number ", &part - parts.data(),
				    " in the list.");
		size[dim] += part.size(dim);
	}
	if (!first)
		size = { 0 };
	return size;
}

ScalarType common_dtype(at::ArrayRef<Tensor> parts)
{
	at::native::ResultTypeState state = {};

	for (const Tensor &part : parts)
		state = at::native::update_result_type_state(part, state);
	return at::native::result_type(state);
}

c10::SmallVector<Tensor, 8> listed(const at::ITensorListRef &list)
{
	c10::SmallVector<Tensor, 8> parts;

	for (const Tensor &part : list) {
		TORCH_CHECK(parts.empty() || part.device() == parts[0].device(),
			    "Expected all tensors to be on the same device, but found at least two devices, ",
			    parts[0].device(), " and ", part.device(),
			    "! (when checking arguments of cat)");
		parts.push_back(part);
	}
	TORCH_CHECK(!parts.empty(), "torch.cat(): expected a non-empty list of Tensors");
	return parts;
}

Tensor cat_new(const at::ITensorListRef &list, int64_t dim)
{
	auto parts = listed(list);
	c10::DimVector size = whole_size(parts, dim);

	return concatenated(parts, dim,
			    empty(size, common_dtype(parts), parts[0].device().index()));
}

Tensor &cat_out(const at::ITensorListRef &list, int64_t dim, Tensor &out)
{
	auto parts = listed(list);
	c10::DimVector size = whole_size(parts, dim);

	for (const Tensor &part : parts)
		at::assert_no_overlap(out, part);
	TORCH_CHECK(c10::canCast(common_dtype(parts), out.scalar_type()),
		    "torch.cat(): input types can't be cast to the desired output type ", out.scalar_type());
	at::native::resize_output(out, size);
	concatenated(parts, dim, out);
	return out;
}

/* Repeats one dimension after the other by adjacent copies. */
Tensor repeat(const Tensor &self, at::IntArrayRef repeats)
{
	auto rank = static_cast<int64_t>(repeats.size());

	TORCH_CHECK(rank >= self.dim(), "Number of dimensions of repeat dims can not be smaller "
		    "than number of dimensions of tensor");
	c10::DimVector size(rank - self.dim(), 1);
	size.append(self.sizes().begin(), self.sizes().end());
	Tensor result = self.view(size);
	for (int64_t d = rank; d-- > 0;) {
		TORCH_CHECK(repeats[d] >= 0, "Trying to create tensor with negative dimension ",
			    repeats[d]);
		if (repeats[d] == 1)
			continue;
		size[d] *= repeats[d];
		Tensor wider = empty(size, self.scalar_type(), self.device().index());
		if (result.size(d) == 1)
			torch_spyre::copy(wider, result.expand(size), true);
		else
			concatenated(std::vector<Tensor>(repeats[d], result), d, wider);
		result = wider;
	}
	if (!result.is_same(self) && !result.is_alias_of(self))
		return result;
	Tensor copy = empty(size, self.scalar_type(), self.device().index());
	torch_spyre::copy(copy, result, true);
	return copy;
}

} // namespace

bool copy_by_kernel(const Tensor &target, const Tensor &given)
{
	Tensor source = given.sizes() == target.sizes() ? given : given.expand(target.sizes());
	ScalarType from = source.scalar_type(), to = target.scalar_type();
	Call call(kCopy);

	if (!can_convert(from, to) || target.device() != source.device() ||
	    target.dim() > SPYRE_MAX_RANK || target.is_alias_of(source) ||
	    !operand_of(source, &call.add_operand()) ||
	    !operand_of(target, &call.add_operand()) || !is_writable(target, call.operand[1]))
		return false;
	/* Kernels do not convert between one element per stick and dense sticks. */
	const spyre_sdsc_operand &in = call.operand[0].desc, &out = call.operand[1].desc;
	int own = stick_dim(in), want = stick_dim(out);
	if ((want >= 0 && own < 0 && in.size[want] > 1) || (want < 0 && own >= 0))
		return false;
	/* Integers are moved unchanged, but only along their sticks. */
	if (!is_float(to) && to != at::kBool && own != want)
		return false;
	if (to == at::kBool && from != at::kBool)
		call.add("truth", 1);
	bool clean = call.operand[0].clean_padding && own == want && own >= 0;
	if (!launch_or_refuse(call, target.device().index()))
		return false;
	wrote(target, clean);
	return true;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("cat", TORCH_FN(cat_new));
	m.impl("cat.out", TORCH_FN(cat_out));
	m.impl("repeat", TORCH_FN(repeat));
}

} // namespace torch_spyre
