# SPDX-License-Identifier: MIT
"""Operations in torch.compile, one by one: in kernels where the builder has them, else as eager
mode runs them; the same bits either way."""

import re

import pytest
import torch
from support import DEVICE, assert_same, exact

functional = torch.nn.functional


def values(*size, seed=0, dtype=torch.float16):
    return (exact(*size, dtype=torch.float32, seed=seed) / 8).to(dtype)


def repeat(x, times):
    """Repeats heads as transformers' repeat_kv() does."""
    batch, heads, length, size = x.shape
    expanded = x[:, :, None, :, :].expand(batch, heads, times, length, size)
    return expanded.reshape(batch, heads * times, length, size)


ROWS = [(7, 130), (7, 130)]
IMAGE = (2, 64, 8, 8)
HEADS = [(2, 4, 32, 64)] * 3

#: Name: (function, sizes, what runs eagerly of it).
CASES = {
    "conv2d": (lambda x, w, b: functional.conv2d(x, w, b, padding=1).relu(),
               [IMAGE, (64, 64, 3, 3), (64,)], []),
    "conv2d, stride": (lambda x, w: functional.conv2d(x, w, stride=2),
                       [IMAGE, (64, 64, 3, 3)], []),
    "conv2d of colours": (functional.conv2d, [(2, 3, 8, 8), (64, 3, 3, 3)], []),
    "conv2d, depthwise": (lambda x, w: functional.conv2d(x, w, groups=64),
                          [IMAGE, (64, 1, 3, 3)], []),
    "conv2d, groups": (lambda x, w: functional.conv2d(x, w, groups=2) + 1,
                       [IMAGE, (64, 32, 3, 3)], ["convolution"]),
    "conv1d": (lambda x, w: functional.conv1d(x, w) + 1,
               [(2, 64, 16), (64, 64, 3)], ["convolution"]),
    "conv_transpose2d": (lambda x, w: functional.conv_transpose2d(x, w) + 1,
                         [IMAGE, (64, 64, 3, 3)], ["convolution"]),
    "max_pool2d": (lambda x: functional.max_pool2d(x, 2), [IMAGE], []),
    "max_pool2d, padded": (lambda x: functional.max_pool2d(x, 3, 2, 1) + 1, [IMAGE], []),
    "max_pool2d, indices": (lambda x: functional.max_pool2d(x, 2, return_indices=True), [IMAGE],
                            ["max_pool2d_with_indices"]),
    "pool to one": (lambda x: functional.adaptive_avg_pool2d(x, 1), [IMAGE], []),
    "pool, flat, linear": (lambda x, w: functional.linear(
        functional.adaptive_avg_pool2d(x, 1).flatten(1), w), [IMAGE, (10, 64)], []),
    "argmax": (lambda x: (x + 1).argmax(-1), ROWS[:1], []),
    "argmin, kept": (lambda x: (x + 1).argmin(-1, keepdim=True), ROWS[:1], []),
    "argmax of all": (lambda x: (x + 1).argmax(), ROWS[:1], ["argmax"]),
    "max and where": (lambda x: (x + 1).max(-1), ROWS[:1], ["max.dim"]),
    "statistics": (lambda x: (x.var(-1), x.std(-1), x.norm(dim=-1), x.mean(-1), x.sum(0)),
                   ROWS[:1], []),
    "cat": (lambda x, y: torch.cat([x, y * 2]) + 1, ROWS, ["cat"]),
    "stack": (lambda x, y: torch.stack([x, y]) * 2, ROWS, ["cat"]),
    "pad": (lambda x: functional.pad(x + 1, (64, 3), value=2.5) * 2, ROWS[:1],
            ["constant_pad_nd"]),
    "where": (lambda x, y: torch.where((x > y) & (x < 1), x, 0.5) + torch.where(x == y, 1.0, y),
              ROWS, []),
    "masked_fill": (lambda x, y: x.masked_fill(y > 0, -100.0).softmax(-1), ROWS, []),
    "constants": (lambda x: (torch.full_like(x, 0.3) + x, torch.full_like(x, 1 / 3) * 0.7,
                             torch.where(x > 0, torch.full_like(x, 0.1), x),
                             x.masked_fill(x > 0, 0.3)), ROWS[:1], []),
    "truth": (lambda x, y: ((x > 0) | ~(y > 0), (x > 0) ^ (y < 0), torch.logical_not(x)),
              ROWS, []),
    "cumsum": (lambda x: (x * 2).cumsum(-1) + 1, ROWS[:1], ["cumsum"]),
    "powers": (lambda x: (x.abs() ** 0.5, x**2, x**3), ROWS[:1], []),
    "attention": (functional.scaled_dot_product_attention, HEADS, []),
    "attention, causal": (lambda q, k, v: functional.scaled_dot_product_attention(
        q, k, v, is_causal=True) + 1, HEADS, []),
    "attention, shared heads": (lambda q, k, v: functional.scaled_dot_product_attention(
        q, k, v, enable_gqa=True) + 1, [HEADS[0], (2, 2, 32, 64), (2, 2, 32, 64)], []),
    "attention, shared heads, causal": (lambda q, k, v: functional.scaled_dot_product_attention(
        q, k, v, is_causal=True, enable_gqa=True), [HEADS[0], (2, 2, 32, 64), (2, 2, 32, 64)], []),
    "attention, one query": (lambda q, k, v: functional.scaled_dot_product_attention(
        q, k, v, enable_gqa=True), [(2, 4, 1, 64), (2, 2, 40, 64), (2, 2, 40, 64)], []),
    "attention, one key": (lambda q, k, v: functional.scaled_dot_product_attention(
        q, k, v, is_causal=True), [(2, 4, 1, 64)] * 3, []),
    "attention, repeated keys": (lambda q, k, v: functional.scaled_dot_product_attention(
        q + 1, repeat(k * 2, 2), repeat(v, 2), is_causal=True),
        [(2, 4, 100, 32), (2, 2, 100, 32), (2, 2, 100, 32)], []),
}  # fmt: skip


