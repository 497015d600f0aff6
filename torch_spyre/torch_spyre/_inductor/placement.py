# SPDX-License-Identifier: MIT
"""The placement of tensors: the size and stride by which they are divided into sticks.

An input may have a layout of its own, which then replaces the default one of its size and stride.
"""

from .. import _C
from .emit import Refused, format_of
from .layouts import LAYOUT
from .rules import REDUCED, RULES
from .rules.base import dims_of, named_arguments
from .views import source, static, tensor_of, view_of

#: Key of a node's meta for a placement that the partition must not choose.
PLACED = "spyre_placed"
#: Key of a node's meta, set if the operation runs eagerly in the present partition.
EAGER = "spyre_eager"


def contiguous(size):
    """Returns the strides of a dense tensor."""
    stride, step = [], 1
    for n in reversed(size):
        stride.insert(0, step)
        step *= n
    return stride


def default_operand(view):
    """Returns the operand of a dense copy of a view; Refused if it has too many dims."""
    stride = contiguous([max(n, 1) for n in view.size])
    placement = (list(view.size), stride, tensor_of(view.base).dtype)
    where = _C._view_operand(*placement, list(view.size), stride, 0)
    if where is None:
        raise Refused(f"a tensor of {len(view.size)} dims")
    return where[0]


def operand_of(view):
    """Returns the operand of a view in the placement of its tensor, None if no layout fits."""
    return operand_in(placement_of(view.base), view)


def operand_in(placement, view):
    """Returns the operand of a view of a tensor with @placement, None if no layout fits."""
    size, stride, dtype, layout = placement
    format_of(dtype)
    where = _C._view_operand(
        size, stride, dtype, list(view.size), list(view.stride), view.offset, layout
    )
    return where and where[0]


def placement_of(node):
    """Returns the size, stride, dtype and layout of the tensor of a node; the layout is None for
    the default one.

    A kernel's own result may use those of a view that is read, if this avoids a copy, for
    example for heads that are joined again.
    """
    size, stride = placing(node)
    return list(static(size)), list(static(stride)), tensor_of(node).dtype, node.meta.get(LAYOUT)


def laid_out(value):
    """Returns the placement that a fake tensor has by default."""
    return list(static(value.shape)), list(static(value.stride())), value.dtype, None


def placing(node):
    """Returns the size and stride of @node's placement, which may be symbols."""
    value = tensor_of(node)
    if PLACED in node.meta:
        return node.meta[PLACED]
    if computed_by_kernel(node) and value.is_contiguous():
        kept = kept_size(node)
        if kept is not None:
            return kept, contiguous(kept)
        value = tensor_of(best_reader(node))
    return list(value.shape), list(value.stride())


def computed_by_kernel(node):
    """Returns True if a kernel may compute a node; an eager operation places its results itself."""
    return node.op == "call_function" and node.target in RULES and EAGER not in node.meta


def use_sparse_sticks(node):
    """Places each element of a result in its own stick, as a reduction of the last dim does.

    Returns False if this was tried before or is not possible.
    """
    value = tensor_of(node)
    if PLACED in node.meta or value is None or not value.dim() or not value.is_contiguous():
        return False
    size = [*value.shape, 1]
    node.meta[PLACED] = [size, contiguous(size)]
    return True


def kept_size(node):
    """Returns the size of a reduction's result with the reduced dims, which are dims of size 1 on
    the card; None if the node is not a reduction, or keeps them itself."""
    if node.target not in REDUCED:
        return None
    whole, value = tensor_of(node.args[0]), tensor_of(node)
    arguments = named_arguments(node)
    if whole.dim() == value.dim():
        return None
    dims = {d + whole.dim() for d in dims_of(arguments.get("dim"), whole.dim())}
    return [1 if d in dims else n for d, n in enumerate(whole.shape)]


def best_reader(node):
    """Returns the node, or the view of it, whose placement avoids most copies."""
    value = tensor_of(node)
    readers = [node, *viewers(node)]
    views = [view_of(reader) for reader in readers]
    own = laid_out(value)
    best, most = node, -1
    for reader, view in zip(readers, views):
        if view.offset or not dense(view) or numel(view.size) != numel(own[0]):
            continue
        placement = (list(view.size), list(view.stride), value.dtype, None)
        if operand_in(placement, views[0]) is None:
            continue
        fitting = sum(operand_in(placement, other) is not None for other in views)
        if fitting > most:
            best, most = reader, fitting
    return best


def viewers(node):
    """Returns all views of a node."""
    found = []
    for user in node.users:
        if source(user) is node and view_of(user).base is not user:
            found.append(user)
            found.extend(viewers(user))
    return found


def dense(view):
    """Returns True if a view is dense and row-major."""
    expected = 1
    for size, stride in zip(reversed(view.size), reversed(view.stride)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def numel(size):
    """Returns the number of elements of a size."""
    count = 1
    for n in size:
        count *= n
    return count


