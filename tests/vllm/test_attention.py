# SPDX-License-Identifier: MIT
"""Attention of the backend for random page tables, beside softmax of the host in fp32."""

import numpy as np
import pytest
import torch
from support import DEVICE, DL16_STEP, dl16
from test_batches import BLOCK, random_step, written
from vllm_spyre_open import batches
from vllm_spyre_open.attention import SpyreAttentionImpl, SpyreAttentionMetadata

SIZE = 64


class Case:
    """A step of random requests whose earlier keys are in the cache already."""

    def __init__(self, seed, heads, kv_heads, window=0, sinks=False, size=SIZE):
        self.step, self.window, self.size = random_step(seed), window, size
        self.heads, self.kv_heads = heads, kv_heads
        generator = torch.Generator().manual_seed(seed)

        def numbers(*shape):
            return dl16(torch.randn(shape, generator=generator)).half()

        self.tokens = int(self.step.lengths.sum())
        self.query = numbers(self.tokens, heads, size)
        self.key = numbers(self.tokens, kv_heads, size)
        self.value = numbers(self.tokens, kv_heads, size)
        slots = self.step.empty + BLOCK
        self.cache = [numbers(slots, kv_heads * size) for _ in "kv"]
        for cache in self.cache:
            cache[self.step.empty :] = 0
        self.sinks = numbers(heads) if sinks else None
        self.impl = SpyreAttentionImpl(
            heads, size, size**-0.5, kv_heads, sliding_window=window or None, sinks=self.sinks
        )

    def on_card(self):
        padded = batches.bucket(self.tokens)
        plan = batches.plan(self.step, self.impl.layer, padded, written(self.step))
        metadata = SpyreAttentionMetadata({self.impl.layer: plan}, torch.float16)
        metadata.place(iter([tensor.to(DEVICE) for tensor in metadata.tensors()]))
        cache = tuple(t.to(DEVICE) for t in self.cache)
        tensors = [
            torch.nn.functional.pad(t, (0, 0, 0, 0, 0, padded - self.tokens)).to(DEVICE)
            for t in (self.query, self.key, self.value)
        ]
        output = torch.empty(padded, self.heads, self.size, dtype=torch.float16, device=DEVICE)
        with torch.spyre.no_fallbacks():
            self.impl.forward(None, *tensors, cache, metadata, output)
        return output[: self.tokens].cpu().float(), [t.cpu() for t in cache]

    def expected(self):
        keys, values = (cache.clone() for cache in self.cache)
        slots = torch.from_numpy(written(self.step))
        keys[slots], values[slots] = self.key.flatten(1), self.value.flatten(1)
        rows = []
        for request, length in enumerate(self.step.lengths):
            for t in range(length):
                position = self.step.starts[request] + t
                first = max(0, position - self.window + 1) if self.window else 0
                where = self.step.slots_of(request, np.arange(first, position + 1))
                rows.append(self.row(self.query[len(rows)], keys[where], values[where]))
        return torch.stack(rows), (keys, values)

    def row(self, query, keys, values):
        keys, values = (
            t.float().view(-1, self.kv_heads, self.size).transpose(0, 1) for t in (keys, values)
        )
        query = query.float().view(self.kv_heads, -1, self.size)
        scores = query @ keys.transpose(1, 2) * self.size**-0.5
        if self.sinks is not None:
            sinks = self.sinks.float().view(self.kv_heads, -1, 1)
            weights = torch.cat([scores, sinks], -1).softmax(-1)[..., :-1]
        else:
            weights = scores.softmax(-1)
        return (weights @ values).reshape(self.heads, self.size)


CASES = {
    "heads": dict(heads=4, kv_heads=4),
    "grouped": dict(heads=9, kv_heads=3),
    "one kv head": dict(heads=4, kv_heads=1),
    "window": dict(heads=4, kv_heads=2, window=20),
    "sinks": dict(heads=4, kv_heads=2, sinks=True),
    "window and sinks": dict(heads=4, kv_heads=2, window=8, sinks=True),
    "half a stick": dict(heads=4, kv_heads=2, size=32),
    "two sticks": dict(heads=4, kv_heads=2, size=128),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_random_page_tables(case, seed):
    case = Case(seed, **case)
    have, cache = case.on_card()
    want, pages = case.expected()
    # Scores, weights and sums are rounded to DL16 once each.
    assert (have - want).abs().max() <= 6 * DL16_STEP * case.value.abs().max()
    for tensor, expected in zip(cache, pages, strict=True):
        # Page 0 takes the padding of a step.
        assert torch.equal(tensor[BLOCK:], expected[BLOCK:])
