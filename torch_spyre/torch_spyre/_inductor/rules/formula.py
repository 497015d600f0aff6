# SPDX-License-Identifier: MIT
"""Rules of formulas: piecewise activations, derivatives, losses and optimisers' steps.

They equal those of eager mode (csrc/aten/formula.h and its users): all steps are in fp32, and
the result is rounded once.
"""

import math

import torch

from ..emit import FLOATS, Refused, format_of
from .base import aten, last, number_of, rule


class Formula:
    """A call whose arguments are converted to fp32."""

    def __init__(self, call, *names):
        """Converts the arguments @names; Refused if the card does not compute in their dtype."""
        self.call, self.wide = call, format_of(torch.float32)
        given = [call[name] for name in names]
        if call.computed_in(*given) not in FLOATS:
            raise Refused(f"the card does not compute in {call.computed_in(*given)}")
        self.inputs = [call.value(thing, self.wide) for thing in given]

    def op(self, name, *inputs, **attributes):
        """Adds an operation of the builder and returns its Value."""
        return self.call.op(name, *inputs, **attributes)

    def by(self, name, value, number):
        """Adds an operation of a Value and a number."""
        return self.call.op(name, value, other=number)

    def rest(self, value):
        """Returns 1 - value."""
        return self.by("revsub", value, 1)

    def scaled(self, value, number):
        """Returns @value times @number, without an operation for 1."""
        return value if number == 1 else self.by("mul", value, number)

    def number(self, name):
        """Returns a float argument; Refused if it is unknown or not finite."""
        value = number_of(self.call[name])
        if value is None or not math.isfinite(value):
            raise Refused(f"{name} is not a finite number that is known when compiling")
        return float(value)

    def result(self, value):
        """Converts the result to the node's dtype."""
        return self.call.program.cast(value, format_of(self.call.meta.dtype))


def formula(target, *names):
    """Returns a decorator that registers a function of a Formula and the arguments @names."""

    def take(function):
        """Registers @function, whose result is converted to the dtype of the node."""
        def say(call):
            """Lowers a call by @function."""
            f = Formula(call, *names)
            return f.result(function(f, *f.inputs))

        rule(target)(say)
        return function

    return take


def hard(f, x):
    """Returns 6 times hardsigmoid(x), which is linear from -3 to 3."""
    return f.op("clip", f.by("add", x, 3), min=0, max=6)


@formula(aten.hardsigmoid.default, "self")
def hardsigmoid(f, x):
    """Lowers relu6(x + 3) / 6."""
    return f.by("div", hard(f, x), 6)


@formula(aten.hardswish.default, "self")
def hardswish(f, x):
    """Lowers x * relu6(x + 3) / 6."""
    return f.by("div", f.op("mul", x, hard(f, x)), 6)


@formula(aten.tanh_backward.default, "grad_output", "output")
def tanh(f, g, y):
    """Lowers the derivative of tanh from its result: g * (1 - y * y)."""
    return f.op("mul", g, f.rest(f.op("mul", y, y)))


@formula(aten.sigmoid_backward.default, "grad_output", "output")
def sigmoid(f, g, y):
    """Lowers the derivative of sigmoid from its result: g * (1 - y) * y."""
    return f.op("mul", f.op("mul", g, f.rest(y)), y)


@formula(aten.silu_backward.default, "grad_output", "self")
def silu(f, g, x):
    """Lowers the derivative of x * s with s = sigmoid(x): g * s * (1 + x * (1 - s))."""
    s = f.op("sigmoid", x)
    slope = f.by("add", f.op("mul", x, f.rest(s)), 1)
    return f.op("mul", f.op("mul", g, s), slope)


@formula(aten.gelu_backward.default, "grad_output", "self")
def gelu(f, g, x):
    """Lowers the derivative of x * cdf(x), which is cdf(x) + x * pdf(x), or of the tanh form."""
    if f.call["approximate"] == "tanh":
        return gelu_tanh(f, g, x)
    below = f.op("div", f.op("gelu", x), x)
    distribution = f.op("where", f.by("eq", x, 0), below, input=0.5)
    bell = f.op("exp", f.by("mul", f.op("mul", x, x), -0.5))
    density = f.by("mul", bell, 1 / math.sqrt(2 * math.pi))
    return f.op("mul", g, f.op("add", distribution, f.op("mul", x, density)))


def gelu_tanh(f, g, x):
    """Returns the derivative of the tanh form of GELU."""
    a, b = math.sqrt(2 / math.pi), 0.044715
    square = f.op("mul", x, x)
    t = f.op("tanh", f.op("mul", x, f.by("add", f.by("mul", square, a * b), a)))
    slope = f.by("add", f.by("mul", square, 3 * a * b), a)
    derivative = f.op("mul", f.op("mul", x, f.rest(f.op("mul", t, t))), slope)
    total = f.op("add", f.by("add", t, 1), derivative)
    return f.op("mul", g, f.by("mul", total, 0.5))


