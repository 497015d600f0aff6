# SPDX-License-Identifier: MIT
"""Rules of reductions, searches and normalisations."""

import torch

from .. import norm as _norm  # noqa: F401 (defines spyre::whole_rms_norm)
from ..emit import Refused, format_of
from .base import aten, dims_of, last, rule
from .pointwise import floats

REDUCTIONS = {
    aten.sum.dim_IntList: "sum",
    aten.sum.default: "sum",
    aten.mean.dim: "mean",
    aten.mean.default: "mean",
    aten.amax.default: "amax",
    aten.amin.default: "amin",
    aten.max.default: "amax",
    aten.min.default: "amin",
}


#: Operations whose results have fewer dims than their inputs.
REDUCED = {
    *REDUCTIONS,
    aten.var.correction,
    aten.std.correction,
    aten.linalg_vector_norm.default,
    aten.argmax.default,
    aten.argmin.default,
}


def rank_of(call, name="self"):
    """Returns the rank of the first input."""
    return call.node.args[0].meta["val"].dim()


def keeps(call):
    """Returns keepdim as 0 or 1."""
    return int(bool(call.get("keepdim", False)))


def reduced(call, x):
    """Returns the dims over which a call reduces @x, its first argument."""
    dims = dims_of(call.get("dim"), rank_of(call))
    call.check_whole(x, 0, dims)
    return dims


@rule(*REDUCTIONS)
def reduction(call):
    """Lowers sums, means and extrema; a tensor without dims is its own result."""
    x, rank = call["self"], rank_of(call)
    dtype = call.get("dtype")
    form = floats(call, x) if dtype is None else format_of(dtype)
    if call.meta.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise Refused(f"the card does not compute in {call.meta.dtype}")
    x = call.value(x, form)
    if not rank:
        return x
    return call.op(REDUCTIONS[call.node.target], x, dim=reduced(call, x), keepdim=keeps(call))


@rule(aten.var.correction, aten.std.correction)
def variance(call):
    """Lowers var and std; the correction defaults to 1."""
    x = call.value(call["self"], floats(call, call["self"]))
    correction = call.get("correction")
    return call.op(
        "var" if call.node.target is aten.var.correction else "std",
        x,
        dim=reduced(call, x),
        keepdim=keeps(call),
        correction=1 if correction is None else correction,
    )


@rule(aten.linalg_vector_norm.default)
def vector_norm(call):
    """Lowers norms in the dtype of the input."""
    x = call["self"]
    if call.get("dtype") not in (None, x.dtype):
        raise Refused("a norm in another dtype")
    x = call.value(x, floats(call, x))
    return call.op(
        "vector_norm",
        x,
        dim=reduced(call, x),
        keepdim=keeps(call),
        ord=call["ord"],
    )


def uses_more(call):
    """Returns True if a result other than the first is used."""
    return any(user.args[1] != 0 and user.users for user in call.node.users)


def only_first(call):
    """Refuses a call of which other results than the first are used."""
    if uses_more(call):
        raise Refused("its other results are used too")


def over_last(call, shape):
    """Refuses norms over more than the last dim."""
    if len(shape) != 1:
        raise Refused(f"a norm over {len(shape)} dims")


@rule(aten.native_layer_norm.default)
def layer_norm(call):
    """Lowers layer norm over the last dim; mean and 1/std are computed only if they are used."""
    x, weight, bias = call["input"], call["weight"], call["bias"]
    over_last(call, call["normalized_shape"])
    form = floats(call, x)
    given = [call.value(t, form) for t in (x, weight, bias) if t is not None]
    if weight is None and bias is not None:
        raise Refused("a bias without a weight")
    out = call.op("layer_norm", *given, eps=call["eps"])
    if not uses_more(call):
        return (out,)
    mean = call.op("mean", given[0], dim=-1, keepdim=1)
    spread = call.op("var", given[0], dim=-1, keepdim=1, correction=0)
    return out, mean, call.op("rsqrt", call.op("add", spread, other=call["eps"]))


@rule(torch.ops.spyre.whole_rms_norm.default)
def rms_norm(call):
    """Lowers RMS norm over the last dim; eps defaults to that of the dtype."""
    x, weight = call["input"], call["weight"]
    over_last(call, call["normalized_shape"])
    form = floats(call, x)
    eps = call["eps"]
    if eps is None:
        eps = torch.finfo(x.dtype).eps
    given = [call.value(t, form) for t in (x, weight) if t is not None]
    return call.op("rms_norm", *given, eps=eps)


@rule(aten._fused_rms_norm.default)
def fused_rms_norm(call):
    """Lowers RMS norm if only its first result is used."""
    only_first(call)
    return (rms_norm(call),)


@rule(aten._native_batch_norm_legit_no_training.default)
def batch_norm(call):
    """Lowers batch norm with running statistics, with both weight and bias or neither."""
    x, weight, bias = call["input"], call["weight"], call["bias"]
    if (weight is None) != (bias is None):
        raise Refused("a batch norm with one of weight and bias")
    form = floats(call, x)
    tensors = (x, call["running_mean"], call["running_var"], weight, bias)
    given = [call.value(t, form) for t in tensors if t is not None]
    only_first(call)
    return (call.op("batch_norm", *given, eps=call["eps"]),)


@rule(aten.topk.default)
def topk(call):
    """Lowers topk as two operations, one for the values and one for the indices."""
    x = call["self"]
    dim = last(call["dim"], rank_of(call))
    value = call.value(x, floats(call, x))
    call.check_whole(value, 0, [dim])
    numbers = {"k": call["k"], "dim": dim, "largest": int(call["largest"])}
    return call.op("topk", value, **numbers), call.op("topk_indices", value, **numbers)


@rule(aten.argmax.default, aten.argmin.default)
def argmax(call):
    """Lowers searches for the index of an extremum along one dim."""
    x = call["self"]
    if call.get("dim") is None:
        raise Refused("a search over all dims")
    name = "argmax" if call.node.target is aten.argmax.default else "argmin"
    dim = last(call["dim"], rank_of(call))
    return call.op(name, call.value(x, floats(call, x)), dim=dim, keepdim=keeps(call))
