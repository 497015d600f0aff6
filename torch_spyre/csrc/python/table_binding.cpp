// SPDX-License-Identifier: MIT
/* The table of operations for torch.compile. */
#include "module.h"

#include <optional>

#include <pybind11/stl.h>

#include "aten/table.h"
#include "sdsc_graph.h"

namespace torch_spyre {

namespace py = pybind11;

namespace {

/* An operation whose description lives as long as the process. */
struct Operation {
	const Pointwise *op;
};

using Attributes = std::vector<std::pair<std::string, double>>;
using StepTuple = std::tuple<std::string, std::vector<uint32_t>, Attributes, uint32_t>;

/* The names of the attributes that hold numbers, None for operands. */
std::vector<std::optional<std::string>> numbers(const Operation &o)
{
	std::vector<std::optional<std::string>> names;

	for (const char *name : o.op->number)
		names.push_back(name ? std::optional<std::string>(name) : std::nullopt);
	return names;
}

/* The common dtype of @given: dtype, if it has dimensions, if it is a Python number. */
py::object promote(const Operation &o, const std::vector<std::tuple<py::object, bool, bool>> &given)
{
	std::vector<PromotionInput> inputs;

	for (const auto &[dtype, dims, number] : given)
		inputs.push_back({ py::cast<c10::ScalarType>(dtype), dims, number, number });
	return py::cast(common_dtype(*o.op, inputs));
}

std::vector<StepTuple> steps(const Operation &o, const std::vector<OperandTuple> &operands,
			     const Attributes &attributes, int format)
{
	std::vector<spyre_sdsc_operand> descs;
	std::vector<spyre_sdsc_attribute> list;
	std::vector<StepTuple> tuples;

	for (const OperandTuple &operand : operands)
		descs.push_back(from_tuple(operand));
	for (const auto &[name, value] : attributes)
		list.push_back({ name.c_str(), value });
	for (Graph::Step &s : steps_of(*o.op, descs, list, static_cast<spyre_format>(format)))
		tuples.emplace_back(s.op, s.inputs, s.attributes, s.result);
	return tuples;
}

/* The operation of @row for its first number, and the number that this operation takes. */
std::pair<Operation, double> choose(const Row &row, double number)
{
	const Pointwise &op = row.choose ? row.choose(&number) : *row.op;

	return { { &op }, number };
}

/* A number in the place of an input; None if eager mode leaves the call to the CPU. */
std::optional<double> fit_operand_of(const Operation &o, unsigned index, const py::object &dtype,
				     double value)
{
	return fit_operand(*o.op, index, py::cast<c10::ScalarType>(dtype), &value) ?
		       std::optional<double>(value) : std::nullopt;
}

/* The card's format of integers of @dtype; None if the CPU computes them. */
std::optional<int> integers_of(const Operation &o, const py::object &dtype, bool number)
{
	spyre_format format = integer_format(*o.op, py::cast<c10::ScalarType>(dtype), number);

	return format == SPYRE_FORMAT_INVALID ? std::nullopt : std::optional<int>(format);
}

std::optional<double> fit_parameter_of(const Parameter &p, const py::object &dtype, double value)
{
	return fit_parameter(p.kind, py::cast<c10::ScalarType>(dtype), &value) ?
		       std::optional<double>(value) : std::nullopt;
}

const char *kind_of(const Parameter &p)
{
	switch (p.kind) {
	case Parameter::kBound:
		return "bound";
	case Parameter::kDim:
		return "dim";
	case Parameter::kOff:
		return "off";
	case Parameter::kDtype:
		return "dtype";
	default:
		return "number";
	}
}

void define(py::module_ &m)
{
	static const char *const results[] = { "same", "float", "bool" };

	py::class_<Operation>(m, "_Operation")
		.def_property_readonly("aten", [](const Operation &o) { return o.op->aten; })
		.def_property_readonly("result", [](const Operation &o) {
			return results[static_cast<int>(o.op->result)];
		})
		.def_property_readonly("bools", [](const Operation &o) { return o.op->bools; })
		.def_property_readonly("logic", [](const Operation &o) { return o.op->logic; })
		.def_property_readonly("condition",
				       [](const Operation &o) { return o.op->condition; })
		.def_property_readonly("numbers", numbers)
		.def_property_readonly("swapped", [](const Operation &o) {
			return o.op->swapped ? py::cast(Operation{ o.op->swapped }) : py::none();
		})
		.def("promote", promote)
		.def("fit", fit_operand_of)
		.def("integers", integers_of)
		.def("steps", steps);
	py::class_<Parameter>(m, "_Parameter")
		.def_readonly("argument", &Parameter::argument)
		.def_readonly("attribute", &Parameter::attribute)
		.def_property_readonly("kind", kind_of)
		.def_readonly("absent", &Parameter::absent)
		.def("fit", fit_parameter_of);
	py::class_<Row>(m, "_Row")
		.def_readonly("schema", &Row::schema)
		.def_property_readonly("operation",
				       [](const Row &row) { return Operation{ row.op }; })
		.def_property_readonly("operands", [](const Row &row) {
			return std::vector<std::string>(row.operands.begin(), row.operands.end());
		})
		.def_readonly("parameters", &Row::parameters)
		.def_property_readonly("choice", [](const Row &row) {
			return row.choice[0] ? py::object(py::make_tuple(row.choice[0],
									 row.choice[1])) :
					       py::none();
		})
		.def("choose", choose);
	m.def("_operations", table);
	m.def("_constant_for", [](int format, double value) {
		return constant_for(static_cast<spyre_format>(format), &value) ?
			       std::optional<double>(value) : std::nullopt;
	});
}

const Binding binding(define);

} // namespace

} // namespace torch_spyre
