# SPDX-License-Identifier: MIT
"""Conversions over whole sticks of the longer format, between tensors that lack the padding.

As front-ends emit them: the iteration of qfp8ch and fp8todl16 is padded to 128 elements, and
the 16-bit tensors have memory for whole sticks of 64 only. The intermediates lie side by side,
so that padding which is stored anywhere destroys another one.
"""
from . import family
from .bundle import Bundle
from .frame import chance, pick
from .formats import FORMATS, HOSTS
from .sdsc import Sdsc
from .tensors import Argument, Lx, Operand, Pool


def up(n, unit):
    return -(-n // unit) * unit


class There:
    """Narrows a tensor and widens it again, with a step before and behind."""

    def __init__(self, rng, dtype, middle):
        self.rng, self.fmt, self.middle = rng, HOSTS[dtype].device, middle
        self.rows = int(pick(rng, [1, 2, 3, 4, 8, 12]))
        lanes = FORMATS[self.fmt].lanes
        self.n = int(pick(rng, [1, 8, lanes // 2, lanes, lanes + 1, 3 * lanes - 5, 5 * lanes]))
        self.own = {"mb": self.rows, "out": up(self.n, lanes)}
        self.wide = {"mb": self.rows, "out": up(self.n, FORMATS[middle].lanes)}
        self.cores = int(pick(rng, [c for c in (1, 2, 3, 4, 8, 12) if self.rows % c == 0]))
        self.end = 128 * int(rng.integers(0, 4))

    def places(self, kind):
        """A place each for the input, the narrow tensor and the result, in any order."""
        sizes = {"x": (self.fmt, self.own), "narrow": (self.middle, self.wide),
                 "y": (self.fmt, self.own)}
        found = {}
        for name in self.rng.permutation(sorted(sizes)):
            fmt, space = sizes[str(name)]
            rows = self.rows // (self.cores if kind is Lx else 1)
            found[str(name)] = kind(self.end)
            self.end += 128 * rows * (space["out"] // FORMATS[fmt].lanes)
        if chance(self.rng, 0.3):
            found["y"] = found["x"]
        elif kind is Pool and chance(self.rng, 0.4):
            # Of tensors without memory of their own, each step may store over what it reads.
            for name, place in found.items():
                fmt, space = sizes[name]
                size = self.rows * (space["out"] // FORMATS[fmt].lanes)
                place.offset = 128 * int(self.rng.integers(0, self.end // 128 - size + 1))
        return found

    def operand(self, where, fmt):
        return Operand(where, fmt, ["mb", "out"], "out")


@family("padded", [("qfp8ch", "fp8todl16", "fp16", "SEN143_FP8"),
                   ("qfp8ch", "fp8todl16", "fp32", "SEN143_FP8"),
                   ("fp32todl16", "dl16tofp32", "fp32", "SEN169_FP16")], weight=3, fixed=8)
def padded(rng, variant):
    narrow, widen, dtype, middle = variant
    there = There(rng, dtype, middle)
    kind = Lx if chance(rng, 0.3) else Pool
    place = there.places(kind)
    shape = (there.rows, there.n)
    x, out = Argument(shape, dtype, None, [0, 1]), Argument(shape, dtype, None, [0, 1])
    dims, slices = {0: "mb", 1: "out"}, {"mb": there.cores}
    direct = chance(rng, 0.3)
    a = x.operand(dims, there.wide if direct else there.own)
    steps = []
    if not direct:
        made = there.operand(place["x"], there.fmt)
        steps.append(Sdsc("abs", there.own, slices, [a, made]))
        a = made
    b, c = there.operand(place["narrow"], middle), there.operand(place["y"], there.fmt)
    steps += [Sdsc(narrow, there.wide, slices, [a, b]), Sdsc(widen, there.wide, slices, [b, c]),
              Sdsc("neg", there.own, slices, [c, out.operand(dims, there.own)])]
    text = "-stored(%s, %r)" % ("in0" if direct else "np.abs(in0)", middle)
    if direct:
        a.gap.clear()
    return Bundle(narrow, [x], [out], steps, text, 0, 0,
                  pool=there.end if kind is Pool else 0, allocate=True,
                  september=chance(rng, 0.5))


@family("parted", [("fp8todl16", "fp8_e4m3", "fp16"), ("dl16tofp32", "fp16", "fp32")], fixed=2)
def parted(rng, variant):
    """A result whose sticks are read one by one, each as a tensor of its own."""
    op, narrow, dtype = variant
    wide, lanes = FORMATS[HOSTS[narrow].device].lanes, FORMATS[HOSTS[dtype].device].lanes
    rows = int(pick(rng, [1, 2, 5, 8]))
    x = Argument((rows, wide), narrow, None, [0, 1])
    space, own, dims = {"mb": rows, "out": wide}, {"mb": rows, "out": lanes}, {0: "mb", 1: "out"}
    made = Operand(Pool(0), HOSTS[dtype].device, ["mb", "out"], "out")
    steps, outputs, text = [Sdsc(op, space, {}, [x.operand(dims, space), made])], [], []
    for at in range(0, wide, lanes):
        outputs.append(Argument((rows, lanes), dtype, None, [0, 1]))
        steps.append(Sdsc("neg", own, {}, [made.moved(Pool(at // lanes * rows * 128)),
                                           outputs[-1].operand(dims, own)]))
        text.append("-in0[:,%d:%d]" % (at, at + lanes))
    return Bundle(op, [x], outputs, steps, ",".join(text), 0, 0,
                  pool=rows * 128 * wide // lanes, september=chance(rng, 0.5))


@family("joined", [("fp32todl16", "fp32", "fp16", "SEN169_FP16"),
                   ("qfp8ch", "fp16", "fp8_e4m3", "SEN143_FP8")], fixed=2)
def joined(rng, variant):
    """A tensor whose sticks are written one by one, each as a tensor of its own, and read whole."""
    op, dtype, narrow, stored = variant
    wide, lanes = FORMATS[stored].lanes, FORMATS[HOSTS[dtype].device].lanes
    rows = int(pick(rng, [1, 2, 5, 8]))
    space, own, dims = {"mb": rows, "out": wide}, {"mb": rows, "out": lanes}, {0: "mb", 1: "out"}
    made = Operand(Pool(0), HOSTS[dtype].device, ["mb", "out"], "out")
    steps, inputs, text = [], [], []
    for at in range(0, wide, lanes):
        inputs.append(Argument((rows, lanes), dtype, None, [0, 1]))
        steps.append(Sdsc("neg", own, {}, [inputs[-1].operand(dims, own),
                                           made.moved(Pool(at // lanes * rows * 128))]))
        text.append("-in%d" % (at // lanes))
    out = Argument((rows, wide), narrow, None, [0, 1])
    steps.append(Sdsc(op, space, {}, [made, out.operand(dims, space)]))
    return Bundle(op, inputs, [out], steps,
                  "stored(np.concatenate([%s], 1), %r)" % (", ".join(text), stored), 0, 0,
                  pool=rows * 128 * wide // lanes, september=chance(rng, 0.5))
