// SPDX-License-Identifier: MIT
/* A bundle on disk with tensors as they lie, and what the allocator counts. */
#include "module.h"

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <pybind11/stl.h>

#include "device.h"
#include "operand.h"

namespace torch_spyre {

namespace py = pybind11;

namespace {

/* The first stick of a tensor that a bundle reads or writes where it is. */
spyre_arg argument(const at::Tensor &tensor, c10::Device device)
{
	Operand operand;

	TORCH_CHECK(tensor.device() == device, "spyre: launch_kernel: an argument is on ",
		    tensor.device(), ", the first one on ", device);
	TORCH_CHECK(operand_of(tensor, &operand), "spyre: launch_kernel: a view of size ",
		    tensor.sizes(), " and stride ", tensor.strides(), " lies in no layout; call "
		    ".contiguous() on it");
	return {operand.address, nullptr};
}

/* Runs the bundle in @directory once. What it writes is given like what it reads. */
void launch_kernel(const std::string &directory, const std::vector<at::Tensor> &tensors)
{
	TORCH_CHECK_VALUE(!tensors.empty() && tensors[0].is_privateuseone(),
			  "launch_kernel takes tensors of a spyre device");

	c10::Device device = tensors[0].device();
	c10::DeviceGuard guard(device);
	std::vector<spyre_arg> arguments;
	spyre_kernel *loaded;

	for (const at::Tensor &tensor : tensors)
		arguments.push_back(argument(tensor, device));
	check(spyre_kernel_load(context(device.index()), directory.c_str(), &loaded),
	      directory.c_str());

	/* Launches in flight keep what they need. */
	std::unique_ptr<spyre_kernel, spyre_status (*)(spyre_kernel *)> kernel(
		loaded, spyre_kernel_unload);

	check(spyre_launch(current_native_stream(device.index()), loaded, arguments.data(),
			   static_cast<uint32_t>(arguments.size())),
	      directory.c_str());
	for (const at::Tensor &tensor : tensors)
		block_of(tensor.storage())->clean_padding = false;
}

py::object of_accelerator(const char *function, int index)
{
	return py::module_::import("torch.accelerator.memory")
		.attr(function)(static_cast<int>(check_index(index)));
}

void define(py::module_ &m)
{
	m.def("launch_kernel", launch_kernel, py::arg("directory"), py::arg("tensors"),
	      py::call_guard<py::gil_scoped_release>());
	m.def("_spyre_get_allocator_stats",
	      [](int index) { return of_accelerator("memory_stats", index); },
	      py::arg("index") = -1);
	m.def("_spyre_reset_peak_memory_stats",
	      [](int index) { of_accelerator("reset_peak_memory_stats", index); },
	      py::arg("index") = -1);
	m.def("_spyre_reset_accumulated_memory_stats",
	      [](int index) { of_accelerator("reset_accumulated_memory_stats", index); },
	      py::arg("index") = -1);
}

const Binding binding(define);

} // namespace

} // namespace torch_spyre
