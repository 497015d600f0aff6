# SPDX-License-Identifier: MIT
"""Sizes of dimensions as parameters: several values of one bundle, divided over the cores.

Memory has the layout of the maximum. The elements beyond a value are random numbers, so that a
result shows if one of them is read, and the runner checks that none is written.
"""
from . import divide, family
from .bundle import Bundle
from .formats import HOSTS
from .frame import chance, pick
from .sdsc import Sdsc
from .tensors import Argument, Lx, Pool

LANES = {"fp16": 64, "fp32": 32}
TOLERANCE = {"fp16": 0.0025, "fp32": 4e-6}


class Size:
    """A dimension from a granule to @steps of them; its cores divide the granule.

    The granule is a multiple of @unit elements, the maximum one of @whole.
    """

    def __init__(self, rng, symbol, unit=1, whole=1):
        self.symbol = symbol
        self.granularity = unit * int(pick(rng, [1, 2, 4, 6, 8]))
        self.steps = int(pick(rng, [2, 3, 4, 5, 8]))
        while self.granularity * self.steps % whole:
            self.steps += 1
        self.max = self.granularity * self.steps
        self.unit = unit

    def slices(self, rng, cores=32):
        """Cores along it: a divisor of the granule in whole units."""
        choices = divide.factors(self.granularity // self.unit, cores)
        return choices[-1] if chance(rng, 0.6) else int(pick(rng, choices))


def values(rng, sizes):
    """One granule, the maximum, something between, and the first one again."""
    one = {s.symbol: s.granularity for s in sizes}
    some = [{s.symbol: s.granularity * int(rng.integers(1, s.steps + 1)) for s in sizes}
            for _ in range(2)]
    return [one, {s.symbol: s.max for s in sizes}] + some + [one]


def bundle(rng, sizes, inputs, outputs, steps, text, rtol, atol, pool=0):
    return Bundle("symbolic", inputs, outputs, steps, text, rtol, atol, pool=pool,
                  allocate=bool(pool), extra={"values": values(rng, sizes)},
                  sizes={s.symbol: (s.granularity, s.max) for s in sizes},
                  numbers=chance(rng, 0.5))


def columns(rng):
    return int(pick(rng, [64, 128, 192, 256]))


def box(rng, shape, dtype, count):
    """Arguments of one shape, mostly row-major."""
    return [Argument(shape, dtype, None, Argument.default_order(len(shape)) if chance(rng, 0.7)
                     else [int(a) for a in rng.permutation(len(shape))]) for _ in range(count)]


@family("symbolic", [("rows", "fp16"), ("rows", "fp32"), ("two", "fp16"), ("stick", "fp16"),
                     ("stick", "fp32"), ("tail", "fp16")], weight=2)
def pointwise(rng, variant):
    """A sum of two tensors with one or two sizes; "tail" ends within a stick."""
    kind, dtype = variant
    lanes = LANES[dtype]
    rows = Size(rng, "s0")
    if kind in ("stick", "tail"):
        rows = Size(rng, "s0", lanes if kind == "stick" else 10, lanes)
        shape, dims = (int(pick(rng, [1, 3, 8])), rows.max), ("mb", "out")
        sizes, sized = [rows], {"out": "s0"}
    else:
        shape, dims = (rows.max, columns(rng)), ("mb", "out")
        sizes, sized = [rows], {"mb": "s0"}
    if kind == "two":
        more = Size(rng, "s1")
        shape, dims = (more.max,) + shape, ("x",) + dims
        sizes, sized = [rows, more], {"mb": "s0", "x": "s1"}
    space = dict(zip(dims, shape))
    slices = {d: 1 for d in dims}
    for size in sizes:
        dim = next(d for d, s in sized.items() if s == size.symbol)
        slices[dim] = size.slices(rng, 4 if kind == "two" else 32) if kind != "tail" else 1
    if kind == "rows" and slices["mb"] <= 8:
        slices["out"] = int(pick(rng, divide.factors(space["out"] // lanes, 4)))
    args = box(rng, shape, dtype, 3)
    uses = [t.operand(dict(enumerate(dims)), space) for t in args]
    part = "[%s]" % ", ".join(":" + sized.get(d, "") for d in dims)
    return bundle(rng, sizes, args[:2], args[2:], [Sdsc("add", space, slices, uses, sizes=sized)],
                  "in0%s+in1%s" % (part, part), TOLERANCE[dtype], 1e-6)


REDUCE = {"sum": ("({0}).sum({1})", ()), "max": ("({0}).max({1})", ()),
          "mean": ("({0}).mean({1})", ("scaling_factor",))}


@family("symbolic-reduce", [(op, where, dtype) for op in REDUCE
                            for where, dtype in (("beside", "fp16"), ("over", "fp16"),
                                                 ("over", "fp32"), ("stick", "fp16"),
                                                 ("stick", "fp32"))])
def reduction(rng, variant):
    """A reduction beside the size, over it, or over a stick dim with that size."""
    op, where, dtype = variant
    text, named = REDUCE[op]
    lanes, fmt = LANES[dtype], HOSTS[dtype].device
    if where == "stick":
        size = Size(rng, "s0", lanes if chance(rng, 0.5) else 10, lanes)
        shape, axis, sized = (int(pick(rng, [4, 8, 16])), size.max), 1, {"out": "s0"}
    else:
        size = Size(rng, "s0")
        shape = (size.max, columns(rng))
        axis, sized = (0 if where == "over" else 1), {"mb": "s0"}
    space = {"mb": shape[0], "out": shape[1]}
    a, = box(rng, shape, dtype, 1)
    x = a.operand({0: "mb", 1: "out"}, space)
    if axis:
        b = Argument((shape[0],), dtype, stick=None)
        y = b.operand({0: "mb"}, space, lane="out")
    else:
        b = Argument((shape[1],), dtype)
        y = b.operand({0: "out"}, space, broadcast=["mb"])
    constants = [("scaling_factor", fmt, 1.0 / shape[axis])] if named else []
    slices = {"mb": 1, "out": 1}
    slices["mb" if where != "stick" else "out"] = \
        size.slices(rng, 8) if where != "stick" or size.unit == lanes else 1
    if where == "stick":
        slices["mb"] = int(pick(rng, divide.factors(shape[0], 4)))
        if op != "sum" or chance(rng, 0.5):
            slices["out"] = 1
    constants += [("samv-maskvalue", fmt, -65504.0 if op == "max" else 0.0)]
    step = Sdsc(op + ("" if axis else "nonstick"), space, slices, [x, y], constants,
                accumulate=True, sizes=sized)
    part = "in0[:, :s0]" if where == "stick" else "in0[:s0]"
    rtol = TOLERANCE[dtype] + (0.001 if named and dtype == "fp16" else 0)
    return bundle(rng, [size], [a], [b], [step], text.format(part, axis), rtol,
                  1e-6 + 2.0 ** -23 * shape[axis])


@family("symbolic-matmul", [("m",), ("n",), ("k",), ("batch",)], weight=2)
def matmul(rng, variant):
    """A product in which the rows, the columns, K or the batch is a parameter."""
    which, = variant
    size = Size(rng, "s0", 1 if which in ("m", "batch") else 64)
    if size.max > 1024:
        return matmul(rng, variant)
    m, n, k = int(pick(rng, [3, 8, 16])), columns(rng), columns(rng)
    dim = {"m": "mb", "n": "out", "k": "in", "batch": "x"}[which]
    space = {"x": 2, "mb": m, "out": n, "in": k}
    space[dim] = size.max
    shapes = [("x", "mb", "in"), ("x", "in", "out"), ("x", "mb", "out")]
    args = [Argument([space[d] for d in dims], "fp16", init="small") for dims in shapes]
    uses = [t.operand(dict(enumerate(dims)), space) for t, dims in zip(args, shapes)]
    slices = {d: 1 for d in space}
    slices[dim] = size.slices(rng, 16)
    if slices[dim] <= 8 and dim != "mb":
        slices["mb"] = int(pick(rng, divide.factors(m, 4)))
    step = Sdsc("batchmatmul", space, slices, uses, unit="pt", k_fast=slices["in"] > 1,
                sizes={dim: "s0"})
    parts = ["[%s]" % ", ".join(":s0" if d == dim else ":" for d in dims) for dims in shapes[:2]]
    return bundle(rng, [size], args[:2], args[2:], [step], "in0%s@in1%s" % tuple(parts), 0.0025,
                  2e-6 + 1e-8 * space["in"])


@family("symbolic-chain", [("pool",), ("lx",)], weight=2)
def chain(rng, variant):
    """Several steps with one size: intermediates in the pool, divided otherwise, or in LX."""
    kind, = variant
    size = Size(rng, "s0")
    n = columns(rng)
    space = {"mb": size.max, "out": n}
    a, b, c = (Argument((size.max, n)) for _ in range(3))
    x, y, out = (t.operand({0: "mb", 1: "out"}, space) for t in (a, b, c))
    row = Argument((size.max,), stick=None).operand({0: "mb"}, space, lane="out")
    one = {"mb": 1, "out": 1}
    first = {"mb": size.slices(rng, 16), "out": 1}
    second = {"mb": size.slices(rng, 16), "out": 1} if kind == "pool" else first
    whole = x.moved(Pool(0)).bytes(space, one)
    middle = x.moved(Pool(0) if kind == "pool" else Lx(0))
    top = row.moved(Pool(whole) if kind == "pool" else Lx(1 << 20))
    pool = whole + row.moved(Pool(0)).bytes(space, one) if kind == "pool" else 0
    sized = {"mb": "s0"}
    steps = [Sdsc("mul", space, first, [x, y, middle], sizes=sized),
             Sdsc("max", space, second, [middle, top], accumulate=True, sizes=sized),
             Sdsc("sub", space, first, [middle, top, out], sizes=sized)]
    text = "stored(in0[:s0]*in1[:s0], 'SEN169_FP16')"
    return bundle(rng, [size], [a, b], [c], steps,
                  "%s-%s.max(1, keepdims=True)" % (text, text), 0.0025, 1e-3, pool=pool)
