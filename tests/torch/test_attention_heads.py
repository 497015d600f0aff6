# SPDX-License-Identifier: MIT
"""Attention with heads shorter than a stick: read in place, with the same bits as heads in
separate sticks."""

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn.functional import scaled_dot_product_attention as attend

#: Batch, heads, length, size of a head; mask.
SHAPES = [
    (4, 12, 32, 32, "bool"),
    (2, 4, 33, 32, "float"),
    (3, 8, 40, 16, None),
    (1, 2, 100, 32, "rows"),
    (1, 12, 20, 32, "bool"),
    (2, 16, 7, 8, None),
]


def mask_of(kind, batch, length):
    own = torch.eye(length, dtype=torch.bool)
    if kind == "bool":
        return (torch.rand(batch, 1, length, length) > 0.3) | own
    if kind == "rows":
        return (torch.rand(length, length) > 0.2) | own
    return torch.randn(batch, 1, length, length).half() if kind else None


def inputs(shape, device="spyre"):
    batch, heads, length, size, kind = shape
    projections = [torch.randn(batch, length, heads * size).half() for _ in range(3)]
    mask = mask_of(kind, batch, length)
    return [x.to(device) for x in projections], mask if mask is None else mask.to(device)


def split(x, shape):
    batch, heads, length, size, _ = shape
    return x.view(batch, length, heads, size).transpose(1, 2)


def same_bits(a, b):
    a, b = a.cpu().contiguous(), b.cpu().contiguous()
    return a.shape == b.shape and torch.equal(a.view(torch.int16), b.view(torch.int16))


@pytest.mark.parametrize("shape", SHAPES)
def test_bits_of_heads_apart(shape):
    projections, mask = inputs(shape)
    views = [split(x, shape) for x in projections]
    apart = [x.contiguous() for x in views]
    result = attend(*views, mask)
    assert same_bits(result, attend(*apart, mask))
    floats = [x.cpu().float() for x in apart]
    if mask is not None:
        mask = mask.cpu().float() if mask.is_floating_point() else mask.cpu()
    expected = attend(*floats, mask)
    torch.testing.assert_close(result.cpu().float(), expected, atol=0.05, rtol=0.05)


def test_other_heads_of_a_stick_are_not_seen():
    shape = (2, 4, 16, 32, None)
    projections, _ = inputs(shape)
    clean = attend(*(split(x, shape) for x in projections)).cpu()
    host = [x.cpu() for x in projections]
    for x in host:
        x[:, :, 32:64] = float("nan")  # all of head 1
    result = attend(*(split(x.to("spyre"), shape) for x in host)).cpu()
    assert result[:, 1].isnan().all()
    for head in (0, 2, 3):
        assert same_bits(result[:, head], clean[:, head])


def test_joined_heads_are_a_view():
    shape = (2, 12, 16, 32, None)
    projections, _ = inputs(shape)
    result = attend(*(split(x, shape) for x in projections))
    joined = result.transpose(1, 2).reshape(2, 16, 384)
    assert joined.untyped_storage().data_ptr() == result.untyped_storage().data_ptr()


@pytest.mark.parametrize("shape", SHAPES)
@torch.no_grad()
def test_compiled(shape):
    batch, heads, length, size, _ = shape

    def layer(x, y, z, mask):
        views = [split(t, shape) for t in (x + 1, y * 2, z - 1)]
        return attend(*views, mask).transpose(1, 2).reshape(batch, length, heads * size) * 2

    projections, mask = inputs(shape)
    assert same_bits(torch.compile(layer)(*projections, mask), layer(*projections, mask))


@torch.no_grad()
def test_compiled_once_for_all_sizes():
    def layer(x, y, z):
        views = [split(t, (t.shape[0], 4, t.shape[1], 32, None)) for t in (x, y, z)]
        return attend(*views).transpose(1, 2).reshape(x.shape)

    torch._dynamo.reset()
    counted = CompileCounterWithBackend("inductor")
    compiled = torch.compile(layer, backend=counted, dynamic=True)
    for batch, length in ((2, 16), (3, 16), (4, 33), (5, 7)):
        projections, _ = inputs((batch, 4, length, 32, None))
        assert same_bits(compiled(*projections), layer(*projections))
    assert counted.frame_count == 1
