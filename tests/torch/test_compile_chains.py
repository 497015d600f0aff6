# SPDX-License-Identifier: MIT
"""Random chains of views with their readers: compiled against eager.

A chain selects, slices, splits, permutes, expands, reshapes, concatenates and pads, two levels
and more with offsets; kernels, eager operations and the caller read what comes of it. Results
are those of eager mode bit by bit, and where a chain only moves numbers, exactly the CPU's.

Several chains are one function, as Inductor takes most of the time. They go from the pass over
Inductor's graph through the generated wrapper; some go through dynamo, too, one by one.
SPYRE_CHAINS is the number of graphs.
"""

import os
import random

import pytest
import torch
from support import DEVICE, assert_same, exact
from torch._inductor.compile_fx import compile_fx_inner
from torch._inductor.decomposition import select_decomp_table
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

functional = torch.nn.functional

GRAPHS = int(os.environ.get("SPYRE_CHAINS", 200))
#: Chains in one function.
TOGETHER = 20
#: Graphs beyond the default number in which a defect was found.
FOUND = [2670, 3467, 6298, 8288, 8455, 8469]
SIZES = [(4, 256), (6, 130), (2, 3, 64), (4, 16, 96), (2, 4, 5, 64), (3, 8, 1, 32), (512,)]
MOST = 1 << 14


def piece(rng, n):
    start = rng.randrange(n)
    return start, rng.randint(1, n - start)


def factors(rng, count):
    """A random size of @count elements."""
    size = []
    while count > 1 and len(size) < 3:
        n = rng.choice([d for d in range(1, count + 1) if count % d == 0])
        size.append(n)
        count //= n
    return [*size, count]


