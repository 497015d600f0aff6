# SPDX-License-Identifier: MIT
"""Parts of large tensors are copied without the memory around them."""

import json

import pytest
import torch
from support import DEVICE, assert_same, exact, picker, random_view
from torch.profiler import ProfilerActivity, profile

DTYPES = [torch.float16, torch.int64, torch.uint8, torch.bool]

#: Large enough that their parts go alone.
TENSORS = {
    "rows": lambda dtype: exact(700, 300, dtype=dtype),
    "long": lambda dtype: exact(50_000, dtype=dtype),
    "batches": lambda dtype: exact(40, 30, 200, dtype=dtype),
    "heads": lambda dtype: exact(3, 5, 300, 100, dtype=dtype),
    "images": lambda dtype: exact(20, 7, 40, 70, dtype=dtype).contiguous(
        memory_format=torch.channels_last
    ),
    "transposed": lambda dtype: exact(300, 700, dtype=dtype).t(),
    "six dimensions": lambda dtype: exact(3, 4, 5, 2, 9, 70, dtype=dtype),
}


def both(name, dtype):
    host = TENSORS[name](dtype)
    return host, host.to(DEVICE)


def may_write(view):
    return all(stride or size == 1 for size, stride in zip(view.shape, view.stride()))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", TENSORS)
class TestRandomViews:
    def test_read(self, name, dtype):
        pick = picker(len(name))
        host, device = both(name, dtype)
        for n in range(25):
            expected, view = random_view(pick, host, device)
            assert_same(view, expected)
            if n % 2:
                assert_same(view.clone(memory_format=torch.contiguous_format), expected)

    def test_write(self, name, dtype):
        """Writes from the host, the card and numbers change the view's elements only."""
        pick = picker(len(name) + 100)
        host, device = both(name, dtype)
        for n in range(15):
            expected, view = random_view(pick, host, device)
            if not may_write(expected):
                continue
            values = exact(*expected.shape, dtype=dtype, seed=n)
            if n % 3 == 2:
                values = values.flatten()[0].item()
                expected.fill_(values), view.fill_(values)
            else:
                expected.copy_(values), view.copy_(values.to(DEVICE if n % 3 else "cpu"))
            assert_same(device, host)


def test_views_beyond_a_dimension():
    """Views that step from one dimension into the next."""
    host, device = both("batches", torch.float16)
    for size, stride, offset in [
        ((7, 9), (211, 3), 5),
        ((40, 5), (6001, 6), 0),
        ((3000,), (77,), 1000),
        ((2, 2, 2), (6000, 200, 199), 777),
        ((5, 70), (9, 1), 12_345),
    ]:
        expected = host.as_strided(size, stride, offset)
        assert_same(device.as_strided(size, stride, offset), expected)
    device.as_strided((7, 9), (211, 3), 5).fill_(4)
    host.as_strided((7, 9), (211, 3), 5).fill_(4)
    assert_same(device, host)


def test_elements_in_sticks_of_their_own():
    device = torch.arange(5000.0, device=DEVICE).view(5000, 1).sum(1, keepdim=True)
    host = torch.arange(5000.0).view(5000, 1)
    assert_same(device[4321], host[4321])
    assert_same(device[17:1000:3], host[17:1000:3])
    device[100:300], host[100:300] = 1, 1
    device[7].copy_(torch.tensor([2.5])), host[7].copy_(torch.tensor([2.5]))
    assert_same(device, host)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_padding_stays_clean(dtype):
    """A product reads whole sticks: parts written at their ends leave zeros behind them."""
    host, device = exact(200, 100, dtype=dtype), exact(200, 100, dtype=dtype).to(DEVICE)
    factor = exact(100, 70, dtype=dtype, seed=1).to(DEVICE)
    values = exact(200, 100, dtype=dtype, seed=2)
    for key in [(slice(3, 50),), (7,), (slice(None), slice(64, 100)), (slice(0, 9), slice(90, 97))]:
        host[key] = values[key]
        device[key] = values[key]
        assert_same(device @ factor, host.to(DEVICE) @ factor)


def test_numbers_that_only_bits_tell_apart():
    """Elements next to a written part keep their bits: NaN, infinity, both zeros."""
    host = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 65504.0, 6e-8])
    host = host.repeat(400, 100).half()
    device = host.to(DEVICE)
    before = device.clone()
    device[3, 5] = 1
    device[3, 5] = before[3, 5]
    device[10:20, 1:40] = 2
    device[10:20, 1:40] = before[10:20, 1:40]
    assert torch.equal(device.cpu().view(torch.int16), before.cpu().view(torch.int16))


def test_not_blocking():
    host, device = both("rows", torch.float16)
    pinned = torch.empty(40, 300, dtype=torch.float16).pin_memory()
    pinned.copy_(device[100:140], non_blocking=True)
    torch.spyre.synchronize()
    assert_same(pinned, host[100:140])
    device[200:240].copy_(pinned, non_blocking=True)
    host[200:240] = pinned
    assert_same(device, host)


def moved(tmp_path, work):
    """Bytes that the DMA engine moved."""
    work()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
        work()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    return sum(e["args"]["bytes"] for e in events if e.get("cat") == "gpu_memcpy")


@pytest.mark.parametrize(
    "most, work",
    [
        (128, lambda x: x[77, 123].item()),
        (5 * 128, lambda x: x[77].cpu()),
        (30 * 5 * 128, lambda x: x[7:37].cpu()),
        (30 * 128, lambda x: x[7:37, 64:128].cpu()),
        (5 * 128, lambda x: x[9].copy_(torch.ones(300, dtype=torch.float16))),
        (4 * 128, lambda x: x[9, 3].fill_(1.5)),
        (40 * 128, lambda x: x[7:17, 3:9].copy_(torch.ones(10, 6, dtype=torch.float16))),
    ],
    ids=["item", "row", "rows", "a column of sticks", "write a row", "an element", "a part"],
)
def test_no_more_than_the_part_moves(tmp_path, most, work):
    x = TENSORS["rows"](torch.float16).to(DEVICE)
    assert 0 < moved(tmp_path, lambda: work(x)) <= most
