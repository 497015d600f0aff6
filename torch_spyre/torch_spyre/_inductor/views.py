# SPDX-License-Identifier: MIT
"""Views in the graph: their tensors, and their sizes, strides and offsets in these."""

import dataclasses
import operator

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true, sym_eq

from .emit import Refused, stripped
from .propagate_named_dims import DIMS

aten = torch.ops.aten


def static(size):
    """Returns sizes as numbers; symbols have the value of the present call.

    This adds no guard, because decisions that use the numbers are repeated for other values.
    """
    return tuple(hint(s) for s in size)


def hint(size):
    """Returns a size as a number; Refused if it is unknown when compiling."""
    if isinstance(size, int):
        return size
    if not size.node.has_hint():
        raise Refused("a size that is unknown when compiling")
    return int(size.node.hint)


def on_card(node):
    """Returns True if a node is, or contains, a tensor on the card."""
    value = node.meta.get("val")
    if isinstance(value, (tuple, list)):
        return any(isinstance(v, torch.Tensor) and v.device.type == "spyre" for v in value)
    return isinstance(value, torch.Tensor) and value.device.type == "spyre"


def tensor_of(node):
    """Returns the fake tensor of a node, or None."""
    value = node.meta.get("val")
    return value if isinstance(value, torch.Tensor) else None


@dataclasses.dataclass(frozen=True)
class View:
    """A node as size, stride and offset (in elements) in the tensor of the node @base."""

    base: torch.fx.Node
    size: tuple
    stride: tuple
    offset: int

    @property
    def whole(self):
        """True if the view is the whole tensor."""
        base = tensor_of(self.base)
        return (
            self.offset == 0
            and self.size == static(base.shape)
            and self.stride == static(base.stride())
        )

    def names(self):
        """Returns the view's dims with broadcast ones as 1; None if the view does more than add or
        remove dims of size 1 and broadcast others."""
        base = tensor_of(self.base)
        have = [
            (n, s) for n, s in zip(static(base.shape), static(base.stride())) if n != 1
        ]
        want = [(n, s) for n, s in zip(self.size, self.stride) if n != 1 and s != 0]
        if self.offset or have != want:
            return None
        return tuple(1 if s == 0 else n for n, s in zip(self.size, self.stride))

    def permutation(self):
        """Returns the base's dims in the view's order if the view only permutes; else None."""
        base = tensor_of(self.base)
        left = list(enumerate(zip(static(base.shape), static(base.stride()))))
        order = []
        for size, stride in zip(self.size, self.stride):
            fit = [d for d, (n, s) in left if n == size and (s == stride or n == 1)]
            if not fit:
                return None
            order.append(fit[0])
            left = [entry for entry in left if entry[0] != fit[0]]
        return None if left or self.offset else tuple(order)

    def is_broadcast_of(self, size):
        """Returns True if a value of @size broadcasts like the view without a change."""
        named = self.names()
        return named is not None and stripped(named) == stripped(size)


VIEWS = frozenset(
    {
        aten.view.default,
        aten.reshape.default,
        aten._unsafe_view.default,
        aten.t.default,
        aten.transpose.int,
        aten.permute.default,
        aten.expand.default,
        aten.slice.Tensor,
        aten.select.int,
        aten.squeeze.default,
        aten.squeeze.dim,
        aten.squeeze.dims,
        aten.unsqueeze.default,
        aten.as_strided.default,
        aten.alias.default,
        aten.detach.default,
        aten.diagonal.default,
        aten.narrow.default,
        aten.unfold.default,
    }
)

LISTS = frozenset(
    {
        aten.split.Tensor,
        aten.split_with_sizes.default,
        aten.unbind.int,
        aten.chunk.default,
    }
)


def source(node):
    """Returns the node that @node is a view of, or None."""
    if node.op != "call_function":
        return None
    if node.target is operator.getitem and node.args[0].target in LISTS:
        return node.args[0].args[0]
    if node.target not in VIEWS:
        return None
    return node.args[0]


def view_of(node):
    """Returns @node as a View of the tensor that holds it, which is its own if it is no view."""
    base = node
    while (inner := source(base)) is not None and _viewable(base, inner):
        base = inner
    value = tensor_of(node)
    offset = hint(value.storage_offset()) - hint(tensor_of(base).storage_offset())
    return View(base, static(value.shape), static(value.stride()), offset)


def _viewable(node, inner):
    """Returns True if @node is a view of @inner; a reshape may also be a copy."""
    a, b = tensor_of(node), tensor_of(inner)
    if a is None or b is None or a.device != b.device or a.dtype != b.dtype:
        return False
    return node.target is not aten.reshape.default or _same_elements(a, b)


def _same_elements(a, b):
    """Returns True if a view of @b has the size and strides of @a."""
    try:
        seen = torch.empty_strided(b.shape, b.stride(), device="meta").view(a.shape)
    except RuntimeError:
        return False
    return statically_known_true(sym_eq(tuple(seen.stride()), tuple(a.stride())))


def seen(view):
    """Returns the names of a view's dims, which it has from equal dims of its tensor."""
    names = view.base.meta.get(DIMS)
    if names is None:
        return None
    base = tensor_of(view.base)
    have = list(zip(static(base.shape), static(base.stride()), names))
    return tuple(
        next((name for n, s, name in have if n > 1 and (n, s) == own), None)
        for own in zip(view.size, view.stride)
    )
