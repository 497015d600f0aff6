// SPDX-License-Identifier: MIT
/*
 * Copies of any view to any view. The DMA engine alone copies between host tensors
 * of any strides and windows of storages. Other views are copied through pinned host
 * memory, which holds a window's elements in a lossless format; the host does not
 * wait for this.
 */
#include "copy.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorUtils.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/any.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/ne.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "bounds.h"
#include "complex.h"
#include "runtime/gil.h"
#include "runtime/graph.h"
#include "runtime/host_allocator.h"
#include "operand.h"
#include "ops_view.h"
#include "runtime/stream.h"
#include "tensor.h"
#include "runtime/wait.h"
#include "window.h"

namespace torch_spyre {

namespace {

using at::Tensor;
using c10::ScalarType;

/* Maps the dimensions of a placement to those of a tensor, -1 for size 1. */
struct Dims {
	int8_t of[SPYRE_MAX_RANK];
};

/* True if @tensor covers its storage, possibly with permuted dimensions. */
bool is_whole(const Tensor &tensor, const Placement &placement, Dims *dims)
{
	uint64_t used = 0;

	if (tensor.scalar_type() != placement.dtype ||
	    tensor.storage_offset() != placement.storage_offset || tensor.dim() > 64)
		return false;
	for (size_t j = 0; j < placement.size.size(); j++) {
		dims->of[j] = -1;
		if (placement.size[j] == 1)
			continue;
		for (int64_t d = 0; d < tensor.dim() && dims->of[j] < 0; d++)
			if (!(used >> d & 1) && tensor.size(d) == placement.size[j] &&
			    tensor.stride(d) == placement.stride[j])
				dims->of[j] = static_cast<int8_t>(d);
		if (dims->of[j] < 0)
			return false;
		used |= uint64_t(1) << dims->of[j];
	}
	for (int64_t d = 0; d < tensor.dim(); d++)
		if (!(used >> d & 1) && tensor.size(d) != 1)
			return false;
	return true;
}

/* Host tensor at @data with @stride per tensor dimension, in the placement's order. */
spyre_host_tensor describe(const Placement &placement, const Dims &dims, void *data,
			   spyre_format format, at::IntArrayRef stride, int64_t offset)
{
	spyre_host_tensor host{};

	host.data = data;
	host.format = format;
	host.rank = static_cast<uint32_t>(placement.size.size());
	host.storage_offset = offset;
	for (uint32_t j = 0; j < host.rank; j++) {
		host.size[j] = placement.size[j];
		host.stride[j] = dims.of[j] < 0 ? placement.stride[j] : stride[dims.of[j]];
	}
	return host;
}

/* True if libspyre may refuse @tensor as overlapping: it checks strides only, and
 * interleaved strides need not overlap. */
bool interleaves(const Tensor &tensor)
{
	std::vector<std::pair<int64_t, int64_t>> dims;
	int64_t span = 0;

	for (int64_t d = 0; d < tensor.dim(); d++)
		if (tensor.size(d) > 1)
			dims.emplace_back(tensor.stride(d), tensor.size(d));
	std::sort(dims.begin(), dims.end());
	for (auto [stride, size] : dims) {
		if (stride <= span)
			return true;
		span += (size - 1) * stride;
	}
	return false;
}

/* Explicit layouts are valid for their own host strides only. */
bool takes(const Placement &placement, const spyre_host_tensor &host)
{
	if (placement.layout.mapped)
		return true;
	for (uint32_t j = 0; j < host.rank; j++)
		if (host.size[j] != 1 && host.stride[j] != placement.stride[j])
			return false;
	return true;
}

/* Dtypes between which the DMA engine converts. */
bool is_float(ScalarType dtype)
{
	return c10::isFloatingType(dtype) && dtype != ScalarType::Double && !is_float8(dtype);
}

/* Expands without the dispatcher, which costs more than the copy of a small tensor. */
Tensor expanded(const Tensor &tensor, at::IntArrayRef size)
{
	return tensor.sizes() == size ? tensor : tensor.expand(size);
}

Tensor empty_host(at::IntArrayRef size, ScalarType dtype)
{
	return at::detail::empty_cpu(size, at::TensorOptions().dtype(dtype));
}

/* Waits for a copy. A signal ends the wait only, so @host is kept until the copy is done. */
void finish(spyre_stream *stream, const Tensor &host, const char *what)
{
	try {
		wait_for_signals_too(stream);
	} catch (...) {
		keep_until_done(host, stream);
		throw;
	}
	ReleaseGil no_gil;

	check(spyre_stream_synchronize(stream), what);
}

/* True if a copy of host memory at @data must be waited for, because pageable memory may
 * change or be freed as soon as copy_() returns. */
bool must_wait(const void *data, c10::Stream stream, bool non_blocking)
{
	if (non_blocking && record_pinned(data, stream))
		return false;
	not_in_graph(stream.device_index(), "a copy from or to the CPU that waits",
		     "use pinned memory and non_blocking=True, or copy before the capture or after it");
	return true;
}

/* A tensor that covers the storage of @tensor. */
Tensor storage_tensor(const Tensor &tensor)
{
	const Placement &p = placement_of(tensor);

	return make_tensor(tensor.storage(), p.dtype, p.size, p.stride, p.storage_offset);
}

/* True if @tensor covers its storage in another shape, for example by view(-1). */
bool is_reshaped(const Tensor &tensor, const Placement &placement)
{
	int64_t step = 1;

	if (tensor.scalar_type() != placement.dtype || !tensor.is_contiguous() ||
	    tensor.storage_offset() != placement.storage_offset)
		return false;
	for (size_t j = placement.size.size(); j-- > 0;) {
		if (placement.size[j] != 1 && placement.stride[j] != step)
			return false;
		step *= placement.size[j];
	}
	return step == tensor.numel();
}

/* A view of @tensor in the shape of a placement of as many elements, if its strides allow it. */
std::optional<Tensor> in_shape_of(const Placement &placement, const Tensor &tensor)
{
	auto stride = at::detail::computeStride(tensor.sizes(), tensor.strides(),
						at::IntArrayRef(placement.size));

	if (!stride)
		return std::nullopt;
	return tensor.as_strided(placement.size, *stride, tensor.storage_offset());
}

int64_t storage_elements(const Tensor &tensor)
{
	return tensor.storage().nbytes() / c10::elementSize(placement_of(tensor).dtype);
}

/* Reads the whole storage as bytes on the host, for tensors of another dtype than their
 * storage and for other views that the DMA engine cannot copy. */
Tensor host_storage(const Tensor &tensor)
{
	const Placement &p = placement_of(tensor);
	Tensor bytes = empty_host({storage_elements(tensor)}, p.dtype);

	copy(bytes.as_strided(p.size, p.stride, p.storage_offset), storage_tensor(tensor), false);
	return bytes;
}

Tensor view_of_host(const Tensor &bytes, const Tensor &like)
{
	return at::empty({0}, at::TensorOptions().dtype(like.scalar_type()))
		.set_(bytes.storage(), like.storage_offset(), like.sizes(), like.strides());
}

void write_through_host(const Tensor &target, const Tensor &source)
{
	Tensor bytes = host_storage(target);
	const Placement &p = placement_of(target);

	view_of_host(bytes, target).copy_(source);
	copy(storage_tensor(target), bytes.as_strided(p.size, p.stride, p.storage_offset), false);
}

/* Copies to the host; the last resort for all other views. */
Tensor to_host(const Tensor &source)
{
	return view_of_host(host_storage(source), source);
}

std::atomic<bool> downcast_warning{[] {
	const char *value = std::getenv("TORCH_SPYRE_DOWNCAST_WARN");
	std::string text = value ? value : "1";

	return text != "0" && text != "false" && text != "off";
}()};
std::atomic<bool> downcast_warned{false};

void warn_downcast(ScalarType dtype)
{
	if (dtype == ScalarType::Long && downcast_warning.load() && !downcast_warned.exchange(true))
		TORCH_WARN("spyre: int64 tensors are stored as int32 on the card; values beyond 32 "
			   "bits lose their upper half (TORCH_SPYRE_DOWNCAST_WARN=0 silences this)");
}

/* Warns if a copy contains int64 numbers that the card cannot hold and that are cut. */
void warn_cut(const Tensor &source)
{
	if (source.scalar_type() != ScalarType::Long || !source.numel() || !downcast_warning.load())
		return;

	auto [least, most] = at::aminmax(source);
	int64_t low = least.item<int64_t>(), high = most.item<int64_t>();
	bool below = low != static_cast<int32_t>(low);

	if (!below && high == static_cast<int32_t>(high))
		return;
	int64_t number = below ? low : high;
	TORCH_WARN("spyre: int64 ", number, " does not fit the 32 bits that the card keeps of it and "
		   "becomes ", static_cast<int32_t>(number),
		   "; keep such tensors on the CPU (TORCH_SPYRE_DOWNCAST_WARN=0 silences this)");
}

/* Converts to a host dtype that the DMA engine converts further without a second rounding. */
Tensor convert_on_host(const Tensor &source, ScalarType dtype)
{
	Tensor plain = source.is_conj() || source.is_neg() ?
			       source.resolve_conj().resolve_neg() : source;

	if (plain.scalar_type() == dtype || (is_float(plain.scalar_type()) && is_float(dtype) &&
					     host_format(plain.scalar_type())))
		return plain;
	return plain.to(is_float(dtype) ? ScalarType::Float : dtype);
}

/* Copies @source into the whole storage of @target. */
void host_to_storage(const Tensor &target, const Tensor &source, const Dims &dims,
		     bool non_blocking)
{
	Block *block = placed_block(target);
	spyre_host_tensor host =
		describe(*block->placement, dims, const_cast<void *>(source.storage().data()),
			 host_format(source.scalar_type()), source.strides(),
			 source.storage_offset());
	c10::Stream stream = current_stream(block->device);
	spyre_stream *native = native_stream(stream);
	bool wait = must_wait(host.data, stream, non_blocking);

	check(spyre_copy_h2d_async(native, block->address, &block->placement->layout, &host),
	      "copy to the device");
	block->clean_padding = true;
	if (wait)
		finish(native, source, "copy to the device");
}

/* Strides of @tensor in the order of the window's dimensions. */
void strides_of(const Window &window, const Tensor &tensor, int64_t *stride)
{
	const Placement &p = window.placement();

	for (size_t d = 0; d < p.size.size(); d++)
		stride[d] = window.walker[d] < 0 ? p.stride[d] : tensor.stride(window.walker[d]);
}

/* The first element of a tensor on the host. */
void *first_element(const Tensor &tensor)
{
	return static_cast<char *>(const_cast<void *>(tensor.storage().data())) +
	       tensor.storage_offset() * tensor.element_size();
}

/* Copies to a window; false if @target's sticks hold other elements or are scattered. */
bool host_to_window(const Tensor &target, const Tensor &source, bool non_blocking)
{
	Window window = window_of(target);
	int64_t stride[SPYRE_MAX_RANK];

	if (!window.exact || !window.whole_sticks() || window.pieces > Window::kFewPieces)
		return false;
	c10::Stream stream = current_stream(window.block->device);
	spyre_stream *native = native_stream(stream);
	bool wait = must_wait(source.storage().data(), stream, non_blocking);

	strides_of(window, source, stride);
	write_window(native, window, first_element(source), host_format(source.scalar_type()),
		     stride);
	if (wait)
		finish(native, source, "copy to the device");
	return true;
}

void host_to_card(const Tensor &target, const Tensor &given, bool non_blocking)
{
	const Placement &placement = placement_of(target);
	Tensor source = expanded(convert_on_host(given, target.scalar_type()), target.sizes());
	Dims dims;

	warn_downcast(target.scalar_type());
	if (target.scalar_type() == ScalarType::Long)
		warn_cut(source);
	if (target.scalar_type() != placement.dtype) {
		write_through_host(target, source);
	} else if (is_whole(target, placement, &dims) &&
		   (placement.layout.mapped ||
		    takes(placement, describe(placement, dims, nullptr, SPYRE_FORMAT_INVALID,
					      source.strides(), 0)))) {
		host_to_storage(target, source, dims, non_blocking);
	} else if (is_reshaped(target, placement) && placement.layout.mapped) {
		host_to_card(storage_tensor(target), source.reshape(placement.size),
			     non_blocking);
	} else if (!placement.layout.mapped || target.dim() > SPYRE_MAX_RANK) {
		write_through_host(target, source);
	} else if (!host_to_window(target, source, non_blocking)) {
		Tensor dense = empty(target.sizes(), target.scalar_type(),
				     target.device().index());

		host_to_card(dense, source, non_blocking);
		copy(target, dense, true);
	}
}

void storage_to_host(const Tensor &target, const Tensor &source, const Dims &dims,
		     bool non_blocking)
{
	Block *block = placed_block(source);
	spyre_host_tensor host = describe(*block->placement, dims,
					  target.storage().mutable_data(),
					  host_format(target.scalar_type()), target.strides(),
					  target.storage_offset());
	c10::Stream stream = current_stream(block->device);
	spyre_stream *native = native_stream(stream);
	bool wait = must_wait(host.data, stream, non_blocking);

	check(spyre_copy_d2h_async(native, &host, block->address, &block->placement->layout),
	      "copy from the device");
	if (wait)
		finish(native, target, "copy from the device");
}

void card_to_host(const Tensor &target, const Tensor &given, bool non_blocking);

/* Copies a part of a storage to the host, in the dtype of @target. */
void window_to_host(const Tensor &target, const Tensor &source, bool non_blocking)
{
	Window window = window_of(source);
	c10::Stream stream = current_stream(window.block->device);
	spyre_stream *native = native_stream(stream);
	spyre_format format = host_format(target.scalar_type());

	if (window.pieces > Window::kFewPieces) {
		Tensor dense = empty(source.sizes(), source.scalar_type(), window.block->device);

		if (copy_by_kernel(dense, source)) {
			card_to_host(target, dense, non_blocking);
			return;
		}
	}
	if (window.exact && window.at_stick() && !target.is_neg()) {
		int64_t stride[SPYRE_MAX_RANK];
		bool wait = must_wait(target.storage().data(), stream, non_blocking);

		strides_of(window, target, stride);
		read_window(native, first_element(target), format, stride, window);
		if (wait)
			finish(native, target, "copy from the device");
		return;
	}
	window.round_to_sticks();
	Packed packed(window);
	must_wait(nullptr, stream, false);
	Tensor part = empty_host({packed.elements}, target.scalar_type());
	read_window(native, part.mutable_data_ptr(), format, packed.stride, window);
	finish(native, part, "copy from the device");
	if (target.numel() == 1 && !target.is_neg()) {
		size_t bytes = target.element_size();

		std::memcpy(first_element(target), static_cast<char *>(part.data_ptr()) +
			    packed.view_offset * bytes, bytes);
		return;
	}
	target.copy_(part.as_strided(source.sizes(), packed.view_stride, packed.view_offset));
}

void card_to_host(const Tensor &target, const Tensor &given, bool non_blocking)
{
	Tensor source = expanded(given, target.sizes());
	const Placement &placement = placement_of(source);
	ScalarType from = source.scalar_type(), to = target.scalar_type();
	/* DL16, in which the card holds fp16, has a wider range than fp16. */
	ScalarType read = from == to || !is_float(from) ? from :
			  is_float(to) ? to : ScalarType::Float;
	Dims dims;

	at::assert_no_internal_overlap(target);
	if (from != placement.dtype) {
		target.copy_(to_host(source));
	} else if (read != to || interleaves(target)) {
		Tensor plain = empty_host(source.sizes(), read);

		card_to_host(plain, source, false);
		target.copy_(plain);
	} else if (is_whole(source, placement, &dims) && !target.is_neg() &&
		   takes(placement, describe(placement, dims, nullptr, SPYRE_FORMAT_INVALID,
					     target.strides(), 0))) {
		storage_to_host(target, source, dims, non_blocking);
	} else if (auto shaped = is_reshaped(source, placement) ?
			   in_shape_of(placement, target) : std::nullopt;
		   shaped && !is_whole(source, placement, &dims)) {
		card_to_host(*shaped, storage_tensor(source), non_blocking);
	} else {
		window_to_host(target, source, non_blocking);
	}
}

/* Host format for a conversion between two dtypes, or INVALID. */
spyre_format stage_format(ScalarType from, ScalarType to)
{
	if (from != to && (is_float8(from) || is_float8(to)))
		return SPYRE_FORMAT_INVALID;
	if (device_format(from) == device_format(to) &&
	    (from == to || from == ScalarType::Bool || !c10::isIntegralType(to, true)))
		return device_format(from);
	if (to == ScalarType::Bool)
		return SPYRE_FORMAT_INVALID;
	if (is_float(to) && !c10::isIntegralType(from, false))
		return SPYRE_FORMAT_IEEE_FP32;
	return SPYRE_FORMAT_IEEE_INT32;
}

/* Pinned memory for a window's elements, used by @stream. */
struct Stage {
	Stage(const Window &window, spyre_format format, c10::Stream stream)
		: window(window), packed(window),
		  data(host_allocator()->allocate(packed.elements * spyre_format_bytes(format))),
		  format(format), native(native_stream(stream))
	{
		record_pinned(data.get(), stream);
	}
	void read() const { read_window(native, data.get(), format, packed.stride, window); }
	void write() const { write_window(native, window, data.get(), format, packed.stride); }
	/* Host tensor of the window's view, in the order of @placement. */
	spyre_host_tensor elements(const Placement &placement, const Dims &dims) const
	{
		return describe(placement, dims, data.get(), format, packed.view_stride,
				packed.view_offset);
	}

