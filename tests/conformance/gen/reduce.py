# SPDX-License-Identifier: MIT
"""Reductions over the stick, over other dims, over several at once, and the layer norm."""
from . import divide, family
from .bundle import Bundle
from .formats import HOSTS
from .frame import Frame, chance, pick, tolerance
from .sdsc import Sdsc
from .tensors import Argument, Pool

# expression over {0} and the axes {1}
TEXT = {
    "sum": "({0}).sum(axis={1})",
    "mean": "({0}).mean(axis={1})",
    "max": "({0}).max(axis={1})",
    "min": "({0}).min(axis={1})",
    "absmax": "np.abs({0}).max(axis={1})",
}
FP32 = ["sum", "mean", "max", "min"]


def result(rng, frame, axes, dtype):
    """The output of a reduction over @axes as argument and operand."""
    keep = [a for a in range(frame.rank) if a not in axes]
    held = chance(rng, 0.4)                         # keepdim
    shape = [frame.shape[a] if a in keep else 1 for a in range(frame.rank) if held or a in keep]
    own = [a for a in range(frame.rank) if held or a in keep]
    lanes = frame.stick in keep
    stick = own.index(frame.stick) if lanes else None
    argument = Argument(shape, dtype, None, frame.order(rng, own), stick)
    use = frame._use(argument, own, axes, {}, "%s")
    return use, shape


def masks(rng, frame, axes):
    """The padding of a reduced stick."""
    real, size = frame.shape[frame.stick], frame.size(frame.stick)
    if frame.stick not in axes or real == size:
        return {}
    return {frame.dim[frame.stick]: [[real, size - real]]}


def constants(op, count, mask, fmt):
    table = []
    if op == "mean":
        table.append(("scaling_factor", fmt, 1.0 / count))
    if mask:
        fill = {"max": -65504.0, "min": float("inf")}.get(op, 0.0)
        table.append(("samv-maskvalue", fmt, fill))
    return table


def axes_of(rng, frame, stick):
    """Axes to reduce, with the stick axis or without it."""
    others = [a for a in range(frame.rank) if a != frame.stick]
    p = pick(rng, [0.0, 0.3, 0.6, 1.0])
    axes = [a for a in others if chance(rng, p)]
    if stick:
        return sorted(axes + [frame.stick])
    return sorted(axes) or [pick(rng, others)]


def error(op, dtype, count, argument):
    """Sums in fp32: half an ulp per addition at worst; and the rounding of the factor."""
    rtol = tolerance(argument)
    if op == "mean" and dtype != "fp32":
        rtol += 0.001
    atol = 1e-6
    if op in ("sum", "mean"):
        atol += 2.0 ** -23 * count * (1.0 / count if op == "mean" else 1.0)
    return rtol, atol


@family("reduce", [(op, dtype, kind) for op in TEXT for kind in ("stick", "nonstick")
                   for dtype in (["fp16", "fp32"] if op in FP32 else ["fp16"])], weight=3)
def reduction(rng, variant):
    op, dtype, kind = variant
    stick = kind == "stick"
    rank = int(rng.choice([1, 2, 2, 3, 3, 4, 5])) if stick else int(rng.choice([2, 2, 3, 4, 5]))
    frame = Frame(rng, dtype, rank=rank)
    axes = axes_of(rng, frame, stick)
    x = frame.input(rng, dtype, broadcast=[], slices=not stick)
    out, shape = result(rng, frame, axes, dtype)
    mask, count = masks(rng, frame, axes), 1
    for a in axes:
        count *= frame.shape[a]
    rtol, atol = error(op, dtype, count, out.argument)
    fmt = HOSTS[dtype].device
    return frame.bundle(rng, op + ("" if stick else "nonstick"), [x], out,
                        "(%s).reshape(%r)" % (TEXT[op].replace("{1}", repr(tuple(axes))), shape),
                        rtol, atol, constants=constants(op, count, mask, fmt), masks=mask,
                        accumulate=True)


