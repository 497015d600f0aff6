# SPDX-License-Identifier: MIT
"""int64 in captured graphs: a replay adds what it finds, so that the card checks what the host
cannot know; and numbers of the host that are constants of a graph."""

import gc

import numpy
import pytest
import torch
from support import DEVICE, python_ok

LEAST, MOST = -(2**31), 2**31 - 1


@pytest.fixture(autouse=True)
def streams():
    yield
    gc.collect()
    torch.accelerator.set_stream(torch.spyre.default_stream(0))


def captured(function):
    """The graph of a call, and its result."""
    graph = torch.accelerator.Graph()
    with torch.Stream(device=DEVICE), graph:
        result = function()
    return graph, result


def refuses(function, text="runs on the CPU"):
    with pytest.raises(RuntimeError, match=text):
        captured(function)


def longs(*numbers):
    return torch.tensor(numbers, device=DEVICE)


SUMS = {
    "number": lambda a, b: a + 3,
    "number before": lambda a, b: 3 - a,
    "negative": lambda a, b: a - (-3),
    "sum": lambda a, b: a + b,
    "difference": lambda a, b: a - b,
    "broadcast": lambda a, b: a[:, None] + b,
    "reversed": lambda a, b: torch.rsub(a, b),
    "bool": lambda a, b: a + (b > 0),
    "int32": lambda a, b: b - a.int(),
    "part": lambda a, b: a[1:] + b[:-1],
    "no dims": lambda a, b: a[0] + b[1],
}


@pytest.mark.parametrize("name", SUMS)
def test_sums(name):
    """Replays add new numbers exactly."""
    first, second = (5, -7, 2**30, MOST - 3, LEAST + 9), (1, 2, -(2**30), 3, -4)
    a, b = longs(*first), longs(*second)
    graph, result = captured(lambda: SUMS[name](a, b))
    for new in (second, first), ((0, -1, 7, 65536, 2**24 + 1), (1, 0, -7, 2**29, 5)):
        host = [torch.tensor(numbers) for numbers in new]
        a.copy_(host[0])
        b.copy_(host[1])
        expected = SUMS[name](*host)
        if ((expected >= LEAST) & (expected <= MOST)).all():
            graph.replay()
            assert torch.equal(result.cpu(), expected)


def test_in_place():
    """Each replay adds to the numbers that the one before has left."""
    x, step = torch.zeros(70, dtype=torch.int64, device=DEVICE), longs(2)
    graph, _ = captured(lambda: x.add_(1).add_(step))
    for n in range(1, 6):
        graph.replay()
        assert torch.equal(x.cpu(), torch.full((70,), 3 * n))
    step.fill_(-4)
    graph.replay()
    assert torch.equal(x.cpu(), torch.full((70,), 12))


#: Results at the ends of 32 bits, and the first ones beyond them.
EDGES = [
    ("add", MOST, 0), ("add", MOST - 1, 1), ("add", MOST, 1), ("add", LEAST, -1), ("add", LEAST, 0),
    ("add", LEAST, MOST), ("add", MOST, MOST), ("add", LEAST, LEAST), ("add", 2**30, 2**30),
    ("sub", MOST, -1), ("sub", MOST - 1, -1), ("sub", LEAST, 1), ("sub", 0, LEAST),
    ("sub", -1, LEAST), ("sub", LEAST, LEAST), ("sub", -2, MOST), ("sub", LEAST, MOST),
    ("sub", -1, MOST),
]  # fmt: skip


