# SPDX-License-Identifier: MIT
"""Groups whose sizes are symbols, with one bundle for each size.

Programs of the card have fixed sizes. A new size shall compile neither Python nor the graph
anew, so the wrapper holds such a group as text, in which sizes that are expressions of symbols
are numbered parameters. A call passes their values; the group is partitioned again as a graph
of fixed sizes when values are new.
"""

import json
import operator

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from .bundle import settings
from .hint import notes_of
from .propagate_named_dims import DIMS
from .views import tensor_of, view_of

aten = torch.ops.aten
#: Key of a node's meta for a placement that the partition must not choose.
PLACED = "spyre_placed"
#: Key of a node's meta, set if the operation runs eagerly in the present partition.
EAGER = "spyre_eager"
#: Number of sizes for which a group keeps kernels; the oldest is dropped first.
MAX_SIZES = 64


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
            }
        )

    def placement(self, node):
        """Encodes the placement of a node's tensor."""
        from .placement import placing

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
            return {key: self.encode(item) for key, item in value.items()}
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
                if tensor["dims"]:
                    placeholder.meta[DIMS] = tuple(tensor["dims"])
            for node in specification["nodes"]:
                args, kwargs = self.decode(node["args"]), self.decode(node["kwargs"])
                target = target_of(node["op"])
                made = self.graph.call_function(target, tuple(args), kwargs)
                self.meta(made, node["val"], node["placed"])
                made.meta["custom"] = node["notes"]
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
        if "dtype" in value and len(value) == 1:
            return getattr(torch, value["dtype"])
        if "device" in value and len(value) == 1:
            return torch.device(value["device"])
        if "torch" in value:
            return getattr(torch, value["torch"])
        return {key: self.decode(item) for key, item in value.items()}


def target_of(name):
    """Returns the callee of a node from its name: namespace, operation and overload."""
    if name == "getitem":
        return operator.getitem
    target = torch.ops
    for part in name.split("."):
        target = getattr(target, part)
    return target


def as_planned(value, planned):
    """Returns the result of an eager operation with the strides that the graph expects."""
    from .kernel import laid_out

    if isinstance(value, (tuple, list)):
        return [as_planned(*pair) for pair in zip(value, planned)]
    if not isinstance(value, torch.Tensor) or value.device.type != "spyre":
        return value
    return laid_out(value, tuple(planned.shape), tuple(planned.stride()))


class Steps:
    """A graph after the pass, which can be called with its tensors."""

    def __init__(self, graph):
        from .kernel import group
        from .lowering import GroupTarget

        self.inputs = [n for n in graph.nodes if n.op == "placeholder"]
        self.output = graph.output_node().args[0]
        self.steps = []
        for node in graph.nodes:
            if node.op != "call_function":
                continue
            function = node.target
            if isinstance(function, GroupTarget):
                function = group(function.specification)
            self.steps.append((node, function))

    def direct(self):
        """Returns (kernel, inputs) if the graph is a single kernel, else None."""
        (node, kernel), *rest = self.steps
        results = [n for n, _ in rest]
        alone = all(n.target is operator.getitem and n.args[0] is node for n in results)
        if not alone or [n.args[1] for n in self.output] != list(range(len(self.output))):
            return None
        return kernel, [self.inputs.index(n) for n in node.args]

    def __call__(self, *tensors):
        """Runs the steps in order and returns the outputs of the graph."""
        from .lowering import EagerTarget

        values = dict(zip(self.inputs, tensors))
        for node, function in self.steps:
            eager = isinstance(node.target, EagerTarget)
            args = torch.fx.map_arg(node.args, values.__getitem__)
            kwargs = torch.fx.map_arg(node.kwargs, values.__getitem__)
            value = function(*args, **kwargs)
            values[node] = as_planned(value, node.meta.get("val")) if eager else value
        return tuple(values[n] for n in self.output)


class DynamicGroup:
    """The callee of the wrapper: holds kernels by the values of their parameters."""

    def __init__(self, specification):
        self.specification = specification
        self.name = specification["name"]
        self.kernels = {}

    def make(self, values):
        """Compiles the group for new values and caches (kernel, indices of its inputs)."""
        from .graph_pass import divide
        from .report import first_use

        first_use(self.name, values)
        graph = Reader(self.specification, values).graph
        # prepare() is not repeated, because it could change the layout of results.
        divide(torch.fx.GraphModule({}, graph), self.name)
        steps = Steps(graph)
        made = steps.direct() or (steps, list(range(len(steps.inputs))))
        while len(self.kernels) >= MAX_SIZES:
            self.kernels.pop(next(iter(self.kernels)), None)
        self.kernels[values] = made
        return made

    def __call__(self, *args):
        """Runs the kernel for the parameters that follow the inputs, and makes it if it is new."""
        first = len(args) - self.specification["parameters"]
        values = args[first:]
        kernel, inputs = self.kernels.get(values) or self.make(values)
        return kernel(*[args[i] for i in inputs])
