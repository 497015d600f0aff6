# SPDX-License-Identifier: MIT
"""What the generated wrapper calls."""

import json

import torch

from .. import _C
from .bundle import bundle
from .dynamic import DynamicGroup


def laid_out(tensor, size, stride):
    """@tensor with the strides that the generated code counts on; a copy if it has others."""
    if tensor.stride() == stride or tensor.shape != size:
        return tensor
    if all(a == b or n == 1 for a, b, n in zip(tensor.stride(), stride, size)):
        # By the strides of dims of one element, too, an argument lies in sticks or does not.
        return tensor.as_strided(size, stride)
    return torch.empty_strided(size, stride, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def group(specification):
    """The kernel of a specification, ready to be called with its tensors."""
    spec = json.loads(specification)
    if "nodes" in spec:
        return DynamicGroup(spec)
    records = [tuple(record) for record in spec["records"]]
    return _C._CompiledKernel(
        spec["name"], bundle(records), spec["inputs"], spec["outputs"]
    )
