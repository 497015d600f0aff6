# SPDX-License-Identifier: MIT
"""Convolutions and pooling, in both forms of strides and padding (docs/sdsc.md)."""
from . import divide, family
from .bundle import Bundle
from .formats import HOSTS
from .frame import chance, pick
from .sdsc import Sdsc
from .tensors import Argument, Image, Operand

AXES = (("i", "ki"), ("j", "kj"))


class Axis:
    """One axis of a window: outputs, taps, stride, dilation, padding, input size.

    rest: elements of the input that a stride leaves over; unneeded: padding that no tap reaches.
    """

    rest = unneeded = 0

    def __init__(self, rng, largest):
        while True:
            self.n, self.k = int(rng.integers(1, 9)), int(pick(rng, [1, 1, 2, 3, 3, 5]))
            self.stride, self.dilation = int(pick(rng, [1, 1, 2, 3])), int(pick(rng, [1, 1, 2]))
            reach = (self.k - 1) * self.dilation
            most = reach // 2 if largest else reach
            self.before, self.after = (int(rng.integers(0, most + 1)) for _ in range(2))
            self.size = (self.n - 1) * self.stride + reach + 1 - self.before - self.after
            if self.size > 0 and not (largest and self.dilation > 1 and self.before + self.after):
                return

    def public(self, dim):
        """Its entry in the public form of paddingSizes_."""
        entry = {"padFront_": self.before, "padBack_": self.after,
                 "totalSize_": self.rows + self.before + self.after + self.unneeded,
                 "stride_": self.stride, "dilation_": self.dilation, "windowDim_": "k" + dim}
        if self.unneeded:
            entry.update({"unneededPad_": self.unneeded, "unneededPadFront_": 0,
                          "unneededPadBack_": self.unneeded})
        return entry

    @property
    def rows(self):
        """Elements of the input in memory."""
        return self.size + self.rest

    def tap(self, name):
        """The slice of a padded input for tap @name."""
        first = "%s*%d" % (name, self.dilation)
        return "%s:%s+%d:%d" % (first, first, (self.n - 1) * self.stride + 1, self.stride)


