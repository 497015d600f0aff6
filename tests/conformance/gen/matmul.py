# SPDX-License-Identifier: MIT
"""batchmatmul on 16-bit formats: batches, broadcast operands, GEMV, split and padded K."""
from . import divide, family
from .bundle import Bundle
from .frame import chance, pick
from .sdsc import Sdsc
from .tensors import Argument

SIZES = [1, 2, 3, 4, 5, 8, 12, 16, 25, 32, 64, 100]
WIDE = [1, 10, 63, 64, 65, 70, 100, 128, 150, 192, 256]


def whole(n):
    return -(-n // 64) * 64


def order(rng, rank):
    if chance(rng, 0.5):
        return Argument.default_order(rank)
    return [int(a) for a in rng.permutation(rank)]


class Sizes:
    def __init__(self, rng, batches):
        while True:
            self.batch = [int(pick(rng, [1, 2, 3, 4, 5, 8])) for _ in range(batches)]
            self.m, self.k, self.n = (int(pick(rng, t)) for t in (SIZES, WIDE, WIDE))
            points = whole(self.n) * whole(self.k) * self.m
            for b in self.batch:
                points *= b
            if points < 1 << 22:
                return


def operand(rng, shape, dims, space, k_axis=None):
    """An operand whose axes walk @dims (None: broadcast, of one element)."""
    padded = {}
    if k_axis is not None and k_axis != len(shape) - 1:
        padded[k_axis] = whole(shape[k_axis])
    argument = Argument(shape, "fp16", None, order(rng, len(shape)), -1, padded,
                        "small", "zero" if k_axis is not None else "poison")
    kept = [a for a in argument.order if dims[a] is not None]
    use = argument.operand({a: d for a, d in enumerate(dims)}, space)
    assert len(use.order) == len(kept)
    return argument, use


@family("matmul", [("batchmatmul", b, kind) for b in (0, 1, 2, 3)
                   for kind in ("plain", "shared", "gemv")], weight=2)
def matmul(rng, variant):
    op, batches, kind = variant
    size = Sizes(rng, batches)
    names = ["i", "y", "x"][-batches:] if batches else []
    m = kind != "gemv"
    space = {d: n for d, n in zip(names, size.batch)}
    if m:
        space["mb"] = size.m
    space.update({"out": whole(size.n), "in": whole(size.k)})
    shared = kind == "shared" and batches
    a_batch, b_batch = list(size.batch), list(size.batch)
    lead = 0
    if shared and chance(rng, 0.5):
        lead = int(rng.integers(1, batches + 1))    # B lacks leading batch dims
        b_batch = b_batch[lead:]
    elif shared:
        which = int(rng.integers(batches))
        b_batch[which] = 1
    b_names = [n if s > 1 or full == 1 else None
               for n, s, full in zip(names[lead:], b_batch, size.batch[lead:])]
    rows = [size.m] if m else []
    mb = ["mb"] if m else []
    a, a_use = operand(rng, a_batch + rows + [size.k], names + mb + ["in"], space,
                       len(a_batch) + len(rows))
    b, b_use = operand(rng, b_batch + [size.k, size.n], b_names + ["in", "out"], space,
                       len(b_batch))
    c, c_use = operand(rng, a_batch + rows + [size.n], names + mb + ["out"], space)
    slices = divide.random(rng, space, {"out": 64, "in": 64}, int(pick(rng, [1, 4, 32])),
                           [] if chance(rng, 0.5) else ["in"])
    step = Sdsc(op, space, slices, [a_use, b_use, c_use], unit="pt",
                k_fast=slices["in"] > 1)
    text = "in0@in1"
    if not m:
        text = "(in0[..., None, :]@in1)[..., 0, :]"
    return Bundle(op, [a, b], [c], [step], text, 0.0025, 2e-6 + 1e-8 * size.k,
                  symbolic=chance(rng, 0.7), september=chance(rng, 0.5))
