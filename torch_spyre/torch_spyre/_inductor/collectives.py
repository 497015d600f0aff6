# SPDX-License-Identifier: MIT
"""Functional collectives in a graph, which run on streams of their group between kernels.

A collective starts when its operands are computed. Operations that do not depend on it are
computed meanwhile, in a kernel of their own, because the current stream waits for its result
only at the first operation that uses it. A collective whose operand nothing else reads writes its
result there.
"""

import operator

import torch

from .lowering import GroupTarget
from .views import tensor_of

#: Namespaces of the collectives of torch.distributed.
NAMESPACES = "_c10d_functional", "_c10d_functional_autograd", "_dtensor"

#: Namespaces of those that return before they have ended.
PENDING = "_c10d_functional", "_c10d_functional_autograd"

#: Collectives with a form that writes over their operands.
IN_PLACE = "all_reduce", "all_reduce_coalesced", "broadcast"


def is_collective(node):
    """Returns True for a node that starts a collective or waits for one."""
    target = node.target
    return isinstance(target, torch._ops.OpOverload) and target.namespace in NAMESPACES


def is_pending(op):
    """Returns True if an operation's results have to be waited for before anything reads them."""
    return (
        isinstance(op, torch._ops.OpOverload)
        and op.namespace in PENDING
        and op._opname != "wait_tensor"
    )


def is_wait(node):
    """Returns True for a node that waits for a collective."""
    return is_collective(node) and node.target._opname == "wait_tensor"


def starts(node):
    """Returns True for a node that starts a collective."""
    return is_collective(node) and not is_wait(node)


def _is_mutable(node):
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def sink_waits(graph):
    """Moves each wait to the first operation that uses its result.

    It stays before operations that change tensors, one of which the collective may read.
    """
    for wait in [node for node in graph.nodes if is_wait(node)]:
        node = wait.next
        while wait not in node.all_input_nodes and node.op != "output" and not _is_mutable(node):
            node = node.next
        if node is not wait.next:
            node.prepend(wait)


def _is_result(node):
    """Returns True for a result of a kernel, which has memory of its own."""
    return node.target is operator.getitem and isinstance(node.args[0].target, GroupTarget)


def in_place(node):
    """Returns the form of a collective that writes over its operands, or None.

    Kernels are in the graph already. An operand must be the result of one, and have no other
    reader: the graph's inputs, constants and outputs stay as they are.
    """
    if not starts(node) or node.target._opname not in IN_PLACE:
        return None
    operands = node.args[0] if isinstance(node.args[0], (list, tuple)) else [node.args[0]]
    free = len(set(operands)) == len(operands) and all(
        _is_result(operand) and len(operand.users) == 1 and tensor_of(operand).is_contiguous()
        for operand in operands
    )
    if not free:
        return None
    return getattr(torch.ops._c10d_functional, f"{node.target._opname}_").default
