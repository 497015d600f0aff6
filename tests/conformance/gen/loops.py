# SPDX-License-Identifier: MIT
"""scf.for: one or two loops over tiles, several SDSCs in the body, intermediates in LX."""
from . import divide, family
from .bundle import Bundle, Loop
from .formats import HOSTS
from .frame import chance, pick
from .sdsc import Sdsc
from .tensors import Argument, Lx, Operand


def tile(argument, dims, space, loop_of):
    """A tile of an argument: the axes in @loop_of ({axis: loop}) have one element per iteration."""
    use = argument.operand(dims, space)
    step = argument.lanes
    for axis in argument.order:
        if axis in loop_of:
            use.loop_stride[loop_of[axis]] = step * argument.word
        step *= argument.extent(axis)
    return use


@family("loop", [(kind, dtype) for kind in ("one", "two", "body") for dtype in ("fp16", "fp32")],
        weight=3)
def loop(rng, variant):
    """Loops over one or two axes; each iteration handles a tile of one row of them."""
    kind, dtype = variant
    lanes = 128 // {"fp16": 2, "fp32": 4}[dtype]
    outer, inner = int(pick(rng, [1, 2, 3, 5, 8])), int(pick(rng, [1, 2, 4, 6]))
    n = int(pick(rng, [64, 100, 128, 192, 256]))
    rows = int(pick(rng, [1, 2, 4, 8]))
    shape = (outer, inner, rows, n)
    args = []
    for _ in range(3):
        order = [0, 2, 3, 1] if chance(rng, 0.4) else [int(a) for a in rng.permutation(4)]
        args.append(Argument(shape, dtype, None, order))
    loops = [Loop(outer), Loop(inner)]
    # Axes that loop have one element in the iteration space, with a gap in memory.
    space = {"mb": 1, "x": 1 if kind == "two" else inner, "y": rows, "out": -(-n // lanes) * lanes}
    dims = {0: "mb", 1: "x", 2: "y", 3: "out"}
    loop_of = {0: loops[0], 1: loops[1]} if kind == "two" else {0: loops[0]}
    a, b, c = (tile(arg, dims, space, loop_of) for arg in args)
    slices = divide.random(rng, space, {"out": lanes})
    if kind == "body":
        middle = Operand(Lx(1024), HOSTS[dtype].device, a.order, "out")
        body = [Sdsc("mul", space, slices, [a, b, middle]), Sdsc("add", space, slices,
                                                                 [middle, b, c])]
        text = "stored(in0*in1, %r)+in1" % HOSTS[dtype].device
    else:
        body = [Sdsc("add", space, slices, [a, b, c])]
        text = "in0+in1"
    loops[1].body = body
    loops[0].body = [loops[1]] if kind == "two" else body
    return Bundle("loop", args[:2], args[2:], [loops[0]], text,
                  0.0025 if dtype == "fp16" else 4e-6, 1e-5, symbolic=True,
                  september=chance(rng, 0.5))
