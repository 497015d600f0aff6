# SPDX-License-Identifier: MIT
"""Mixtures of experts: sorting rows by expert, counting them, and their products."""

import pytest
import torch
from support import DEVICE, assert_same


def drawn(*size, low, high, dtype=torch.int64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(low, high, size, generator=generator).to(dtype)


class TestSort:
    @pytest.mark.parametrize("dim", [0, -1])
    @pytest.mark.parametrize("descending", [False, True])
    @pytest.mark.parametrize(
        "make",
        [
            lambda: drawn(96, low=0, high=4),
            lambda: drawn(7, 33, low=-5, high=5),
            lambda: drawn(1000, low=-(2**31), high=2**31 - 1, dtype=torch.int32),
            lambda: 2**24 + drawn(500, low=0, high=40, dtype=torch.int32),
            lambda: torch.randn(5, 70, generator=torch.Generator().manual_seed(1)),
            lambda: torch.tensor([1.0, torch.nan, -torch.inf, 1.0, torch.inf, -2.0]),
        ],
        ids=["experts", "rows", "int32", "beyond fp32", "floats", "special"],
    )
    def test_as_on_the_cpu(self, make, dim, descending):
        x = make()
        with torch.spyre.no_fallbacks():
            values, places = torch.sort(x.to(DEVICE), stable=True, dim=dim, descending=descending)
            alone = torch.argsort(x.to(DEVICE), stable=True, dim=dim, descending=descending)
        want = torch.sort(x, stable=True, dim=dim, descending=descending)
        assert torch.equal(values.cpu().nan_to_num(7.5), want.values.nan_to_num(7.5))
        assert torch.equal(places.cpu(), want.indices)
        assert torch.equal(alone.cpu(), want.indices)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("bins, least", [(4, 0), (8, -1), (72, 0)])
def test_integers_are_counted(dtype, bins, least):
    x = drawn(5, 130, low=-3, high=75, dtype=dtype)
    with torch.spyre.no_fallbacks():
        made = torch.histc(x.to(DEVICE), bins, least, least + bins - 1)
    want = torch.histc(x.float(), bins, least, least + bins - 1).to(dtype)
    assert made.dtype == dtype and torch.equal(made.cpu(), want)


class TestGroupedProducts:
    """Factors are small integers, so that sums are exact."""

    def check(self, group, experts, inner, columns, dtype, swapped):
        ends = torch.bincount(group, minlength=experts).cumsum(0).int()
        a = drawn(len(group), inner, low=-2, high=3, dtype=dtype)
        b = drawn(experts, inner, columns, low=-1, high=2, dtype=dtype, seed=1)
        want = torch.bmm(a.float().unsqueeze(1), b.float()[group]).squeeze(1)
        weights = b.to(DEVICE)
        if swapped:
            weights = b.transpose(1, 2).contiguous().to(DEVICE).transpose(1, 2)
        with torch.spyre.no_fallbacks():
            made = torch._grouped_mm(a.to(DEVICE), weights, offs=ends.to(DEVICE))
        assert made.dtype == dtype
        assert_same(made.float(), want)

    @pytest.mark.parametrize("swapped", [False, True])
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
    @pytest.mark.parametrize(
        "rows, experts, inner, columns",
        [(96, 4, 128, 192), (6, 4, 64, 64), (200, 3, 70, 33), (16, 32, 64, 64)],
    )
    def test_groups_of_any_size(self, rows, experts, inner, columns, dtype, swapped):
        group = drawn(rows, low=0, high=experts, seed=2).sort()[0]
        self.check(group, experts, inner, columns, dtype, swapped)

    def test_empty_groups(self):
        self.check(torch.tensor([1] * 20 + [4] * 30), 6, 64, 64, torch.float16, False)
        self.check(torch.tensor([5] * 70), 6, 64, 64, torch.float16, False)

    def test_in_a_graph(self):
        """The ends of the groups are read when the graph is replayed."""
        a, b = torch.ones(40, 64).to(DEVICE), torch.arange(4.0)[:, None, None].expand(4, 64, 64)
        b, ends = b.contiguous().to(DEVICE), torch.tensor([10, 20, 30, 40]).int().to(DEVICE)
        torch._grouped_mm(a, b, offs=ends)
        graph = torch.accelerator.Graph()
        with torch.Stream(device=DEVICE), graph:
            made = torch._grouped_mm(a, b, offs=ends)
        ends.copy_(torch.tensor([1, 1, 39, 40]).int())
        graph.replay()
        group = torch.tensor([0] + [2] * 38 + [3])
        assert_same(made, (64.0 * group)[:, None].expand(40, 64))
