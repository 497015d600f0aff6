# SPDX-License-Identifier: MIT
"""Python numbers that fp16, or the card's form of it, lacks: results are the CPU's."""

import warnings

import pytest
import torch
from support import DEVICE, assert_near, assert_same

pytestmark = pytest.mark.filterwarnings("ignore:spyre. aten")
F = torch.nn.functional

INF = float("inf")
#: Small and large numbers of fp16 that are exact in DL16.
X = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.0**-24, 30016.0, 65408.0, INF, -INF, float("nan")])
X = X.half()
NUMBERS = (1e-30, -1e-9, 2.0**-25, 4e-8, 65520, -1e5, 1e12)

#: By name, with a tensor and a number.
OPERATIONS = {
    "mul": lambda x, n: x * n,
    "div": lambda x, n: x / n,
    "add": lambda x, n: x + n,
    "sub": lambda x, n: x - n,
    "rsub": lambda x, n: n - x,
    "alpha": lambda x, n: torch.add(x, x, alpha=n),
    "pow": lambda x, n: x**n,
    "lt": lambda x, n: x < n,
    "le": lambda x, n: x <= n,
    "gt": lambda x, n: x > n,
    "ge": lambda x, n: x >= n,
    "eq": lambda x, n: x == n,
    "ne": lambda x, n: x != n,
    "where": lambda x, n: torch.where(x > 0, x, n),
    "leaky_relu": lambda x, n: F.leaky_relu(x, n),
    "softplus": lambda x, n: F.softplus(x, n),
    "clamp": lambda x, n: x.clamp(min=n),
    "hardtanh": lambda x, n: F.hardtanh(x, -1, abs(n)),
    "masked_fill": lambda x, n: x.masked_fill(x > 0, n),
    "full": lambda x, n: torch.full_like(x, n),
    "in place": lambda x, n: x.clone().mul_(n),
}
#: Calls with a tensor without dims in place of the number.
TENSORS = {
    "mul": lambda x, n: torch.mul(torch.tensor(n), x),
    "div": lambda x, n: torch.div(torch.tensor(n), x),
    "lt": lambda x, n: torch.lt(torch.tensor(n), x),
    "maximum": lambda x, n: torch.maximum(x, torch.tensor(n)),
    "minimum": lambda x, n: torch.minimum(torch.tensor(n), x),
}


def outcome(function, *args):
    """The result of a call, or the text of its error."""
    try:
        return function(*args).cpu()
    except RuntimeError as error:
        return str(error).splitlines()[0]


def check(function, x, number):
    want, have = outcome(function, x, number), outcome(function, x.to(DEVICE), number)
    if isinstance(want, str) or isinstance(have, str):
        assert have == want
    elif want.dtype == torch.bool:
        assert_same(have, want)
    else:
        assert_near(have, want, atol=2**-24)


@pytest.mark.parametrize("name", OPERATIONS)
def test_numbers_beyond_the_format(name):
    for number in NUMBERS:
        check(OPERATIONS[name], X, number)


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_without_dims(name):
    for number in 1e-9, 1e5:
        check(TENSORS[name], X, number)


def test_factors_of_products():
    x = torch.full((2, 64), 30016.0).half()
    check(lambda x, n: torch.addmm(x[:, :2] * 0, x, x.mT[:, :2], alpha=n), x, 1e-12)
    check(lambda x, n: torch.addmm(x[:, :2], x * 0, x.mT[:, :2], beta=n), x, 2.0**-32)


def test_a_constant_compares_as_its_number():
    for number in 1e-9, 2.0**-25, 4e-8, 0.1:
        x = torch.full((4,), number, dtype=torch.float16, device=DEVICE)
        assert (x == number).all()


def compiled(function, x):
    torch._dynamo.reset()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.compile(function)(x)


@pytest.mark.parametrize("number", [1e-30, -1e-9, 4e-8, 100000, 1e12, INF])
def test_compiled_is_eager(number):
    x = X.to(DEVICE)
    eager = {name: outcome(f, x, number) for name, f in OPERATIONS.items()}
    wanted = {name: result for name, result in eager.items() if torch.is_tensor(result)}
    results = compiled(lambda x: [OPERATIONS[name](x, number) for name in wanted], x)
    for have, want in zip(results, wanted.values(), strict=True):
        assert_same(have, want)


#: Calls with tensors of one value, which torch.compile keeps as numbers.
FILLED = {
    "mul": lambda x, n: x * torch.full((), n, dtype=x.dtype, device=x.device),
    "div": lambda x, n: x / torch.full((), n, dtype=x.dtype, device=x.device),
    "mul of a row": lambda x, n: x * torch.full(x.shape, n, dtype=x.dtype, device=x.device),
    "converted": lambda x, n: x * torch.full((), n, device=x.device).to(x.dtype),
    "lt": lambda x, n: x < torch.full((), n, dtype=x.dtype, device=x.device),
    "where": lambda x, n: torch.where(x > 0, x, torch.full((), n, device=x.device)),
}


@pytest.mark.parametrize("number", [1e-30, 4e-8, 0.1, 30000.0])
def test_compiled_is_eager_for_filled_tensors(number):
    x = X.to(DEVICE)
    results = compiled(lambda x: [f(x, number) for f in FILLED.values()], x)
    for name, have in zip(FILLED, results, strict=True):
        assert_same(have, FILLED[name](x, number))


def test_compiled_refuses_what_eager_refuses():
    x = X.to(DEVICE)
    for function in lambda x: x.clamp(max=1e5), lambda x: torch.add(x, x, alpha=1e5):
        with pytest.raises(RuntimeError, match="without overflow"):
            function(x)
        with pytest.raises(Exception, match="without overflow"):
            compiled(function, x)


def test_numbers_of_the_format_stay_on_the_card():
    x = X.to(DEVICE)
    torch.spyre.reset_fallbacks()
    for number in 2.0**-30, 0.1, 60000.0:
        x * number, x / number, x + number, x < number, F.leaky_relu(x, number)
    x + 1e-12, x.clamp(min=1e-12), x > 1e-12, x * 1e9, x * 0.0, x + INF, x == INF
    x + 1e5, x < 1e5, torch.where(x > 0, x, -INF), torch.where(x > 0, x, 1e5)
    assert not torch.spyre.fallbacks()


#: Operations whose result is given in another dtype.
GIVEN = """abs neg exp log sqrt rsqrt reciprocal tanh sin cos erf floor ceil sign sgn relu sigmoid
silu mish hardsigmoid hardswish gelu softplus leaky_relu hardtanh""".split()


@pytest.mark.parametrize("dtype", [torch.float16, torch.int32], ids=str)
def test_results_in_another_dtype(dtype):
    """Some operations convert, some refuse: as the CPU, with its text."""

    def given(x, name):
        out = torch.zeros(3, dtype=dtype, device=x.device)
        getattr(torch.ops.aten, name).out(x, out=out)
        return out

    for name in GIVEN:
        check(given, torch.tensor([0.5, 1.0, 2.0]), name)
