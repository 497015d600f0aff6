# SPDX-License-Identifier: MIT
"""Exact operations on 32-bit integers, over all of their range and its ends.

References compute in int64 and wrap to 32 bits; the tolerance is 0.
"""
from . import family
from .frame import Frame, chance, pick
from .reduce import axes_of, masks, result

A, B = "({0}).astype(np.int64)", "({1}).astype(np.int64)"
WRAP = "((%s) + 2**31) %% 2**32 - 2**31"
#: A divisor that numpy takes; quotients and remainders by zero are replaced.
SAFE = "np.where({1} == 0, 1, {1}).astype(np.int64)"
#: The quotient towards zero.
TRUNC = f"np.sign({A}) * np.sign({SAFE}) * (np.abs({A}) // np.abs({SAFE}))"
UNARY = {
    "intneg": WRAP % f"-{A}",
    "intabs": WRAP % f"np.abs({A})",
    "intnot": f"~{A}",
}
# opFunc: expression, range of the second input
BINARY = {
    "intadd": (WRAP % f"{A} + {B}", "int32"),
    "intsub": (WRAP % f"{A} - {B}", "int32"),
    "intmul": (f"({A}.astype(np.int32) * {B}.astype(np.int32))", "int32"),
    "intmaximum": (f"np.maximum({A}, {B})", "int32"),
    "intminimum": (f"np.minimum({A}, {B})", "int32"),
    "intequal": ("({0} == {1})", "int32"),
    "intnotequal": ("({0} != {1})", "int32"),
    "intgreaterthan": ("({0} > {1})", "int32"),
    "intlesserthan": ("({0} < {1})", "int32"),
    "intgreaterequal": ("({0} >= {1})", "int32"),
    "intlesserequal": ("({0} <= {1})", "int32"),
    "intand": (f"{A} & {B}", "int32"),
    "intor": (f"{A} | {B}", "int32"),
    "intxor": (f"{A} ^ {B}", "int32"),
    "intshiftleft": ("np.where(({1} < 0) | ({1} > 31), 0, %s)"
                     % (WRAP % f"{A} * (1 << np.clip({B}, 0, 31))"), "shifts"),
    "intshiftright": (f"{A} >> np.where(({{1}} < 0) | ({{1}} > 31), 31, {{1}}).astype(np.int64)",
                      "shifts"),
    "intfloordiv": ("np.where({1} == 0, -1, %s)" % (WRAP % f"{A} // {SAFE}"), "divisors"),
    "intremainder": (f"np.where({{1}} == 0, {{0}}, {A} % {SAFE})", "divisors"),
    "inttruncdiv": ("np.where({1} == 0, -1, %s)" % (WRAP % TRUNC), "divisors"),
    "intfmod": (f"np.where({{1}} == 0, {{0}}, np.fmod({A}, {SAFE}))", "divisors"),
}
REDUCE = {
    "intsum": WRAP % f"{A}.sum(axis={{1}})",
    "intmax": f"{A}.max(axis={{1}})",
    "intmin": f"{A}.min(axis={{1}})",
}
LOWEST, HIGHEST = -2**31, 2**31 - 1


def exact(rng, frame, op, inputs, output, text, **options):
    """The bundle of an operation whose result is exact."""
    text = "np.broadcast_to(%s, %r)" % (text, list(frame.shape))
    return frame.bundle(rng, op, inputs, output, text, 0.0, 0.0, **options)


@family("integer_unary", [(op,) for op in UNARY])
def unary(rng, variant):
    op, = variant
    frame = Frame(rng, "int32")
    x = frame.input(rng, "int32", "int32")
    return exact(rng, frame, op, [x], frame.output(rng, "int32"), UNARY[op])


@family("integer_binary", [(op,) for op in BINARY], weight=2)
def binary(rng, variant):
    op, = variant
    text, second = BINARY[op]
    frame = Frame(rng, "int32")
    a = frame.input(rng, "int32", "int32")
    b = a if chance(rng, 0.05) else frame.input(rng, "int32", second)
    return exact(rng, frame, op, [a, b], frame.output(rng, "int32"), text)


@family("integer_where", [("int32",), ("fp16",)])
def where(rng, variant):
    """A condition is a 32-bit integer or a bool, which is DL16 on the card."""
    kind, = variant
    frame = Frame(rng, "int32", *([kind] if kind == "fp16" else []))
    condition = frame.input(rng, "bool" if kind == "fp16" else "int32", "bool")
    a, b = frame.input(rng, "int32", "int32"), frame.input(rng, "int32", "int32")
    return exact(rng, frame, "intwhere3", [condition, a, b], frame.output(rng, "int32"),
                 "np.where({0} != 0, {1}, {2})")


@family("integer_compare", [("intequal",), ("intlesserthan",)])
def compare(rng, variant):
    """The result of a comparison may be a bool."""
    op, = variant
    frame = Frame(rng, "int32", "fp16")
    a, b = frame.input(rng, "int32", "int32"), frame.input(rng, "int32", "int32")
    return exact(rng, frame, op, [a, b], frame.output(rng, "bool"), BINARY[op][0])


@family("integer_clip", [("intclip",)])
def clip(rng, variant):
    op, = variant
    frame = Frame(rng, "int32")
    low, high = sorted(int(pick(rng, [LOWEST, -2**24 - 1, -5, 0, 7, 2**24 + 1, HIGHEST]))
                       for _ in range(2))
    x = frame.input(rng, "int32", "int32")
    table = [("clipMin", "IEEE_INT32", float(low)), ("clipMax", "IEEE_INT32", float(high))]
    return exact(rng, frame, op, [x], frame.output(rng, "int32"),
                 "np.clip({0}, %d, %d)" % (low, high), constants=table)


@family("integer_reduce", [(op, kind) for op in REDUCE for kind in ("stick", "nonstick")], weight=2)
def reduction(rng, variant):
    op, kind = variant
    stick = kind == "stick"
    rank = int(rng.choice([1, 2, 2, 3, 3, 4, 5])) if stick else int(rng.choice([2, 2, 3, 4, 5]))
    frame = Frame(rng, "int32", rank=rank)
    axes = axes_of(rng, frame, stick)
    x = frame.input(rng, "int32", "int32", broadcast=[], slices=not stick)
    out, shape = result(rng, frame, axes, "int32")
    mask = masks(rng, frame, axes)
    table = [("samv-maskvalue", "IEEE_INT32", 0.0)] if mask else []
    text = "(%s).reshape(%r)" % (REDUCE[op].replace("{1}", repr(tuple(axes))), shape)
    return frame.bundle(rng, op + ("" if stick else "nonstick"), [x], out, text, 0.0, 0.0,
                        constants=table, masks=mask, accumulate=True)
