# SPDX-License-Identifier: MIT
"""The pass over a graph before Inductor lowers it."""

import operator

import torch

from ..inductor import log
from . import report
from .attention import share_keys
from .collectives import in_place, sink_waits
from .dump import Dump, DumpError
from .emit import as_refusal
from .finish import finish, results
from .folding import returns
from .foreach import foreach
from .heads import side_by_side
from .hint import HintError, name_inputs
from .layouts import place_inputs
from .lowering import ConstantTarget, EagerTarget, GroupTarget, InPlaceTarget, ViewTarget
from .origins import derive
from .partition import Partition
from .placement import PLACED, use_sparse_sticks
from .scalars import scalars
from .unflatten import unflatten
from .views import on_card, tensor_of, view_of


def is_number(node):
    """Returns True for sizes and other numbers, which Inductor computes itself."""
    return not isinstance(node.meta.get("val"), (torch.Tensor, tuple, list))


def plan(graph, name):
    """Returns the partition of a graph, and the CompiledGroups of its groups in order.

    A refusal bans an operation or makes groups smaller, from the refused group on.
    """
    partition, kernels, done = Partition(graph), [], -1
    while (level := partition.next_group(done)) is not None:
        group = partition.groups[level]
        try:
            if results(group):
                kernels.append(finish(group, f"{name}_{level}"))
        except HintError:
            raise
        except Exception as error:
            revise(partition, group, as_refusal(error, f"group {level}"))
        else:
            done = level
    return partition, kernels


def revise(partition, group, refusal):
    """Partitions the graph from a refused group on, without what was refused."""
    node = refusal.node or group.nodes[0]
    if refusal.node and use_sparse_sticks(node):
        log.debug("%s: %s; trying one element per stick", node, refusal)
    elif refusal.node or len(group.nodes) == 1:
        node.meta.pop(PLACED, None)
        node = node.args[0] if node.target is operator.getitem else node
        partition.banned[node] = str(refusal)
    else:
        partition.limit = min(partition.limit, len(group.program.records)) // 2
        log.debug("%s; trying groups of %d operations", refusal, partition.limit)
    partition.place_from(group.level)


class Rewrite:
    """Replaces the operations of ATen by kernels, views and eager operations.

    Nodes are ordered by level; in each the eager operations come first, then the kernel, then
    views of its results.
    """

    def __init__(self, graph, partition, kernels, after):
        self.graph, self.partition = graph, partition
        self.key = {
            node: (partition.level[node], 0 if view_of_eager(partition, node) else 2)
            for node in graph.nodes
        }
        self.replaced = {}
        for kernel in kernels:
            self.insert(kernel)
        self.erase_dead()
        after("kernels")
        self.views()
        self.erase_dead()
        self.sort()
        after("views")
        self.eager()
        after("eager")

    def erase_dead(self):
        """Erases nodes without users, in any order; eliminate_dead_code() needs them sorted."""
        dead = [n for n in self.graph.nodes if not n.users and not n.is_impure()]
        while dead:
            node = dead.pop()
            inputs = node.all_input_nodes
            self.graph.erase_node(node)
            dead.extend(n for n in inputs if not n.users and not n.is_impure())

    def end(self):
        """Returns a context in which nodes are inserted at the end of the graph."""
        return self.graph.inserting_before(self.graph.output_node())

    def insert(self, kernel):
        """Adds the node of a kernel and replaces the nodes that it computes by its results."""
        values = [tensor_of(node) for node in kernel.outputs]
        outputs = [(v.device, v.dtype, tuple(v.shape), tuple(v.stride())) for v in values]
        target = GroupTarget(kernel, outputs)
        inputs = tuple(self.replaced.get(node, node) for node in kernel.inputs)
        with self.end():
            call = self.graph.create_node("call_function", target, inputs)
        derive("partition", call, *kernel.nodes)
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
        """Replaces each view, also a view of views, by one view of the tensor that holds it.

        All are looked up first, because view_of() does not recognise a replaced view. A view of
        a kernel's result is placed after the kernel, any other one before it.
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
        """Orders nodes by level, between the placeholders and the output."""
        nodes = [n for n in self.graph.nodes if n.op not in ("placeholder", "output")]
        previous = self.graph.output_node()
        for node in reversed(sorted(nodes, key=self.key.__getitem__)):
            previous.prepend(node)
            previous = node

    def eager(self):
        """Marks the remaining operations of the card, so that Inductor does not decompose them."""
        for node in self.graph.nodes:
            if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
                continue
            if is_number(node):
                continue
            if form := in_place(node):
                node.target = InPlaceTarget(form)
            elif on_card(node) or any(on_card(n) for n in node.all_input_nodes):
                node.target = EagerTarget(node.target)


def view_of_eager(partition, node):
    """Returns True if a node runs before its level's kernel."""
    if tensor_of(node) is None:
        return True
    return not partition.grouped(view_of(node).base)


