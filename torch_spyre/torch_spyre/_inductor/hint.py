# SPDX-License-Identifier: MIT
"""Hints in functions that are compiled: how operations are divided over the cores.

Under dynamo a hint is a note on the nodes that are traced within it, by the way
of torch.fx.traceback.annotate; it comes to the pass with them. What a graph's
nodes and inputs have of notes is collected before Inductor takes the graph, as
its caches do not look at notes: the key of the pass has them.
"""

import contextlib
import contextvars
import functools
import os
import warnings

import torch

from ..inductor import log
from .propagate_named_dims import DECLARED, DIMS, NAMES, NOTE, check

PREFIX = "spyre."


class HintError(ValueError):
    """A hint that cannot be followed."""


def checked(kind, given):
    """A hint's dims with their numbers; raises what is wrong with them."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise TypeError(
            f"spyre_hint({kind}=) takes a dict of dims and numbers, as {{'H': 4}}, "
            f"not {type(given).__name__}"
        )
    for dim, n in given.items():
        if isinstance(dim, bool) or not isinstance(dim, (str, int)):
            raise TypeError(
                f"spyre_hint({kind}=): a dim is a name, or a position in the result, not {dim!r}"
            )
        if isinstance(n, bool) or not isinstance(n, int):
            raise TypeError(f"spyre_hint({kind}={{{dim!r}: …}}) takes an int, not {n!r}")
        if n < 1:
            raise ValueError(f"spyre_hint({kind}={{{dim!r}: {n}}}): 1 is the least")
    return given


def spyre_hint(*, tiles=None, work_div=None):
    """How the operations in a with-block of a compiled function are divided; else nothing.

    @work_div: slices by dim, over the cores, in this order as long as there are cores; @tiles:
    tiles by dim, noted only. A dim is a name (declare_tensor_dim(), name_tensor_dims()) or a
    position in the result of an operation. Inner blocks add to outer ones, and win.
    """
    notes = {}
    for kind, given in (("work_div", work_div), ("tiles", tiles)):
        for dim, n in checked(kind, given).items():
            notes[PREFIX + kind + ("." if isinstance(dim, str) else "#") + str(dim)] = n
    return noted(notes)


@contextlib.contextmanager
def noted(notes):
    """Notes on the nodes that dynamo traces. A generator, so that graphs may break within it:
    annotate() by itself does not survive that (torch 2.13)."""
    if torch.compiler.is_dynamo_compiling():
        with torch.fx.traceback.annotate(notes):
            yield
    else:
        yield


def asked(node, kind):
    """What the hints round a node ask for: numbers by dim. Derivatives are not asked."""
    if node.meta.get("autograd_backward"):
        return {}
    found = {}
    for key, n in (node.meta.get("custom") or {}).items():
        if str(key).startswith(PREFIX + kind) and n > 1:
            dim = key[len(PREFIX + kind) + 1 :]
            found[int(dim) if key[len(PREFIX + kind)] == "#" else dim] = n
    return found


def notes_of(node):
    """What a node has of this module's notes."""
    custom = node.meta.get("custom") or {}
    return {key: value for key, value in custom.items() if str(key).startswith(PREFIX)}


_inputs = contextvars.ContextVar("spyre_named_inputs", default=None)


class Inputs:
    """The names of a graph's inputs by position, and all notes as text."""

    def __init__(self, gm, tensors):
        self.names = {}
        for i, tensor in enumerate(tensors):
            names = getattr(tensor, NAMES, None)
            if names is not None and len(names) == tensor.dim():
                self.names[i] = names
        self.within(gm)
        notes = [(node.name, notes_of(node)) for node in hinted(gm)]
        self.text = repr((sorted(self.names.items()), notes, DECLARED)) if notes else ""

    def within(self, gm):
        """Names that are given to inputs in the function itself."""
        places = {n: i for i, n in enumerate(n for n in gm.graph.nodes if n.op == "placeholder")}
        for node in gm.graph.nodes:
            if node.op != "call_function" or node.target is not torch.ops.aten.alias:
                continue
            names = notes_of(node).get(NOTE)
            if names is not None and node.args[0] in places:
                check(names, tensor_size(node.args[0]))
                self.names[places[node.args[0]]] = names


def tensor_size(node):
    return tuple(node.meta["example_value"].shape)


def hinted(gm):
    """The operations with notes of a graph and of the graphs in it."""
    for module in gm.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                if node.op != "placeholder" and notes_of(node):
                    yield node


def text():
    """What compiled graphs depend on of the hints in them."""
    return _inputs.get().text if _inputs.get() else ""


