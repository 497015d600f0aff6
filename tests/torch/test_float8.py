# SPDX-License-Identifier: MIT
"""Tensors of 8-bit floats: every code in both directions, views and files, and scaled products."""

import io

import pytest
import torch
import torch.nn.functional as F
from support import DEVICE, assert_same
from torch import nn

E4, E5 = torch.float8_e4m3fn, torch.float8_e5m2
FLOAT8 = pytest.mark.parametrize("narrow", [E4, E5], ids=["e4m3fn", "e5m2"])
WIDE = pytest.mark.parametrize("wide", [torch.float32, torch.bfloat16, torch.float16])


def codes():
    return torch.arange(256, dtype=torch.int32).to(torch.uint8)


def assert_same_numbers(got, want):
    """Compares bits, but takes NaN for equal, whose sign the card does not keep."""
    got, want = got.cpu(), want.cpu()
    assert got.dtype == want.dtype
    as_bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[got.element_size()]
    nan = want.float().isnan()
    assert torch.equal(got.float().isnan(), nan)
    assert torch.equal(got.view(as_bits)[~nan], want.view(as_bits)[~nan])


def numbers(narrow):
    """All numbers of a dtype, where rounding changes between them, and special values."""
    finite = codes().view(narrow).float()
    finite = finite[finite.isfinite()].sort()[0]
    middle = (finite[1:] + finite[:-1]) / 2
    around = [torch.nextafter(middle, middle + step) for step in (1, -1)]
    special = [0.0, torch.inf, torch.nan, 464, 465, 480, 61439, 61440, 65536, 1e6, 3e38, 1e-40]
    special = torch.tensor([sign * x for x in special for sign in (1, -1)])
    return torch.cat([finite, middle, *around, special])


@FLOAT8
class TestCodes:
    def test_copies_keep_every_code(self, narrow):
        x = codes().view(narrow)
        assert torch.equal(x.to(DEVICE).cpu().view(torch.uint8), codes())
        assert torch.equal(x.to(DEVICE).clone().cpu().view(torch.uint8), codes())

    @WIDE
    def test_every_code_as_a_wider_number(self, narrow, wide):
        x = codes().view(narrow)
        with torch.spyre.no_fallbacks():
            made = x.to(DEVICE).to(wide)
        assert_same_numbers(made, x.to(wide))

    @WIDE
    def test_rounding(self, narrow, wide):
        x = numbers(narrow).to(wide).to(DEVICE)
        with torch.spyre.no_fallbacks():
            made = x.to(narrow)
        assert_same_numbers(made, x.cpu().to(narrow))

    def test_views_and_parts(self, narrow):
        x = torch.randn(6, 5, 70).to(narrow)
        made = x.to(DEVICE)
        for view in (
            lambda t: t.transpose(0, 2),
            lambda t: t[1:4, ::2, 3:50],
            lambda t: t[:, 2].unsqueeze(1).expand(6, 3, 70),
        ):
            assert_same(view(made).float(), view(x).float())
            assert_same(view(made).contiguous().cpu().float(), view(x).float())
        made[2:4] = torch.full((2, 5, 70), 1.5, device=DEVICE).to(narrow)
        x[2:4] = torch.tensor(1.5).to(narrow)
        assert_same(made.cpu().float(), x.float())

    def test_made_and_stored(self, narrow):
        assert torch.empty(3, 70, dtype=narrow, device=DEVICE).shape == (3, 70)
        assert not torch.zeros(3, 70, dtype=narrow, device=DEVICE).float().any()
        full = torch.full((3, 70), -1.25, dtype=narrow, device=DEVICE)
        assert_same(full.float(), torch.full((3, 70), -1.25))
        assert_same(full.fill_(3.0).float(), torch.full((3, 70), 3.0))
        file = io.BytesIO()
        torch.save(codes().view(narrow).to(DEVICE), file)
        file.seek(0)
        made = torch.load(file)
        assert made.device.type == DEVICE and torch.equal(made.cpu().view(torch.uint8), codes())


def integers(*size, high=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-high, high + 1, size, generator=generator).float()


