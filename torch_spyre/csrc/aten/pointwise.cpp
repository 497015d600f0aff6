// SPDX-License-Identifier: MIT
/* Dtypes, shapes and outputs of operations that work element by element. */
#include "pointwise.h"

#include <algorithm>
#include <cmath>

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>

#include "bounds.h"
#include "number.h"
#include "operand.h"
#include "runtime/graph.h"

namespace torch_spyre {

namespace {

using at::ScalarType;

constexpr double kLargestDl16 = 8564768768.0;
constexpr unsigned kInputs = 5;

/* State of an operation: inputs that are tensors on the card, and numbers. */
struct Work {
	const Pointwise *op;
	const at::Tensor *input[kInputs];
	at::Tensor held[kInputs + 1];	/* copies that live until the launch */
	double number[kInputs];
	bool is_number[kInputs] = {};
	unsigned count = 0;
	c10::Device device{ c10::DeviceType::PrivateUse1, -1 };
	ScalarType common = ScalarType::Undefined;
	Range range;			/* of a result of int64 */
	bool bounded = false;		/* @range is known, and fits in 32 bits */
	c10::DimVector size;
	bool overlapping = false;	/* the given result overlaps an input with other strides */

	explicit Work(const Pointwise &what) : op(&what) {}
};

void take_inputs(Work &w, Inputs inputs)
{
	for (const at::Tensor *input : inputs) {
		unsigned i = w.count++;

		w.input[i] = input;
		if (input->device().type() == c10::DeviceType::PrivateUse1) {
			if (w.device.index() < 0)
				w.device = input->device();
			TORCH_CHECK(input->device() == w.device,
				    "Expected all tensors to be on the same device, but found at least two devices, ",
				    w.device, " and ", input->device(), "! (when checking arguments of ",
				    w.op->aten, ")");
			continue;
		}
		/* Complex numbers may be combined with tensors, but no attribute holds them. */
		w.is_number[i] = number_of(*input, &w.number[i]) ||
				 (input->is_complex() && input->is_cpu() && !input->dim());
	}
	for (unsigned i = 0; i < w.count; i++)
		TORCH_CHECK(w.is_number[i] || w.input[i]->device() == w.device,
			    "Expected all tensors to be on the same device, but found at least two devices, ",
			    w.device, " and ", w.input[i]->device(), "! (when checking arguments of ",
			    w.op->aten, ")");
}

void find_common(Work &w)
{
	PromotionInput inputs[kInputs];

	for (unsigned i = 0; i < w.count; i++) {
		const at::Tensor &t = *w.input[i];

		inputs[i] = { t.scalar_type(), t.dim() > 0, w.is_number[i],
			      w.is_number[i] && t.unsafeGetTensorImpl()->is_wrapped_number() };
	}
	w.common = common_dtype(*w.op, { inputs, w.count });
}

void find_size(Work &w)
{
	bool first = true;

	for (unsigned i = 0; i < w.count; i++) {
		at::IntArrayRef size = w.input[i]->sizes();

		if (w.is_number[i])
			continue;
		if (first)
			w.size.assign(size.begin(), size.end());
		else if (size != at::IntArrayRef(w.size))
			w.size = at::infer_size_dimvector(w.size, size);
		first = false;
	}
}

/* Bounds the result by what is known of the inputs. */
void find_range(Work &w, AttributeList attributes)
{
	Range input[kInputs];

	if (w.common != ScalarType::Long || !w.op->range)
		return;
	for (unsigned i = 0; i < w.count; i++) {
		if (!w.is_number[i]) {
			input[i] = range_of(*w.input[i]);
		} else {
			if (!fits_integer(w.number[i]))
				return;
			input[i].least = input[i].most = static_cast<int64_t>(w.number[i]);
		}
	}
	w.range = w.op->range(input, attributes);
	w.bounded = w.range.fits();
}

/*
 * A fault of the context, as for an index out of range, if a number of @excess is not 0: it selects
 * from a table of one row.
 */
void require_zeros(const at::Tensor &excess)
{
	at::Tensor most = excess.numel() > 1 ? at::amax(excess) : excess;

	at::index_select(at::zeros({ 1, 1 }, excess.options()), 0, most.reshape({ 1 }));
}

/*
 * In a capture the range of numbers from outside is not known, since they may change before a
 * replay, and an operation in place changes its own numbers at each replay. The card then checks
 * the results.
 */
void check_on_card(Work &w, Inputs inputs, AttributeList attributes)
{
	at::Tensor excess;

	if (w.bounded || w.common != ScalarType::Long || !w.op->excess || !attributes.empty() ||
	    !c10::multiply_integers(w.size) || !is_capturing(w.device.index()) ||
	    !pointwise(*w.op->excess, inputs, {}, excess, false))
		return;
	require_zeros(excess);
	w.range = Range();
	w.bounded = true;
}

/* The format to compute in, INVALID if the card does not support the dtype. */
spyre_format compute_format(const Work &w)
{
	switch (w.common) {
	case ScalarType::Half:
	case ScalarType::BFloat16:
	case ScalarType::Float:
		return w.op->logic ? SPYRE_FORMAT_INVALID : device_format(w.common);
	case ScalarType::Bool:
		return w.op->bools || w.op->logic ? SPYRE_FORMAT_SEN169_FP16 :
						    SPYRE_FORMAT_INVALID;
	default:
		if (w.bounded && w.op->integers == Integers::kInt32)
			return SPYRE_FORMAT_IEEE_INT32;
		return integer_format(*w.op, w.common, w.count > 1 && w.is_number[1]);
	}
}

bool can_cast_in(ScalarType dtype)
{
	switch (dtype) {
	case ScalarType::Half:
	case ScalarType::BFloat16:
	case ScalarType::Float:
	case ScalarType::Bool:
	case ScalarType::Int:
	case ScalarType::Long:
		return true;
	default:
		return false;
	}
}

bool can_store(ScalarType dtype)
{
	return dtype == ScalarType::Half || dtype == ScalarType::BFloat16 ||
	       dtype == ScalarType::Float;
}

/* Rounds numbers as the CPU does; false if the card's format lacks one. */
bool fit_numbers(Work &w)
{
	for (unsigned i = 0; i < w.count; i++)
		if (w.is_number[i] && !fit_operand(*w.op, i, w.common, &w.number[i]))
			return false;
	return true;
}

/* Makes tensors of numbers without an attribute, and of the first input in any case. */
void settle_numbers(Work &w, spyre_format format, bool attributes)
{
	if (w.is_number[0] && w.op->swapped && w.count == 2 && !attributes) {
		std::swap(w.input[0], w.input[1]);
		std::swap(w.number[0], w.number[1]);
		std::swap(w.is_number[0], w.is_number[1]);
		w.op = w.op->swapped;
	}
	for (unsigned i = 0; i < w.count; i++) {
		if (!w.is_number[i])
			continue;
		bool constant = constant_for(format, &w.number[i]);
		if (constant && w.op->number[i] &&
		    !keeps_changing(*w.op, i, format, w.size, w.number[i]))
			continue;
		if (constant) {
			w.held[i] = one_element(w.number[i], format, w.device.index());
		} else {
			w.held[i] = empty({}, w.common, w.device.index());
			torch_spyre::copy(w.held[i], w.input[i]->to(w.common), false);
		}
		w.input[i] = &w.held[i];
		w.is_number[i] = false;
	}
}

/* True if an attribute keeps changing, so that an operand is better. */
bool has_varying_attribute(const Work &w, spyre_format format,
			   at::ArrayRef<spyre_sdsc_attribute> attributes)
{
	return w.op->varying && attributes.size() == 1 && format != SPYRE_FORMAT_IEEE_INT32 &&
	       std::none_of(w.is_number, w.is_number + w.count, [](bool is) { return is; }) &&
	       keeps_changing(*w.op, kInputs, format, w.size, attributes[0].value);
}

/* An empty tensor with the strides of @like, which are a permutation. */
at::Tensor empty_permuted(const at::Tensor &like, ScalarType dtype)
{
	c10::DimVector order(like.dim()), size(like.dim()), back(like.dim());

	for (int64_t d = 0; d < like.dim(); d++)
		order[d] = d;
	std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
		return like.stride(a) > like.stride(b);
	});
	for (int64_t d = 0; d < like.dim(); d++) {
		size[d] = like.size(order[d]);
		back[order[d]] = d;
	}
	return empty(size, dtype, like.device().index()).permute(back);
}

