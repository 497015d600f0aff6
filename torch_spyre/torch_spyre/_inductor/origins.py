# SPDX-License-Identifier: MIT
"""Origins of the nodes that passes make: nodes and lines of the model.

Inductor's provenance tracking follows meta["from_node"] from the graph after its passes back to
the graph before them. A node of ours that lacks it would end that path.
"""

import torch
from torch.fx.traceback import NodeSource, NodeSourceAction

from .views import source, tensor_of, view_of

#: Prefix of the names of this package's passes in meta["from_node"].
PREFIX = "spyre."
#: Most operations in the name of a kernel.
MAX_NAMES = 6
#: What a node has from the one that it replaces.
KEPT = ("stack_trace", "original_aten", "nn_module_stack")


def derive(by, new, *old):
    """Makes @old the origins of @new, which the pass called @by makes instead of them."""
    for key in KEPT:
        known = [node.meta[key] for node in old if node.meta.get(key)]
        if known:
            new.meta[key] = known[-1]
    new.meta["from_node"] = [NodeSource(n, PREFIX + by, NodeSourceAction.CREATE) for n in old]


def views_read(node):
    """Returns the views that lie between a node and the tensors that it reads, these first."""
    found = []
    for view in node.all_input_nodes:
        chain = []
        while tensor_of(view) is not None and view_of(view).base is not view:
            chain.append(view)
            view = source(view)
        found += reversed(chain)
    return list(dict.fromkeys(found))


def taken_in(group):
    """Returns the nodes of a group, each after the views that it reads."""
    return list(dict.fromkeys(n for node in group.nodes for n in (*views_read(node), node)))


def stack_traces(nodes):
    """Returns the stack traces of nodes, each once, in the order of the nodes."""
    return list(dict.fromkeys(n.stack_trace for n in nodes if n.stack_trace))


def aten_op(node):
    """Returns the operation of the model that a node stems from, such as "aten.gelu"."""
    op = node.meta.get("original_aten") or node.target
    if isinstance(op, torch._ops.OpOverload):
        return str(op.overloadpacket)
    return op.name() if isinstance(op, torch._ops.HigherOrderOperator) else str(op)


def aten_ops(nodes):
    """Returns the operations of the model that nodes other than views stem from, each once."""
    return list(dict.fromkeys(aten_op(n) for n in nodes if source(n) is None))


def source_names(nodes):
    """Returns the names of the nodes from which AOTAutograd made @nodes, each once."""
    first = (node.meta.get("from_node") or [None] for node in nodes)
    return list(dict.fromkeys(sources[0].name for sources in first if sources[0]))


def title(ops):
    """Returns the name of a kernel in traces, which has its first operations."""
    return "+".join(ops[:MAX_NAMES]) + ("+..." if len(ops) > MAX_NAMES else "")
