# SPDX-License-Identifier: MIT
"""Copies of views between the host and the card, and on the card."""

import pytest
import torch
import torch_spyre  # noqa: F401

DTYPES = [
    torch.float16,
    torch.float32,
    torch.bfloat16,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
]

VIEWS = {
    "whole": lambda t: t,
    "transposed": lambda t: t.t(),
    "rows": lambda t: t[2:5],
    "columns": lambda t: t[:, 3:70],
    "whole sticks": lambda t: t[:, 64:128],
    "steps": lambda t: t[::2, ::3],
    "row": lambda t: t[3],
    "column": lambda t: t[:, 5],
    "flat": lambda t: t.view(-1),
    "flat part": lambda t: t.view(-1)[5:500],
    "split": lambda t: t.view(7, 13, 10),
    "one more dimension": lambda t: t[None].transpose(0, 2),
    "element": lambda t: t[3, 77],
    "windows": lambda t: t.unfold(1, 4, 4),
}


def numbers(shape, dtype, seed=0):
    """Numbers that every dtype holds exactly, also as DL16."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 100, shape, generator=generator).to(dtype)


@pytest.fixture(params=DTYPES, ids=str)
def dtype(request):
    return request.param


@pytest.fixture(params=VIEWS, ids=str)
def view(request):
    return VIEWS[request.param]


def test_read_view(dtype, view):
    host = numbers((7, 130), dtype)
    card = host.to("spyre")
    assert torch.equal(view(card).cpu(), view(host))
    assert torch.equal(view(card).clone().cpu(), view(host))
    assert torch.equal(view(card).contiguous().cpu(), view(host))


def test_read_expanded(dtype):
    host = numbers((1, 130), dtype)
    assert torch.equal(host.to("spyre").expand(5, 130).cpu(), host.expand(5, 130))
    assert torch.equal(host.to("spyre").expand(5, 130).contiguous().cpu(), host.expand(5, 130))


def test_write_view_from_host(dtype, view):
    host = numbers((7, 130), dtype)
    card = host.to("spyre")
    source = numbers(view(host).shape, dtype, seed=1)
    view(host).copy_(source)
    view(card).copy_(source)
    assert torch.equal(card.cpu(), host)


def test_write_view_on_card(dtype, view):
    host, other = numbers((7, 130), dtype), numbers((7, 130), dtype, seed=1)
    card, source = host.to("spyre"), other.to("spyre")
    view(host).copy_(view(other))
    view(card).copy_(view(source))
    assert torch.equal(card.cpu(), host)


def test_write_broadcast():
    host = numbers((7, 130), torch.float32)
    card = host.to("spyre")
    source = numbers((130,), torch.float32, seed=1)
    host[1:4].copy_(source)
    card[1:4].copy_(source.to("spyre"))
    assert torch.equal(card.cpu(), host)


@pytest.mark.parametrize("source", DTYPES, ids=str)
@pytest.mark.parametrize("target", DTYPES, ids=str)
def test_conversion(source, target):
    host = numbers((5, 70), source)
    expected = host.to(target)
    assert torch.equal(host.to("spyre").to(target).cpu(), expected)
    assert torch.equal(host.to("spyre").to("cpu", target), expected)
    assert torch.equal(host.to("spyre", target).cpu(), expected)


def test_16_bit_floats_keep_the_card_s_range():
    big = torch.tensor([1e6, 3e-7, 1.0])
    card = big.to("spyre", torch.float16)
    assert torch.equal(card.float().cpu(), card.to("cpu", torch.float32))
    assert torch.equal(card.cpu()[0], torch.tensor(float("inf")).half())
    assert abs(card.float().cpu()[0] / 1e6 - 1) < 1e-3


def test_view_as_other_dtype():
    host = torch.randn(6, 70)
    card = host.to("spyre")
    assert torch.equal(card.view(torch.int32).cpu(), host.view(torch.int32))
    host.view(torch.int32)[2:4] = 7
    card.view(torch.int32)[2:4].copy_(torch.full((2, 70), 7, dtype=torch.int32))
    assert torch.equal(card.cpu(), host)


@pytest.mark.parametrize("rank", range(10))
def test_ranks(rank):
    host = numbers((2,) * rank, torch.float32)
    card = host.to("spyre")
    assert torch.equal(card.cpu(), host)
    order = tuple(reversed(range(rank)))
    assert torch.equal(card.permute(order).cpu(), host.permute(order))
    assert torch.equal(card.permute(order).clone().cpu(), host.permute(order))


@pytest.mark.parametrize("shape", [(0,), (0, 5), (3, 0, 2)])
def test_empty(shape):
    card = torch.empty(shape).to("spyre")
    assert card.cpu().shape == torch.Size(shape)
    assert card.clone().shape == torch.Size(shape)


def test_channels_last():
    host = numbers((2, 70, 4, 5), torch.float16).to(memory_format=torch.channels_last)
    card = host.to("spyre")
    assert card.stride() == host.stride()
    assert torch.equal(card.cpu(), host)
    assert torch.equal(card.contiguous().cpu(), host)


def test_item():
    assert torch.tensor([1.5, 2.5]).to("spyre")[1].item() == 2.5
    assert torch.tensor(7).to("spyre").item() == 7
    assert bool(torch.tensor(True).to("spyre"))


def test_non_blocking():
    host = torch.randn(300, 300).pin_memory()
    card = host.to("spyre", non_blocking=True)
    back = torch.empty(300, 300, pin_memory=True)
    back.copy_(card, non_blocking=True)
    torch.spyre.synchronize()
    assert torch.equal(back, host)


def test_non_blocking_source_that_goes_away():
    cards = []
    for i in range(50):
        host = torch.full((128, 128), float(i))
        cards.append(host.to("spyre", non_blocking=True))
        host.fill_(-1)
        del host
        pinned = torch.full((128, 128), float(i)).pin_memory()
        cards.append(pinned.to("spyre", non_blocking=True))
        del pinned
    for i, card in enumerate(cards):
        assert torch.equal(card.cpu(), torch.full((128, 128), float(i // 2)))


def test_overlapping_target_is_refused():
    card = torch.zeros(3).to("spyre").expand(4, 3)
    with pytest.raises(RuntimeError, match="more than one element"):
        card.copy_(torch.ones(4, 3))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_unsupported_dtypes(dtype):
    with pytest.raises(TypeError, match="has no form on the card"):
        torch.empty(3, dtype=dtype, device="spyre")
    with pytest.raises(TypeError, match="has no form on the card"):
        torch.zeros(3, dtype=dtype).to("spyre")