/* Makes a result with the inputs' order of dimensions and kind of sticks. */
at::Tensor new_result(const Work &w, const Call &call, ScalarType dtype)
{
	bool sparse = !w.size.empty() && w.size.back() > 1 &&
		      w.size.size() + 1 < SPYRE_MAX_DEVICE_RANK;

	for (unsigned i = 0, n = 0; i < w.count; i++) {
		const at::Tensor &t = *w.input[i];

		if (w.is_number[i])
			continue;
		sparse = sparse && stick_dim(call.operand[n++].desc) < 0;
		if (t.sizes() == at::IntArrayRef(w.size) && !t.is_contiguous() &&
		    t.is_non_overlapping_and_dense() && !sparse)
			return empty_permuted(t, dtype);
	}
	return sparse ? empty_sparse(w.size, dtype, w.device.index()) :
			empty(w.size, dtype, w.device.index());
}

/* True if the result overlaps an input. */
bool overlaps(const Work &w, const at::Tensor &result)
{
	for (unsigned i = 0; i < w.count; i++) {
		const at::Tensor &t = *w.input[i];

		if (w.is_number[i] || t.is_same(result) || !t.is_alias_of(result))
			continue;
		at::assert_no_partial_overlap(result, t);
		if (t.storage_offset() != result.storage_offset() ||
		    t.sizes() != result.sizes() || t.strides() != result.strides())
			return true;
	}
	return false;
}

