# SPDX-License-Identifier: MIT
"""Operations of torch.ops.spyre that create, copy and rearrange tensors."""

import torch

from .definition import composed


@composed("empty(SymInt[] size, Device device, ScalarType? dtype=None) -> Tensor")
def empty(size, device, dtype=None):
    """Returns a tensor with arbitrary contents."""
    return torch.empty(size, dtype=dtype, device=device)


@composed("constant(Scalar fill_value, ScalarType dtype, Device device) -> Scalar")
def constant(fill_value, dtype, device):
    """Returns the number: a kernel's constant has the format of its operands."""
    return fill_value


@composed(
    "causal_mask(SymInt seqlen_q, SymInt seqlen_kv, ScalarType dtype, Device device) -> Tensor"
)
def causal_mask(seqlen_q, seqlen_kv, dtype, device):
    """Returns a mask to add to scores: 0 for keys up to the query's position, else -inf."""
    mask = torch.full((1, 1, seqlen_q, seqlen_kv), float("-inf"), dtype=dtype, device="cpu")
    return mask.triu(1).to(device)


def _at(tensor, offset):
    """Returns the tensor at another offset in its storage."""
    if tensor.storage_offset() == offset:
        return tensor
    return tensor.as_strided(tensor.size(), tensor.stride(), offset)


@composed("copy_from_d2d(Tensor src, Tensor(a!) dst, SymInt src_off, SymInt dst_off) -> ()")
def copy_from_d2d(src, dst, src_off, dst_off):
    """Copies between views that start at these offsets of their storages."""
    _at(dst, dst_off).copy_(_at(src, src_off))


@composed("copy_forced(Tensor src, Tensor(a!) dst) -> ()")
def copy_forced(src, dst):
    """Copies a tensor."""
    dst.copy_(src)


@composed("opaque_copy_(Tensor value, Tensor acc) -> Tensor")
def opaque_copy(value, acc):
    """Returns a copy of `value`, which callers assign to `acc`."""
    return value.clone()


def _part(tensor, size, dims, offsets):
    """Returns the part of a tensor that starts at `offsets` in `dims` and has a size there."""
    for dim, offset in zip(dims, offsets, strict=True):
        tensor = tensor.narrow(dim, offset, size[dim])
    return tensor


@composed("overwrite(Tensor input, Tensor(a!) output, SymInt[] dims, SymInt[] offsets) -> ()")
def overwrite(input, output, dims, offsets):
    """Writes `input` over the part of `output` that starts at `offsets` in `dims`."""
    _part(output, input.size(), dims, offsets).copy_(input)


@composed("overwrite_f(Tensor input, Tensor output, SymInt[] dims, SymInt[] offsets) -> Tensor")
def overwrite_f(input, output, dims, offsets):
    """Returns a copy of `output` with `input` written over a part of it."""
    result = output.clone()
    _part(result, input.size(), dims, offsets).copy_(input)
    return result


@composed("restickify(Tensor x) -> Tensor")
def restickify(x):
    """Returns a copy whose sticks lie along the last dimension."""
    return x.clone(memory_format=torch.contiguous_format)


@composed("stagger_to_standard_ea(Tensor x) -> Tensor")
def stagger_to_standard_ea(x):
    """Returns a copy, because casts on this card keep the elements of each stick in order."""
    return x.clone(memory_format=torch.contiguous_format)


@composed("reshape_via_cpu(Tensor input, SymInt[] shape) -> Tensor")
def reshape_via_cpu(input, shape):
    """Returns a copy in another shape; the card needs no detour over the CPU for it."""
    return input.clone(memory_format=torch.contiguous_format).view(shape)


@composed("to_dtype_cpu(Tensor input, ScalarType dtype) -> Tensor")
def to_dtype_cpu(input, dtype):
    """Returns a copy in another dtype; the card needs no detour over the CPU for it."""
    return input.to(dtype, copy=True)
