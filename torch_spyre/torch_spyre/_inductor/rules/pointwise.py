# SPDX-License-Identifier: MIT
"""Rules of pointwise operations."""

import torch

from ..emit import FLOATS, Number, Refused, Value, format_of, stripped
from ..views import static
from .base import (
    aten,
    factor,
    fitting,
    number_of,
    prims,
    rounded,
    rule,
    size_of,
    storable,
)

UNARY = {
    aten.relu.default: "relu",
    aten.neg.default: "neg",
    aten.abs.default: "abs",
    aten.exp.default: "exp",
    aten.log.default: "log",
    aten.sqrt.default: "sqrt",
    aten.rsqrt.default: "rsqrt",
    aten.reciprocal.default: "reciprocal",
    aten.tanh.default: "tanh",
    aten.sigmoid.default: "sigmoid",
    aten.silu.default: "silu",
    aten.mish.default: "mish",
    aten.floor.default: "floor",
    aten.ceil.default: "ceil",
    aten.sign.default: "sign",
    aten.square.default: "square",
}

#: Operations whose second operand the CPU takes in fp32 if it is a number.
FACTORS = ("mul", "div")

COMPARISONS = {"eq": "eq", "ne": "ne", "gt": "gt", "lt": "lt", "ge": "ge", "le": "le"}
MIRRORED = {"eq": "eq", "ne": "ne", "gt": "lt", "lt": "gt", "ge": "le", "le": "ge"}


def floats(call, *things):
    """Returns the format in which arguments are computed; Refused unless it is floating point."""
    dtype = call.computed_in(*things)
    if dtype not in FLOATS:
        raise Refused(f"the card does not compute in {dtype}")
    return format_of(dtype)


@rule(*UNARY)
def unary(call):
    x = call.args[0]
    return call.op(UNARY[call.node.target], call.value(x, floats(call, x)))


@rule(aten.gelu.default)
def gelu(call):
    x = call["self"]
    tanh = call.get("approximate") == "tanh"
    return call.op("gelu_tanh" if tanh else "gelu", call.value(x, floats(call, x)))


@rule(aten.clamp.default, aten.hardtanh.default, aten.clamp_min.default, aten.clamp_max.default)
def clamp(call):
    x = call["self"]
    least, most = call.get("min", call.get("min_val")), call.get("max", call.get("max_val"))
    form = floats(call, x, *(b for b in (least, most) if b is not None))
    bounds = {}
    for name, bound in (("min", least), ("max", most)):
        if bound is not None:
            bounds[name] = storable(fitting(bound, call.meta.dtype), form)
    return call.op("clip", call.value(x, form), **bounds)


@rule(aten.softplus.default)
def softplus(call):
    x = call["self"]
    beta, threshold = factor(call["beta"], x.dtype), call["threshold"]
    return call.op("softplus", call.value(x, floats(call, x)), beta=beta, threshold=threshold)


@rule(aten.leaky_relu.default)
def leaky_relu(call):
    x = call["self"]
    slope = factor(call["negative_slope"], x.dtype)
    return call.op("leaky_relu", call.value(x, floats(call, x)), negative_slope=slope)


@rule(aten.pow.Tensor_Scalar)
def power(call):
    x = call["self"]
    exponent = fitting(call["exponent"], x.dtype)
    return call.op("pow", call.value(x, floats(call, x)), exponent=exponent)


def binary(call, name, a, b, form, mirrored=None, **attributes):
    """Adds an operation of two inputs; a number becomes an attribute if the builder allows it."""
    dtype = call.computed_in(a, b)
    a, b = rounded(a, dtype), (factor if name in FACTORS else rounded)(b, dtype)
    for x, y, op in ((a, b, name), (b, a, mirrored)):
        number = number_of(y)
        if op and isinstance(x, Value) and number is not None and \
                stripped(size_of(y)) == () :
            return call.op(op, call.value(x, form), other=storable(number, form), **attributes)
    return call.op(name, call.value(a, form), call.value(b, form), **attributes)


def arithmetic(name, mirrored):
    """Returns the rule of an operation of two inputs; @mirrored takes the number first."""
    def take(call):
        a, b = call.args[:2]
        alpha = call.get("alpha", 1)
        form = floats(call, a, b)
        if alpha != 1:
            alpha = fitting(alpha, call.computed_in(a, b))
            return binary(call, name, a, b, form, alpha=alpha)
        return binary(call, name, a, b, form, mirrored)

    return take


for _name, _mirrored in (("add", "add"), ("sub", "revsub"), ("mul", "mul"), ("div", None)):
    _packet = getattr(aten, _name)
    rule(_packet.Tensor, _packet.Scalar)(arithmetic(_name, _mirrored))
