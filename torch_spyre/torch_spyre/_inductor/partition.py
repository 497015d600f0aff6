# SPDX-License-Identifier: MIT
"""Partition of a graph into groups of operations that become one kernel each.

The level of a node is the number of times that a path to it leaves the card's kernels for an
eager operation, or ends a kernel because a view of its result is read. The operations of one
level form one group. A path between two of them cannot leave the group, as it would end at a
higher level, so groups are convex and run in the order of the levels.

Operations are passed to the builder in the order of the graph, so a group contains exactly
operations that the builder accepts.
"""

import dataclasses
import operator

import torch

from ..inductor import log
from .collectives import is_collective, is_wait, starts
from .division import Hints
from .emit import (
    BetterEager,
    Number,
    Permuted,
    Program,
    Refused,
    Value,
    as_refusal,
    format_of,
    stripped,
)
from .hint import HintError
from .placement import EAGER, default_operand, operand_of
from .propagate_named_dims import DIMS, fitted
from .rules import RULES, Call
from .views import hint, on_card, seen, static, tensor_of, view_of

aten = torch.ops.aten

#: Limit of operations in a group; the builder takes 1,024 steps, of which one may need several.
MAX_OPS = 160
#: The padding of arguments is unknown (spyre_sdsc_padding).
UNKNOWN = 1


@dataclasses.dataclass
class Input:
    """An argument of a group: a view of a tensor from outside of it."""

    view: object
    place: int


class Group:
    """A group of operations whose program is under construction."""

    def __init__(self, level):
        self.level = level
        self.program = Program()
        self.nodes, self.values = [], {}
        self.inputs, self.known = [], {}
        #: The node that each record of the program stems from.
        self.owners = []
        self.copies = []

    def argument(self, view, dense=False):
        """Returns the Value of a tensor from outside; with @dense, of a copy unless it is dense."""
        key = (view.base, view.size, view.stride, view.offset, dense)
        if key not in self.known:
            operand = operand_of(view)
            if operand is None or dense and operand != default_operand(view):
                operand = default_operand(view)
                self.copies.append(view)
            value = self.program.argument(operand, UNKNOWN, seen(view))
            self.inputs.append(Input(view, value.place))
            self.known[key] = dataclasses.replace(value, dtype=tensor_of(view.base).dtype)
        return self.known[key]

    def try_add(self, node, resolve, request=None):
        """Adds one node with the division of @request; raises Refused after a rollback."""
        mark = self.program.mark()
        known, inputs, copies = dict(self.known), len(self.inputs), len(self.copies)
        try:
            args = torch.fx.map_arg(node.args, resolve)
            kwargs = torch.fx.map_arg(node.kwargs, resolve)
            self.program.request = request
            result = RULES[node.target](Call(self.program, node, args, kwargs))
            self.values[node] = stamped(node, result)
        except HintError:
            raise
        except Exception as error:
            self.program.rollback(mark)
            self.known = known
            del self.inputs[inputs:], self.copies[copies:]
            raise as_refusal(error, f"{node} ({node.target})") from None
        finally:
            self.program.request = None
        self.nodes.append(node)
        self.owners += [node] * (len(self.program.records) - len(self.owners))


def stamped(node, result):
    """Returns the values of a node with its dtypes; Refused if sizes differ from the node's."""
    single = not isinstance(result, tuple)
    metas = node.meta["val"]
    metas = (metas,) if single else metas
    values = []
    for value, meta in zip((result,) if single else result, metas):
        if isinstance(value, (Value, Permuted)):
            if stripped(value.size) != stripped(static(meta.shape)):
                raise Refused(
                    f"the builder makes {list(value.size)} of it instead of {list(meta.shape)}"
                )
            if value.format != format_of(meta.dtype) and meta.dtype != torch.bool:
                raise Refused(f"the builder does not make {meta.dtype} of it")
            value = dataclasses.replace(value, dtype=meta.dtype)
        values.append(value)
    return values[0] if single else tuple(values)


