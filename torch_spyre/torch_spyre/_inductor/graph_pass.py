# SPDX-License-Identifier: MIT
"""The pass over a graph that Inductor is about to lower."""

import operator

import torch

from ..inductor import log
from . import report
from .dynamic import PLACED
from .emit import as_refusal
from .finish import finish, results
from .foreach import foreach
from .heads import side_by_side
from .hint import HintError, name_inputs
from .lowering import ConstantTarget, EagerTarget, GroupTarget, ViewTarget
from .partition import MOST_OPS, Partition
from .placement import put_apart
from .scalars import scalars
from .unflatten import unflatten
from .views import on_card, tensor_of, view_of


def is_number(node):
    """Sizes and the like, which Inductor computes itself."""
    return not isinstance(node.meta.get("val"), (torch.Tensor, tuple, list))


def plan(graph, name):
    """The partition of a graph, and the kernels of its groups in order."""
    banned, most = {}, MOST_OPS
    while True:
        partition = Partition(graph, banned, most)
        kernels = []
        for level in sorted(partition.groups):
            group = partition.groups[level]
            try:
                if results(group):
                    kernels.append(finish(group, f"{name}_{level}"))
            except HintError:
                raise
            except Exception as error:
                refusal = as_refusal(error, f"group {level}")
                node = refusal.node or group.nodes[0]
                if refusal.node and put_apart(node):
                    log.debug("%s: %s; each element in a stick of its own instead", node, refusal)
                elif refusal.node or len(group.nodes) == 1:
                    node.meta.pop(PLACED, None)
                    node = node.args[0] if node.target is operator.getitem else node
                    banned[node] = str(refusal)
                else:
                    most = min(most, len(group.program.records)) // 2
                    log.debug("%s; groups of %d operations instead", refusal, most)
                break
        else:
            return partition, kernels


class Rewrite:
    """Kernels, views and eager operations in the place of the operations of ATen.

    The order is that of the levels, in each first the eager operations, then
    the kernel, then views of its results.
    """

    def __init__(self, graph, partition, kernels):
        self.graph, self.partition = graph, partition
        self.key = {
            node: (partition.level[node], 0 if view_of_eager(partition, node) else 2)
            for node in graph.nodes
        }
        self.replaced = {}
        for kernel in kernels:
            self.insert(kernel)
        self.clear()
        self.views()
        self.clear()
        self.sort()
        self.eager()

    def clear(self):
        """Takes away what nobody reads any more; nodes are in no order yet."""
        dead = [n for n in self.graph.nodes if not n.users and not n.is_impure()]
        while dead:
            node = dead.pop()
            inputs = node.all_input_nodes
            self.graph.erase_node(node)
            dead.extend(n for n in inputs if not n.users and not n.is_impure())

    def end(self):
        return self.graph.inserting_before(self.graph.output_node())

    def insert(self, kernel):
        """The node of a kernel, and its results in the place of the nodes that it computes."""
        values = [tensor_of(node) for node in kernel.outputs]
        outputs = [(v.device, v.dtype, tuple(v.shape), tuple(v.stride())) for v in values]
        target = GroupTarget(kernel, outputs)
        inputs = tuple(self.replaced.get(node, node) for node in kernel.inputs)
        with self.end():
            call = self.graph.create_node("call_function", target, inputs)
        call.meta["val"] = values
        self.key[call] = (kernel.group.level, 1)
        for i, node in enumerate(kernel.outputs):
            with self.end():
                result = self.graph.call_function(operator.getitem, (call, i))
            result.meta.update(node.meta)
            self.key[result] = self.key[call]
            self.replaced[node] = result
            node.replace_all_uses_with(result)

    def views(self):
        """Each view as one of the tensor that holds it, however many lie between them.

        All are looked up first: a view that has been replaced is no longer seen through.
        A view of a kernel's result stands behind the kernel, any other before it.
        """
        nodes = [n for n in self.graph.nodes if tensor_of(n) is not None and on_card(n)]
        for node, view in [(node, view_of(node)) for node in nodes if node.users]:
            if view.base is node:
                continue
            value = tensor_of(node)
            offset = value.storage_offset() - tensor_of(view.base).storage_offset()
            target = ViewTarget(tuple(value.shape), tuple(value.stride()), offset)
            with self.graph.inserting_before(node):
                seen = self.graph.call_function(target, (view.base,))
            seen.meta.update(node.meta)
            level, order = self.key[view.base]
            self.key[seen] = (level, 2 if order else 0)
            node.replace_all_uses_with(seen)

    def sort(self):
        """Nodes by level; placeholders stay in front, the output behind."""
        nodes = [n for n in self.graph.nodes if n.op not in ("placeholder", "output")]
        previous = self.graph.output_node()
        for node in reversed(sorted(nodes, key=self.key.__getitem__)):
            previous.prepend(node)
            previous = node

    def eager(self):
        for node in self.graph.nodes:
            if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
                continue
            if is_number(node):
                continue
            if on_card(node) or any(on_card(n) for n in node.all_input_nodes):
                node.target = EagerTarget(node.target)


def view_of_eager(partition, node):
    """Whether a node runs before its level's kernel."""
    if tensor_of(node) is None:
        return True
    return not partition.grouped(view_of(node).base)


def constants(gm):
    """Tensors of the card that the graph holds become calls, which lower themselves."""
    for node in list(gm.graph.nodes):
        if node.op != "get_attr" or tensor_of(node) is None or not on_card(node):
            continue
        target = ConstantTarget(node.name, operator.attrgetter(node.target)(gm), tensor_of(node))
        with gm.graph.inserting_before(node):
            constant = gm.graph.call_function(target)
        constant.meta.update(node.meta)
        node.replace_all_uses_with(constant)
        gm.graph.erase_node(node)


def prepare(graph):
    """What makes groups larger; the graph computes the same without it."""
    foreach(graph)
    scalars(graph)
    unflatten(graph)
    side_by_side(graph)
    name_inputs(graph)


def run(gm):
    """The pass over the graph of a model.

    A defect of the pass is no reason for a program to fail: all of it then runs eagerly.
    """
    constants(gm)
    before = copied(gm.graph)
    try:
        prepare(gm.graph)
        divide(gm)
    except HintError:
        raise
    except Exception:
        log.debug("the whole graph runs eagerly, as the pass over it failed", exc_info=True)
        gm.graph = before
        rewrite(gm, *nothing(gm.graph))


def copied(graph):
    copy = torch.fx.Graph(graph.owning_module)
    copy.output(copy.graph_copy(graph, {}))
    copy.output_node().meta.update(graph.output_node().meta)
    return copy


def nothing(graph):
    """The partition of a graph that has no kernel."""
    return Partition(graph, dict.fromkeys(graph.nodes, "no kernel could be made")), []


def divide(gm, name="spyre"):
    """Kernels in the place of the operations that they compute."""
    try:
        partition, kernels = plan(gm.graph, name)
    except HintError:
        raise
    except Exception:
        log.debug("%s: no kernels, as planning them failed", name, exc_info=True)
        partition, kernels = nothing(gm.graph)
    rewrite(gm, partition, kernels)


def rewrite(gm, partition, kernels):
    report.report(gm.graph, partition, kernels)
    partition.hints.say(gm.graph)
    Rewrite(gm.graph, partition, kernels)
    gm.graph.lint()
    gm.recompile()
