// SPDX-License-Identifier: MIT
/* A bundle on disk with tensors as they lie, and what the allocator counts. */
#include "module.h"

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <pybind11/stl.h>

#include "runtime/device.h"
#include "aten/operand.h"

namespace torch_spyre {

namespace py = pybind11;

namespace {

/* A bundle that is loaded on a card for repeated launches. */
class JobPlan {
public:
	JobPlan(std::string from, c10::DeviceIndex on);
	void launch(const std::vector<at::Tensor> &tensors);
	std::string step_type(int64_t step) const;
	std::string step_name(int64_t step) const;

	const std::string directory;
	const c10::DeviceIndex device;
	spyre_kernel_info info{};

private:
	void check_step(int64_t step) const;

	const uint64_t generation_;
	std::shared_ptr<spyre_kernel> kernel_;
};

JobPlan::JobPlan(std::string from, c10::DeviceIndex on)
	: directory(std::move(from)), device(on), generation_(generation(on))
{
	spyre_kernel *loaded;

	check(spyre_kernel_load(context(device), directory.c_str(), &loaded), directory.c_str());
	kernel_ = keep_kernel(loaded, device, generation_);
	info.struct_size = sizeof(info);
	check(spyre_kernel_get_info(loaded, &info), directory.c_str());
}

void JobPlan::check_step(int64_t step) const
{
	TORCH_CHECK_INDEX(step >= 0 && step < info.num_sdscs, "spyre: step ", step, " of ",
			  directory, " is out of range: it has ", info.num_sdscs, " steps");
}

/* All steps compute: they are the SDSCs of the bundle, which is launched as a whole. */
std::string JobPlan::step_type(int64_t step) const
{
	check_step(step);
	return "Compute";
}

/* The steps are one record of the profiler, which has the name of the bundle. */
std::string JobPlan::step_name(int64_t step) const
{
	check_step(step);
	return info.name;
}

/* Operand of a tensor that a bundle reads or writes in place. */
Operand operand_for(const at::Tensor &tensor, c10::DeviceIndex device)
{
	Operand operand;

	TORCH_CHECK(tensor.is_privateuseone() && tensor.device().index() == device,
		    "spyre: launching a kernel: an argument is on ", tensor.device(),
		    ", the kernel on spyre:", static_cast<int>(device));
	TORCH_CHECK(operand_of(tensor, &operand), "spyre: launching a kernel: a view of size ",
		    tensor.sizes(), " and stride ", tensor.strides(), " covers parts of sticks; "
		    "call .contiguous() on it");
	return operand;
}

/* Launches the bundle on inputs and outputs in its order; checks their layouts. */
void JobPlan::launch(const std::vector<at::Tensor> &tensors)
{
	c10::DeviceGuard guard(c10::Device(c10::DeviceType::PrivateUse1, device));
	std::vector<Operand> operands;
	std::vector<spyre_arg> arguments;

	TORCH_CHECK(generation_ == generation(device), "spyre: ", directory,
		    " was prepared before the device was reset; prepare it again");
	for (const at::Tensor &tensor : tensors)
		operands.push_back(operand_for(tensor, device));
	for (const Operand &operand : operands)
		arguments.push_back({operand.address, &operand.desc.layout});
	check(spyre_launch(current_native_stream(device), kernel_.get(), arguments.data(),
			   static_cast<uint32_t>(arguments.size())),
	      directory.c_str());
	for (const at::Tensor &tensor : tensors)
		block_of(tensor.storage())->forget();
}

/* Runs the bundle in @directory once. */
void launch_kernel(const std::string &directory, const std::vector<at::Tensor> &tensors)
{
	TORCH_CHECK_VALUE(!tensors.empty() && tensors[0].is_privateuseone(),
			  "launch_kernel: expected tensors of a spyre device, got ",
			  tensors.empty() ? "none" : tensors[0].device().str());
	JobPlan(directory, tensors[0].device().index()).launch(tensors);
}

/* Loads a bundle on the card of @stream, a torch.Stream or None for the current card. */
std::unique_ptr<JobPlan> prepare_kernel(const std::string &directory, const py::object &stream)
{
	int index = stream.is_none() ? -1 : py::cast<int>(stream.attr("device_index"));
	c10::DeviceIndex device = check_index(index);
	py::gil_scoped_release no_gil;

	return std::make_unique<JobPlan>(directory, device);
}

py::object of_accelerator(const char *function, int index)
{
	return py::module_::import("torch.accelerator.memory")
		.attr(function)(static_cast<int>(check_index(index)));
}

void define(py::module_ &m)
{
	py::class_<JobPlan>(m, "JobPlan")
		.def_readonly("directory", &JobPlan::directory)
		.def_property_readonly("name", [](const JobPlan &p) { return p.info.name; })
		.def_property_readonly("num_steps", [](const JobPlan &p) { return p.info.num_sdscs; })
		.def_property_readonly("job_allocation_size", [](const JobPlan &p) {
			return p.info.program_bytes + p.info.pool_bytes;
		})
		.def("get_step_type", &JobPlan::step_type, py::arg("idx"))
		.def("get_step_name", &JobPlan::step_name, py::arg("idx"));
	m.def("prepare_kernel", prepare_kernel, py::arg("spyrecode_dir"),
	      py::arg("stream") = py::none());
	m.def("launch_jobplan", [](JobPlan &plan, const std::vector<at::Tensor> &tensors) {
		plan.launch(tensors);
	}, py::arg("job_plan"), py::arg("args"), py::call_guard<py::gil_scoped_release>());
	m.def("launch_kernel", launch_kernel, py::arg("directory"), py::arg("tensors"),
	      py::call_guard<py::gil_scoped_release>());
	m.def("_spyre_get_allocator_stats",
	      [](int index) { return of_accelerator("memory_stats", index); },
	      py::arg("device") = -1);
	m.def("_spyre_reset_peak_stats",
	      [](int index) { of_accelerator("reset_peak_memory_stats", index); },
	      py::arg("device") = -1);
	m.def("_spyre_reset_accumulated_stats",
	      [](int index) { of_accelerator("reset_accumulated_memory_stats", index); },
	      py::arg("device") = -1);
}

const Binding binding(define);

} // namespace

} // namespace torch_spyre
