# SPDX-License-Identifier: MIT
"""The public table's operations run on the card in all their usual forms.

Each line is evaluated in each dtype with no fallback allowed, and compared with the CPU in
fp32 within a few steps of the format. A form that the builder refuses counts as a fallback.
"""

import pytest
import torch
from support import DEVICE, assert_same, dl16, exact
from torch.nn import functional as F

DTYPES = [torch.float16, torch.float32, torch.bfloat16]
STEP = {torch.float32: 2.0**-20, torch.float16: 2.0**-9, torch.bfloat16: 2.0**-8}

FORMS = {
    "arithmetic": """
        x + y; x + 2.5; 2 - x; x.add(y, alpha=2); x.sub(y, alpha=0.5); x.clone().add_(y)
        x.clone().add_(y, alpha=0.25); x * y; x * 2; x.clone().mul_(y); x / (y.abs() + 1)
        x / 4; 1 / (x.abs() + 1); x.clone().div_(2); x + y[0]; x + y[:, :1]; x[:1] + y
        x + y[0, 0]; torch.rsub(x, y); torch.rsub(x, 1.0); x[::2] + y[::2]; x.t() * y.t()
        x.expand(2, 5, 70) + y; torch.maximum(x, y); torch.minimum(x, y); x.clamp(-0.5, 0.5)
        x.clamp(min=y); x.clamp(y, 1 + y); x.clamp_min(0.25); x.clone().clamp_(0, 1)
        torch.div(x, y, rounding_mode="floor"); torch.div(x, y, rounding_mode="trunc"); x // 2
        x.round(); x.trunc(); torch.fmod(x, y); torch.fmod(x, 0.75); x % y; x % 0.75; 2 % y
        torch.remainder(x, -y); x.clone().fmod_(y); x.clone().remainder_(0.5); torch.addcmul(x, x, y, value=0.5)
        torch.addcdiv(x, x, y.abs() + 1); x.lerp(y, 0.25)""",
    "functions": """
        x.abs(); -x; x.exp(); (x.abs() + 1).log(); x.abs().sqrt(); (x.abs() + 1).rsqrt()
        (x.abs() + 1).reciprocal(); x.tanh(); x.sin(); x.cos(); torch.erf(x); x.floor(); x.ceil(); x.sign(); x.sgn()
        x.square(); x.clone().exp_(); x**2; x**3; (x.abs() + 1) ** 0.5; x.abs() ** 1.5
        x.abs() ** y; torch.pow(x, y.round()); 2**x; x.sign() ** 65; x.clone().pow_(y.round())
        x.clone().pow_(2); F.silu(x); F.relu(x); F.relu(x.clone(), inplace=True); F.relu6(x)
        x.sigmoid(); F.softplus(x); F.mish(x); F.gelu(x); F.gelu(x, approximate="tanh")
        F.leaky_relu(x); F.hardtanh(x); F.logsigmoid(x); F.softsign(x); F.normalize(x)
        F.cosine_similarity(x, y)""",
    "choices": """
        x == y; x != y; x > y; x < y; x >= y; x <= y; x == 1; x > 0.5; 0.5 > x; x.isnan()
        x.isinf(); x.isfinite(); x.logical_not(); x.logical_and(y); ~b; b & c; b | c; b ^ c
        b.logical_or(c); b.clone().logical_and_(c); torch.where(b, x, y)
        torch.where(b, x, 0.0); torch.where(b, 1.0, x); torch.where(b, x, y[0])
        x.masked_fill(b, 0.0); x.clone().masked_fill_(b[0], -1.0); b.any(); b.all(); b.any(1)
        b.all(0); b.any(-1, keepdim=True); x.any(1); x.all(); b.sum(); b.sum(1)
        b.sum(0, keepdim=True); b.to(x.dtype); x.bool()""",
    "reductions": """
        x.sum(); x.sum(0); x.sum(1); x.sum(-1, keepdim=True); x.sum((0, 1))
        x.sum(1, dtype=torch.float32); x.mean(); x.mean(0); x.mean(1, keepdim=True)
        x.mean(1, dtype=torch.float32); x.t().sum(0); x.max(); x.min(); x.max(1).values
        x.min(0).values; x.max(1, keepdim=True).indices; x.amax(1); x.amin((0, 1)); x.amax()
        x.argmax(); x.argmax(1); x.argmin(0, keepdim=True); x.topk(3).values
        x.topk(3).indices; x.topk(2, dim=0).values; x.topk(3, largest=False).values
        x.topk(1).indices; x.var(); x.std(1); x.var(0, keepdim=True); torch.var_mean(x, 1)[0]
        x.norm(); x.norm(dim=1); torch.linalg.vector_norm(x, dim=1, keepdim=True); x.norm(1)
        x[:, 3:50].sum(1); x.softmax(1); x.softmax(0); x.softmax(-1, dtype=torch.float32)
        x.log_softmax(1); x.log_softmax(0); x.logsumexp(1)""",
    "orders": """
        x.tril(); x.triu(1); x.tril(-3); b.triu(); x[None].tril(200); x.triu(-200); x.flip(0); x.flip(0, 1); b.flip(1)
        x.roll(3, 1); x.roll((1, -2), (0, 1)); x.roll(9); x.cumsum(0); x.cumsum(1); x.cumsum(-1, dtype=torch.float32)
        x[0].cumsum(0); b.cumsum(1); x.clone().cumsum_(1); (1 + x / 64).cumprod(1); b.cumprod(0)
        (1 + x / 64).prod(1); x[:, :9].prod(0, keepdim=True); x[0, :5].prod(); b.prod(1)
        x.sort(1).values; x.sort(dim=0, descending=True, stable=True).indices; x.sort(stable=True).values; x.argsort(dim=1, stable=True); b.sort(dim=1, stable=True).indices
        torch.isin(x, x[0]); torch.isin(x, x[0, :3], invert=True); F.unfold(image, 2, stride=2)
        F.unfold(image, (4, 2), stride=(4, 2)); x.clone().masked_scatter_(b, y); x.masked_scatter(b[:, :1], y)
        F.conv3d(image[None].expand(2, 1, 3, 8, 8), taps[:, :1, None, :2, :2], w[:4], stride=(1, 2, 2))
        F.pad(x, (1, 2, 0, 3), value=2.0); F.pad(x, (-1, 2)); F.pad(b, (1, 1)); x.repeat_interleave(3, 0)
        x.repeat_interleave(2)""",
    "layers": """
        x @ y.t(); torch.mm(x, y.t()); torch.bmm(x[None], y.t()[None]); F.linear(x, y, w[:5])
        F.linear(x, y); torch.addmm(w[:5], x, y.t()); torch.mv(x, w); torch.dot(w, w)
        torch.addmv(w[:5], x, w); torch.outer(w, w); torch.einsum("ij,kj->ik", x, y)
        F.layer_norm(x, (70,)); F.layer_norm(x, (70,), w, w); F.layer_norm(x, (70,), w)
        F.layer_norm(x, (5, 70)); F.rms_norm(x, (70,), w); F.rms_norm(x, (70,))
        F.group_norm(x[None], 5); F.conv2d(image, taps)
        F.conv2d(image, taps, w[:4], padding=1); F.conv2d(image, taps, taps[:, 0, 0, 0])
        F.conv2d(image, taps, stride=2); F.conv2d(image, taps, dilation=2)
        F.max_pool2d(image, 2); F.max_pool2d(image, 3, 2, 1); F.avg_pool2d(image, 2)
        F.adaptive_avg_pool2d(image, 1); F.avg_pool2d(image, 3, 2, 1, count_include_pad=False)
        F.batch_norm(image, w[:3], w[:3].abs() + 1)
        F.batch_norm(image, w[:3], w[:3].abs() + 1, w[:3], w[:3]); F.mse_loss(x, y)
        F.l1_loss(x, y); F.mse_loss(x, y, reduction="none")
        F.scaled_dot_product_attention(q, q, q)
        F.scaled_dot_product_attention(q, q, q, is_causal=True)
        F.scaled_dot_product_attention(q, q[:, :1], q[:, :1], enable_gqa=True)""",
    "views": """
        x.t().contiguous(); torch.cat([x, y]); torch.cat([x, y], 1); torch.stack([x, y])
        torch.stack([x, y], -1); x.repeat(2, 1); x.unbind()[1].clone()
        x.unfold(1, 5, 3).clone(); x.reshape(70, 5); x.flatten(); x.split(2)[1].clone()
        x.expand(2, 5, 70).clone(); x.narrow(1, 3, 20).clone(); x.select(0, 1).clone()
        x[None, :, 5]; x[::2].clone(); x.tile(2); x.repeat_interleave(2, 0)
        x.chunk(2, 1)[1].clone(); F.pad(x, (1, 2)); F.pad(x, (1, 2), value=3.0); x.new_ones(3)
        torch.zeros_like(x); torch.full_like(x, 2); x.clone().fill_(3); x.clone().fill_(w[0])
        x.clone().zero_(); x.to(torch.float32); x.to(torch.bfloat16).to(x.dtype)""",
}


