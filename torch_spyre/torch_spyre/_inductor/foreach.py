# SPDX-License-Identifier: MIT
"""Operations on lists of tensors (optimisers), taken apart into those of single tensors.

That is what eager mode does with them; as single operations they are gathered into kernels.
"""

import operator

import torch

from .views import on_card

aten = torch.ops.aten
PREFIX = "_foreach_"
#: Where the overload of the single operation is not the list's own name or "Tensor".
OVERLOADS = {"pow": {"Scalar": "Tensor_Scalar", "ScalarList": "Tensor_Scalar",
                     "List": "Tensor_Tensor", "ScalarAndTensor": "Scalar"},
             "lerp": {"Scalar": "Scalar", "ScalarList": "Scalar", "List": "Tensor"}}  # fmt: skip
#: Bounds that are tensors have names of their own.
NAMES = {("clamp_min", "Scalar"): "clamp_min", ("clamp_max", "Scalar"): "clamp_max",
         ("maximum", "Scalar"): "clamp_min", ("minimum", "Scalar"): "clamp_max",
         ("clamp_min", "List"): "maximum", ("clamp_max", "List"): "minimum"}  # fmt: skip


def single(node):
    """The operation of one tensor, or None."""
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
    """The users of a node by number, if it returns a list that is only taken apart."""
    users = list(node.users)
    if not isinstance(node.meta.get("val"), (list, tuple)):
        return None
    return users if all(u.target is operator.getitem for u in users) else None


def element(argument, i):
    return argument[i] if isinstance(argument, (list, tuple)) else argument


def take_apart(graph, node, target):
    for user in results(node):
        i = user.args[1]
        args = tuple(element(a, i) for a in node.args)
        kwargs = {name: element(a, i) for name, a in node.kwargs.items()}
        with graph.inserting_before(node):
            part = graph.call_function(target, args, kwargs)
        part.meta.update(user.meta)
        user.replace_all_uses_with(part)
        graph.erase_node(user)
    graph.erase_node(node)


def foreach(graph):
    for node in list(graph.nodes):
        if not isinstance(node.target, torch._ops.OpOverload) or not on_card(node):
            continue
        name = node.target._schema.name
        if not name.startswith("aten::" + PREFIX) or node.target._schema.is_mutable:
            continue
        target = single(node)
        if target is not None and results(node) is not None:
            take_apart(graph, node, target)
