// SPDX-License-Identifier: MIT
/* The rows of the table, and formulas as lists of steps. */
#include "table.h"

#include "number.h"

namespace torch_spyre {

namespace {

std::vector<Row> &rows()
{
	static std::vector<Row> list;

	return list;
}

} // namespace

void describe(Row row)
{
	rows().push_back(std::move(row));
}

const std::vector<Row> &table()
{
	return rows();
}

bool fit_parameter(Parameter::Kind kind, at::ScalarType dtype, double *value)
{
	if (c10::isIntegralType(dtype, false) && kind != Parameter::kDim)
		return fits_integer(*value);
	switch (kind) {
	case Parameter::kFinite:
		return std::isfinite(*value);
	case Parameter::kFactor:
		return is_factor(dtype, *value);
	case Parameter::kExponent:
		return std::isfinite(*value) && fit_number(dtype, value);
	case Parameter::kRounded:
		return fit_number(dtype, value);
	case Parameter::kBound:
		return fit_number(dtype, value) && constant_for(device_format(dtype), value);
	default:
		return true;
	}
}

std::vector<Graph::Step> steps_of(const Pointwise &op,
				  const std::vector<spyre_sdsc_operand> &operands,
				  at::ArrayRef<spyre_sdsc_attribute> attributes,
				  spyre_format format)
{
	std::vector<Graph::Step> steps;
	Call call(op);

	TORCH_CHECK(operands.size() <= Call::kOperands && attributes.size() <= Call::kAttributes,
		    op.aten, " takes up to ", Call::kOperands, " operands and ", Call::kAttributes,
		    " attributes, not ", operands.size(), " and ", attributes.size());
	call.format = format;
	for (const spyre_sdsc_attribute &a : attributes)
		call.add(a.name, a.value);
	for (const spyre_sdsc_operand &desc : operands) {
		Operand &o = call.add_operand();

		o = {};
		o.desc = desc;
		o.whole_sticks = true;
	}
	Graph graph(call);
	graph.record(&steps);
	op.build(graph, call);
	return steps;
}

} // namespace torch_spyre
