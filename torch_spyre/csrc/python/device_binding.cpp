// SPDX-License-Identifier: MIT
/* Devices, generators and fallbacks for Python. */
#include "module.h"

#include <torch/csrc/Generator.h>

#include "aten/copy.h"
#include "runtime/device.h"
#include "runtime/event.h"
#include "aten/fallback.h"
#include "aten/fallback_warning.h"
#include "runtime/generator.h"
#include "runtime/graph.h"
#include "runtime/stream.h"

namespace torch_spyre {

namespace py = pybind11;

namespace {

spyre_device_properties properties(int index)
{
	spyre_device_properties p{};

	p.struct_size = sizeof(p);
	check(spyre_device_get_properties(check_index(index), &p),
	      "device properties");
	return p;
}

py::dict properties_dict(int index)
{
	spyre_device_properties p = properties(index);
	py::dict d;

	d["name"] = p.name;
	d["uuid"] = p.uuid;
	d["bus_id"] = p.bus_id;
	d["node"] = p.node;
	d["backend"] = p.backend == SPYRE_BACKEND_DRM ? "drm" : "embedded";
	d["index"] = p.index;
	d["physical_index"] = p.physical_index;
	d["num_cores"] = p.num_cores;
	d["lx_bytes"] = p.lx_bytes;
	d["clock_khz"] = p.clock_khz;
	d["memory_bytes"] = p.memory_bytes;
	d["unit"] = p.unit;
	return d;
}

/* Threads without Python, such as those of autograd, warn as well. */
void warn_in_python(const std::string &text)
{
	py::gil_scoped_acquire gil;

	py::module_::import("torch_spyre.ops.fallbacks").attr("warn_text")(text);
}

void define(py::module_ &m)
{
	set_fallback_warning(warn_in_python);
	m.def("_device_count", [] { return static_cast<int>(device_count()); });
	m.def("_current_device", [] { return static_cast<int>(current_device()); });
	m.def("_set_device", [](int index) { set_current_device(index); });
	m.def("_open", [](int index) { context(check_index(index)); }, py::arg("index") = -1);
	m.def("_is_initialized", is_initialized);
	m.def("_is_in_bad_fork", in_bad_fork);
	m.def("_properties", properties_dict);
	m.def("_synchronize", [](int index) { synchronize_device(check_index(index)); });
	m.def("_default_generator", [](int index) {
		return py::reinterpret_steal<py::object>(THPGenerator_initDefaultGenerator(
			default_generator(check_index(index))));
	});
	m.def("_elapsed_time", [](int64_t start, int64_t end) {
		return elapsed_time(reinterpret_cast<void *>(start), reinterpret_cast<void *>(end));
	});
	m.def("_is_capturing", [] { return is_capturing(current_device()); });
	m.def("_fallback_counts", fallback_counts);
	m.def("_reset_fallback_counts", reset_fallback_counts);
	m.def("set_downcast_warning", set_downcast_warning);
	m.def("get_downcast_warning", get_downcast_warning);
}

const Binding binding(define);

} // namespace

} // namespace torch_spyre