def one_of_list(rng, x, d):
    """An element of the list that split, chunk, unbind and similar functions return."""
    n = x.shape[d]
    kind = rng.randrange(4)
    if kind == 0:
        part = rng.randint(1, n)
        return lambda x, i=rng.randrange(-(-n // part)): x.split(part, d)[i]
    if kind == 1:
        sizes = [rng.randint(1, n)]
        while sum(sizes) < n:
            sizes.append(rng.randint(1, n - sum(sizes)))
        return lambda x, i=rng.randrange(len(sizes)): x.split(sizes, d)[i]
    if kind == 2:
        parts = rng.randint(1, 4)
        return lambda x, i=rng.randrange(len(x.chunk(parts, d))): x.chunk(parts, d)[i]
    return lambda x, i=rng.randrange(n): x.unbind(d)[i]


def a_view(rng, x):
    """A random view of @x, or a copy if no such view exists."""
    d, e = rng.randrange(x.dim()), rng.randrange(x.dim())
    kind = rng.randrange(14)
    if kind == 0 and x.dim() > 1:
        return lambda x, i=rng.randrange(x.shape[d]): x.select(d, i)
    if kind <= 2:
        start, length = piece(rng, x.shape[d])
        return lambda x: x.narrow(d, start, length)
    if kind == 3:
        key = (slice(None),) * d + (slice(rng.randrange(x.shape[d]), None, rng.randint(1, 3)),)
        return lambda x: x[key]
    if kind in (4, 5) and (x.dim() > 1 or x.shape[0] < 9):
        return one_of_list(rng, x, d) if x.dim() > 1 else lambda x: x.chunk(2)[0]
    if kind == 6:
        return lambda x: x.transpose(d, e)
    if kind == 7:
        order = rng.sample(range(x.dim()), x.dim())
        return lambda x: x.permute(order)
    if kind == 8 and x.dim() < 5:
        return lambda x: x.unsqueeze(d)
    if kind == 9 and x.shape[d] == 1:
        return lambda x: x.expand(*x.shape[:d], 3, *x.shape[d + 1 :])
    if kind == 10:
        return lambda x: x.squeeze()
    if kind == 11 and x.is_contiguous() and x.numel() > 3:
        # Within the tensor: rows of a width at a distance. Strides of results may differ between
        # devices and from those that PyTorch traces. The offset is the tensor's own, not a number,
        # because of test_offset_in_a_dropped_copy.
        width = rng.randint(1, min(x.numel() // 2, 70))
        step = rng.randint(1, x.numel() - width)
        rows = 1 + (x.numel() - width) // step
        return lambda x: x.contiguous().as_strided((rows, width), (step, 1))
    size = factors(rng, x.numel())
    return lambda x: x.reshape(size)


def a_copy(rng, x):
    """An operation that moves numbers without changing them."""
    d = rng.randrange(x.dim())
    kind = rng.randrange(6)
    if kind == 0:
        n = rng.randrange(x.shape[d])
        return lambda x: torch.cat((x.narrow(d, n, x.shape[d] - n), x.narrow(d, 0, n)), d)
    if kind == 1:
        return lambda x: torch.stack((x, x), d)
    if kind == 2:
        before, behind = rng.randrange(4), rng.randrange(4)
        return lambda x: functional.pad(x, (before, behind), value=0.5)
    if kind == 3:
        return lambda x: x.contiguous()
    if kind == 4:
        return lambda x: x.flip(d)
    return lambda x: x.clone()


KERNELS = [
    lambda x: x * 2, lambda x: x + 1, lambda x: -x, torch.relu, torch.abs, torch.sigmoid,
    lambda x: x + x, lambda x: x * x.abs(), lambda x: torch.softmax(x, -1),
    lambda x: x.sum(-1), lambda x: x.amax(-1, keepdim=True), lambda x: x.t() if x.dim() == 2 else x,
    lambda x: functional.layer_norm(x, x.shape[-1:]),
    lambda x: x @ x.transpose(-1, -2) if x.dim() > 1 else x * 3,
]  # fmt: skip
EAGERLY = [torch.atan, lambda x: x.cumsum(0), lambda x: torch.asinh(x) * 2]


def a_step(rng, x):
    """(function, whether numbers change)"""
    kind = rng.choices(["view", "copy", "kernel", "eager"], [10, 3, 5, 2])[0]
    if kind == "view":
        return a_view(rng, x), False
    if kind == "copy" and x.numel() < MOST:
        return a_copy(rng, x), False
    if kind == "eager":
        return rng.choice(EAGERLY), True
    return rng.choice(KERNELS), True


def chain(rng):
    """(function, tensors of the CPU, which results only moved)."""
    x = exact(*rng.choice(SIZES), dtype=rng.choice([torch.float16, torch.float32]),
              seed=rng.randrange(1 << 30))  # fmt: skip
    steps, results, values, moved = [], [], [x], [True]
    for i in range(rng.randint(3, 8)):
        at = rng.choice([len(values) - 1] * 3 + [rng.randrange(len(values))])
        whole = values[at]
        if not whole.dim() or not whole.numel():
            continue
        function, changed = a_step(rng, whole)
        made = function(whole)
        if made.numel() > MOST:
            continue
        steps.append((at, function))
        values.append(made)
        moved.append(moved[at] and not changed)
        if rng.random() < 0.25:
            results.append(len(values) - 1)
    results = sorted({*results, len(values) - 1})

    def run(x):
        values = [x]
        for at, function in steps:
            values.append(function(values[at]))
        return [values[r] for r in results]

    return run, [x], [moved[r] for r in results]


def attention(rng):
    """Splits heads, computes attention and joins heads, as models do."""
    batch, length = rng.randint(1, 2), rng.choice([1, 5, 16, 21])
    heads, size = rng.choice([(2, 32), (4, 32), (2, 64), (4, 16), (3, 24)])
    causal, form = rng.random() < 0.6, rng.randrange(3)
    width = heads * size
    dtype = rng.choice([torch.float16, torch.float32])
    x = exact(batch, length, 3 * width, dtype=dtype, seed=rng.randrange(1 << 30))

    def rotated(t):
        return torch.cat((-t[..., size // 2 :], t[..., : size // 2]), -1)

    def run(x):
        y = x * 0.5
        if form == 0:
            q, k, v = (t.view(batch, length, heads, size) for t in y.chunk(3, -1))
        elif form == 1:
            q, k, v = y.view(batch, length, 3, heads, size).unbind(2)
        else:
            q, k, v = y.view(batch, length, heads, 3 * size).split(size, -1)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        if form == 2:
            q, k = q + rotated(q), k + rotated(k)
        z = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return [z.transpose(1, 2).reshape(batch, length, width) + 1, z]

    return run, [x], [False, False]


def convolution(rng):
    """A convolution of odd sizes, down to one row or column; its input may be a view."""
    channels, out = rng.choice([3, 8, 64]), rng.choice([1, 5, 64])
    kernel = (rng.randint(1, 3), rng.randint(1, 3))
    stride = rng.randint(1, 2)
    rows, columns = (rng.randint(k, k + 6) for k in kernel)
    cut = rng.randrange(2)
    dtype = rng.choice([torch.float16, torch.float32])
    x = exact(2, channels + cut, rows, columns, dtype=dtype, seed=rng.randrange(1 << 30))
    weight = exact(out, channels, *kernel, dtype=torch.float32, seed=rng.randrange(1 << 30)) / 8
    weight = weight.to(dtype)

    def run(x, weight):
        y = functional.conv2d((x * 2)[:, cut:], weight, stride=stride)
        return [y, y.flatten(1) + 1]

    return run, [x, weight], [False, False]


def graph(number):
    rng = random.Random(number)
    return rng.choices([chain, attention, convolution], [8, 1, 1])[0](rng)


def inputs(graph):
    return [x.to(DEVICE) for x in graph[1]]


def together(graphs):
    """Several graphs as one function of all their tensors."""

    def run(*tensors):
        rest, results = list(tensors), []
        for function, own, _ in graphs:
            results += function(*rest[: len(own)])
            del rest[: len(own)]
        return results

    return run


def inductor(function, tensors):
    """A function as Inductor compiles it, without dynamo and AOTAutograd."""
    mode = FakeTensorMode()
    fakes = [mode.from_tensor(t) for t in tensors]
    with mode:
        traced = make_fx(function, select_decomp_table(), tracing_mode="fake")(*fakes)
    with mode, torch._inductor.config.patch(fx_graph_cache=False):
        compiled = compile_fx_inner(traced, fakes)
    return compiled(list(tensors))


def dynamo(function, tensors):
    torch._dynamo.reset()
    return torch.compile(function)(*tensors)


def check(numbers, compiled):
    graphs = [graph(number) for number in numbers]
    have = iter(compiled(together(graphs), [x for one in graphs for x in inputs(one)]))
    for number, one in zip(numbers, graphs):
        function, tensors, moved = one
        wanted = function(*inputs(one))
        for want, exactly, moves in zip(wanted, function(*tensors), moved, strict=True):
            try:
                assert_same(next(have), want)
                if moves:
                    assert_same(want, exactly)
            except AssertionError as error:
                raise AssertionError(f"graph {number}: {error}") from None


@pytest.fixture(autouse=True)
def no_derivatives(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    with torch.no_grad():
        yield


@pytest.mark.parametrize("first", range(0, GRAPHS, TOGETHER))
def test_chains(first):
    check(range(first, min(first + TOGETHER, GRAPHS)), inductor)


@pytest.mark.parametrize("number", FOUND)
def test_chains_with_defects_before(number):
    check([number], inductor)


@pytest.mark.parametrize("number", range(0, min(GRAPHS, 1000), 40))
def test_chains_through_dynamo(number):
    check([number], dynamo)


@pytest.mark.xfail(strict=True, reason="a defect of PyTorch 2.13")
@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_offset_in_a_dropped_copy(device):
    """Inductor replaces a copy by its source although as_strided() counts from the copy's start."""

    def function(x):
        return x[470:483].clone().as_strided((3, 2), (4, 1), 0).sum(-1)

    x = exact(512, dtype=torch.float32).to(device)
    torch._dynamo.reset()
    assert torch.equal(torch.compile(function)(x).cpu(), function(x).cpu())
