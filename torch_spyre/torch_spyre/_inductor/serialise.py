# SPDX-License-Identifier: MIT
"""Groups as text, in which sizes that are expressions of symbols are numbered parameters."""

import json
import operator

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from .bundle import settings
from .hint import notes_of
from .layouts import LAYOUT, decoded, encoded
from .placement import PLACED, placing
from .propagate_named_dims import DIMS
from .provenance import wanted
from .views import tensor_of, view_of

aten = torch.ops.aten


class Writer:
    """Serialises a group: numbers its nodes, first the inputs, then the operations."""

    def __init__(self, group):
        self.group = group
        self.parameters, self.number = [], {}
        self.inputs, self.bases, self.nodes = [], [], []
        for node in group.nodes:
            for source in node.all_input_nodes:
                self.base(source)
        for node in group.nodes:
            self.node(node)

    def base(self, node):
        """Numbers the tensor that an operation reads, if it comes from outside of the group."""
        if tensor_of(node) is None:
            return
        base = view_of(node).base
        inside = base.args[0] if base.target is operator.getitem else base
        if inside not in self.group.values and base not in self.number:
            self.number[base] = len(self.bases)
            self.bases.append(base)
            self.inputs.append(
                {
                    **self.tensor(tensor_of(base)),
                    "placed": self.placement(base),
                    "layout": encoded(base.meta.get(LAYOUT)),
                    "dims": base.meta.get(DIMS),
                }
            )

    def node(self, node):
        """Adds an operation and, for several results, their getitem nodes."""
        self.add(node, node.args, node.kwargs, str(node.target))
        for user in node.users:
            if user.target is operator.getitem:
                self.add(user, user.args, {}, "getitem")

    def add(self, node, args, kwargs, op):
        """Numbers a node and appends its operation, arguments, results, placement and notes."""
        value = node.meta["val"]
        several = isinstance(value, (tuple, list))
        self.number[node] = len(self.bases) + len(self.nodes)
        self.nodes.append(
            {
                "op": op,
                "args": self.encode(args),
                "kwargs": self.encode(kwargs),
                "val": [self.tensor(v) for v in value] if several else self.tensor(value),
                "placed": None if several else self.placement(node),
                "notes": notes_of(node),
                **({"origin": self.origin(node)} if wanted() else {}),
            }
        )

    def origin(self, node):
        """Encodes the line and the operation of the model from which a node stems."""
        op = node.meta.get("original_aten")
        known = isinstance(op, torch._ops.OpOverload)
        return {"stack_trace": node.stack_trace, "original_aten": str(op) if known else None}

    def placement(self, node):
        """Encodes the placement of a node's tensor."""
        return self.encode(list(placing(node)))

    def tensor(self, value):
        """Encodes size, stride, dtype and device of a tensor; None stays None."""
        return value if value is None else {
            "size": self.encode(list(value.shape)),
            "stride": self.encode(list(value.stride())),
            "dtype": str(value.dtype).removeprefix("torch."),
            "device": str(value.device),
        }

    def symbol(self, value):
        """Encodes a size as a number, or as the index of a parameter of the call."""
        if value.node.expr.is_number:
            return int(value)
        known = [p.node.expr for p in self.parameters]
        if value.node.expr not in known:
            self.parameters.append(value)
            return {"parameter": len(known)}
        return {"parameter": known.index(value.node.expr)}

    def encode(self, value):
        """Encodes an argument for JSON."""
        if isinstance(value, torch.fx.Node):
            return self.reference(value)
        if isinstance(value, torch.SymInt):
            return self.symbol(value)
        if isinstance(value, (list, tuple)):
            return [self.encode(item) for item in value]
        if isinstance(value, dict):
            # In an object of its own: arguments can be called dtype, as other objects are.
            return {"items": {key: self.encode(item) for key, item in value.items()}}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, (torch.layout, torch.memory_format)):
            return {"torch": str(value).removeprefix("torch.")}
        return value

    def reference(self, node):
        """Encodes a node as an argument: its number, or that of its base with the view."""
        if tensor_of(node) is None:
            value = node.meta["val"]
            return {"node": self.number[node]} if node in self.number else self.encode(value)
        base = view_of(node).base
        if base is node:
            return {"node": self.number[node]}
        value, whole = tensor_of(node), tensor_of(base)
        offset = value.storage_offset() - whole.storage_offset()
        return {
            "node": self.number[base],
            "view": self.encode([list(value.shape), list(value.stride()), offset]),
        }


