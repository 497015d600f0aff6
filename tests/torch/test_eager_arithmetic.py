# SPDX-License-Identifier: MIT
"""Operations element by element on the card against the CPU.

Tolerance: the CPU computes the card's inputs in fp32. The card does too, rounds once for each
operation of the builder, and keeps numbers of fp16 tensors with nine bits of fraction. So a
result may differ by the last step of its format; TOLERANCE holds two of them, since constants
are rounded to the format as well.
"""

import pytest
import torch
from support import DEVICE, assert_held, held

DTYPES = [torch.float16, torch.bfloat16, torch.float32]
TOLERANCE = {torch.float16: 2.0**-8, torch.bfloat16: 2.0**-6, torch.float32: 2.0**-21}
#: No dimension is a multiple of a stick but 64; 1 and 0 are sizes too.
SHAPES = [(), (1,), (40,), (5, 100), (3, 64), (2, 7, 33), (2, 3, 4, 5), (0, 4)]


def data(shape, dtype, seed=0, low=-2.0, high=2.0):
    return held(shape, dtype, seed, low, high)


def near(card, expected, dtype, steps=1):
    assert_held(card, expected, dtype, TOLERANCE[dtype] * steps)


@pytest.fixture(autouse=True)
def no_fallback():
    """Nothing in this file may run on the CPU unless it says so."""
    torch.spyre.reset_fallbacks()
    yield
    assert torch.spyre.fallbacks() == {}


