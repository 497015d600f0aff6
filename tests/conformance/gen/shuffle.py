# SPDX-License-Identifier: MIT
"""shuffle: a tensor in LX changes its division between the step that makes it and its reader."""
from . import divide, family
from .bundle import Bundle
from .frame import Frame, chance, pick
from .sdsc import Division, Sdsc
from .tensors import Lx


def divisions(space, unit, cores):
    """All divisions of @space over exactly @cores cores."""
    found = [{}]
    for dim in space:
        found = [dict(d, **{dim: n}) for d in found
                 for n in divide.factors(space[dim] // unit.get(dim, 1), cores)]
    products = []
    for d in found:
        product = 1
        for n in d.values():
            product *= n
        if product == cores:
            products.append(d)
    return products


class Relayout:
    """A producer, one or two shuffles and a consumer, all on the same cores."""

    def __init__(self, rng, dtype):
        self.rng, self.dtype = rng, dtype
        rank = int(rng.choice([2, 3, 3, 4]))
        shape = [int(pick(rng, [2, 4, 6, 8, 12])) for _ in range(rank)]
        stick = rank - 1 if chance(rng, 0.7) else int(rng.integers(rank))
        shape[stick] = int(pick(rng, [64, 100, 128, 256]))
        self.frame = frame = Frame(rng, dtype, shape=shape, stick=stick)
        self.unit = {frame.dim[frame.stick]: frame.wide}
        counts = [n for n in (2, 3, 4, 6, 8, 12, 16, 24, 32)
                  if divisions(frame.space, self.unit, n)]
        self.cores = int(pick(rng, counts[len(counts) // 2:] if chance(rng, 0.6) else counts))
        self.steps, self.lx = [], 128 * int(rng.integers(0, 20))

    def division(self):
        slices = pick(self.rng, divisions(self.frame.space, self.unit, self.cores))
        return Division(self.frame.space, slices, chance(self.rng, 0.5))

    def everywhere(self):
        """Each core holds the whole tensor."""
        return Division(self.frame.space, {dim: 1 for dim in self.frame.space}, False, self.cores)

    def at(self, last, division):
        """LX behind the last operand, or where it lies."""
        size = last.bytes(self.frame.space, division.slices)
        if chance(self.rng, 0.3):
            return Lx(last.where.address)
        self.lx += size
        return Lx(self.lx)

    def shuffle(self, operand, source, target):
        """Appends a shuffle; its schedule is that of either side."""
        model = self.frame.output(self.rng, self.dtype, False).operand
        out = model.moved(self.at(operand, source))
        self.lx += out.bytes(self.frame.space, target.slices)
        plan = source if source.divides(self.cores) else target
        self.steps.append(Sdsc("shuffle", self.frame.space, plan.slices, [operand, out],
                               k_fast=plan.k_fast, divisions=[source, target]))
        return out

    def bundle(self, name):
        rng, frame = self.rng, self.frame
        first, last = self.division(), self.division()
        x, y = frame.input(rng, self.dtype, broadcast=[]), frame.output(rng, self.dtype)
        made = frame.output(rng, self.dtype, False).operand.moved(Lx(self.lx))
        self.lx += made.bytes(frame.space, first.slices)
        self.steps.append(Sdsc("abs", frame.space, first.slices, [x.operand, made],
                               k_fast=first.k_fast))
        if chance(rng, 0.3):
            whole = self.everywhere()
            made = self.shuffle(made, first, whole)
            first = whole
        made = self.shuffle(made, first, last)
        self.steps.append(Sdsc("neg", frame.space, last.slices, [made, y.operand],
                               k_fast=last.k_fast))
        return Bundle(name, [x.argument], [y.argument], self.steps,
                      "-np.abs(%s)" % (x.text % "in0"), 0, 0, symbolic=chance(rng, 0.7),
                      september=chance(rng, 0.5))


@family("shuffle", [("shuffle", "fp16"), ("shuffle", "fp32"), ("shuffle", "bf16")], weight=2)
def shuffle(rng, variant):
    name, dtype = variant
    return Relayout(rng, dtype).bundle(name)