def test_edges():
    """A result beyond 32 bits is a fault and never another number."""
    x, y = longs(0, 0), longs(0, 0)
    graphs = {name: captured(lambda name=name: getattr(x, name)(y)) for name in ("add", "sub")}
    for name, a, b in EDGES:
        expected = a + b if name == "add" else a - b
        x[1], y[1] = a, b
        graph, result = graphs[name]
        graph.replay()
        if LEAST <= expected <= MOST:
            assert result.tolist() == [0, expected], (name, a, b)
        else:
            with pytest.raises(torch.AcceleratorError, match="0_index_select"):
                torch.accelerator.synchronize()
            torch.spyre.reset()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_bools(dtype):
    """Integers become bools without the host, parts of tensors as well."""
    x = torch.zeros(3, 70, dtype=dtype, device=DEVICE)
    bools = torch.zeros(70, 3, dtype=torch.bool, device=DEVICE)

    def work():
        bools.copy_(x.t())
        return x.bool(), x[1:, 3:40].to(torch.bool)

    graph, (whole, part) = captured(work)
    host = torch.tensor([0, 1, -1, 2**24, 65536, LEAST, 0], dtype=dtype).repeat(30).view(3, 70)
    x.copy_(host)
    graph.replay()
    for got, want in (whole, host), (part, host[1:, 3:40]), (bools, host.t()):
        assert torch.equal(got.cpu(), want.bool())


class TestKnown:
    """A capture follows what it has written itself, and nothing else."""

    def test_written_in_the_capture(self):
        def work():
            p = torch.arange(40, device=DEVICE) + 3
            return p * 100 + torch.ones_like(p).cumsum(0)

        graph, result = captured(work)
        graph.replay()
        assert torch.equal(result.cpu(), (torch.arange(40) + 3) * 100 + torch.arange(1, 41))

    def test_from_outside(self):
        """A copy before the replay can bring any number, so that a product is refused."""
        x = longs(1, 2, 3)
        refuses(lambda: x * 2)
        refuses(lambda: x.sum())

    def test_parts(self):
        x = longs(1, 2, 3)

        def work():
            x[:2] = 5
            return x * 2

        refuses(work)

    def test_read_before_it_is_written(self):
        """Memory of the capture keeps what the last replay wrote."""

        def work():
            x = torch.empty(9, dtype=torch.int64, device=DEVICE)
            return x * 2

        refuses(work)

    def test_another_capture(self):
        _, y = captured(lambda: torch.arange(40, device=DEVICE))
        refuses(lambda: y * 2)

    def test_eager_mode_afterwards(self):
        x = longs(1, 2, 3)
        graph, y = captured(lambda: x.zero_() + 1)
        graph.replay()
        for tensor in x, y:
            with pytest.raises(RuntimeError, match="ran on the CPU"), torch.spyre.no_fallbacks():
                tensor + 1


class TestConstants:
    def test_numbers_of_a_list(self):
        """The numbers of torch.tensor() are constants of the graph: the program cannot change them."""

        def work(x):
            x[torch.tensor([-1, 1], device=DEVICE)] = torch.tensor([7.5, 2.5], device=DEVICE)

        x = torch.zeros(4, device=DEVICE)
        graph, _ = captured(lambda: work(x))
        gc.collect()
        others = [torch.full((2,), 9).pin_memory() for _ in range(8)]
        graph.replay()
        assert x.tolist() == [0, 2.5, 0, 7.5] and len(others) == 8

    def test_numbers_that_may_change(self):
        host, array = torch.ones(4), numpy.ones(4, "float32")
        refuses(lambda: host.to(DEVICE), "non_blocking=True")
        refuses(lambda: torch.as_tensor(array, device=DEVICE), "non_blocking=True")
        refuses(lambda: torch.zeros(4, device=DEVICE).copy_(host), "non_blocking=True")


def test_is_capturing():
    seen = []
    assert not torch.spyre.is_current_stream_capturing()
    captured(lambda: seen.append(torch.spyre.is_current_stream_capturing()))
    assert seen == [True] and not torch.spyre.is_current_stream_capturing()


def test_transformers_knows():
    """Models then make masks without reading them."""
    python_ok(
        "from transformers.utils.import_utils import is_tracing\n"
        "assert not is_tracing()\n"
        "with torch.Stream(device='spyre'), torch.accelerator.Graph():\n"
        "    assert is_tracing()\n"
        "assert not is_tracing()\n"
    )
