// SPDX-License-Identifier: MIT
/* A status as an exception: libspyre's text, led by the operation. */
#include "error.h"
#include "spyre.h"

#include <c10/util/Exception.h>
#include <pybind11/pybind11.h>

#include "graph.h"

namespace torch_spyre {

namespace {

/* True for failures on the card, as opposed to wrong arguments. */
bool is_device_error(spyre_status status)
{
	switch (status) {
	case SPYRE_ERROR_TIMEOUT:
	case SPYRE_ERROR_CANCELLED:
	case SPYRE_ERROR_DEVICE_LOST:
	case SPYRE_ERROR_DEVICE_RESET:
	case SPYRE_ERROR_CARD_FAULT:
		return true;
	default:
		return false;
	}
}

const char *remedy(spyre_status status)
{
	switch (status) {
	case SPYRE_ERROR_DEVICE_LOST:
		return " The card is gone; other cards go on.";
	case SPYRE_ERROR_TIMEOUT:
	case SPYRE_ERROR_CANCELLED:
	case SPYRE_ERROR_DEVICE_RESET:
	case SPYRE_ERROR_CARD_FAULT:
		return " torch.spyre.reset() makes the device usable again.";
	case SPYRE_ERROR_CAPTURE:
		return " The graph that is being captured is dropped; do this before or after it.";
	case SPYRE_ERROR_FORKED:
		return " To use spyre with multiprocessing, use the 'spawn' start method.";
	default:
		return "";
	}
}

/* The free memory of the current card, on which the allocation failed. */
std::string room()
{
	c10::DeviceIndex device = current_device();
	spyre_memory_info info{};

	info.struct_size = sizeof(info);
	if (!has_context(device) || spyre_mem_info(context(device), &info) != SPYRE_SUCCESS)
		return "";
	return c10::str(" spyre:", static_cast<int>(device), " has ", info.free, " of ", info.total,
			" bytes free, largest free block ", info.largest_free,
			" bytes. Free tensors or take smaller batches.");
}

/* The failure that caused a cancelled call, which the call's own text lacks. */
std::string first_failure(spyre_status status)
{
	c10::DeviceIndex device = current_device();
	spyre_context_state state{};

	state.struct_size = sizeof(state);
	if (status != SPYRE_ERROR_CANCELLED || !has_context(device) ||
	    spyre_context_get_state(context(device), &state) != SPYRE_SUCCESS || !*state.text)
		return "";
	return c10::str(" The first failure was: ", state.text, ".");
}

} // namespace

void fail(spyre_status status, const char *what)
{
	std::string text = c10::str("spyre: ", what, ": ", spyre_last_error(), " [",
				    spyre_status_name(status), "].", first_failure(status),
				    remedy(status));
	c10::SourceLocation here{__func__, __FILE__, static_cast<uint32_t>(__LINE__)};

	if (status == SPYRE_ERROR_CAPTURE)
		capture_failed(text);
	if (status == SPYRE_ERROR_OUT_OF_DEVICE_MEMORY)
		throw c10::OutOfMemoryError(here, text + room());
	if (is_device_error(status))
		throw c10::AcceleratorError(here, status, std::move(text));
	throw c10::Error(here, std::move(text));
}

void fail_dtype(const std::string &text)
{
	namespace py = pybind11;

	TORCH_CHECK_TYPE(Py_IsInitialized(), text);
	py::gil_scoped_acquire gil;
	py::object error = py::module_::import("torch_spyre.utils").attr("DtypeError");

	PyErr_SetString(error.ptr(), text.c_str());
	throw py::error_already_set();
}

} // namespace torch_spyre
