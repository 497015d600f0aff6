# SPDX-License-Identifier: MIT
"""Scaled dot product attention."""

import pytest
import torch
from support import DEVICE, assert_near, assert_same, dl16, exact
from torch.nn.functional import scaled_dot_product_attention as sdpa


def heads(*size, seed):
    return exact(*size, seed=seed)


def compare(size, key_size=None, function=sdpa, **options):
    q = heads(*size, seed=1)
    k, v = (heads(*(key_size or size), seed=seed) for seed in (2, 3))
    host = {n: (x.float() if torch.is_tensor(x) and x.is_floating_point() else x) for n, x in options.items()}
    there = {n: (x.to(DEVICE) if torch.is_tensor(x) else x) for n, x in options.items()}
    expected = sdpa(q.float(), k.float(), v.float(), **host)
    actual = function(q.to(DEVICE), k.to(DEVICE), v.to(DEVICE), **there)
    assert actual.dtype == torch.float16 and actual.device.type == DEVICE
    # The scores lie in DL16 between the steps: an absolute error of some steps of 1.
    assert_near(actual, expected, steps=8, atol=8 * 2.0**-9)


class TestSDPA:
    @pytest.mark.parametrize(
        "size", [(1, 1, 8, 64), (2, 4, 33, 32), (2, 12, 20, 32), (1, 2, 130, 64), (3, 5, 70)], ids=str
    )
    def test_math(self, size):
        compare(size)

    def test_cross_attention(self):
        compare((1, 2, 5, 64), (1, 2, 37, 64))

    @pytest.mark.parametrize("size", [32, 40, 64, 128, 256])
    @pytest.mark.parametrize("compiled", [False, True])
    def test_causal_with_shared_heads(self, size, compiled):
        """As models attend to a prompt: no mask tensor, no repeated keys, no fallback."""
        function = torch.compile(sdpa) if compiled else sdpa
        with torch.no_grad(), torch.spyre.no_fallbacks():
            compare(
                (1, 4, 40, size), (1, 2, 40, size), function, is_causal=True, enable_gqa=True
            )

    @pytest.mark.parametrize("rows, keys", [(150, 150), (150, 90), (70, 150)])
    def test_causal_has_the_bits_of_a_mask_and_of_repeated_keys(self, rows, keys):
        """Blocks of 64 rows, each with the keys that it attends to."""
        q = heads(1, 32, rows, 32, seed=1).to(DEVICE)
        k, v = (heads(1, 8, keys, 32, seed=seed).to(DEVICE) for seed in (2, 3))
        mask = torch.ones(rows, keys, dtype=torch.bool).tril().to(DEVICE)
        expected = sdpa(q, *(x.repeat_interleave(4, 1) for x in (k, v)), attn_mask=mask)
        assert_same(sdpa(q, k, v, is_causal=True, enable_gqa=True), expected)

    def test_heads_that_are_not_shared(self):
        q, k = (heads(1, n, 8, 64, seed=n).to(DEVICE) for n in (4, 2))
        with pytest.raises(RuntimeError):
            sdpa(q, k, k)

    def test_bool_mask(self):
        mask = torch.ones(20, 20, dtype=torch.bool).tril()
        compare((2, 2, 20, 32), attn_mask=mask)

    @pytest.mark.parametrize("size", [(2, 2, 20, 32), (2, 2, 20, 64), (1, 3, 20, 48)], ids=str)
    @pytest.mark.parametrize("compiled", [False, True])
    def test_rows_that_attend_to_nothing(self, size, compiled):
        mask = torch.rand(size[0], 1, 20, 20, generator=torch.Generator().manual_seed(0)) > 0.5
        mask[:, :, 3] = False
        mask[0, :, 17:] = False
        function = torch.compile(sdpa) if compiled else sdpa
        with torch.no_grad():
            compare(size, function=function, attn_mask=mask)

    def test_additive_mask(self):
        mask = torch.zeros(2, 1, 1, 20, dtype=torch.float16)
        mask[:, :, :, 15:] = -60000.0
        compare((2, 2, 20, 32), attn_mask=mask)

    def test_scale(self):
        compare((1, 1, 20, 32), scale=0.25)

    @pytest.mark.parametrize("size", [(1, 4, 10, 32), (2, 8, 1, 64)], ids=str)
    @pytest.mark.parametrize("keys", [1, 37])
    def test_grouped_queries(self, size, keys):
        compare(size, (size[0], 2, keys, size[3]), enable_gqa=True)

    def test_backward(self):
        grads = []
        for device in ("cpu", DEVICE):
            inputs = [
                exact(1, 2, 10, 32, dtype=torch.float32, seed=s).to(device).requires_grad_()
                for s in range(3)
            ]
            sdpa(*inputs).sum().backward()
            grads.append([x.grad for x in inputs])
        for expected, actual in zip(*grads):
            assert_near(actual, expected, steps=0.05, atol=1e-4)

    def test_multi_head_attention_module(self):
        torch.manual_seed(0)
        module = torch.nn.MultiheadAttention(64, 4, batch_first=True).eval()
        x = torch.randn(2, 7, 64)
        expected, _ = module(x, x, x)
        actual, _ = module.to(DEVICE)(x.to(DEVICE), x.to(DEVICE), x.to(DEVICE))
        assert_near(actual, expected, steps=0.05, atol=1e-4)

    def test_rounding(self):
        assert dl16(torch.tensor(2.0**-10)).item() == 2.0**-10


