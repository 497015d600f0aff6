# SPDX-License-Identifier: MIT
"""A program of the SDSC builder under construction.

Each operation is passed to the builder immediately, so a refusal is known at once. Accepted
operations are recorded, so that they can be repeated and stored as text.
"""

import dataclasses

import torch

from .. import _C
from ..inductor import log
from .propagate_named_dims import fitted, walk


class Refused(Exception):
    """Raised with the reason if the card or this back end does not support an operation.

    @node is the operation, if it is known.
    """

    def __init__(self, reason, node=None):
        super().__init__(reason)
        self.node = node


class BetterEager(Refused):
    """Raised for an operation that eager mode computes with less work than a kernel, also than one
    that reads copies of its inputs."""


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
    """A tensor whose elements all have one value, and which has no memory yet."""

    value: float
    size: tuple
    dtype: torch.dtype


@dataclasses.dataclass(frozen=True)
class Permuted:
    """A value with its dims in another order, which can only be stored: dim i is dim dims[i]."""

    value: Value
    dims: tuple
    dtype: torch.dtype

    @property
    def size(self):
        """The size in the new order."""
        return tuple(self.value.size[d] for d in self.dims)

    @property
    def place(self):
        """The index of the value's record."""
        return self.value.place

    @property
    def format(self):
        """The format of the value."""
        return self.value.format


def as_refusal(error, where):
    """Returns @error as a Refused, so that the operations that caused it run eagerly.

    Any other exception is a defect, which the debug log shows with its traceback.
    """
    if isinstance(error, Refused):
        return error
    log.debug("%s: %s", where, error, exc_info=error)
    return Refused(f"{type(error).__name__}: {error}")


FLOATS = (torch.float16, torch.bfloat16, torch.float32)
#: The integers of which the card has exact operations; both have 32 bits there.
INTEGERS = (torch.int32, torch.int64)


def format_of(dtype):
    """Returns the card's format of a dtype; Refused if it has none."""
    if dtype in (torch.float64, torch.complex64, torch.complex128, torch.complex32):
        raise Refused(f"the card cannot store {dtype}")
    return _C._device_format(dtype)


def stripped(size):
    """Returns a size without leading ones."""
    size = tuple(size)
    while size and size[0] == 1:
        size = size[1:]
    return size


class Program:
    """The arguments and operations that the builder has accepted.

    A value is identified by the index of its record, so that records have the same meaning in
    all versions of the library. @request is the division that a hint requests of the operations
    that are being added (:mod:`.hint`).
    """

    def __init__(self, records=()):
        self.graph = _C._Graph()
        self.records, self.tensors = [], []
        self.names, self.request = {}, None
        for record in records:
            self._do(record)

    def _do(self, record):
        """Adds a record to the graph of libspyre and to the records."""
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
        """Adds a record and returns its Value; raises Refused with libspyre's reason."""
        try:
            self._do(record)
        except RuntimeError as error:
            raise Refused(str(error)) from None
        return self.value(len(self.records) - 1)

    def argument(self, operand, padding, names=None):
        """Adds an argument and returns its Value.

        @operand is (size, device_size, stride_map, dim_map, format).
        """
        return self._named(self._add("argument", operand, padding), names)

    def _named(self, value, names):
        """Returns @value with names for its dims, if there are any."""
        if names is None or not any(names):
            return value
        names = fitted(names, len(value.size))
        self.names[value.place] = names
        return dataclasses.replace(value, names=names)

    def op(self, name, *inputs, out=None, **attributes):
        """Adds an operation of the builder and returns its Value.

        An attribute that is a list is given several times. Raises Refused.
        """
        pairs = []
        for key, value in attributes.items():
            for item in value if isinstance(value, (list, tuple)) else (value,):
                pairs.append((key, float(item)))
        record = ("op", name, pairs, [v.place for v in inputs], None if out is None else out.place)
        walked = walk(name, inputs, attributes, self._stick(inputs))
        division = self.request.division(walked) if self.request else []
        if division:
            value = self._divided(record, division)
            self.request.record_applied(division, walked)
        else:
            value = self._add(*record)
        return self._named(value, walked and walked.result()[1])

    def stick(self, value):
        """Returns a value's dim along sticks; -1 if it has none."""
        return self.graph.tensor(self.tensors[value.place])[3][-1]

    def _stick(self, inputs):
        """Returns the first input's dim along sticks; -1 if it has none, or without a request."""
        return self.stick(inputs[0]) if self.request and inputs else -1

    def _divided(self, record, division):
        """Adds an operation with the division that a hint requests."""
        try:
            return self._add(*record, division)
        except Refused as refusal:
            self._add(*record)  # raises if it is refused without the division, too
            raise self.request.hint_error(refusal) from None

    def cast(self, value, form):
        """Returns @value converted to a format, or itself if it has that format."""
        if value.format == form:
            return value
        return dataclasses.replace(self.op("cast", value, format=form), dtype=value.dtype)

    def mark(self):
        """Returns a mark of the present state for rollback()."""
        return len(self.records), self.graph.mark()

    def rollback(self, mark):
        """Removes all records since @mark, a result of mark()."""
        count, place = mark
        self.graph.rollback(place)
        del self.records[count:], self.tensors[count:]
        self.names = {place: n for place, n in self.names.items() if place < count}

    def value(self, place):
        """Returns the Value of the record at @place."""
        size, _, _, _, form = self.graph.tensor(self.tensors[place])
        return Value(place, tuple(size), form, names=self.names.get(place))
