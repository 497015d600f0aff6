// SPDX-License-Identifier: MIT
/* Streams: copies, launches, fills, waiting. */
#include <spyre/memory.h>
#include <spyre/stream.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "boxes.hpp"
#include "error.hpp"
#include "formats.hpp"
#include "records.h"
#include "region.hpp"

namespace flex
{
using spyre_compat::Call;
using spyre_compat::CallReport;
using spyre_compat::check;
using spyre_compat::find_range;
using spyre_compat::Range;

namespace
{
using Callback = std::function<void(void *)>;

/* A function of a stream: the callback is called and then destroyed. */
void call(void *data)
{
	const std::unique_ptr<Callback> callback(static_cast<Callback *>(data));

	try {
		(*callback)(nullptr);
	} catch (...) {
		/* This thread belongs to the library, so there is no caller to report to. */
	}
}

/* Calls and releases @callback after the work that is queued on @stream so far. */
void call_later(spyre_stream *stream, Callback callback)
{
	if (!callback)
		return;
	auto own = std::make_unique<Callback>(std::move(callback));

	check(spyre_stream_host_fn(stream, call, own.get()), "cannot queue a callback");
	own.release();
}

Range range_of(const DmaParams &params)
{
	if (!params.device)
		throw std::invalid_argument("cannot copy: the device address is a null pointer");
	Range range = find_range(*params.device);

	if (!params.conversion && params.bytes > range.bytes)
		throw std::out_of_range("cannot copy " + std::to_string(params.bytes) +
					" bytes: the device address has " +
					std::to_string(range.bytes));
	if (params.conversion && range.region->program)
		throw std::invalid_argument("cannot copy to or from program memory with a "
					    "conversion; copy its bytes");
	return range;
}

/*
 * Repeats the bits of @value until they fill at least a byte, and returns their bytes, in the
 * little endian of device memory.
 */
std::size_t encode_pattern(DataFormats format, double value, unsigned char *pattern)
{
	const double values[4] = { value, value, value, value };
	const spyre_format number = spyre_compat::to_spyre(format);
	const std::size_t bytes = spyre_format_bytes(number);
	const std::size_t count = format == DataFormats::SENINT4 ? 2 : 1;

	check(spyre_format_encode(number, values, count, pattern), "cannot fill memory");
	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		std::reverse(pattern, pattern + bytes);
	return bytes ? bytes : 1;
}
}

RuntimeStream::RuntimeStream(spyre_stream *stream) : stream_(stream)
{
}

bool RuntimeStream::query()
{
	return spyre_stream_query(stream_) != SPYRE_NOT_READY;
}

void RuntimeStream::synchronize()
{
	const CallReport report(Call::Wait);

	check(spyre_stream_synchronize(stream_), "work of a stream failed");
}

bool RuntimeStream::needsShutdown()
{
	const spyre_status status = spyre_stream_query(stream_);

	return status != SPYRE_SUCCESS && status != SPYRE_NOT_READY;
}

void RuntimeStream::launchOperationH2D(DmaParams *params)
{
	const CallReport report(Call::CopyToDevice, params->bytes);
	const Range range = range_of(*params);

	if (range.region->program)
		range.region->program->write(range.offset, params->host, params->bytes);
	else if (params->conversion)
		spyre_compat::copy_boxes(stream_, range.address(), range.bytes, params->host,
					 *params->conversion);
	else
		check(spyre_memcpy_h2d_async(stream_, range.address(), params->host,
					     params->bytes),
		      "cannot copy to the card");
	call_later(stream_, params->callback);
}

void RuntimeStream::launchOperationD2H(DmaParams *params)
{
	const CallReport report(Call::CopyToHost, params->bytes);
	const Range range = range_of(*params);

	if (range.region->program)
		range.region->program->read(range.offset, params->host, params->bytes);
	else if (params->conversion)
		spyre_compat::copy_boxes(stream_, range.address(), range.bytes, params->host,
					 *params->conversion);
	else
		check(spyre_memcpy_d2h_async(stream_, params->host, range.address(),
					     params->bytes),
		      "cannot copy from the card");
	call_later(stream_, params->callback);
}

void RuntimeStream::launchOperationCompute(ComputeParams *params)
{
	const CallReport report(Call::Launch, 1, params->kernel_name.c_str());
	std::vector<spyre_devptr> addresses;

	if (!params->program)
		throw std::invalid_argument("cannot launch: the program address is a null pointer");
	const Range range = find_range(*params->program);
	if (!range.region->program)
		throw std::invalid_argument("cannot launch \"" + params->kernel_name +
					    "\": its address is not that of a program");
	for (const CompositeAddress *tensor : params->tensors)
		addresses.push_back(find_range(*tensor).address());
	range.region->program->launch(stream_, range.offset + params->bootstrap_offset, addresses);
}

void RuntimeStream::launchOperationHostCallback(HostCallbackParams *params)
{
	const CallReport report(Call::Callback);

	params->function(params->data);
}

void RuntimeStream::fillAsync(const CompositeAddress *device, double value, DataFormats format,
			      bool)
{
	const Range range = find_range(*device);
	const CallReport report(Call::Fill, range.bytes);
	unsigned char pattern[8];
	const std::size_t bytes = encode_pattern(format, value, pattern);

	if (range.region->program)
		throw std::invalid_argument("cannot fill program memory; copy a program to it");
	check(spyre_memset_async(stream_, range.address(), pattern, bytes, range.bytes),
	      "cannot fill memory");
}

DmaParams *createDmaParams(void *host, std::size_t bytes, bool to_device,
			   const CompositeAddress *device,
			   std::shared_ptr<data_conversion_info> conversion)
{
	return new DmaParams{ .host = host, .bytes = bytes, .to_device = to_device,
			      .device = device, .conversion = std::move(conversion),
			      .callback = {} };
}

void destroyDmaParams(DmaParams *params)
{
	delete params;
}

ComputeParams *createComputeParams(const CompositeAddress *program,
				   std::vector<const CompositeAddress *> tensors,
				   std::string kernel_name, std::uint64_t bootstrap_offset)
{
	return new ComputeParams{ .program = program, .tensors = std::move(tensors),
				  .kernel_name = std::move(kernel_name),
				  .bootstrap_offset = bootstrap_offset };
}

void destroyComputeParams(ComputeParams *params)
{
	delete params;
}

HostCallbackParams *createHostCallbackParams(std::function<void(void *)> function, void *data,
					     bool pipeline_barrier)
{
	return new HostCallbackParams{ std::move(function), data, pipeline_barrier };
}

void destroyHostCallbackParams(HostCallbackParams *params)
{
	delete params;
}
}
