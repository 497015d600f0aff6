// SPDX-License-Identifier: MIT
/* Converting copies, described as csrc/spyre_mem.cpp of the front-end describes them. */
#include "check.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <flex/flex.hpp>
#include <spyre/memory.h>
#include <spyre/types.h>

#include "tests/order.h"

namespace
{
constexpr std::size_t rows = 4, columns = 80, lanes = 64, sticks = 2;
constexpr std::size_t device_elements = sticks * rows * lanes;

struct Card {
	Card()
	{
		const auto status = flex::initializeRuntime(&runtime, 0);

		ck_assert_msg(status.ok, "%s", status.text.c_str());
		const flex::AllocationDirective directive(flex::PlacementPolicy::Bind, { 0 },
							  std::nullopt, flex::MemoryType::Tensor);
		stream = runtime->getDefaultStream();
		device.emplace(runtime->getAllocator()->allocate(device_elements * 2, directive));
	}

	void copy(void *host, const data_conversion_info &dci)
	{
		copy(host, dci, *device);
	}

	void copy(void *host, const data_conversion_info &dci, const flex::CompositeAddress &at)
	{
		flex::DmaParams *params = flex::createDmaParams(
			host, at.total_size(), dci.isHostToSen_, &at,
			std::make_shared<data_conversion_info>(dci));

		try {
			if (dci.isHostToSen_)
				stream->launchOperationH2D(params);
			else
				stream->launchOperationD2H(params);
		} catch (...) {
			flex::destroyDmaParams(params);
			throw;
		}
		flex::destroyDmaParams(params);
	}

	/* Waits, and returns the device's memory as 16-bit words. */
	std::vector<std::uint16_t> contents()
	{
		std::vector<std::uint16_t> words(device_elements);
		flex::DmaParams *params =
			flex::createDmaParams(words.data(), words.size() * 2, false, &*device);

		stream->launchOperationD2H(params);
		flex::destroyDmaParams(params);
		stream->synchronize();
		order_le(words.data(), words.size(), 2);
		return words;
	}

	std::shared_ptr<flex::RuntimeContext> runtime;
	flex::RuntimeStream *stream = nullptr;
	std::optional<flex::CompositeAddress> device;
};

/* A 4 x 80 tensor of fp16 in sticks of 64: two entries, the whole sticks and the rest. */
data_conversion_info fp16_tensor(bool to_device, std::int64_t host_offset)
{
	data_conversion_info dci{};
	data_conversion_stride_info box;

	dci.dci_dsName_ = "DCI-Tensor-0";
	dci.isHostToSen_ = to_device;
	dci.dataformat_src_ = to_device ? DataFormats::IEEE_FP16 : DataFormats::SEN169_FP16;
	dci.dataformat_dst_ = to_device ? DataFormats::SEN169_FP16 : DataFormats::IEEE_FP16;
	const std::vector<std::int64_t> host = { 1, columns, lanes };
	const std::vector<std::int64_t> device = { 1, lanes, rows * lanes };
	box.size_ = { lanes, rows, 1 };
	box.stride_src_ = to_device ? host : device;
	box.stride_dst_ = to_device ? device : host;
	box.offset_src_ = to_device ? host_offset : 0;
	box.offset_dst_ = to_device ? 0 : host_offset;
	dci.dcsi_.push_back(box);
	box.size_[0] = columns - lanes;
	box.offset_src_ += to_device ? lanes : rows * lanes;
	box.offset_dst_ += to_device ? rows * lanes : lanes;
	dci.dcsi_.push_back(box);
	dci.input_shape_ = { columns, rows };
	dci.output_shape_ = { lanes, rows, sticks };
	return dci;
}

std::uint16_t encoded(spyre_format format, double value)
{
	std::uint16_t bits = 0;

	ck_assert_int_eq(spyre_format_encode(format, &value, 1, &bits), 0);
	return bits;
}

double value_of(std::size_t row, std::size_t column)
{
	return static_cast<double>(row * columns + column) - 100;
}
}

/* Elements are converted to their place in the sticks; padding stays as it was. */
START_TEST(to_the_card)
{
	Card card;
	std::vector<std::uint16_t> host(3);

	for (std::size_t i = 0; i < rows * columns; i++)
		host.push_back(encoded(SPYRE_FORMAT_IEEE_FP16, value_of(0, i)));
	card.stream->fillAsync(&*card.device, 7, DataFormats::SEN169_FP16, true);
	card.copy(host.data(), fp16_tensor(true, 3));
	const std::vector<std::uint16_t> words = card.contents();
	for (std::size_t i = 0; i < words.size(); i++) {
		const std::size_t row = i / lanes % rows;
		const std::size_t column = i / (rows * lanes) * lanes + i % lanes;
		const double value = column < columns ? value_of(row, column) : 7;

		ck_assert_uint_eq(words[i], encoded(SPYRE_FORMAT_SEN169_FP16, value));
	}
}
END_TEST

/* Host memory around the tensor is not written. */
START_TEST(from_the_card)
{
	Card card;
	std::vector<std::uint16_t> host(3), back(3 + rows * columns + 2, 0x1234);

	for (std::size_t i = 0; i < rows * columns; i++)
		host.push_back(encoded(SPYRE_FORMAT_IEEE_FP16, value_of(0, i)));
	card.copy(host.data(), fp16_tensor(true, 3));
	card.copy(back.data(), fp16_tensor(false, 3));
	card.stream->synchronize();
	for (std::size_t i = 0; i < back.size(); i++)
		ck_assert_uint_eq(back[i], i < 3 || i >= host.size() ? 0x1234 : host[i]);
}
END_TEST

