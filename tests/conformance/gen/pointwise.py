# SPDX-License-Identifier: MIT
"""Unary, binary and ternary operations: broadcast, slices, every layout."""
from . import family
from .formats import HOSTS, stored
from .frame import Frame, chance, pick

# opFunc: expression of {0}, distribution of the input, FP32 too
UNARY = {
    "relufwd": ("np.maximum({0}, 0)", "randn", True),
    "exp": ("np.exp({0})", "randn", True),
    "fastexp": ("np.exp({0})", "randn", False),
    "log": ("np.log({0})", "positive", False),
    "sqrt": ("np.sqrt({0})", "positive", True),
    "rsqrt": ("1/np.sqrt({0})", "positive", True),
    "tanh": ("np.tanh({0})", "randn", False),
    "sigmoid": ("1/(1+np.exp(-{0}))", "randn", True),
    "fastsigmoid": ("1/(1+np.exp(-{0}))", "randn", False),
    "silu": ("{0}/(1+np.exp(-{0}))", "randn", False),
    "gelufwd": ("0.5*{0}*(1+erf({0}/math.sqrt(2)))", "randn", False),
    "mish": ("{0}*np.tanh(np.log1p(np.exp({0})))", "randn", False),
    "sin": ("np.sin({0})", "randn", True),
    "cos": ("np.cos({0})", "randn", True),
    "erf": ("erf({0})", "randn", True),
    "abs": ("np.abs({0})", "randn", True),
    "neg": ("-{0}", "randn", True),
    "floor": ("np.floor({0})", "randn", True),
    "reciprocal": ("1/{0}", "positive", True),
    "relu6fwd": ("np.clip({0}, 0, 6)", "randn", False),
    "identity": ("{0}", "randn", True),
}
# opFunc: expression, distribution of both inputs, FP32 too
BINARY = {
    "add": ("{0}+{1}", "randn", True),
    "sub": ("{0}-{1}", "randn", True),
    "revsub": ("{1}-{0}", "randn", False),
    "mul": ("{0}*{1}", "randn", True),
    "realdiv": ("{0}/{1}", "positive", True),
    "pow": ("{0}**{1}", "positive", True),
    "fmod": ("np.fmod({0}, {1})", "positive", True),
    "remainder": ("np.remainder({0}, {1})", "positive", True),
    "maximum": ("np.maximum({0}, {1})", "randn", True),
    "minimum": ("np.minimum({0}, {1})", "randn", True),
    "equal": ("({0}=={1})*1.0", "ints", False),
    "notequal": ("({0}!={1})*1.0", "ints", False),
    "greaterthan": ("({0}>{1})*1.0", "ints", False),
    "lesserthan": ("({0}<{1})*1.0", "ints", False),
    "greaterequal": ("({0}>={1})*1.0", "ints", False),
    "lesserequal": ("({0}<={1})*1.0", "ints", False),
}


def variants(table):
    return [(op, dtype) for op, (_, _, fp32) in table.items()
            for dtype in (["fp16", "fp32"] if fp32 else ["fp16"])]


def host(rng, dtype):
    """fp16 stands for every host dtype that is DL16 on the device."""
    return "bf16" if dtype == "fp16" and chance(rng, 0.15) else dtype


@family("unary", variants(UNARY), weight=2)
def unary(rng, variant):
    op, dtype = variant
    text, init, _ = UNARY[op]
    frame = Frame(rng, dtype)
    x = frame.input(rng, host(rng, dtype), init)
    shape = "np.broadcast_to(%s, %r)" % (text.replace("{0}", "({0})"), list(frame.shape))
    return frame.bundle(rng, op, [x], frame.output(rng, host(rng, dtype)), shape)


@family("binary", variants(BINARY), weight=3)
def binary(rng, variant):
    op, dtype = variant
    text, init, _ = BINARY[op]
    frame = Frame(rng, dtype)
    a = frame.input(rng, host(rng, dtype), init)
    b = a if chance(rng, 0.08) else frame.input(rng, host(rng, dtype), init)
    out = "bool" if init == "ints" and chance(rng, 0.4) else host(rng, dtype)
    shape = "np.broadcast_to(%s, %r)" % (text, list(frame.shape))
    return frame.bundle(rng, op, [a, b], frame.output(rng, out), shape)


@family("where3", [("where3", "fp16"), ("where3", "fp32")])
def where3(rng, variant):
    op, dtype = variant
    frame = Frame(rng, dtype)
    cond = frame.input(rng, dtype if dtype == "fp32" else pick(rng, ["bool", "fp16"]), "bool")
    a, b = frame.input(rng, dtype), frame.input(rng, dtype)
    text = "np.broadcast_to(np.where({0} != 0, {1}, {2}), %r)" % (list(frame.shape),)
    return frame.bundle(rng, op, [cond, a, b], frame.output(rng, dtype), text)


@family("clip", [("clip", "fp16"), ("softplus", "fp16")])
def constants(rng, variant):
    op, dtype = variant
    fmt = HOSTS[dtype].device
    frame = Frame(rng, dtype)
    x = frame.input(rng, dtype)
    if op == "clip":
        pair = sorted(float(v) for v in stored(rng.standard_normal(2) * pick(rng, [1, 0.1]), fmt))
        names, text = ("clipMin", "clipMax"), "np.clip({0}, %r, %r)" % tuple(pair)
    else:
        pair = [float(v) for v in stored([pick(rng, [0.5, 1, 2, 3.3]), pick(rng, [1, 5, 20])], fmt)]
        names = ("softplusBeta", "softplusThresh")
        text = "np.where({0}*%r > %r, {0}, np.log1p(np.exp(np.minimum({0}*%r, %r)))/%r)" % (
            pair[0], pair[1], pair[0], pair[1], pair[0])
    text = "np.broadcast_to(%s, %r)" % (text, list(frame.shape))
    table = [(n, fmt, v) for n, v in zip(names, pair)]
    return frame.bundle(rng, op, [x], frame.output(rng, dtype), text, constants=table)


@family("fill", [("identity", "fp16"), ("identity", "fp32"), ("mul", "fp16")])
def fill(rng, variant):
    """identity of one value into a whole tensor; mul by one value."""
    op, dtype = variant
    frame = Frame(rng, dtype)
    one = frame.input(rng, dtype, "positive", broadcast=list(range(frame.rank)))
    if op == "identity":
        text = "np.broadcast_to({0}, %r)" % (list(frame.shape),)
        return frame.bundle(rng, op, [one], frame.output(rng, dtype), text, name="fill")
    x = frame.input(rng, dtype, broadcast=[])
    return frame.bundle(rng, op, [x, one], frame.output(rng, dtype), "{0}*{1}")