void check_given(const Work &w, const at::Tensor &result, ScalarType dtype, bool resize)
{
	TORCH_CHECK(result.device() == w.device,
		    "Expected all tensors to be on the same device, but found at least two devices, ",
		    w.device, " and ", result.device(), "! (when checking arguments of ", w.op->aten,
		    ")");
	TORCH_CHECK(c10::canCast(dtype, result.scalar_type()), "result type ", dtype,
		    " can't be cast to the desired output type ", result.scalar_type());
	if (resize)
		at::native::resize_output(result, w.size);
	TORCH_CHECK(result.sizes() == at::IntArrayRef(w.size), "output with shape ",
		    result.sizes(), " doesn't match the broadcast shape ", at::IntArrayRef(w.size));
	at::assert_no_internal_overlap(result);
}

/* Takes inputs as operands and holds the copies that this needs. */
bool take_operands(Work &w, Call &call)
{
	for (unsigned i = 0; i < w.count; i++) {
		if (w.is_number[i]) {
			call.add(w.op->number[i], w.number[i]);
			continue;
		}
		Operand &o = call.add_operand();
		if (operand_of(*w.input[i], &o) &&
		    (!w.op->complete || is_complete(*w.input[i], o)))
			continue;
		if (w.input[i]->dim() > SPYRE_MAX_RANK)
			return false;
		w.held[i] = dense_copy(*w.input[i]);
		w.input[i] = &w.held[i];
		if (!operand_of(w.held[i], &o))
			return false;
	}
	return true;
}

/*
 * Copies columns that vary along the output's sticks to dense ones, and dense ones to
 * one element per stick if the output has that form.
 */
bool align(Work &w, Call &call)
{
	const spyre_sdsc_operand &out = call.output().desc;
	int stick = stick_dim(out);

	for (unsigned i = 0, n = 0; i < w.count; i++) {
		if (w.is_number[i])
			continue;
		Operand &in = call.operand[n++];
		int lead = static_cast<int>(out.rank - in.desc.rank), own = stick_dim(in.desc);

		if (stick < 0 ? own < 0 :
		    own >= 0 || stick < lead || in.desc.size[stick - lead] == 1)
			continue;
		w.held[i] = dense_copy(*w.input[i]);
		w.input[i] = &w.held[i];
		if (!operand_of(w.held[i], &in) || (stick < 0 && stick_dim(in.desc) >= 0))
			return false;
	}
	return true;
}

/* True if all inputs are zero in the output's padding, which broadcast inputs are not. */
bool all_clean(const Call &call)
{
	const spyre_sdsc_operand &out = call.output().desc;
	int stick = stick_dim(out);

	for (unsigned i = 0; i < call.num_inputs(); i++) {
		const Operand &in = call.operand[i];
		int lead = static_cast<int>(out.rank - in.desc.rank), own = stick_dim(in.desc);

		if (!in.clean_padding || own < 0 || own + lead != stick)
			return false;
	}
	return true;
}

/* True if every tensor input has been replaced by a dense copy. */
bool all_dense(const Work &w)
{
	for (unsigned i = 0; i < w.count; i++)
		if (!w.is_number[i] && !w.held[i].defined())
			return false;
	return true;
}

/* Replaces all inputs by dense copies: the builder may have refused their layouts. */
bool make_dense(Work &w, Call &call)
{
	if (all_dense(w))
		return false;
	for (unsigned i = 0, n = 0; i < w.count; i++) {
		if (w.is_number[i])
			continue;
		Operand &in = call.operand[n++];
		if (w.held[i].defined())
			continue;
		w.held[i] = dense_copy(*w.input[i]);
		w.input[i] = &w.held[i];
		if (!operand_of(w.held[i], &in))
			return false;
	}
	return true;
}

