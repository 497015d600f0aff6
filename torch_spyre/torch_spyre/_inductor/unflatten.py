# SPDX-License-Identifier: MIT
"""Restores products of more than two dims that PyTorch has flattened.

ATen multiplies [B * S, K] for a model's [B, S, K]. Such a view of sticks would be a copy on the
card, which can multiply with batch dims.
"""

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true, sym_eq
from torch.utils import _pytree as pytree

from .origins import derive
from .views import on_card, source, tensor_of

aten = torch.ops.aten


def shape(node):
    """Returns the shape of a node's tensor as a tuple."""
    return tuple(tensor_of(node).shape)


def alike(a, b):
    """Returns True if sizes are equal for all values of their symbols."""
    return len(a) == len(b) and statically_known_true(sym_eq(a, b))


def without_copies(node):
    """Returns the node of which @node is only a copy, or @node itself."""
    while (
        node.op == "call_function"
        and node.target is aten.clone.default
        and tensor_of(node.args[0]).dtype == tensor_of(node).dtype
    ):
        node = node.args[0]
    return node


def unflattened(node, trailing):
    """Returns the tensor of which @node is a flat view, if its last @trailing dims are equal."""
    inner = node
    while True:
        outer = source(inner)
        if outer is None or inner.target not in (
            aten.view.default,
            aten.reshape.default,
            aten._unsafe_view.default,
        ):
            return None
        inner = without_copies(outer)
        size, flat = shape(inner), shape(node)
        if len(size) > len(flat) and alike(size[-trailing:], flat[-trailing:]):
            return inner


def call(graph, target, *args):
    """Adds an operation; makes nodes for sizes among its arguments that are symbols."""
    symbols = [s for s in pytree.tree_leaves(args) if isinstance(s, torch.SymInt)]
    known = dict(zip(map(id, symbols), graph.materialize_symints(symbols))) if symbols else {}
    args = pytree.tree_map(lambda a: known.get(id(a), a), args)
    node = graph.call_function(target, args)
    node.meta["val"] = target(
        *torch.fx.map_arg(args, lambda n: n.meta["val"])
    )
    return node


def replace(graph, node, product):
    """Replaces @node by the flat view of @product and copies its notes to @product."""
    notes("unflatten", node, product)
    flat = call(graph, aten.reshape.default, product, list(shape(node)))
    derive("unflatten", flat, node)
    node.replace_all_uses_with(flat)
    graph.erase_node(node)


def notes(by, node, *made):
    """Copies the hints of @node to nodes with which the pass @by replaces it, and its origins."""
    for new in made:
        derive(by, new, node)
        for key in ("custom", "autograd_backward"):
            if key in node.meta:
                new.meta[key] = node.meta[key]


def matrix(graph, node):
    """Replaces mm and addmm by matmul with batch dims if the first factor is a flat view."""
    bias, a, b = (None, *node.args[:2]) if node.target is aten.mm.default else node.args[:3]
    wide = unflattened(a, 1)
    if wide is None or node.kwargs.get("alpha", 1) != 1 or node.kwargs.get("beta", 1) != 1:
        return
    if bias is not None and len(shape(bias)) > 1 and not alike(shape(bias)[:1], (1,)):
        return
    with graph.inserting_before(node):
        product = call(graph, aten.matmul.default, wide, b)
        notes("unflatten", node, product)
        if bias is not None:
            product = call(graph, aten.add.Tensor, product, bias)
        replace(graph, node, product)


def batched(graph, node):
    """Replaces bmm by matmul with more batch dims if both factors are flat views."""
    a, b = (unflattened(n, 2) for n in node.args[:2])
    if a is None or b is None or not alike(shape(a)[:-2], shape(b)[:-2]):
        return
    with graph.inserting_before(node):
        replace(graph, node, call(graph, aten.matmul.default, a, b))


def unflatten(graph):
    """Restores the batch dims of all products in a graph."""
    for node in list(graph.nodes):
        if node.op != "call_function" or not on_card(node):
            continue
        if node.target in (aten.mm.default, aten.addmm.default):
            matrix(graph, node)
        elif node.target is aten.bmm.default:
            batched(graph, node)
    graph.eliminate_dead_code()
