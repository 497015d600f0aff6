# SPDX-License-Identifier: MIT
"""Infinities and NaN, from wherever they come: docs/numerics.md has the codes of DL16."""
import io

import pytest
import torch
import torch.nn.functional as F

from support import DEVICE, assert_same

INF = float("inf")
NAN = float("nan")
DTYPES = [torch.float16, torch.bfloat16, torch.float32]
FLOATS = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d).split(".")[-1])
MODES = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])


def run(work, compiled, *inputs):
    """The result of @work on copies of tensors on the card."""
    torch._dynamo.reset()
    return (torch.compile(work) if compiled else work)(*(x.to(DEVICE) for x in inputs))


def check(work, compiled, *inputs):
    """The same on the card as on the host, where the numbers are exact in every format."""
    assert_same(run(work, compiled, *inputs), work(*inputs))


def special(dtype):
    return torch.tensor([INF, -INF, NAN, 0.0, -0.0, 1.0, -2.5, 1024.0], dtype=dtype)


class TestCopies:
    @FLOATS
    def test_there_and_back(self, dtype):
        x = special(dtype)
        assert_same(x.to(DEVICE), x)
        assert_same(torch.tensor(x.tolist(), dtype=dtype, device=DEVICE), x)
        card = torch.zeros(8, dtype=dtype, device=DEVICE)
        card.copy_(x)
        assert_same(card, x)
        assert_same(card.clone(), x)
        assert_same(card[::2].contiguous(), x[::2])
        part = torch.zeros(3, 8, dtype=dtype, device=DEVICE)
        part[1] = x.to(DEVICE)
        assert_same(part[1], x)

    @FLOATS
    def test_every_fp16_that_is_special(self, dtype):
        """All codes of fp16: infinities stay infinite, NaN NaN, and nothing else becomes NaN."""
        x = torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16).view(torch.float16)
        x = x.to(dtype)
        back = x.to(DEVICE).cpu()
        assert torch.equal(back.isnan(), x.isnan())
        assert (back[x == INF] == INF).all() and (back[x == -INF] == -INF).all()

    @FLOATS
    def test_load(self, dtype):
        file = io.BytesIO()
        torch.save(special(dtype), file)
        file.seek(0)
        card = torch.load(file, map_location=DEVICE)
        assert_same(card, special(dtype))
        file = io.BytesIO()
        torch.save(card, file)
        file.seek(0)
        assert_same(torch.load(file, map_location="cpu"), special(dtype))

    @pytest.mark.parametrize("after", DTYPES)
    @FLOATS
    @MODES
    def test_casts_on_the_card(self, dtype, after, compiled):
        check(lambda x: x.to(after), compiled, special(dtype))

    @MODES
    def test_cast_that_overflows(self, compiled):
        x = torch.tensor([1e30, -1e30, 3e38, 1.0])
        check(lambda x: x.half().float(), compiled, x)

    @FLOATS
    def test_constants(self, dtype):
        for value in (INF, -INF):
            assert_same(torch.full((5,), value, dtype=dtype, device=DEVICE),
                        torch.full((5,), value, dtype=dtype))
            x = torch.zeros(4, 70, dtype=dtype, device=DEVICE)
            x[1:3, 5:] = value
            host = torch.zeros(4, 70, dtype=dtype)
            host[1:3, 5:] = value
            assert_same(x, host)
            # A constant is infinite to a kernel as well: inf - inf is NaN.
            assert (x[1, 5:] - x[1, 5:]).isnan().all()


