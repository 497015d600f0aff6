# SPDX-License-Identifier: MIT
"""RMS norm as one operation of the graph.

PyTorch would decompose it after functionalisation, into operations of which one changes its
input in place. The builder has it as one operation, which eager mode uses as well.
"""

import torch


@torch.library.custom_op("spyre::whole_rms_norm", mutates_args=())
def rms_norm(
    input: torch.Tensor,
    normalized_shape: list[int],
    weight: torch.Tensor | None,
    eps: float | None,
) -> torch.Tensor:
    """Returns input / sqrt(mean of its squares + eps), times weight."""
    return torch.nn.functional.rms_norm(input, normalized_shape, weight, eps)


@rms_norm.register_fake
def _(input, normalized_shape, weight, eps):
    return torch.empty_like(input, memory_format=torch.contiguous_format)


def whole(input, normalized_shape, weight=None, eps=None):
    """Replaces rms_norm on the card; autograd differentiates the decomposition before this."""
    if input.device.type != "spyre":
        return NotImplemented
    return rms_norm(input, normalized_shape, weight, eps)
