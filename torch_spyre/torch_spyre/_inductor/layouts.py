# SPDX-License-Identifier: MIT
"""Layouts of a graph's inputs on the card.

Weights may have other layouts than tensors have by default (:mod:`..model_utils`). A kernel reads
them as they lie, so a graph is compiled for the layouts that its inputs have at the first call.
Calls with other layouts are right as well: the kernel copies such an input.
"""

import contextlib
import contextvars

import torch

from .. import _C

#: Key of a placeholder's meta for its layout, if that is not the default.
LAYOUT = "spyre_layout"

_inputs = contextvars.ContextVar("spyre_layouts", default=None)


def encoded(layout):
    """Returns a layout as lists of numbers, for text; None stays None."""
    return layout and [list(layout.device_size), list(layout.stride_map)]


def decoded(numbers, dtype):
    """Returns the layout of a tensor of @dtype that encoded() has written; None stays None."""
    return numbers and _C.SpyreTensorLayout(*numbers, _C.get_device_dtype(dtype))


def own_layout(tensor):
    """Returns the layout of an input, None if it is the default, or not that of a whole tensor."""
    if not isinstance(tensor, torch.Tensor) or tensor.device.type != "spyre":
        return None
    if isinstance(tensor, torch._subclasses.FakeTensor):
        return None
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return None
    return _C._own_layout(tensor)


@contextlib.contextmanager
def of_inputs(tensors):
    """Makes the layouts of a graph's inputs known to place_inputs() and text() in the block."""
    found = {i: layout for i, t in enumerate(tensors) if (layout := own_layout(t)) is not None}
    token = _inputs.set(found)
    try:
        yield
    finally:
        _inputs.reset(token)


def text():
    """Returns the layouts for which the present graph is compiled, as text for keys of caches."""
    found = _inputs.get()
    return repr([(i, encoded(layout)) for i, layout in found.items()]) if found else ""


def place_inputs(graph):
    """Stores the layouts of inputs in the meta of the graph's placeholders."""
    if not _inputs.get():
        return
    from torch._functorch._aot_autograd.descriptors import PlainAOTInput

    for node in graph.nodes:
        where, value = node.meta.get("desc"), node.meta.get("val")
        if node.op != "placeholder" or not isinstance(where, PlainAOTInput):
            continue
        layout = _inputs.get().get(where.idx)
        if layout is None or not all(isinstance(n, int) for n in value.shape):
            continue
        node.meta[LAYOUT] = layout
