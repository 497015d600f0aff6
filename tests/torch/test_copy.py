# SPDX-License-Identifier: MIT
"""Copies: every dtype, every kind of view, both ways and on the card."""

import itertools
import warnings

import pytest
import torch
from support import DEVICE, assert_same, dl16, exact, picker, python_ok, random_view

DTYPES = [torch.float16, torch.float32, torch.bfloat16, torch.bool, torch.int8, torch.uint8]
DTYPES += [torch.int16, torch.int32, torch.int64]

#: name: function of a 6 x 10 x 150 tensor (or of one that is made by it)
VIEWS = {
    "whole": lambda x: x,
    "row": lambda x: x[2],
    "element": lambda x: x[1, 2, 3],
    "rows": lambda x: x[1:4],
    "middle": lambda x: x[:, 3:9],
    "columns in one stick": lambda x: x[..., 3:50],
    "columns over sticks": lambda x: x[..., 60:140],
    "whole sticks": lambda x: x[..., 64:128],
    "last columns": lambda x: x[..., 100:],
    "column": lambda x: x[..., 70],
    "every other row": lambda x: x[::2],
    "every third column": lambda x: x[..., ::3],
    "odd columns": lambda x: x[..., 1::2],
    "transposed": lambda x: x.transpose(0, 2),
    "permuted": lambda x: x.permute(1, 2, 0),
    "inner transposed": lambda x: x.mT,
    "slice of transposed": lambda x: x.permute(2, 0, 1)[5:90, 1:],
    "transposed slice": lambda x: x[1:5, 2:8, 30:100].permute(2, 1, 0),
    "expanded": lambda x: x[:, :1].expand(6, 7, 150),
    "expanded column": lambda x: x[..., :1].expand(6, 10, 9),
    "new leading": lambda x: x[0].expand(4, 10, 150),
    "unsqueezed": lambda x: x.unsqueeze(2),
    "flattened": lambda x: x.view(-1),
    "merged": lambda x: x.view(60, 150),
    "split": lambda x: x.view(6, 10, 15, 10),
    "other shape": lambda x: x.view(9, 25, 40),
    "diagonal": lambda x: x[0].diagonal(),
    "as_strided": lambda x: x.as_strided((5, 7), (3, 11), 4),
    "overlapping windows": lambda x: x.view(-1).unfold(0, 70, 9),
    "windows of rows": lambda x: x.unfold(2, 64, 43),
    "chunk": lambda x: x.chunk(3, 2)[1],
    "view of a view of a view": lambda x: x[1:, :, 20:].transpose(1, 2)[2][10:60].t(),
    "no elements": lambda x: x[2:2],
}


@pytest.fixture(scope="module")
def pairs():
    hosts = {dtype: exact(6, 10, 150, dtype=dtype) for dtype in DTYPES}
    return {dtype: (host, host.to(DEVICE)) for dtype, host in hosts.items()}