@family("reduce_parts", [("max", "fp16"), ("sum", "fp32"), ("mean", "fp16")], fixed=1)
def parts(rng, variant):
    """Cores share the reduced stick, and their partial results of all rows exceed LX."""
    op, dtype = variant
    lanes = 32 if dtype == "fp32" else 64
    rows, columns = int(rng.integers(8200, 12000)) * 64 // lanes, 2 * lanes
    space = {"mb": rows, "out": columns}
    x = Argument((rows, columns), dtype)
    out = Argument((rows, 1), dtype, stick=None, order=[0])
    fmt = HOSTS[dtype].device
    step = Sdsc(op, space, {"out": 2}, [x.operand({0: "mb", 1: "out"}, space),
                                        out.operand({0: "mb"}, space, lane="out")],
                constants(op, columns, {}, fmt), accumulate=True)
    rtol, atol = error(op, dtype, columns, out)
    text = "(%s).reshape(%r)" % (TEXT[op].format("in0", "(1,)"), (rows, 1))
    return Bundle(op, [x], [out], [step], text, rtol, atol, symbolic=chance(rng, 0.5),
                  september=chance(rng, 0.5))


@family("product", [("fp16",), ("fp32",)])
def product(rng, variant):
    """A product over dims other than the stick, at most 1,000 factors."""
    dtype, = variant
    count = 0
    while not 0 < count <= 1000:
        frame = Frame(rng, dtype, rank=int(rng.choice([2, 2, 3, 4, 5])))
        axes = axes_of(rng, frame, False)
        count = 1
        for a in axes:
            count *= frame.shape[a]
    x = frame.input(rng, dtype, "factors", broadcast=[])
    out, shape = result(rng, frame, axes, dtype)
    rtol = tolerance(out.argument) + 2.0 ** -23 * count
    return frame.bundle(rng, "prodnonstick", [x], out,
                        "({0}).prod(axis=%r).reshape(%r)" % (tuple(axes), shape), rtol, 1e-6,
                        accumulate=True)


@family("layernorm", [(op, dtype) for op in ("layernorm", "zeromean")
                      for dtype in ("fp16", "fp32")], weight=4)
def layernorm(rng, variant):
    """exx2, layernormscale, layernormnorm with weight and bias, through the pool."""
    kind, dtype = variant
    fmt = HOSTS[dtype].device
    frame = Frame(rng, dtype, rank=int(rng.choice([1, 2, 2, 3, 4])))
    n = frame.shape[frame.stick]
    if n < 8:
        return layernorm(rng, variant)
    x = frame.input(rng, dtype, broadcast=[], slices=False)
    others = [a for a in range(frame.rank) if a != frame.stick]
    w, b = (frame.input(rng, dtype, broadcast=others, slices=False) for _ in range(2))
    out = frame.output(rng, dtype)
    row = result(rng, frame, [frame.stick], dtype)[0].operand
    lane, wide = frame.dim[frame.stick], row.lanes
    exx2 = row.moved(Pool(0))
    whole = exx2.bytes(frame.space, {d: 1 for d in frame.space})
    scale = row.moved(Pool(whole))
    real = frame.size(frame.stick)
    mask = {lane: [[n, real - n]]} if real != n else {}
    eps = 1e-5 if dtype == "fp32" else float(2.0 ** -14)
    operands = [x.operand, exx2]
    op = "exx2" if kind == "layernorm" else "exx2_zeromean"
    constants = [("exx2scale", fmt, 1.0 / n)]
    if kind == "layernorm":
        constants.append(("useZeroMean", fmt, 0.0))
    first = Sdsc(op, frame.space, divide.random(rng, frame.space, divide.sticks(operands)),
                 operands, constants, mask,
                 accumulate=True)
    space = {d: (wide if d == lane else size) for d, size in frame.space.items()}
    full = scale.moved(Pool(whole))
    full.scale = {d: 1 for d in full.order}
    second = Sdsc("layernormscale", space, divide.random(rng, space, fixed=[lane]), [exx2, full],
                  [("eps", fmt, eps)])
    operands = [x.operand, exx2, scale, w.operand, b.operand, out.operand]
    third = Sdsc("layernormnorm", frame.space,
                 divide.random(rng, frame.space, divide.sticks(operands)), operands)
    axis = frame.stick
    text = ("(({0})-({0}).mean({1},keepdims=True))/np.sqrt(({0}).var({1},keepdims=True)+{2})"
            "*in1+in2").format("in0", axis, eps)
    if kind == "zeromean":
        text = "in0/np.sqrt((in0**2).mean(%d,keepdims=True)+%r)*in1+in2" % (axis, eps)
    args = [x.argument, w.argument, b.argument]
    loose = (0.02, 0.03) if dtype == "fp16" else (3e-5, 3e-5)
    return Bundle(kind, args, [out.argument], [first, second, third], text, *loose,
                  pool=2 * whole, symbolic=chance(rng, 0.7), september=chance(rng, 0.5))