@formula(aten.threshold_backward.default, "grad_output", "self")
def threshold(f, g, x):
    """Lowers a derivative that is 0 up to the threshold and g above it."""
    return f.op("where", f.by("le", x, f.number("threshold")), g, input=0)


@formula(aten.leaky_relu_backward.default, "grad_output", "self")
def leaky_relu(f, g, x):
    """Lowers a derivative that is g above 0 and g times the slope elsewhere."""
    return f.op("where", f.by("gt", x, 0), g, f.by("mul", g, f.number("negative_slope")))


@formula(aten.hardtanh_backward.default, "grad_output", "self")
def hardtanh(f, g, x):
    """Lowers a derivative that is g strictly between min_val and max_val and 0 elsewhere."""
    low, high = f.by("le", x, f.number("min_val")), f.by("ge", x, f.number("max_val"))
    return f.op("where", f.op("maximum", low, high), g, input=0)


@formula(aten.softplus_backward.default, "grad_output", "self")
def softplus(f, g, x):
    """Lowers g * sigmoid(beta * x), or g where beta * x exceeds the threshold."""
    scaled = f.by("mul", x, f.number("beta"))
    bent = f.op("mul", g, f.op("sigmoid", scaled))
    return f.op("where", f.by("gt", scaled, f.number("threshold")), g, bent)


def along(f, value):
    """Sums @value along the softmax's dim; Refused if the softmax changed the dtype."""
    if f.call["input_dtype"] != f.call.meta.dtype or not f.call.meta.dim():
        raise Refused("a softmax that changed the dtype")
    dim = last(f.call["dim"], f.call.meta.dim())
    return f.op("sum", value, dim=dim, keepdim=1)


@formula(aten._softmax_backward_data.default, "grad_output", "output")
def softmax(f, g, y):
    """Lowers the derivative of softmax from its result: (g - sum(g * y)) * y."""
    return f.op("mul", f.op("sub", g, along(f, f.op("mul", g, y))), y)


@formula(aten._log_softmax_backward_data.default, "grad_output", "output")
def log_softmax(f, g, y):
    """Lowers the derivative of log_softmax from its result: g - exp(y) * sum(g)."""
    return f.op("sub", g, f.op("mul", f.op("exp", y), along(f, g)))


NONE, MEAN = 0, 1


@formula(aten.mse_loss.default, "self", "target")
def mse_loss(f, a, b):
    """Lowers (a - b) squared with its reduction: none, mean or sum over all elements."""
    error = f.op("sub", a, b)
    square = f.op("mul", error, error)
    if f.call["reduction"] == NONE:
        return square
    rank = f.call.node.args[0].meta["val"].dim()
    if not rank:
        return square
    name = "mean" if f.call["reduction"] == MEAN else "sum"
    return f.op(name, square, dim=list(range(-rank, 0)), keepdim=0)


@formula(aten.mse_loss_backward.default, "grad_output", "self", "target")
def mse_loss_backward(f, g, a, b):
    """Lowers (a - b) * norm * g, in which the norm is 2, or 2 / n for a mean of n."""
    mean = f.call["reduction"] == MEAN
    norm = 2.0 / f.call.count("self") if mean and f.call.count("self") else 2.0
    return f.op("mul", f.by("mul", f.op("sub", a, b), norm), g)


@formula(aten.addcmul.default, "self", "tensor1", "tensor2")
def addcmul(f, a, b, c):
    """Lowers a + value * b * c."""
    return f.op("add", a, f.op("mul", f.scaled(b, f.number("value")), c))


@formula(aten.addcdiv.default, "self", "tensor1", "tensor2")
def addcdiv(f, a, b, c):
    """Lowers a + value * b / c."""
    return f.op("add", a, f.op("div", f.scaled(b, f.number("value")), c))


@formula(aten.lerp.Scalar, "self", "end")
def lerp(f, a, b):
    """Lowers a + weight * (b - a), computed from the end that is nearer, as PyTorch does."""
    weight = torch.tensor(f.number("weight"), dtype=torch.float32)
    way = f.op("sub", b, a)
    if abs(weight) < 0.5:
        return f.op("add", a, f.by("mul", way, float(weight)))
    return f.op("sub", b, f.by("mul", way, float(1 - weight)))


@formula(aten.lerp.Tensor, "self", "end", "weight")
def lerp_by(f, a, b, w):
    """Lowers lerp with a weight per element, computed from the end that is nearer."""
    way = f.op("sub", b, a)
    near = f.op("add", a, f.op("mul", way, w))
    far = f.op("sub", b, f.op("mul", way, f.rest(w)))
    return f.op("where", f.by("lt", f.op("abs", w), 0.5), near, far)


@formula(aten.native_dropout_backward.default, "grad_output", "mask")
def dropout(f, g, mask):
    """Lowers g * mask * scale."""
    return f.by("mul", f.op("mul", g, mask), f.number("scale"))
