# SPDX-License-Identifier: MIT
"""Weights of vLLM's layers on the card, in the layouts that their operations read."""

import torch
from torch_spyre import SpyreTensorLayout, _C
from vllm.model_executor.layers.linear import LinearBase
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead

from .layers import Rotation


def _product_layout(weight):
    """Returns the layout with sticks along out_features; None for fewer of them than a stick."""
    if weight.dim() != 2 or weight.shape[0] < _C.get_elem_in_stick(weight.dtype):
        return None
    return SpyreTensorLayout(list(weight.shape), list(weight.stride()), weight.dtype, [1, 0])


def move(model, device):
    """Moves parameters and buffers in place, so that tied weights and references stay.

    Weights of products have sticks along out_features. Where an embedding shares one, its lookup
    reads the tiles that contain the rows. Angles of RoPE stay on the host: layers.py makes tables
    of them, and encoders keep the angles of a thousand sizes of images.
    """
    angles = {
        id(buffer)
        for module in model.modules()
        if isinstance(module, Rotation)
        for buffer in module.buffers(recurse=False)
    }
    products = {
        id(module.weight)
        for module in model.modules()
        if isinstance(module, LinearBase | ParallelLMHead) and hasattr(module, "weight")
    }
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.device.type == device.type or id(tensor) in angles:
            continue
        data = tensor.data
        layout = _product_layout(data.contiguous()) if id(tensor) in products else None
        if layout is None:
            tensor.data = data.to(device)
        else:
            tensor.data = data.contiguous().to(device, device_layout=layout)
    for module in model.modules():
        # Some encoders remember the device that they were made on, and move images there.
        if isinstance(vars(module).get("device"), torch.device):
            module.device = device


def size(model):
    """Returns the bytes of the parameters."""
    return sum(p.numel() * p.element_size() for p in model.parameters())