def numbers(dtype):
    """The operands of FORMS as the card holds them."""
    generator = torch.Generator().manual_seed(1)

    def make(*size):
        return torch.randn(size, generator=generator).to(dtype).to(DEVICE)

    names = {"x": make(5, 70), "y": make(5, 70), "w": make(70), "image": make(1, 3, 8, 8)}
    names.update(taps=make(4, 3, 3, 3), q=make(1, 2, 6, 64))
    names.update(b=names["x"] > 0, c=names["y"] > 0)
    return names


def on_cpu(names):
    return {n: t.cpu().float() if t.is_floating_point() else t.cpu() for n, t in names.items()}


def check(actual, expected, dtype):
    assert actual.device.type == DEVICE and actual.shape == expected.shape
    actual = actual.cpu()
    if not expected.is_floating_point():
        return assert_same(actual, expected)
    if actual.dtype == torch.float16:
        expected = dl16(expected)
    steps = STEP[dtype]
    largest = max(1.0, expected.abs().nan_to_num(0, 0, 0).max().item())
    torch.testing.assert_close(
        actual.float(), expected, rtol=6 * steps, atol=6 * steps * largest, equal_nan=True
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("group", FORMS)
def test_forms(group, dtype):
    names = numbers(dtype)
    host = on_cpu(names)
    scope = {"torch": torch, "F": F}
    wrong = []
    for form in FORMS[group].replace("\n", ";").split(";"):
        if not form.strip():
            continue
        try:
            with torch.spyre.no_fallbacks():
                actual = eval(form.strip(), scope, names)  # noqa: S307  (the lines above)
            check(actual, eval(form.strip(), scope, host), dtype)  # noqa: S307
        except (AssertionError, RuntimeError) as error:
            wrong.append(f"{form.strip()}: {str(error).strip().splitlines()[0]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_out(dtype):
    """out= of the same operations, into a dense tensor and into a part of one."""
    names = numbers(dtype)
    x, y, b = names["x"], names["y"], names["b"]
    wide = torch.zeros(5, 200, dtype=dtype, device=DEVICE)
    for work in (
        lambda out: torch.add(x, y, out=out),
        lambda out: torch.exp(x, out=out),
        lambda out: torch.where(b, x, y, out=out),
        lambda out: torch.softmax(x, 1, out=out),
        lambda out: torch.clamp(x, 0, 1, out=out),
        lambda out: torch.addcmul(x, x, y, out=out),
        lambda out: torch.cat([x[:, :30], y[:, 30:]], 1, out=out),
        lambda out: torch.mm(x, y.t() @ y, out=out),
    ):
        dense = torch.empty_like(x)
        with torch.spyre.no_fallbacks():
            work(dense)
            part = wide[:, 33:103]
            work(part)
        assert_same(part, dense)
        assert not wide[:, :33].cpu().any() and not wide[:, 103:].cpu().any()


def test_out_of_another_dtype():
    """The card refuses the same dtypes of out= as PyTorch: numbers are not cut to integers."""
    x = exact(4, 70, dtype=torch.float32).to(DEVICE)
    works = {
        "norm": lambda x, out: torch.norm(x, 2, 1, out=out),
        "vector_norm": lambda x, out: torch.linalg.vector_norm(x, 2, 1, out=out),
        "std": lambda x, out: torch.std(x, 1, out=out),
        "var": lambda x, out: torch.var(x, 1, out=out),
        "argmax": lambda x, out: torch.argmax(x, 1, out=out),
        "max": lambda x, out: torch.max(x, 1, out=(out, out.new_empty(0, dtype=torch.int64))),
        "matmul": lambda x, out: torch.matmul(x, x.t(), out=out),
    }
    for name, work in works.items():
        for tensor in (x.cpu(), x):
            with pytest.raises(RuntimeError, match="dtype|cast"):
                pytest.fail(f"{name}: {work(tensor, tensor.new_empty(0, dtype=torch.int32))}")
    for tensor in (x.cpu(), x):
        with pytest.raises(RuntimeError, match="without narrowing"):
            torch.linalg.vector_norm(tensor, dtype=torch.float16)


def test_refusals_count_as_fallbacks():
    """A call that the builder refuses is counted under the name of the called operation."""
    x = exact(1, 3, 7, 7, dtype=torch.float32).to(DEVICE)
    torch.spyre.reset_fallbacks()
    F.avg_pool2d(x, 2, ceil_mode=True)
    assert torch.spyre.fallbacks() == {"aten::avg_pool2d": 1}
    torch.spyre.reset_fallbacks()


class TestInfinities:
    """The numbers that docs/pytorch.md lists; test_infinities.py has the others."""

    def test_of_fallbacks(self):
        """Overflow reads back as infinite from the CPU as well as from the card."""
        x = torch.tensor([20.0, -20.0, 1.0], dtype=torch.float16, device=DEVICE)
        assert_same(x.sinh().isinf(), torch.tensor([True, True, False]))
        assert_same(x.sinh().cpu().sign(), torch.tensor([1.0, -1.0, 1.0], dtype=torch.float16))
        mask = torch.full((4, 4), -torch.inf, dtype=torch.float16, device=DEVICE).triu(1)
        assert_same(mask, torch.full((4, 4), -torch.inf, dtype=torch.float16).triu(1))
        scores = torch.zeros(4, 4, dtype=torch.float16, device=DEVICE) + mask
        assert_same(scores.softmax(-1).ne(0), torch.ones(4, 4, dtype=torch.bool).tril())

    def test_nan_of_fallbacks(self):
        x = torch.tensor([-2.0, 2.0], dtype=torch.float16, device=DEVICE)
        assert_same(x.asin().isnan(), torch.tensor([True, True]))

    def test_beyond_fp16(self):
        """A number of DL16 beyond fp16 reads back as infinite, but is finite on the card."""
        x = torch.full((3,), 20.0, dtype=torch.float16, device=DEVICE).exp()
        assert x.cpu().isinf().all()
        torch.testing.assert_close(x.log().cpu(), torch.full((3,), 20.0).half(), rtol=2**-8, atol=0)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
    def test_others_are_ieee(self, dtype):
        x = torch.tensor([float("inf"), -float("inf"), float("nan"), 0.0], dtype=dtype)
        assert_same(x.to(DEVICE) + 1, x + 1)
        assert_same(x.to(DEVICE).isinf(), x.isinf())
        assert_same(x.to(DEVICE).isnan(), x.isnan())


class TestNumbersThatChange:
    """Each value of a Python number has its own kernel, until they are too many."""

    WORK = {
        "mul": lambda x, v: x * v,
        "rsub": lambda x, v: v - x,
        "div": lambda x, v: x / v,
        "gt": lambda x, v: x > v,
        "where": lambda x, v: torch.where(x > 0, x, v),
        "alpha": lambda x, v: x.add(x, alpha=v),
        "sub_alpha": lambda x, v: x.sub(x * 2, alpha=v),
        "addcdiv": lambda x, v: torch.addcdiv(x, x, x.abs() + 1, value=v),
        "lerp": lambda x, v: x.lerp(-x, v / 5),
        "fill": lambda x, v: x.clone().fill_(v),
        "fill_part": lambda x, v: x.clone()[:, 64:].fill_(v),
    }

    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    @pytest.mark.parametrize("name", WORK)
    def test_same_bits_and_no_kernel(self, name, dtype):
        x = exact(3, 130, dtype=torch.float32, seed=5).to(dtype).to(DEVICE)
        values = [0.0137 * (i + 1) for i in range(12)]
        as_they_come = [self.WORK[name](x, v) for v in values]
        misses = torch.spyre._C.program_cache_stats()["misses"]
        as_data = [self.WORK[name](x, v + 1) for v in values]
        assert torch.spyre._C.program_cache_stats()["misses"] == misses
        # A shape that was not there before: the last values are constants now.
        y = x[:2]
        for v, many, more in list(zip(values, as_they_come, as_data))[-2:]:
            assert_same(self.WORK[name](y, v), many[:2])
            assert_same(self.WORK[name](y, v + 1), more[:2])


class TestDecoding:
    """The operations of greedy decoding on a key-value cache and masks."""

    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    @pytest.mark.parametrize("places", [[3], [0, 1, 2, 3], [9, 4, 5, 4], []], ids=str)
    def test_rows_into_a_cache(self, places, dtype):
        """Only the rows are copied; of equal indices the last one counts."""
        cache, rows = exact(2, 3, 10, 70, dtype=dtype), exact(2, 3, len(places), 70, dtype=dtype)
        index = torch.tensor(places, dtype=torch.long)
        there = cache.to(DEVICE)
        with torch.spyre.no_fallbacks():
            there.index_copy_(2, index.to(DEVICE), rows.to(DEVICE))
        for i, place in enumerate(places):
            cache[:, :, place] = rows[:, :, i]
        assert_same(there, cache)

    def test_next_token(self):
        logits = exact(2, 1000).to(DEVICE)
        tokens = torch.zeros(2, 3, dtype=torch.long, device=DEVICE)
        with torch.spyre.no_fallbacks():
            following = logits.argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, following], 1)
            allowed = logits.masked_fill(logits > 2, -torch.inf).topk(5)
        assert tokens.dtype == torch.int64 and tokens.shape == (2, 4)
        assert_same(tokens[:, 3:], logits.cpu().argmax(-1, keepdim=True))
        expected = logits.cpu().masked_fill(logits.cpu() > 2, -torch.inf).topk(5)
        assert_same(allowed.values, expected.values)


class TestSeeds:
    @pytest.mark.parametrize(
        "draw",
        [
            lambda: torch.randperm(9, device=DEVICE),
            lambda: torch.empty(9, device=DEVICE).uniform_(),
            lambda: torch.empty(9, device=DEVICE).normal_(),
            lambda: torch.multinomial(torch.ones(9, device=DEVICE), 4),
        ],
        ids=["randperm", "uniform_", "normal_", "multinomial"],
    )
    def test_the_same_again(self, draw):
        drawn = []
        for _ in range(2):
            torch.manual_seed(3)
            drawn.append(draw())
        assert_same(*drawn)
        assert not draw().cpu().equal(drawn[0].cpu())
