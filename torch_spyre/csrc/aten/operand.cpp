// SPDX-License-Identifier: MIT
/*
 * Where a view lies on the card. A placement's device dimensions each step
 * through the host tensor by a stride; a view is an operand if each of its
 * dimensions steps along one of them: permutations and expanded dimensions
 * always, narrowed ones and single indices as a window (an address, and space
 * to spare). Device dimensions that a view divides are divided. What begins
 * within a stick, skips elements or runs through two dimensions at once is no
 * operand.
 */
#include "operand.h"

#include <algorithm>

#include <ATen/core/Tensor.h>

#include "copy.h"
#include "tensor.h"

namespace torch_spyre {

namespace {

constexpr int kNone = -1;

/* A device dimension of the placement while a view is fitted to it. */
struct DeviceDim {
	int64_t size, stride;	/* stride in host elements, < 1 if it has none */
	int host;		/* host dimension that it walks */
	int view;		/* view dimension that walks it */
	int64_t start;		/* index at which the view begins */
};

struct Fit {
	const Placement &placement;
	const at::Tensor &view;
	DeviceDim dim[SPYRE_MAX_DEVICE_RANK + SPYRE_MAX_RANK];
	int count = 0;		/* the last is the stick */
	int64_t start[SPYRE_MAX_RANK], end[SPYRE_MAX_RANK];	/* of the view, by host dim */

