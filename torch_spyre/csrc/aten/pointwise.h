// SPDX-License-Identifier: MIT
/*
 * Operations element by element: PyTorch's rules of dtypes, broadcasting and
 * outputs around one operation of the builder.
 */
#pragma once

#include <ATen/native/CPUFallback.h>

#include "copy.h"
#include "fallback.h"
#include "runtime/program.h"
#include "tensor.h"

namespace torch_spyre {

/* The operation @Op on the CPU. */
template <class Op, class... Args> decltype(auto) on_cpu(Args &&...args)
{
	return at::native::call_fallback_fn<&cpu_fallback, Op>::call(std::forward<Args>(args)...);
}

enum class ResultType : uint8_t {
	kSame,		/* what the inputs promote to */
	kFloat,		/* the same, the default dtype for integers */
	kBool,
};

struct Pointwise;

struct PointwiseRules {
	ResultType result = ResultType::kSame;
	/* Bools count as 0 and 1; otherwise the CPU takes them. */
	bool bools = false;
	/* The first input is a condition and takes no part in promotion. */
	bool condition = false;
	/* Zero stays zero with numbers too. */
	bool scales = false;
	/* Inputs with their dimensions in full: repeating is not the same as broadcasting. */
	bool complete = false;
	/* The first input alone says what dtype is computed and results. */
	bool leading = false;
	/* Names of the attributes that hold numbers instead of the inputs. */
	const char *number[3] = { nullptr, nullptr, nullptr };
	/* The same with the first two inputs exchanged. */
	const Pointwise *swapped = nullptr;
	/* The same with its attribute as an operand behind the inputs: one element of fp32. */
	const Pointwise *varying = nullptr;
};

struct Pointwise : Program, PointwiseRules {};

/* An input: a tensor, which may be a number (of no dimensions, on the CPU). */
using Inputs = std::initializer_list<const at::Tensor *>;

/*
 * Computes into @result: a new tensor if it is undefined, else a tensor that
 * the caller gave, resized if @resize. False if the card does not compute it;
 * nothing has been touched then.
 */
bool pointwise(const Pointwise &op, Inputs inputs, at::ArrayRef<spyre_sdsc_attribute> attributes,
	       at::Tensor &result, bool resize);

/* A value that the builder can hold as a constant of @format: not NaN; finite ones stay finite. */
bool constant_for(spyre_format format, double *value);
/* The value of a tensor of no dimensions on the CPU. */
bool number_of(const at::Tensor &tensor, double *value);

/* A tensor with an element for each stick, as reductions along sticks leave them. */
at::Tensor empty_sparse(at::IntArrayRef size, at::ScalarType dtype, c10::DeviceIndex device);

/* After a launch wrote @tensor: what is known of its padding. */
void wrote(const at::Tensor &tensor, bool clean_padding);

} // namespace torch_spyre
