// SPDX-License-Identifier: MIT
/*
 * Conversions of float8_e4m3fn and float8_e5m2 by PyTorch's definitions. SEN143_FP8 is
 * float8_e4m3fn, and conversions to both saturate. SEN152_FP8 is float8_e5m2fnuz: a code of
 * float8_e5m2 is twice its number there, except for infinities, NaN and -0, whose codes are numbers
 * or NaN.
 */
#include "ops_view.h"

#include "operand.h"
#include "pointwise.h"

namespace torch_spyre {

namespace {

using at::ScalarType;
using at::Tensor;
using Value = Graph::Tensor;

constexpr double kInfinity5 = 65536;	/* float8_e5m2: what the code of infinity would be */
constexpr double kNan5 = 114688;	/* what the code of NaN would be */
constexpr double kZero5 = 0x1p-17;	/* half of the least number of float8_e5m2 */

struct Steps {
	Graph &graph;

	Value op(const char *name, Value x, double other) const
	{
		return graph.add(name, { x }, { { "other", other } });
	}
	Value op(const char *name, Value x, Value y) const { return graph.add(name, { x, y }); }
	Value op(const char *name, Value x) const { return graph.add(name, { x }); }
	/* @x where @kept is 1, NaN where it is 0. */
	Value or_nan(Value x, Value kept) const { return op("div", op("mul", x, kept), kept); }
	Value wide() const { return graph.cast(graph.argument(0), SPYRE_FORMAT_IEEE_FP32); }
};

void build_4(Graph &graph, const Call &)
{
	graph.store(graph.argument(0));
}

/* Divides infinities and NaN by 0, of which NaN are 0 then, and makes NaN -0. */
void build_from_5(Graph &graph, const Call &)
{
	Steps s{ graph };
	Value x = s.op("mul", s.wide(), 2.0), size = s.op("abs", x);
	Value real = s.op("mul", x, s.op("le", size, kInfinity5));
	Value number = s.op("div", real, s.op("lt", size, kInfinity5));
	Value nan = s.op("ne", x, x), zero = s.op("neg", s.op("sub", nan, nan));

	graph.store(graph.add("where", { nan, zero, number }));
}

void build_to_5(Graph &graph, const Call &)
{
	Steps s{ graph };
	Value x = s.wide();
	Value near = graph.add("clip", { x }, { { "min", -kInfinity5 }, { "max", kInfinity5 } });
	Value number = graph.add("where", { s.op("ne", x, x), near }, { { "input", kNan5 } });
	/* The reciprocal of -0 is below 0 as well. */
	Value below = s.op("lt", s.op("reciprocal", x), 0.0);
	Value zero = s.op("mul", below, s.op("ge", x, -kZero5));

	graph.store(s.or_nan(s.op("mul", number, 0.5), s.op("eq", zero, 0.0)));
}

const Program kFrom4 = { "aten::copy_", "fp8todl16", build_4, false };
const Program kTo4 = { "aten::copy_", "qfp8ch", build_4, false };
const Program kFrom5 = { "aten::copy_", "fp8todl16", build_from_5, false };
const Program kTo5 = { "aten::copy_", "qfp8ch", build_to_5, false };

bool run(const Program &program, const Tensor &target, const Tensor &source)
{
	Call call(program);
	Tensor held;

	if (!operand_of(source, &call.add_operand()))
		operand_of(held = dense_copy(source), &call.operand[0]);

	Operand &out = call.add_operand();

	if (!operand_of(target, &out) || !is_writable(target, out) ||
	    stick_dim(call.operand[0].desc) != stick_dim(out.desc) ||
	    !launch_or_refuse(call, target.device().index()))
		return false;
	wrote(target, false);
	return true;
}

} // namespace

bool convert_float8(const Tensor &target, const Tensor &source)
{
	ScalarType from = source.scalar_type(), to = target.scalar_type();
	bool narrows = is_float8(to), five;

	if (from == to || (narrows ? !is_float(from) : !is_float8(from) || !is_float(to)) ||
	    target.dim() > SPYRE_MAX_RANK || target.is_alias_of(source))
		return false;
	five = (narrows ? to : from) == ScalarType::Float8_e5m2;

	const Program &program = narrows ? five ? kTo5 : kTo4 : five ? kFrom5 : kFrom4;

	if (run(program, target, source))
		return true;

	Tensor dense = empty(target.sizes(), to, target.device().index());

	if (!run(program, dense, source) && !run(program, dense, dense_copy(source)))
		return false;
	torch_spyre::copy(target, dense, true);
	return true;
}

} // namespace torch_spyre