class TestScaledProducts:
    """Factors are small integers and scales powers of two, so that sums are exact."""

    @pytest.mark.parametrize("pair", [(E4, E4), (E5, E4)], ids=["e4m3fn", "mixed"])
    @pytest.mark.parametrize("out", [torch.float32, torch.bfloat16, torch.float16])
    @pytest.mark.parametrize("rows", [False, True], ids=["tensor-wise", "row-wise"])
    def test_scaled_mm(self, pair, out, rows):
        a, b = integers(17, 96).to(pair[0]), integers(48, 96, seed=1).to(pair[1]).t()
        shapes = ((17, 1), (1, 48)) if rows else ((), ())
        one, two = (torch.exp2(integers(*shape, seed=2)) for shape in shapes)
        bias = integers(48, seed=4).to(out)
        with torch.spyre.no_fallbacks():
            made = torch._scaled_mm(
                *(x.to(DEVICE) for x in (a, b, one, two)), bias=bias.to(DEVICE), out_dtype=out
            )
        want = (a.float() @ b.float() * one * two + bias.float()).to(DEVICE).to(out)
        assert_same(made, want)

    def test_blocks_of_scales_are_refused(self):
        a, b = (torch.ones(64, 64).to(E4).to(DEVICE) for _ in range(2))
        with pytest.raises(NotImplementedError, match="scale_a of shape"):
            torch._scaled_mm(a, b, torch.ones(64, 2, device=DEVICE), torch.ones((), device=DEVICE))

    def test_scaled_grouped_mm(self):
        ends = torch.tensor([5, 5, 19, 33], dtype=torch.int32)
        group = torch.tensor([0] * 5 + [2] * 14 + [3] * 14)
        a, b = integers(33, 64).to(E4), integers(4, 48, 64, seed=1).to(E4).transpose(1, 2)
        one, two = torch.exp2(integers(33, seed=2)), torch.exp2(integers(4, 48, seed=3))
        with torch.spyre.no_fallbacks():
            made = torch._scaled_grouped_mm(
                *(x.to(DEVICE) for x in (a, b, one, two, ends)), out_dtype=torch.bfloat16
            )
        want = torch.bmm(a.float().unsqueeze(1), b.float()[group]).squeeze(1)
        assert_same(made, (want * one[:, None] * two[group]).bfloat16())


class WeightOnly(nn.Module):
    """A linear layer with weights of 8 bits and a scale for each output."""

    def __init__(self, linear, narrow):
        super().__init__()
        scale = linear.weight.abs().amax(1, keepdim=True) / torch.finfo(narrow).max
        self.register_buffer("weight", (linear.weight / scale).to(narrow))
        self.register_buffer("scale", scale)
        self.bias = linear.bias

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype) * self.scale.to(x.dtype), self.bias)


class TestWeightOnly:
    @FLOAT8
    def test_compiled_has_the_bits_of_eager_mode(self, narrow):
        torch.manual_seed(0)
        layer = WeightOnly(nn.Linear(96, 80).requires_grad_(False), narrow).to(DEVICE)
        layer.bias.data = layer.bias.data.bfloat16()
        x = torch.randn(5, 96, dtype=torch.bfloat16).to(DEVICE)
        with torch.spyre.no_fallbacks():
            eager = layer(x)
        assert_same(torch.compile(layer)(x), eager)
        host = layer.to("cpu")(x.cpu())
        assert (eager.cpu().float() - host.float()).abs().max() < 0.02


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_packed_numbers_of_four_bits(dtype):
    """MXFP4 weights of transformers' checkpoints: each byte has two numbers, 16 bytes a scale."""
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    blocks = codes().repeat(3)[:768].view(3, 8, 2, 16)
    scales = (torch.arange(48) % 30 + 112).to(torch.uint8).view(3, 8, 2)
    want = convert_moe_packed_tensors(blocks, scales, dtype=dtype)
    made = convert_moe_packed_tensors(blocks.to(DEVICE), scales.to(DEVICE), dtype=dtype)
    assert made.device.type == DEVICE and torch.equal(made.cpu(), want)
