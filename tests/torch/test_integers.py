# SPDX-License-Identifier: MIT
"""Exact integers on the card, eager and compiled, against the CPU.

Each line is evaluated on int32 or int64 tensors with numbers of all magnitudes, edges and shifts
beyond 31 among them. No fallback is allowed, except where a result of int64 could need more than the
32 bits that the card keeps of it.
"""

import re

import pytest
import torch
from support import DEVICE

import torch_spyre

EDGES = (0, 1, -1, 2**24 + 1, -(2**24) - 1, 2**31 - 1, -(2**31), 7, -7, 65536)

#: a, b: any integers; d: divisors; s: shifts; m, n: bools; h: fp16; r: a row of integers.
BOTH = """
    a == b; a != b; a < b; a > b; a <= b; a >= b; a == 7; a < 16777217; 5 > a; a != r; a > m
    a & b; a | b; a ^ b; ~a; a & 255; a | 1; a ^ -1; a & r; a & m; a.clone().bitwise_and_(b)
    torch.maximum(a, b); torch.minimum(a, r); a.clamp(-7, 1000000007); a.clamp(min=b); a.clamp_max(3)
    a.clone().clamp_(-1, 1); torch.where(m, a, b); torch.where(m, a, 5); torch.where(m, -1, a)
    torch.where(m[0], a, r); a.masked_fill(m, 16777217); a.clone().masked_fill_(m, -9); a.sign()
    a >> s; a >> 3; a >> 40; torch.bitwise_right_shift(a, 1); a.clone().__irshift__(2)
    a // 3; a // -7; a % 3; a % -5; torch.div(a, 7, rounding_mode="floor")
    torch.div(a, -4, rounding_mode="trunc"); a.floor_divide(1000000007); a.clone().remainder_(16777217)
    torch.fmod(a, 3); a.fmod(-1000000007); a.clone().fmod_(16777217)
    a.amax(1); a.amin(0); a.amax((0, 1)); a.max(); a.min(); a[:, 3:20].amax(1); a.t() & b.t()
    a[::2] | b[::2]; (a == b) & (a < r); a.expand(2, 5, 70) & b
"""
INT32 = """
    a + b; a - b; a * b; a + 5; 5 - a; a - 1000000007; a * -3; 3 * a; a + r; a * r; a + m; a * m
    -a; a.abs(); a.add(b, alpha=3); a.sub(r, alpha=-1000000007); torch.rsub(a, 2)
    torch.rsub(a, b, alpha=2); a.clone().add_(b); a.clone().mul_(7); a.clone().sub_(1)
    a << s; a << 3; a << 40; torch.bitwise_left_shift(a, 2); a.clone().__ilshift__(1)
    a // d; a % d; torch.div(a, d, rounding_mode="floor"); torch.div(a, d, rounding_mode="trunc")
    torch.fmod(a, d); a.fmod(-1); 100 % d
    a // -1; a % -1; 100 // d; a.sum(dtype=torch.int32); a.sum(1, dtype=torch.int32)
    a.sum(0, keepdim=True, dtype=torch.int32); (a + b) * 3 - r; a[0] + b; a[:, :1] - b
"""
#: Results of int64 that could need more than 32 bits, which the CPU computes.
WIDE = """
    a + b; a - 1; a * b; -a; a.abs(); a << 3; a // d; a // -1; a.sum(1); a.sum(); a.add(b, alpha=2)
"""
#: Integers beside floats promote to the float.
MIXED = "h + c; h * c; c - h; c * 0.5; h == c; torch.where(m, c, h)"


def lines(text):
    """The expressions of @text."""
    return [line.strip() for part in text.splitlines() for line in part.split(";") if line.strip()]


def integers(size, seed, dtype):
    """Integers of all magnitudes, and edges."""
    generator = torch.Generator().manual_seed(seed)
    value = torch.randint(-(2**31), 2**31, size, generator=generator)
    value = value >> torch.randint(0, 32, size, generator=generator)
    edge = torch.tensor(EDGES)[torch.randint(0, len(EDGES), size, generator=generator)]
    return torch.where(torch.rand(size, generator=generator) < 0.3, edge, value).to(dtype)


def operands(dtype):
    """The names of the expressions, on the CPU."""
    generator = torch.Generator().manual_seed(9)
    size = (5, 70)
    shifts = torch.randint(-2, 36, size, generator=generator).to(dtype)
    divisors = integers(size, 4, dtype)
    return {
        "a": integers(size, 1, dtype),
        "b": torch.where(shifts % 3 == 0, integers(size, 1, dtype), integers(size, 2, dtype)),
        "r": integers((70,), 3, dtype),
        "d": torch.where(divisors == 0, 3, divisors),
        "s": shifts,
        "m": torch.rand(size, generator=generator) > 0.5,
        "c": torch.randint(-100, 100, size, generator=generator).to(dtype),
        "h": torch.randint(-9, 9, size, generator=generator).half(),
    }