/* Runs the call; counts a fallback if the builder refuses it even with copies. */
bool run(const Work &w, const Call &call)
{
	if (all_dense(w))
		return launch_or_refuse(call, w.device.index());
	try {
		launch(call, w.device.index());
		return true;
	} catch (const Refused &) {
		return false;
	}
}

/* Runs the call into @result, or into a tensor that is then copied to it. */
bool compute(Work &w, Call &call, at::Tensor &result, bool given)
{
	Operand &out = call.add_operand();
	at::Tensor target = result;
	bool direct = operand_of(result, &out) && is_writable(result, out) &&
		      !w.overlapping && align(w, call);

	if (!direct) {
		if (!given)
			return false;
		call.num_operands--;
		w.held[kInputs] = target = new_result(w, call, result.scalar_type());
		if (!operand_of(target, &call.add_operand()) || !align(w, call))
			return false;
	}
	if (!run(w, call))
		return false;
	bool keeps = (w.op->keeps_zero && !call.num_attributes) || w.op->scales;
	wrote(target, keeps && all_clean(call), w.bounded ? w.range : Range());
	if (!direct)
		torch_spyre::copy(result, target, true);
	return true;
}

/* Arithmetic with complex numbers runs on the CPU, with its own rules for the result's dtype. */
bool any_complex(Inputs inputs)
{
	return std::any_of(inputs.begin(), inputs.end(),
			   [](const at::Tensor *t) { return t->is_complex(); });
}

/* As at::native::update_result_type_state(), which takes tensors; none is complex here. */
void add_to(at::native::ResultTypeState &state, const PromotionInput &input)
{
	ScalarType &common = input.dims ? state.dimResult :
			     input.wrapped ? state.wrappedResult : state.zeroResult;
	ScalarType dtype = input.dtype;

	if (input.wrapped && c10::isFloatingType(dtype))
		dtype = c10::get_default_dtype_as_scalartype();
	common = common == ScalarType::Undefined ? dtype : c10::promoteTypes(common, dtype);
}

} // namespace

ScalarType common_dtype(const PointwiseRules &rules, at::ArrayRef<PromotionInput> inputs)
{
	unsigned first = rules.condition;
	ScalarType dtype = inputs[first].dtype;
	bool same = true;

	for (unsigned i = first; i < inputs.size() && !rules.leading; i++)
		same = same && !inputs[i].number && inputs[i].dtype == dtype;
	/* A Python number does not change the dtype of floating-point tensors. */
	if (!same && inputs.size() == first + 2 && inputs[first + 1].number &&
	    !inputs[first].number && c10::isFloatingType(dtype) && inputs[first].dims)
		same = true;
	if (!same) {
		at::native::ResultTypeState state = {};

		for (unsigned i = first; i < inputs.size(); i++)
			add_to(state, inputs[i]);
		dtype = at::native::result_type(state);
	}
	return rules.result == ResultType::kFloat && c10::isIntegralType(dtype, true) ?
		       c10::get_default_dtype_as_scalartype() : dtype;
}

bool fits_integer(double value)
{
	return value == std::floor(value) && value >= INT32_MIN && value <= INT32_MAX;
}

spyre_format integer_format(const PointwiseRules &rules, ScalarType dtype, bool number)
{
	bool known = dtype == ScalarType::Int ? rules.integers != Integers::kNone :
		     dtype == ScalarType::Long ? rules.integers == Integers::kAll ||
						 (rules.integers == Integers::kDivision && number) :
						 false;

	return known ? SPYRE_FORMAT_IEEE_INT32 : SPYRE_FORMAT_INVALID;
}

bool fit_operand(const PointwiseRules &rules, unsigned index, ScalarType dtype, double *value)
{
	bool divisor = rules.integers == Integers::kDivision && index == 1;

	if (c10::isIntegralType(dtype, false))
		return fits_integer(*value) &&
		       !(divisor && (*value == 0 || (dtype == ScalarType::Long && *value == -1)));
	if (rules.factor && index)
		return is_factor(dtype, *value);
	*value = number_in(dtype, *value);
	return true;
}