class TestViews:
    """A view of the card's tensor is the same numbers as the same view of the host's."""

    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    @pytest.mark.parametrize("view", VIEWS)
    def test_from_device(self, view, dtype, pairs):
        host, device = pairs[dtype]
        there = VIEWS[view](device)
        expected = VIEWS[view](host)
        assert there.shape == expected.shape and there.stride() == expected.stride()
        assert there.storage_offset() == expected.storage_offset()
        assert_same(there, expected)

    @pytest.mark.parametrize("view", VIEWS)
    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64], ids=str)
    def test_to_device(self, view, dtype, pairs):
        host = VIEWS[view](pairs[dtype][0])
        assert_same(host.to(DEVICE), host)

    @pytest.mark.parametrize("view", VIEWS)
    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.bool], ids=str)
    def test_clone_and_contiguous(self, view, dtype, pairs):
        host, device = pairs[dtype]
        assert_same(VIEWS[view](device).clone(), VIEWS[view](host))
        assert_same(VIEWS[view](device).contiguous(), VIEWS[view](host))

    @pytest.mark.parametrize("view", [v for v in VIEWS if "expand" not in v and "windows" not in v])
    @pytest.mark.parametrize("source", ["cpu", "spyre", "number"])
    def test_into_device(self, view, source, pairs):
        """Writing through a view changes its elements only."""
        host, device = (tensor.clone() for tensor in pairs[torch.float16])
        target, expected = VIEWS[view](device), VIEWS[view](host)
        if "new leading" in view:
            pytest.skip("a view of repeated memory is not written to")
        if source == "number":
            target.fill_(2.5), expected.fill_(2.5)
        else:
            values = exact(*expected.shape, seed=9)
            target.copy_(values.to(source)), expected.copy_(values)
        assert_same(device, host)

    @pytest.mark.parametrize("view", VIEWS)
    def test_arithmetic_on_views(self, view, pairs):
        host, device = pairs[torch.float32]
        expected = VIEWS[view](host) * 2 + 1
        assert_same(VIEWS[view](device) * 2 + 1, expected)

    def test_in_place_on_views(self, pairs):
        host, device = (tensor.clone() for tensor in pairs[torch.float32])
        for view in ("rows", "columns in one stick", "whole sticks", "permuted", "odd columns"):
            VIEWS[view](device).mul_(2).add_(1)
            VIEWS[view](host).mul_(2).add_(1)
            assert_same(device, host)

    def test_setitem(self):
        host, device = exact(20, 130), exact(20, 130).to(DEVICE)
        for tensor in (host, device):
            tensor[3] = 1.5
            tensor[:, 7] = 2.0
            tensor[4:9, 60:70] = torch.ones(5, 10, dtype=torch.float16, device=tensor.device)
            tensor[0, 0] = tensor[1, 1]
        assert_same(device, host)

    def test_overlapping_copy_within_a_tensor(self):
        host, device = exact(300), exact(300).to(DEVICE)
        device[64:192] = device[0:128].clone()
        host[64:192] = host[0:128].clone()
        assert_same(device, host)

    @pytest.mark.parametrize("rank", range(8))
    def test_ranks(self, rank):
        size = [2, 3, 2, 1, 3, 2, 5][:rank]
        host = exact(*size)
        assert_same(host.to(DEVICE), host)
        for order in itertools.islice(itertools.permutations(range(rank)), 0, 720, 61):
            assert_same(host.to(DEVICE).permute(order), host.permute(order))

    def test_random_views(self):
        """A thousand random chains of views, against the host's."""
        pick = picker(20261122)
        host = exact(7, 12, 130)
        device = host.to(DEVICE)
        for _ in range(1000):
            a, b = random_view(pick, host, device)
            assert_same(b, a)