/* A tensor of rank 0: one element, in more dimensions than the DMA engine has. */
START_TEST(scalar)
{
	Card card;
	data_conversion_info dci{};
	data_conversion_stride_info box;
	std::int64_t host = -5, back = 0;

	box.size_.assign(10, 1);
	box.stride_src_.assign(10, 1);
	box.stride_dst_.assign(10, 32);
	dci.isHostToSen_ = true;
	dci.dataformat_src_ = DataFormats::IEEE_INT64;
	dci.dataformat_dst_ = DataFormats::IEEE_INT32;
	dci.dcsi_ = { box };
	card.copy(&host, dci);
	dci.isHostToSen_ = false;
	std::swap(dci.dataformat_src_, dci.dataformat_dst_);
	card.copy(&back, dci);
	card.stream->synchronize();
	ck_assert_int_eq(back, -5);
}
END_TEST

/* Of device elements that go to one element of the host, the last one remains. */
START_TEST(repeated_on_the_card)
{
	Card card;
	data_conversion_info dci{};
	data_conversion_stride_info box;
	float host[3] = { 1, 2, 3 }, back[3] = {};

	box.size_ = { 3, 4 };
	box.stride_src_ = { 1, 0 };
	box.stride_dst_ = { 1, 32 };
	dci.isHostToSen_ = true;
	dci.dataformat_src_ = dci.dataformat_dst_ = DataFormats::IEEE_FP32;
	dci.dcsi_ = { box };
	card.copy(host, dci);
	dci.isHostToSen_ = false;
	std::swap(dci.dcsi_[0].stride_src_, dci.dcsi_[0].stride_dst_);
	card.copy(back, dci);
	card.stream->synchronize();
	for (int i = 0; i < 3; i++)
		ck_assert(back[i] == host[i]);
}
END_TEST

/* An error names the cause, and nothing is copied. */
START_TEST(refusals)
{
	Card card;
	std::vector<std::uint16_t> host(3 + rows * columns);
	data_conversion_info dci = fp16_tensor(true, 3);

	dci.dcsi_[1].stride_dst_.pop_back();
	ck_throws(card.copy(host.data(), dci), "box 1 has 3 sizes, 3 source strides and 2");
	dci = fp16_tensor(true, 3);
	dci.dcsi_[0].size_.assign(9, 2);
	dci.dcsi_[0].stride_src_.assign(9, 1);
	dci.dcsi_[0].stride_dst_.assign(9, 1);
	ck_throws(card.copy(host.data(), dci), "more than 8 dimensions");
	dci = fp16_tensor(true, INT64_MAX - 3);
	ck_throws(card.copy(host.data(), dci), "2^63");
	dci = fp16_tensor(true, -1);
	ck_throws(card.copy(host.data(), dci), "INVALID_ARGUMENT");
	dci = fp16_tensor(true, 3);
	dci.dcsi_[1].offset_dst_ = device_elements;
	ck_throws(card.copy(host.data(), dci), "box 1 ends at byte");
	/* The last of the elements that one of the host stands for. */
	dci = fp16_tensor(false, 3);
	dci.dcsi_[0].size_ = { 4 };
	dci.dcsi_[0].stride_src_ = { INT64_MAX / 2 };
	dci.dcsi_[0].stride_dst_ = { 0 };
	ck_throws(card.copy(host.data(), dci), "box 0 reaches beyond 2^63");
	dci.dcsi_[0].stride_src_ = { 1 };
	dci.dcsi_[0].offset_src_ = INT64_MAX - 2;
	ck_throws(card.copy(host.data(), dci), "box 0 reaches beyond 2^63");
	/* 2^64 bytes and one element, on each side. */
	dci = fp16_tensor(true, 3);
	dci.dataformat_src_ = dci.dataformat_dst_ = DataFormats::IEEE_FP32;
	dci.dcsi_[1].offset_dst_ = (INT64_C(1) << 62) - 63;
	dci.dcsi_[1].size_ = { 64 };
	dci.dcsi_[1].stride_src_ = dci.dcsi_[1].stride_dst_ = { 1 };
	ck_throws(card.copy(host.data(), dci), "box 1 reaches beyond 2^64 bytes");
	std::swap(dci.dcsi_[1].offset_dst_, dci.dcsi_[1].offset_src_);
	ck_throws(card.copy(host.data(), dci), "box 1 reaches beyond 2^64 bytes");
	dci = fp16_tensor(true, 3);
	dci.dataformat_dst_ = DataFormats::SEN153_FP9;
	ck_throws(card.copy(host.data(), dci), "FORMAT");
	for (const std::uint16_t word : card.contents())
		ck_assert_uint_eq(word, 0);
}
END_TEST

/* Memory of the region around the address stays as it is. */
START_TEST(beyond_the_address)
{
	Card card;
	std::vector<std::uint16_t> host(3 + rows * columns, 1);
	const flex::Chunk &all = card.device->chunks()[0];
	const auto copy = [&](std::uint64_t bytes) {
		const flex::CompositeAddress part(flex::Chunk(
			flex::LogicalAddress(all.addr.region_id, 0), bytes, 0));

		card.copy(host.data(), fp16_tensor(true, 3), part);
	};

	/* The last of the 16 elements of the last row's second stick. */
	const std::uint64_t end = ((sticks - 1) * rows + rows - 1) * lanes * 2 + 32;
	const std::string text = "ends at byte " + std::to_string(end);

	ck_throws(copy(end - 32), text + " of the device address, which has");
	for (const std::uint16_t word : card.contents())
		ck_assert_uint_eq(word, 0);
	copy(end);
	ck_assert_uint_ne(card.contents()[0], 0);
}
END_TEST

int main()
{
	const TTest *const cases[] = { to_the_card, from_the_card, scalar, repeated_on_the_card,
				       refusals, beyond_the_address, nullptr };

	return run_tests("compat_boxes", cases);
}
