# SPDX-License-Identifier: MIT
"""Functional collectives in a graph, which run on streams of their group between kernels.

A collective starts when its operands are computed. Operations that do not depend on it are
computed meanwhile, in a kernel of their own, because the current stream waits for its result
only at the first operation that uses it.
"""

import torch

#: Namespaces of the collectives of torch.distributed.
NAMESPACES = "_c10d_functional", "_c10d_functional_autograd", "_dtensor"


def is_collective(node):
    """Returns True for a node that starts a collective or waits for one."""
    target = node.target
    return isinstance(target, torch._ops.OpOverload) and target.namespace in NAMESPACES


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
