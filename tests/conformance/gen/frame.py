# SPDX-License-Identifier: MIT
"""Random shapes, layouts and iteration spaces for operations over one box of dims."""
from . import divide
from .bundle import Bundle
from .formats import FORMATS, HOSTS
from .sdsc import Sdsc
from .tensors import Argument

NAMES = ["mb", "x", "y", "i", "j", "ki", "kj"]
ROWS = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 17, 25, 32, 48, 64, 96, 100]
STICKS = [1, 5, 31, 32, 33, 63, 64, 65, 70, 96, 100, 128, 150, 192, 200, 256, 320, 384]
BUDGET = 40000


def pick(rng, choices):
    return choices[int(rng.integers(len(choices)))]


def chance(rng, p):
    return bool(rng.random() < p)


class Use:
    """An argument in the operation: its operand and its name in the reference."""

    def __init__(self, argument, operand, text="%s"):
        self.argument, self.operand, self.text = argument, operand, text


class Frame:
    """A host shape, the iteration dim of each axis, and which axis is the stick."""

    def __init__(self, rng, *dtypes, rank=None, shape=None, stick=None, budget=BUDGET,
                 names=None):
        lanes = [FORMATS[HOSTS[d].device].lanes for d in dtypes] or [64]
        self.wide, self.narrow = max(lanes), min(lanes)
        if shape is None:
            rank = rank or int(rng.choice([1, 2, 2, 2, 3, 3, 4, 5, 6]))
            stick = rank - 1 if chance(rng, 0.7) else int(rng.integers(rank))
            shape = self._shape(rng, rank, stick, budget)
        self.shape, self.rank = tuple(shape), len(shape)
        self.stick = self.rank - 1 if stick is None else stick % self.rank
        names = names or NAMES[:self.rank - 1] + ["out"]
        axes = list(range(self.rank))
        if chance(rng, 0.3):
            axes = [int(a) for a in rng.permutation(self.rank)]
        self.dim = {axis: name for axis, name in zip(axes, names)}
        self.space = {name: self.size(axis) for axis, name in zip(axes, names)}

    def _shape(self, rng, rank, stick, budget):
        while True:
            shape = [int(pick(rng, ROWS if rank < 4 else ROWS[:8])) for _ in range(rank)]
            shape[stick] = int(pick(rng, STICKS))
            if self.narrow < self.wide and shape[stick] <= self.narrow:
                continue                # padding would be indistinguishable from the next row
            n = -(-shape[stick] // self.wide) * self.wide
            for axis, size in enumerate(shape):
                n *= size if axis != stick else 1
            if n <= budget:
                return shape

    def size(self, axis):
        """Of the iteration dim: whole sticks of the widest operand in the stick axis."""
        n = self.shape[axis]
        return -(-n // self.wide) * self.wide if axis == self.stick else n

    def order(self, rng, axes):
        """A device order: mostly the default one, else any."""
        if chance(rng, 0.5):
            return Argument.default_order(len(axes))
        return [int(a) for a in rng.permutation(len(axes))]

    def input(self, rng, dtype, init="randn", broadcast=None, slices=True, fmt=None):
        """An input: the whole box, broadcast along some axes, or a slice of something larger.

        broadcast  axes along which it has one element (None: random)
        """
        if broadcast is None:
            p = 0.0 if chance(rng, 0.6) else 0.4
            broadcast = [a for a in range(self.rank) if chance(rng, p)]
        lead = 0
        while lead in broadcast and chance(rng, 0.7):   # a tensor without these axes at all
            lead += 1
        axes = list(range(lead, self.rank))
        own = [1 if a in broadcast else self.shape[a] for a in axes]
        sparse = self.stick in broadcast
        start, shape, padded, text = {}, list(own), {}, "%s"
        lanes = FORMATS[fmt or HOSTS[dtype].device].lanes
        if slices and self.narrow == self.wide and chance(rng, 0.25):
            start, shape, text = self._slice(rng, axes, own, broadcast, lanes)
        stick = None if sparse else self.stick - lead
        if not sparse:
            self._pad_stick(padded, stick, shape, start, lanes)
        argument = Argument(shape, dtype, fmt, self.order(rng, axes), stick, padded, init)
        return self._use(argument, axes, broadcast, start, text)

    def _slice(self, rng, axes, own, broadcast, lanes):
        """Elements before and after the part that is used; whole sticks before it."""
        start, shape, parts = {}, [], []
        for i, (axis, n) in enumerate(zip(axes, own)):
            if axis in broadcast:
                shape.append(n)
                parts.append(":")
                continue
            unit = lanes if axis == self.stick else 1
            front = int(rng.integers(0, 3)) * unit
            back = int(rng.integers(0, 3)) * unit
            if back and axis == self.stick and n % unit:
                back += unit - n % unit
            start[i] = front
            shape.append(front + n + back)
            parts.append("%d:%d" % (front, front + n))
        return start, shape, "%%s[%s]" % ", ".join(parts or ["..."])

    def _pad_stick(self, padded, axis, shape, start, lanes):
        """Narrow sticks need to be as long as the widest ones of the operation."""
        need = start.get(axis, 0) + self.size(self.stick)
        if -(-shape[axis] // lanes) * lanes < need:
            padded[axis] = need

    def _use(self, argument, axes, broadcast, start, text):
        dims = [self.dim[a] if a not in broadcast else None for a in axes]
        space = dict(self.space)
        gone = [self.dim[a] for a in range(self.rank) if a in broadcast or a not in axes]
        lane = None
        if argument.stick is None:
            lane = self.dim[self.stick]
            gone.remove(lane)
        # An axis of one element needs no dim: it is left out, and listed as broadcast.
        order = [a for a in argument.order if dims[a] is not None]
        whole = Argument.operand
        operand = whole(_Without(argument, order), dims, space, start, gone, lane, argument)
        return Use(argument, operand, text)

    def output(self, rng, dtype, padded=True, fmt=None):
        axes = list(range(self.rank))
        extra = {}
        if padded and chance(rng, 0.15):
            axis = int(rng.integers(self.rank))
            if axis != self.stick and self.shape[axis] > 1:
                extra[axis] = self.shape[axis] + int(rng.integers(1, 5))
        lanes = FORMATS[fmt or HOSTS[dtype].device].lanes
        self._pad_stick(extra, self.stick, self.shape, {}, lanes)
        argument = Argument(self.shape, dtype, fmt, self.order(rng, axes), self.stick, extra)
        return self._use(argument, axes, [], {}, "%s")

    def bundle(self, rng, op, inputs, output, reference, rtol=None, atol=1e-6, name=None,
               **options):
        """A bundle of one SDSC over the whole box, divided at random."""
        operands = [u.operand for u in inputs] + [output.operand]
        slices = options.pop("slices", None) or divide.random(
            rng, self.space, divide.sticks(operands), int(pick(rng, [1, 4, 8, 32, 32])))
        args, names = [], []
        for use in inputs:
            if use.argument not in args:
                args.append(use.argument)
            names.append("(%s)" % use.text % ("in%d" % args.index(use.argument)))
        if rtol is None:
            rtol = tolerance(output.argument)
        step = Sdsc(op, self.space, slices, operands, **options)
        return Bundle(name or op, args, [output.argument], [step], reference.format(*names),
                      rtol, atol, symbolic=chance(rng, 0.7), september=chance(rng, 0.5))


class _Without:
    """A view of an argument's layout without the axes of one element."""

    def __init__(self, argument, order):
        self.__dict__.update(argument.__dict__)
        self.order = order
        self.extent = argument.extent


def tolerance(argument):
    """One rounding at the store, and at the copy to a narrower host dtype."""
    if argument.dtype == "bf16":
        return 0.008
    return {"SEN169_FP16": 0.0025, "IEEE_FP32": 4e-6}.get(argument.fmt, 0.01)
