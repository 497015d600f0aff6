# SPDX-License-Identifier: MIT
"""Casts, restickify, copies of slices and views."""
from . import divide, family
from .bundle import Bundle
from .frame import STICKS, Frame, chance, pick
from .sdsc import Sdsc
from .tensors import Argument


@family("cast", [("dl16tofp32", "fp16", "fp32"), ("fp32todl16", "fp32", "fp16"),
                 ("identity", "fp16", "bool"), ("identity", "bf16", "fp16"),
                 ("identity", "fp16", "bf16")])
def cast(rng, variant):
    op, source, target = variant
    rank = int(rng.choice([1, 2, 2, 3, 4]))
    if rank == 1:                                   # a separate dim, as the front-end adds
        n = int(pick(rng, [n for n in STICKS if n > 32]))
        frame = Frame(rng, source, target, shape=(1, n), names=["mb", "out"])
    else:
        frame = Frame(rng, source, target, rank=rank)
    x = frame.input(rng, source, "bool" if target == "bool" else "randn", [])
    out = frame.output(rng, target)
    return frame.bundle(rng, op, [x], out, "{0}")


@family("restickify", [("ReStickifyOpHBM", "fp16", n) for n in (2, 3, 4)], weight=3)
def restickify(rng, variant):
    """Sticks along another axis of the same tensor; both are padded to whole sticks."""
    op, dtype, rank = variant
    sizes = [int(pick(rng, [1, 2, 3, 5, 8])) for _ in range(rank)]
    a, b = (int(v) for v in rng.permutation(rank)[:2])
    for axis in (a, b):
        sizes[axis] = int(pick(rng, [1, 40, 64, 100, 128, 150, 192]))
    names = (["mb", "x", "y"][:rank - 1]) + ["out"]
    pad = {axis: -(-sizes[axis] // 64) * 64 for axis in (a, b)}
    space = {n: pad.get(i, sizes[i]) for i, n in enumerate(names)}
    dims = dict(enumerate(names))
    uses, args = [], []
    for stick in (a, b):
        order = Argument.default_order(rank) if chance(rng, 0.3) else \
            [int(v) for v in rng.permutation(rank)]
        arg = Argument(sizes, dtype, None, order, stick, pad)
        args.append(arg)
        uses.append(arg.operand(dims, space))
    slices = divide.random(rng, space, {names[a]: 64, names[b]: 64})
    step = Sdsc(op, space, slices, uses)
    return Bundle(op, args[:1], args[1:], [step], "in0", 0, 0,
                  symbolic=chance(rng, 0.7), september=chance(rng, 0.5))


@family("repeated", [("identity", "fp16", "fp16"), ("ReStickifyOpHBM", "fp16", "fp16"),
                     ("fp32todl16", "fp32", "fp16")], fixed=1)
def repeated(rng, variant):
    """A dim that neither tensor has, as the front-end leaves it in the copies around a product."""
    op, source, target = variant
    rows, columns = (64 * int(pick(rng, [1, 2, 3])) for _ in range(2))
    space = {"x": int(pick(rng, [2, 64, 256])), "mb": rows, "out": columns}
    x = Argument((rows, columns), source)
    out = Argument((rows, columns), target, None, None, 0 if op == "ReStickifyOpHBM" else -1)
    uses = [argument.operand({0: "mb", 1: "out"}, space) for argument in (x, out)]
    slices = divide.random(rng, {"mb": rows, "out": columns}, {"mb": 64, "out": 64})
    step = Sdsc(op, space, slices, uses)
    # The host's fp16 has coarser numbers than the card's near zero.
    return Bundle(op, [x], [out], [step], "stored(in0, %r)" % out.fmt, 0, 2.0 ** -24,
                  symbolic=chance(rng, 0.7), september=chance(rng, 0.5))


@family("view", [("merged", "fp16"), ("merged", "fp32"), ("split", "fp16")], weight=3)
def view(rng, variant):
    """Several axes of the host walked as one dim, or one as several."""
    kind, dtype = variant
    a, b = int(pick(rng, [2, 3, 4, 6])), int(pick(rng, [2, 4, 5, 8]))
    n = int(pick(rng, STICKS))
    # Inner to outer: b, a, tiles; the device walks a and b as one.
    split = Argument((a, b, n), dtype, None, [1, 0, 2])
    flat = Argument((a * b, n), dtype)
    size = -(-n // split.lanes) * split.lanes
    if kind == "merged":
        space, source, target = {"mb": a * b, "out": size}, split, flat
        uses = [flat.operand({0: "mb", 1: "out"}, space) for _ in range(2)]
        uses[0].where = split
        text = "np.exp(in0).reshape(%r)" % ([a * b, n],)
    else:
        space, source, target = {"mb": a, "x": b, "out": size}, flat, split
        uses = [split.operand({0: "mb", 1: "x", 2: "out"}, space) for _ in range(2)]
        uses[0].where = flat
        text = "np.exp(in0).reshape(%r)" % ([a, b, n],)
    slices = divide.random(rng, space, {"out": split.lanes})
    step = Sdsc("exp", space, slices, uses)
    return Bundle("view", [source], [target], [step], text,
                  0.0025 if dtype == "fp16" else 4e-6, 1e-6, symbolic=chance(rng, 0.7))