def check(line, dtype, run):
    """Compares @line on the card, by @run, with the CPU."""
    host = operands(dtype)
    if dtype == torch.int32 and any(t in line for t in ("/ d", "% d", "(a, d", "/ -1", "% -1")):
        # The quotient of the least integer and -1 is undefined on the CPU, which may trap.
        host["a"] = torch.where(host["a"] == -(2**31), 5, host["a"])
    card = {name: value.to(DEVICE) for name, value in host.items()}
    want = eval(line, {"torch": torch, **host})
    with torch.spyre.no_fallbacks():
        got = run(line, card)
    assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, got.shape)
    assert torch.equal(got.cpu(), want), (got.cpu() != want).nonzero()[:4]


def eager(line, names):
    """Evaluates @line."""
    return eval(line, {"torch": torch, **names})


def compiled(line, names):
    """Evaluates @line compiled, and requires the bits of eager mode."""
    keys = [name for name in names if name in line.replace("torch", "")]
    source = f"lambda {', '.join(keys)}: {line}"
    torch._dynamo.reset()
    work = torch.compile(eval(source, {"torch": torch}))
    given = [names[key] for key in keys]
    got = work(*[t.clone() for t in given])
    assert torch.equal(got.cpu(), eager(line, names).cpu())
    return got


