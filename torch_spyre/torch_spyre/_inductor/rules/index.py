# SPDX-License-Identifier: MIT
"""Rules of operations that access a tensor at indices; the card checks each index."""

import math

from ..emit import BetterEager, Refused, Value
from .base import aten, last, rule


def dim_of(call, table, dim):
    """Returns the indexed dim of the table, the first argument, counted from the end."""
    dim = last(dim, call.node.args[0].meta["val"].dim())
    call.check_whole(table, 0, [dim])
    return dim


def tensors(*things):
    """Refuses arguments that are numbers instead of tensors of the card."""
    if not all(isinstance(thing, Value) for thing in things):
        raise Refused("an argument without memory")


@rule(aten.embedding.default)
def embedding(call):
    """Lowers lookups of rows."""
    weight, indices = call["weight"], call["indices"]
    tensors(weight, indices)
    dim_of(call, weight, 0)
    if call.program.stick(weight) == 0 and math.prod(indices.size) < weight.size[0] // 64:
        raise BetterEager("few rows of a table with sticks along them: eager mode reads tiles of it")
    return call.op("embedding", weight, indices)


@rule(aten.index_select.default)
def index_select(call):
    """Lowers the selection of rows along a dim."""
    table, index = call["self"], call["index"]
    tensors(table, index)
    return call.op("index_select", table, index, dim=dim_of(call, table, call["dim"]))


@rule(aten.gather.default)
def gather(call):
    """Lowers the selection of single elements along a dim."""
    table, index = call["self"], call["index"]
    tensors(table, index)
    return call.op("gather", table, index, dim=dim_of(call, table, call["dim"]))


@rule(aten.index.Tensor)
def index(call):
    """Lowers indexing with one tensor of integers; negative ones count from the end."""
    table, indices = call["self"], call["indices"]
    given = [(d, i) for d, i in enumerate(indices) if i is not None]
    if len(given) != 1:
        raise Refused(f"{len(given)} tensors of indices")
    dim, one = given[0]
    tensors(table, one)
    if one.dtype.is_floating_point or one.dtype.itemsize < 4:
        raise Refused(f"indices that are {one.dtype}")
    return call.op("index_select", table, one, dim=dim_of(call, table, dim), wrap=1)
