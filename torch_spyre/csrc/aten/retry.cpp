// SPDX-License-Identifier: MIT
/* Fallbacks that the CPU refuses for 16-bit floats, once more in fp32. */
#include "retry.h"

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/CPUFallback.h>

namespace torch_spyre {

namespace {

using at::Tensor;
using torch::jit::Stack;

bool is_narrow(const Tensor &t)
{
	return t.defined() && (t.scalar_type() == at::kHalf || t.scalar_type() == at::kBFloat16 ||
			       t.scalar_type() == at::kComplexHalf);
}

/* Applies @f to each tensor in @value and keeps containers and other values. */
template <typename F> c10::IValue mapped(const c10::IValue &value, F &&f)
{
	if (value.isTensor())
		return f(value.toTensor());
	if (value.isTensorList()) {
		c10::List<Tensor> list;

		for (const Tensor &t : value.toTensorVector())
			list.push_back(f(t));
		return list;
	}
	if (value.isOptionalTensorList()) {
		c10::List<std::optional<Tensor>> list;

		for (const std::optional<Tensor> &t : value.toOptionalTensorVector())
			list.push_back(t ? std::optional<Tensor>(f(*t)) : t);
		return list;
	}
	return value;
}

bool any_narrow(const Stack &arguments)
{
	bool found = false;

	for (const c10::IValue &value : arguments)
		mapped(value, [&](const Tensor &t) {
			found = found || is_narrow(t);
			return t;
		});
	return found;
}

/* True if the CPU lacks a kernel for the dtype, as opposed to a wrong argument. */
bool lacks_dtype(const c10::Error &error)
{
	std::string text = error.what_without_backtrace();

	for (const char *said : { "\" not implemented for 'Half'",
				  "\" not implemented for 'ComplexHalf'",
				  "\" not implemented for 'BFloat16'",
				  "Low precision dtypes not supported. Got ",
				  "doesn't handle types other than float and double" })
		if (text.find(said) != std::string::npos)
			return true;
	return false;
}

/* Arguments converted to fp32, with the original tensors. */
class Widened {
public:
	Widened(const c10::FunctionSchema &schema, const Stack &given)
		: schema(schema)
	{
		for (size_t i = 0; i < given.size(); i++) {
			bool dtype = schema.arguments()[i].name() == "dtype" && !given[i].isNone();

			keeps = keeps || dtype;
			arguments.push_back(mapped(given[i], [this](const Tensor &t) {
				return widened(t);
			}));
		}
	}

	/* Copies written arguments back to the caller's tensors, with their new size. */
	void bring_back()
	{
		for (size_t i = 0; i < arguments.size(); i++) {
			const c10::AliasInfo *alias = schema.arguments()[i].alias_info();

			if (!alias || !alias->isWrite())
				continue;
			mapped(arguments[i], [this](const Tensor &t) {
				const Tensor *own = original(t);

				if (own && own->sizes() != t.sizes())
					own->resize_(t.sizes());
				if (own)
					own->copy_(t);
				return t;
			});
		}
	}

	/* Converts a result: to the caller's tensor, or to a new one in the arguments' dtype. */
	Tensor narrowed(const Tensor &t) const
	{
		const Tensor *own = original(t);

		if (own)
			return *own;
		if (!t.defined() || keeps)
			return t;
		if (t.scalar_type() == at::kFloat)
			return t.to(dtype);
		return t.scalar_type() == at::kComplexFloat && dtype == at::kHalf ?
			       t.to(at::kComplexHalf) : t;
	}

	Stack arguments;

private:
	Tensor widened(const Tensor &t)
	{
		if (!is_narrow(t)) {
			/* Numbers do not affect promotion. */
			keeps = keeps || (t.defined() && t.dim() &&
					  c10::toRealValueType(t.scalar_type()) == at::kFloat);
			return t;
		}
		dtype = c10::toRealValueType(t.scalar_type());
		pairs.emplace_back(t.to(t.is_complex() ? at::kComplexFloat : at::kFloat), t);
		return pairs.back().first;
	}

	const Tensor *original(const Tensor &t) const
	{
		for (const auto &[wide, own] : pairs)
			if (wide.is_same(t))
				return &own;
		return nullptr;
	}

	const c10::FunctionSchema &schema;
	std::vector<std::pair<Tensor, Tensor>> pairs;
	at::ScalarType dtype = at::kHalf;
	/* Results stay in fp32, because an argument is fp32 or a dtype is given. */
	bool keeps = false;
};

} // namespace

Retry::Retry(const c10::OperatorHandle &op, const Stack &stack)
	: op(op), base(stack.size() - op.schema().arguments().size()),
	  given(stack.begin() + static_cast<ptrdiff_t>(base), stack.end())
{
	for (const c10::IValue &value : given)
		if (value.isGenerator()) {
			at::Generator generator = value.toGenerator();

			generators.emplace_back(generator, generator.get_state());
		}
}

bool Retry::run(const c10::Error &error, Stack *stack)
{
	if (!any_narrow(given) || !lacks_dtype(error))
		return false;
	for (auto &[generator, state] : generators)
		generator.set_state(state);

	Widened wide(op.schema(), given);
	Stack own = wide.arguments;

	try {
		at::native::cpu_fallback(op, &own);
	} catch (const c10::Error &) {
		return false;
	}
	wide.bring_back();
	stack->resize(base);
	for (const c10::IValue &result : own)
		stack->push_back(mapped(result, [&](const Tensor &t) { return wide.narrowed(t); }));
	return true;
}

} // namespace torch_spyre
