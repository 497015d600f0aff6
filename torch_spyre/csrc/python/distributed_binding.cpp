// SPDX-License-Identifier: MIT
/* The back end for Python: its class, options and constructor. */
#include "module.h"

#include <pybind11/chrono.h>

#include "distributed/process_group.h"

namespace torch_spyre {

namespace py = pybind11;

namespace {

using Options = ProcessGroupSpyre::Options;
using OptionsPtr = c10::intrusive_ptr<Options>;

c10::intrusive_ptr<ProcessGroupSpyre> create(const c10d::DistributedBackendOptions &of,
					     const OptionsPtr &given)
{
	auto options = given ? c10::make_intrusive<Options>(*given) :
			       c10::make_intrusive<Options>();

	options->timeout = std::chrono::duration_cast<std::chrono::milliseconds>(of.timeout);
	options->group_name = of.group_id;
	options->global_ranks_in_group.assign(of.global_ranks_in_group.begin(),
					      of.global_ranks_in_group.end());
	return c10::make_intrusive<ProcessGroupSpyre>(of.store, of.group_rank, of.group_size,
						      options);
}

/* Defines the classes, whose bases exist only once torch.distributed is loaded. */
py::object define_process_group(const py::module_ &m)
{
	py::class_<Options, c10d::Backend::Options, OptionsPtr> options(m,
									"ProcessGroupSpyreOptions");
	py::class_<ProcessGroupSpyre, c10d::Backend, c10::intrusive_ptr<ProcessGroupSpyre>> group(
		m, "ProcessGroupSpyre");
	auto copy = [](const Options &self, const py::dict &) {
		return c10::make_intrusive<Options>(self);
	};

	options.def(py::init([](std::chrono::milliseconds timeout, bool high) {
			    return c10::make_intrusive<Options>(timeout, high);
		    }), py::arg("timeout") = kBackendDefaultTimeout,
		    py::arg("is_high_priority_stream") = false)
		.def_readwrite("is_high_priority_stream", &Options::is_high_priority_stream)
		.def("__copy__", [](const Options &self) {
			return c10::make_intrusive<Options>(self);
		})
		.def("__deepcopy__", copy, py::arg("memo"));
	group.def(py::init(&create), py::arg("backend_options"),
		  py::arg("options") = py::none())
		.def_property_readonly("options", &ProcessGroupSpyre::options)
		/* Groups do not share communicators, so ranks outside of one have nothing to do. */
		.def("perform_nocolor_split", [](ProcessGroupSpyre &, const py::object &) {});
	group.attr("Options") = options;
	return std::move(group);
}

void define(py::module_ &m)
{
	m.def("_define_process_group", [m] { return define_process_group(m); });
}

const Binding binding(define);

} // namespace

} // namespace torch_spyre