class TestArithmetic:
    @FLOATS
    @MODES
    def test_produced(self, dtype, compiled):
        zero = torch.tensor([0.0, -0.0, 1.0, -1.0], dtype=dtype)
        check(torch.log, compiled, zero.abs())
        check(lambda x: -1 / x, compiled, zero)
        check(torch.reciprocal, compiled, zero)
        check(torch.rsqrt, compiled, zero.abs())
        check(lambda a, b: a / b, compiled, zero.neg(), zero)
        check(lambda x: (x * 1e30) * 1e30, compiled, zero)

    @FLOATS
    @MODES
    def test_sums_products(self, dtype, compiled):
        a = torch.tensor([INF, INF, -INF, INF, -INF, 2.0, NAN, 0.0], dtype=dtype)
        b = torch.tensor([INF, -INF, -INF, 2.0, -2.0, INF, INF, INF], dtype=dtype)
        for work in (torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.minimum):
            check(work, compiled, a, b)
        check(lambda a: a + INF, compiled, a)
        check(lambda a: a * -INF, compiled, a)
        check(lambda a: a.clamp(-INF, 1.0), compiled, a)
        check(lambda a: a.clamp(max=-INF), compiled, a)
        check(lambda a: a.clamp(1.0, INF), compiled, a)

    @FLOATS
    @MODES
    def test_functions_at_the_ends(self, dtype, compiled):
        x = special(dtype)[:5]
        for work in (torch.exp, torch.neg, torch.abs, torch.relu, torch.sigmoid, torch.tanh,
                     torch.sqrt, torch.floor, torch.ceil, torch.round, torch.sign):
            check(work, compiled, x)
        assert_same(run(F.silu, compiled, torch.tensor([INF], dtype=dtype)),
                    torch.tensor([INF], dtype=dtype))

    @FLOATS
    @MODES
    def test_comparisons(self, dtype, compiled):
        a = torch.tensor([INF, -INF, INF, NAN, 1.0, -INF, 60000.0], dtype=dtype)
        b = torch.tensor([INF, -INF, -INF, NAN, INF, 1.0, INF], dtype=dtype)
        for work in (torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge):
            check(work, compiled, a, b)
        for work in (torch.isinf, torch.isnan, torch.isfinite, torch.isposinf, torch.isneginf):
            check(work, compiled, a)
        check(lambda a: a == -INF, compiled, a)
        check(lambda a: a < INF, compiled, a)

    @FLOATS
    @MODES
    def test_where(self, dtype, compiled):
        x = special(dtype)
        mask = torch.arange(8) % 2 == 0
        check(lambda x, m: torch.where(m, x, -INF), compiled, x, mask)
        check(lambda x, m: x.masked_fill(m, INF), compiled, x, mask)
        check(lambda x, m: torch.where(m, x, x.neg()), compiled, x, mask)

    def test_a_call_that_keeps_its_value_changing(self):
        """A number that is an operand, not a constant, is as infinite."""
        x = torch.tensor([1.0, -1.0], dtype=torch.float16, device=DEVICE)
        for i in range(8):
            assert_same(x * float(i + 1), x.cpu() * float(i + 1))
        assert_same(x * INF, torch.tensor([INF, -INF], dtype=torch.float16))


class TestReductions:
    @pytest.mark.parametrize("dim", [0, 1])
    @FLOATS
    @MODES
    def test_largest_and_smallest(self, dtype, dim, compiled):
        x = torch.arange(4 * 70).reshape(4, 70).sub(100).to(dtype)
        x[0, 3] = INF
        x[1, 69] = -INF
        x[2] = -INF
        x[:, 5] = INF
        x[:, 6] = -INF
        for work in (torch.amax, torch.amin, torch.sum):
            check(lambda x: work(x, dim), compiled, x)
        x[3, 8] = NAN
        check(lambda x: x.amax(dim), compiled, x)
        check(lambda x: x.amin(dim), compiled, x)

    @FLOATS
    def test_rows_of_infinities(self, dtype):
        for value in (INF, -INF):
            x = torch.full((3, 100), value, dtype=dtype)
            for work in (torch.amax, torch.amin, torch.sum, torch.mean, torch.logsumexp):
                assert_same(work(x.to(DEVICE), 1), work(x, 1))
            assert_same(x.to(DEVICE).abs().max(), x.abs().max())

    @FLOATS
    def test_places(self, dtype):
        x = torch.tensor([[3.0, -INF, INF, 1.0], [-INF, 2.0, 5.0, 1.0]], dtype=dtype)
        card = x.to(DEVICE)
        assert_same(card.argmax(-1), x.argmax(-1))
        assert_same(card.argmin(-1), x.argmin(-1))
        for largest in (True, False):
            got, want = card.topk(3, largest=largest), x.topk(3, largest=largest)
            assert_same(got.values, want.values)
            assert_same(got.indices, want.indices)
        for result, expected in zip(card.sort(-1), x.sort(-1)):
            assert_same(result, expected)
        for result, expected in zip(card.max(-1), x.max(-1)):
            assert_same(result, expected)


class TestMatmul:
    @FLOATS
    @MODES
    def test_rows(self, dtype, compiled):
        a = torch.ones(3, 70, dtype=dtype)
        b = torch.ones(70, 5, dtype=dtype)
        a[0, 3], a[1, 4] = INF, -INF
        b[4, 1] = 0
        check(torch.matmul, compiled, a, b)
        a[2, 0], b[1, 2] = INF, -INF
        check(torch.matmul, compiled, a, b)


