# SPDX-License-Identifier: MIT
"""Derivatives are the card's own programs, computed in fp32 and rounded once."""

import pytest
import torch
from support import DEVICE, assert_near, assert_same, exact
from torch.nn import functional as F

DTYPES = [torch.float32, torch.float16, torch.bfloat16]

#: One step of each format, relative; functions of fp32 have a few ulp.
STEP = {torch.float32: 2.0**-20, torch.float16: 2.0**-9, torch.bfloat16: 2.0**-8}

#: Operations whose derivative takes x and g, or the result too: that is rounded once more.
OF_INPUT = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
    "relu_in_place": lambda x: (x * 1).relu_(),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "hardtanh": lambda x: F.hardtanh(x, -0.75, 0.5),
    "relu6": F.relu6,
    "softplus": lambda x: F.softplus(x, beta=2),
    "logsigmoid": F.logsigmoid,
}
OF_RESULT = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softmax": lambda x: x.softmax(-1),
    "softmax_0": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(-1),
    "log_softmax_0": lambda x: x.log_softmax(0),
}


def numbers(*size, dtype, seed):
    """Random numbers, rounded as the card stores them."""
    values = torch.randn(size, generator=torch.Generator().manual_seed(seed)).to(dtype)
    return values.to(DEVICE).cpu()


def both(work, *tensors):
    """Results and gradients of @work on the card, and in fp32 on the CPU."""
    results = []
    for device in (DEVICE, "cpu"):
        leaves = [
            (t.to(device) if device == DEVICE else t.float().clone()).requires_grad_()
            for t in tensors[:-1]
        ]
        out = work(*leaves)
        gradient = tensors[-1].expand(out.shape) if out.dim() else tensors[-1].flatten()[0]
        with torch.spyre.no_fallbacks():
            out.backward(gradient.to(out.dtype).to(device))
        results.append([out.detach()] + [leaf.grad for leaf in leaves])
    return zip(*results)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", OF_INPUT)
def test_of_input(name, dtype):
    x, g = numbers(5, 70, dtype=dtype, seed=1) * 2, numbers(5, 70, dtype=dtype, seed=2)
    for actual, expected in both(OF_INPUT[name], x, g):
        torch.testing.assert_close(
            actual.cpu().float(), expected, rtol=2 * STEP[dtype], atol=2.0**-18
        )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", OF_RESULT)
def test_of_result(name, dtype):
    """The derivative of what the forward pass stored: its rounding is an error of the input."""
    x, g = numbers(5, 70, dtype=dtype, seed=1), numbers(5, 70, dtype=dtype, seed=2)
    for actual, expected in both(OF_RESULT[name], x, g):
        torch.testing.assert_close(
            actual.cpu().float(), expected, rtol=2 * STEP[dtype], atol=12 * STEP[dtype]
        )


def test_gelu_at_its_ends():
    x = torch.tensor([0.0, -0.0, 1e-30, -1e-30, 12.0, -12.0, 300.0, -300.0])
    for actual, expected in both(F.gelu, x, torch.ones(8)):
        torch.testing.assert_close(actual.cpu(), expected, rtol=2.0**-20, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape, rows", [((70,), (5,)), ((64,), (2, 3)), ((3, 40), (4,))])
def test_layer_norm(shape, rows, dtype):
    x, g = numbers(*rows, *shape, dtype=dtype, seed=1), numbers(*rows, *shape, dtype=dtype, seed=2)
    w, b = numbers(*shape, dtype=dtype, seed=3), numbers(*shape, dtype=dtype, seed=4)
    for actual, expected in both(lambda x, w, b: F.layer_norm(x, shape, w, b), x, w, b, g):
        assert actual.dtype == dtype
        torch.testing.assert_close(
            actual.cpu().float(), expected, rtol=4 * STEP[dtype], atol=8 * STEP[dtype]
        )
    for actual, expected in both(lambda x: F.layer_norm(x, shape), x, g):
        torch.testing.assert_close(
            actual.cpu().float(), expected, rtol=4 * STEP[dtype], atol=8 * STEP[dtype]
        )


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_mse_loss(dtype, reduction):
    x, y = numbers(5, 70, dtype=dtype, seed=1), numbers(5, 70, dtype=dtype, seed=2)
    g = numbers(5, 70, dtype=dtype, seed=3)
    work = lambda x, y: F.mse_loss(x, y, reduction=reduction)  # noqa: E731
    for actual, expected in both(work, x, y, g):
        torch.testing.assert_close(
            actual.cpu().float(), expected, rtol=8 * STEP[dtype], atol=2.0**-18
        )


class TestDropout:
    def test_as_on_the_cpu(self):
        """The same seed leaves out the same elements, there and here, now and again."""
        x = exact(40, 70, dtype=torch.float32)
        torch.manual_seed(7)
        expected = F.dropout(x, 0.25)
        for _ in range(2):
            torch.manual_seed(7)
            with torch.spyre.no_fallbacks():
                actual = F.dropout(x.to(DEVICE), 0.25)
            assert_near(actual, expected, steps=1e-4)
        with torch.spyre.no_fallbacks():
            assert not F.dropout(x.to(DEVICE), 0.25).cpu().equal(actual.cpu())

    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    def test_gradient(self, dtype):
        x = torch.ones(5, 70, dtype=dtype, device=DEVICE, requires_grad=True)
        with torch.spyre.no_fallbacks():
            out = F.dropout(x, 0.5)
            out.sum().backward()
        assert_same(x.grad, out)
        assert set(x.grad.flatten().tolist()) == {0.0, 2.0}

    def test_ends(self):
        x = exact(5, 70).to(DEVICE)
        assert_same(F.dropout(x, 0.0), x)
        assert_same(F.dropout(x, 1.0), torch.zeros_like(x))
        assert_same(F.dropout(x, 0.5, training=False), x)


class TestTernary:
    WORK = {
        "addcmul": lambda a, b, c: torch.addcmul(a, b, c),
        "addcmul_value": lambda a, b, c: torch.addcmul(a, b, c, value=-0.3),
        "addcdiv": lambda a, b, c: torch.addcdiv(a, b, c, value=0.3),
        "lerp": lambda a, b, c: torch.lerp(a, b, 0.2),
        "lerp_far": lambda a, b, c: torch.lerp(a, b, 0.8),
        "lerp_tensor": lambda a, b, c: torch.lerp(a, b, c),
    }

    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    @pytest.mark.parametrize("name", WORK)
    def test_rounded_once(self, name, dtype):
        a, b, c = (numbers(5, 70, dtype=dtype, seed=i) for i in range(3))
        with torch.spyre.no_fallbacks():
            actual = self.WORK[name](a.to(DEVICE), b.to(DEVICE), c.to(DEVICE))
        expected = self.WORK[name](a.float(), b.float(), c.float())
        torch.testing.assert_close(
            actual.cpu().float(), expected, rtol=STEP[dtype], atol=STEP[dtype] / 4
        )

    def test_in_place_and_out(self):
        a, b, c = (exact(5, 70, dtype=torch.float32, seed=i).to(DEVICE) for i in range(3))
        out = torch.empty_like(a)
        with torch.spyre.no_fallbacks():
            expected = torch.addcmul(a, b, c, value=0.5)
            torch.addcmul(a, b, c, value=0.5, out=out)
            assert_same(a.clone().addcmul_(b, c, value=0.5), expected)
            assert_same(a.clone().lerp_(b, 0.25), torch.lerp(a, b, 0.25))
        assert_same(out, expected)
