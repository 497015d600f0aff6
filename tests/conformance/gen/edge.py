# SPDX-License-Identifier: MIT
"""Valid bundles that ordinary front-ends rarely write."""
from . import divide, family
from .bundle import Bundle
from .formats import HOSTS, stored
from .frame import Frame, chance, pick
from .reduce import TEXT, result
from .sdsc import Sdsc
from .tensors import Argument, Lx, Operand, Pool


def one(rng, frame, op, operands, args, out, text, name, rtol=0.0025, atol=1e-6, **options):
    """A bundle of one SDSC over a frame's box."""
    slices = options.pop("slices", None) or divide.random(rng, frame.space,
                                                          divide.sticks(operands))
    return Bundle(name, args, [out], [Sdsc(op, frame.space, slices, operands, **options)], text,
                  rtol, atol, symbolic=chance(rng, 0.7), september=chance(rng, 0.5))


def ranges(rng, size):
    """Up to three masked ranges of a dim; never all of it."""
    hidden = [False] * size
    for _ in range(int(rng.integers(1, 4))):
        start = int(rng.integers(size))
        length = int(rng.integers(1, size // 3 + 2))
        hidden[start:start + length] = [True] * len(hidden[start:start + length])
    hidden[int(rng.integers(size))] = False
    out, at = [], 0
    while at < size:
        if hidden[at]:
            start = at
            while at < size and hidden[at]:
                at += 1
            out.append([start, at - start])
        at += 1
    return out


# Maxima of empty sets are infinite, so the difference to the reference is NaN: dims that
# are kept have masks only in operations whose result of an empty set is zero.
@family("mask", [(op, where) for op in ("sum", "max", "min", "mean", "absmax")
                 for where in ("stick", "rows", "both", "kept")
                 if where != "kept" or op not in ("max", "min")], weight=2)
def mask(rng, variant):
    """Any ranges of any dims are padding: of the stick, of rows, of dims that are kept."""
    op, where = variant
    frame = Frame(rng, "fp16", rank=int(rng.choice([2, 2, 3])), budget=12000)
    shape = list(frame.shape)
    shape[-1] = int(pick(rng, [64, 128, 192]))
    frame = Frame(rng, "fp16", shape=shape)
    stick = frame.rank - 1
    rows = list(range(frame.rank - 1))
    reduced = [stick] if where == "stick" else rows[:1] if where == "rows" else \
        [stick] + rows[:1] if where == "both" else [stick] if chance(rng, 0.5) else rows[:1]
    masked = reduced if where != "kept" else [pick(rng, [a for a in range(frame.rank)
                                                         if a not in reduced])]
    x = frame.input(rng, "fp16", broadcast=[], slices=False)
    out, shape = result(rng, frame, reduced, "fp16")
    table = {frame.dim[a]: ranges(rng, frame.shape[a]) for a in masked}
    ident = {"max": "-np.inf", "min": "np.inf"}.get(op, "0.0")
    visible = []
    for a in masked:
        keep = [1] * frame.shape[a]
        for start, length in table[frame.dim[a]]:
            keep[start:start + length] = [0] * length
        view = [1] * frame.rank
        view[a] = -1
        visible.append("np.array(%r).reshape(%r)" % (keep, view))
    text = "np.where((%s) != 0, in0, %s)" % ("*".join(visible), ident)
    text = TEXT[op].replace("{0}", text).replace("{1}", repr(tuple(reduced)))
    constants = []
    if op == "mean":
        constants = [("scaling_factor", "SEN169_FP16", 0.125)]
        text = text.replace(".mean(", ".sum(") + "*0.125"
    text = "(%s).reshape(%r)" % (text, shape)
    name = op if stick in reduced else op + "nonstick"
    return one(rng, frame, name, [x.operand, out.operand], [x.argument], out.argument, text,
               "mask", 0.0025, 1e-4, constants=constants, masks=table, accumulate=True)


@family("masked", [("exp", float("-inf")), ("neg", 1.5), ("sqrt", 4.0)])
def masked(rng, variant):
    """Masked elements of a pointwise operation are those of samv-maskvalue."""
    op, value = variant
    shape = list(Frame(rng, "fp16", rank=int(rng.choice([2, 2, 3])), budget=12000).shape)
    shape[-1] = int(pick(rng, [64, 128, 192]))
    frame = Frame(rng, "fp16", shape=shape)
    x = frame.input(rng, "fp16", "positive", broadcast=[], slices=False)
    out = frame.output(rng, "fp16", padded=False)
    table, visible = {}, []
    for a in {frame.rank - 1, int(rng.integers(frame.rank))}:
        table[frame.dim[a]] = ranges(rng, frame.shape[a])
        keep = [1] * frame.shape[a]
        for start, length in table[frame.dim[a]]:
            keep[start:start + length] = [0] * length
        view = [1] * frame.rank
        view[a] = -1
        visible.append("np.array(%r).reshape(%r)" % (keep, view))
    text = "np.where((%s) != 0, in0, %s)" % ("*".join(visible),
                                             "-np.inf" if value == float("-inf") else value)
    text = {"exp": "np.exp(%s)", "neg": "-(%s)", "sqrt": "np.sqrt(%s)"}[op] % text
    return one(rng, frame, op, [x.operand, out.operand], [x.argument], out.argument, text,
               "masked", constants=[("samv-maskvalue", "SEN169_FP16", value)], masks=table)


@family("sticks", [(kind, dtype) for kind in ("pointwise", "copy", "sum", "max")
                   for dtype in ("fp16", "fp32")], weight=2)
def sticks(rng, variant):
    """An input with its sticks along another dim than the output's."""
    kind, dtype = variant
    lanes = 128 // {"fp16": 2, "fp32": 4}[dtype]
    fmt = HOSTS[dtype].device
    a, b, c = (int(pick(rng, t)) for t in ([1, 2, 3], [lanes, 2 * lanes], [lanes, 3 * lanes]))
    space = {"mb": a, "x": b, "out": c}
    dims = {0: "mb", 1: "x", 2: "out"}

    def argument(stick):
        return Argument((a, b, c), dtype, None, [int(v) for v in rng.permutation(3)], stick)

    x = argument(1)
    use = x.operand(dims, space)
    rtol = 0.0025 if dtype == "fp16" else 4e-6
    symbolic = chance(rng, 0.7)
    if kind in ("sum", "max"):                      # over the stick, into sticks along x
        out = Argument((a, b), dtype)
        to = out.operand({0: "mb", 1: "x"}, space, broadcast=["out"])
        source = argument(2)
        operands = [source.operand(dims, space), to]
        step = Sdsc(kind, space, divide.random(rng, space, {"out": lanes, "x": lanes}), operands,
                    accumulate=True)
        text = TEXT[kind].replace("{0}", "in0").replace("{1}", "2")
        return Bundle("sticks", [source], [out], [step], text, rtol, 1e-4, symbolic=symbolic)
    out = argument(2)
    units = {"out": lanes, "x": lanes}
    slices = divide.random(rng, space, units)
    if kind == "copy":
        step = Sdsc("identity", space, slices, [use, out.operand(dims, space)])
        return Bundle("sticks", [x], [out], [step], "stored(in0, %r)" % fmt, rtol, 1e-6,
                      symbolic=symbolic)
    y = argument(2)
    step = Sdsc("add", space, slices, [use, y.operand(dims, space), out.operand(dims, space)])
    return Bundle("sticks", [x, y], [out], [step], "in0+in1", rtol, 1e-6, symbolic=symbolic)


@family("sparse", [(op, dtype) for op in ("add", "rsqrt", "mul") for dtype in ("fp16", "fp32")],
        weight=1)
def sparse(rng, variant):
    """One value per stick: rows x a dim of the lanes, which are computed like any others."""
    op, dtype = variant
    rows = [int(pick(rng, [1, 3, 8, 25, 64])) for _ in range(int(rng.integers(1, 4)))]
    lanes = 128 // {"fp16": 2, "fp32": 4}[dtype]
    names = ["out", "x", "mb"][:len(rows)]
    space = dict(zip(names, rows))
    space["y"] = lanes
    full = chance(rng, 0.7)

    def operand(argument):
        use = argument.operand(dict(enumerate(names)), space, lane="y")
        if full:
            use.scale["y"] = 1
        return use

    args = [Argument(rows, dtype, None, None, None, init="positive")
            for _ in range(1 if op == "rsqrt" else 2)]
    out = Argument(rows, dtype, None, [int(a) for a in rng.permutation(len(rows))], None)
    operands = [operand(a) for a in args] + [operand(out)]
    text = {"add": "in0+in1", "mul": "in0*in1", "rsqrt": "1/np.sqrt(in0)"}[op]
    slices = divide.random(rng, space, {"y": lanes})
    return Bundle("sparse", args, [out], [Sdsc(op, space, slices, operands)], text,
                  0.0025 if dtype == "fp16" else 4e-6, 1e-6, symbolic=chance(rng, 0.7))


@family("place", [(kind, dtype) for kind in
                  ("inplace", "lxgap", "cores", "twoviews", "divisions", "poolgap")
                  for dtype in ("fp16", "fp32")], weight=2)
def place(rng, variant):
    """Places: in place in LX, gaps in LX, cores of other numbers, one argument seen twice."""
    kind, dtype = variant
    fmt = HOSTS[dtype].device
    frame = Frame(rng, dtype, rank=int(rng.choice([2, 3])), budget=12000)
    space, stick = frame.space, frame.dim[frame.stick]
    lanes = frame.wide
    x, y = (frame.input(rng, dtype, broadcast=[], slices=False) for _ in range(2))
    out = frame.output(rng, dtype)
    dense = frame.output(rng, dtype, False).operand
    slices = divide.random(rng, space, {stick: lanes}, 32 if kind != "cores" else 8)
    rtol, atol = (0.003, 2e-3) if dtype == "fp16" else (4e-6, 4e-6)
    args = [x.argument, y.argument]
    cores = None
    if kind == "cores":
        count = 1
        for n in slices.values():
            count *= n
        cores = sorted(int(c) for c in rng.permutation(32)[:count])
    at = dense.moved(Lx(128 * int(rng.integers(0, 99))))
    if kind == "lxgap":
        at.gap = {d: int(rng.integers(1, 4)) * (lanes if d == stick else 1)
                  for d in at.order if chance(rng, 0.6)}
    if kind == "poolgap":
        at = dense.moved(Pool(128 * int(rng.integers(0, 9))))
        at.gap = {d: int(rng.integers(1, 4)) * (lanes if d == stick else 1)
                  for d in at.order if chance(rng, 0.6)}
    if kind == "twoviews":
        # A pool tensor written as rows and read as one long dim.
        n = frame.size(frame.stick)
        total = 1
        for size in space.values():
            total *= size
        flat = {"mb": total // n, "out": n}
        first = Operand(Pool(0), fmt, [stick] + [d for d in space if d != stick], stick)
        second = Operand(Pool(0), fmt, ["out", "mb"], "out")
        final = Operand(Pool(total * first.word), fmt, ["out", "mb"], "out")
        third = first.moved(Pool(total * first.word))
        steps = [Sdsc("sub", space, slices, [x.operand, y.operand, first]),
                 Sdsc("abs", flat, divide.random(rng, flat, {"out": lanes}), [second, final]),
                 Sdsc("identity", space, slices, [third, out.operand])]
        return Bundle("place", args, [out.argument], steps, "np.abs(in0-in1)", rtol, atol,
                      pool=2 * total * first.word, symbolic=chance(rng, 0.6))
    other = dict(slices)
    if kind == "divisions":        # the pool lies between different work divisions
        at = dense.moved(Pool(0))
        other = divide.random(rng, space, {stick: lanes}, 32)
    end = at if kind == "inplace" else at.moved(
        Pool(1 << 20) if not at.lx else Lx(1 << 20), at.offset)
    middle = other if kind == "divisions" else slices
    steps = [Sdsc("add", space, slices, [x.operand, y.operand, at], cores=cores),
             Sdsc("neg", space, middle, [at, end], cores=cores),
             Sdsc("sub", space, middle, [end, x.operand, out.operand], cores=cores)]
    text = "-stored(in0+in1, %r)-in0" % fmt
    return Bundle("place", args, [out.argument], steps, text, rtol, atol,
                  pool=2 << 20 if not at.lx else 0, symbolic=chance(rng, 0.6))


@family("constant", [("clip", v) for v in ("negative", "large", "infinite")])
def constant(rng, variant):
    """Constants below zero, at the ends of the format, and without a bound."""
    op, kind = variant
    frame = Frame(rng, "fp16")
    x = frame.input(rng, "fp16", broadcast=[])
    low, high = {"negative": (-0.75, -0.125), "large": (-8.0e9, 8.0e9),
                 "infinite": (float("-inf"), 0.5)}[kind]
    fmt = "SEN169_FP16"
    low, high = (float(v) if abs(v) == float("inf") else float(stored(v, fmt)) for v in (low, high))
    text = "np.clip({0}, %s, %r)" % ("-np.inf" if low == float("-inf") else repr(low), high)
    return frame.bundle(rng, op, [x], frame.output(rng, "fp16"), text,
                        constants=[("clipMin", fmt, low), ("clipMax", fmt, high)])


@family("outputs", [("two", "fp16"), ("two", "fp32"), ("rewritten", "fp16")])
def outputs(rng, variant):
    """Two outputs; an output that is read again and written in place."""
    kind, dtype = variant
    frame = Frame(rng, dtype, budget=12000)
    x, y = (frame.input(rng, dtype, broadcast=[] if not i else None) for i in range(2))
    a, b = frame.output(rng, dtype), frame.output(rng, dtype)
    slices = divide.random(rng, frame.space, divide.sticks([a.operand]))
    first = Sdsc("add", frame.space, slices, [x.operand, y.operand, a.operand])
    sum_text = "stored((%s)+(%s), %r)" % (x.text % "in0", y.text % "in1", HOSTS[dtype].device)
    rtol, atol = (0.003, 2e-3) if dtype == "fp16" else (4e-6, 4e-6)
    args = [x.argument, y.argument]
    again = divide.random(rng, frame.space, divide.sticks([a.operand]))
    if kind == "two":
        steps = [first, Sdsc("neg", frame.space, again, [a.operand, b.operand])]
        return Bundle("outputs", args, [a.argument, b.argument], steps,
                      "(%s, -%s)" % (sum_text, sum_text), rtol, atol, symbolic=chance(rng, 0.6))
    steps = [first, Sdsc("abs", frame.space, again, [a.operand, a.operand])]
    return Bundle("outputs", args, [a.argument], steps, "np.abs(%s)" % sum_text, rtol, atol,
                  symbolic=chance(rng, 0.6))


@family("dims", [("add", "fp16"), ("sum", "fp16")])
def dims(rng, variant):
    """More dims than a layout has: rows walked as nine or ten dims of two."""
    op, dtype = variant
    n = int(rng.integers(9, 11))
    names = ["d%d" % i for i in range(n)]
    order = [names[int(i)] for i in rng.permutation(n)]
    space = {d: 2 for d in names}
    space["out"] = 64
    a = Argument((1 << n, 64), dtype)
    # Rows in the order of the dims, the last one outermost.
    operand = Operand(a, a.fmt, names + ["out"], "out")
    out = Argument((1 << n, 64), dtype)
    to = Operand(out, out.fmt, order + ["out"], "out")
    slices = divide.random(rng, space, {"out": 64})
    axes = [n - 1 - names.index(d) for d in reversed(order)]
    text = "in0.reshape(%r).transpose(%r).reshape(%r)" % (
        [2] * n + [64], axes + [n], [1 << n, 64])
    if op == "add":
        step = Sdsc("add", space, slices, [operand, operand, to])
        return Bundle("dims", [a], [out], [step], "(%s)*2" % text, 0.0025, 1e-6,
                      symbolic=chance(rng, 0.6))
    gone = order[:3]
    out = Argument((1 << n - 3, 64), dtype)
    scale = {d: -1 if d in gone else 1 for d in order + ["out"]}
    to = Operand(out, out.fmt, order[3:] + ["out"] + gone, "out", scale)
    step = Sdsc("sumnonstick", space, slices, [operand, to], accumulate=True)
    text = "(%s).reshape(%d, 8, 64).sum(1)" % (text, 1 << n - 3)
    return Bundle("dims", [a], [out], [step], text, 0.0025, 1e-4, symbolic=chance(rng, 0.6))
