# SPDX-License-Identifier: MIT
"""Matrix products, reductions and their composites, on the card against the CPU.

Tolerance: products and sums are accumulated in fp32 on both sides, in another order; results
are rounded once. So they agree within the last step of the format, and within 2^-20 of the sum
of the magnitudes, which the absolute part of near() stands for.
"""

import pytest
import torch
from support import DEVICE, assert_held, held
from torch.nn import functional as F

DTYPES = [torch.float16, torch.bfloat16, torch.float32]
TOLERANCE = {torch.float16: 2.0**-8, torch.bfloat16: 2.0**-6, torch.float32: 2.0**-18}


def data(*shape, dtype=torch.float16, seed=0, low=-1.0, high=1.0):
    return held(shape, dtype, seed, low, high)


def near(card, expected, dtype, steps=1):
    assert_held(card, expected, dtype, TOLERANCE[dtype] * steps)


@pytest.fixture(autouse=True)
def no_fallback():
    torch.spyre.reset_fallbacks()
    yield
    assert torch.spyre.fallbacks() == {}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m, k, n", [(5, 40, 9), (64, 64, 64), (1, 130, 70), (33, 1, 5), (7, 384, 1)])
def test_mm(m, k, n, dtype):
    a, host_a = data(m, k, dtype=dtype)
    b, host_b = data(k, n, dtype=dtype, seed=1)
    near(a @ b, host_a @ host_b, dtype, steps=2)
    near(torch.mm(b.t(), a.t()), host_b.t() @ host_a.t(), dtype, steps=2)
    near(torch.mm(a.t().contiguous().t(), b), host_a @ host_b, dtype, steps=2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("a, b", [((2, 3, 5, 40), (2, 3, 40, 9)), ((2, 5, 40), (40, 9)),
                                  ((2, 1, 5, 40), (3, 40, 9)), ((40,), (40, 9)), ((5, 40), (40,)),
                                  ((40,), (40,))])
def test_matmul(a, b, dtype):
    a, host_a = data(*a, dtype=dtype)
    b, host_b = data(*b, dtype=dtype, seed=1)
    near(a @ b, host_a @ host_b, dtype, steps=2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(40,), (5, 40), (2, 7, 40), (2, 3, 5, 40)])
def test_linear(shape, dtype):
    x, host_x = data(*shape, dtype=dtype)
    weight, host_weight = data(33, 40, dtype=dtype, seed=1)
    bias, host_bias = data(33, dtype=dtype, seed=2)
    near(F.linear(x, weight), F.linear(host_x, host_weight), dtype, steps=2)
    near(F.linear(x, weight, bias), F.linear(host_x, host_weight, host_bias), dtype, steps=2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows, inputs, outputs", [(1, 1, 70), (5, 1, 70), (1, 100, 1), (5, 100, 1),
                                                   (5, 1, 1)])