def constant_node(graph, node, tensor):
    """Adds the call that stands for a constant tensor on the card; one that no copy to the host
    keeps is a constant in fp32, which the kernels convert."""
    fake = tensor_of(node)
    kept = returns(tensor)
    if not kept:
        tensor, fake = tensor.float(), fake.float()
    constant = graph.call_function(ConstantTarget(node.name, tensor, fake))
    constant.meta.update(node.meta, val=fake)
    if kept:
        return constant
    convert = torch.ops.prims.convert_element_type.default
    converted = graph.call_function(convert, (constant, tensor_of(node).dtype))
    converted.meta.update(node.meta)
    return converted


def constants(gm):
    """Replaces the graph's constant tensors on the card by calls, which lower themselves."""
    for node in list(gm.graph.nodes):
        if node.op != "get_attr" or tensor_of(node) is None or not on_card(node):
            continue
        with gm.graph.inserting_before(node):
            constant = constant_node(gm.graph, node, operator.attrgetter(node.target)(gm))
        node.replace_all_uses_with(constant)
        gm.graph.erase_node(node)


#: Passes that change the graph, with equal results, so that groups become larger.
PREPARATIONS = {
    "placement": place_inputs,
    "waits": sink_waits,
    "foreach": foreach,
    "scalars": scalars,
    "unflatten": unflatten,
    "keys": share_keys,
    "heads": side_by_side,
    "names": name_inputs,
}


def prepare(graph, after):
    """Runs the preparations; calls @after with the name of each."""
    for name, change in PREPARATIONS.items():
        change(graph)
        after(name)


def run(gm):
    """Runs the pass over the graph of a model.

    If the pass itself fails, which is a defect, the whole graph runs eagerly. Raises HintError
    and DumpError.
    """
    after = Dump(gm).after
    constants(gm)
    after("constants")
    before = copied(gm.graph)
    try:
        prepare(gm.graph, after)
        divide(gm, after=after)
    except (HintError, DumpError):
        raise
    except Exception:
        log.debug("the whole graph runs eagerly, as the pass over it failed", exc_info=True)
        gm.graph = before
        rewrite(gm, *nothing(gm.graph))


def copied(graph):
    """Returns a copy of a graph, with the meta of its output."""
    copy = torch.fx.Graph(graph.owning_module)
    copy.output(copy.graph_copy(graph, {}))
    copy.output_node().meta.update(graph.output_node().meta)
    return copy


def nothing(graph):
    """Returns a partition of the graph without kernels."""
    return Partition(graph, dict.fromkeys(graph.nodes, "no kernel could be made")), []


def nowhere(name):
    """Does nothing after a pass."""


def divide(gm, name="spyre", after=nowhere):
    """Replaces operations by kernels; if planning fails, all of them run eagerly."""
    try:
        partition, kernels = plan(gm.graph, name)
    except HintError:
        raise
    except Exception:
        log.debug("%s: no kernels, as planning them failed", name, exc_info=True)
        partition, kernels = nothing(gm.graph)
    rewrite(gm, partition, kernels, after)


def rewrite(gm, partition, kernels, after=nowhere):
    """Reports on a partition and rewrites the graph accordingly."""
    report.report(gm.graph, partition, kernels)
    partition.hints.report(gm.graph)
    Rewrite(gm.graph, partition, kernels, after)
    gm.graph.lint()
    gm.recompile()
