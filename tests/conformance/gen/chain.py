# SPDX-License-Identifier: MIT
"""Chains of SDSCs: intermediates in LX and in the pool, in place, read again later."""
from . import divide, family
from .bundle import Bundle
from .formats import HOSTS
from .frame import Frame, chance, pick
from .reduce import TEXT, result
from .sdsc import Sdsc
from .tensors import Lx, Pool

UNARY = {"exp": "np.exp({0})", "neg": "-{0}", "abs": "np.abs({0})",
         "relufwd": "np.maximum({0}, 0)", "sigmoid": "1/(1+np.exp(-{0}))", "identity": "{0}"}
BINARY = {"add": "{0}+{1}", "sub": "{0}-{1}", "mul": "{0}*{1}", "maximum": "np.maximum({0}, {1})",
          "minimum": "np.minimum({0}, {1})"}
REDUCE = ["sum", "mean", "max", "min"]


class Value:
    """A tensor of the chain: where it is, its operand, its name in the reference."""

    def __init__(self, name, operand, sparse=False, bound=4.0):
        self.name, self.operand, self.sparse, self.bound = name, operand, sparse, bound


class Chain:
    """Steps with one work division; values are named t0, t1, ... in the reference."""

    def __init__(self, rng, dtype, rank=None):
        self.rng, self.dtype, self.fmt = rng, dtype, HOSTS[dtype].device
        self.frame = Frame(rng, dtype, rank=rank or int(rng.choice([2, 2, 3, 4])), budget=20000)
        self.values, self.steps, self.text = [], [], []
        self.args = []
        self.lx, self.pool = 128 * int(rng.integers(0, 20)), 0
        stick = self.frame.dim[self.frame.stick]
        unit = {stick: self.frame.wide}
        fixed = [stick] if chance(rng, 0.7) else []
        self.slices = divide.random(rng, self.frame.space, unit, 32, fixed)
        self.whole = self.slices[stick] == 1

    def input(self):
        use = self.frame.input(self.rng, self.dtype, broadcast=[] if not self.args else None)
        text = "(%s)" % use.text % ("in%d" % len(self.args))
        self.args.append(use.argument)
        name = self.name("np.broadcast_to(%s, %r)" % (text, list(self.frame.shape)))
        self.values.append(Value(name, use.operand))

    def name(self, text):
        self.text.append("(t%d := %s)" % (len(self.text), text))
        return "t%d" % (len(self.text) - 1)

    def place(self, operand, reuse):
        """A place for a result: LX, the pool, or that of an input no longer needed."""
        if reuse is not None and chance(self.rng, 0.4):
            return reuse.where
        size = operand.bytes(self.frame.space, self.slices)
        if chance(self.rng, 0.65):
            self.lx += 128 * int(self.rng.integers(0, 3))
            at = Lx(self.lx)
            self.lx += operand.moved(at).bytes(self.frame.space, self.slices)
            return at
        self.pool += 128 * int(self.rng.integers(0, 3))
        at = Pool(self.pool)
        self.pool += size
        return at

    def pointwise(self):
        rng = self.rng
        dense = [v for v in self.values if not v.sparse]
        a = pick(rng, dense)
        table = BINARY if chance(rng, 0.7) else UNARY
        op = pick(rng, sorted(table))
        inputs = [a] + ([pick(rng, self.values)] if table is BINARY else [])
        bound = sum(v.bound for v in inputs) if op in ("add", "sub") else \
            inputs[0].bound * inputs[-1].bound if op == "mul" else max(v.bound for v in inputs)
        if op == "exp":
            if a.bound > 4:
                op = "abs"
            bound = 55.0
        if bound > 60:
            return
        order = self.frame.output(rng, self.dtype, False)
        model = order.operand
        reuse = a.operand if a.operand.lx and not a.operand.gap else None
        where = self.place(model, reuse)
        operand = model.moved(where)
        if reuse is not None and where is reuse.where:      # in place: the same layout
            operand = reuse
            self.values.remove(a)
        self.steps.append(Sdsc(op, self.frame.space, self.slices,
                               [v.operand for v in inputs] + [operand]))
        text = table[op].format(*(v.name for v in inputs))
        name = self.name("stored(%s, %r)" % (text, self.fmt))
        self.values.append(Value(name, operand, False, bound))

    def reduce(self):
        """Over the stick, where it is whole on a core: one value per stick, broadcast later."""
        rng, frame = self.rng, self.frame
        dense = [v for v in self.values if not v.sparse]
        a = pick(rng, dense)
        op = pick(rng, REDUCE)
        bound = a.bound * (frame.shape[frame.stick] if op == "sum" else 1)
        if not self.whole or bound > 60:
            return
        operand = result(rng, frame, [frame.stick], self.dtype)[0].operand
        operand = operand.moved(self.place(operand, None))
        real, size = frame.shape[frame.stick], frame.size(frame.stick)
        masks = {frame.dim[frame.stick]: [[real, size - real]]} if real != size else {}
        table = [("scaling_factor", self.fmt, 1.0 / real)] if op == "mean" else []
        factor = "*float(stored(%r, %r))*%d" % (1.0 / real, self.fmt, real) if op == "mean" else ""
        self.steps.append(Sdsc(op, frame.space, self.slices, [a.operand, operand], table, masks,
                               accumulate=True))
        text = TEXT[op].replace("{0}", a.name).replace("{1}", "%d, keepdims=True" % frame.stick)
        name = self.name("stored(%s%s, %r)" % (text, factor, self.fmt))
        self.values.append(Value(name, operand, True, bound))

    def prune(self, last):
        """Front-ends emit no step whose result is not read."""
        live, steps = [last], []
        for step in reversed(self.steps):
            if any(step.operands[-1].where is v.where for v in live):
                live = [v for v in live if v.where is not step.operands[-1].where]
                live += step.operands[:-1]
                steps.insert(0, step)
        self.steps = steps

    def finish(self, name, **options):
        """The last dense value goes to the output."""
        last = [v for v in self.values if not v.sparse][-1]
        self.prune(last.operand)
        out = self.frame.output(self.rng, self.dtype)
        self.steps.append(Sdsc("identity", self.frame.space, self.slices,
                               [last.operand, out.operand]))
        text = "(%s, %s)[-1]" % (", ".join(self.text), last.name)
        # Baked addresses count arguments from the first one that is used.
        used = [o.where for step in self.steps for o in step.operands]
        symbolic = chance(self.rng, 0.6) or any(a not in used for a in self.args)
        rtol, atol = (0.01, 0.02) if self.fmt == "SEN169_FP16" else (2e-5, 2e-5)
        return Bundle(name, self.args, [out.argument], self.steps, text, rtol, atol,
                      pool=self.pool, symbolic=symbolic,
                      september=chance(self.rng, 0.5), **options)


