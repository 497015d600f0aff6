// SPDX-License-Identifier: MIT
/* Streams: the pool of libspyre, and each thread's current one. */
#include "stream.h"

#include <array>

#include <c10/util/Exception.h>

#include "device.h"
#include "gil.h"

namespace torch_spyre {

namespace {

thread_local std::array<int32_t, MAX_DEVICES> current_id{};

} // namespace

c10::Stream make_stream(c10::DeviceIndex index, int id)
{
	return c10::Stream(c10::Stream::UNSAFE,
			   c10::Device(c10::DeviceType::PrivateUse1, check_index(index)), id);
}

c10::Stream default_stream(c10::DeviceIndex index)
{
	return make_stream(index, SPYRE_STREAM_DEFAULT);
}

c10::Stream current_stream(c10::DeviceIndex index)
{
	index = check_index(index);
	return make_stream(index, current_id[index]);
}

c10::Stream exchange_stream(c10::Stream stream)
{
	c10::Stream old = current_stream(stream.device_index());

	native_stream(stream);
	current_id[stream.device_index()] = static_cast<int32_t>(stream.id());
	return old;
}

static spyre_stream *stream_of(c10::DeviceIndex index, int id)
{
	spyre_stream *stream;

	check(spyre_stream_get(context(index), id, &stream), "looking up a stream");
	return stream;
}

spyre_stream *native_stream(c10::Stream stream)
{
	TORCH_CHECK(stream.device_type() == c10::DeviceType::PrivateUse1,
		    "spyre: expected a stream of a spyre device, got one of ", stream.device());
	TORCH_CHECK(stream.id() >= 0 && stream.id() <= SPYRE_STREAM_HIGH_LAST,
		    "spyre: there is no stream ", stream.id(), "; ids are 0 to ",
		    SPYRE_STREAM_HIGH_LAST);
	return stream_of(stream.device_index(), static_cast<int>(stream.id()));
}

spyre_stream *current_native_stream(c10::DeviceIndex index)
{
	index = check_index(index);
	return stream_of(index, current_id[index]);
}

c10::Stream stream_from_pool(c10::DeviceIndex index, int priority)
{
	spyre_stream *stream;

	index = check_index(index);
	check(spyre_stream_from_pool(context(index), priority < 0 ? -1 : 0, &stream),
	      "taking a stream");
	return make_stream(index, spyre_stream_id(stream));
}

bool query_stream(c10::Stream stream)
{
	spyre_status status = spyre_stream_query(native_stream(stream));

	if (status == SPYRE_NOT_READY)
		return false;
	check(status, "stream query");
	return true;
}

void synchronize_stream(c10::Stream stream)
{
	spyre_stream *native = native_stream(stream);
	ReleaseGil no_gil;

	check(spyre_stream_synchronize(native), "stream synchronize");
}

void synchronize_device(c10::DeviceIndex index)
{
	index = check_index(index);
	if (!has_context(index) && !in_bad_fork())
		return;

	spyre_context *c = context(index);
	ReleaseGil no_gil;

	check(spyre_context_synchronize(c), "synchronize");
}

} // namespace torch_spyre
