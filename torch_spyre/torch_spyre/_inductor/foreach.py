# SPDX-License-Identifier: MIT
"""Decomposes operations on lists of tensors (optimisers) into operations on single tensors.

Eager mode does the same with them; single operations can be gathered into kernels.
"""

import operator

import torch

from .origins import derive
from .views import on_card

aten = torch.ops.aten
PREFIX = "_foreach_"
#: Overloads of the single operation that are neither the list's own nor "Tensor".
OVERLOADS = {"pow": {"Scalar": "Tensor_Scalar", "ScalarList": "Tensor_Scalar",
                     "List": "Tensor_Tensor", "ScalarAndTensor": "Scalar"},
             "lerp": {"Scalar": "Scalar", "ScalarList": "Scalar", "List": "Tensor"}}  # fmt: skip
#: Operations with different names for bounds that are tensors.
NAMES = {("clamp_min", "Scalar"): "clamp_min", ("clamp_max", "Scalar"): "clamp_max",
         ("maximum", "Scalar"): "clamp_min", ("minimum", "Scalar"): "clamp_max",
         ("clamp_min", "List"): "maximum", ("clamp_max", "List"): "minimum"}  # fmt: skip


def single(node):
    """Returns the operation on one tensor, or None."""
    name = node.target._schema.name.removeprefix("aten::" + PREFIX)
    overload = node.target._overloadname
    packet = getattr(aten, NAMES.get((name, overload), name), None)
    if packet is None:
        return None
    wanted = OVERLOADS.get(name, {}).get(overload)
    for candidate in (wanted, "Tensor", "default"):
        if candidate in packet.overloads():
            return getattr(packet, candidate)
    return None


def results(node):
    """Returns the users of a node if it returns a list of which they only take elements."""
    users = list(node.users)
    if not isinstance(node.meta.get("val"), (list, tuple)):
        return None
    return users if all(u.target is operator.getitem for u in users) else None


def element(argument, i):
    """Returns element @i of a list, or the argument itself, which all elements share."""
    return argument[i] if isinstance(argument, (list, tuple)) else argument


def decompose(graph, node, target):
    """Replaces the elements of @node's result by operations @target on single tensors."""
    for user in results(node):
        i = user.args[1]
        args = tuple(element(a, i) for a in node.args)
        kwargs = {name: element(a, i) for name, a in node.kwargs.items()}
        with graph.inserting_before(node):
            part = graph.call_function(target, args, kwargs)
        part.meta.update(user.meta)
        derive("foreach", part, node)
        user.replace_all_uses_with(part)
        graph.erase_node(user)
    graph.erase_node(node)


def foreach(graph):
    """Decomposes the operations on lists in a graph."""
    for node in list(graph.nodes):
        if not isinstance(node.target, torch._ops.OpOverload) or not on_card(node):
            continue
        name = node.target._schema.name
        if not name.startswith("aten::" + PREFIX) or node.target._schema.is_mutable:
            continue
        target = single(node)
        if target is not None and results(node) is not None:
            decompose(graph, node, target)
