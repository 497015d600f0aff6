// SPDX-License-Identifier: MIT
/* a + number b c and its like, of which optimisers are made: fp32 inside, rounded once. */
#include "formula.h"
#include "kernels.h"

#include <ATen/ops/addcdiv_ops.h>
#include <ATen/ops/addcmul_ops.h>
#include <ATen/ops/lerp_ops.h>

namespace torch_spyre {

namespace {

using T = Formula::T;

void build_addcmul(Graph &graph, const Call &call)
{
	Formula f(graph, call);

	f.give("add", { f.in(0), f.op("mul", f.scaled(f.in(1), 3), f.in(2)) });
}

void build_addcdiv(Graph &graph, const Call &call)
{
	Formula f(graph, call);

	f.give("add", { f.in(0), f.op("div", f.scaled(f.in(1), 3), f.in(2)) });
}

/* a + w (b - a), for weights below a half. */
void build_lerp_near(Graph &graph, const Call &call)
{
	Formula f(graph, call);
	T a = f.in(0);

	f.give("add", { a, f.scaled(f.op("sub", f.in(1), a), 2) });
}

/* b - (1 - w) (b - a): the number is 1 - w. */
void build_lerp_far(Graph &graph, const Call &call)
{
	Formula f(graph, call);
	T b = f.in(1);

	f.give("sub", { b, f.scaled(f.op("sub", b, f.in(0)), 2) });
}

/* Selects either by the weight of each element. */
void build_lerp(Graph &graph, const Call &call)
{
	Formula f(graph, call);
	T a = f.in(0), b = f.in(1), w = f.in(2), way = f.op("sub", b, a);
	T near = f.op("add", a, f.op("mul", way, w));
	T far = f.op("sub", b, f.op("mul", way, f.with("revsub", w, 1)));

	f.give("where", { f.with("lt", f.op("abs", w), 0.5), near, far });
}

#define VARYING(ident, name, build) \
	const Pointwise ident##By = { { "aten::" name, name, build, false }, {} }; \
	const Pointwise ident = { { "aten::" name, name, build, false }, { .varying = &ident##By } }

VARYING(kAddcmul, "addcmul", build_addcmul);
VARYING(kAddcdiv, "addcdiv", build_addcdiv);
VARYING(kLerpNear, "lerp", build_lerp_near);
VARYING(kLerpFar, "lerp", build_lerp_far);
const Pointwise kLerp = { { "aten::lerp", "lerp", build_lerp, false }, {} };

template <const Pointwise &op>
bool run(const Tensor &a, const Tensor &b, const Tensor &c, const at::Scalar &value, Tensor &result,
	 bool resize)
{
	spyre_sdsc_attribute attribute = { "value", 1 };

	if (value.isComplex() || !std::isfinite(value.to<float>()))
		return false;
	attribute.value = value.toDouble();
	return pointwise(op, { &a, &b, &c }, { &attribute, size_t(attribute.value != 1) }, result,
			 resize);
}

/* The formula for a weight, and the number in it. */
const Pointwise &lerp_of(double *weight)
{
	float w = static_cast<float>(*weight);
	bool near = std::fabs(w) < 0.5f;

	*weight = near ? w : 1.0f - w;
	return near ? kLerpNear : kLerpFar;
}

bool lerp_scalar(const Tensor &a, const Tensor &b, const at::Scalar &weight, Tensor &result,
		 bool resize)
{
	spyre_sdsc_attribute attribute = { "weight", 0 };

	if (weight.isComplex() || !std::isfinite(weight.to<float>()))
		return false;
	attribute.value = weight.toDouble();
	const Pointwise &op = lerp_of(&attribute.value);
	return pointwise(op, { &a, &b }, attribute, result, resize);
}

bool lerp_tensor(const Tensor &a, const Tensor &b, const Tensor &weight, Tensor &result,
		 bool resize)
{
	return pointwise(kLerp, { &a, &b, &weight }, {}, result, resize);
}

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
	std::vector<const char *> three = { "self", "tensor1", "tensor2" };
	Parameter value = { "value", "value", Parameter::kFinite, 1 };
	Parameter weight = { "weight", "weight", Parameter::kFinite };

	describe<at::_ops::addcmul>(kAddcmul, three, { value });
	describe<at::_ops::addcdiv>(kAddcdiv, three, { value });
	describe<at::_ops::lerp_Tensor>(kLerp, { "self", "end", "weight" });
	describe(Row{ "lerp.Scalar", &kLerpNear, { "self", "end" }, { weight }, {},
		      lerp_of });
	add_forms<run<kAddcmul>, at::_ops::addcmul, at::_ops::addcmul_, at::_ops::addcmul_out>(m);
	add_forms<run<kAddcdiv>, at::_ops::addcdiv, at::_ops::addcdiv_, at::_ops::addcdiv_out>(m);
	add_forms<lerp_scalar, at::_ops::lerp_Scalar, at::_ops::lerp__Scalar,
		  at::_ops::lerp_Scalar_out>(m);
	add_forms<lerp_tensor, at::_ops::lerp_Tensor, at::_ops::lerp__Tensor,
		  at::_ops::lerp_Tensor_out>(m);
}

} // namespace torch_spyre
