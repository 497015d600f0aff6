# SPDX-License-Identifier: MIT
"""Sums of int64 on the card, where the host knows that they fit in 32 bits.

The range of each int64 tensor is followed from one operation to the next. The card computes where
the range of a result fits, the CPU everything else: the numbers are right in either case, which
a random walk over operations, views and ways to write a tensor shows with numbers near the ends.
"""

import warnings

import pytest
import torch
from support import DEVICE, assert_same

LEAST, MOST = -(2**31), 2**31 - 1

#: p: positions, t: tokens, m: a mask of 0 and 1, b: bools, e: the largest number.
KNOWN = """
    p + 1; p + p; p - 1; 1 - m; p * 2; p * m; -p; (p - 3).abs(); p.add(t, alpha=-3); p.sub(t, alpha=2)
    t * m + 0 * (1 - m); p.sum(); p.sum(-1); m.sum(-1, keepdim=True); m.cumsum(-1) - 1; p + b
    b.cumsum(1) + t; p.clone().add_(1); p.clone().mul_(m); torch.rsub(p, 5); torch.cat([p, t], 1) + 1
    torch.where(b, p, t) + 1; p.masked_fill(b, 7) * 3; p.clamp(2, 9) - 2; p[:, 3:9] + 1; p.t() + 1
    p.expand(2, 3, 40) + 1; p.repeat(2, 1) + 1; p % 7 + 1; p // 3 + 1; p.max() + 1; p.amax(1) + 1
    h.argmax(-1) + 1; h.topk(3).indices + 1; p.index_select(0, t[0, :2] % 3) + 1; p[t[0] % 3] + 1
    torch.ones_like(p) + p; torch.full_like(p, 9) * 3; p.new_zeros(4) + 1; torch.arange(9, device=p.device) + 1
    p.clone() + 1; (p + 1).view(-1) + 1; b.long() * 5; p.prod(0); m.cumprod(1); p.int().long() & 3
    e - 1; e - m; e * m; e + 0; -e; torch.minimum(e, p) + 1; p.new_tensor([3, 4]) * 2; (p > 3).sum(1) * 2
    p[m[:, :1], h.argmax(1)]; p[p[:, 1:2] % 3, p[:1] % 40]; p.flip(1) + 1; p.roll(3, 1) + 1
    p.sort(-1, descending=True).values + 1; p.gather(1, t % 40) + 1; torch.stack([p, t]) + 1
"""
#: Their results could exceed 32 bits, or the host has not seen the numbers.
UNKNOWN = "e + 1; e * 2; -e - 2; e + m; e.sum(); p * 100000000; (p * 50000000).cumsum(1); p.int().long() + 1"


def names(device):
    generator = torch.Generator().manual_seed(2)
    found = {
        "p": torch.arange(120).view(3, 40),
        "t": torch.randint(0, 1000, (3, 40), generator=generator),
        "m": torch.randint(0, 2, (3, 40), generator=generator),
        "h": torch.randn(3, 40, generator=generator).half(),
        "e": torch.full((3, 40), MOST),
    }
    found["b"] = found["m"] == 1
    return {"torch": torch, **{name: value.to(device) for name, value in found.items()}}


def lines(text):
    return [line.strip() for line in text.replace("\n", ";").split(";") if line.strip()]


