// SPDX-License-Identifier: MIT
/*
 * Waits that Ctrl-C ends. Python's handlers run in its main thread, between calls: one
 * that waits for the card inside a call has to ask for them.
 */
#include "wait.h"

#include <unistd.h>

#include <pybind11/pybind11.h>

#include "gil.h"

namespace torch_spyre {

namespace {

/* Longest time that a signal handler of Python is delayed by a wait. */
constexpr uint64_t kBetweenSignals = 40000000;	/* ns */

bool takes_signals()
{
	return Py_IsInitialized() && getpid() == gettid();
}

void raise_signals()
{
	pybind11::gil_scoped_acquire gil;

	if (PyErr_CheckSignals())
		throw pybind11::error_already_set();
}

struct Marked {
	spyre_event *event = nullptr;

	explicit Marked(spyre_stream *stream)
	{
		if (spyre_event_create(spyre_stream_context(stream), SPYRE_EVENT_NO_TIMING,
				       &event) ||
		    spyre_event_record(event, stream)) {
			spyre_event_destroy(event);
			event = nullptr;
		}
	}
	~Marked()
	{
		spyre_event_destroy(event);
	}
	Marked(const Marked &) = delete;
	Marked &operator=(const Marked &) = delete;
};

void let_go(void *data)
{
	delete static_cast<at::Tensor *>(data);
}

} // namespace

void wait_for_signals_too(spyre_event *event)
{
	if (!takes_signals() || spyre_event_query(event) != SPYRE_NOT_READY)
		return;
	ReleaseGil no_gil;

	while (spyre_event_synchronize_for(event, kBetweenSignals) == SPYRE_NOT_READY)
		raise_signals();
}

void wait_for_signals_too(spyre_stream *stream)
{
	if (!takes_signals() || spyre_stream_query(stream) != SPYRE_NOT_READY)
		return;
	/* Waits for present work only, not for work that other threads queue meanwhile. */
	Marked now(stream);

	if (now.event)
		wait_for_signals_too(now.event);
}

void raise_signals_too()
{
	if (takes_signals())
		raise_signals();
}

void keep_until_done(const at::Tensor &host, spyre_stream *stream) noexcept
{
	auto *kept = new at::Tensor(host);

	/* A stream that refuses the function is in error and has no running work. */
	if (spyre_stream_host_fn(stream, let_go, kept) != SPYRE_SUCCESS) {
		ReleaseGil no_gil;

		(void)spyre_stream_synchronize(stream);
		delete kept;
	}
}

} // namespace torch_spyre