def compare(function, *tensors):
    have, want = torch.compile(function)(*tensors), function(*tensors)
    have, want = ((r,) if torch.is_tensor(r) else r for r in (have, want))
    for a, b in zip(have, want, strict=True):
        assert a.dtype == b.dtype
        assert_same(a, b)


def eagerly(text):
    found = re.findall(r"eager aten\.(\S+)", text)
    return sorted({name.removesuffix(".default") for name in found})


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_operation(said, name, dtype):
    function, sizes, eager = CASES[name]
    compare(function, *(values(*s, seed=i, dtype=dtype).to(DEVICE) for i, s in enumerate(sizes)))
    assert eagerly(said()) == eager, said()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_topk(said, dtype):
    """The values differ, because the order of equal ones is undefined."""
    x = torch.randperm(7 * 130, generator=torch.Generator().manual_seed(0)).view(7, 130)
    compare(lambda x: torch.topk(x * 2, 5), x.to(dtype).to(DEVICE))
    compare(lambda x: torch.topk(x, 3, largest=False), x.to(dtype).to(DEVICE))
    assert eagerly(said()) == []


def test_integers(said):
    i = torch.arange(7 * 130).view(7, 130).to(DEVICE)
    x = values(7, 130).to(DEVICE)
    compare(lambda x, i: (x + (i * 2 + 1).to(x.dtype), i // 3, i % 5, i > 100), x, i)
    assert "eager mode computes torch.int64 on the CPU" in said()
    assert not {"floor_divide", "remainder.Scalar", "remainder.Tensor"} & set(eagerly(said()))


def test_lookups(said):
    x, i = values(7, 130).to(DEVICE), torch.tensor([3, 1, 0]).to(DEVICE)
    compare(lambda x, i: (functional.embedding(i, x) * 2, x[i] + 1, x.index_select(0, i)), x, i)
    assert eagerly(said()) == []


def pools(x, m, v, w, b):
    y = functional.batch_norm(x, m, v, w, b)
    return y, functional.avg_pool2d(x, 3, stride=2, padding=1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_where_eager_mode_falls_back(said, dtype):
    """Batch norm and average pools are kernels here, on the CPU in eager mode: close results."""
    x, m, w, b = (values(*s, seed=i, dtype=dtype) for i, s in enumerate([IMAGE, *[(64,)] * 3]))
    v = values(64, seed=9, dtype=dtype).abs() + 1
    have = torch.compile(pools)(*(t.to(DEVICE) for t in (x, m, v, w, b)))
    want = pools(*(t.float() for t in (x, m, v, w, b)))
    for a, c in zip(have, want, strict=True):
        limit = 2**-7 if dtype == torch.float16 else 2**-18
        torch.testing.assert_close(a.cpu().float(), c, rtol=limit, atol=limit)
    assert eagerly(said()) == []


def test_across_expanded_dims():
    """Sums over an expanded dim count its element once for each index of the dim."""
    x, w, image = (values(*size).float().to(DEVICE) for size in ((5, 1), (1, 8), (2, 1, 8, 8)))

    def work(x, w, image):
        x, w, image = x.expand(5, 64), w.expand(64, 8), image.expand(2, 64, 8, 8)
        return (
            (x * 2).sum(1), x.sum(), torch.linalg.vector_norm(x, dim=1), x.var(), x @ w,
            torch.addmm(w[:1], x, w), functional.mse_loss(x, x * 0.5, reduction="sum"),
            functional.conv2d(image, image[:, :, :3, :3]), x.mean((0, 1)),
        )  # fmt: skip

    for have, want in zip(torch.compile(work)(x, w, image), work(x, w, image), strict=True):
        assert_same(have, want)


def test_repeated_batches():
    """A product that all elements of a batch share is planned as one for each in both modes.

    The sizes are those at which a plan for one divides the sums over the cores otherwise, so that
    its results differ in the last bit.
    """

    def work(x, w, matrix, bias):
        x, w, bias = (t.expand(8, -1, -1) for t in (x, w, bias))
        return torch.bmm(x, w), x @ matrix, functional.linear(x, matrix.t()), bias.baddbmm(x, w)

    torch.manual_seed(0)
    sizes = (1, 8, 1024), (1, 1024, 64), (1024, 64), (1, 8, 64)
    given = [torch.randn(*size, dtype=torch.float16).to(DEVICE) for size in sizes]
    for have, want in zip(torch.compile(work)(*given), work(*given), strict=True):
        assert_same(have, want)


def test_random_numbers(said):
    """As on other devices Inductor draws its own, unless told to draw eager mode's."""
    x = torch.zeros(64, 70, device=DEVICE)
    compiled = torch.compile(lambda x: torch.rand_like(x) + x)
    first, second = compiled(x).cpu(), compiled(x).cpu()
    assert not torch.equal(first, second) and 0.4 < first.mean() < 0.6
    torch._dynamo.reset()
    with torch._inductor.config.patch(fallback_random=True):
        torch.manual_seed(3)
        want = torch.rand_like(x) + x
        torch.manual_seed(3)
        assert_same(torch.compile(lambda x: torch.rand_like(x) + x)(x), want)
