# SPDX-License-Identifier: MIT
"""Indirect access: rows of tables that tensors of indices select."""
from . import divide, family
from .bundle import Bundle, Loop
from .formats import HOSTS
from .frame import chance, pick
from .sdsc import Sdsc
from .tensors import Argument, Lx, Operand, Pool

LANES = {"fp16": 64, "fp32": 32, "bf16": 64}


class Table(Operand):
    """A table as its file shows it: with the dims of its indices in place of the indexed one.

    rows    {dim: size} if the file states the rows, along the first indexed dim
    """

    def __init__(self, where, fmt, order, stick, indexed, offset=0, rows=None):
        super().__init__(where, fmt, order, stick, offset=offset)
        self.indexed, self.rows = set(indexed), rows

    def extents(self, space, slices):
        found = super().extents(space, slices)
        return {dim: (self.rows or {}).get(dim, 1) + self.gap.get(dim, 0) * bool(self.rows)
                if dim in self.indexed else n for dim, n in found.items()}

    def start(self, space, slices, place):
        held = {dim: 0 if dim in self.indexed else at for dim, at in place.items()}
        return super().start(space, slices, held)


class Rows:
    """Tables of [rows, middle ..., columns] and indices of one or two dims into them."""

    def __init__(self, rng, dtype, each=False, rank=None, counts=(1, 3, 8, 32, 40), stated=False):
        """each: an index per element; rank: dims of the indices; counts: sizes of these"""
        self.rng, self.dtype, self.each, self.stated = rng, dtype, each, stated
        self.fmt, lanes = HOSTS[dtype].device, LANES[dtype]
        self.rows = int(pick(rng, [4, 7, 16, 65]))
        self.columns = int(pick(rng, [lanes, lanes + 6, 2 * lanes, 4 * lanes]))
        # Single elements of the first stick only, of tables with wider rows.
        self.wide = int(pick(rng, [1, 2, 4])) if each else 1
        if self.wide > 1:
            self.columns = lanes
        self.middle = [] if each else [int(rng.integers(2, 6))
                                       for _ in range(int(rng.integers(0, 3)))]
        rank = 1 if each else rank or int(rng.choice([1, 1, 2]))
        self.count = [int(pick(rng, list(counts))) for _ in range(rank)]
        names = ["mb", "x", "y", "i", "j"][:rank + len(self.middle)] + ["out"]
        self.picked, self.inner = names[:rank], names[rank:]
        sizes = self.count + self.middle + [-(-self.columns // lanes) * lanes]
        self.space = dict(zip(names, sizes))
        if self.wide > 1:
            self.space["i"] = 1
        last = self.count[-1]
        unit = {"out": lanes, self.picked[-1]: last if last % 32 else 32}
        if each:        # memory of the indices that ends before the rows' cannot be divided
            whole = -(-self.columns // 32) * 32 == self.space["out"]
            unit["out"] = max(lanes, 32) if whole else self.space["out"]
        self.slices = divide.random(rng, self.space, unit, int(pick(rng, [1, 1, 4, 32])))
        self.inputs, self.steps = [], []

    def direct(self, axes, dims, **more):
        """An argument in the generic layout, and its operand."""
        argument = Argument(axes, self.dtype, **more)
        return argument, argument.operand(dict(enumerate(dims)), self.space)

    def input(self, argument):
        self.inputs.append(argument)
        return "in%d" % (len(self.inputs) - 1)

    def indices(self):
        """An argument of indices, its operand, and its name in the reference."""
        dims, shape = list(self.picked), list(self.count)
        if self.each:
            dims, shape = dims + ["out"], shape + [self.columns]
        fmt = "SENUINT32" if chance(self.rng, 0.6) else "IEEE_INT32"
        argument = Argument(shape, "int32", init="below%d" % self.rows, pad="zero")
        more = ["i"] if self.wide > 1 else []
        operand = argument.operand(dict(enumerate(dims)), self.space)
        operand.order += more
        operand.scale.update({dim: 1 for dim in more})
        operand.fmt = fmt
        return operand, self.input(argument) + ".astype(int)"

    def shape(self):
        return [self.rows] + self.middle + [self.columns * self.wide]

    def order(self):
        """Axes of a table from inside out; the rows are outermost."""
        if self.stated:
            return [int(a) for a in self.rng.permutation(len(self.middle) + 2)]
        axes = [int(a) + 1 for a in self.rng.permutation(len(self.middle) + 1)]
        return axes + [0]

    def stated_table(self, argument):
        """A table in any order of its axes, perhaps with memory beyond its rows."""
        order = []
        for axis in argument.order:
            order += [self.inner[axis - 1]] if axis else self.picked
        rows = dict.fromkeys(self.picked, 1)
        rows[self.picked[0]] = self.rows
        table = Table(argument, self.fmt, order, "out", self.picked, rows=rows)
        if argument.extent(0) > self.rows:
            table.gap[self.picked[0]] = argument.extent(0) - self.rows
        if self.wide > 1:
            place = table.order.index("out")
            table.order.insert(place, "i")
            table.scale["i"], table.gap["i"] = 1, self.wide - 1
        return table

    def table(self, argument, where=None):
        if self.stated:
            return self.stated_table(argument)
        inner = [self.inner[axis - 1] for axis in argument.order[:-1]]
        order = inner + self.picked
        if max(self.count) == 1:        # then the front-end puts the indexed dim first
            order = self.picked + inner
        table = Table(where or argument, self.fmt, order, "out", self.picked)
        if self.wide > 1:
            table.order.insert(0, "i")
            table.scale["i"], table.gap["i"] = 1, self.wide - 1
        return table

    def source(self):
        """A table among the inputs, its operand and its name."""
        more = self.rows + int(self.rng.integers(0, 4)) if self.stated else self.rows
        argument = Argument(self.shape(), self.dtype, order=self.order(), padded={0: more})
        return argument, self.table(argument), self.input(argument)

    def result(self):
        return self.direct(self.count + self.middle + [self.columns], self.picked + self.inner)

    def take(self, table, indices):
        if not self.each:
            return "%s[%s]" % (table, indices)
        return "np.take_along_axis(%s[:,:%d], %s, 0)" % (table, self.columns, indices)

    def bundle(self, name, out, reference, pool=0):
        return Bundle(name, self.inputs, [out], self.steps, reference, 0.01, 0.01, pool,
                      symbolic=chance(self.rng, 0.7), september=chance(self.rng, 0.5))


UNARY = {"identity": "%s", "exp": "np.exp(%s)", "neg": "-%s"}


def gather(rng, op, dtype, each=False, stated=False):
    make = Rows(rng, dtype, each, stated=stated)
    indices, chosen = make.indices()
    _, table, name = make.source()
    out, use = make.result()
    make.steps.append(Sdsc(op, make.space, make.slices, [indices, table, use], tables={1: 0}))
    return make.bundle("gather", out, UNARY[op] % make.take(name, chosen))


def two_tables(rng, dtype):
    make = Rows(rng, dtype)
    first, one = make.indices()
    _, a, left = make.source()
    second, two = make.indices()
    _, b, right = make.source()
    out, use = make.result()
    make.steps.append(Sdsc("sub", make.space, make.slices, [first, a, second, b, use],
                           tables={1: 0, 3: 2}))
    return make.bundle("two", out, "%s-%s" % (make.take(left, one), make.take(right, two)))


def with_direct(rng, dtype):
    make = Rows(rng, dtype)
    indices, chosen = make.indices()
    _, table, name = make.source()
    other, direct = make.result()
    factor = make.input(other)
    out, use = make.result()
    make.steps.append(Sdsc("mul", make.space, make.slices, [indices, table, direct, use],
                           tables={1: 0}))
    return make.bundle("mul", out, "%s*%s" % (make.take(name, chosen), factor))


def in_parts(rng, dtype):
    """Little LX is left, so that the rows are gathered in parts."""
    make = Rows(rng, dtype, rank=1, counts=[64, 96, 100])
    indices, chosen = make.indices()
    _, table, name = make.source()
    other, direct = make.result()
    factor = make.input(other)
    size = direct.moved(Lx(0)).bytes(make.space, make.slices)
    held = direct.moved(Lx((2 << 20) - 2 * 32 * 128 - size))
    make.steps.append(Sdsc("identity", make.space, make.slices, [direct, held]))
    out, use = make.result()
    make.steps.append(Sdsc("sub", make.space, make.slices, [indices, table, held, use],
                           tables={1: 0}))
    return make.bundle("parts", out, "%s-%s" % (make.take(name, chosen), factor))


def from_pool(rng, dtype):
    """The table is an intermediate, whose producer states its size."""
    make = Rows(rng, dtype)
    indices, chosen = make.indices()
    argument, _, name = make.source()
    at = Pool(128 * int(rng.integers(0, 9)))
    dims = ["mb"] + ["x", "y"][:len(make.middle)] + ["out"]
    space = dict(zip(dims, make.shape()[:-1] + [make.space["out"]]))
    whole = argument.operand(dict(enumerate(dims)), space)
    made = whole.moved(at)
    make.steps.append(Sdsc("abs", space, {"mb": 1}, [whole, made]))
    out, use = make.result()
    make.steps.append(Sdsc("neg", make.space, make.slices,
                           [indices, make.table(argument, at), use], tables={1: 0}))
    size = at.offset + made.bytes(space, {dim: 1 for dim in space})
    return make.bundle("pool", out, "-np.abs(%s)" % make.take(name, chosen), size)


def plain(rng, dtype):
    """Rows without dims between them and the columns, of an even number of sticks."""
    make = Rows(rng, dtype)
    make.middle, make.inner = [], ["out"]
    make.columns = LANES[dtype] * int(pick(rng, [2, 4]))
    make.space = {dim: n for dim, n in make.space.items() if dim in make.picked}
    make.space["out"] = make.columns
    make.slices = {dim: make.slices[dim] for dim in make.picked}
    make.slices["out"] = 1
    return make


def pieces(rng, dtype):
    """The table is written in several parts: rows or columns, in any order, or rows in a loop."""
    make = plain(rng, dtype)
    kind = pick(rng, ["rows", "columns", "loop"])
    if kind == "loop":
        make.rows += make.rows % 2
    indices, chosen = make.indices()
    at, sticks = 128 * int(rng.integers(0, 5)), make.columns // LANES[dtype]
    row = 128 * sticks
    steps, names = [], []

    def part(number, count, columns, place, gap, loop_stride=None):
        """Writes @count rows of some columns from an argument of their own."""
        held = count * (loop_stride[0].count if loop_stride else 1)
        argument = Argument((held, columns), dtype, order=[1, 0])
        space = {"mb": count, "out": columns}
        moves = [{}, {}]
        if loop_stride:
            moves = [{loop_stride[0]: 128 * columns // LANES[dtype] * count},
                     {loop_stride[0]: loop_stride[1]}]
        source = Operand(argument, make.fmt, ["out", "mb"], "out", loop_stride=moves[0])
        source.gap["mb"] = held - count
        made = Operand(Pool(place), make.fmt, ["out", "mb"], "out", gap=gap, loop_stride=moves[1])
        names.append((number, make.input(argument)))
        steps.append(Sdsc("abs", space, {}, [source, made]))

    if kind == "rows":
        cuts = sorted({0, make.rows} | {int(n) for n in rng.integers(1, make.rows, 3)})
        parts = list(enumerate(zip(cuts, cuts[1:])))
        for i in rng.permutation(len(parts)):
            number, (first, end) = parts[int(i)]
            part(number, end - first, make.columns, at + first * row, {})
        whole = "np.concatenate([%s])"
    elif kind == "columns":
        half = make.columns // 2
        for i in rng.permutation(2):
            part(int(i), make.rows, half, at + int(i) * row // 2, {"out": half})
        whole = "np.concatenate([%s], 1)"
    else:
        loop = Loop(make.rows // 2)
        for i in rng.permutation(2):
            part(int(i), 1, make.columns, at + int(i) * row, {}, (loop, 2 * row))
        loop.body, steps = steps, [loop]
        whole = "np.stack([%%s], 1).reshape(%d, %d)" % (make.rows, make.columns)
    table = Table(Pool(at), make.fmt, ["out"] + make.picked, "out", make.picked)
    if max(make.count) == 1:
        table.order = make.picked + ["out"]
    out, use = make.result()
    make.steps += steps + [Sdsc("neg", make.space, make.slices, [indices, table, use],
                                tables={1: 0})]
    text = whole % ", ".join("np.abs(%s)" % name for _, name in sorted(names))
    made = make.bundle("pieces", out, "-" + make.take(text, chosen), at + row * make.rows)
    made.symbolic = made.symbolic or kind == "loop"
    return made


def scatter(rng, op, dtype, each=False, stated=False):
    """All rows are copied, then some are replaced; of equal indices the last one counts."""
    make = Rows(rng, dtype, each, rank=1, stated=stated)
    indices, chosen = make.indices()
    argument, _, base = make.source()
    source, use = make.result()
    new = make.input(source)
    dims = ["mb"] + ["x", "y"][:len(make.middle)] + ["out"]
    space = dict(zip(dims, make.shape()[:-1] + [make.space["out"] * make.wide]))
    out = Argument(make.shape(), dtype, order=argument.order)
    both = [t.operand(dict(enumerate(dims)), space) for t in (argument, out)]
    make.steps.append(Sdsc("identity", space, {}, both))
    make.steps.append(Sdsc(op, make.space, make.slices, [indices, use, make.table(out)],
                           tables={2: 0}))
    put = "(lambda t: (t.__setitem__(%s, %s), t)[1])(%s.copy())"
    if each:
        put = "(lambda t: (np.put_along_axis(t[:,:" + str(make.columns) + \
            "], %s, %s, 0), t)[1])(%s.copy())"
    return make.bundle("scatter", out, put % (chosen, UNARY[op] % new, base))


def repeat(rng, dtype):
    """One row is stored at all indices, as a front-end fills the selected rows."""
    make = Rows(rng, dtype, rank=1)
    indices, chosen = make.indices()
    argument, _, base = make.source()
    source, use = make.direct([1] + make.middle + [make.columns], [None] + make.inner)
    use.order.append("mb")
    use.scale["mb"] = -1
    new = make.input(source)
    dims = ["mb"] + ["x", "y"][:len(make.middle)] + ["out"]
    space = dict(zip(dims, make.shape()[:-1] + [make.space["out"]]))
    out = Argument(make.shape(), dtype, order=argument.order)
    both = [t.operand(dict(enumerate(dims)), space) for t in (argument, out)]
    make.steps.append(Sdsc("identity", space, {}, both))
    make.steps.append(Sdsc("identity", make.space, make.slices, [indices, use, make.table(out)],
                           tables={2: 0}))
    return make.bundle("repeat", out, "(lambda t: (t.__setitem__(%s, %s), t)[1])(%s.copy())" %
                       (chosen, new, base))


def looped(rng, dtype):
    """A loop writes the rows of an intermediate, which the step behind it takes as a table."""
    make = Rows(rng, dtype)
    make.middle, make.inner = [], ["out"]
    make.space = {dim: n for dim, n in make.space.items() if dim in make.picked + ["out"]}
    make.slices = {dim: make.slices[dim] for dim in make.space}
    indices, chosen = make.indices()
    argument, _, name = make.source()
    loop, space = Loop(make.rows), {"mb": 1, "out": make.space["out"]}
    step = 128 * space["out"] // argument.lanes
    rows = [Operand(where, make.fmt, ["out", "mb"], "out", loop_stride={loop: step})
            for where in (argument, Pool(0))]
    rows[0].gap["mb"] = make.rows - 1
    loop.body = [Sdsc("abs", space, {}, rows)]
    make.steps.append(loop)
    out, use = make.result()
    make.steps.append(Sdsc("neg", make.space, make.slices,
                           [indices, make.table(argument, Pool(0)), use], tables={1: 0}))
    made = make.bundle("looped", out, "-np.abs(%s)" % make.take(name, chosen), step * make.rows)
    made.symbolic = True                # addresses that are numbers do not move in loops
    return made


def matrices(rng, dtype):
    """Tiles times the matrices of a table, one selected for each: the experts of a mixture."""
    fmt, lanes = HOSTS[dtype].device, LANES[dtype]
    tiles, rows, k, n = (int(pick(rng, sizes)) for sizes in
                         ([2, 3, 8, 33, 64], [1, 2, 5, 16, 64], [10, 63, 64, 130], [1, 64, 70, 256]))
    experts = int(pick(rng, [1, 2, 5, 8]))
    space = {"x": tiles, "mb": rows, "out": -(-n // lanes) * lanes, "in": -(-k // lanes) * lanes}
    unit = {"out": lanes, "in": lanes, "x": tiles if tiles % 32 else 32}
    slices = divide.random(rng, space, unit, int(pick(rng, [1, 4, 32])), ["in"])
    names = {0: "x", 1: "mb", 2: "in"}
    left = Argument([tiles, rows, k], dtype, init="small", pad="zero")
    axes = [1, 2] if chance(rng, 0.5) else [2, 1]
    right = Argument([experts, k, n], dtype, order=axes + [0], padded={1: space["in"]},
                     init="small", pad="zero")
    table = Table(right, fmt, [{1: "in", 2: "out"}[a] for a in right.order[:-1]] + ["x"], "out",
                  ["x"], rows={"x": experts})
    index = Argument([tiles], "int32", init="below%d" % experts, pad="zero")
    chosen = index.operand({0: "x"}, space)
    chosen.fmt = "SENUINT32" if chance(rng, 0.5) else "IEEE_INT32"
    out = Argument([tiles, rows, n], dtype)
    step = Sdsc("batchmatmul", space, slices,
                [left.operand(names, space), table, chosen,
                 out.operand({0: "x", 1: "mb", 2: "out"}, space)],
                unit="pt", labels=["INPUT", "KERNEL", "KERNEL_IDX", "OUTPUT"], tables={1: 2})
    return Bundle("matrices", [left, right, index], [out], [step], "in0@in1[in2.astype(int)]",
                  0.0025, 2e-6 + 1e-8 * k, symbolic=chance(rng, 0.7),
                  september=chance(rng, 0.5))


MADE = {
    "gather": lambda rng, dtype: gather(rng, "identity", dtype),
    "exp": lambda rng, dtype: gather(rng, "exp", dtype),
    "each": lambda rng, dtype: gather(rng, "identity", dtype, True),
    "two": two_tables,
    "mul": with_direct,
    "parts": in_parts,
    "pool": from_pool,
    "scatter": lambda rng, dtype: scatter(rng, "identity", dtype),
    "scatterneg": lambda rng, dtype: scatter(rng, "neg", dtype),
    "scattereach": lambda rng, dtype: scatter(rng, "identity", dtype, True),
    "stated": lambda rng, dtype: gather(rng, "identity", dtype, stated=True),
    "statedexp": lambda rng, dtype: gather(rng, "exp", dtype, stated=True),
    "statedeach": lambda rng, dtype: gather(rng, "identity", dtype, True, True),
    "statedscatter": lambda rng, dtype: scatter(rng, "neg", dtype, stated=True),
    "statedscattereach": lambda rng, dtype: scatter(rng, "identity", dtype, True, True),
    "repeat": repeat,
    "looped": looped,
    "pieces": pieces,
    "matrices": matrices,
}


@family("indirect", [(name, dtype) for name in MADE for dtype in ("fp16", "fp32")], weight=2)
def indirect(rng, variant):
    name, dtype = variant
    return MADE[name](rng, dtype)
