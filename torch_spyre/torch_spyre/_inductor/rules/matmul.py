# SPDX-License-Identifier: MIT
"""Rules of products and windows."""

import math

import torch

from .. import attention as _attention  # noqa: F401 (defines spyre::attention)
from ..emit import Permuted, Refused
from .base import aten, number_of, rule
from .pointwise import floats
from .reduce import only_first


def matmul(call, place, form):
    """Adds the product of the arguments from @place on, whose inner dims add up."""
    a, b = (call.value(thing, form) for thing in call.args[place : place + 2])
    call.check_whole(a, place, [-1])
    rank = call.node.args[place + 1].meta["val"].dim()
    call.check_whole(b, place + 1, [-min(rank, 2)])
    return call.op("matmul", a, b)


@rule(aten.mm.default, aten.bmm.default, aten.matmul.default)
def product(call):
    """Lowers products of matrices and batches of matrices."""
    return matmul(call, 0, floats(call, *call.args[:2]))


def check_unscaled(call):
    """Refuses alpha and beta other than 1."""
    if call.get("alpha", 1) != 1 or call.get("beta", 1) != 1:
        raise Refused("alpha or beta other than 1")


@rule(aten.addmm.default, aten.baddbmm.default)
def addmm(call):
    """Lowers bias + a @ b; Refused with alpha or beta."""
    bias, a, b = call.args[:3]
    check_unscaled(call)
    form = floats(call, bias, a, b)
    return call.op("add", matmul(call, 1, form), call.value(bias, form))


@rule(aten.convolution.default)
def convolution(call):
    """Lowers convolutions of two dims that are dense or depthwise, not transposed."""
    x, weight, bias = call["input"], call["weight"], call["bias"]
    groups = call["groups"]
    if call["transposed"] or len(call["stride"]) != 2:
        raise Refused("a convolution that is transposed or not of two dims")
    depthwise = groups > 1 and weight.size[1] == 1 and weight.size[0] == groups
    if groups != 1 and not depthwise:
        raise Refused(f"{groups} groups")
    form = floats(call, x, weight)
    given = [call.value(t, form) for t in (x, weight, bias) if t is not None]
    call.check_whole(given[0], 0, [-3])
    return call.op(
        "depthwise_conv2d" if depthwise else "conv2d",
        *given,
        stride=call["stride"],
        padding=call["padding"],
        dilation=call["dilation"],
    )


@rule(aten.avg_pool2d.default)
def avg_pool2d(call):
    """Lowers average pooling; the stride defaults to the kernel size."""
    x = call["self"]
    numbers = {
        "kernel_size": call["kernel_size"],
        "stride": call["stride"] or call["kernel_size"],
        "padding": call["padding"],
        "count_include_pad": int(call["count_include_pad"]),
        "ceil_mode": int(call["ceil_mode"]),
    }
    if call.get("divisor_override") is not None:
        numbers["divisor_override"] = number_of(call["divisor_override"])
    return call.op("avg_pool2d", call.value(x, floats(call, x)), **numbers)


@rule(aten.max_pool2d_with_indices.default)
def max_pool2d(call):
    """Lowers max pooling if the indices of the maxima are not used."""
    x = call["self"]
    only_first(call)
    return (
        call.op(
            "max_pool2d",
            call.value(x, floats(call, x)),
            kernel_size=call["kernel_size"],
            stride=call["stride"] or call["kernel_size"],
            padding=call["padding"],
            dilation=call["dilation"],
            ceil_mode=int(call["ceil_mode"]),
        ),
    )


#: Score of elements that a boolean mask excludes, the same as in eager attention.
MASKED = -4294967296.0


@rule(torch.ops.spyre.attention.default)
def attention(call):
    """Lowers attention, in which heads may share keys."""
    if call["query"].size[-1] == 1:
        raise Refused("attention with one element per key")
    return attend(call)


@rule(torch.ops.spyre.attention_side_by_side.default)
def attention_side_by_side(call):
    """Lowers attention of heads that lie side by side in the last dim of the inputs."""
    value = attend(call, heads=call["heads"])
    return Permuted(value, (0, 2, 1, 3), value.dtype)


def attend(call, **numbers):
    """Adds attention with its mask, for heads with or without sticks of their own."""
    q, k, v, mask = (call[name] for name in ("query", "key", "value", "mask"))
    form = floats(call, q, k, v)
    numbers |= {"scale": call["scale"], "causal": int(call["causal"])}
    given = [call.value(t, form) for t in (q, k, v)]
    if mask is None:
        return call.op("attention", *given, **numbers)
    truth = mask.dtype == torch.bool
    mask = call.value(mask, form)
    given.append(call.op("where", mask, input=0, other=MASKED) if truth else mask)
    result = call.op("attention", *given, **numbers)
    # Rows whose mask excludes all keys, by False or by -inf, have zeros as results.
    some = call.op("amax", mask, dim=-1, keepdim=1)
    some = some if truth else call.op("ne", some, other=-math.inf)
    return call.op("where", some, result, other=0)