def name_inputs(graph):
    """Puts the names of inputs on the graph's nodes."""
    if not _inputs.get():
        return
    for node in graph.nodes:
        place = getattr(node.meta.get("desc"), "idx", None)
        if node.op == "placeholder" and place in _inputs.get().names:
            node.meta[DIMS] = _inputs.get().names[place]


def register():
    """Collects names and notes of each graph that Inductor is given."""
    from torch._inductor import compile_fx as module

    original = module.compile_fx

    @functools.wraps(original)
    def compile_fx(model_, example_inputs_, *args, **kwargs):
        if not isinstance(model_, torch.fx.GraphModule):
            return original(model_, example_inputs_, *args, **kwargs)
        token = _inputs.set(Inputs(model_, example_inputs_))
        try:
            return original(model_, example_inputs_, *args, **kwargs)
        finally:
            _inputs.reset(token)

    module.compile_fx = compile_fx


class Hints:
    """What hints ask of the operations of a graph, and what came of it."""

    def __init__(self):
        self.taken, self.skipped = set(), {}

    def of(self, node):
        """The wish for a node, or None."""
        work_div = asked(node, "work_div")
        return Wish(self, node, work_div) if work_div else None

    def say(self, graph):
        """Warns of what is not followed."""
        wanted = {}
        for node in graph.nodes:
            for dim, n in asked(node, "work_div").items():
                wanted.setdefault(("work_div", dim, n))
            for dim, n in asked(node, "tiles").items():
                log.info(
                    "spyre_hint(tiles={%r: %d}): not used for %s; what an intermediate needs of "
                    "LX follows from the division over the cores",
                    dim,
                    n,
                    node,
                )
        for _, dim, n in wanted:
            if (dim, n) in self.taken:
                log.info("spyre_hint(work_div={%r: %d}): taken", dim, n)
                continue
            why = self.skipped.get((dim, n), f"no kernel under it iterates over dim {dim!r}")
            log.info("spyre_hint(work_div={%r: %d}): ignored: %s", dim, n, why)
            warnings.warn(f"spyre_hint(work_div={{{dim!r}: {n}}}) is ignored: {why}", stacklevel=2)


def cores():
    return int(os.environ.get("SENCORES") or 32)


class Wish:
    """What is asked of the builder's operations that one node becomes."""

    def __init__(self, hints, node, work_div):
        value = node.meta["val"]
        value = value[0] if isinstance(value, (tuple, list)) else value
        self.hints, self.node, self.work_div = hints, node, work_div
        self.rank, self.size = value.dim(), value.shape
        for dim in work_div:
            self.check(dim)

    def check(self, dim):
        if isinstance(dim, str) and dim not in DECLARED:
            raise HintError(
                f"spyre_hint(work_div={{{dim!r}: {self.work_div[dim]}}}): nobody declared dim "
                f"{dim!r}; call declare_tensor_dim({dim!r}, size) and name_tensor_dims(), or give "
                "a position in the result, as -1"
            )
        if isinstance(dim, int) and not -self.rank <= dim < self.rank:
            raise HintError(
                f"spyre_hint(work_div={{{dim}: {self.work_div[dim]}}}): {self.node} has "
                f"{self.rank} dims; give -{self.rank} to {self.rank - 1}"
            )

    def places(self, dim, walk):
        """The iterated dims that a hint's dim is of, counted from the end; 0: what is summed."""
        if isinstance(dim, int):
            size, _ = walk.result()
            if len(size) != self.rank or any(a != b for a, b in zip(size, self.size)):
                return []
            place = walk.place(dim if dim < 0 else dim - self.rank)
            return [] if place is None else [place]
        named = [d - len(walk.names) for d, name in enumerate(walk.names) if name == dim]
        return named + ([0] if walk.summed == dim else [])

    def division(self, walk):
        """The splits of an operation of the builder, in the order of the hint."""
        splits, product = [], 1
        for dim, n in self.work_div.items():
            for place in self.places(dim, walk) if walk else []:
                if any(place == other for other, _ in splits):
                    continue
                if product * n > cores():
                    self.hints.skipped[dim, n] = (
                        f"with {product} slices before it, it takes more than the {cores()} cores "
                        "of SENCORES"
                    )
                    continue
                product *= n
                splits.append((place, n))
        return splits

    def took(self, splits, walk):
        for dim, n in self.work_div.items():
            if any((place, n) in splits for place in self.places(dim, walk)):
                self.hints.taken.add((dim, n))

    def refused(self, error):
        words = ", ".join(f"{dim!r}: {n}" for dim, n in self.work_div.items())
        return HintError(
            f"spyre_hint(work_div={{{words}}}): {error}; give a number that divides it "
            f"({self.node.target})"
        )
