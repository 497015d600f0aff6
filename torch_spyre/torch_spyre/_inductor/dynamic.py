# SPDX-License-Identifier: MIT
"""Groups whose sizes are symbols: one bundle for each size that is met.

Programs of the card have fixed sizes. So that another size compiles neither
Python nor the graph anew, the wrapper holds such a group as text, with a number
for every size that is an expression of symbols. Its call is given their values;
values that are met first go through the partition as a graph of their own.
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
#: Where a node's placement is written, if it is not for the partition to choose.
PLACED = "spyre_placed"
#: Sizes for which a group keeps kernels; those that were met first go first.
MOST_SIZES = 64


class Writer:
    """A group as text: nodes by number, first what it reads, then what it computes."""

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
                    "placed": self.placed(base),
                    "dims": base.meta.get(DIMS),
                }
            )

    def node(self, node):
        self.add(node, node.args, node.kwargs, str(node.target))
        for user in node.users:
            if user.target is operator.getitem:
                self.add(user, user.args, {}, "getitem")

    def add(self, node, args, kwargs, op):
        value = node.meta["val"]
        several = isinstance(value, (tuple, list))
        self.number[node] = len(self.bases) + len(self.nodes)
        self.nodes.append(
            {
                "op": op,
                "args": self.any(args),
                "kwargs": self.any(kwargs),
                "val": [self.tensor(v) for v in value] if several else self.tensor(value),
                "placed": None if several else self.placed(node),
                "notes": notes_of(node),
            }
        )

    def placed(self, node):
        from .placement import placing

        return self.any(list(placing(node)))

    def tensor(self, value):
        return value if value is None else {
            "size": self.any(list(value.shape)),
            "stride": self.any(list(value.stride())),
            "dtype": str(value.dtype).removeprefix("torch."),
            "device": str(value.device),
        }

    def symbol(self, value):
        """A size: a number, or the place of one that the call is given."""
        if value.node.expr.is_number:
            return int(value)
        known = [p.node.expr for p in self.parameters]
        if value.node.expr not in known:
            self.parameters.append(value)
            return {"parameter": len(known)}
        return {"parameter": known.index(value.node.expr)}

    def any(self, value):
        """An argument as JSON has it."""
        if isinstance(value, torch.fx.Node):
            return self.reference(value)
        if isinstance(value, torch.SymInt):
            return self.symbol(value)
        if isinstance(value, (list, tuple)):
            return [self.any(item) for item in value]
        if isinstance(value, dict):
            return {key: self.any(item) for key, item in value.items()}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, (torch.layout, torch.memory_format)):
            return {"torch": str(value).removeprefix("torch.")}
        return value

    def reference(self, node):
        if tensor_of(node) is None:
            value = node.meta["val"]
            return {"node": self.number[node]} if node in self.number else self.any(value)
        base = view_of(node).base
        if base is node:
            return {"node": self.number[node]}
        value, whole = tensor_of(node), tensor_of(base)
        offset = value.storage_offset() - whole.storage_offset()
        return {
            "node": self.number[base],
            "view": self.any([list(value.shape), list(value.stride()), offset]),
        }


def written(group, name, outputs):
    """(text, parameters, inputs) of a group with sizes that are symbols; None if it has none."""
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
    """The graph of a group for the values of its parameters."""

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
                args, kwargs = self.any(node["args"]), self.any(node["kwargs"])
                target = target_of(node["op"])
                made = self.graph.call_function(target, tuple(args), kwargs)
                self.meta(made, node["val"], node["placed"])
                made.meta["custom"] = node["notes"]
        self.graph.output(tuple(self.made[i] for i in specification["outputs"]))

    def meta(self, node, value, placed):
        several = isinstance(value, list)
        node.meta["val"] = [self.tensor(v) for v in value] if several else self.tensor(value)
        if placed is not None:
            node.meta[PLACED] = self.any(placed)
        self.made.append(node)

    def tensor(self, value):
        return None if value is None else torch.empty_strided(
            self.any(value["size"]),
            self.any(value["stride"]),
            dtype=getattr(torch, value["dtype"]),
            device=value["device"],
        )

    def view(self, number, view):
        key = (number, repr(view))
        if key not in self.views:
            base = self.made[number]
            self.views[key] = self.graph.call_function(aten.as_strided.default, (base, *view))
            self.views[key].meta["val"] = base.meta["val"].as_strided(*view)
        return self.views[key]

    def any(self, value):
        if isinstance(value, list):
            return [self.any(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "node" in value:
            if "view" in value:
                return self.view(value["node"], self.any(value["view"]))
            return self.made[value["node"]]
        if "parameter" in value:
            return self.values[value["parameter"]]
        if "dtype" in value and len(value) == 1:
            return getattr(torch, value["dtype"])
        if "device" in value and len(value) == 1:
            return torch.device(value["device"])
        if "torch" in value:
            return getattr(torch, value["torch"])
        return {key: self.any(item) for key, item in value.items()}


def target_of(name):
    """The callee that a node names: namespace, operation and overload."""
    if name == "getitem":
        return operator.getitem
    target = torch.ops
    for part in name.split("."):
        target = getattr(target, part)
    return target


def as_planned(value, planned):
    """What an eager operation returned, with the strides that the graph has for it."""
    from .kernel import laid_out

    if isinstance(value, (tuple, list)):
        return [as_planned(*pair) for pair in zip(value, planned)]
    if not isinstance(value, torch.Tensor) or value.device.type != "spyre":
        return value
    return laid_out(value, tuple(planned.shape), tuple(planned.stride()))


class Steps:
    """A graph behind the pass, ready to be called with its tensors."""

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
        """The one kernel of a graph that is no more than that, and its inputs; else None."""
        (node, kernel), *rest = self.steps
        results = [n for n, _ in rest]
        alone = all(n.target is operator.getitem and n.args[0] is node for n in results)
        if not alone or [n.args[1] for n in self.output] != list(range(len(self.output))):
            return None
        return kernel, [self.inputs.index(n) for n in node.args]

    def __call__(self, *tensors):
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
    """What the wrapper calls: kernels by the values of their parameters."""

    def __init__(self, specification):
        self.specification = specification
        self.name = specification["name"]
        self.kernels = {}

    def make(self, values):
        from .graph_pass import divide
        from .report import met

        met(self.name, values)
        graph = Reader(self.specification, values).graph
        # How results lie is settled: the passes that change it have had their turn.
        divide(torch.fx.GraphModule({}, graph), self.name)
        steps = Steps(graph)
        made = steps.direct() or (steps, list(range(len(steps.inputs))))
        while len(self.kernels) >= MOST_SIZES:
            self.kernels.pop(next(iter(self.kernels)), None)
        self.kernels[values] = made
        return made

    def __call__(self, *args):
        first = len(args) - self.specification["parameters"]
        values = args[first:]
        kernel, inputs = self.kernels.get(values) or self.make(values)
        return kernel(*[args[i] for i in inputs])