def test_linear_of_one_feature(rows, inputs, outputs, dtype):
    x, host_x = data(rows, inputs, dtype=dtype)
    weight, host_weight = data(outputs, inputs, dtype=dtype, seed=1)
    bias, host_bias = data(outputs, dtype=dtype, seed=2)
    near(F.linear(x, weight), F.linear(host_x, host_weight), dtype, steps=2)
    near(F.linear(x, weight, bias), F.linear(host_x, host_weight, host_bias), dtype, steps=2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_biased(dtype):
    a, host_a = data(5, 40, dtype=dtype)
    b, host_b = data(40, 9, dtype=dtype, seed=1)
    for shape in ((5, 9), (9,), (5, 1)):
        c, host_c = data(*shape, dtype=dtype, seed=2)
        near(torch.addmm(c, a, b), host_c + host_a @ host_b, dtype, steps=2)
        near(torch.addmm(c, a, b, beta=2, alpha=0.5), 2 * host_c + 0.5 * (host_a @ host_b), dtype,
             steps=4)
    out = torch.empty(5, 9, dtype=dtype, device=DEVICE)
    torch.mm(a, b, out=out)
    near(out, host_a @ host_b, dtype, steps=2)
    a3, b3 = a.expand(2, 5, 40), b.expand(2, 40, 9)
    near(torch.bmm(a3, b3), (host_a @ host_b).expand(2, 5, 9), dtype, steps=2)
    near(torch.baddbmm(c, a3, b3), (host_c + host_a @ host_b).expand(2, 5, 9), dtype, steps=2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("leave", [torch.exp, lambda x: (x + 2).log(), lambda x: (x + 2).reciprocal()])
def test_padding_counts_for_nothing(leave, dtype):
    """K = 40: values that an operation leaves in the other lanes of a stick have no effect.

    exp leaves 1, log(x + 2) log 2, and log and reciprocal of a clean 0 leave infinity.
    """
    x, host_x = data(5, 40, dtype=dtype)
    b, host_b = data(40, 9, dtype=dtype, seed=1)
    far, _ = data(5, 40, dtype=dtype, low=0.5, high=2)
    for a in (leave(x), far.log(), far.reciprocal()):
        host = a.cpu().float()
        near(a @ b, host @ host_b, dtype, steps=2)
        near(b.t() @ a.t(), host_b.t() @ host.t(), dtype, steps=2)
        near(F.linear(a, b.t()), host @ host_b, dtype, steps=2)
        near(F.linear(b.t(), a), host_b.t() @ host.t(), dtype, steps=2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_windows_multiply(dtype):
    """Elements outside of a window, which are all NaN, have no effect."""
    whole = torch.full((12, 200), float("nan"), dtype=dtype).to(DEVICE)
    x, host_x = data(5, 40, dtype=dtype)
    b, host_b = data(40, 9, dtype=dtype, seed=1)
    for rows, columns in ((slice(2, 7), slice(64, 104)), (slice(0, 5), slice(128, 168))):
        place = whole[rows, columns]
        place.copy_(x)
        near(place @ b, host_x @ host_b, dtype, steps=2)
        near(b.t() @ place.t(), (host_x @ host_b).t(), dtype, steps=2)
        near(place.sum(1), host_x.sum(1), dtype, steps=2)
        near(place.softmax(-1), host_x.softmax(-1), dtype, steps=2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape, dims", [((5, 100), -1), ((5, 100), 0), ((5, 100), (0, 1)),
                                         ((2, 7, 33), 1), ((2, 7, 33), (0, 2)), ((40,), 0)])
@pytest.mark.parametrize("keep", [False, True])
def test_reductions(shape, dims, keep, dtype):
    x, host = data(*shape, dtype=dtype)
    for name in ("sum", "mean", "amax", "amin"):
        card = getattr(x, name)(dims, keepdim=keep)
        near(card, getattr(host, name)(dims, keepdim=keep), dtype, steps=4)
    near(torch.linalg.vector_norm(x, dim=dims, keepdim=keep),
         torch.linalg.vector_norm(host, dim=dims, keepdim=keep), dtype, steps=4)
    near(x.transpose(0, -1).sum(dims, keepdim=keep) if x.dim() > 1 else x.sum(),
         host.transpose(0, -1).sum(dims, keepdim=keep) if x.dim() > 1 else host.sum(), dtype, steps=4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_largest(dtype):
    x, host = data(5, 100, dtype=dtype)
    near(x.max(), host.max(), dtype)
    near(x.min(), host.min(), dtype)
    for dim in (0, 1):
        values, places = x.max(dim)
        near(values, host.max(dim).values, dtype)
        assert places.dtype == torch.int64 and torch.equal(places.cpu(), host.max(dim).indices)
        assert torch.equal(x.argmin(dim).cpu(), host.argmin(dim))
    assert x.argmax().item() == host.argmax().item()


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_of_reductions_go_on(dtype):
    """One value per stick meets dense tensors."""
    x, host = data(5, 100, dtype=dtype)
    near(x - x.mean(-1, keepdim=True), host - host.mean(-1, keepdim=True), dtype, steps=2)
    near(x.sum(1) + x[:, :5].sum(0), host.sum(1) + host[:, :5].sum(0), dtype, steps=4)
    near(x.sum(1) * 2, host.sum(1) * 2, dtype, steps=4)
    near(x.sum(1) @ x, host.sum(1) @ host, dtype, steps=8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 100), (2, 7, 33), (64,)])
def test_softmax_and_norms(shape, dtype):
    x, host = data(*shape, dtype=dtype)
    width = shape[-1]
    weight, host_weight = data(width, dtype=dtype, seed=1)
    bias, host_bias = data(width, dtype=dtype, seed=2)
    for dim in range(len(shape)):
        near(x.softmax(dim), host.softmax(dim), dtype)
        near(x.log_softmax(dim), host.log_softmax(dim), dtype, steps=4)
    near(F.layer_norm(x, (width,), weight, bias), F.layer_norm(host, (width,), host_weight, host_bias),
         dtype, steps=4)
    near(F.layer_norm(x, (width,)), F.layer_norm(host, (width,)), dtype, steps=4)
    near(F.rms_norm(x, (width,), weight, 1e-5), F.rms_norm(host, (width,), host_weight, 1e-5), dtype,
         steps=4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mask", [None, "bool", "float", "causal"])
def test_attention(mask, dtype):
    q, host_q = data(2, 4, 7, 32, dtype=dtype)
    k, host_k = data(2, 4, 7, 32, dtype=dtype, seed=1)
    v, host_v = data(2, 4, 7, 32, dtype=dtype, seed=2)
    given = host_given = None
    if mask == "bool":
        host_given = torch.ones(2, 1, 7, 7, dtype=torch.bool).tril()
        given = host_given.to(DEVICE)
    elif mask == "float":
        given, host_given = data(2, 1, 7, 7, dtype=dtype, seed=3)
    near(F.scaled_dot_product_attention(q, k, v, given, is_causal=mask == "causal"),
         F.scaled_dot_product_attention(host_q, host_k, host_v, host_given,
                                        is_causal=mask == "causal"), dtype, steps=4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_put_together(dtype):
    a, host_a = data(5, 100, dtype=dtype)
    b, host_b = data(5, 100, dtype=dtype, seed=1)
    for dim in (0, 1):
        near(torch.cat([a, b], dim), torch.cat([host_a, host_b], dim), dtype)
        near(torch.stack([a, b], dim), torch.stack([host_a, host_b], dim), dtype)
    near(a.repeat(2, 1, 3), host_a.repeat(2, 1, 3), dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("stride, padding", [(1, 0), (2, 1)])
def test_conv2d(stride, padding, dtype):
    x, host_x = data(2, 3, 9, 8, dtype=dtype)
    weight, host_weight = data(5, 3, 3, 3, dtype=dtype, seed=1)
    bias, host_bias = data(5, dtype=dtype, seed=2)
    near(F.conv2d(x, weight, bias, stride, padding),
         F.conv2d(host_x, host_weight, host_bias, stride, padding), dtype, steps=4)


def test_errors():
    a = torch.ones(2, 3, device=DEVICE)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        a @ a
    with pytest.raises(RuntimeError, match="same dtype"):
        a @ torch.ones(3, 2, dtype=torch.float16, device=DEVICE)
    with pytest.raises(RuntimeError, match="device"):
        a @ torch.ones(3, 2)
    with pytest.raises(RuntimeError, match="multiple times"):
        a.sum((0, 0))


def test_linear_backward():
    x, host_x = data(2, 7, 40, dtype=torch.float32)
    weight, host_weight = data(33, 40, dtype=torch.float32, seed=1)
    bias, host_bias = data(33, dtype=torch.float32, seed=2)
    for tensors in ((x, weight, bias), (host_x, host_weight, host_bias)):
        for tensor in tensors:
            tensor.requires_grad_()
        F.linear(*tensors).square().sum().backward()
    near(x.grad, host_x.grad, torch.float32, steps=8)
    near(weight.grad, host_weight.grad, torch.float32, steps=8)
    near(bias.grad, host_bias.grad, torch.float32, steps=8)


def test_program_cache():
    """A shape is compiled once; another value of an attribute is another kernel."""
    from torch_spyre import _C

    x = torch.ones(3, 77, dtype=torch.float16, device=DEVICE)
    _C.program_cache_clear()
    before = _C.program_cache_stats()
    for _ in range(5):
        x + x
    after = _C.program_cache_stats()
    assert after["misses"] == before["misses"] + 1 and after["hits"] == before["hits"] + 4
    x + 1
    x + 2
    assert _C.program_cache_stats()["misses"] == before["misses"] + 3
    assert 0 < _C.program_cache_stats()["bytes"] <= after["limit_bytes"]


def test_program_cache_of_other_settings(monkeypatch):
    """Plans depend on the planner's settings; those of earlier settings are found again."""
    from torch_spyre import _C

    x = torch.ones(3, 79, dtype=torch.float16, device=DEVICE)
    _C.program_cache_clear()
    before = _C.program_cache_stats()["misses"]
    misses = []
    for cores in ("1", "8", "1", "8", "many", None, "1"):
        if cores:
            monkeypatch.setenv("SENCORES", cores)
        else:
            monkeypatch.delenv("SENCORES")
        if cores == "many":
            with pytest.raises(RuntimeError, match="SENCORES=many"):
                x + x
        else:
            assert torch.equal((x + x).cpu(), torch.full((3, 79), 2.0, dtype=torch.float16))
            misses.append(_C.program_cache_stats()["misses"] - before)
    assert misses[:4] == [1, 2, 2, 2] and misses[5] == misses[4], misses
