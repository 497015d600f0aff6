# SPDX-License-Identifier: MIT
"""Operations of torch.ops.spyre that compute as one or a few of PyTorch's do."""

import torch
from torch.nn import functional

from .._inductor.errors import Unsupported
from .definition import composed

_NORM = "Tensor x, SymInt[] normalized_shape, Tensor? weight=None"
_WINDOW = "SymInt[] stride, SymInt[] padding, SymInt[] dilation, SymInt groups"


@composed("softplus(Tensor input, float beta=1.0, float threshold=20.0) -> Tensor")
def softplus(input, beta=1.0, threshold=20.0):
    """Returns log(1 + exp(beta * input)) / beta."""
    return functional.softplus(input, beta, threshold)


@composed('gelu(Tensor input, str approximate="none") -> Tensor')
def gelu(input, approximate="none"):
    """Returns the Gaussian error linear unit."""
    return functional.gelu(input, approximate=approximate)


@composed("silu(Tensor input) -> Tensor")
def silu(input):
    """Returns input * sigmoid(input)."""
    return functional.silu(input)


@composed("clamp(Tensor input, Scalar? min=None, Scalar? max=None) -> Tensor")
def clamp(input, min=None, max=None):
    """Returns the input within its bounds."""
    return torch.clamp(input, min, max)


@composed("logical_not(Tensor input) -> Tensor")
def logical_not(input):
    """Returns 1 where the input is 0, else 0, in the dtype of the input."""
    return torch.logical_not(input).to(input.dtype)


@composed(f"layer_norm({_NORM}, Tensor? bias=None, float eps=1e-05) -> Tensor")
def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Normalises the last dimensions."""
    return functional.layer_norm(x, normalized_shape, weight, bias, eps)


@composed(f"rms_norm({_NORM}, float eps=1e-05) -> Tensor")
def rms_norm(x, normalized_shape, weight=None, eps=1e-5):
    """Divides by the root mean square of the last dimensions."""
    return functional.rms_norm(x, normalized_shape, weight, eps)


@composed("topkvalue(Tensor x, SymInt k, SymInt dim) -> Tensor")
def topkvalue(x, k, dim):
    """Returns the k largest numbers of a dimension."""
    return torch.topk(x, k, dim)[0]


@composed("topkindex(Tensor x, SymInt k, SymInt dim) -> Tensor")
def topkindex(x, k, dim):
    """Returns the indices of the k largest numbers of a dimension, in the dtype of the input."""
    return torch.topk(x, k, dim)[1].to(x.dtype)


@composed(
    "max_dim_int64_fallback(Tensor input, SymInt dim, bool keepdim=False) -> (Tensor, Tensor)"
)
def max_dim_int64_fallback(input, dim, keepdim=False):
    """Returns the maxima of a dimension and their indices."""
    return tuple(torch.max(input, dim, keepdim))


@composed(
    "min_dim_int64_fallback(Tensor input, SymInt dim, bool keepdim=False) -> (Tensor, Tensor)"
)
def min_dim_int64_fallback(input, dim, keepdim=False):
    """Returns the minima of a dimension and their indices."""
    return tuple(torch.min(input, dim, keepdim))


@composed("max_default_int64_fallback(Tensor input) -> Tensor")
def max_default_int64_fallback(input):
    """Returns the maximum of all elements."""
    return torch.max(input)


@composed("prod_dim_int(Tensor input, SymInt dim, bool keepdim=False) -> Tensor")
def prod_dim_int(input, dim, keepdim=False):
    """Returns the products of a dimension in the dtype of the input."""
    return torch.prod(input, dim, keepdim, dtype=input.dtype)


@composed("batched_matmul(Tensor x, Tensor y) -> Tensor")
def batched_matmul(x, y):
    """Returns the products of matrices in the last two dimensions."""
    return torch.matmul(x, y)


@composed(f"conv2d(Tensor input, Tensor weight, {_WINDOW}) -> Tensor")
def conv2d(input, weight, stride, padding, dilation, groups):
    """Returns a convolution over the last two dimensions."""
    return functional.conv2d(input, weight, None, stride, padding, dilation, groups)


@composed(f"conv2d_with_bias(Tensor input, Tensor weight, Tensor? bias, {_WINDOW}) -> Tensor")
def conv2d_with_bias(input, weight, bias, stride, padding, dilation, groups):
    """Returns a convolution over the last two dimensions, and a bias per channel."""
    return functional.conv2d(input, weight, bias, stride, padding, dilation, groups)


@composed(
    "unfold(Tensor input, SymInt[] kernel_size, SymInt[]? dilation=None, SymInt[]? padding=None, "
    "SymInt[]? stride=None) -> Tensor"
)
def unfold(input, kernel_size, dilation=None, padding=None, stride=None):
    """Returns the blocks that a window passes over, as columns."""
    return functional.unfold(
        input, kernel_size, dilation or (1, 1), padding or (0, 0), stride or (1, 1)
    )


def _only_in_bundles(schema):
    """Defines a step of layer norm that computes no tensor by itself, as an error."""
    name = schema.partition("(")[0]

    @composed(schema)
    def refuse(*args, **kwargs):
        raise Unsupported(
            f"torch.ops.spyre.{name} by itself: the moments of a row are a pair of numbers in one "
            "stick, which exists only within a bundle; use torch.ops.spyre.layer_norm"
        )


_only_in_bundles("exx2(Tensor x, float exx2Scale, bool useZeroMean) -> Tensor")
_only_in_bundles("layernormscale(Tensor x, float eps) -> Tensor")
_only_in_bundles(
    "layernormnorm(Tensor x, Tensor mean, Tensor norm_mean, Tensor? weight, Tensor? bias) -> Tensor"
)
