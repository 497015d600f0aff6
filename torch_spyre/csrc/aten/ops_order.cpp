// SPDX-License-Identifier: MIT
/* Elements in another order, or selected by their place: moved as they are. */
#include "scan.h"

#include <algorithm>

#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/flip_ops.h>
#include <ATen/ops/im2col_ops.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/le.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/masked_scatter_ops.h>
#include <ATen/ops/roll_ops.h>
#include <ATen/ops/tril_ops.h>
#include <ATen/ops/triu_ops.h>
#include <ATen/ops/where.h>

#include "bounds.h"

namespace torch_spyre {

namespace {

/* Dtypes that where() selects and copies move. */
bool is_plain(const Tensor &t)
{
	at::ScalarType dtype = t.scalar_type();

	return t.is_privateuseone() && t.dim() <= SPYRE_MAX_RANK && t.numel() &&
	       (is_float(dtype) || dtype == at::kBool || dtype == at::kInt || dtype == at::kLong);
}

/* Compares the columns with the rows, moved by @diagonal, and keeps one side. */
template <bool lower, class Out>
Tensor &triangle_out(const Tensor &self, int64_t diagonal, Tensor &out)
{
	/* Beyond the matrix, a diagonal keeps all or nothing. */
	if (!is_plain(self) || self.dim() < 2 || out.scalar_type() != self.scalar_type())
		return on_cpu<Out>(self, diagonal, out);
	int64_t rows = self.size(-2), columns = self.size(-1);
	c10::DeviceIndex device = self.device().index();

	diagonal = std::clamp(diagonal, -rows, columns);
	Tensor row = counted(diagonal, rows, device).unsqueeze(1);
	Tensor column = counted(0, columns, device);
	Tensor keep = lower ? at::le(column, row) : at::ge(column, row);
	Tensor result = at::where(keep, self, at::zeros({}, self.options()));

	at::native::resize_output(out, result.sizes());
	torch_spyre::copy(out, result, true);
	return out;
}

Tensor flip(const Tensor &self, at::IntArrayRef dims)
{
	if (!is_plain(self))
		return on_cpu<at::_ops::flip>(self, dims);
	auto flipped = at::dim_list_to_bitset(dims, self.dim());
	Tensor result = self;

	for (int64_t d = 0; d < self.dim(); d++) {
		if (!flipped[d] || self.size(d) == 1)
			continue;
		Tensor last = at::arange(self.size(d) - 1, -1, -1, at::kInt).pin_memory();
		Tensor place = empty(last.sizes(), at::kInt, self.device().index());

		torch_spyre::copy(place, last, true);
		result = at::index_select(result, d, place);
	}
	return result.is_same(self) ? self.clone(at::MemoryFormat::Contiguous) : result;
}

Tensor roll(const Tensor &self, at::IntArrayRef shifts, at::IntArrayRef dims)
{
	if (!is_plain(self) || shifts.empty() ||
	    (dims.empty() ? shifts.size() != 1 : shifts.size() != dims.size()))
		return on_cpu<at::_ops::roll>(self, shifts, dims);
	if (dims.empty())
		return torch_spyre::roll(self.reshape({ -1 }), shifts, 0).view(self.sizes());
	Tensor result = self;

	for (size_t i = 0; i < dims.size(); i++) {
		int64_t d = at::maybe_wrap_dim(dims[i], self.dim()), size = self.size(d);
		int64_t first = ((size - shifts[i]) % size + size) % size;

		if (first)
			result = at::cat({ result.narrow(d, first, size - first),
					   result.narrow(d, 0, first) }, d);
	}
	return result.is_same(self) ? self.clone(at::MemoryFormat::Contiguous) : result;
}

/*
 * The elements of the source that the true elements of the mask take, in their order: an element
 * takes as many places from the start as there are true ones before it. The card checks that the
 * source has them, as it checks all indices. A mask of whole rows moves rows.
 */
Tensor &masked_scatter(Tensor &self, const Tensor &mask, const Tensor &source)
{
	Tensor keep, place;

	if (!is_plain(self) || mask.scalar_type() != at::kBool || mask.device() != self.device() ||
	    source.device() != self.device() || source.scalar_type() != self.scalar_type() ||
	    !source.numel())
		return on_cpu<at::_ops::masked_scatter_>(self, mask, source);
	keep = mask.expand(self.sizes());
	int64_t width = self.dim() > 1 && keep.stride(-1) == 0 && self.size(-1) > 1 &&
			source.numel() % self.size(-1) == 0 ? self.size(-1) : 1;
	if (width > 1)
		keep = keep.select(-1, 0);
	keep = keep.reshape({ -1 });
	if (!running(false, keep, 0, at::kLong, place))
		return on_cpu<at::_ops::masked_scatter_>(self, mask, source);
	place = at::where(keep, place.sub(1), at::zeros({}, place.options()));
	Tensor taken = at::index_select(source.reshape({ -1, width }), 0, place);
	Tensor result = at::where(mask, taken.view(self.sizes()), self);

	torch_spyre::copy(self, result, true);
	return self;
}

/* Patches that lie side by side are the input in another order. */
Tensor im2col(const Tensor &self, at::IntArrayRef kernel, at::IntArrayRef dilation,
	      at::IntArrayRef padding, at::IntArrayRef stride)
{
	bool batched = self.dim() == 4;
	int64_t rank = self.dim();

	if (!is_plain(self) || (rank != 3 && rank != 4) || kernel.size() != 2 || kernel != stride ||
	    padding != at::IntArrayRef({ 0, 0 }) || dilation.size() != 2 ||
	    (kernel[0] != 1 && dilation[0] != 1) || (kernel[1] != 1 && dilation[1] != 1) ||
	    self.size(-2) < kernel[0] || self.size(-1) < kernel[1])
		return on_cpu<at::_ops::im2col>(self, kernel, dilation, padding, stride);
	Tensor input = batched ? self : self.unsqueeze(0);
	int64_t rows = input.size(2) / kernel[0], columns = input.size(3) / kernel[1];
	Tensor result = input.narrow(2, 0, rows * kernel[0]).narrow(3, 0, columns * kernel[1])
		.reshape({ input.size(0), input.size(1), rows, kernel[0], columns, kernel[1] })
		.permute({ 0, 1, 3, 5, 2, 4 })
		.reshape({ input.size(0), -1, rows * columns });

	return batched ? result : result.squeeze(0);
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("tril.out", TORCH_FN((triangle_out<true, at::_ops::tril_out>)));
	m.impl("triu.out", TORCH_FN((triangle_out<false, at::_ops::triu_out>)));
	m.impl("flip", TORCH_FN(flip));
	m.impl("roll", TORCH_FN(roll));
	m.impl("masked_scatter_", TORCH_FN(masked_scatter));
	m.impl("im2col", TORCH_FN(im2col));
}

} // namespace torch_spyre
