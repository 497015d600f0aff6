# SPDX-License-Identifier: MIT
"""Rules of copies, conversions and constants."""

import torch

from ..emit import FLOATS, INTEGERS, Number, Refused, format_of
from ..views import static
from .base import aten, fitting, prims, rounded, rule, stored


def floats(call, *things):
    """Returns the format in which arguments are computed; Refused unless it is floating point."""
    dtype = call.computed_in(*things)
    if dtype not in FLOATS:
        raise Refused(f"the card does not compute in {dtype}")
    return format_of(dtype)


@rule(aten.square.default)
def square(call):
    """Lowers x * x."""
    x = call["self"]
    return call.op("square", call.value(x, floats(call, x)))


def converted(number, dtype):
    """Returns the value of a Number in another dtype; Refused if eager mode converts on the CPU."""
    value = number.value
    if dtype == torch.bool:
        return value != 0
    if dtype in FLOATS or dtype in INTEGERS and number.dtype in (*INTEGERS, torch.bool):
        return stored(value, dtype)
    raise Refused(f"a constant {value} of {number.dtype} as {dtype}")


@rule(prims.convert_element_type.default, aten._to_copy.default)
def convert(call):
    """Lowers conversions between dtypes in which the card computes."""
    x = call.args[0]
    before, after = x.dtype, call.meta.dtype
    if call.node.meta["val"].device != call.node.args[0].meta["val"].device:
        raise Refused("a copy between devices")
    if isinstance(x, Number):
        return Number(converted(x, after), x.size, after)
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
