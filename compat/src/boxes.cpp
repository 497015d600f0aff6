// SPDX-License-Identifier: MIT
/* Converting copies: each entry of a DCI is a box of the DMA engine. */
#include "boxes.hpp"

#include <spyre/memory.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "error.hpp"
#include "formats.hpp"

namespace spyre_compat
{
namespace
{
[[noreturn]] void refuse(const data_conversion_info &dci, std::size_t box, const std::string &why)
{
	throw std::runtime_error("cannot copy \"" + dci.dci_dsName_ + "\": box " +
				 std::to_string(box) + " " + why);
}

/* Adds dimension @d of @from to @box, unless it has one element. */
void add_dimension(spyre_box &box, const data_conversion_info &dci, std::size_t number,
		   std::size_t d)
{
	const data_conversion_stride_info &from = dci.dcsi_[number];
	const std::int64_t host = dci.isHostToSen_ ? from.stride_src_[d] : from.stride_dst_[d];
	const std::int64_t device = dci.isHostToSen_ ? from.stride_dst_[d] : from.stride_src_[d];

	if (from.size_[d] == 1)
		return;
	/* Of several elements that are copied to one place on the host, the last one remains. */
	if (!dci.isHostToSen_ && !host && from.size_[d] > 1) {
		std::int64_t last;

		if (__builtin_mul_overflow(from.size_[d] - 1, device, &last) ||
		    __builtin_add_overflow(box.device_offset, last, &box.device_offset))
			refuse(dci, number, "reaches beyond 2^63 elements");
		return;
	}
	if (box.rank == SPYRE_MAX_BOX_RANK)
		refuse(dci, number, "has more than " + std::to_string(SPYRE_MAX_BOX_RANK) +
				    " dimensions of at least two elements");
	box.size[box.rank] = from.size_[d];
	box.host_stride[box.rank] = host;
	box.device_stride[box.rank] = device;
	box.rank++;
}

spyre_box make_box(const data_conversion_info &dci, std::size_t number)
{
	const data_conversion_stride_info &from = dci.dcsi_[number];
	spyre_box box = {};

	if (from.stride_src_.size() != from.size_.size() ||
	    from.stride_dst_.size() != from.size_.size())
		refuse(dci, number, "has " + std::to_string(from.size_.size()) + " sizes, " +
				    std::to_string(from.stride_src_.size()) +
				    " source strides and " +
				    std::to_string(from.stride_dst_.size()) +
				    " destination strides");
	box.host_offset = dci.isHostToSen_ ? from.offset_src_ : from.offset_dst_;
	box.device_offset = dci.isHostToSen_ ? from.offset_dst_ : from.offset_src_;
	for (std::size_t d = from.size_.size(); d-- > 0;)
		add_dimension(box, dci, number, d);
	return box;
}

/* Returns the number of bytes up to the last element of @box on a side, 0 for an empty box. */
std::uint64_t end_of(const data_conversion_info &dci, const spyre_box &box, std::size_t number,
		     std::int64_t offset, const std::int64_t *stride, spyre_format format)
{
	std::int64_t last = offset, reach;
	std::uint64_t end;

	for (std::uint32_t d = 0; d < box.rank; d++) {
		if (box.size[d] < 1)
			return 0;
		if (__builtin_mul_overflow(box.size[d] - 1, stride[d], &reach) ||
		    __builtin_add_overflow(last, reach, &last))
			refuse(dci, number, "reaches beyond 2^63 elements");
	}
	if (__builtin_mul_overflow(std::uint64_t(std::max<std::int64_t>(last, -1)) + 1,
				   spyre_format_bytes(format), &end))
		refuse(dci, number, "reaches beyond 2^64 bytes");
	return end;
}
}

void copy_boxes(spyre_stream *stream, spyre_devptr device, std::uint64_t device_bytes, void *host,
		const data_conversion_info &dci)
{
	std::vector<spyre_box> boxes;
	spyre_box_copy copy = {};

	copy.struct_size = sizeof(copy);
	copy.direction = dci.isHostToSen_ ? SPYRE_COPY_H2D : SPYRE_COPY_D2H;
	copy.device = device;
	copy.device_format = to_spyre(dci.isHostToSen_ ? dci.dataformat_dst_ : dci.dataformat_src_);
	copy.host = host;
	copy.host_format = to_spyre(dci.isHostToSen_ ? dci.dataformat_src_ : dci.dataformat_dst_);
	for (std::size_t i = 0; i < dci.dcsi_.size(); i++) {
		const spyre_box box = make_box(dci, i);
		const std::uint64_t end = end_of(dci, box, i, box.device_offset, box.device_stride,
						 copy.device_format);

		/* The rest of the region belongs to other tensors. */
		if (end > device_bytes)
			refuse(dci, i, "ends at byte " + std::to_string(end) +
				       " of the device address, which has " +
				       std::to_string(device_bytes));
		/* A DCI has no size of the host memory, so that the boxes determine it. */
		copy.host_bytes = std::max(copy.host_bytes, end_of(dci, box, i, box.host_offset,
								   box.host_stride,
								   copy.host_format));
		boxes.push_back(box);
	}
	if (boxes.empty())
		return;
	copy.boxes = boxes.data();
	copy.num_boxes = boxes.size();
	check(spyre_copy_boxes_async(stream, &copy), "cannot copy with a conversion");
}
}
