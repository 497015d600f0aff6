// SPDX-License-Identifier: MIT
/*
 * The table of pointwise operations, shared by eager mode and torch.compile: the operation
 * or formula of the builder that computes each schema, the promotion of its arguments, and the
 * arguments that become attributes. The files of operations add their rows where they register
 * their kernels; torch_spyre/_inductor/rules/table.py makes a rule of each row.
 */
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "pointwise.h"

namespace torch_spyre {

/* An argument that becomes an attribute. */
struct Parameter {
	enum Kind : uint8_t {
		kNumber,
		kFinite,	/* neither infinite nor NaN */
		kFactor,	/* is_factor() */
		kRounded,	/* fit_number() */
		kExponent,	/* finite, and fit_number() */
		kBound,		/* None or fit_number(), then constant_for() */
		kDim,		/* counted from the end */
		kOff,		/* no attribute: must be false */
		kDtype,		/* no attribute: must be the result's dtype */
	};

	const char *argument;	/* its name in the schema */
	const char *attribute;	/* its name in the builder; formulas use the order instead */
	Kind kind = kNumber;
	double absent = NAN;	/* the value that needs no attribute */
};

/* Converts a number in the place of a parameter to an attribute; false if the card lacks it. */
bool fit_parameter(Parameter::Kind kind, at::ScalarType dtype, double *value);

/* The description of a schema, which has several rows if an argument selects the operation. */
struct Row {
	std::string schema;			/* with its overload */
	const Pointwise *op;
	std::vector<const char *> operands;	/* arguments in the order of the kernel's inputs */
	std::vector<Parameter> parameters = {};
	/* The row applies if the argument of the first name has the second as its value. */
	const char *choice[2] = { nullptr, nullptr };
	/* Selects the operation by the first parameter, which it may change. */
	const Pointwise &(*choose)(double *number) = nullptr;
};

/* Adds a row; static initialisers call this before the first call of an operation. */
void describe(Row row);
const std::vector<Row> &table();

template <class Op> std::string schema_name()
{
	std::string name = Op::name, overload = Op::overload_name;

	name.erase(0, sizeof("aten::") - 1);
	return overload.empty() ? name : name + "." + overload;
}

template <class Op>
void describe(const Pointwise &op, std::vector<const char *> operands,
	      std::vector<Parameter> parameters = {})
{
	describe(Row{ schema_name<Op>(), &op, std::move(operands), std::move(parameters) });
}

/*
 * Returns the operations of the builder that compute @op in @format. The tensors of the steps
 * are numbered: first @operands, of which the last is the result, then intermediate results.
 */
std::vector<Graph::Step> steps_of(const Pointwise &op,
				  const std::vector<spyre_sdsc_operand> &operands,
				  at::ArrayRef<spyre_sdsc_attribute> attributes,
				  spyre_format format);

} // namespace torch_spyre
