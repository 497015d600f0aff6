// SPDX-License-Identifier: MIT
/* Tensors as ranks exchange them: dense ones by their addresses, others by copies. */
#include "wire.h"

#include <algorithm>
#include <numeric>

#include <ATen/ops/view_as_real.h>
#include <c10/util/Exception.h>

#include "aten/copy.h"
#include "aten/operand.h"
#include "aten/tensor.h"
#include "communicator.h"
#include "runtime/layout.h"

namespace torch_spyre {

namespace {

using at::Tensor;

/* Complex elements are pairs of real ones. */
Tensor real_of(const Tensor &tensor)
{
	return tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
}

/* True if @tensor is dense in its default layout; sets the address. */
bool is_direct(const Tensor &tensor, bool written, Wire *wire)
{
	if (!tensor.is_contiguous() || tensor.is_neg())
		return false;

	const Block *block = placed_block(tensor);
	const Placement &held = *block->placement;
	PlacementPtr wanted = default_placement(tensor.sizes(), tensor.scalar_type());
	Operand operand;

	wire->layout = wanted->layout;
	if (held.dtype == wanted->dtype && held.size == wanted->size &&
	    held.stride == wanted->stride && held.storage_offset == tensor.storage_offset() &&
	    spyre_layout_equal(&held.layout, &wanted->layout)) {
		wire->address = block->address;
		return true;
	}
	if (!operand_of(tensor, &operand) || (written && !is_writable(tensor, operand)) ||
	    !spyre_layout_equal(&operand.desc.layout, &wanted->layout))
		return false;
	wire->address = operand.address;
	return true;
}

Wire whole_wire(const Tensor &tensor, bool copied)
{
	const Block *block = placed_block(tensor);

	return { tensor, block->address, block->placement->layout, copied };
}

Tensor empty_like(const Tensor &tensor)
{
	return empty(tensor.sizes(), tensor.scalar_type(), tensor.device().index());
}

/* The numbers that arrive are not known, nor is the padding, which is sent along. */
void forget(const Tensor &tensor)
{
	placed_block(tensor)->forget();
}

int64_t count(const std::vector<int64_t> &sizes)
{
	return c10::multiply_integers(sizes);
}

} // namespace

spyre_comm_part Wire::part() const
{
	spyre_comm_part part{};

	if (empty()) {
		part.format = layout.device_format;
		return part;
	}
	check_communicator(spyre_comm_part_init(&part, address, &layout), "describing a tensor");
	return part;
}

Wire wire_of(const Tensor &given)
{
	Tensor tensor = real_of(given);
	Wire wire{ tensor, 0, {}, false };

	if (!tensor.numel())
		return whole_wire(empty_like(tensor), true);
	if (is_direct(tensor, false, &wire))
		return wire;
	return whole_wire(dense_copy(tensor), true);
}

Wire wire_for(const Tensor &given)
{
	Tensor tensor = real_of(given);
	Wire wire{ tensor, 0, {}, false };

	if (!tensor.numel() || !is_direct(tensor, true, &wire))
		return whole_wire(empty_like(tensor), true);
	forget(tensor);
	return wire;
}

Wire wire_both(const Tensor &given)
{
	Tensor tensor = real_of(given);
	Wire wire{ tensor, 0, {}, false };

	if (!tensor.numel() || !is_direct(tensor, true, &wire))
		return wire_of(given);
	forget(tensor);
	return wire;
}

void deliver(const Tensor &tensor, const Wire &wire)
{
	forget(wire.tensor);
	if (wire.copied && tensor.numel())
		copy(real_of(tensor), wire.tensor, true);
}

Chunks::Chunks(const Tensor &whole, std::vector<std::vector<int64_t>> sizes, bool send)
	: whole_(real_of(whole))
{
	int64_t elements = 0;

	for (auto &size : sizes) {
		if (whole.is_complex())
			size.push_back(2);
		elements += count(size);
	}
	TORCH_CHECK(elements == whole_.numel(), "spyreccl: cannot divide a tensor of ",
		    whole.sizes(), " among ", sizes.size(), " ranks: their parts have ", elements,
		    " elements, the tensor has ", whole_.numel());
	/* A dense copy is received into and copied as a whole, where the tensor is not dense. */
	wire_ = send ? wire_of(whole_) : wire_for(whole_);
	if (!divide(sizes))
		copy_chunks(sizes, send);
}

/* True if @whole without its dimension @dim is @part without it. */
static bool is_divided(const spyre_layout &whole, const spyre_layout &part, uint32_t dim)
{
	if (whole.device_rank != part.device_rank)
		return false;
	for (uint32_t j = 0; j < whole.device_rank; j++)
		if (j != dim && (whole.device_size[j] != part.device_size[j] ||
				 whole.stride_map[j] != part.stride_map[j]))
			return false;
	return whole.device_size[dim] >= part.device_size[dim];
}

/* True if one more dimension @dim makes @part the tensor @whole. */
static bool is_stacked(const spyre_layout &whole, const spyre_layout &part, uint32_t dim)
{
	if (whole.device_rank != part.device_rank + 1)
		return false;
	for (uint32_t j = 0; j < part.device_rank; j++) {
		uint32_t k = j + (j >= dim);

		if (whole.device_size[k] != part.device_size[j] ||
		    whole.stride_map[k] != part.stride_map[j])
			return false;
	}
	return true;
}

/* The device dimension that the first dimension of a tensor has for itself, -1 if it has none. */
static int own_dimension(const spyre_layout &layout)
{
	int found = -1;

	for (uint32_t j = 0; j < layout.device_rank; j++) {
		if (layout.dim_map[j] != 0)
			continue;
		if (found >= 0 || j + 1 == layout.device_rank)
			return -1;
		found = static_cast<int>(j);
	}
	return found;
}

/* Entries of device dimension @dim for chunks of these sizes; -1 if they are no own entries. */
static int64_t entries_of(const spyre_layout &whole, int dim, const Tensor &tensor,
			  const std::vector<int64_t> &size)
{
	spyre_layout part;

	if (!count(size))
		return 0;
	part = default_placement(size, tensor.scalar_type())->layout;
	if (tensor.dim() == 1 && size.size() == 1) {
		int64_t lanes = whole.device_size[whole.device_rank - 1];

		return size[0] % lanes ? -1 : size[0] / lanes;
	}
	if (tensor.sizes().slice(1) == at::IntArrayRef(size))
		return is_stacked(whole, part, dim) ? 1 : -1;
	if (size.empty() || tensor.sizes().slice(1) != at::IntArrayRef(size).slice(1))
		return -1;
	return is_divided(whole, part, dim) ? part.device_size[dim] : -1;
}

/* Describes the chunks as parts of the whole, false if they share sticks or dimensions. */
bool Chunks::divide(const std::vector<std::vector<int64_t>> &sizes)
{
	const spyre_layout &layout = wire_.layout;
	int dim = whole_.dim() == 1 ? 0 : own_dimension(layout);
	int64_t first = 0;

	if (sizes.size() == 1 && whole_.sizes() == at::IntArrayRef(sizes[0])) {
		parts_ = { wire_.part() };
		return true;
	}
	if (!layout.mapped || dim < 0 || wire_.empty() || whole_.dim() > SPYRE_MAX_RANK)
		return false;
	for (const auto &size : sizes) {
		int64_t entries = entries_of(layout, dim, wire_.tensor, size);
		spyre_comm_part part{};

		if (entries < 0) {
			parts_.clear();
			return false;
		}
		part.format = layout.device_format;
		if (entries)
			check_communicator(spyre_comm_part_slice(&part, wire_.address, &layout,
								 dim, first, entries),
					   "describing a part of a tensor");
		parts_.push_back(part);
		first += entries;
	}
	return true;
}

void Chunks::copy_chunks(const std::vector<std::vector<int64_t>> &sizes, bool send)
{
	Tensor flat = wire_.tensor.view({ -1 });
	int64_t first = 0;

	for (const auto &size : sizes) {
		int64_t elements = count(size);
		Tensor chunk = empty(size, flat.scalar_type(), flat.device().index());

		if (send && elements)
			copy(chunk.view({ -1 }), flat.narrow(0, first, elements), true);
		first += elements;
		copies_.push_back(whole_wire(chunk, true));
		parts_.push_back(copies_.back().part());
	}
}

void Chunks::deliver() const
{
	Tensor flat = wire_.tensor.view({ -1 });
	int64_t first = 0;

	forget(wire_.tensor);
	for (const Wire &wire : copies_) {
		int64_t elements = wire.tensor.numel();

		forget(wire.tensor);
		if (elements)
			copy(flat.narrow(0, first, elements), wire.tensor.view({ -1 }), true);
		first += elements;
	}
	torch_spyre::deliver(whole_, wire_);
}

} // namespace torch_spyre
