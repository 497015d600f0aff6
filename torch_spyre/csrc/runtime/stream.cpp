// SPDX-License-Identifier: MIT
/* Streams: the pool of libspyre, and each thread's current one. */
#include "stream.h"

#include <array>
#include <atomic>

#include <c10/util/Exception.h>

#include "device.h"
#include "gil.h"
#include "graph.h"
#include "wait.h"

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

/* Bits of the streams of each card that were used. */
static std::atomic<uint64_t> used[MAX_DEVICES][SPYRE_STREAM_HIGH_LAST / 64 + 1];

static bool is_used(c10::DeviceIndex index, int id)
{
	return used[index][id / 64].load(std::memory_order_relaxed) >> id % 64 & 1;
}

static spyre_stream *stream_of(c10::DeviceIndex index, int id)
{
	uint64_t bit = uint64_t(1) << id % 64;
	spyre_stream *stream;

	if (!is_used(index, id))
		used[index][id / 64].fetch_or(bit, std::memory_order_relaxed);
	check(spyre_stream_get(context(index), id, &stream), "looking up a stream");
	return stream;
}

spyre_stream *native_stream(c10::Stream stream)
{
	TORCH_CHECK(stream.device_type() == c10::DeviceType::PrivateUse1,
		    "spyre: expected a stream of a spyre device, got one of ", stream.device());
	TORCH_CHECK(stream.id() >= 0 && stream.id() <= SPYRE_STREAM_HIGH_LAST,
		    "spyre: unknown stream ", stream.id(), ": ids are 0 to ",
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

	wait_for_signals_too(native);
	ReleaseGil no_gil;

	check(spyre_stream_synchronize(native), "stream synchronize");
}

void wait_for_signals_too(c10::DeviceIndex device)
{
	/* During a capture the context registers the wait with it. */
	if (!is_capturing(device))
		for (int id = 0; id <= SPYRE_STREAM_HIGH_LAST; id++)
			if (is_used(device, id))
				wait_for_signals_too(stream_of(device, id));
}

void synchronize_device(c10::DeviceIndex index)
{
	index = check_index(index);
	if (!has_context(index) && !in_bad_fork())
		return;

	spyre_context *c = context(index);

	wait_for_signals_too(index);
	ReleaseGil no_gil;

	check(spyre_context_synchronize(c), "synchronize");
}

} // namespace torch_spyre
