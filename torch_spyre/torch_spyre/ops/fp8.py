# SPDX-License-Identifier: MIT
"""Operations of torch.ops.spyre on float8_e4m3fn, and torch._scaled_mm on a card.

Tensors of fp8 have the card's format SEN143_FP8, which is the same, so that copies are exact.
"""

import torch

from .definition import composed

_FP8 = torch.float8_e4m3fn
_LARGEST = torch.finfo(_FP8).max

_aten = torch.library.Library("aten", "IMPL")


def _to_fp8(x):
    """Rounds to fp8; numbers that are too large become the largest one, on the CPU as well."""
    return x.clamp(-_LARGEST, _LARGEST).to(_FP8)


@composed("qfp8ch(Tensor input) -> Tensor")
def qfp8ch(input):
    """Returns the input in fp8."""
    return _to_fp8(input)


@composed("qfp8wt(Tensor input) -> Tensor")
def qfp8wt(input):
    """Returns weights in fp8. A product takes them in the layout of any tensor."""
    return _to_fp8(input)


@composed("quantize_fp8_with_scale(Tensor input, Tensor scale) -> Tensor")
def quantize_fp8_with_scale(input, scale):
    """Returns the input, times the reciprocal of the scale, in fp8."""
    return _to_fp8(input * scale.reciprocal())


@composed("quantize_weight_fp8_with_scale(Tensor input, Tensor scale) -> Tensor")
def quantize_weight_fp8_with_scale(input, scale):
    """Returns weights, times the reciprocal of the scale, in fp8."""
    return _to_fp8(input * scale.reciprocal())


@composed("dequantize_fp8_with_scale(Tensor input, Tensor scale) -> Tensor")
def dequantize_fp8_with_scale(input, scale):
    """Returns numbers in fp8, times the scale, in fp16."""
    return input.to(torch.float16) * scale.to(torch.float16)


@composed("scaled_mm(Tensor mat1, Tensor mat2, ScalarType? out_dtype=None) -> Tensor")
def scaled_mm(mat1, mat2, out_dtype=None):
    """Returns the product of matrices in fp8, without scales, in fp16 unless `out_dtype` is given.

    The products are added in fp32 and the sum is rounded once.
    """
    return torch.mm(mat1.float(), mat2.float()).to(out_dtype or torch.float16)


def _scaled_mm(
    self,
    mat2,
    scale_a,
    scale_b,
    bias=None,
    scale_result=None,
    out_dtype=None,
    use_fast_accum=False,
):
    """Computes torch._scaled_mm in fp32 and rounds once; use_fast_accum has no effect."""
    result = torch.mm(self.float(), mat2.float()) * scale_a * scale_b
    if bias is not None:
        result = result + bias.float()
    out_dtype = out_dtype or self.dtype
    if out_dtype != _FP8:
        return result.to(out_dtype)
    return _to_fp8(result if scale_result is None else result * scale_result)


_aten.impl("_scaled_mm", _scaled_mm, "PrivateUse1")
