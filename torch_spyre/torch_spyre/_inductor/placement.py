# SPDX-License-Identifier: MIT
"""Where tensors lie on the card: by which size and stride they are brought into sticks."""

from .. import _C
from .dynamic import PLACED
from .emit import Refused, format_of
from .rules import REDUCED, RULES
from .rules.base import dims_of, named_arguments
from .views import source, static, tensor_of, view_of


def contiguous(size):
    """The strides of a dense tensor."""
    stride, step = [], 1
    for n in reversed(size):
        stride.insert(0, step)
        step *= n
    return stride


def default_operand(view):
    """A dense copy of a view as the builder sees it."""
    stride = contiguous([max(n, 1) for n in view.size])
    placement = (list(view.size), stride, tensor_of(view.base).dtype)
    where = _C._view_operand(*placement, list(view.size), stride, 0)
    if where is None:
        raise Refused(f"a tensor of {len(view.size)} dims")
    return where[0]


def operand_of(view):
    """Where a view lies on the card, if its tensor lies there as expected."""
    return operand_in(placement_of(view.base), view)


def operand_in(placement, view):
    size, stride, dtype = placement
    format_of(dtype)
    where = _C._view_operand(
        size, stride, dtype, list(view.size), list(view.stride), view.offset
    )
    return where and where[0]


def placement_of(node):
    """The size and stride by which the tensor of a node is brought into sticks.

    Of a kernel's own result this may be those of a view that others read, if it
    then needs no copy: heads that are joined again, for one.
    """
    size, stride = placing(node)
    return list(static(size)), list(static(stride)), tensor_of(node).dtype


def laid_out(value):
    return list(static(value.shape)), list(static(value.stride())), value.dtype


def placing(node):
    """Size and stride, of symbols maybe, by which @node is brought into sticks."""
    value = tensor_of(node)
    if PLACED in node.meta:
        return node.meta[PLACED]
    if node.op == "call_function" and node.target in RULES and value.is_contiguous():
        kept = kept_size(node)
        if kept is not None:
            return kept, contiguous(kept)
        value = tensor_of(best_reader(node))
    return list(value.shape), list(value.stride())


def put_apart(node):
    """Has each element of a result lie in a stick of its own, as behind a reduction of the last
    dim. False if that has been tried, or is no difference."""
    value = tensor_of(node)
    if PLACED in node.meta or value is None or not value.dim() or not value.is_contiguous():
        return False
    size = [*value.shape, 1]
    node.meta[PLACED] = [size, contiguous(size)]
    return True


def kept_size(node):
    """The size of a reduction with the dims that it reduced, which lie on the card as dims of
    one element; None if it is no reduction, or kept them itself."""
    if node.target not in REDUCED:
        return None
    whole, value = tensor_of(node.args[0]), tensor_of(node)
    arguments = named_arguments(node)
    if whole.dim() == value.dim():
        return None
    dims = {d + whole.dim() for d in dims_of(arguments.get("dim"), whole.dim())}
    return [1 if d in dims else n for d, n in enumerate(whole.shape)]


def best_reader(node):
    """The node, or a view of it, whose placement spares most copies."""
    value = tensor_of(node)
    readers = [node, *viewers(node)]
    views = [view_of(reader) for reader in readers]
    own = laid_out(value)
    best, most = node, -1
    for reader, view in zip(readers, views):
        if view.offset or not dense(view) or numel(view.size) != numel(own[0]):
            continue
        placement = (list(view.size), list(view.stride), value.dtype)
        if operand_in(placement, views[0]) is None:
            continue
        fitting = sum(operand_in(placement, other) is not None for other in views)
        if fitting > most:
            best, most = reader, fitting
    return best


def viewers(node):
    """All views of a node."""
    found = []
    for user in node.users:
        if source(user) is node and view_of(user).base is not user:
            found.append(user)
            found.extend(viewers(user))
    return found


def dense(view):
    expected = 1
    for size, stride in zip(reversed(view.size), reversed(view.stride)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def numel(size):
    count = 1
    for n in size:
        count *= n
    return count


