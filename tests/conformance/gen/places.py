# SPDX-License-Identifier: MIT
"""Top-k, masks by index, and the pointwise companions of convolutions."""
from . import divide, family
from .bundle import Bundle
from .formats import HOSTS, stored
from .frame import Frame, chance, pick, tolerance
from .sdsc import Sdsc
from .tensors import Argument

TERNARY = {
    "batchnormfwd": "{0}*{1}+{2}",
    "fnms": "{2}-{0}*{1}",
}


@family("companion", [(op, dtype) for op in ("biasadd", "leakyrelufwd", "batchnormfwd", "fnms")
                      for dtype in ("fp16", "fp32")], weight=2)
def companion(rng, variant):
    op, dtype = variant
    fmt = HOSTS[dtype].device
    frame = Frame(rng, dtype)
    x = frame.input(rng, dtype, broadcast=[])
    out = frame.output(rng, dtype)
    others = [a for a in range(frame.rank) if a != frame.stick]
    atol = 1e-6 if dtype == "fp16" else 4e-6
    if op == "leakyrelufwd":
        slope = float(stored([pick(rng, [0.01, 0.1, -0.5, 2.0])], fmt)[0])
        name = pick(rng, ["negativeSlope", "alpha"])
        return frame.bundle(rng, op, [x], out, "np.where({0} > 0, {0}, {0}*%r)" % slope, None,
                            atol, constants=[(name, fmt, slope)])
    if op == "biasadd":
        bias = frame.input(rng, dtype, broadcast=others)
        return frame.bundle(rng, op, [x, bias], out, "{0}+{1}", None, atol)
    b, c = (frame.input(rng, dtype, broadcast=others if op == "batchnormfwd" else None)
            for _ in range(2))
    return frame.bundle(rng, op, [x, b, c], out, TERNARY[op], None, atol)


def whole(n, lanes):
    return -(-n // lanes) * lanes


@family("topk", [(op, dtype, kind) for op in ("topkvalue", "topkindex")
                 for dtype in ("fp16", "fp32") for kind in ("stick", "row")], weight=2)
def topk(rng, variant):
    op, dtype, kind = variant
    lanes = 64 if dtype == "fp16" else 32
    stick = kind == "stick"
    count, rows = int(pick(rng, [5, 33, 64, 100, 257])), int(pick(rng, [1, 3, 8, 64]))
    k = min(count, int(pick(rng, [1, 2, 7, 70])))
    smallest = chance(rng, 0.3)
    if stick:       # along the last axis, ranks in sticks
        space = {"mb": rows, "s": whole(count, lanes), "r": whole(k, lanes)}
        shapes, names = [[rows, count], [rows, k]], [["mb", "s"], ["mb", "r"]]
    else:           # along the first, in rows
        space = {"s": count, "r": k, "out": whole(rows, lanes)}
        shapes, names = [[count, rows], [k, rows]], [["s", "out"], ["r", "out"]]
    pairs = []
    for shape, dims in zip(shapes, names):
        # Dims of one element are not dims of the ranks or the search.
        argument = Argument(shape, dtype, None, None, -1)
        pairs.append((argument, argument.operand(dict(enumerate(dims)), space)))
    constants = [("k", HOSTS["fp32"].device, float(k))]
    if smallest:
        constants.append(("largest", HOSTS["fp32"].device, 0.0))
    masks = {"s": [[count, space["s"] - count]]} if space["s"] != count else {}
    operands = [use for _, use in pairs]
    slices = divide.random(rng, space, divide.sticks(operands), int(pick(rng, [1, 4, 32])), ["s"])
    step = Sdsc(op, space, slices, operands, constants, masks)
    sign, axis = "" if smallest else "-", 1 if stick else 0
    cut = "[:, :%d]" % k if stick else "[:%d]" % k
    text = "(np.argsort(%sin0, axis=%d, kind='stable'))%s" % (sign, axis, cut)
    if op == "topkvalue":
        text = "(%snp.sort(%sin0, axis=%d))%s" % (sign, sign, axis, cut)
    return Bundle(op, [pairs[0][0]], [pairs[1][0]], [step], text, 0, 0,
                  symbolic=chance(rng, 0.7), september=chance(rng, 0.5))


@family("maskbyindex", [("maskbyindex", "fp16"), ("maskbyindex", "fp32")], weight=2)
def maskbyindex(rng, variant):
    op, dtype = variant
    fmt = HOSTS[dtype].device
    frame = Frame(rng, dtype, rank=int(pick(rng, [2, 2, 3, 4])))
    x = frame.input(rng, dtype, broadcast=[])
    index = frame.input(rng, "fp32", "ints", broadcast=[frame.stick], slices=False)
    out = frame.output(rng, dtype)
    value = float(stored([pick(rng, [0.0, -10000.0, 7.0])], fmt)[0])
    shape = [1] * frame.rank
    shape[frame.stick] = frame.shape[frame.stick]
    text = "np.where(np.arange(%d).reshape(%r) < {1}, {0}, %r)" % (
        frame.shape[frame.stick], shape, value)
    return frame.bundle(rng, op, [x, index], out, text, tolerance(out.argument),
                        constants=[("samv-maskvalue", fmt, value)])


@family("maskband", [("maskbyindex", "fp16"), ("maskbyindex", "fp32")])
def maskband(rng, variant):
    """Masks by index whose coordinate falls along rows: causal masks and sliding windows."""
    op, dtype = variant
    fmt = HOSTS[dtype].device
    frame = Frame(rng, dtype, rank=int(pick(rng, [2, 3, 3, 4])))
    others = [a for a in range(frame.rank) if a != frame.stick]
    rows = pick(rng, others)
    x = frame.input(rng, dtype, broadcast=[])
    index = frame.input(rng, "fp32", "ints", broadcast=[frame.stick, rows], slices=False)
    out = frame.output(rng, dtype)
    width = int(pick(rng, [0, 0, 1, 7, 40]))
    count, order = frame.shape[rows], sorted([rows, frame.stick])
    grid = "np.indices((%d, %d))" % tuple(frame.shape[a] for a in order)
    shape = [frame.shape[a] if a in order else 1 for a in range(frame.rank)]
    at = "(%d - 1 + %s[%d] - %s[%d]).reshape(%r)" % (
        count, grid, order.index(frame.stick), grid, order.index(rows), shape)
    kept = "(%s < {1})" % at
    if width:
        kept = "(%s & (%s + %d >= {1}))" % (kept, at, width)
    constants = [("samv-maskvalue", fmt, 7.0), ("samv-width", "IEEE_INT32", float(width))]
    if count > 1:
        row = out.operand.order.index(frame.dim[rows])
        constants.append(("samv-rowdim", "IEEE_INT32", float(row)))
    return frame.bundle(rng, op, [x, index], out, "np.where(%s, {0}, 7.0)" % kept,
                        tolerance(out.argument), name="maskband", constants=constants)
