// SPDX-License-Identifier: MIT
/* Events: points in streams, to wait for and to take the time between. */
#include "event.h"

#include <c10/util/Exception.h>

#include "device.h"
#include "gil.h"
#include "graph.h"
#include "stream.h"
#include "wait.h"

namespace torch_spyre {

namespace {

struct Event {
	c10::DeviceIndex device;
	uint64_t generation;	/* of its context */
	bool timing;
	spyre_event *native;

	~Event()
	{
		/* A replaced context has freed its events. */
		if (generation == torch_spyre::generation(device) && !in_bad_fork())
			spyre_event_destroy(native);
	}
};

/* Shared, because a wait on another card may outlive the event's owner. */
using EventPtr = std::shared_ptr<Event>;

EventPtr &of(void *event)
{
	return *static_cast<EventPtr *>(event);
}

EventPtr create(c10::DeviceIndex device, c10::EventFlag flag)
{
	bool timing = flag == c10::EventFlag::BACKEND_DEFAULT;
	spyre_event *native;

	TORCH_CHECK(timing || flag == c10::EventFlag::PYTORCH_DEFAULT,
		    "spyre: unknown event flag ", static_cast<int>(flag));
	check(spyre_event_create(context(device), timing ? 0 : SPYRE_EVENT_NO_TIMING, &native),
	      "creating an event");
	return EventPtr(new Event{device, generation(device), timing, native});
}

void check_current(const Event &event)
{
	TORCH_CHECK(event.generation == generation(event.device),
		    "spyre: the event belongs to a context from before the device's reset");
}

void wait_on_host(void *data)
{
	std::unique_ptr<EventPtr> event(static_cast<EventPtr *>(data));

	if ((*event)->generation == generation((*event)->device))
		(void)spyre_event_synchronize((*event)->native);
}

} // namespace

void record_event(void **event, c10::Stream stream, c10::EventFlag flag)
{
	c10::DeviceIndex device = stream.device_index();

	if (*event && of(*event)->generation != generation(device)) {
		destroy_event(*event);
		*event = nullptr;
	}
	if (!*event)
		*event = new EventPtr(create(device, flag));
	TORCH_CHECK(of(*event)->device == device, "spyre: an event of spyre:",
		    static_cast<int>(of(*event)->device), " cannot be recorded on a stream of spyre:",
		    static_cast<int>(device));
	check(spyre_event_record(of(*event)->native, native_stream(stream)), "event record");
}

void block_on_event(void *event, c10::Stream stream)
{
	if (!event)
		return;

	const EventPtr &e = of(event);
	spyre_stream *native = native_stream(stream);

	check_current(*e);
	if (e->device == stream.device_index()) {
		check(spyre_stream_wait_event(native, e->native), "waiting for an event");
		return;
	}
	/* Cards have separate timelines, so a host function of the stream waits. */
	not_in_graph(stream.device_index(), "a wait for an event of another card",
		     "wait before the capture");
	auto data = std::make_unique<EventPtr>(e);

	share_context(e->device);

	check(spyre_stream_host_fn(native, wait_on_host, data.get()),
	      "waiting for an event of another card");
	data.release();
}

bool query_event(void *event)
{
	if (!event)
		return true;
	check_current(*of(event));

	spyre_status status = spyre_event_query(of(event)->native);

	if (status == SPYRE_NOT_READY)
		return false;
	check(status, "event query");
	return true;
}

void synchronize_event(void *event)
{
	if (!event)
		return;
	EventPtr e = of(event);
	check_current(*e);
	wait_for_signals_too(e->native);
	ReleaseGil no_gil;

	check(spyre_event_synchronize(e->native), "event synchronize");
}

double elapsed_time(void *start, void *end)
{
	double milliseconds;

	TORCH_CHECK(start && end,
		    "Both events must be recorded before calculating elapsed time.");
	TORCH_CHECK(of(start)->timing && of(end)->timing,
		    "Both events must be created with argument 'enable_timing=True'.");
	TORCH_CHECK(of(start)->device == of(end)->device,
		    "spyre: elapsed time takes two events of one card");
	check_current(*of(start));
	check_current(*of(end));

	spyre_status status = spyre_event_elapsed(of(start)->native, of(end)->native,
						  &milliseconds);

	TORCH_CHECK(status != SPYRE_NOT_READY && status != SPYRE_ERROR_INVALID_ARGUMENT,
		    "Both events must be completed before calculating elapsed time.");
	check(status, "elapsed time");
	return milliseconds;
}

void destroy_event(void *event) noexcept
{
	delete static_cast<EventPtr *>(event);
}

} // namespace torch_spyre
