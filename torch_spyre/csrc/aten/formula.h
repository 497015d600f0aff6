// SPDX-License-Identifier: MIT
/* Programs written as formulas: in fp32 throughout, rounded once into the output. */
#pragma once

#include "pointwise.h"

namespace torch_spyre {

class Formula {
public:
	using T = Graph::Tensor;

	Formula(Graph &graph, const Call &call, spyre_format format = SPYRE_FORMAT_IEEE_FP32)
		: graph_(graph), call_(call), format_(format) {}

	T in(unsigned index) { return graph_.cast(graph_.argument(index), format_); }
	T op(const char *name, T a) { return graph_.add(name, { a }); }
	T op(const char *name, T a, T b) { return graph_.add(name, { a, b }); }
	T op(const char *name, T a, T b, T c) { return graph_.add(name, { a, b, c }); }
	T op(const char *name, T a, Graph::Attributes attributes)
	{
		return graph_.add(name, { a }, attributes);
	}
	/* An operation with a number as the second operand. */
	T with(const char *name, T a, double number)
	{
		return graph_.add(name, { a }, { { "other", number } });
	}
	T choose(T condition, double yes, T no)
	{
		return graph_.add("where", { condition, no }, { { "input", yes } });
	}
	/* A reduction that keeps the dimension, with a size of 1. */
	T along(const char *name, T a, double dim = -1)
	{
		return graph_.add(name, { a }, { { "dim", dim }, { "keepdim", 1 } });
	}
	double number(unsigned index = 0) const { return call_.attribute[index].value; }
	/*
	 * @a times the number of the call: its first attribute or, if that varies, the
	 * operand at @index. Returns @a if the call has no number.
	 */
	T scaled(T a, unsigned index)
	{
		return call_.num_attributes ? with("mul", a, number()) :
		       call_.num_inputs() > index ? op("mul", a, in(index)) : a;
	}
	/* Adds the last operation, whose result is that of the call. */
	void give(const char *name, std::initializer_list<T> inputs,
		  Graph::Attributes attributes = {})
	{
		if (graph_.format(graph_.output()) == format_)
			graph_.add(name, inputs, attributes, graph_.output());
		else
			graph_.store(graph_.add(name, inputs, attributes));
	}
	void give_with(const char *name, T a, double number)
	{
		give(name, { a }, { { "other", number } });
	}

private:
	Graph &graph_;
	const Call &call_;
	spyre_format format_;
};

} // namespace torch_spyre
