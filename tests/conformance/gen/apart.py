# SPDX-License-Identifier: MIT
"""Steps that store over what they read, in loops and on several cores.

The first step of each bundle puts the input next to or into the place of the result, the second
one reads it, and the third one copies the result. An SDSC reads all of its inputs before it
stores anything, wherever its tensors are, and in each iteration of the loops around it.
"""
from . import family
from .bundle import Bundle, Loop
from .formats import FORMATS, HOSTS
from .frame import chance, pick
from .sdsc import Sdsc
from .indirect import Table
from .tensors import Argument, Lx, Operand, Pool
from .window import Axis, Walked, WindowSdsc

TEXT = {"identity": "{0}", "fp32todl16": "{0}", "dl16tofp32": "{0}", "neg": "-{0}",
        "add": "np.float32({0})+np.float32({1})"}


class Places:
    """Tensors of [rows, columns] in a pool that is too small for them."""

    def __init__(self, rng, count):
        self.rng, self.count = rng, count
        self.rows = int(pick(rng, [1, 2, 3, 4, 8]))
        self.columns = 64 * int(pick(rng, [1, 2, 3, 4]))
        self.space = {"mb": self.rows, "out": self.columns}
        cores = [c for c in (1, 2, 4, 8) if self.rows % c == 0]
        self.slices = {"mb": int(pick(rng, cores))}
        if self.columns // 64 % 2 == 0 and chance(rng, 0.3):
            self.slices["out"] = 2
        self.loop = Loop(count) if count > 1 else None
        self.end, self.stride = 0, 128 * int(rng.integers(0, 2 * self.rows + 1))

    def size(self, fmt, space):
        return 128 * space["mb"] * -(-space["out"] // FORMATS[fmt].lanes)

    def tensor(self, fmt, space=None, order=None, scale=None, kind=Pool):
        """A tensor at a random place that moves by its own stride in the loop."""
        space = space or self.space
        size = self.size(fmt, space)
        at = 128 * int(self.rng.integers(0, max(size // 128, 4)))
        stride = self.stride if chance(self.rng, 0.4) else \
            128 * int(self.rng.integers(0, size // 128 + 1))
        if order is None:
            order = ["mb", "out"] if chance(self.rng, 0.6) else ["out", "mb"]
        moves = {self.loop: stride} if self.loop else {}
        self.end = max(self.end, at + size + stride * (self.count - 1))
        return Operand(kind(at), fmt, order, "out", scale, loop_stride=moves)

    def argument(self, dtype, space=None):
        """An argument with @count times the rows, and its operand in the loop."""
        space = space or self.space
        argument = Argument((space["mb"] * self.count, space["out"]), dtype, order=[1, 0])
        operand = Operand(argument, HOSTS[dtype].device, ["out", "mb"], "out")
        if self.loop:
            operand.loop_stride = {self.loop: self.size(operand.fmt, space)}
            operand.gap = {"mb": space["mb"] * (self.count - 1)}
        return argument, operand

    def bundle(self, name, inputs, out, steps, text, tolerance=0):
        if self.loop:
            self.loop.body = steps
            steps = [self.loop]
        return Bundle(name, inputs, [out], steps, text, tolerance, tolerance, pool=self.end,
                      allocate=bool(self.end), september=chance(self.rng, 0.5))


def crowded(operands, out):
    """As many tensors as a file may have; the operation does not use the additional ones."""
    return operands + [operands[0]] * (7 - len(operands)) + [out]


@family("apart", [("fp32todl16", "fp32", "fp16"), ("dl16tofp32", "fp16", "fp32"),
                  ("identity", "fp16", "fp16"), ("identity", "fp32", "fp16"),
                  ("neg", "fp16", "fp32"), ("neg", "fp32", "fp32")], weight=2, fixed=8)
def apart(rng, variant):
    op, dtype, to = variant
    p = Places(rng, int(pick(rng, [1, 1, 2, 5])))
    x, direct = p.argument(dtype)
    out, result = p.argument(to)
    kind = Lx if not p.loop and chance(rng, 0.3) else Pool
    a, b = p.tensor(HOSTS[dtype].device, kind=kind), p.tensor(HOSTS[to].device, kind=kind)
    many, slices = chance(rng, 0.3), p.slices if kind is Lx else {}
    if kind is Lx:
        p.end = 0
    steps = [Sdsc("abs", p.space, slices, [direct, a]),
             Sdsc(op, p.space, p.slices, crowded([a], b) if many else [a, b],
                  names=[0] if many else None),
             Sdsc("neg", p.space, slices, [b, result])]
    text = "-stored(%s, %r)" % (TEXT[op].format("np.abs(in0)"), HOSTS[to].device)
    return p.bundle(op, [x], out, steps, text)


@family("apart2", [("add", "fp16", "fp32"), ("add", "fp32", "fp16"), ("add", "fp16", "fp16")],
        fixed=6)
def two(rng, variant):
    """Two inputs, of which one may lack the rows."""
    op, first, second = variant
    p = Places(rng, int(pick(rng, [1, 3])))
    lacks = chance(rng, 0.5)
    other = dict(p.space, mb=1) if lacks else p.space
    x, left = p.argument(first)
    y, right = p.argument(second, other)
    out, result = p.argument(first)
    a, c = p.tensor(HOSTS[first].device), p.tensor(HOSTS[second].device, other)
    # Behind the first input, which has to survive the second.
    c.where.offset += p.end
    a.loop_stride, c.loop_stride = {}, {}
    p.end = c.where.offset + p.size(c.fmt, other)
    use = c
    if lacks:
        use = Operand(c.where, c.fmt, c.order, "out", {"mb": -1, "out": 1})
    b = p.tensor(HOSTS[first].device)
    if chance(rng, 0.5):
        b.where.offset = c.where.offset
        p.end += p.size(b.fmt, p.space) + sum(b.loop_stride.values()) * p.count
    steps = [Sdsc("abs", p.space, {}, [left, a]), Sdsc("abs", other, {}, [right, c]),
             Sdsc(op, p.space, p.slices, [a, use, b]), Sdsc("neg", p.space, {}, [b, result])]
    spread = "np.repeat(np.abs(in1), %d, 0)" % p.rows if lacks else "np.abs(in1)"
    text = "-stored(%s, %r)" % (TEXT[op].format("np.abs(in0)", spread), b.fmt)
    return p.bundle(op, [x, y], out, steps, text)


@family("apart_rows", [("identity", "fp16"), ("identity", "fp32"), ("neg", "fp16")], fixed=6)
def rows(rng, variant):
    """Rows of a table that are stored over the table."""
    op, dtype = variant
    p = Places(rng, 1)
    held = int(pick(rng, [4, 7, 16]))
    space = {"mb": held, "out": p.columns}
    x = Argument((held, p.columns), dtype, order=[1, 0])
    chosen = Argument((p.rows,), "int32", init="below%d" % held, pad="zero")
    picks = chosen.operand({0: "mb"}, p.space)
    picks.fmt = "SENUINT32"
    out, result = p.argument(dtype)
    a = p.tensor(HOSTS[dtype].device, space, ["out", "mb"])
    b = p.tensor(HOSTS[dtype].device)
    table = Table(a.where, a.fmt, a.order, "out", ["mb"])
    if p.rows % 32:
        p.slices["mb"] = 1
    steps = [Sdsc("abs", space, {}, [x.operand({0: "mb", 1: "out"}, space), a]),
             Sdsc(op, p.space, p.slices, [picks, table, b], tables={1: 0}),
             Sdsc("neg", p.space, {}, [b, result])]
    text = "-(%s)" % TEXT[op].format("np.abs(in0)[in1.astype(int)]")
    return p.bundle(op, [x, chosen], out, steps, text)


def reduced(rng, op, dtype, divided):
    """A reduction that stores over what it reads, alone or with other cores."""
    p = Places(rng, 1)
    if divided:
        p.slices = {"out": 2}
    p.slices = {dim: n for dim, n in p.slices.items() if divided or dim != "out"}
    x, direct = p.argument(dtype)
    a = p.tensor(HOSTS[dtype].device)
    b = p.tensor(HOSTS[dtype].device, dict(p.space, out=32), ["mb", "out"],
                 {"mb": 1, "out": -2})
    out = Argument((p.rows, 1), dtype, stick=None, order=[0])
    one = out.operand({0: "mb"}, p.space, lane="out")
    steps = [Sdsc("abs", p.space, {}, [direct, a]),
             Sdsc(op, p.space, p.slices, [a, b], accumulate=True),
             Sdsc("neg", dict(p.space, out=32), {}, [b, one])]
    text = "-np.abs(in0).%s(1, keepdims=True)" % op
    return p.bundle(op, [x], out, steps, text, 1e-5 if op == "sum" else 0)


@family("apart_sum", [("sum", "fp32")], fixed=6)
def total(rng, variant):
    """Each core has outputs of its own."""
    return reduced(rng, *variant, divided=False)


@family("apart_shared", [("max", "fp32"), ("sum", "fp32")])
def shared(rng, variant):
    """Cores that share an output: they store after all have read."""
    return reduced(rng, *variant, divided=True)


@family("apart_window", [("maxpoolfwd", "fp16")], fixed=1)
def window(rng, variant):
    """Windows with padding behind, whose output begins where the input ends; no copy fits in LX."""
    op, dtype = variant
    size, channels, names = 64, 576, ["mb", "i", "j", "out"]
    axis = Axis(rng, True)
    axis.n, axis.k, axis.stride, axis.dilation, axis.before, axis.after = size, 3, 1, 1, 1, 1
    axis.size, axis.rest, axis.unneeded = size, 0, 0
    x, out = (Argument((1, size, size, channels), dtype, None, [0, 3, 2, 1]) for _ in range(2))
    space = {"mb": 1, "i": size, "j": size, "out": channels}
    dims = dict(enumerate(names))
    direct, result = (argument.operand(dims, space) for argument in (x, out))
    moved = result.moved(Pool(x.bytes()))
    seen = Walked(x, [names[a] for a in x.order], "out", {"i": axis, "j": axis})
    seen.where = Pool(0)
    steps = [Sdsc("abs", space, {}, [direct, direct.moved(Pool(0))]),
             WindowSdsc(op, {**space, "ki": 3, "kj": 3}, {"i": 2}, [seen, moved],
                        {"i": axis, "j": axis}, False),
             Sdsc("neg", space, {}, [moved, result])]
    text = "-np.max([np.pad(np.abs(in0), ((0, 0), (1, 1), (1, 1), (0, 0)), " \
        "constant_values=-np.inf)[:, i:i + %d, j:j + %d, :] for i in range(3) for j in range(3)], " \
        "axis=0)" % (size, size)
    return Bundle(op, [x], [out], steps, text, 0, 0, pool=x.bytes() + out.bytes(), allocate=True)


@family("apart_groups", [("fp32todl16", "fp32", "fp16"), ("dl16tofp32", "fp16", "fp32"),
                         ("identity", "fp16", "fp16")], fixed=4)
def groups(rng, variant):
    """A launch's value cuts the cores' shares, so that groups of them work one after another."""
    op, dtype, to = variant
    p = Places(rng, 1)
    cores = int(pick(rng, [2, 3, 4, 5]))
    p.space = {"mb": cores * int(pick(rng, [2, 3, 4])), "out": p.columns}
    p.rows, p.slices = p.space["mb"], {"mb": cores}
    x, direct = p.argument(dtype)
    out, result = p.argument(to)
    a, b = p.tensor(HOSTS[dtype].device), p.tensor(HOSTS[to].device)
    sized = {"mb": "s0"}
    steps = [Sdsc("abs", p.space, {}, [direct, a]),
             Sdsc(op, p.space, p.slices, [a, b], symbols=sized),
             Sdsc("neg", p.space, {}, [b, result], symbols=sized)]
    text = "-stored(np.abs(in0[:s0]), %r)" % HOSTS[to].device
    made = p.bundle(op, [x], out, steps, text)
    made.extra["values"] = [{"s0": int(n)} for n in rng.integers(1, p.rows + 1, 4)]
    return made