#: One step between neighbouring numbers as the card keeps them, relative.
STEP = {torch.float16: 2.0**-9, torch.bfloat16: 2.0**-7}


class TestLargeScores:
    """Scores of some tens, of which rounding to 16 bits would be an error of the exponent."""

    def check(self, dtype, size, keys, function=sdpa, **options):
        make = torch.Generator().manual_seed(size[-1] + keys)
        q, k, v = (
            dl16(torch.randn(*shape, generator=make).to(dtype).float()).to(dtype)
            for shape in (size, *2 * [(*size[:-3], 2, keys, size[-1])])
        )
        options = {"scale": 1.0, "enable_gqa": True} | options
        mask = options.pop("attn_mask", None)
        expected = sdpa(q.double(), k.double(), v.double(), attn_mask=mask, **options)
        there = None if mask is None else mask.to(DEVICE)
        with torch.no_grad(), torch.spyre.no_fallbacks():
            actual = function(q.to(DEVICE), k.to(DEVICE), v.to(DEVICE), attn_mask=there, **options)
        error = (actual.cpu().double() - expected).abs().max()
        assert error <= STEP[dtype] * expected.abs().max(), float(error)
        return actual

    @pytest.mark.parametrize("dtype", STEP)
    @pytest.mark.parametrize("width", [64, 96, 128, 256])
    def test_prompt(self, dtype, width):
        self.check(dtype, (2, 4, 64, width), 128)
        self.check(dtype, (1, 4, 70, width), 70, is_causal=True)

    @pytest.mark.parametrize("dtype", STEP)
    def test_decoding(self, dtype):
        """A row with a mask of the keys in the cache."""
        mask = torch.arange(256)[None, None, None] < 200
        self.check(dtype, (3, 6, 1, 128), 256, attn_mask=mask)

    @pytest.mark.parametrize("dtype", STEP)
    def test_scale_that_is_no_power_of_two(self, dtype):
        self.check(dtype, (1, 4, 33, 64), 100, scale=0.7)

    @pytest.mark.parametrize("dtype", STEP)
    def test_compiled(self, dtype):
        mask = torch.rand(33, 100, generator=torch.Generator().manual_seed(0)) > 0.3
        eager = self.check(dtype, (1, 4, 33, 64), 100, attn_mask=mask)
        compiled = self.check(dtype, (1, 4, 33, 64), 100, torch.compile(sdpa), attn_mask=mask)
        assert_same(compiled, eager)
