# SPDX-License-Identifier: MIT
"""Hints in compiled functions that request divisions of operations over the cores.

Under dynamo torch.fx.traceback.annotate puts a hint as a note on the nodes that are traced
inside it, and the pass reads it there. Inductor's caches ignore notes, so all notes of a
graph's nodes and inputs are collected first and become part of the key of the pass.
"""

import contextlib
import contextvars
import functools
import os
import warnings

import torch

from . import layouts
from .propagate_named_dims import DECLARED, DIMS, NAMES, NOTE, check

PREFIX = "spyre."

#: True if hints are to be checked only, to compare with a compilation without them.
IGNORED = os.environ.get("SPYRE_INDUCTOR_IGNORE_HINTS") == "1"


class HintError(ValueError):
    """Raised for a hint that cannot be applied."""


def checked(kind, given):
    """Returns a hint's numbers by dim; raises TypeError or ValueError if they are malformed."""
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


def spyre_hint(*, tiles=None, work_div=None, num_tiles_per_dim=None, slices=None):
    """Context manager that requests a division of the operations in a compiled function.

    @work_div has numbers of slices by dim, over the cores; they are applied in this order until
    the cores are used up. @tiles, or @num_tiles_per_dim, or @slices, has numbers of tiles by dim,
    which are checked only. A dim is a name (declare_tensor_dim(), name_tensor_dims()) or a
    position in the result of an operation. Inner blocks add to outer ones and override them.
    Outside of compiled functions, or with SPYRE_INDUCTOR_IGNORE_HINTS=1, it does nothing. Raises
    TypeError or ValueError for malformed arguments; compilation raises HintError for an undeclared
    name and for a number that does not divide the dim.
    """
    notes = {}
    numbers = {
        **checked("num_tiles_per_dim", num_tiles_per_dim),
        **checked("slices", slices),
        **checked("tiles", tiles),
    }
    for kind, given in (("work_div", checked("work_div", work_div)), ("tiles", numbers)):
        for dim, n in given.items():
            notes[PREFIX + kind + ("." if isinstance(dim, str) else "#") + str(dim)] = n
    return contextlib.nullcontext() if IGNORED else noted(notes)


@contextlib.contextmanager
def noted(notes):
    """Puts notes on the nodes that dynamo traces in the block.

    It is a generator, because a graph break inside annotate() itself fails (torch 2.13).
    """
    if torch.compiler.is_dynamo_compiling():
        with torch.fx.traceback.annotate(notes):
            yield
    else:
        yield


def requested(node, kind):
    """Returns the numbers by dim that hints request of a node; none of nodes of backward graphs."""
    if node.meta.get("autograd_backward"):
        return {}
    found = {}
    for key, n in (node.meta.get("custom") or {}).items():
        if str(key).startswith(PREFIX + kind) and n > 1:
            dim = key[len(PREFIX + kind) + 1 :]
            found[int(dim) if key[len(PREFIX + kind)] == "#" else dim] = n
    return found


def notes_of(node):
    """Returns the notes of a node that belong to this module."""
    custom = node.meta.get("custom") or {}
    return {key: value for key, value in custom.items() if str(key).startswith(PREFIX)}


_inputs = contextvars.ContextVar("spyre_named_inputs", default=None)


class Inputs:
    """The named dims of a graph's inputs by position, and all notes as text."""

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
        """Collects names that the compiled function gives to its inputs."""
        places = {n: i for i, n in enumerate(n for n in gm.graph.nodes if n.op == "placeholder")}
        for node in gm.graph.nodes:
            if node.op != "call_function" or node.target is not torch.ops.aten.alias:
                continue
            names = notes_of(node).get(NOTE)
            if names is None:
                continue
            if node.args[0] not in places:
                warnings.warn(
                    f"name_tensor_dims({node.args[0]}, {list(names)}) is ignored: in a compiled "
                    "function only its inputs get names; those of results follow",
                    stacklevel=2,
                )
                continue
            check(names, tensor_size(node.args[0]))
            self.names[places[node.args[0]]] = names


def tensor_size(node):
    """Returns the size of the tensor of a dynamo node."""
    return tuple(node.meta["example_value"].shape)


def hinted(gm):
    """Yields the operations with notes in a graph and its subgraphs."""
    for module in gm.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                if node.op != "placeholder" and notes_of(node):
                    yield node


def text():
    """Returns the hints that the graph being compiled depends on, as text."""
    return _inputs.get().text if _inputs.get() else ""


def name_inputs(graph):
    """Stores the names of inputs in the meta of the graph's placeholders."""
    if not _inputs.get():
        return
    from torch._functorch._aot_autograd.descriptors import PlainAOTInput

    for node in graph.nodes:
        where = node.meta.get("desc")
        if node.op != "placeholder" or not isinstance(where, PlainAOTInput):
            continue
        names = _inputs.get().names.get(where.idx)
        if names is not None and len(names) == node.meta["val"].dim():
            node.meta[DIMS] = names


def register():
    """Wraps compile_fx, so that names, notes and layouts of each graph are collected."""
    from torch._inductor import compile_fx as module

    original = module.compile_fx

    @functools.wraps(original)
    def compile_fx(model_, example_inputs_, *args, **kwargs):
        """Compiles with the named dims and the layouts of the inputs known to the passes."""
        if not isinstance(model_, torch.fx.GraphModule):
            return original(model_, example_inputs_, *args, **kwargs)
        token = _inputs.set(Inputs(model_, example_inputs_))
        try:
            with layouts.of_inputs(example_inputs_):
                return original(model_, example_inputs_, *args, **kwargs)
        finally:
            _inputs.reset(token)

    module.compile_fx = compile_fx
