# SPDX-License-Identifier: MIT
"""Operations of torch.ops.spyre on float8_e4m3fn, and PyTorch's products of scaled numbers of 8 bits.

The card converts both factors to fp32, which holds their numbers, and adds and scales in it.
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


def _rounded(result, bias, scale_result, out_dtype):
    """Adds the bias to a product in fp32 and rounds once; fp8 saturates."""
    if bias is not None:
        result = result + bias.float()
    if out_dtype != _FP8:
        return result.to(out_dtype)
    return _to_fp8(result if scale_result is None else result * scale_result)


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
    """Computes torch._scaled_mm in fp32 and rounds once; use_fast_accum has no effect.

    The scales are one for each factor, or one for each row of the first and column of the second.
    """
    if mat2.shape[0] != self.shape[1]:
        raise RuntimeError(
            f"cannot multiply {list(self.shape)} by {list(mat2.shape)} in _scaled_mm: the inner "
            "sizes differ"
        )
    for name, scale, wanted in (
        ("scale_a", scale_a, (self.shape[0], 1)),
        ("scale_b", scale_b, (1, mat2.shape[1])),
    ):
        if scale.numel() != 1 and tuple(scale.shape) != wanted:
            raise NotImplementedError(
                f"cannot apply {name} of shape {list(scale.shape)} in _scaled_mm on a card: "
                f"it scales whole factors, or rows and columns; pass one number or {list(wanted)}"
            )
    result = torch.mm(self.float(), mat2.float()) * scale_a * scale_b
    return _rounded(result, bias, scale_result, out_dtype or self.dtype)


def _scaled_mm_out(self, mat2, scale_a, scale_b, *more, out, **options):
    """Computes torch._scaled_mm into a given tensor."""
    result = _scaled_mm(self, mat2, scale_a, scale_b, *more, **options)
    return out.resize_(result.shape).copy_(result)


def _scaled_grouped_mm(
    self,
    mat2,
    scale_a,
    scale_b,
    offs=None,
    bias=None,
    scale_result=None,
    out_dtype=None,
    use_fast_accum=False,
):
    """Computes torch._scaled_grouped_mm of rows in groups, each with a matrix of its own.

    `scale_a` has a number for each row, `scale_b` for each column of each matrix. Sums are scaled
    in fp32 and rounded once.
    """
    if self.dim() != 2 or mat2.dim() != 3 or offs is None:
        raise NotImplementedError(
            f"cannot multiply {self.dim()}-D by {mat2.dim()}-D in _scaled_grouped_mm on a card: "
            "it multiplies groups of rows [S, K], by offs, with matrices [E, K, N]"
        )
    rows, groups, columns = self.shape[0], mat2.shape[0], mat2.shape[2]
    if scale_a.numel() != rows or scale_b.numel() != groups * columns:
        raise RuntimeError(
            f"cannot scale in _scaled_grouped_mm: scale_a has {scale_a.numel()} numbers and scale_b "
            f"{scale_b.numel()}, expected {rows} and {groups} x {columns}"
        )
    result = torch._grouped_mm(self.float(), mat2.float(), offs=offs)
    # The scales of each row's group: a product with ones is exact.
    scale = torch._grouped_mm(
        torch.ones(rows, 1, device=self.device), scale_b.reshape(groups, 1, columns), offs=offs
    )
    result = result * scale_a.reshape(rows, 1) * scale
    return _rounded(result, bias, scale_result, out_dtype or torch.bfloat16)


_aten.impl("_scaled_mm", _scaled_mm, "PrivateUse1")
_aten.impl("_scaled_mm.out", _scaled_mm_out, "PrivateUse1")
_aten.impl("_scaled_grouped_mm", _scaled_grouped_mm, "PrivateUse1")
