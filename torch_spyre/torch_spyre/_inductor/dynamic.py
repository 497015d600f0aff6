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

from . import provenance
from .graph_pass import divide
from .kernel import group, laid_out
from .lowering import EagerTarget, GroupTarget
from .report import first_use
from .serialise import Reader

#: Number of sizes for which a group keeps kernels; the oldest is dropped first.
MAX_SIZES = 64


def as_planned(value, planned):
    """Returns the result of an eager operation with the strides that the graph expects."""
    if isinstance(value, (tuple, list)):
        return [as_planned(*pair) for pair in zip(value, planned)]
    if not isinstance(value, torch.Tensor) or value.device.type != "spyre":
        return value
    return laid_out(value, tuple(planned.shape), tuple(planned.stride()))


class Steps:
    """A graph after the pass, which can be called with its tensors."""

    def __init__(self, graph):
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
        self.specification = json.loads(specification)
        self.name = self.specification["name"]
        self.kernels = {}

    def make(self, values):
        """Compiles the group for new values and caches (kernel, indices of its inputs)."""
        first_use(self.name, values)
        graph = Reader(self.specification, values).graph
        # prepare() is not repeated, because it could change the layout of results.
        divide(torch.fx.GraphModule({}, graph), self.name)
        self.publish(graph)
        steps = Steps(graph)
        made = steps.direct() or (steps, list(range(len(steps.inputs))))
        while len(self.kernels) >= MAX_SIZES:
            self.kernels.pop(next(iter(self.kernels)), None)
        self.kernels[values] = made
        return made

    def publish(self, graph):
        """Adds the kernels of new sizes to the side file of provenance."""
        targets = [n.target for n in graph.nodes if isinstance(n.target, GroupTarget)]
        known = [(t.__name__, t.directory, t.origin) for t in targets if t.origin]
        if known:
            provenance.publish(json.dumps(provenance.document(known)))

    def __call__(self, *args):
        """Runs the kernel for the parameters that follow the inputs, and makes it if it is new."""
        first = len(args) - self.specification["parameters"]
        values = args[first:]
        kernel, inputs = self.kernels.get(values) or self.make(values)
        return kernel(*[args[i] for i in inputs])
