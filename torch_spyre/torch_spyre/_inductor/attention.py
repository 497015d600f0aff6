# SPDX-License-Identifier: MIT
"""Attention as one operation of the graph.

Inductor would decompose it into products and a softmax that searches for rows of minus
infinity. The builder has attention as one operation, which eager mode uses as well.
"""

import math

import torch

from .views import on_card, tensor_of

aten = torch.ops.aten

#: Operations by which a repeated tensor gets its final shape.
JOINS = (
    aten.clone.default,
    aten.view.default,
    aten._unsafe_view.default,
    aten.reshape.default,
)


@torch.library.custom_op("spyre::attention", mutates_args=())
def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float,
    causal: bool,
) -> torch.Tensor:
    """Returns softmax(scale query key^T + mask) value; heads may share those of the keys."""
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, mask, is_causal=causal, scale=scale, enable_gqa=query.dim() > 2
    ).clone(memory_format=torch.contiguous_format)


@attention.register_fake
def _(query, key, value, mask, scale, causal):
    return query.new_empty((*query.shape[:-1], value.shape[-1]))


@torch.library.custom_op("spyre::attention_side_by_side", mutates_args=())
def attention_side_by_side(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float,
    causal: bool,
    heads: int,
) -> torch.Tensor:
    """Returns the attention of [B, H / n, S, D n], n heads per stick, as [B, S, H / n, D n]."""
    apart = [t.unflatten(3, (heads, -1)).transpose(2, 3).flatten(1, 2)
             for t in (query, key, value)]
    result = torch.nn.functional.scaled_dot_product_attention(
        *apart, mask, is_causal=causal, scale=scale
    )
    batch, groups, length, width = query.shape
    return result.transpose(1, 2).reshape(batch, length, groups, width).clone()


@attention_side_by_side.register_fake
def _(query, key, value, mask, scale, causal, heads):
    batch, groups, length, width = query.shape
    return query.new_empty((batch, length, groups, width))


def whole(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *,
          scale=None, enable_gqa=False):
    """Replaces scaled_dot_product_attention if the builder supports it; has no derivative."""
    on_card = query.device.type == "spyre"
    shared = enable_gqa and 3 <= query.dim() <= 4 and query.shape[:-3] == key.shape[:-3]
    heads = query.dim() == key.dim() and (shared or query.shape[:-2] == key.shape[:-2])
    if not on_card or dropout_p or not heads or (is_causal and attn_mask is not None):
        return NotImplemented
    if shared and (query.shape[-3] % key.shape[-3] or value.shape[-3] != key.shape[-3]):
        return NotImplemented
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])
    return attention(query, key, value, attn_mask, float(scale), is_causal)


def repeated(node, heads):
    """Returns the tensor of [B, H / n, T, D] that @node repeats n times for H = @heads, or None.

    Models repeat keys and values for the heads that share them. The card does not need copies.
    """
    whole = tuple(tensor_of(node).shape)
    while node.op == "call_function" and node.target in JOINS:
        node = node.args[0]
    if node.op != "call_function" or node.target is not aten.expand.default:
        return None
    expanded, node = tuple(tensor_of(node).shape), node.args[0]
    if node.op != "call_function" or node.target is not aten.unsqueeze.default:
        return None
    inner, dim = node.args
    size = tuple(tensor_of(inner).shape)
    if len(size) != 4 or dim not in (2, -3) or whole != (size[0], heads, *size[2:]):
        return None
    return inner if expanded == (*size[:2], heads // size[1], *size[2:]) else None


def share_keys(graph):
    """Lets all attention of a graph read keys and values before they are repeated."""
    for node in graph.nodes:
        if node.target is not torch.ops.spyre.attention.default or not on_card(node):
            continue
        query, key, value, *_ = node.args
        heads = tensor_of(query).shape
        if len(heads) != 4:
            continue
        inner = [repeated(n, heads[1]) for n in (key, value)]
        if None not in inner and tensor_of(inner[0]).shape[1] == tensor_of(inner[1]).shape[1]:
            node.args = (query, *inner, *node.args[3:])
    graph.eliminate_dead_code()
