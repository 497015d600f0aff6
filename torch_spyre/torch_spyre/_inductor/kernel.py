# SPDX-License-Identifier: MIT
"""Functions that the generated wrapper calls."""

import json

import torch

from .. import _C
from . import lx
from .bundle import bundle, event_key
from .layouts import decoded


def laid_out(tensor, size, stride):
    """Returns @tensor with the strides that the generated code expects, as a copy if necessary."""
    if tensor.stride() == stride or tensor.shape != size:
        return tensor
    if all(a == b or n == 1 for a, b, n in zip(tensor.stride(), stride, size)):
        # Dims of size 1 need the exact strides, because these affect the layout of an argument.
        return tensor.as_strided(size, stride)
    return torch.empty_strided(size, stride, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def group(specification):
    """Returns the kernel of a specification of fixed sizes, a callable that takes its tensors."""
    spec = json.loads(specification)
    records = [tuple(record) for record in spec["records"]]
    for item in (*spec["inputs"], *spec["outputs"]):
        item["placed_layout"] = decoded(item["placed_layout"], getattr(torch, item["dtype"]))
    directory = bundle(records)
    name, title, key = spec["name"], spec["title"], event_key(directory)
    kernel = _C._CompiledKernel(name, directory, spec["inputs"], spec["outputs"], title, key)
    lx.loaded[kernel] = name, title, key, records
    return kernel
