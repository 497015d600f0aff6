# SPDX-License-Identifier: MIT
"""Numbers that may change from call to call, as host tensors without dims.

A float argument of a compiled function becomes such a tensor when its value changes (learning
rates, steps of optimisers). As an operand of one element on the card it costs one copy instead
of a kernel for each value. The results equal those of a constant, since both are first rounded
to fp32. Numbers of integer operations stay on the host.
"""

import torch

from .origins import derive
from .rules import RULES
from .views import on_card, tensor_of

aten = torch.ops.aten
prims = torch.ops.prims
CONVERSIONS = (prims.convert_element_type.default, aten._to_copy.default)


def is_number(node):
    """Returns True for a host tensor without dims that holds a real number."""
    value = tensor_of(node)
    return (
        value is not None
        and value.device.type == "cpu"
        and value.dim() == 0
        and value.dtype not in (torch.bool, torch.complex64, torch.complex128)
    )


def computes_in_floats(node, number):
    """Returns True unless @node uses @number as an integer, of which fp32 would keep 24 bits.

    Such a node runs eagerly instead: a number of int64 may need more bits than the card has.
    """
    if tensor_of(number).dtype.is_floating_point:
        return True
    if node.target is aten.index.Tensor:
        return False
    values = map(tensor_of, (node, *node.all_input_nodes))
    return any(value is not None and value.dtype.is_floating_point for value in values)


def unconverted(node):
    """Returns the node of a number before its rounding to fp32."""
    while (
        node.target in CONVERSIONS
        and tensor_of(node).dtype == torch.float32
        and is_number(node.args[0])
    ):
        node = node.args[0]
    return node


def to_card(graph, node, device):
    """Adds a copy of a number to a card, in fp32."""
    after = node if node.op != "placeholder" else last_placeholder(graph)
    kwargs = {"dtype": torch.float32, "device": device}
    with graph.inserting_after(after):
        moved = graph.call_function(aten._to_copy.default, (node,), kwargs)
    moved.meta["val"] = aten._to_copy.default(tensor_of(node), **kwargs)
    derive("scalars", moved, node)
    return moved


def last_placeholder(graph):
    """Returns the graph's last placeholder."""
    return [node for node in graph.nodes if node.op == "placeholder"][-1]


def scalars(graph):
    """Copies numbers that kernels read to the card."""
    moved = {}
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target not in RULES or not on_card(node):
            continue
        if node.target in CONVERSIONS:
            continue
        for number in filter(is_number, node.all_input_nodes):
            if not computes_in_floats(node, number):
                continue
            value = node.meta["val"]
            device = (value[0] if isinstance(value, (tuple, list)) else value).device
            source = unconverted(number)
            if (source, device) not in moved:
                moved[source, device] = to_card(graph, source, device)
            node.replace_input_with(number, moved[source, device])
    graph.eliminate_dead_code()
