// SPDX-License-Identifier: MIT
/* SpyreTensorLayout and its enums for Python. */
#include "layout_binding.h"

#include <c10/util/hash.h>
#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include "module.h"
#include "aten/tensor.h"

namespace torch_spyre {

namespace py = pybind11;

namespace {

using Numbers = std::vector<int64_t>;

spyre_layout dense_layout(const Numbers &size, at::ScalarType dtype)
{
	return default_layout(size, dtype);
}

spyre_layout strided_layout(const Numbers &size, const Numbers &stride, at::ScalarType dtype,
			    const std::vector<int32_t> &order,
			    spyre_element_arrangement arrangement)
{
	spyre_layout layout;

	TORCH_CHECK_VALUE(size.size() == stride.size(), "host_size has ", size.size(),
			  " entries, host_strides ", stride.size());
	check(spyre_layout_init_strided(&layout, size.size(), size.data(), stride.data(),
					host_format(dtype), order.data(), order.size()),
	      "SpyreTensorLayout");
	layout.arrangement = arrangement;
	return layout;
}

spyre_layout explicit_layout(const Numbers &size, const Numbers &stride, spyre_format format,
			     spyre_element_arrangement arrangement)
{
	spyre_layout layout;

	TORCH_CHECK_VALUE(size.size() == stride.size(), "device_size has ", size.size(),
			  " entries, stride_map ", stride.size());
	check(spyre_layout_init_explicit(&layout, size.size(), size.data(), stride.data(), format,
					 arrangement),
	      "SpyreTensorLayout");
	return layout;
}

/* The same layout with another order of elements in each stick. */
spyre_layout rearranged(const spyre_layout &layout, spyre_element_arrangement arrangement)
{
	spyre_layout other = layout;

	other.arrangement = arrangement;
	return other;
}

Numbers device_size(const spyre_layout &layout)
{
	return Numbers(layout.device_size, layout.device_size + layout.device_rank);
}

Numbers stride_map(const spyre_layout &layout)
{
	return Numbers(layout.stride_map, layout.stride_map + layout.device_rank);
}

std::string text(const spyre_layout &layout)
{
	std::string s(spyre_layout_format_string(&layout, nullptr, 0) + 1, '\0');

	spyre_layout_format_string(&layout, s.data(), s.size());
	s.pop_back();
	return s;
}

size_t hash(const spyre_layout &layout)
{
	return c10::get_hash(device_size(layout), stride_map(layout),
			     static_cast<int>(layout.device_format),
			     static_cast<int>(layout.arrangement));
}

py::tuple get_state(const spyre_layout &layout)
{
	return py::make_tuple(3, device_size(layout), stride_map(layout), layout.device_format,
			      layout.arrangement);
}

/* Loads a pickle; version 1 had dim_map before stride_map, 1 and 2 had no arrangement. */
spyre_layout from_state(const py::tuple &state)
{
	int version = state.empty() ? 0 : state[0].cast<int>();
	size_t entries = version == 2 ? 4 : 5;
	size_t stride_at = version == 1 ? 3 : 2;

	if (version < 1 || version > 3 || state.size() != entries)
		throw py::value_error("SpyreTensorLayout: not a pickle of version 1, 2 or 3 (version " +
				      std::to_string(version) + ", " +
				      std::to_string(state.size()) + " entries)");
	return explicit_layout(state[1].cast<Numbers>(), state[stride_at].cast<Numbers>(),
			       state[stride_at + 1].cast<spyre_format>(),
			       version == 3 ? state[4].cast<spyre_element_arrangement>() :
					      SPYRE_EA_STANDARD);
}

void define_enums(py::module_ &m)
{
	py::enum_<spyre_format> formats(m, "DataFormats");

	formats.value("INVALID", SPYRE_FORMAT_INVALID);
	for (int i = 1; i < SPYRE_FORMAT_COUNT; i++)
		formats.value(spyre_format_name(static_cast<spyre_format>(i)),
			      static_cast<spyre_format>(i));
	formats.def("elems_per_stick", &elements_per_stick);
	py::enum_<spyre_element_arrangement>(m, "ElementArrangement")
		.value("STANDARD", SPYRE_EA_STANDARD)
		.value("DL16_TO_FP32", SPYRE_EA_DL16_TO_FP32)
		.value("QFP8CH", SPYRE_EA_QFP8CH)
		.value("EXX2", SPYRE_EA_EXX2)
		.value("FP32_TO_DL16", SPYRE_EA_FP32_TO_DL16)
		.value("QFP8WT", SPYRE_EA_QFP8WT);
}

void define_layout(py::module_ &m)
{
	py::class_<spyre_layout>(m, "SpyreTensorLayout",
				 "How a host tensor lies in sticks on the card.")
		.def(py::init(&dense_layout), py::arg("host_size"), py::arg("dtype"))
		.def(py::init(&strided_layout), py::arg("host_size"), py::arg("host_strides"),
		     py::arg("dtype"), py::arg("dim_order"),
		     py::arg("element_arrangement") = SPYRE_EA_STANDARD)
		.def(py::init(&explicit_layout), py::arg("device_size"), py::arg("stride_map"),
		     py::arg("device_dtype"), py::arg("element_arrangement") = SPYRE_EA_STANDARD)
		.def_property_readonly("device_size", &device_size)
		.def_property_readonly("stride_map", &stride_map)
		.def_readonly("device_dtype", &spyre_layout::device_format)
		.def_readonly("element_arrangement", &spyre_layout::arrangement)
		.def("with_element_arrangement", &rearranged, py::arg("element_arrangement"))
		.def("elems_per_stick",
		     [](const spyre_layout &l) { return l.device_size[l.device_rank - 1]; })
		.def("device_bytes", [](const spyre_layout &l) { return spyre_layout_bytes(&l); })
		.def("__str__", &text)
		.def("__repr__", &text)
		.def("__eq__",
		     [](const spyre_layout &a, const spyre_layout &b) {
			     return spyre_layout_equal(&a, &b);
		     },
		     py::is_operator())
		.def("__hash__", &hash)
		.def("__copy__", [](const spyre_layout &l) { return l; })
		.def("__deepcopy__", [](const spyre_layout &l, const py::dict &) { return l; })
		.def(py::pickle(&get_state, &from_state));
}

void define(py::module_ &m)
{
	define_enums(m);
	define_layout(m);
	m.def("get_device_dtype", &device_format, py::arg("dtype"));
	m.def("get_elem_in_stick",
	      [](at::ScalarType dtype) { return elements_per_stick(device_format(dtype)); },
	      py::arg("dtype"));
}

const Binding binding(define);

} // namespace

int64_t elements_per_stick(spyre_format format)
{
	int64_t stride = 1;
	spyre_layout layout;

	/* libspyre accepts only the number of elements in a stick, so sizes are tried. */
	for (int64_t n = 512; n >= 16; n /= 2)
		if (spyre_layout_init_explicit(&layout, 1, &n, &stride, format,
					       SPYRE_EA_STANDARD) == SPYRE_SUCCESS)
			return n;
	TORCH_CHECK(false, "spyre: ", spyre_format_name(format) ? spyre_format_name(format) : "INVALID",
		    " has no stick layout");
}

} // namespace torch_spyre
