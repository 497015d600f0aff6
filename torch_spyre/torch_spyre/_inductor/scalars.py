# SPDX-License-Identifier: MIT
"""Numbers that may change from call to call: tensors of the host without dims.

A float argument of a compiled function is one once it has changed (learning
rates, steps of optimisers). As an operand of one element on the card it costs a
copy, and no kernel for each value. Its bits are those of a constant: both are
rounded to fp32 first.
"""

import torch

from .rules import RULES
from .views import on_card, tensor_of

aten = torch.ops.aten
prims = torch.ops.prims
CONVERSIONS = (prims.convert_element_type.default, aten._to_copy.default)


def is_number(node):
    value = tensor_of(node)
    return (
        value is not None
        and value.device.type == "cpu"
        and value.dim() == 0
        and value.dtype not in (torch.bool, torch.complex64, torch.complex128)
    )


def unconverted(node):
    """What a number is before it was rounded to fp32."""
    while (
        node.target in CONVERSIONS
        and tensor_of(node).dtype == torch.float32
        and is_number(node.args[0])
    ):
        node = node.args[0]
    return node


def to_card(graph, node, device):
    after = node if node.op != "placeholder" else last_placeholder(graph)
    kwargs = {"dtype": torch.float32, "device": device}
    with graph.inserting_after(after):
        moved = graph.call_function(aten._to_copy.default, (node,), kwargs)
    moved.meta["val"] = aten._to_copy.default(tensor_of(node), **kwargs)
    return moved


def last_placeholder(graph):
    return [node for node in graph.nodes if node.op == "placeholder"][-1]


def scalars(graph):
    """Moves numbers to the card where its kernels read them."""
    moved = {}
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target not in RULES or not on_card(node):
            continue
        if node.target in CONVERSIONS:
            continue
        for number in filter(is_number, node.all_input_nodes):
            value = node.meta["val"]
            device = (value[0] if isinstance(value, (tuple, list)) else value).device
            source = unconverted(number)
            if (source, device) not in moved:
                moved[source, device] = to_card(graph, source, device)
            node.replace_input_with(number, moved[source, device])
    graph.eliminate_dead_code()
