// SPDX-License-Identifier: MIT
/* How a card's context stands, and how it is brought back. */
#include "module.h"

#include "distributed/communicator.h"
#include "runtime/allocator.h"
#include "runtime/device.h"
#include "runtime/gil.h"
#include "runtime/host_allocator.h"

namespace torch_spyre {

namespace py = pybind11;

namespace {

spyre_context_state state_of(c10::DeviceIndex index)
{
	spyre_context_state state{};

	state.struct_size = sizeof(state);
	check(spyre_context_get_state(context(index), &state), "state of the card");
	return state;
}

const char *health_name(spyre_context_health health)
{
	switch (health) {
	case SPYRE_CONTEXT_OK:
		return "ok";
	case SPYRE_CONTEXT_FAULTED:
		return "faulted";
	case SPYRE_CONTEXT_STALE:
		return "stale";
	case SPYRE_CONTEXT_LOST:
		return "lost";
	}
	return "unknown";
}

/* None if the card is not open. */
py::object state(int index)
{
	c10::DeviceIndex device = check_index(index);
	py::dict d;

	if (!has_context(device))
		return py::none();

	spyre_context_state s = state_of(device);

	d["health"] = health_name(s.health);
	d["status"] = spyre_status_name(s.status);
	d["stream"] = s.stream;
	d["operation"] = s.operation;
	d["control_block"] = s.control_block;
	d["generation"] = s.generation;
	d["card_generation"] = s.card_generation;
	d["text"] = s.text;
	return d;
}

/* Detaches the context: tensors of the card lose their memory and raise when used. */
void leave(c10::DeviceIndex device)
{
	/* Pinned host tensors remain valid, which requires the context that pinned them. */
	bool pinned = holds_pinned(device);

	drop_communicators(device);

	spyre_context *left = drop_memory(device);

	if (left && !pinned)
		/* Errors of the streams are ignored, because they are the reason for the reset. */
		(void)spyre_context_destroy(left);
}

void open_anew(c10::DeviceIndex device)
{
	leave(device);
	context(device);
}

void reset(int index, bool hard)
{
	c10::DeviceIndex device = check_index(index);

	if (!hard && !has_context(device) && !in_bad_fork())
		return;

	spyre_context *c = context(device);
	ReleaseGil no_gil;

	if (hard) {
		check(spyre_device_reset(device, 0), "resetting the card");
		open_anew(device);
		return;
	}

	spyre_status status = spyre_context_reset(c);

	if (status == SPYRE_ERROR_DEVICE_RESET || status == SPYRE_ERROR_DEVICE_LOST)
		open_anew(device);
	else
		check(status, "resetting the context");
}

enum class DeviceState { Ok, NotInitialized, StreamError };

/* Queries the state; does not open the card. */
DeviceState device_state(int index)
{
	c10::DeviceIndex device = check_index(index);

	if (!has_context(device))
		return DeviceState::NotInitialized;
	return state_of(device).health == SPYRE_CONTEXT_OK ? DeviceState::Ok :
							     DeviceState::StreamError;
}

/* Closes the open cards of this process. Their tensors lose their memory; the next use of a
 * card opens it again. */
void free_runtime()
{
	ReleaseGil no_gil;

	for (c10::DeviceIndex i = 0; i < device_count(); i++)
		if (has_context(i))
			leave(i);
}

std::string version()
{
	uint32_t v = spyre_version();

	return std::to_string(v >> 16) + "." + std::to_string(v >> 8 & 0xff) + "." +
	       std::to_string(v & 0xff);
}

void define(py::module_ &m)
{
	m.def("_state", state);
	m.def("_reset", reset, py::arg("index"), py::arg("hard") = false);
	m.def("_libspyre_version", version);
	py::enum_<DeviceState>(m, "SpyreDeviceState")
		.value("Ok", DeviceState::Ok)
		.value("NotInitialized", DeviceState::NotInitialized)
		.value("StreamError", DeviceState::StreamError);
	m.def("get_device_state", device_state, py::arg("index") = -1);
	m.def("has_stream_error",
	      [](int index) { return device_state(index) == DeviceState::StreamError; },
	      py::arg("index") = -1);
	m.def("start_runtime", [](int index) { context(check_index(index)); },
	      py::arg("index") = -1);
	m.def("free_runtime", free_runtime);
	m.def("_stream_priority",
	      [](int id) { return id >= SPYRE_STREAM_HIGH_FIRST ? -1 : 0; });
}

const Binding binding(define);

} // namespace

} // namespace torch_spyre