UNARY = {
    "abs": torch.abs, "neg": torch.neg, "exp": torch.exp, "tanh": torch.tanh,
    "floor": torch.floor, "ceil": torch.ceil, "sign": torch.sign, "sigmoid": torch.sigmoid,
    "relu": torch.relu, "silu": torch.nn.functional.silu, "gelu": torch.nn.functional.gelu,
    "mish": torch.nn.functional.mish, "softplus": torch.nn.functional.softplus,
    "square": torch.square, "clamp": lambda x: x.clamp(-0.5, 0.75),
    "clamp_min": lambda x: x.clamp(min=0.25), "add_1": lambda x: x + 1, "1_sub": lambda x: 1 - x,
    "mul_3": lambda x: 3 * x, "div_4": lambda x: x / 4, "pow_3": lambda x: x**3,
}
POSITIVE = {"log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
            "reciprocal": torch.reciprocal, "pow_1.5": lambda x: x**1.5}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, shape, dtype):
    card, host = data(shape, dtype)
    near(UNARY[name](card), UNARY[name](host), dtype, steps=4 if name == "pow_3" else 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", POSITIVE)
def test_positive(name, dtype):
    card, host = data((5, 100), dtype, low=0.25, high=4)
    near(POSITIVE[name](card), POSITIVE[name](host), dtype, steps=4)


BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "maximum": torch.maximum,
    "minimum": torch.minimum, "div": lambda a, b: a / (b.abs() + 1),
    "add_alpha": lambda a, b: torch.add(a, b, alpha=2), "rsub": lambda a, b: torch.rsub(a, b),
}
COMPARISONS = {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt,
               "ge": torch.ge}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", [((5, 100), (5, 100)), ((5, 100), (100,)), ((5, 100), (5, 1)),
                                    ((5, 1), (1, 70)), ((2, 3, 40), (3, 40)), ((3, 64), ()),
                                    ((0, 4), (4,))])
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, shapes, dtype):
    a, host_a = data(shapes[0], dtype)
    b, host_b = data(shapes[1], dtype, seed=1)
    near(BINARY[name](a, b), BINARY[name](host_a, host_b), dtype, steps=2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparison(name, dtype):
    a, host_a = data((5, 100), dtype)
    b, host_b = data((5, 100), dtype, seed=1)
    b[2], host_b[2] = a[2], host_a[2]
    for other, host_other in ((b, host_b), (0.5, 0.5)):
        result = COMPARISONS[name](a, other)
        assert result.dtype == torch.bool
        assert torch.equal(result.cpu(), COMPARISONS[name](host_a, host_other))


def test_logic():
    a, b = data((5, 100), torch.float16)[0] > 0, data((5, 100), torch.float16, seed=1)[0] > 0
    host_a, host_b = a.cpu(), b.cpu()
    for card, host in ((a & b, host_a & host_b), (~a, ~host_a),
                       (torch.logical_or(a, b), host_a | host_b),
                       (torch.logical_xor(a, b), host_a ^ host_b)):
        assert card.dtype == torch.bool and torch.equal(card.cpu(), host)


VIEWS = {
    "t": lambda x: x.t(), "rows": lambda x: x[3:7], "row": lambda x: x[3],
    "sticks": lambda x: x[:, 64:128], "last_sticks": lambda x: x[:, 64:],
    "inside": lambda x: x[:, 3:50], "column": lambda x: x[:, 5], "step": lambda x: x[::2],
    "expand": lambda x: x[:, :1].expand(10, 70), "split": lambda x: x.view(2, 5, 130),
    "heads": lambda x: x[:, :128].unflatten(1, (2, 64)).transpose(0, 1),
    "middle": lambda x: x.view(2, 5, 130)[:, 2], "strided": lambda x: x.as_strided((3, 2), (7, 2), 5),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", VIEWS)
def test_views_are_read(name, dtype):
    card, host = data((10, 130), dtype)
    view, expected = VIEWS[name](card), VIEWS[name](host)
    near(view + view, expected + expected, dtype)
    near(view * 0.5, expected * 0.5, dtype)
    near(view.contiguous(), expected.contiguous(), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [n for n in VIEWS if n != "expand"])
def test_views_are_written(name, dtype):
    """Writes in place, by copy and by fill leave the elements around the view unchanged."""
    card, host = data((10, 130), dtype)
    VIEWS[name](card).mul_(2)
    VIEWS[name](host).mul_(2)
    near(card, host, dtype)
    VIEWS[name](card).fill_(1.5)
    VIEWS[name](host).fill_(1.5)
    near(card, host, dtype)


def test_out():
    a, host_a = data((5, 100), torch.float16)
    out = torch.empty(0, dtype=torch.float16, device=DEVICE)
    assert torch.add(a, a, out=out) is out
    near(out, host_a + host_a, torch.float16)
    wide = torch.empty(5, 100, dtype=torch.float32, device=DEVICE)
    torch.mul(a, a, out=wide)
    near(wide, (a * a).cpu().float(), torch.float32)
    window = torch.zeros(5, 200, dtype=torch.float16, device=DEVICE)
    torch.add(a, a, out=window[:, 30:130])
    near(window[:, 30:130], host_a + host_a, torch.float16)
    assert not window[:, :30].cpu().any() and not window[:, 130:].cpu().any()


def test_promotion():
    half, single = data((4, 40), torch.float16)[0], data((4, 40), torch.float32, seed=1)[0]
    near(half + single, half.cpu().float() + single.cpu(), torch.float32)
    assert (half + 1.5).dtype == torch.float16
    assert (half * (half > 0)).dtype == torch.float16
    near(half * (half > 0), half.cpu().float() * (half.cpu() > 0), torch.float16)
    assert (half + torch.tensor(2.0)).dtype == torch.float16
    assert (torch.tensor(2.0) - half).dtype == torch.float16


def test_where_and_masks():
    a, host = data((5, 100), torch.float16)
    near(torch.where(a > 0, a, -a), host.abs(), torch.float16)
    near(torch.where(a > 0, a, 0.5), torch.where(host > 0, host, 0.5), torch.float16)
    near(a.masked_fill(a > 0, -100.0), host.masked_fill(host > 0, -100.0), torch.float16)
    a.masked_fill_(a > 0, float("-inf"))
    assert torch.equal(a.cpu().isinf(), host > 0)


def test_errors():
    a = torch.ones(2, 3, device=DEVICE)
    with pytest.raises(RuntimeError, match="at least two devices, spyre:0 and cpu"):
        a + torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        a + torch.ones(2, 4, device=DEVICE)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.ones(3, device=DEVICE).add_(a)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(2, 3, dtype=torch.int32, device=DEVICE).add_(a)
    with pytest.raises(RuntimeError, match="single memory location"):
        a.view(6)[:5].add_(a.view(6)[1:])


def test_backward():
    a, host = data((5, 40), torch.float32)
    a.requires_grad_()
    host.requires_grad_()
    for x in (a, host):
        ((x * x + 1) * x - x.abs()).sum().backward()
    near(a.grad, host.grad, torch.float32, steps=4)


def test_integers_fall_back():
    """Small int64 numbers, alone and beside floats; results are on the card."""
    torch.spyre.reset_fallbacks()
    a = torch.arange(6, dtype=torch.int64).to(DEVICE)
    for card, host in ((a + 1, a.cpu() + 1), (1 - a, 1 - a.cpu()), (torch.tensor(2) * a, 2 * a.cpu()),
                       (a == 3, a.cpu() == 3), (2.5 - a, 2.5 - a.cpu())):
        assert card.device.type == DEVICE and card.dtype == host.dtype
        assert torch.equal(card.cpu(), host)
    assert torch.spyre.fallbacks() == {}