	const Window &window;
	Packed packed;
	c10::DataPtr data;
	spyre_format format;
	spyre_stream *native;
};

/* Copies any view to a whole storage. */
void view_to_storage(const Tensor &target, const Tensor &source, const Dims &dims,
		     spyre_format format)
{
	Block *block = placed_block(target);
	Window window = window_of(source);

	window.round_to_sticks();
	Stage stage(window, format, current_stream(block->device));
	spyre_host_tensor host = stage.elements(*block->placement, dims);

	stage.read();
	check(spyre_copy_h2d_async(stage.native, block->address, &block->placement->layout, &host),
	      "copy on the device");
	block->clean_padding = true;
}

/* Copies a dense tensor to a view: reads, changes and writes back its sticks. */
void dense_to_view(const Tensor &target, const Tensor &dense)
{
	const Block *block = placed_block(dense);
	Window window = window_of(target);
	bool alone = window.exact && window.whole_sticks();
	Dims dims;

	TORCH_INTERNAL_ASSERT(is_whole(dense, *block->placement, &dims));
	window.round_to_sticks();
	Stage stage(window, device_format(target.scalar_type()), current_stream(block->device));
	spyre_host_tensor host = stage.elements(*block->placement, dims);

	if (!alone)
		stage.read();
	check(spyre_copy_d2h_async(stage.native, &host, block->address, &block->placement->layout),
	      "copy on the device");
	stage.write();
	if (window.is_whole())
		placed_block(target)->clean_padding = true;
}

bool same_memory(const Tensor &a, const Tensor &b)
{
	return a.storage().is_alias_of(b.storage()) &&
	       a.storage_offset() == b.storage_offset() && a.strides() == b.strides() &&
	       a.scalar_type() == b.scalar_type();
}

/* Copies a whole storage to another with the same layout. */
bool copy_storage(const Tensor &target, const Tensor &source, const Dims &target_dims)
{
	Block *to = placed_block(target), *from = placed_block(source);
	Dims dims;

	if (target.scalar_type() != source.scalar_type() ||
	    !is_whole(source, *from->placement, &dims) ||
	    from->placement->size != to->placement->size ||
	    from->placement->stride != to->placement->stride ||
	    !spyre_layout_equal(&from->placement->layout, &to->placement->layout) ||
	    std::memcmp(dims.of, target_dims.of, to->placement->size.size()))
		return false;
	check(spyre_memcpy_d2d_async(current_native_stream(to->device), to->address, from->address,
				     spyre_layout_bytes(&to->placement->layout)),
	      "copy on the device");
	to->clean_padding = from->padding_is_clean();
	return true;
}

/* Integers become bools by a comparison. */
bool compare_with_zero(const Tensor &target, const Tensor &source)
{
	if (target.scalar_type() != ScalarType::Bool || target.device() != source.device() ||
	    (source.scalar_type() != ScalarType::Int && source.scalar_type() != ScalarType::Long))
		return false;

	Tensor out = target;

	at::ne_out(out, source, 0);
	return true;
}

/*
 * True if a conversion to int64 has finite numbers that need more than 32 bits; the card would
 * store the largest or smallest integer of 32 bits in their place. Finite numbers of fp16 always
 * fit. During a capture the numbers are not known yet.
 */
bool exceeds_card(const Tensor &target, const Tensor &source)
{
	ScalarType from = source.scalar_type();

	if (target.scalar_type() != ScalarType::Long || from == ScalarType::Half || !is_float(from))
		return false;
	if (is_capturing(source.device().index())) {
		warn_downcast(target.scalar_type());
		return false;
	}

	Tensor size = at::abs(source);
	constexpr double infinite = std::numeric_limits<double>::infinity();

	return at::any(at::logical_and(at::ge(size, 0x1p31), at::lt(size, infinite))).item<bool>();
}

void card_to_card(const Tensor &target, const Tensor &given)
{
	Tensor source = expanded(given, target.sizes());
	const Placement &to = placement_of(target), &from = placement_of(source);
	spyre_format format = stage_format(source.scalar_type(), target.scalar_type());
	Dims dims;
	bool whole;

	at::assert_no_internal_overlap(target);
	if (same_memory(target, source))
		return;
	if (target.device() == source.device() && target.scalar_type() == to.dtype &&
	    source.scalar_type() == from.dtype && convert_float8(target, source))
		return;
	if (compare_with_zero(target, source))
		return;
	if (format == SPYRE_FORMAT_INVALID || target.device() != source.device() ||
	    target.scalar_type() != to.dtype || source.scalar_type() != from.dtype ||
	    target.dim() > SPYRE_MAX_RANK || !spyre_format_bytes(format) ||
	    exceeds_card(target, source)) {
		Tensor host = empty_host(source.sizes(), source.scalar_type());

		card_to_host(host, source, false);
		host_to_card(target, host, false);
		return;
	}
	whole = is_whole(target, to, &dims);
	if (!whole && to.layout.mapped && is_reshaped(target, to)) {
		if (auto shaped = in_shape_of(to, source)) {
			card_to_card(storage_tensor(target), *shaped);
			return;
		}
	}
	if (whole && copy_storage(target, source, dims))
		return;
	if (copy_by_kernel(target, source))
		return;
	if (interleaves(target)) {
		write_through_host(target, source.cpu());
		return;
	}
	if (whole && to.layout.mapped) {
		view_to_storage(target, source, dims, format);
		return;
	}
	if (from.layout.mapped && source.scalar_type() == target.scalar_type() &&
	    !source.is_alias_of(target) && is_whole(source, from, &dims)) {
		dense_to_view(target, source);
		return;
	}

	Tensor dense = empty(target.sizes(), target.scalar_type(), target.device().index());

	card_to_card(dense, source);
	dense_to_view(target, dense);
}

} // namespace

void set_downcast_warning(bool enabled)
{
	downcast_warning.store(enabled);
	downcast_warned.store(false);
}

bool get_downcast_warning()
{
	return downcast_warning.load();
}

void copy(const Tensor &target, const Tensor &source, bool non_blocking)
{
	if (!target.numel())
		return;
	if (target.is_complex() || source.is_complex()) {
		copy_complex(target, source, non_blocking);
		return;
	}
	if (target.is_cpu()) {
		c10::DeviceGuard guard(source.device());

		card_to_host(target, source, non_blocking);
		return;
	}

	c10::DeviceGuard guard(target.device());
	Block *block = placed_block(target);
	Range before = block->range, range;

	if (target.scalar_type() == ScalarType::Long && source.is_cpu())
		range = range_of_host(source);
	else if (target.scalar_type() == ScalarType::Long && source.is_privateuseone())
		range = range_of(source);
	block->range = Range();
	if (source.is_cpu())
		host_to_card(target, source, non_blocking);
	else if (source.is_privateuseone())
		card_to_card(target, source);
	else
		TORCH_CHECK(false, "spyre: cannot copy from ", source.device(), " to ",
			    target.device(), "; copy through the CPU");
	set_range(target, range, before);
}

void copy_constant(const Tensor &target, const Tensor &source)
{
	Range before = placed_block(target)->range, range = range_of_host(source);

	copy(target, source.pin_memory(), true);
	set_range(target, range, before);
}

at::Tensor dense_copy(const Tensor &tensor)
{
	Tensor dense = empty(tensor.sizes(), tensor.scalar_type(), tensor.device().index());

	copy(dense, tensor, true);
	return dense;
}

namespace {

/* Returns the stored values of a view that negates on access, as the copy engine reads these. */
Tensor without_neg(const Tensor &tensor)
{
	return tensor.is_privateuseone() && tensor.is_neg() ? tensor._neg_view() : tensor;
}

/*
 * True if nothing else can reach the numbers of a host tensor, such as those that torch.tensor()
 * makes of a list before it copies them. They cannot change, so that they are constants of a graph.
 */
bool is_temporary(const Tensor &tensor)
{
	const c10::Storage &storage = tensor.storage();

	return tensor.use_count() == 1 && storage.use_count() == 1 &&
	       storage.unsafeGetStorageImpl()->resizable() &&
	       !tensor.unsafeGetTensorImpl()->pyobj_slot()->load_pyobj();
}

Tensor copy_from(const Tensor &source, const Tensor &target, bool non_blocking)
{
	if (source.is_cpu() && is_capturing(target.device().index()) && is_temporary(source)) {
		copy_constant(target, source);
		return target;
	}

	Tensor from = without_neg(source), to = without_neg(target);

	copy(to, from, non_blocking);
	if ((from.is_same(source)) != (to.is_same(target)))
		to.neg_();
	return target;
}

Tensor copy_from_and_resize(const Tensor &source, const Tensor &target)
{
	if (target.sizes() != source.sizes())
		target.resize_(source.sizes());
	copy(target, source, false);
	return target;
}

/*
 * A copy with the placement of its source, as torch.compile has it, which leaves copies out:
 * reductions add in the order of sticks.
 */
Tensor clone(const Tensor &self, std::optional<at::MemoryFormat> format)
{
	const PlacementPtr &placement = placed_block(self)->placement;
	Dims dims;

	if (format.value_or(at::MemoryFormat::Preserve) != at::MemoryFormat::Preserve ||
	    self.is_neg() || self.is_conj() || placement->storage_offset ||
	    !is_whole(self, *placement, &dims))
		return at::native::clone(self, format);

	Tensor made = make_tensor(make_storage(self.device().index(), placement,
					       self.storage().nbytes()),
				  self.scalar_type(), self.sizes(), self.strides());

	copy(made, self, true);
	return made;
}

at::Scalar local_scalar_dense(const Tensor &tensor)
{
	Tensor host = empty_host({}, tensor.scalar_type());

	TORCH_CHECK(tensor.numel() == 1, "a Tensor with ", tensor.numel(),
		    " elements cannot be converted to Scalar");
	not_in_graph(tensor.device().index(), "the value of a tensor (item(), bool(), if, print)",
		     "it is not computed before the graph is replayed; read it after that");
	copy(host, make_tensor(tensor.storage(), tensor.scalar_type(), {}, {},
			       tensor.storage_offset()), false);
	return at::_local_scalar_dense(host);
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	m.impl("clone", TORCH_FN(clone));
	m.impl("_copy_from", TORCH_FN(copy_from));
	m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
	m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
}

/* The fallback of this key would call this operation again to make a plain copy. */
TORCH_LIBRARY_IMPL(aten, Negative, m)
{
	m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

} // namespace torch_spyre
