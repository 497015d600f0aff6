# SPDX-License-Identifier: MIT
"""Products in fp32, fp8, int8 and int4, the latter quantised in the bundle."""
from . import divide, family
from .bundle import Bundle
from .frame import chance, pick
from .sdsc import Sdsc
from .tensors import Argument, Image, Operand, Pool


class Size:
    def __init__(self, rng, depth, even=False):
        self.m = int(pick(rng, [1, 2, 3, 5, 8, 17, 32]))
        self.k = depth * int(pick(rng, [1, 2, 3, 4, 8]))
        self.n = 64 * int(pick(rng, [1, 2, 3, 4]))
        self.space = {"mb": self.m, "out": self.n, "in": self.k}

    def slices(self, rng, depth, rows=1):
        unit = {"out": 64, "in": depth, "mb": rows}
        return divide.random(rng, self.space, unit, int(pick(rng, [1, 4, 32])),
                             (["mb"] if self.m % rows else []) +
                             ([] if chance(rng, 0.5) else ["in"]))


def finish(rng, op, size, slices, uses, args, text, rtol, atol):
    step = Sdsc(op, size.space, slices, uses, unit="pt", k_fast=slices["in"] > 1)
    return Bundle(op, args[:-1], args[-1:], [step], text, rtol, atol,
                  symbolic=chance(rng, 0.7), september=chance(rng, 0.5))


@family("matmulfp32", [("batchmatmul", "fp32", "fp32"), ("batchmatmul", "fp16", "fp32"),
                       ("batchmatmul", "fp32", "fp16")], fixed=4)
def matmulfp32(rng, variant):
    op, source, target = variant
    size = Size(rng, 64)
    args = [Argument((size.m, size.k), source, init="small"),
            Argument((size.k, size.n), source, init="small"),
            Argument((size.m, size.n), target)]
    dims = [("mb", "in"), ("in", "out"), ("mb", "out")]
    uses = [a.operand(dict(enumerate(d)), size.space) for a, d in zip(args, dims)]
    return finish(rng, op, size, size.slices(rng, 64), uses, args, "in0@in1",
                  0.0025 if target == "fp16" else 1e-5, 1e-6 + 1e-8 * size.k)


def weight(size, dtype, p):
    """B as its image, and the expression that unfolds it."""
    image = Image((size.n // 64, size.k // p, 128), dtype)
    use = Operand(image, image.fmt, ["in", "out"], "out", parts=[("in", p), ("out", 64)])
    text = "in1.reshape(%d, %d, 64, %d).transpose(1, 3, 0, 2).reshape(%d, %d)" % (
        size.n // 64, size.k // p, p, size.k, size.n)
    return image, use, text


@family("matmulpacked", [("batchmatmulfp8", "fp8_e4m3", "fp8_e4m3", "fp16"),
                         ("batchmatmulfp8", "fp8_e4m3", "fp8_e5m2", "fp32"),
                         ("batchmatmulint8", "int8", "int8", "fp16"),
                         ("batchmatmulint8", "int8", "int8", "fp32"),
                         ("batchmatmulint8", "int8", "int8", "int32")], fixed=4)
def matmulpacked(rng, variant):
    op, left, right, target = variant
    size = Size(rng, 128)
    a, c = Argument((size.m, size.k), left), Argument((size.m, size.n), target)
    b, b_use, text = weight(size, right, 2)
    uses = [a.operand({0: "mb", 1: "in"}, size.space), b_use,
            c.operand({0: "mb", 1: "out"}, size.space)]
    exact = left == "int8" and target != "fp16"
    return finish(rng, op, size, size.slices(rng, 128), uses, [a, b, c], "in0@(%s)" % text,
                  0 if exact else 0.0025 if target == "fp16" else 1e-5,
                  0 if exact else 1e-6 * size.k)


@family("matmulint4", [("batchmatmulint4", target) for target in ("fp16", "fp32", "int32")],
        fixed=4)
def matmulint4(rng, variant):
    """Both operands are quantised into the pool first: no host tensor has 4 bits."""
    op, target = variant
    size = Size(rng, 128)
    x, w = Argument((size.m, size.k), "fp16"), Argument((size.k, size.n), "fp16")
    c = Argument((size.m, size.n), target)
    pairs = -(-size.m // 2)
    first = pairs * (size.k // 128) * 128
    a_use = Operand(Pool(0), "SENINT4", ["mb", "in"], "in",
                    parts=[("in", 16), ("mb", 2), ("in", 8)])
    b_use = Operand(Pool(first), "SENINT4", ["in", "out"], "out",
                    parts=[("in", 4), ("out", 64)])
    factor = [("mulConst", "IEEE_FP32", 2.0)]
    xs, ws = {"mb": size.m, "in": size.k}, {"in": size.k, "out": size.n}
    steps = [
        Sdsc("csqint4", xs, divide.random(rng, xs, {"in": 128, "mb": 2},
                                          fixed=["mb"] if size.m % 2 else []),
             [x.operand({0: "mb", 1: "in"}, xs), a_use], factor),
        Sdsc("csqint4wt", ws, divide.random(rng, ws, {"in": 4, "out": 64}),
             [w.operand({0: "in", 1: "out"}, ws), b_use], factor)]
    slices = size.slices(rng, 128, 2)
    steps.append(Sdsc(op, size.space, slices,
                      [a_use, b_use, c.operand({0: "mb", 1: "out"}, size.space)], unit="pt",
                      k_fast=slices["in"] > 1))
    return Bundle(op, [x, w], [c], steps,
                  "stored(in0*2, 'SENINT4')@stored(in1*2, 'SENINT4')",
                  0.0025 if target == "fp16" else 0, 0,
                  pool=first + (size.n // 64) * (size.k // 4) * 128,
                  symbolic=chance(rng, 0.7))
