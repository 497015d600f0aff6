# SPDX-License-Identifier: MIT
"""Quantisation and conversions, in plain sticks and in packs."""
from . import divide, family
from .bundle import Bundle
from .frame import Frame, chance, pick
from .sdsc import Sdsc
from .tensors import Argument, Image, Operand


@family("convert", [("fp8todl16", "fp8_e4m3", "fp16"), ("fp8todl16", "fp8_e5m2", "fp16"),
                    ("int32tofp32", "int32", "fp32"), ("fp32toint32", "fp32", "int32"),
                    ("identity", "int32", "int32"), ("identity", "int8", "int8"),
                    ("identity", "fp8_e4m3", "fp8_e4m3")])
def convert(rng, variant):
    op, source, target = variant
    frame = Frame(rng, source, target, rank=int(rng.choice([2, 2, 3, 4])))
    x = frame.input(rng, source, "randn", [])
    out = frame.output(rng, target)
    text = "np.trunc({0})" if op == "fp32toint32" else "{0}"
    return frame.bundle(rng, op, [x], out, text, 0, 0)


@family("quant", [(op, dtype, target, how)
                  for op, target in (("qfp8ch", "fp8_e4m3"), ("qfp8ch", "fp8_e5m2"),
                                     ("csqint8ch", "int8"))
                  for dtype in ("fp16", "fp32") for how in ("plain", "factor", "scale")], fixed=3)
def quant(rng, variant):
    """x, x * mulConst or x / scale, the scale broadcast along any axes."""
    op, dtype, target, how = variant
    frame = Frame(rng, dtype, target, rank=int(rng.choice([2, 2, 3])))
    uses = [frame.input(rng, dtype, "randn", [])]
    text, constants = "{0}", []
    if how == "factor":
        factor = float(pick(rng, [0.125, 0.25, 4, 32]))
        constants = [("mulConst", "IEEE_FP32", factor)]
        text = "{0}*%r" % factor
    if how == "scale":
        axes = [a for a in range(frame.rank) if chance(rng, 0.5)]
        uses.append(frame.input(rng, dtype, "positive", axes, False))
        text = "{0}/{1}"
    out = frame.output(rng, target)
    fmt = out.argument.fmt
    return frame.bundle(rng, op, uses, out, "stored(%s, %r)" % (text, fmt), 0, 0,
                        constants=constants)


@family("quantscale", [(op, dtype) for op in ("quantscalepertoken", "quantscalepertokenfp8")
                       for dtype in ("fp16", "fp32")], fixed=3)
def quantscale(rng, variant):
    """One scale per row, in a sparse output."""
    op, dtype = variant
    lanes = 32 if dtype == "fp32" else 64
    m, n = int(pick(rng, [1, 3, 8, 32])), lanes * int(pick(rng, [1, 2, 3, 8]))
    x, out = Argument((m, n), dtype), Argument((m, 1), dtype, None, [0, 1], None)
    space = {"mb": m, "out": n}
    uses = [x.operand({0: "mb", 1: "out"}, space),
            Operand(out, out.fmt, ["mb", "out"], "out", {"mb": 1, "out": -2})]
    factor = 1 / 448 if op.endswith("fp8") else 1 / 127
    constants = []
    if chance(rng, 0.5):
        factor = 0.25
        constants = [("mulConst", "IEEE_FP32", factor)]
    slices = divide.random(rng, space, {"out": lanes})
    step = Sdsc(op, space, slices, uses, constants, accumulate=True)
    return Bundle(op, [x], [out], [step], "np.abs(in0).max(1, keepdims=True)*%r" % factor,
                  0.0025 if dtype == "fp16" else 1e-6, 0, symbolic=chance(rng, 0.7))


# Packs: parts of a stick along (o, n), and their image as a reshape of [o, n].
PACKS = {
    "mb": (lambda o, n: [(n, 8), (o, 2), (n, 8)], 2, 64,
           "({}).reshape({O}, 2, {N}, 8, 8).transpose(2, 0, 3, 1, 4).reshape({N}, {O}, 128)"),
    "wt": (lambda o, n: [(o, 2), (n, 64)], 2, 64,
           "({}).reshape({O}, 2, {N}, 64).transpose(2, 0, 3, 1).reshape({N}, {O}, 128)"),
}


@family("pack", [(op + kind, dtype, target, how)
                 for op, target in (("qfp8", "fp8_e4m3"), ("csqint8", "int8"))
                 for kind in PACKS for dtype in ("fp16", "fp32") for how in ("plain", "scale")],
        fixed=3)
def pack(rng, variant):
    op, dtype, target, how = variant
    parts, p, unit, image = PACKS[op[-2:]]
    rows, tiles = int(pick(rng, [1, 2, 3, 8, 16])), int(pick(rng, [1, 2, 3, 4]))
    m, n = rows * p, tiles * unit
    space, dims = {"mb": m, "out": n}, {0: "mb", 1: "out"}
    x = Argument((m, n), dtype, None, [int(a) for a in rng.permutation(2)])
    args, text = [x], "in0"
    uses = [x.operand(dims, space)]
    if how == "scale":
        scale = Argument((m, 1), dtype, None, [0, 1], None, None, "positive")
        args.append(scale)
        uses.append(Operand(scale, scale.fmt, ["mb", "out"], "out", {"mb": 1, "out": -2}))
        text = "in0/in1"
    out = Image((tiles, rows, 128), target)
    uses.append(Operand(out, out.fmt, ["mb", "out"], "out", parts=parts("mb", "out")))
    slices = divide.random(rng, space, {"mb": p, "out": unit})
    step = Sdsc(op, space, slices, uses)
    text = image.format("stored(%s, %r)" % (text, out.fmt), O=rows, N=tiles)
    return Bundle(op, args, [out], [step], text, 0, 0, symbolic=chance(rng, 0.7),
                  september=chance(rng, 0.5))
