# SPDX-License-Identifier: MIT
"""Rows and elements at indices: read and written by the card, which checks each index."""

import re

import pytest
import torch
from support import DEVICE, assert_same, exact, picker, random_view
from torch.nn import functional as F

DTYPES = [
    *(torch.float16, torch.bfloat16, torch.float32, torch.bool),
    *(torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64),
]


def there(*tensors):
    """The tensors on the card."""
    return [t.to(DEVICE) for t in tensors]


def on_card(use, *tensors):
    """The result of @use on the card, where nothing may fall back."""
    tensors = there(*tensors)
    with torch.spyre.no_fallbacks():
        return use(*tensors)


def check(use, *tensors):
    """Compares a result with the CPU's, bit by bit."""
    assert_same(on_card(use, *tensors), use(*(t.clone() for t in tensors)))


def places(rows, *size, seed=0, low=0):
    """Random indices of a table of @rows rows."""
    return torch.randint(low, rows, size, generator=torch.Generator().manual_seed(seed))


READ = {
    "embedding": lambda x, i: F.embedding(i, x.flatten(1)),
    "embedding with padding": lambda x, i: F.embedding(i, x.flatten(1), padding_idx=1),
    "embedding, two dims": lambda x, i: F.embedding(i.expand(2, -1), x.flatten(1)),
    "select 0": lambda x, i: x.index_select(0, i),
    "select 1": lambda x, i: x.index_select(1, i),
    "select -1": lambda x, i: x.index_select(-1, i),
    "select of a list": lambda x, i: x[0, 0].index_select(0, i),
    "select one": lambda x, i: x.index_select(1, i[0]),
    "index 0": lambda x, i: x[i],
    "index 1": lambda x, i: x[:, i],
    "index -1": lambda x, i: x[..., i],
    "index, two dims": lambda x, i: x[:, i[None]],
    "index, no dims": lambda x, i: x[i[0]],
    "index, int": lambda x, i: x[i.int()],
    "index of a list": lambda x, i: x[2, 3][i],
    "gather 0": lambda x, i: x.gather(0, i[:, None, None].expand(-1, 5, 9).contiguous()),
    "gather 2": lambda x, i: x.gather(2, i.expand(4, 5, -1).contiguous()),
    "gather of a list": lambda x, i: x[1, 1].gather(0, i),
    "gather one": lambda x, i: x.gather(-1, i[:1].expand(4, 5, 1)),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", READ)
def test_read(name, dtype):
    check(READ[name], exact(4, 5, 9, dtype=dtype), torch.tensor([3, 0, 3, 1]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_from_the_end(dtype):
    x, i = exact(4, 5, 9, dtype=dtype), torch.tensor([-1, 3, -4, 0])
    check(lambda x, i: x[i], x, i)
    check(lambda x, i: x[:, i[:, None]], x, i)
    check(lambda x, i: x[..., i], x, i)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("columns", [1, 33, 64, 130, 576])
@pytest.mark.parametrize("count", [1, 31, 64, 100])
def test_widths(columns, count, dtype):
    x, i = exact(97, columns, dtype=dtype), places(97, count)
    check(lambda x, i: F.embedding(i, x), x, i)
    check(lambda x, i: x.t()[:, i], x, i)
    check(lambda x, i: x[i][:, :1], x, i)


def test_vocabulary():
    x, i = exact(49152, 576), places(49152, 2, 60)
    i[0, 0], i[1, 7] = 49151, 0
    check(lambda x, i: F.embedding(i, x), x, i)
    check(lambda x, i: F.embedding(i, x), x, i[:1, :1])


def test_out():
    x, i = exact(6, 70), places(6, 5)
    for use in (
        lambda x, i: torch.index_select(x, 0, i, out=torch.empty(0, dtype=x.dtype, device=x.device)),
        lambda x, i: torch.index_select(x, 0, i, out=x.new_zeros(5, 140)[:, ::2]),
        lambda x, i: torch.gather(x, 1, i[None], out=x.new_zeros(1, 5)),
    ):
        check(use, x, i)


def test_nothing():
    none = torch.tensor([], dtype=torch.long)
    for use in (
        lambda x, i: F.embedding(i, x),
        lambda x, i: x.index_select(1, i),
        lambda x, i: x[:, i],
        lambda x, i: x.gather(1, i[None]),
    ):
        check(use, exact(4, 70), none)


def test_indices_of_the_card():
    """A search leaves one index per stick, which a lookup reads in place."""
    table = exact(300, 64)
    x = torch.randperm(900, generator=torch.Generator().manual_seed(0)).view(3, 300).float()
    check(lambda x, t: F.embedding(x.argmax(-1, keepdim=True), t), x, table)
    check(lambda x, t: t[x.argmax(-1)], x, table)
    check(lambda x, t: t[x.topk(4).indices], x, table)
    check(lambda x, t: x.gather(-1, x.topk(4, largest=False).indices), x, table)


def test_indices_of_the_host():
    """They are checked before anything is queued."""
    x = exact(4, 70)
    assert_same(on_card(lambda x: x[torch.tensor([3, -4])], x), x[torch.tensor([3, -4])])
    with pytest.raises(IndexError, match="index: index 4 is out of bounds for dimension 0 with"):
        torch.ops.aten.index.Tensor(x.to(DEVICE), [torch.tensor([0, 4])])
    assert_same(x.to(DEVICE) + 0, x)


@pytest.mark.parametrize("seed", range(40))
def test_random_reads(seed):
    pick = picker(seed)
    dtype = DTYPES[pick(len(DTYPES))]
    size = [1 + pick((40, 70, 9, 3)[d]) for d in range(1 + pick(4))]
    x = exact(*size, dtype=dtype, seed=seed)
    (view,), (moved,) = random_view(picker(seed), x), random_view(picker(seed), x.to(DEVICE))
    dims = [d for d in range(view.dim()) if view.size(d)]
    if not dims or view.dim() > 4:
        return
    d = dims[pick(len(dims))]
    i = places(view.size(d), *(1 + pick(40) for _ in range(pick(3))), seed=seed, low=-view.size(d))
    key = (slice(None),) * d
    with torch.spyre.no_fallbacks():
        assert_same(moved[(*key, i.to(DEVICE))], view[(*key, i)])
        flat = i.flatten() % view.size(d)
        assert_same(moved.index_select(d, flat.to(DEVICE)), view.index_select(d, flat))
        part = [1 + pick(n) for n in view.shape]
        g = places(view.size(d), *part, seed=seed)
        assert_same(moved.gather(d, g.to(DEVICE)), view.gather(d, g))


# Writes

WRITE = {
    "copy 0": lambda x, i, v: x.index_copy_(0, i, v[:2]),
    "copy 1": lambda x, i, v: x.index_copy_(1, i, v[:, :2]),
    "copy -1": lambda x, i, v: x.index_copy_(-1, i, v[..., :2]),
    "copy one": lambda x, i, v: x.index_copy_(1, i[0], v[:, :1]),
    "copy to a new tensor": lambda x, i, v: x.index_copy(1, i, v[:, :2]),
    "copy to a list": lambda x, i, v: x[0, 0].index_copy_(0, i, v[0, 0, :2]),
    "copy to a part": lambda x, i, v: x[:, 1:4, 2:8].index_copy_(1, i, v[:, :2, :6]),
    "copy to steps": lambda x, i, v: x[..., ::2].index_copy_(1, i, v[:, :2, :5]),
    "put 0": lambda x, i, v: x.index_put_((i,), v[:2]),
    "put 1": lambda x, i, v: x.__setitem__((slice(None), i), v[:, :2]),
    "put -1": lambda x, i, v: x.__setitem__((..., i), v[..., :2]),
    "put a row": lambda x, i, v: x.__setitem__(i, v[0]),
    "put a number": lambda x, i, v: x.__setitem__(i, 1),
    "put, two dims": lambda x, i, v: x.__setitem__(i[:, None], v[:2, None]),
    "put to a new tensor": lambda x, i, v: x.index_put((i,), v[:2]),
    "scatter 0": lambda x, i, v: x.scatter_(0, i[:, None, None].expand(2, 5, 9).contiguous(), v),
    "scatter -1": lambda x, i, v: x.scatter_(-1, i.expand(4, 5, 2).contiguous(), v),
    "scatter a number": lambda x, i, v: x.scatter_(1, i[None, :, None].contiguous(), 1),
    "scatter to a new tensor": lambda x, i, v: x.scatter(-1, i.expand(4, 5, 2).contiguous(), v),
    "scatter to a list": lambda x, i, v: x[1, 1].scatter_(0, i, v[0, 0]),
    "scatter out": lambda x, i, v: torch.scatter(
        x, 1, i[None, :, None].contiguous(), 1, out=torch.empty_like(x)
    ),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", WRITE)
def test_write(name, dtype):
    """Compares both the result and the tensor, which may have been written."""
    given = exact(4, 5, 9, dtype=dtype), torch.tensor([2, 0]), exact(4, 5, 9, dtype=dtype, seed=1)
    moved = there(*given)
    with torch.spyre.no_fallbacks():
        have = WRITE[name](*moved)
    want = WRITE[name](*given)
    assert_same(moved[0], given[0])
    if want is not None:
        assert_same(have, want)


def test_wrapped_writes():
    x, i, v = exact(4, 70), torch.tensor([-1, 1]), exact(2, 70, seed=1)
    check(lambda x, i, v: x.index_put_((i,), v), x, i, v)


def test_the_last_remains():
    """Of equal indices, in the order of the indices."""
    x, i, v = exact(5, 70), places(5, 8, 8), exact(8, 8, 70, seed=1)
    want = x.clone()
    for row, value in zip(i.flatten(), v.flatten(0, 1), strict=True):
        want[row] = value
    assert_same(on_card(lambda x, i, v: x.index_put_((i,), v), x, i, v), want)


def test_overlapping_writes():
    """They are refused as on the CPU."""
    for device in "cpu", DEVICE:
        x, i = exact(6, 70).to(device), torch.tensor([2, 0, 1]).to(device)
        for use in (
            lambda: x.index_copy_(0, i[:2], x[1:3]),
            lambda: x.__setitem__(i, x[0]),
            lambda: i.index_copy_(0, i, i + 0),
            lambda: i.scatter_(0, i, 1),
            lambda: x[:1].expand(6, 70).index_copy_(0, i, x[:3] + 0),
            lambda: torch.index_select(x, 0, i, out=x[3:]),
            lambda: torch.gather(i, 0, i + 0, out=i),
            lambda: torch.ops.aten.index(x, [i], out=x[1:4]),
        ):
            with pytest.raises(RuntimeError, match="unsupported operation"):
                use()


def test_refused_writes():
    """With the errors of the CPU."""
    for device in "cpu", DEVICE:
        x, i = exact(6, 70).to(device), torch.tensor([2, 0, 1]).to(device)
        with pytest.raises(RuntimeError, match="Expected a long tensor for index, but got Int"):
            x.index_copy_(0, i.int(), x[3:] + 0)
        with pytest.raises(RuntimeError, match=r"shape \[2, 70\] cannot be broadcast"):
            x[i] = x[:2] + 0


@pytest.mark.parametrize("seed", range(30))
def test_random_writes(seed):
    pick = picker(100 + seed)
    dtype = DTYPES[pick(len(DTYPES))]
    size = [1 + pick((40, 70, 9, 3)[d]) for d in range(1 + pick(4))]
    x, y = exact(*size, dtype=dtype, seed=seed), exact(*size, dtype=dtype, seed=seed).to(DEVICE)
    (view,), (moved,) = random_view(picker(seed), x), random_view(picker(seed), y)
    dims = [d for d in range(view.dim()) if view.size(d)]
    if not dims or 0 in view.stride() or view.dim() > 4:
        return
    d = dims[pick(len(dims))]
    count = 1 + pick(view.size(d))
    i = torch.randperm(view.size(d), generator=torch.Generator().manual_seed(seed))[:count]
    v = torch.empty(*view.shape[:d], count, *view.shape[d + 1 :], dtype=dtype)
    key = (slice(None),) * d
    part = [1 + pick(n) for n in v.shape]
    g = i[: part[d]].view([-1 if e == d else 1 for e in range(v.dim())]).expand(part).contiguous()
    with torch.spyre.no_fallbacks():
        for n, use in enumerate((
            lambda x, i, v, g: x.index_copy_(d, i, v),
            lambda x, i, v, g: x.__setitem__((*key, i), v),
            lambda x, i, v, g: x.scatter_(d, g, v),
        )):  # fmt: skip
            v = exact(*v.shape, dtype=dtype, seed=n)
            use(moved, i.to(DEVICE), v.to(DEVICE), g.to(DEVICE))
            use(view, i, v, g)
            assert_same(y, x)


# Errors

BEYOND = {
    "embedding": lambda x, i: F.embedding(i, x),
    "index_select": lambda x, i: x.index_select(0, i),
    "index": lambda x, i: x[i],
    "gather": lambda x, i: x.gather(0, i[:, None].expand(-1, 70).contiguous()),
    "index_copy_": lambda x, i: x.clone().index_copy_(0, i, x[:2]),
    "index_put_": lambda x, i: x.clone().index_put_((i,), x[:2]),
    "scatter_": lambda x, i: x.clone().scatter_(0, i[:, None], 1.0),
    "one_hot": lambda x, i: F.one_hot(i, 4),
}
#: The steps of kernels that errors name.
STEPS = {"index": "index_select", "index_copy_": "index_put", "index_put_": "index_put",
         "scatter_": "scatter", "one_hot": "scatter"}  # fmt: skip


@pytest.fixture
def recovery():
    yield
    torch.spyre.reset()


@pytest.mark.parametrize("wrong", [4, -5, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("name", BEYOND)
def test_beyond(name, wrong, recovery):
    """The next call that waits reports it; tensors survive reset()."""
    x, good, bad = there(exact(4, 70), torch.tensor([3, 0]), torch.tensor([0, wrong]))
    with pytest.raises(RuntimeError, match="index was not below the extent") as caught:
        BEYOND[name](x, bad).cpu()
    kernel = re.search(r'kernel "(.*?)"', str(caught.value))[1]
    assert f"_{STEPS.get(name, name)}" in kernel
    assert "torch.spyre.reset() makes the device usable again" in str(caught.value)
    torch.spyre.reset()
    assert_same(BEYOND[name](x, good), BEYOND[name](x.cpu(), good.cpu()))


@pytest.mark.parametrize("name", ["embedding", "index_select", "gather"])
def test_negative(name, recovery):
    """Only indexing counts from the end, as on the CPU."""
    x, i = there(exact(4, 70), torch.tensor([-1]))
    with pytest.raises(RuntimeError, match="index was not below the extent"):
        BEYOND[name](x, i).cpu()


# torch.compile

COMPILED = {
    "embedding": lambda x, i: F.embedding(i, x) * 2,
    "select": lambda x, i: x.index_select(0, i) + x[:7],
    "index": lambda x, i: x[i] * 2,
    "index, inner": lambda x, i: (x * 2)[:, i],
    "index, two dims": lambda x, i: x[i.expand(3, 7)] + 1,
    "gather": lambda x, i: x.gather(1, i[None].expand(9, 7).contiguous()) * 2,
    "search": lambda x, i: F.embedding(x.argmax(-1, keepdim=True) * 0 + 1, x) + 1,
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("name", COMPILED)
def test_compiled(said, name, dtype):
    x, i = there(exact(9, 70, dtype=dtype), places(8, 7))
    have = torch.compile(COMPILED[name])(x, i)
    assert_same(have, COMPILED[name](x, i))
    for operation in ("embedding", "index.", "index_select", "gather"):
        assert f"eager aten.{operation}" not in said()


def test_compiled_expanded():
    """A table that is expanded along its rows has one of them, and every index is valid."""
    x, i = there(exact(1, 70), places(9, 7))

    def work(x, i):
        rows, columns = x.expand(9, 70), x[:, :1].expand(1, 9)
        return F.embedding(i, rows) + rows[-i] + rows.index_select(0, i), columns[:, i] * 2

    for have, want in zip(torch.compile(work)(x, i), work(x, i), strict=True):
        assert_same(have, want)


def test_compiled_index_of_the_host():
    """An index without dims stays an integer."""
    x, place = exact(300, 70).to(DEVICE), torch.tensor(299)
    assert_same(torch.compile(lambda x, i: x[i] * 2)(x, place), x[299] * 2)


# Graphs


def captured(function):
    """A graph of @function."""
    graph = torch.accelerator.Graph()
    function()
    with torch.Stream(device=DEVICE), graph:
        result = function()
    return graph, result


def test_captured_reads():
    x, i = there(exact(300, 576), places(300, 4))
    graph, result = captured(lambda: F.embedding(i, x) + x[i])
    for seed in range(3):
        more = places(300, 4, seed=seed)
        i.copy_(more)
        graph.replay()
        assert_same(result, 2 * x.cpu()[more])


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_static_cache(compiled):
    """A place that the host never reads moves on in each replay."""
    torch._dynamo.reset()
    cache, rows, place = there(
        torch.zeros(2, 3, 10, 64).half(), exact(2, 3, 1, 64), torch.tensor([0])
    )

    def step():
        cache.index_copy_(2, place, rows * 2)
        return cache.sum(2)

    with torch.spyre.no_fallbacks(), torch.no_grad():
        graph, result = captured(torch.compile(step) if compiled else step)
        want = torch.zeros(2, 3, 10, 64).half()
        want[:, :, 0] = rows.cpu()[:, :, 0] * 2
        for n in (4, 9, 4):
            new = exact(2, 3, 1, 64, seed=n)
            rows.copy_(new)
            place.copy_(torch.tensor([n]))
            graph.replay()
            want[:, :, n] = new[:, :, 0] * 2
            assert_same(cache, want)
    assert_same(result, cache.sum(2))