class TestMovement:
    @FLOATS
    @MODES
    def test_transpose(self, dtype, compiled):
        x = torch.randn(70, 130).to(dtype).bfloat16().to(dtype)
        x[0, 0], x[1, 69], x[69, 129], x[3, 64] = INF, -INF, NAN, NAN
        check(lambda x: x.t().contiguous(), compiled, x)
        check(lambda x: torch.cat([x.t(), x.t()], 0), compiled, x)
        check(lambda x: x.t() + 0.0, compiled, x)


class TestMasks:
    @staticmethod
    def mask(size, dtype):
        return torch.full((size, size), -INF, dtype=dtype).triu(1)

    @pytest.mark.parametrize("size", [4, 65, 200])
    @FLOATS
    @MODES
    def test_softmax(self, dtype, size, compiled):
        """A mask that the host made and that was copied."""
        scores = torch.randn(size, size, generator=torch.Generator().manual_seed(1)).to(dtype)
        got = run(lambda s, m: (s + m).softmax(-1), compiled, scores, self.mask(size, dtype)).cpu()
        want = (scores.float() + self.mask(size, torch.float32)).softmax(-1)
        assert got.isfinite().all()
        assert (got[want == 0] == 0).all()
        tolerance = 1e-5 if dtype == torch.float32 else 1e-2
        torch.testing.assert_close(got.float(), want, rtol=tolerance, atol=tolerance)

    @FLOATS
    @MODES
    def test_a_mask_that_is_added_twice(self, dtype, compiled):
        """-inf and -inf is -inf."""
        mask = self.mask(70, dtype)
        got = run(lambda m: (m + m).softmax(-1), compiled, mask)
        assert_same(got.cpu() == 0, mask == -INF)

    @FLOATS
    @MODES
    def test_attention(self, dtype, compiled):
        generator = torch.Generator().manual_seed(2)
        q, k, v = (torch.randn(1, 2, 70, 64, generator=generator).to(dtype) for _ in range(3))
        got = run(lambda *t: F.scaled_dot_product_attention(*t[:3], attn_mask=t[3]), compiled,
                  q, k, v, self.mask(70, dtype)).cpu().float()
        want = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
        tolerance = 1e-4 if dtype == torch.float32 else 2e-2
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)

    @FLOATS
    @MODES
    def test_a_row_that_is_masked_whole(self, dtype, compiled):
        x = torch.zeros(3, 70, dtype=dtype)
        x[1] = -INF
        got = run(lambda x: x.softmax(-1), compiled, x).cpu()
        assert got[1].isnan().all() and got[[0, 2]].isfinite().all()

    def test_masked_functions(self):
        x = torch.randn(3, 70).half()
        mask = torch.rand(3, 70) > 0.3
        for name in ("amax", "amin"):
            work = getattr(torch.masked, name)
            host = x.to(DEVICE).cpu()
            assert_same(work(x.to(DEVICE), 1, mask=mask.to(DEVICE)), work(host, 1, mask=mask))
        got = torch.masked.softmax(x.to(DEVICE), 1, mask=mask.to(DEVICE)).cpu()
        want = torch.masked.softmax(x.float(), 1, mask=mask)
        assert torch.equal(got.isnan(), want.isnan())


def as_on_the_cpu(function, dtype):
    """Numbers, NaN, and the signs of infinities and zeros."""
    x = torch.tensor([1.0, -2.0, 0.0, torch.inf, -torch.inf], dtype=dtype)
    have, want = function(x.to(DEVICE)).cpu(), function(x.float()).to(dtype)
    torch.testing.assert_close(have, want, rtol=0, atol=0, equal_nan=True)
    number = ~want.isnan()
    assert torch.equal(have.signbit()[number], want.signbit()[number]), (have, want)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_a_number_keeps_the_sign_of_zero(dtype):
    for function in (
        lambda x: x / -0.0,
        lambda x: x * -0.0,
        lambda x: x * -0.0 + -0.0,
        lambda x: x.masked_fill(x > 0, -0.0),
    ):
        as_on_the_cpu(function, dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_floors_of_infinities(dtype):
    for other in (2.0, -2.0, torch.inf, -torch.inf, 0.0):
        as_on_the_cpu(lambda x, b=other: torch.floor_divide(x, b), dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_powers_of_infinities(dtype):
    for exponent in (3, -2, -3):
        as_on_the_cpu(lambda x, e=exponent: x**e, dtype)
    for exponent in (0.1, -0.1):
        as_on_the_cpu(lambda x, e=exponent: torch.where(x == -2, x, x**e), dtype)