class Walked(Operand):
    """The first input: its own rows and columns, some of which adjacent windows share."""

    def __init__(self, argument, order, stick, axes):
        super().__init__(argument, argument.fmt, order, stick)
        self.axes = axes

    def extents(self, space, slices):
        out = super().extents(space, slices)
        out.update({dim: axis.rows for dim, axis in self.axes.items()})
        return out

    def start(self, space, slices, place):
        strides, at = self.strides(space, slices), 0
        for dim in self.order:
            first = place[dim] * (space[dim] // slices[dim])
            if dim in self.axes:
                axis = self.axes[dim]
                tap = "k" + dim
                first = first * axis.stride - axis.before + \
                    place[tap] * (space[tap] // slices[tap]) * axis.dilation
                first = min(max(first, 0), axis.size - 1)
            at += first // self.unit(dim) * strides[dim]
        return at * 128 // self.lanes + self.offset


class WindowSdsc(Sdsc):
    """With strides_, dilations_ and paddingSizes_, or with the public paddingSizes_ only."""

    def __init__(self, op, space, slices, operands, axes, public, **options):
        super().__init__(op, space, slices, operands, **options)
        self.axes, self.public = axes, public

    def _share(self, september):
        share = super()._share(september)
        share["paddingSizes_"] = {d: a.public(d) if self.public else [a.before, a.after]
                                  for d, a in self.axes.items()}
        return share

    def _descriptor(self, addresses, september):
        out = super()._descriptor(addresses, september)
        if self.public:
            out["N_"]["paddingSizes_"] = {d: a.public(d) for d, a in self.axes.items()}
        return out

    def _compute(self):
        compute = super()._compute()
        if self.public:
            return compute
        compute[0]["attributes_"].update({
            "strides_": {d: a.stride for d, a in self.axes.items()},
            "dilations_": {d: a.dilation for d, a in self.axes.items()}})
        return compute


class Window:
    """Shapes [N, H, W, C], the axes, and the padded input as text."""

    def __init__(self, rng, dtype, largest=False):
        self.rng, self.dtype = rng, dtype
        self.axes = {dim: Axis(rng, largest) for dim, _ in AXES}
        self.batch = int(pick(rng, [1, 1, 2, 3]))
        self.lanes = 32 if dtype == "fp32" else 64
        self.depth = self.lanes
        self.public = chance(rng, 0.5)
        for axis in self.axes.values() if self.public else ():
            axis.unneeded = int(rng.integers(2))
            axis.rest = 0 if axis.after else int(rng.integers(axis.stride))
        i, j = self.axes["i"], self.axes["j"]
        self.taps = "for ki in range(%d) for kj in range(%d)" % (i.k, j.k)
        fill = ", constant_values=-np.inf" if largest else ""
        self.seen = "np.pad(in0, ((0, 0), (%d, %d), (%d, %d), (0, 0))%s)[:, %s, %s, :]" % (
            i.before, i.after, j.before, j.after, fill, i.tap("ki"), j.tap("kj"))

    def whole(self, n):
        return -(-n // self.lanes) * self.lanes

    def order(self, rank):
        if chance(self.rng, 0.5):
            return Argument.default_order(rank)
        return [int(a) for a in self.rng.permutation(rank)]

    def input(self, channels, dim, init="randn", pad="poison"):
        shape = [self.batch, self.axes["i"].rows, self.axes["j"].rows, channels]
        argument = Argument(shape, self.dtype, None, self.order(4), -1, None, init, pad)
        names = ["mb", "i", "j", dim]
        use = Walked(argument, [names[a] for a in argument.order], dim, self.axes)
        if self.public and chance(self.rng, 0.5):
            # Pooling states the memory beyond N_; other operations state totalSize_ only.
            use.gap = {d: a.rows - a.n for d, a in self.axes.items() if a.rows > a.n}
        return argument, use

    def tensor(self, shape, names, space, **options):
        argument = Argument(shape, self.dtype, None, self.order(len(shape)), -1, **options)
        return argument, argument.operand(dict(enumerate(names)), space)

    def output(self, channels, space):
        shape = [self.batch, self.axes["i"].n, self.axes["j"].n, channels]
        return self.tensor(shape, ["mb", "i", "j", "out"], space)

    def space(self, **more):
        out = {"mb": self.batch}
        for dim, tap in AXES:
            out.update({dim: self.axes[dim].n, tap: self.axes[dim].k})
        out.update(more)
        return out

    def bundle(self, op, space, pairs, fixed, text, rtol, atol, **options):
        operands = [use for _, use in pairs]
        if self.public:
            fixed = fixed + [d for d, a in self.axes.items() if a.before]
        slices = divide.random(self.rng, space, {"out": self.lanes, "in": self.depth},
                               int(pick(self.rng, [1, 4, 32])), fixed)
        step = WindowSdsc(op, space, slices, operands, self.axes, self.public, **options)
        args = [argument for argument, _ in pairs]
        return Bundle(op, args[:-1], args[-1:], [step], text, rtol, atol,
                      symbolic=chance(self.rng, 0.7), september=chance(self.rng, 0.5))


def error(dtype):
    return (0.004, 0.004) if dtype == "fp16" else (1e-5, 1e-5)


@family("conv2d", [("conv2d", "fp16"), ("conv2d", "fp32")], weight=3)
def conv2d(rng, variant):
    op, dtype = variant
    w = Window(rng, dtype)
    cin, cout = (int(pick(rng, [3, 32, 64, 65, 128])) for _ in range(2))
    space = w.space(out=w.whole(cout), **{"in": w.whole(cin)})
    pairs = [w.input(cin, "in", "small", "zero")]
    taps = [w.axes["i"].k, w.axes["j"].k]
    pairs.append(w.tensor(taps + [cin, cout], ["ki", "kj", "in", "out"], space, init="small",
                          padded={2: w.whole(cin)}, pad="zero"))
    pairs.append(w.output(cout, space))
    text = "sum(%s @ in1[ki, kj] %s)" % (w.seen, w.taps)
    fixed = [] if chance(rng, 0.4) else ["in", "ki", "kj"]
    return w.bundle(op, space, pairs, fixed, text, *error(dtype), unit="pt")


@family("conv2dpacked", [("conv2dfp8", "fp8_e4m3", "fp16"), ("conv2dfp8", "fp8_e5m2", "fp32"),
                        ("conv2dint8", "int8", "fp16"), ("conv2dint8", "int8", "int32")])
def conv2dpacked(rng, variant):
    """The sticks of the 8-bit products: x [in 128], weights [in 2, out 64]."""
    op, dtype, target = variant
    w = Window(rng, dtype)
    w.depth = 128
    cin, cout = 128 * int(pick(rng, [1, 1, 2])), 64 * int(pick(rng, [1, 2, 3]))
    space = w.space(out=cout, **{"in": cin})
    ki, kj = w.axes["i"].k, w.axes["j"].k
    image = Image((ki, kj, cout // 64, cin // 2, 128), dtype)
    weights = Operand(image, image.fmt, ["in", "out", "kj", "ki"], "out",
                      parts=[("in", 2), ("out", 64)])
    out = Argument([w.batch, w.axes["i"].n, w.axes["j"].n, cout], target)
    pairs = [w.input(cin, "in", pad="zero"), (image, weights),
             (out, out.operand(dict(enumerate(["mb", "i", "j", "out"])), space))]
    unfolded = "in1.reshape(%d, %d, %d, %d, 64, 2).transpose(0, 1, 3, 5, 2, 4)" \
        ".reshape(%d, %d, %d, %d)" % (ki, kj, cout // 64, cin // 2, ki, kj, cin, cout)
    text = "(lambda w: sum(%s @ w[ki, kj] %s))(%s)" % (w.seen, w.taps, unfolded)
    exact = target == "int32"
    # Partial results of 8-bit products require DL16 outputs (docs/unsupported.md).
    fixed = ["in", "ki", "kj"] if op == "conv2dint8" or target == "fp32" or chance(rng, 0.4) else []
    return w.bundle(op, space, pairs, fixed, text,
                    0 if exact else 0.0025 if target == "fp16" else 1e-5,
                    0 if exact else 1e-6 * cin * ki * kj, unit="pt")


@family("depthwise", [("depthwiseconv2dnative", "fp16"), ("depthwiseconv2dnative", "fp32")],
        weight=2)
def depthwise(rng, variant):
    op, dtype = variant
    w = Window(rng, dtype)
    channels = int(pick(rng, [3, 32, 64, 65, 128]))
    space = w.space(out=w.whole(channels))
    pairs = [w.input(channels, "out")]
    taps = [w.axes["i"].k, w.axes["j"].k]
    pairs.append(w.tensor(taps + [channels], ["ki", "kj", "out"], space))
    pairs.append(w.output(channels, space))
    text = "sum(%s * in1[ki, kj] %s)" % (w.seen, w.taps)
    rtol, atol = error(dtype)
    return w.bundle(op, space, pairs, ["ki", "kj"], text, rtol, 4 * atol)


@family("pool", [(op, dtype) for op in ("maxpoolfwd", "avgpoolfwd", "avgpoolnmapfwd")
                 for dtype in ("fp16", "fp32")], weight=2)
def pool(rng, variant):
    op, dtype = variant
    w = Window(rng, dtype, op == "maxpoolfwd")
    channels = int(pick(rng, [3, 32, 64, 65, 128]))
    space = w.space(out=w.whole(channels))
    pairs = [w.input(channels, "out")]
    taps = w.axes["i"].k * w.axes["j"].k
    text = "sum(%s %s)" % (w.seen, w.taps)
    options = {}
    if op == "maxpoolfwd":
        text = "np.max([%s %s], axis=0)" % (w.seen, w.taps)
    elif op == "avgpoolnmapfwd":
        shape = [w.axes["i"].n, w.axes["j"].n, channels]
        pairs.append(w.tensor(shape, ["i", "j", "out"], space))
        text += " * in1"
    else:
        text += " / %d" % taps
        if chance(rng, 0.5):
            options["constants"] = [("nmap", HOSTS["fp32"].device, 1.0 / taps)]
    pairs.append(w.output(channels, space))
    rtol, atol = error(dtype)
    return w.bundle(op, space, pairs, ["ki", "kj"], text, rtol, 4 * atol, **options)
