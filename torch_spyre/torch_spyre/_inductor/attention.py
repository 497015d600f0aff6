# SPDX-License-Identifier: MIT
"""Attention as one operation of the graph.

Inductor would decompose it into products and a softmax that searches for rows of minus
infinity. The builder has attention as one operation, which eager mode uses as well.
"""

import math

import torch


@torch.library.custom_op("spyre::attention", mutates_args=())
def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float,
) -> torch.Tensor:
    """Returns softmax(scale query key^T + mask) value."""
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, mask, scale=scale
    ).clone(memory_format=torch.contiguous_format)


@attention.register_fake
def _(query, key, value, mask, scale):
    return query.new_empty((*query.shape[:-1], value.shape[-1]))


@torch.library.custom_op("spyre::attention_side_by_side", mutates_args=())
def attention_side_by_side(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float,
    heads: int,
) -> torch.Tensor:
    """Returns the attention of [B, H / n, S, D n], n heads per stick, as [B, S, H / n, D n]."""
    apart = [t.unflatten(3, (heads, -1)).transpose(2, 3).flatten(1, 2)
             for t in (query, key, value)]
    result = torch.nn.functional.scaled_dot_product_attention(*apart, mask, scale=scale)
    batch, groups, length, width = query.shape
    return result.transpose(1, 2).reshape(batch, length, groups, width).clone()


@attention_side_by_side.register_fake
def _(query, key, value, mask, scale, heads):
    batch, groups, length, width = query.shape
    return query.new_empty((batch, length, groups, width))


def whole(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *,
          scale=None, enable_gqa=False):
    """Replaces scaled_dot_product_attention if the builder supports it; has no derivative."""
    on_card = query.device.type == "spyre"
    heads = query.dim() == key.dim() and query.shape[:-2] == key.shape[:-2]
    if not on_card or dropout_p or is_causal or not heads:
        return NotImplemented
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])
    return attention(query, key, value, attn_mask, float(scale))
