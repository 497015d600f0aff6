# SPDX-License-Identifier: MIT
"""The base of the rules that lower operations of ATen to operations of the builder.

A rule takes a Call and returns its value, or a tuple of values for operations with several
results. It raises Refused, as the builder does, if the card does not support the call; the
operation then runs eagerly.
"""

import math

import torch

from ... import _C
from ..emit import FLOATS, Number, Refused, Value
from ..views import static

aten = torch.ops.aten
prims = torch.ops.prims

#: The rows of the table of operations by schema.
ROWS = {}
for _row in _C._operations():
    ROWS.setdefault(_row.schema, []).append(_row)

#: Rules by operation of ATen.
RULES = {}
#: The dtypes of Python numbers.
PYTHON = {bool: torch.bool, int: torch.int64, float: torch.float64}


def rule(*targets):
    """Returns a decorator that registers a function as the rule of @targets."""
    def take(function):
        """Registers @function."""
        for target in targets:
            RULES[target] = function
        return function

    return take


def named_arguments(node, args=None, kwargs=None):
    """Returns the arguments of a node by name, with their defaults."""
    schema = node.target._schema.arguments
    named = {a.name: a.default_value for a in schema if a.has_default_value()}
    named.update(zip((a.name for a in schema), node.args if args is None else args))
    named.update(node.kwargs if kwargs is None else kwargs)
    return named


class Call:
    """One node of the graph, with values instead of its tensors."""

    def __init__(self, program, node, args, kwargs):
        self.program, self.node = program, node
        self.args, self.kwargs = args, kwargs
        self.named = named_arguments(node, args, kwargs)

    def __getitem__(self, name):
        """Returns an argument by name."""
        return self.named[name]

    def get(self, name, default=None):
        """Returns an argument by name, or @default if the operation has none of that name."""
        return self.named.get(name, default)

    @property
    def meta(self):
        """The fake tensor of the node's first result."""
        value = self.node.meta["val"]
        return value[0] if isinstance(value, (tuple, list)) else value

    def count(self, name):
        """Returns the number of elements of an argument."""
        place = [a.name for a in self.node.target._schema.arguments].index(name)
        return math.prod(static(self.node.args[place].meta["val"].shape))

    def check_whole(self, value, place, dims):
        """Refuses an argument that is expanded along one of @dims, counted from the end.

        Memory then holds one of the elements that an operation across the dim has to read, as if
        the dim had size 1. @place is that of the argument.
        """
        size = static(self.node.args[place].meta["val"].shape)
        for d in dims:
            held = value.size[d] if -d <= len(value.size) else 1
            if held != size[d]:
                raise Refused(f"a tensor that is expanded along dim {d + len(size)}")

    def computed_in(self, *things):
        """Returns the dtype to which arguments promote; Refused if the card lacks it."""
        dtype = promote(things)
        if dtype not in FLOATS and dtype != torch.bool:
            raise Refused(f"the card does not compute in {dtype}")
        return dtype

    def value(self, thing, form):
        """Returns an argument as a Value of a format; raises Refused."""
        if isinstance(thing, Number):
            return constant(self, thing, form)
        if not isinstance(thing, Value):
            return constant(self, Number(thing, (), None), form)
        if thing.dtype not in FLOATS + (torch.bool,):
            raise Refused(f"the card does not compute in {thing.dtype}")
        return self.program.cast(thing, form)

    def op(self, name, *inputs, **attributes):
        """Adds an operation of the builder and returns its Value; raises Refused."""
        return self.program.op(name, *inputs, **attributes)


def promote(things, operation=None):
    """Returns the dtype to which the arguments of an operation promote, as in eager mode."""
    operation = operation or ROWS["add.Tensor"][0].operation
    given = []
    for thing in things:
        if isinstance(thing, (Value, Number)):
            given.append((thing.dtype, bool(thing.size), False))
        elif isinstance(thing, (bool, int, float)):
            given.append((PYTHON[type(thing)], False, True))
        else:
            raise Refused("an argument that is neither a tensor nor a number")
    return operation.promote(given)


def number_of(thing):
    """Returns the number that an argument is instead of a tensor, or None."""
    if isinstance(thing, Number):
        return thing.value
    return thing if isinstance(thing, (bool, int, float)) else None


def constant(call, number, form):
    """Returns a Value of one element that holds a number."""
    return call.op("fill", value=storable(number.value, form), format=form)


def storable(value, form):
    """Returns a number as eager mode makes a constant of it; Refused if the builder has none."""
    stored = _C._constant_for(form, float(value))
    if stored is None:
        raise Refused(f"the builder has no constant {value}")
    return stored


def stored(number, dtype):
    """Returns a number as a tensor of @dtype keeps it on the card."""
    return _C._stored_number(dtype, number) if dtype in FLOATS else number


def rounded(number, dtype):
    """Returns a Python number as a tensor keeps it that eager mode makes of it."""
    return stored(_C._number_in(dtype, number), dtype) if dtype in FLOATS else number


def fitting(number, dtype):
    """The same for an argument that the CPU refuses beyond @dtype; Refused there."""
    if dtype in FLOATS and not _C._fits_number(dtype, number):
        raise Refused(f"{number} is beyond {dtype}")
    return rounded(number, dtype)


def last(dim, rank):
    """Returns a dim counted from the end, which stays valid if dims are added in front."""
    return dim if dim < 0 else dim - rank


def dims_of(dim, rank):
    """Returns dims counted from the end; all dims if none are given."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return list(range(-rank, 0))
    return sorted(last(d, rank) for d in (dim if isinstance(dim, (list, tuple)) else [dim]))


def size_of(thing):
    """Returns the size of an argument, () for a number."""
    return thing.size if isinstance(thing, (Value, Number)) else ()