def serialised(group, name, outputs):
    """Returns (text, parameters, inputs) of a group, None if none of its sizes are symbols."""
    writer = Writer(group)
    if not writer.parameters:
        return None
    text = json.dumps(
        {
            "name": name,
            "settings": settings(),
            "parameters": len(writer.parameters),
            "inputs": writer.inputs,
            "nodes": writer.nodes,
            "outputs": [writer.number[node] for node in outputs],
        }
    )
    return text, writer.parameters, writer.bases


class Reader:
    """Rebuilds the graph of a group for values of its parameters."""

    def __init__(self, specification, values):
        self.values = values
        self.graph, self.made, self.views = torch.fx.Graph(), [], {}
        with FakeTensorMode():
            for i, tensor in enumerate(specification["inputs"]):
                placeholder = self.graph.placeholder(f"input_{i}")
                self.meta(placeholder, tensor, tensor["placed"])
                layout = decoded(tensor["layout"], getattr(torch, tensor["dtype"]))
                if layout:
                    placeholder.meta[LAYOUT] = layout
                if tensor["dims"]:
                    placeholder.meta[DIMS] = tuple(tensor["dims"])
            for node in specification["nodes"]:
                args, kwargs = self.decode(node["args"]), self.decode(node["kwargs"])
                target = target_of(node["op"])
                made = self.graph.call_function(target, tuple(args), kwargs)
                self.meta(made, node["val"], node["placed"])
                made.meta["custom"] = node["notes"]
                if origin := node.get("origin"):
                    made.meta["stack_trace"] = origin["stack_trace"]
                    made.meta["original_aten"] = (
                        origin["original_aten"] and target_of(origin["original_aten"])
                    )
        self.graph.output(tuple(self.made[i] for i in specification["outputs"]))

    def meta(self, node, value, placed):
        """Sets the fake tensors and the placement of a node, which gets the next number."""
        several = isinstance(value, list)
        node.meta["val"] = [self.tensor(v) for v in value] if several else self.tensor(value)
        if placed is not None:
            node.meta[PLACED] = self.decode(placed)
        self.made.append(node)

    def tensor(self, value):
        """Makes the fake tensor that Writer.tensor() has encoded."""
        return None if value is None else torch.empty_strided(
            self.decode(value["size"]),
            self.decode(value["stride"]),
            dtype=getattr(torch, value["dtype"]),
            device=value["device"],
        )

    def view(self, number, view):
        """Returns the node of a view of node @number; equal views share a node."""
        key = (number, repr(view))
        if key not in self.views:
            base = self.made[number]
            self.views[key] = self.graph.call_function(aten.as_strided.default, (base, *view))
            self.views[key].meta["val"] = base.meta["val"].as_strided(*view)
        return self.views[key]

    def decode(self, value):
        """Decodes what Writer.encode() has encoded."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "node" in value:
            if "view" in value:
                return self.view(value["node"], self.decode(value["view"]))
            return self.made[value["node"]]
        if "parameter" in value:
            return self.values[value["parameter"]]
        if "dtype" in value:
            return getattr(torch, value["dtype"])
        if "device" in value:
            return torch.device(value["device"])
        if "torch" in value:
            return getattr(torch, value["torch"])
        return {key: self.decode(item) for key, item in value["items"].items()}


def target_of(name):
    """Returns the callee of a node from its name: namespace, operation and overload."""
    if name == "getitem":
        return operator.getitem
    target = torch.ops
    for part in name.split("."):
        target = getattr(target, part)
    return target