at::Tensor empty_sparse(at::IntArrayRef size, ScalarType dtype, c10::DeviceIndex device)
{
	c10::DimVector stride(size.size());
	int32_t order[SPYRE_MAX_RANK + 1];
	spyre_layout layout;
	int64_t step = 1;

	for (size_t d = size.size(); d-- > 0;) {
		stride[d] = step;
		step *= size[d];
		order[d] = static_cast<int32_t>(d);
	}
	order[size.size()] = -1;
	check(spyre_layout_init_strided(&layout, static_cast<uint32_t>(size.size()), size.data(),
					stride.data(), host_format(dtype), order,
					static_cast<uint32_t>(size.size()) + 1), "empty");
	return empty_with_layout(size, stride, dtype, layout, device);
}

bool number_of(const at::Tensor &t, double *value)
{
	if (t.dim() || !t.is_cpu() || t.is_complex())
		return false;
	switch (t.scalar_type()) {
	case ScalarType::Double:
		*value = *t.const_data_ptr<double>();
		return true;
	case ScalarType::Long:
		*value = static_cast<double>(*t.const_data_ptr<int64_t>());
		return true;
	default:
		*value = t.item().toDouble();
		return true;
	}
}

bool constant_for(spyre_format format, double *value)
{
	if (std::isnan(*value))
		return false;
	if (format == SPYRE_FORMAT_IEEE_INT32)
		return fits_integer(*value);
	if (std::isinf(*value))
		return true;
	if (format == SPYRE_FORMAT_SEN169_FP16) {
		/* Finite numbers stay finite, because 0 times a number must be 0. */
		*value = std::clamp(*value, -kLargestDl16, kLargestDl16);
		return true;
	}
	return std::isfinite(static_cast<float>(*value));
}

void wrote(const at::Tensor &tensor, bool clean_padding, Range range)
{
	Block *block = block_of(tensor.storage());

	if (!block)
		return;
	set_range(tensor, range, block->range);
	/* Clean lanes of a part do not make those of the whole storage clean. */
	if (clean_padding && !block->clean_padding)
		clean_padding = block->placement &&
				c10::multiply_integers(block->placement->size) == tensor.numel();
	block->clean_padding = clean_padding;
}

bool pointwise(const Pointwise &op, Inputs inputs, at::ArrayRef<spyre_sdsc_attribute> attributes,
	       at::Tensor &result, bool resize)
{
	bool given = result.defined();
	Work w(op);
	ScalarType dtype;

	take_inputs(w, inputs);
	if (any_complex(inputs) || (given && result.is_complex()))
		return false;
	find_common(w);
	find_size(w);
	find_range(w, attributes);
	dtype = op.result == ResultType::kBool ? ScalarType::Bool : w.common;
	if (given && resize && w.count == 1 && op.result == ResultType::kSame &&
	    result.scalar_type() != dtype && result.device() == w.device)
		return false;	/* most of these refuse a given result of another dtype */
	if (given) {
		check_given(w, result, dtype, resize);
		w.overlapping = overlaps(w, result);
	}
	check_on_card(w, inputs, attributes);
	spyre_format format = compute_format(w);
	if (format == SPYRE_FORMAT_INVALID || w.size.size() > SPYRE_MAX_RANK)
		return false;
	if (given && result.scalar_type() != dtype && !can_store(result.scalar_type()))
		return false;
	if (!fit_numbers(w))
		return false;
	for (unsigned i = 0; i < w.count; i++)
		if (!w.is_number[i] && !can_cast_in(w.input[i]->scalar_type()))
			return false;
	if (c10::multiply_integers(w.size) == 0) {
		if (!given)
			result = empty(w.size, dtype, w.device.index());
		return true;
	}
	settle_numbers(w, format, !attributes.empty());
	bool varying = has_varying_attribute(w, format, attributes);
	Call call(varying ? *op.varying : *w.op);
	call.format = format;
	if (!varying)
		for (const spyre_sdsc_attribute &a : attributes)
			call.add(a.name, a.value);
	if (!take_operands(w, call))
		return false;
	at::Tensor factor;
	if (varying) {
		factor = one_element(attributes[0].value, SPYRE_FORMAT_IEEE_FP32, w.device.index());
		operand_of(factor, &call.add_operand());
	}
	unsigned inputs_and_factor = call.num_operands;
	do {
		call.num_operands = inputs_and_factor;
		if (!given)
			result = new_result(w, call, dtype);
		if (compute(w, call, result, given))
			return true;
	} while (make_dense(w, call));
	if (!given)
		result = at::Tensor();
	return false;
}

} // namespace torch_spyre
