# SPDX-License-Identifier: MIT
"""RMS norm as one operation of the graph.

PyTorch would take it apart below what makes a graph functional, into operations of
which one changes its input in place; the builder has it whole, as eager mode does.
"""

import torch


@torch.library.custom_op("spyre::rms_norm", mutates_args=())
def rms_norm(
    input: torch.Tensor,
    normalized_shape: list[int],
    weight: torch.Tensor | None,
    eps: float | None,
) -> torch.Tensor:
    """input / sqrt(mean of its squares + eps), times weight."""
    return torch.nn.functional.rms_norm(input, normalized_shape, weight, eps)


@rms_norm.register_fake
def _(input, normalized_shape, weight, eps):
    return torch.empty_like(input, memory_format=torch.contiguous_format)


def whole(input, normalized_shape, weight=None, eps=None):
    """Stands for rms_norm on the card; its derivatives are those of parts, which come first."""
    if input.device.type != "spyre":
        return NotImplemented
    return rms_norm(input, normalized_shape, weight, eps)
