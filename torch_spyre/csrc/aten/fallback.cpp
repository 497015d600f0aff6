// SPDX-License-Identifier: MIT
/* The CPU fallback: every operation without a kernel, and all that draw randomness. */
#include "fallback.h"

#include <atomic>
#include <mutex>

#include <ATen/native/CPUFallback.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "copy.h"
#include "fallback_warning.h"
#include "runtime/generator.h"
#include "runtime/graph.h"
#include "retry.h"

namespace torch_spyre {

namespace {

struct Counts {
	std::mutex lock;
	std::map<std::string, int64_t> by_name;
	/* Operations with a warning; resetting the counts does not repeat it. */
	std::map<std::string, bool> warned;
};

Counts &counts()
{
	static auto *c = new Counts;

	return *c;
}

void warn_plainly(const std::string &text)
{
	TORCH_WARN(text);
}

std::atomic<void (*)(const std::string &)> warning{warn_plainly};

void count(const c10::OperatorHandle &op)
{
	std::string name = c10::toString(op.operator_name());
	bool first;

	{
		std::lock_guard<std::mutex> guard(counts().lock);

		counts().by_name[name]++;
		first = !std::exchange(counts().warned[name], true);
	}
	if (first)
		warning.load()(c10::str("spyre: ", name, " has no kernel on the card and runs on the "
					"CPU; torch.spyre.fallbacks() counts these"));
}

c10::DeviceIndex device_of(const torch::jit::Stack &stack, size_t arguments)
{
	for (size_t i = stack.size() - arguments; i < stack.size(); i++)
		if (stack[i].isTensor() && stack[i].toTensor().defined() &&
		    stack[i].toTensor().is_privateuseone())
			return stack[i].toTensor().device().index();
	return current_device();
}

bool is_generator(const c10::Argument &argument)
{
	c10::TypePtr type = argument.type();

	if (auto optional = type->cast<c10::OptionalType>())
		type = optional->getElementType();
	return type->kind() == c10::TypeKind::GeneratorType;
}

/* Replaces the cards' generators by the CPU generators inside them, which CPU kernels need. */
void use_host_generators(const c10::FunctionSchema &schema, torch::jit::Stack *stack)
{
	size_t arguments = schema.arguments().size();

	for (size_t i = 0; i < arguments; i++) {
		if (!is_generator(schema.arguments()[i]))
			continue;

		c10::IValue &value = (*stack)[stack->size() - arguments + i];
		std::optional<at::Generator> given;

		if (!value.isNone())
			given = value.toGenerator();
		value = host_generator(given, device_of(*stack, arguments));
	}
}

/* In-place draws overwrite self, so its contents are not read from the card. */
void draw(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *stack)
{
	not_in_graph(device_of(*stack, op.schema().arguments().size()),
		     c10::toString(op.operator_name()).c_str(),
		     "the host draws the numbers, which would be the same in every replay; draw them "
		     "into a tensor before each replay");

	size_t self_at = stack->size() - op.schema().arguments().size();
	at::Tensor self = (*stack)[self_at].toTensor();
	at::Tensor host = at::empty(self.sizes(), at::TensorOptions().dtype(self.scalar_type()));

	use_host_generators(op.schema(), stack);
	(*stack)[self_at] = host;
	op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
	stack->pop_back();
	copy(self, host, false);
	stack->emplace_back(std::move(self));
}

void fallback(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *stack)
{
	cpu_fallback(op, stack);
}

} // namespace

void note_fallback(const c10::OperatorHandle &op, const torch::jit::Stack &stack)
{
	not_in_graph(device_of(stack, op.schema().arguments().size()),
		     c10::toString(op.operator_name()).c_str(),
		     "it has no kernel on the card and runs on the CPU; do it before or after");
	count(op);
}

void cpu_fallback(const c10::OperatorHandle &op, torch::jit::Stack *stack)
{
	note_fallback(op, *stack);

	use_host_generators(op.schema(), stack);
	Retry retry(op, *stack);

	try {
		at::native::cpu_fallback(op, stack);
	} catch (const c10::Error &error) {
		if (!retry.run(error, stack))
			throw;
	}
}

void set_fallback_warning(void (*warn)(const std::string &text))
{
	warning.store(warn);
}

std::map<std::string, int64_t> fallback_counts()
{
	std::lock_guard<std::mutex> guard(counts().lock);

	return counts().by_name;
}

void reset_fallback_counts()
{
	std::lock_guard<std::mutex> guard(counts().lock);

	counts().by_name.clear();
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m)
{
	m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	for (const char *name : {"uniform_", "normal_", "random_", "random_.from", "random_.to",
				 "bernoulli_.float", "exponential_", "geometric_", "cauchy_",
				 "log_normal_"})
		m.impl(name, torch::CppFunction::makeFromBoxedFunction<&draw>());
}

} // namespace torch_spyre