def test_known():
    wrong = []
    for line in lines(KNOWN):
        try:
            with torch.spyre.no_fallbacks():
                assert_same(eval(line, names(DEVICE)), eval(line, names("cpu")))  # noqa: S307
        except (AssertionError, RuntimeError) as error:
            wrong.append(f"{line}: {str(error).strip().splitlines()[0]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("line", lines(UNKNOWN))
def test_unknown(line):
    """The CPU computes these, whose results may then be cut to 32 bits with a warning."""
    card = names(DEVICE)
    before = sum(torch.spyre.fallbacks().values())
    eval(line, card)  # noqa: S307
    assert sum(torch.spyre.fallbacks().values()) > before


def write(x, number, generator):
    """Sets a random part of @x in one of the ways that there are."""
    way = int(torch.randint(0, 6, (), generator=generator))
    low = int(torch.randint(0, x.numel(), (), generator=generator))
    part = x.view(-1)[low:]
    if way == 0:
        part.fill_(number)
    elif way == 1:
        part.copy_(torch.full((part.numel(),), number))
    elif way == 2:
        x.masked_fill_(x == x.view(-1)[low], number)
    elif way == 3:
        x.view(-1)[low] = number
    elif way == 4:
        x.view(-1).index_put_((torch.tensor([low], device=x.device),), x.new_full((1,), number))
    else:
        x.view(-1).scatter_(0, torch.tensor([low], device=x.device), number)


STEPS = [
    lambda x, y, n: x + y, lambda x, y, n: x - y, lambda x, y, n: x * y, lambda x, y, n: x + n,
    lambda x, y, n: n - x, lambda x, y, n: x * 3, lambda x, y, n: -x, lambda x, y, n: x.abs(),
    lambda x, y, n: torch.maximum(x, y), lambda x, y, n: torch.where(x > y, x, y - 1),
    lambda x, y, n: torch.cat([x[:1], y[1:]]), lambda x, y, n: x.clamp(-5, n) + 1,
    lambda x, y, n: x.cumsum(1), lambda x, y, n: x.flip(0), lambda x, y, n: x.t().clone().t(),
    lambda x, y, n: x.sum(1, keepdim=True).expand(2, 5).clone(), lambda x, y, n: x % 7,
    lambda x, y, n: x // 9, lambda x, y, n: x.sort(1).values, lambda x, y, n: x.add(y, alpha=-2),
    lambda x, y, n: x.clone().add_(y).mul_(2), lambda x, y, n: x.clone(),
    lambda x, y, n: x.prod(1, keepdim=True) + y.clamp(0, 9), lambda x, y, n: x.cumprod(0),
]  # fmt: skip
NUMBERS = (0, 1, -1, 7, 65536, 2**30, MOST, LEAST, 3, -40000)


def fits(x):
    return bool(((x >= LEAST) & (x <= MOST)).all())


def test_random_walk():
    """Results that fit in 32 bits are right after any sequence of operations and writes."""
    generator = torch.Generator().manual_seed(7)

    def pick(items):
        return items[int(torch.randint(0, len(items), (), generator=generator))]

    pool = [(x, x.to(DEVICE)) for x in (torch.arange(10).view(2, 5), torch.full((2, 5), 2**30))]
    on_card = 0
    for _ in range(300):
        (a, x), (b, y), number = pick(pool), pick(pool), pick(NUMBERS)
        if pick((True, False, False)):
            state = generator.get_state()
            write(a, number, generator)
            generator.set_state(state)
            write(x, number, generator)
            assert fits(a) and torch.equal(x.cpu(), a), (number, x.cpu(), a)
            continue
        step = pick(STEPS)
        expected, before = step(a, b, number), sum(torch.spyre.fallbacks().values())
        if fits(expected):
            result = step(x, y, number)
            assert torch.equal(result.cpu(), expected), (STEPS.index(step), a, b, number)
            on_card += sum(torch.spyre.fallbacks().values()) == before
            pool = [*pool[-7:], (expected, result)]
    assert on_card > 100


class TestForgotten:
    """After a write that the plugin does not see, it assumes nothing about the numbers."""

    def refuses(self, x):
        with pytest.raises(RuntimeError, match="ran on the CPU"), torch.spyre.no_fallbacks():
            x + 1

    def test_replays(self):
        x = torch.zeros(70, dtype=torch.int64, device=DEVICE)
        y = torch.full((70,), MOST, device=DEVICE)
        graph = torch.accelerator.Graph()
        with graph:
            x.copy_(y)
        x.zero_()
        graph.replay()
        self.refuses(x)
        x.zero_()
        self.refuses(x)

    def test_dlpack(self):
        x = torch.zeros(70, dtype=torch.int64, device=DEVICE)
        y = torch.from_dlpack(x)
        y.fill_(MOST)
        self.refuses(x)
        self.refuses(y)

    def test_pinned_memory(self):
        """Work that is queued may write pinned memory before it is copied."""
        pinned = torch.zeros(70, dtype=torch.int64).pin_memory()
        x = torch.full((70,), MOST, device=DEVICE)
        pinned.copy_(x, non_blocking=True)
        y = torch.empty(70, dtype=torch.int64, device=DEVICE)
        y.copy_(pinned, non_blocking=True)
        self.refuses(y)
        assert_same(y, torch.full((70,), MOST))

    def test_other_dtype(self):
        x = torch.zeros(70, dtype=torch.int64, device=DEVICE)
        x.view(torch.int32).fill_(1)
        self.refuses(x)
        assert_same(x, torch.full((70,), 2**32 + 1).int().long())


def converted(x, warning):
    """Returns @x as int64 of the card, which must warn of numbers that do not fit or must not."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = x.to(DEVICE).long().cpu()
    said = [str(w.message) for w in seen if "does not fit the 32 bits" in str(w.message)]
    assert bool(said) == warning, said
    return result


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_floats_beyond_32_bits(dtype):
    """A conversion cuts them with a warning, as a copy from the host does, and keeps the others."""
    x = torch.tensor([1.5, -2.75, 3e9, -(2.0**31), 2.0**40]).to(dtype)
    assert_same(converted(x, True), x.long().int().long())
    assert_same(converted(x[[0, 1, 3]], False), x[[0, 1, 3]].long())
    endless = torch.tensor([2.0, float("inf"), -float("inf"), float("nan")])
    assert converted(endless.to(dtype), False)[0] == 2