@family("chain", [("chain", "fp16"), ("chain", "fp32")], weight=6, fixed=10)
def chain(rng, variant):
    name, dtype = variant
    c = Chain(rng, dtype)
    for _ in range(int(rng.integers(1, 4))):
        c.input()
    for _ in range(int(rng.integers(2, 10))):
        if chance(rng, 0.3):
            c.reduce()
        else:
            c.pointwise()
    return c.finish(name)


@family("softmax", [("softmax", "fp16"), ("softmax", "fp32")], weight=4)
def softmax(rng, variant):
    """max, sub, exp, sum, realdiv in LX, as front-ends emit it; sub and exp in place."""
    name, dtype = variant
    c = Chain(rng, dtype)
    frame, stick = c.frame, c.frame.dim[c.frame.stick]
    c.slices = divide.random(rng, frame.space, {stick: frame.wide}, 32, [stick])
    x = frame.input(rng, dtype, broadcast=[])
    out = frame.output(rng, dtype)
    real, size = frame.shape[frame.stick], frame.size(frame.stick)
    masks = {stick: [[real, size - real]]} if real != size else {}
    row = result(rng, frame, [frame.stick], dtype)[0].operand
    dense = frame.output(rng, dtype, False).operand
    bytes_row = row.moved(Lx(0)).bytes(frame.space, c.slices)
    top, total = row.moved(Lx(0)), row.moved(Lx(bytes_row))
    a = dense.moved(Lx(2 * bytes_row))
    b = a if chance(rng, 0.5) else dense.moved(
        Lx(2 * bytes_row + a.bytes(frame.space, c.slices)))
    made = [("max", [x.operand, top], masks), ("sub", [x.operand, top, a], {}),
            ("exp", [a, b], {}), ("sum", [b, total], masks),
            ("realdiv", [b, total, out.operand], {})]
    steps = [Sdsc(op, frame.space, c.slices, operands, masks=mask,
                  accumulate=op in ("max", "sum")) for op, operands, mask in made]
    text = "(lambda x: np.exp(x-x.max({0},keepdims=True))/np.exp(x-x.max({0},keepdims=True))" \
        ".sum({0},keepdims=True))({1})".format(frame.stick, x.text % "in0")
    rtol, atol = (0.02, 0.001) if dtype == "fp16" else (1e-5, 1e-6)
    return Bundle(name, [x.argument], [out.argument], steps, text, rtol, atol,
                  symbolic=chance(rng, 0.7), september=chance(rng, 0.5))
