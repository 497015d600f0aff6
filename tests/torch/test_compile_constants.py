# SPDX-License-Identifier: MIT
"""Constants in compiled code have the value that a tensor of the card keeps of them: eager's bits."""

import itertools

import pytest
import torch
from support import DEVICE, python_ok

F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32
#: Numbers that formats round, that DL16 lacks, and that end fp16; not all are numbers of each dtype.
NUMBERS = (
    *(0.1, -1 / 3, 1.0009765625, 1 / 65535, 2.0**-24, 2.0**-40, -0.0, 3, True),
    *(60000, 65504, -65519.0, 70001.0, 2.0**31, 1e38, float("inf"), float("nan")),
)
#: Forms of a constant like a tensor @x of 7 by 65.
FORMS = {
    "full": lambda x, n: torch.full((7, 65), n, dtype=x.dtype, device=x.device),
    "full_like": lambda x, n: torch.full_like(x, n),
    "new_full": lambda x, n: x.new_full((65,), n),
    "fill_": lambda x, n: torch.empty_like(x).fill_(n),
    "scalar_tensor": lambda x, n: torch.scalar_tensor(n, dtype=x.dtype, device=x.device),
    "tensor": lambda x, n: torch.tensor(n, dtype=x.dtype, device=x.device),
    "masked_fill": lambda x, n: torch.zeros_like(x).masked_fill(x > 0, n),
    "where": lambda x, n: torch.where(x > 0, torch.full_like(x, n), x),
    "converted": lambda x, n: torch.full((65,), n, dtype=F32, device=x.device).to(x.dtype),
    "of a bool": lambda x, n: torch.full((65,), bool(n), device=x.device).to(x.dtype),
    "of an integer": lambda x, n: torch.full((65,), int(n), device=x.device).to(x.dtype),
}
#: Uses in which a value that is not rounded shows.
USES = (
    lambda c, x: c,
    lambda c, x: c.float(),
    lambda c, x: (c * 2).float(),
    lambda c, x: c.float() * x[0, 0].float(),
    lambda c, x: c.expand(7, 65).cumsum(0).float(),
    lambda c, x: c.float() + x,
    lambda c, x: c + x,
    lambda c, x: c.expand(7, 65) == x,
    lambda c, x: torch.maximum(c, x).float(),
    lambda c, x: c.to(torch.bfloat16).float(),
    lambda c, x: c.half().float(),
    lambda c, x: c.bool(),
)


def results(form, x, numbers):
    """The uses of each number's constant, in a list."""
    constants = [form(x, number) for number in numbers]
    return [use(c, x) for c in constants for use in USES]


def same(a, b):
    """True for the same numbers with the same signs, also of zeros."""
    a, b = a.cpu().float(), b.cpu().float()
    return torch.equal(a.signbit(), b.signbit()) and torch.allclose(a, b, 0, 0, equal_nan=True)


def accepted(form, x, number):
    """True if eager mode makes a constant of the number."""
    try:
        form(x, number)
    except (RuntimeError, OverflowError, ValueError):
        return False
    return True


@pytest.mark.filterwarnings("ignore:spyre. aten")
@pytest.mark.parametrize("dtype", [F16, BF16, F32], ids=str)
@pytest.mark.parametrize("name", FORMS)
def test_constants(name, dtype):
    form = FORMS[name]
    x = torch.randn(7, 65, generator=torch.Generator().manual_seed(0)).to(dtype).to(DEVICE)
    numbers = [n for n in NUMBERS if accepted(form, x, n)]
    assert len(numbers) > 8
    torch.compiler.reset()
    have = torch.compile(results, fullgraph=True)(form, x, numbers)
    cases = itertools.product(numbers, range(len(USES)))
    wrong = []
    for case, a, b in zip(cases, have, results(form, x, numbers), strict=True):
        if a.dtype != b.dtype or not same(a, b):
            wrong.append((*case, a.flatten()[0].item(), b.flatten()[0].item()))
    assert not wrong


@pytest.mark.parametrize("number", [70000.0, -65505.0])
@pytest.mark.parametrize("name", ["full", "fill_"])
def test_numbers_beyond_fp16(name, number):
    """A number that eager mode refuses is refused in compiled code."""
    x = torch.randn(7, 65).half().to(DEVICE)
    with pytest.raises(RuntimeError, match="overflow"):
        FORMS[name](x, number)
    with pytest.raises(RuntimeError, match="overflow"):
        torch.compile(FORMS[name])(x, number)


CACHED = """
import torch
y = torch.arange(3.0).half().to("spyre")
# A list that is longer than what Inductor takes into the code.
made = torch.compile(lambda y: (y.new_tensor(65504.0).float(),
                                y.new_tensor([0.1, -65504.0, 3.0] * 4).float()))(y)
counters = torch._dynamo.utils.counters
hits = counters["inductor"]["fxgraph_cache_hit"] + counters["aot_autograd"]["autograd_cache_hit"]
print(made[0].item(), made[1][1].item(), hits > 0)
"""


def test_caches(tmp_path):
    """A constant that fp16 lacks, 65536 of DL16, is the same in code that a cache returns."""
    for cached in "False", "True":
        printed = python_ok(CACHED, TORCHINDUCTOR_CACHE_DIR=tmp_path)
        assert printed.split() == ["65536.0", "-65536.0", cached]
