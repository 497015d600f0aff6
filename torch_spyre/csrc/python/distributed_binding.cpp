// SPDX-License-Identifier: MIT
/* The back end for Python: its class, options and constructor. */
#include "module.h"

#include <pybind11/chrono.h>
#include <pybind11/stl.h>

#include "distributed/flight_recorder.h"
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

py::dict flight_dict(const FlightEntry &entry)
{
	py::dict d;

	d["record_id"] = entry.record_id;
	d["pg_id"] = 0;
	d["process_group"] = py::make_tuple(entry.group, entry.description);
	d["collective_seq_id"] = entry.collective_sequence;
	d["p2p_seq_id"] = entry.p2p_sequence;
	d["op_id"] = entry.record_id;
	d["profiling_name"] = entry.name;
	d["input_sizes"] = entry.input_sizes;
	d["input_dtypes"] = entry.input_dtypes;
	d["output_sizes"] = entry.output_sizes;
	d["output_dtypes"] = entry.output_dtypes;
	d["time_created_ns"] = entry.created_ns;
	d["timeout_ms"] = entry.timeout_ms;
	d["state"] = entry.state;
	d["is_p2p"] = entry.is_p2p;
	d["retired"] = entry.state == "completed";
	d["frames"] = py::list();
	return d;
}

py::list flight_dicts()
{
	py::list list;

	for (const FlightEntry &entry : flights())
		list.append(flight_dict(entry));
	return list;
}

void define(py::module_ &m)
{
	m.def("_flights", flight_dicts);
	m.def("_define_process_group", [m] { return define_process_group(m); });
}

const Binding binding(define);

} // namespace

} // namespace torch_spyre