rule(aten.maximum.default)(arithmetic("maximum", "maximum"))
rule(aten.minimum.default)(arithmetic("minimum", "minimum"))


@rule(aten.rsub.Tensor, aten.rsub.Scalar)
def reverse_sub(call):
    a, b = call.args[:2]
    if call.get("alpha", 1) != 1:
        raise Refused("alpha of a reversed subtraction")
    return binary(call, "sub", b, a, floats(call, a, b), "revsub")


def comparison(name):
    """Returns the rule of a comparison."""
    def take(call):
        a, b = call.args[:2]
        form = format_of(call.computed_in(a, b))
        return binary(call, name, a, b, form, MIRRORED[name])

    return take


for _name in COMPARISONS:
    _packet = getattr(aten, _name)
    rule(_packet.Tensor, _packet.Scalar)(comparison(_name))


def bools(call, *things):
    """Returns the format of bools: their common format in the program, or that of torch.bool."""
    if any(t.dtype != torch.bool for t in things):
        raise Refused("bits of integers")
    formats = {t.format for t in things if isinstance(t, Value)}
    return formats.pop() if len(formats) == 1 else format_of(torch.bool)


LOGIC = {
    aten.logical_and.default: "logical_and",
    aten.logical_or.default: "logical_or",
    aten.logical_xor.default: "logical_xor",
    aten.bitwise_and.Tensor: "logical_and",
    aten.bitwise_or.Tensor: "logical_or",
    aten.bitwise_xor.Tensor: "logical_xor",
}


@rule(*LOGIC)
def logic(call):
    a, b = call.args[:2]
    if call.node.target.name().startswith("aten::bitwise") or all(
        t.dtype == torch.bool for t in (a, b)
    ):
        form = bools(call, a, b)
    else:
        form = format_of(call.computed_in(a, b))
    return call.op(LOGIC[call.node.target], call.value(a, form), call.value(b, form))


@rule(aten.logical_not.default, aten.bitwise_not.default)
def logical_not(call):
    x = call["self"]
    if call.node.target is aten.bitwise_not.default:
        bools(call, x)
    form = x.format if x.dtype == torch.bool else floats(call, x)
    return call.op("logical_not", call.value(x, form))


@rule(aten.where.self)
def where(call):
    condition, a, b = call.args
    if condition.dtype != torch.bool:
        raise Refused("a condition that is not a bool")
    dtype = call.computed_in(a, b)
    form = format_of(dtype)
    a, b = rounded(a, dtype), rounded(b, dtype)
    numbers = {}
    tensors = [call.value(condition, form)]
    for name, branch in (("input", a), ("other", b)):
        number = number_of(branch)
        if number is not None and not stripped(size_of(branch)):
            numbers[name] = storable(number, form)
        else:
            tensors.append(call.value(branch, form))
    return call.op("where", *tensors, **numbers)


@rule(prims.convert_element_type.default, aten._to_copy.default)
def convert(call):
    x = call.args[0]
    before, after = x.dtype, call.meta.dtype
    if call.node.meta["val"].device != call.node.args[0].meta["val"].device:
        raise Refused("a copy between devices")
    if isinstance(x, Number):
        return Number(x.value, x.size, after)
    if before == after:
        return x
    if after == torch.bool:
        if before not in FLOATS:
            raise Refused(f"the card does not compute in {before}")
        return call.op("ne", x, other=0)
    if before not in FLOATS + (torch.bool,) or after not in FLOATS:
        raise Refused(f"the card does not convert {before} to {after}; a copy does")
    return call.program.cast(x, format_of(after))


@rule(
    aten.clone.default,
    aten.alias.default,
    aten.lift_fresh_copy.default,
    aten.detach.default,
    aten.dropout.default,
)
def same(call):
    """Returns the input: these operations do not change values."""
    x = call.args[0]
    if call.node.target is aten.dropout.default and call["train"]:
        raise Refused("the card has no random numbers")
    return x


FILLS = (
    aten.full.default,
    aten.full_like.default,
    aten.scalar_tensor.default,
    aten.zeros.default,
    aten.ones.default,
    aten.zeros_like.default,
    aten.ones_like.default,
)


@rule(*FILLS)
def fill(call):
    """Returns a Number, which is stored only if an operation needs it as a tensor."""
    meta = call.meta
    name = call.node.target.name()
    if "zeros" in name or "ones" in name:
        value = int("ones" in name)
    else:
        value = call.get("fill_value", call.get("s"))
    if not isinstance(value, (bool, int, float)):
        raise Refused("a value that is unknown when compiling")
    checked = call.node.target is not aten.scalar_tensor.default
    value = (fitting if checked else rounded)(value, meta.dtype)
    return Number(value, static(meta.shape), meta.dtype)