class TestEager:
    @pytest.mark.parametrize("line", lines(BOTH) + lines(INT32))
    def test_int32(self, line):
        check(line, torch.int32, eager)

    @pytest.mark.parametrize("line", lines(BOTH))
    def test_int64(self, line):
        check(line, torch.int64, eager)

    @pytest.mark.parametrize("line", lines(MIXED))
    @pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
    def test_mixed(self, line, dtype):
        check(line, dtype, eager)

    @pytest.mark.parametrize("line", lines(WIDE))
    def test_wide_results_are_the_cpus(self, line):
        """Sums and products of int64 do not wrap on the card: the CPU computes them."""
        names = operands(torch.int64)
        card = {name: value.to(DEVICE) for name, value in names.items()}
        before = sum(torch.spyre.fallbacks().values())
        eager(line, card)
        assert sum(torch.spyre.fallbacks().values()) > before

    def test_small_int64(self):
        """Results that fit in 32 bits are right, on the card and on the CPU."""
        a, b = torch.arange(-50, 50), torch.arange(100) * 3
        x, y = a.to(DEVICE), b.to(DEVICE)
        for name in ("add", "sub", "mul"):
            assert torch.equal(getattr(x, name)(y).cpu(), getattr(a, name)(b))

    def test_sums_of_floats_as_integers(self):
        """The CPU truncates each element, and has no mean of integers."""
        a = torch.tensor([[0.5, 0.5, 1.75], [-2.5, 7.0, 0.25]])
        for x in (a.to(DEVICE), a.half().to(DEVICE)):
            assert x.sum(dtype=torch.int32).item() == a.sum(dtype=torch.int32).item() == 6
            out = torch.empty(2, dtype=torch.int32, device=DEVICE)
            assert torch.sum(x, 1, out=out).tolist() == [1, 5]
            with pytest.raises(RuntimeError, match="could not infer output dtype"):
                x.mean(1, dtype=torch.int32)

    def test_results_beside_numbers(self):
        """A number on the left, if the CPU computes, does not leave the result there."""
        a = torch.tensor([3, -2], device=DEVICE)
        five = torch.tensor(5)
        for got, want in (
            (5 // a, [1, -3]), (five // a, [1, -3]), (5 << a, [40, 0]), (five << a, [40, 0]),
            (torch.div(five, a, rounding_mode="trunc"), [1, -2]),
        ):  # fmt: skip
            assert got.device == a.device and got.tolist() == want

    def test_division_by_zero(self):
        """A divisor of zero is an error as a number; in a tensor, the quotient is -1."""
        a = torch.tensor([5, -5, 0, -(2**31)], dtype=torch.int32).to(DEVICE)
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            a // 0
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            a % 0
        zero = torch.zeros_like(a)
        assert (a // zero).tolist() == [-1] * 4
        assert (a % zero).tolist() == a.tolist()
        assert (a // -1).tolist() == [-5, 5, 0, -(2**31)]

    def test_errors_of_pytorch(self):
        a = torch.ones(4, dtype=torch.int32, device=DEVICE)
        with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
            a.add(a, alpha=1.5)
        with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
            a.add(a, alpha=1.0)
        with pytest.raises(RuntimeError):
            a.add_(0.5)

    def test_many_numbers(self):
        """Numbers that keep changing become data, with the same results."""
        a = integers((33,), 5, torch.int32)
        x = a.to(DEVICE)
        with torch.spyre.no_fallbacks():
            for number in range(-3, 16777230, 1500007):
                assert torch.equal((x + number).cpu(), a + number)
                assert torch.equal((x * number).cpu(), a * number)

    def test_out(self):
        a, b = integers((5, 70), 1, torch.int32), integers((5, 70), 2, torch.int32)
        out = torch.empty(5, 70, dtype=torch.int32, device=DEVICE)
        with torch.spyre.no_fallbacks():
            torch.add(a.to(DEVICE), b.to(DEVICE), out=out)
        assert torch.equal(out.cpu(), a + b)
        part = torch.zeros(9, 70, dtype=torch.int32, device=DEVICE)
        torch.mul(a.to(DEVICE), b.to(DEVICE), out=part[2:7])
        assert torch.equal(part[2:7].cpu(), a * b) and not part[:2].any() and not part[7:].any()


class TestCompiled:
    @pytest.mark.parametrize("line", lines(INT32)[:4] + lines(INT32)[12:14] + lines(BOTH)[:12:3])
    def test_int32(self, line):
        check(line, torch.int32, compiled)

    @pytest.mark.parametrize("line", [
        "(a + b) * 3 - r", "torch.where(a < b, a * 2, b - 1)", "((a >> 3) & 255) == (b & 15)",
        "torch.maximum(a, b).clamp(-7, 1000000007) // 3", "a.masked_fill(m, -1) ^ b", "~a | (b << 2)",
        "a % 7 - a // 7", "(a == b) | m",
    ])
    def test_chains(self, line):
        check(line, torch.int32, compiled)

    @pytest.mark.parametrize("line", [
        "torch.where(a < b, a, r)", "(a & 255) == (b & 255)", "a.masked_fill(m, 5) % 9",
        "torch.minimum(a, b).clamp_min(0) >> 2",
    ])
    def test_int64(self, line):
        check(line, torch.int64, compiled)

    def test_numbers_of_the_host(self):
        """Integers without dims on the host keep all their bits."""
        a, number = integers((5, 70), 1, torch.int64), torch.tensor(16777217)

        def work(a, n):
            return (
                torch.maximum(a, n), a.masked_fill(a > n, n), a & n, a == n, a >> n % 7, a // n,
                a.int() + n, a.int() * n, torch.where(a < 0, n, a), a / n, a < n + 2**33,
            )  # fmt: skip

        for n in number, number.int():
            torch._dynamo.reset()
            got = torch.compile(work)(a.to(DEVICE), n)
            for x, y in zip(got, work(a, n), strict=True):
                assert x.dtype == y.dtype and torch.equal(x.cpu(), y)

    def test_one_kernel(self, said):
        """A chain of integers and bools is one kernel; a sum of int64 is left to eager mode."""
        a, b = (integers((5, 70), seed, torch.int32).to(DEVICE) for seed in (1, 2))

        def chain(a, b):
            return torch.where((a & 255) < b, a * 3 + 1, b // 7)

        assert torch.equal(torch.compile(chain)(a, b), chain(a, b))
        assert re.findall(r"(\d+) kernels", said()) == ["1"]
        torch.compile(lambda x: (x + 1) & 7)(a.long())
        assert "eager aten.add.Tensor" in said() and "on the CPU" in said()

    def test_wide_results(self):
        """Sums of int64 do not wrap in a compiled graph either."""
        a = torch.arange(-50, 50)
        work = torch.compile(lambda x: torch.where(x + 1 > 3, x * 2, x - 7))
        assert torch.equal(work(a.to(DEVICE)).cpu(), torch.where(a + 1 > 3, a * 2, a - 7))


def test_rows_of_the_table():
    """The table says which integers the card computes."""
    rows = {row.schema: row.operation for row in torch_spyre._C._operations()}
    assert rows["add.Tensor"].integers(torch.int32, False) is not None
    assert rows["add.Tensor"].integers(torch.int64, True) is None
    assert rows["eq.Tensor"].integers(torch.int64, False) is not None
    assert rows["exp"].integers(torch.int32, False) is None