	Fit(const Placement &p, const at::Tensor &v) : placement(p), view(v) {}
	DeviceDim &stick() { return dim[count - 1]; }
};

/* The host dimension that a device dimension walks, for layouts without dim_map. */
int walked(const Placement &p, int64_t stride, int64_t lanes)
{
	const spyre_layout &l = p.layout;
	int64_t lane = l.stride_map[l.device_rank - 1];

	if (stride < 1)
		return kNone;
	for (size_t d = 0; d < p.size.size(); d++)
		if (p.size[d] > 1 && p.stride[d] == stride)
			return static_cast<int>(d);
	return lane > 0 && stride == lane * lanes ? walked(p, lane, lanes) : kNone;
}

bool take_dims(Fit &f)
{
	const spyre_layout &l = f.placement.layout;
	int64_t lanes = l.device_size[l.device_rank - 1];

	for (uint32_t j = 0; j < l.device_rank; j++) {
		bool last = j + 1 == l.device_rank;
		int host = l.mapped ? l.dim_map[j] : walked(f.placement, l.stride_map[j], lanes);

		if (host >= 0 && f.placement.size[host] == 1)
			host = kNone;
		if (host < 0 && l.device_size[j] > 1 && !last)
			return false;	/* repeated, folded or space that no view names */
		if (l.device_size[j] == 1 && !last)
			continue;
		f.dim[f.count++] = { l.device_size[j], host < 0 ? 0 : l.stride_map[j], host,
				     kNone, 0 };
	}
	return true;
}

/* Divides device dimensions along which the view has larger steps. */
bool divide_dims(Fit &f)
{
	for (int64_t d = 0; d < f.view.dim(); d++) {
		int64_t stride = f.view.stride(d);
		bool exact = false;

		if (f.view.size(d) == 1 || stride == 0)
			continue;
		for (int j = 0; j < f.count && !exact; j++)
			exact = f.dim[j].stride == stride;
		for (int j = 0; j + 1 < f.count && !exact; j++) {
			DeviceDim &dim = f.dim[j];
			int64_t step = dim.stride > 0 && stride % dim.stride == 0 ?
				       stride / dim.stride : 0;

			if (step < 2 || step >= dim.size || dim.size % step)
				continue;
			if (f.count == static_cast<int>(std::size(f.dim)))
				return false;
			std::copy_backward(f.dim + j, f.dim + f.count, f.dim + f.count + 1);
			f.count++;
			f.dim[j].size /= step;
			f.dim[j].stride = stride;
			f.dim[j + 1].size = step;
			exact = true;
		}
		if (!exact)
			return false;
	}
	return true;
}

/* Finds the indices of the view's first element, largest steps first. */
bool locate(Fit &f)
{
	int64_t rest = f.view.storage_offset() - f.placement.storage_offset;
	uint32_t done = 0;

	std::fill_n(f.start, SPYRE_MAX_RANK, 0);
	if (rest < 0)
		return false;
	for (int n = 0; n < f.count; n++) {
		int best = kNone;

		for (int j = 0; j < f.count; j++)
			if (!(done >> j & 1) && (best < 0 || f.dim[j].stride > f.dim[best].stride))
				best = j;
		done |= 1u << best;
		DeviceDim &dim = f.dim[best];
		if (dim.stride < 1)
			continue;
		dim.start = std::min(rest / dim.stride, dim.size - 1);
		rest -= dim.start * dim.stride;
		f.start[dim.host] += dim.start * dim.stride / f.placement.stride[dim.host];
	}
	std::copy_n(f.start, SPYRE_MAX_RANK, f.end);
	for (size_t h = 0; h < f.placement.size.size(); h++)
		f.end[h]++;
	return rest == 0;
}

/* Checks that the view dimension along lanes also walks the sticks, if it exceeds one. */
bool match_sticks(Fit &f, int view)
{
	DeviceDim &lane = f.stick();
	int64_t size = f.view.size(view), sticks = (size + lane.size - 1) / lane.size;

	if (lane.start)
		return false;
	lane.view = view;
	for (int j = 0; j + 1 < f.count; j++) {
		DeviceDim &tile = f.dim[j];

		if (tile.stride != lane.stride * lane.size || tile.host != lane.host ||
		    tile.view != kNone)
			continue;
		tile.view = view;
		return tile.start + sticks <= tile.size;
	}
	return sticks == 1;
}

bool match(Fit &f)
{
	int along = kNone;

	for (int d = 0; d < f.view.dim(); d++) {
		int64_t stride = f.view.stride(d), size = f.view.size(d);
		int found = kNone;

		if (size == 1 || stride == 0)
			continue;
		for (int j = 0; j < f.count && found < 0; j++)
			if (f.dim[j].stride == stride && f.dim[j].view == kNone)
				found = j;
		if (found < 0)
			return false;
		DeviceDim &dim = f.dim[found];
		dim.view = d;
		f.end[dim.host] += (size - 1) * stride / f.placement.stride[dim.host];
		if (found == f.count - 1)
			along = d;
		else if (dim.start + size > dim.size)
			return false;
	}
	if (along == kNone ? f.stick().start != 0 : !match_sticks(f, along))
		return false;
	for (size_t h = 0; h < f.placement.size.size(); h++)
		if (f.end[h] > f.placement.size[h])
			return false;
	return true;
}

void add_dim(spyre_layout &l, int64_t size, int64_t stride, int view)
{
	l.device_size[l.device_rank] = size;
	l.stride_map[l.device_rank] = stride;
	l.dim_map[l.device_rank++] = static_cast<int8_t>(view);
}

void describe(Fit &f, Operand *o)
{
	spyre_sdsc_operand &desc = o->desc;
	spyre_layout &l = desc.layout;
	int64_t step = 1, offset = 0;
	int along = f.stick().view;
	bool outermost = true;

	desc.rank = static_cast<uint32_t>(f.view.dim());
	for (int64_t d = 0; d < f.view.dim(); d++)
		desc.size[d] = f.view.stride(d) || f.view.size(d) == 1 ? f.view.size(d) : 1;
	for (int j = f.count - 1; j-- > 0;) {
		offset += f.dim[j].start * step;
		step *= f.dim[j].size;
	}
	o->address += static_cast<uint64_t>(offset) * SPYRE_STICK;
	l = f.placement.layout;
	l.mapped = true;
	l.device_rank = 0;
	for (int j = 0; j < f.count; j++) {
		const DeviceDim &dim = f.dim[j];
		bool last = j + 1 == f.count;

		outermost = outermost && dim.view == kNone;
		/* An outermost dimension with a single index gets no size. */
		if (outermost && !last)
			continue;
		/* A layout needs a dimension before the lanes, at least one of size 1. */
		if (last && !l.device_rank)
			add_dim(l, 1, -1, along);
		add_dim(l, dim.size, dim.stride > 0 ? dim.stride : -1, dim.view);
	}
}

/* Determines whether the view's last sticks contain padding or other elements. */
void last_sticks(Fit &f, bool clean, Operand *o)
{
	const DeviceDim &lane = f.stick();
	bool at_end = lane.host < 0 || f.end[lane.host] == f.placement.size[lane.host];
	int64_t length = lane.view < 0 ? 1 : f.view.size(lane.view), covered = 1;
	bool whole = lane.view >= 0 && length % lane.size == 0;

	for (int j = 0; j + 1 < f.count; j++)
		if (f.dim[j].host == lane.host && f.dim[j].view != lane.view &&
		    f.dim[j].view >= 0)
			at_end = false;
	for (uint32_t d = 0; d < o->desc.rank; d++)
		covered *= o->desc.size[d];
	o->whole_sticks = whole || at_end;
	o->clean_padding = covered == c10::multiply_integers(f.placement.size) && (whole || clean);
}

/* True if @t is the tensor of the placement. */
bool is_whole(const Placement &p, const at::Tensor &t)
{
	return t.storage_offset() == p.storage_offset && t.sizes() == at::IntArrayRef(p.size) &&
	       t.strides() == at::IntArrayRef(p.stride) && p.layout.mapped;
}

} // namespace

bool operand_of(const at::Tensor &tensor, Operand *operand)
{
	const Placement *placement = &placement_of(tensor);
	const Block *block = block_of(tensor.storage());

	if (placement->dtype != tensor.scalar_type() || tensor.dim() > SPYRE_MAX_RANK)
		return false;
	operand->address = block->address;
	if (is_whole(*placement, tensor)) {
		const spyre_layout &l = placement->layout;
		int stick = l.dim_map[l.device_rank - 1];

		operand->desc.rank = static_cast<uint32_t>(tensor.dim());
		std::copy_n(placement->size.data(), tensor.dim(), operand->desc.size);
		operand->desc.layout = l;
		operand->whole_sticks = true;
		operand->clean_padding = block->padding_is_clean() ||
			(stick >= 0 && tensor.size(stick) % l.device_size[l.device_rank - 1] == 0);
		return true;
	}
	Fit f(*placement, tensor);
	if (!take_dims(f) || !divide_dims(f) || !locate(f) || !match(f) ||
	    f.count > SPYRE_MAX_DEVICE_RANK)
		return false;
	describe(f, operand);
	last_sticks(f, block->padding_is_clean(), operand);
	return true;
}

int stick_dim(const spyre_sdsc_operand &desc)
{
	int dim = desc.layout.dim_map[desc.layout.device_rank - 1];

	return dim >= 0 && desc.size[dim] > 1 ? dim : -1;
}

bool is_complete(const at::Tensor &tensor, const Operand &operand)
{
	for (int64_t d = 0; d < tensor.dim(); d++)
		if (operand.desc.size[d] != tensor.size(d))
			return false;
	return true;
}

bool is_writable(const at::Tensor &tensor, const Operand &operand)
{
	return operand.whole_sticks && is_complete(tensor, operand);
}

at::Tensor readable(const at::Tensor &tensor, Operand *operand)
{
	if (operand_of(tensor, operand))
		return tensor;
	at::Tensor dense = dense_copy(tensor);
	TORCH_CHECK(operand_of(dense, operand), "spyre: cannot use a tensor of ", tensor.dim(),
		    " dimensions as an operand: the card takes at most ", SPYRE_MAX_RANK,
		    " (docs/unsupported.md); merge dimensions with reshape() or compute on the "
		    "CPU");
	return dense;
}

} // namespace torch_spyre
