# SPDX-License-Identifier: MIT
"""Attention on heads that are shorter than a stick, without copies.

A projection leaves several heads in a stick. A view of one head would begin within a stick,
which no layout can describe. The builder reads the sticks with all their heads and writes its
result in the same form, so that joining the heads afterwards is a view.
"""

import torch

from .origins import derive
from .placement import operand_in, placement_of
from .unflatten import call, notes
from .views import VIEWS, View, on_card, static, tensor_of, view_of

aten = torch.ops.aten

STICK = 128
CONTIGUOUS = (None, torch.contiguous_format)


def together(size, stride, heads):
    """Returns size and stride of [B, H, S, D] as [B, H / n, S, D n], for n = @heads."""
    width = size[3] * heads
    return (size[0], size[1] // heads, size[2], width), (stride[0], width, stride[2], 1)


def is_operand(node, heads):
    """Returns True if an operand can describe @node with @heads heads per stick."""
    view = view_of(node)
    if view.stride[3] != 1 or view.stride[1] != view.size[3] or view.size[1] % heads:
        return False
    seen = View(view.base, *together(view.size, view.stride, heads), view.offset)
    return operand_in(placement_of(view.base), seen) is not None


def wide(graph, node, heads):
    """Returns a view of @node with @heads heads per stick; its sizes may be symbols."""
    value = tensor_of(node)
    size, stride = together(value.shape, value.stride(), heads)
    where = value.storage_offset()
    return call(graph, aten.as_strided.default, view_of(node).base, list(size), list(stride), where)


def heads_of(query, key, value, mask):
    """Returns the number of heads per stick, 1 if attention cannot be computed on such sticks."""
    size = static(tensor_of(query).shape)
    lanes = STICK // tensor_of(query).element_size()
    if any(isinstance(n, torch.SymInt) for n in tensor_of(query).shape[1::2]):
        return 1
    if len(size) != 4 or lanes % size[3] or lanes == size[3]:
        return 1
    keys = static(tensor_of(key).shape)
    if keys[1] != size[1] or keys[2] == 1 or keys != static(tensor_of(value).shape):
        return 1
    if size[1] * size[3] == lanes:
        return 1  # all heads are in one stick, for which the operand would lack a dim
    shape = (1, 1, 1) if mask is None else (1, *static(tensor_of(mask).shape))
    return lanes // size[3] if len(shape) < 4 or shape[-3] == 1 else 1


def refresh(node):
    """Updates the views of a node with new strides and erases copies that became redundant."""
    for user in list(node.users):
        if user.op != "call_function" or user.target not in {*VIEWS, aten.clone.default}:
            continue
        if user.target is aten.clone.default:
            form = user.kwargs.get("memory_format")
            if form in CONTIGUOUS and tensor_of(node).is_contiguous():
                user.replace_all_uses_with(node)
                user.graph.erase_node(user)
                refresh(node)
                return
        user.meta["val"] = user.target(
            *torch.fx.map_arg(user.args, lambda n: n.meta["val"]),
            **torch.fx.map_arg(user.kwargs, lambda n: n.meta["val"]),
        )
        refresh(user)


def is_returned(node):
    """Returns True if the graph returns @node or a view of it, with the strides that it has now."""
    return any(
        user.op == "output" or (user.target in VIEWS and is_returned(user)) for user in node.users
    )


def replace(graph, node):
    """Replaces attention on short heads by attention on sticks, if operands can describe them."""
    query, key, value, mask, scale, causal = node.args
    heads = heads_of(query, key, value, mask)
    if heads == 1 or not all(is_operand(n, heads) for n in (query, key, value)):
        return
    if is_returned(node):
        return
    batch, count, length, size = tensor_of(query).shape
    with graph.inserting_before(node):
        seen = [wide(graph, n, heads) for n in (query, key, value)]
        for new, old in zip(seen, (query, key, value)):
            derive("heads", new, old)
        target = torch.ops.spyre.attention_side_by_side.default
        joined = call(graph, target, *seen, mask, scale, causal, heads)
        apart = call(graph, aten.view.default, joined, [batch, length, count, size])
        result = call(graph, aten.permute.default, apart, [0, 2, 1, 3])
        notes("heads", node, joined)
        for new in (apart, result):
            derive("heads", new, node)
    node.replace_all_uses_with(result)
    graph.erase_node(node)
    refresh(result)


def side_by_side(graph):
    """Replaces all attention on short heads in a graph."""
    for node in list(graph.nodes):
        if node.target is torch.ops.spyre.attention.default and on_card(node):
            replace(graph, node)
    graph.eliminate_dead_code()