class TestConversions:
    def test_dtype_pairs(self):
        """Converting on the card or on the host is the same; casts of torch, value by value."""
        for source, target in itertools.product(DTYPES, DTYPES):
            host = exact(5, 70, dtype=source)
            if not source.is_floating_point and source != torch.bool:
                host = host.abs() % 100 if target == torch.uint8 else host
            elif target == torch.uint8:
                host = host.abs() if source != torch.bool else host
            expected = host.to(target)
            if torch.float16 in (source, target) and target.is_floating_point:
                expected = expected.to(target)
            there = host.to(DEVICE).to(target)
            if target == torch.float16:
                expected = dl16(host.float()).to(torch.float16)
            assert_same(there, expected)
            into = torch.empty(5, 70, dtype=target, device=DEVICE)
            assert_same(into.copy_(host), expected)

    def test_precision_of_half(self):
        """fp16 has ten bits of fraction, DL16 nine: nearest, ties away from zero."""
        for value, kept in [(0.5903, 0.5908), (-2.002, -2.0039), (1.0, 1.0), (0.1, 0.1)]:
            half = torch.tensor([value], dtype=torch.float16)
            expected = dl16(half.float()).to(torch.float16)
            assert_same(half.to(DEVICE), expected)
            assert abs(expected.item() - kept) < 1e-4
        every = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16)
        every = every.view(torch.float16)
        finite = every[every.isfinite() & (every.abs() < 65000)]
        assert_same(finite.to(DEVICE), dl16(finite.float()).to(torch.float16))

    def test_zero_has_no_residue(self):
        zero = torch.zeros(100, dtype=torch.float16).to(DEVICE)
        for result in (zero + zero, zero * 5, zero - zero, -zero.abs()):
            assert result.cpu().eq(0).all()

    def test_single_and_bfloat_are_exact(self):
        for dtype in (torch.float32, torch.bfloat16):
            host = torch.randn(4096).to(dtype)
            host[:4] = torch.tensor([float("inf"), -float("inf"), 0.0, -0.0]).to(dtype)
            assert_same(host.to(DEVICE), host)
        assert torch.tensor([float("nan")]).to(DEVICE).cpu().isnan().all()

    def test_bool(self):
        host = torch.tensor([True, False, True])
        assert_same(host.to(DEVICE), host)
        assert_same(host.to(DEVICE).to(torch.float32), host.float())
        numbers = torch.tensor([0.0, 2.5, -1.0])
        assert_same(numbers.to(DEVICE).bool(), numbers.bool())

    def test_downcast_of_int64(self):
        """Numbers that fit are exact; one warning describes the others."""
        printed = python_ok(
            "import warnings\n"
            "with warnings.catch_warnings(record=True) as caught:\n"
            "    warnings.simplefilter('always')\n"
            "    for _ in range(3):\n"
            "        x = torch.tensor([1, -5, 2**31 - 1]).to('spyre')\n"
            "assert x.dtype == torch.int64 and x.cpu().tolist() == [1, -5, 2**31 - 1]\n"
            "print(len([w for w in caught if 'int32' in str(w.message)]))\n"
        )
        assert printed.split() == ["1"]

    @pytest.mark.parametrize("value", ["0", "false", "off"])
    def test_downcast_warning_can_be_silenced(self, value):
        python_ok(
            "import warnings\n"
            "warnings.simplefilter('error')\n"
            "torch.tensor([1, 2]).to('spyre')\n",
            TORCH_SPYRE_DOWNCAST_WARN=value,
        )

    @pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
    def test_unsupported_dtypes(self, dtype):
        """All ways to make such a tensor raise an exception with a remedy."""
        host = torch.ones(3, dtype=dtype)
        for use in (
            lambda: host.to(DEVICE),
            lambda: torch.empty(3, dtype=dtype, device=DEVICE),
            lambda: torch.ones(3, device=DEVICE).to(dtype),
        ):
            with pytest.raises((RuntimeError, TypeError), match="(?i)(complex|double).*(float|real)"):
                use()
        assert torch.ones(3, device=DEVICE).cpu().sum() == 3

    def test_double_numbers_of_python_are_fine(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert torch.tensor([1.5, 2.5], device=DEVICE).dtype == torch.float32
            assert (torch.ones(2, device=DEVICE) * 0.1).dtype == torch.float32

    def test_copy_broadcasts(self):
        x = torch.empty(5, 70, device=DEVICE)
        assert_same(x.copy_(torch.arange(70.0)), torch.arange(70.0).expand(5, 70))
        assert_same(x.copy_(torch.ones((), device=DEVICE)), torch.ones(5, 70))
        with pytest.raises(RuntimeError, match="size|shape|expand"):
            x.copy_(torch.ones(4, 70))

    def test_copy_to_a_view_of_the_host(self):
        device = exact(5, 8).to(DEVICE)
        target = torch.zeros(8, 20, dtype=torch.float16)
        target[:, ::4].copy_(device.t())
        assert_same(target[:, ::4], exact(5, 8).t())
        assert target[:, 1::4].eq(0).all()

    @pytest.mark.parametrize("elements", [1, 63, 64, 65, 1000, 1 << 16, (1 << 20) + 3])
    def test_sizes(self, elements):
        host = exact(elements)
        device = host.to(DEVICE)
        assert_same(device, host)
        assert_same(device.clone(), host)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int32], ids=str)
    def test_views_that_negate(self, dtype):
        host = exact(5, 70, dtype=dtype)
        for of, part in (lambda x: x, lambda x: x[1:, ::3]), (lambda x: x.t(), lambda x: x):
            view = part(torch._neg_view(of(host.to(DEVICE))))
            expected = -part(of(host))
            assert_same(view, expected)
            assert_same(view.clone(), expected)
            assert_same(view.abs(), expected.abs())
            assert view[1, 1].item() == expected[1, 1].item()
            x = torch._neg_view(torch.zeros_like(expected, device=DEVICE))
            assert_same(torch._neg_view(x.copy_(expected)), -expected)
            assert_same(torch._neg_view(x.copy_(view)), -expected)
