// SPDX-License-Identifier: MIT
/*
 * Pointwise operations: PyTorch's rules of dtypes, broadcasting and outputs around
 * one operation of the builder.
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
	kSame,		/* the dtype to which inputs promote */
	kFloat,		/* the same, but the default dtype for integers */
	kBool,
};

/* Integers that the card computes exactly; those of int64 tensors have 32 bits there, too. */
enum class Integers : uint8_t {
	kNone,		/* the CPU computes integers */
	kInt32,		/* int32; and int64 if the range of the result fits in 32 bits */
	kAll,		/* and int64: no result needs more bits than the inputs */
	kDivision,	/* and int64 by a number other than -1; the CPU refuses 0 */
};

struct Pointwise;

using AttributeList = at::ArrayRef<spyre_sdsc_attribute>;

struct PointwiseRules {
	ResultType result = ResultType::kSame;
	/* Bools are computed as 0 and 1; otherwise the CPU computes them. */
	bool bools = false;
	/* The first input is a condition and takes no part in promotion. */
	bool condition = false;
	/* A zero result of a zero input does not depend on numbers. */
	bool scales = false;
	/* Inputs need all dimensions in full, because the builder does not broadcast them. */
	bool complete = false;
	/* The first input alone determines the dtype of the computation and result. */
	bool leading = false;
	/* The CPU takes a number after the tensor in fp32; it rounds all others to the dtype. */
	bool factor = false;
	/* Inputs are bools; the CPU computes other dtypes, bit by bit. */
	bool logic = false;
	Integers integers = Integers::kNone;
	/* The range of the result by those of the inputs and attributes; null: not known. */
	Range (*range)(const Range *input, AttributeList attributes) = nullptr;
	/* Of int64, 1 where the result exceeds 32 bits, else 0: what a capture checks on the card
	 * if the range is not known; null: a capture refuses the operation. */
	const Pointwise *excess = nullptr;
	/* Names of the attributes that hold numbers instead of the inputs. */
	const char *number[3] = { nullptr, nullptr, nullptr };
	/* The operation with the first two inputs exchanged. */
	const Pointwise *swapped = nullptr;
	/* The operation with its attribute as the last operand, one element of fp32. */
	const Pointwise *varying = nullptr;
};

struct Pointwise : Program, PointwiseRules {};

/* The properties of an input that determine the common dtype. */
struct PromotionInput {
	at::ScalarType dtype;
	bool dims;	/* has dimensions */
	bool number;	/* its value is known on the host */
	bool wrapped;	/* a Python number */
};

/* The dtype to compute in: PyTorch's promotion, none of whose inputs is complex, by @rules. */
at::ScalarType common_dtype(const PointwiseRules &rules, at::ArrayRef<PromotionInput> inputs);

/*
 * The card's format for inputs of an integer dtype; INVALID if the CPU computes them. @number: the
 * second input is a number.
 */
spyre_format integer_format(const PointwiseRules &rules, at::ScalarType dtype, bool number);

/* True if @value is an integer of 32 bits, which the card holds. */
bool fits_integer(double value);

/* Rounds a number in the place of input @index as the CPU does before it computes in @dtype;
 * false if the card's format lacks it. */
bool fit_operand(const PointwiseRules &rules, unsigned index, at::ScalarType dtype, double *value);

/* Inputs are tensors; a number is a tensor without dimensions on the CPU. */
using Inputs = std::initializer_list<const at::Tensor *>;

/*
 * Computes into @result: a new tensor if it is undefined, else the caller's tensor,
 * which is resized if @resize. Returns false, with nothing changed, if the card does not
 * support the call.
 */
bool pointwise(const Pointwise &op, Inputs inputs, at::ArrayRef<spyre_sdsc_attribute> attributes,
	       at::Tensor &result, bool resize);

/* Makes *@value a constant of @format, finite if it was finite; false for NaN. */
bool constant_for(spyre_format format, double *value);
/* The value of a tensor of no dimensions on the CPU. */
bool number_of(const at::Tensor &tensor, double *value);

/* A tensor with one element per stick, as reductions along sticks make them. */
at::Tensor empty_sparse(at::IntArrayRef size, at::ScalarType dtype, c10::DeviceIndex device);

/*
 * Records the state of @tensor's padding, and the range of its numbers, after a launch wrote it.
 */
void wrote(const at::Tensor &tensor, bool clean_padding, Range range = {});

} // namespace torch_spyre
