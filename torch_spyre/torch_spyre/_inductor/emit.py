# SPDX-License-Identifier: MIT
"""A program of the SDSC builder in the making.

Every operation goes to the builder at once, so what it refuses is known when
it is asked; what it took is written down, to be done again and kept in text.
"""

import dataclasses

import torch

from .. import _C
from ..inductor import log
from .propagate_named_dims import fitted, walk


class Refused(Exception):
    """The card, or this back end, does not take an operation; says why.

    @node is the one at fault, if that is known.
    """

    def __init__(self, reason, node=None):
        super().__init__(reason)
        self.node = node


@dataclasses.dataclass(frozen=True)
class Value:
    """A tensor of the program."""

    place: int
    size: tuple
    format: int
    dtype: torch.dtype = None
    #: Names of the dims, or None.
    names: tuple = None


@dataclasses.dataclass(frozen=True)
class Number:
    """A tensor of one value throughout, which needs no memory yet."""

    value: float
    size: tuple
    dtype: torch.dtype


@dataclasses.dataclass(frozen=True)
class Permuted:
    """A value with its dims in another order, fit to be stored: dim i is its dim dims[i]."""

    value: Value
    dims: tuple
    dtype: torch.dtype

    @property
    def size(self):
        return tuple(self.value.size[d] for d in self.dims)

    @property
    def place(self):
        return self.value.place

    @property
    def format(self):
        return self.value.format


def as_refusal(error, where):
    """What @error means to those who try to make a kernel: this part of it runs eagerly.

    An error that is not a refusal is a defect, which the log of debugging shows as such.
    """
    if isinstance(error, Refused):
        return error
    log.debug("%s: %s", where, error, exc_info=error)
    return Refused(f"{type(error).__name__}: {error}")


FLOATS = (torch.float16, torch.bfloat16, torch.float32)


def format_of(dtype):
    """The format in which elements of a dtype are stored."""
    if dtype in (torch.float64, torch.complex64, torch.complex128, torch.complex32):
        raise Refused(f"{dtype} has no form on the card")
    return _C._device_format(dtype)


def stripped(size):
    """A size without leading ones."""
    size = tuple(size)
    while size and size[0] == 1:
        size = size[1:]
    return size


class Program:
    """Arguments and operations, as the builder took them.

    A value is known by the place of its record, so records mean the same to
    every version of the library. @wish is what a hint asks of the operations
    that are being added (:mod:`.hint`).
    """

    def __init__(self, records=()):
        self.graph = _C._Graph()
        self.records, self.tensors = [], []
        self.names, self.wish = {}, None
        for record in records:
            self._do(record)

    def _do(self, record):
        if record[0] == "argument":
            tensor = self.graph.add_argument(*record[1:])
        else:
            _, name, attributes, inputs, out, *division = record
            tensor = self.graph.add_op(
                name,
                [tuple(pair) for pair in attributes],
                [self.tensors[i] for i in inputs],
                None if out is None else self.tensors[out],
                *([tuple(split) for split in part] for part in division),
            )
        self.records.append(record)
        self.tensors.append(tensor)

    def _add(self, *record):
        try:
            self._do(record)
        except RuntimeError as error:
            raise Refused(str(error)) from None
        return self.value(len(self.records) - 1)

    def argument(self, operand, padding, names=None):
        """Adds an argument; @operand is (size, device_size, stride_map, dim_map, format)."""
        return self._named(self._add("argument", operand, padding), names)

    def _named(self, value, names):
        if names is None or not any(names):
            return value
        names = fitted(names, len(value.size))
        self.names[value.place] = names
        return dataclasses.replace(value, names=names)

    def op(self, name, *inputs, out=None, **attributes):
        """Adds an operation of the builder; an attribute may be a list: given several times."""
        pairs = []
        for key, value in attributes.items():
            for item in value if isinstance(value, (list, tuple)) else (value,):
                pairs.append((key, float(item)))
        record = ("op", name, pairs, [v.place for v in inputs], None if out is None else out.place)
        walked = walk(name, inputs, attributes, self._stick(inputs))
        division = self.wish.division(walked) if self.wish else []
        if division:
            value = self._divided(record, division)
            self.wish.took(division, walked)
        else:
            value = self._add(*record)
        return self._named(value, walked and walked.result()[1])

    def _stick(self, inputs):
        """The dim of the first input that lies along sticks; -1: none, or nobody asks."""
        if not self.wish or not inputs:
            return -1
        return self.graph.tensor(self.tensors[inputs[0].place])[3][-1]

    def _divided(self, record, division):
        """Adds an operation with the division that a hint asks for."""
        try:
            return self._add(*record, division)
        except Refused as refusal:
            self._add(*record)  # refused without it, too?
            raise self.wish.refused(refusal) from None

    def cast(self, value, form):
        """@value in a format; itself if it has that."""
        if value.format == form:
            return value
        return dataclasses.replace(self.op("cast", value, format=form), dtype=value.dtype)

    def mark(self):
        """What back_to() takes to return to the program as it is now."""
        return len(self.records), self.graph.mark()

    def back_to(self, mark):
        """The program as it was at a mark; nothing is added again."""
        count, place = mark
        self.graph.rollback(place)
        del self.records[count:], self.tensors[count:]
        self.names = {place: n for place, n in self.names.items() if place < count}

    def value(self, place):
        """The value of a record."""
        size, _, _, _, form = self.graph.tensor(self.tensors[place])
        return Value(place, tuple(size), form, names=self.names.get(place))