class Partition:
    """The groups of a graph, and the operations that run eagerly with the reasons."""

    def __init__(self, graph, banned=None):
        self.graph, self.banned, self.limit = graph, banned or {}, MAX_OPS
        self.groups, self.level, self.reasons = {}, {}, {}
        self.hints = Hints()
        self.floor, self.floors, self.closed = 0, {}, 0
        for node in graph.nodes:
            self.place(node)

    def next_group(self, level):
        """Returns the lowest level above @level that has a group, or None."""
        return min((n for n in self.groups if n > level), default=None)

    def place_from(self, level):
        """Places the nodes of @level and above again.

        Groups below do not depend on these nodes, so they stay as they are.
        """
        self.closed = level
        self.groups = {n: group for n, group in self.groups.items() if n < level}
        previous, self.level, self.floor = self.level, {}, 0
        for node in self.graph.nodes:
            if previous[node] >= level and node.op == "call_function":
                self.reasons.pop(node, None)
                self.place(node)
                continue
            self.level[node] = previous[node]
            self.floor = self.floors.get(node, self.floor)

    def place(self, node):
        """Determines the level of a node; adds it to a group or records why it runs eagerly."""
        if node.op != "call_function":
            self.level[node] = 0
            return
        node.meta.pop(EAGER, None)
        self.hints.forget(node)
        level = max((self.level[base(n)] for n in node.all_input_nodes), default=0)
        level = max(level, self.floor)
        if base(node) is not node or node.target is operator.getitem:
            self.level[node] = level
            return
        if on_card(node) and node.target in RULES and node not in self.banned:
            for attempt, dense in ((level, False), (level + 1, False), (level + 1, True)):
                if self.join(node, attempt, dense):
                    return
                if node in self.banned:
                    break
                log.debug("%s (%s) ends a kernel: %s", node.target, node, self.reasons[node])
        elif is_collective(node):
            self.reasons[node] = "it runs on the group's stream"
        elif node in self.banned:
            self.reasons[node] = self.banned[node]
        elif on_card(node) or returns_tensor(node) and any(map(on_card, node.all_input_nodes)):
            self.reasons[node] = "the card has no operation for it"
        node.meta[EAGER] = True
        self.level[node] = self.above(node)

    def above(self, node):
        """Returns the level of an eager operation, which runs after all groups that it reads.

        An operation that changes a tensor also separates all nodes before it from those after.
        A collective starts before the operations behind it, and a wait follows those before it.
        """
        if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable:
            self.floor = max(self.level.values(), default=0) + 1
            self.floors[node] = self.floor
        if is_wait(node):
            self.floor = self.floors[node] = max(self.floor, max(self.groups, default=-1) + 1)
        inputs = (self.level[base(n)] + self.grouped(base(n)) for n in node.all_input_nodes)
        level = max(self.floor, max(inputs, default=0))
        if starts(node):
            self.floor = self.floors[node] = level
        return level

    def grouped(self, node):
        """Returns True if a group computes the node."""
        group = self.groups.get(self.level[node])
        while node.target is operator.getitem:
            node = node.args[0]
        return group is not None and node in group.values

    def join(self, node, level, dense):
        """Adds a node to the group of @level; returns False with the reason if it is refused."""
        if level < self.closed:
            self.reasons[node] = "the kernel is finished"
            return False
        group = self.groups.get(level) or Group(level)
        if len(group.program.records) > self.limit:
            self.reasons[node] = "the group is full"
            return False
        try:
            request = self.hints.of(node)
            group.try_add(node, lambda n: self.resolve(group, node, n, dense), request)
        except Refused as refusal:
            self.reasons[node] = str(refusal)
            if isinstance(refusal, BetterEager):
                self.banned[node] = str(refusal)
            return False
        self.groups[level] = group
        self.level[node] = level
        self.reasons.pop(node, None)
        name_results(node, group.values[node])
        return True

    def resolve(self, group, reader, node, dense):
        """Returns an argument of @reader as a value of the group or a number; raises Refused."""
        value = node.meta.get("val")
        if isinstance(value, (torch.SymInt, int)):
            return hint(value)
        if isinstance(value, (torch.SymFloat, float, torch.SymBool, bool)):
            raise Refused("a number that is unknown when compiling")
        if not isinstance(value, torch.Tensor):
            raise Refused("an argument that is not a tensor")
        if value.device.type != "spyre":
            raise Refused(f"an argument on the {value.device.type}")
        view = view_of(node)
        inside = self.inside(group, view.base)
        if inside is None:
            return group.argument(view, dense)
        if isinstance(inside, Permuted):
            raise Refused("it reads a copy in another order of dims of the same kernel")
        if view.whole or isinstance(inside, Value) and view.is_broadcast_of(inside.size):
            return inside
        to_store = reader.target is aten.clone.default
        if to_store and isinstance(inside, Value) and view.permutation():
            if len(inside.size) == len(view.size):
                return Permuted(inside, view.permutation(), inside.dtype)
        if isinstance(inside, Number):
            return Number(inside.value, view.size, inside.dtype)
        raise Refused("it reads a view of a result of the same kernel")

    def inside(self, group, node):
        """Returns the value of a node that @group computes, else None."""
        if node.target is operator.getitem:
            values = group.values.get(node.args[0])
            return None if values is None else values[node.args[1]]
        return group.values.get(node)


def name_results(node, value):
    """Stores the names of dims of a node's results in its meta."""
    if isinstance(value, tuple):
        for user in node.users:
            if user.target is operator.getitem:
                name_results(user, value[user.args[1]])
        return
    node.meta.pop(DIMS, None)
    names = value.value.names if isinstance(value, Permuted) else getattr(value, "names", None)
    if names is None:
        return
    if isinstance(value, Permuted):
        names = tuple(names[d] for d in value.dims)
    node.meta[DIMS] = fitted(names, tensor_of(node).dim())


def returns_tensor(node):
    """Returns True if the results of a node contain a tensor."""
    return isinstance(node.meta.get("val"), (torch.Tensor, tuple, list))


def base(node):
    """Returns the node that holds the memory of @node, which is itself unless it is a view."""
    return view_of(node).base if tensor_of(node) is not None else node
