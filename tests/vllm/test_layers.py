# SPDX-License-Identifier: MIT
"""Rotary embeddings and norms on the card, beside vLLM's own in fp32 on the host."""

import pytest
import torch
from support import DEVICE, DL16_STEP, dl16
from vllm import ir
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.forward_context import set_forward_context
from vllm.model_executor.layers import rotary_embedding
from vllm_spyre_open import layers

HEADS, TOKENS = 3, 12

PLAIN = {"rope_type": "default", "rope_theta": 10000.0}
LLAMA = PLAIN | {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
YARN = PLAIN | {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
CASES = {
    "plain": (64, True, PLAIN),
    "pairs side by side": (64, False, PLAIN),
    "half of a head": (64, True, PLAIN | {"partial_rotary_factor": 0.5}),
    "short heads": (32, True, PLAIN),
    "llama3": (64, True, LLAMA),
    "yarn": (64, True, YARN),
}


@pytest.fixture(scope="module", autouse=True)
def registered():
    layers.register()


def numbers(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return dl16(torch.randn(shape, generator=generator)).half()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rotary_embedding(case):
    size, neox, parameters = case
    config = VllmConfig()
    with set_current_vllm_config(config), set_forward_context(None, config):
        rope = rotary_embedding.get_rope(
            size, 256, is_neox_style=neox, rope_parameters=parameters, dtype=torch.float16
        )
        assert isinstance(rope, layers.Rotation)
        position = torch.arange(TOKENS) * 7
        query, key = numbers(0, TOKENS, HEADS * size), numbers(1, TOKENS, size)
        want = rope.forward_static(
            position, query.float(), key.float(), size, rope.rotary_dim,
            rope.cos_sin_cache.float(), neox,
        )  # fmt: skip
        with torch.spyre.no_fallbacks():
            have = rope.forward_oot(position.to(DEVICE), query.to(DEVICE), key.to(DEVICE))
    for result, expected in zip(have, want, strict=True):
        # Both terms, cos and sin are rounded to DL16.
        assert (result.cpu().float() - expected).abs().max() <= 4 * DL16_STEP * 4


def test_angles_are_those_of_the_step():
    """Two steps with one tensor of positions, written in place."""
    config = VllmConfig()
    with set_current_vllm_config(config):
        rope = rotary_embedding.get_rope(
            64, 256, is_neox_style=True, rope_parameters=PLAIN, dtype=torch.float16
        )
        position = torch.zeros(2, dtype=torch.int64, device=DEVICE)
        query = numbers(0, 2, 64).to(DEVICE)
        with set_forward_context(None, config):
            first, _ = rope.forward_oot(position, query)
        position.add_(100)
        with set_forward_context(None, config):
            second, _ = rope.forward_oot(position, query)
    assert torch.equal(first.cpu(), query.cpu())
    assert not torch.equal(second.cpu(), query.cpu())


def norm(name, provider):
    return getattr(ir.ops, name).impls[provider].impl_fn


def test_norms():
    x, residual, weight = numbers(2, 5, 192), numbers(3, 5, 192), numbers(4, 192)
    card = [t.to(DEVICE) for t in (x, residual, weight)]
    with torch.spyre.no_fallbacks():
        alone = norm("rms_norm", "spyre")(card[0], card[2], 1e-5)
        both, total = norm("fused_add_rms_norm", "spyre")(*card, 1e-5)
    want = norm("rms_norm", "native")(x.float(), weight.float(), 1e-5)
    assert (alone.cpu().float() - want).abs().max() <= 3 * DL16_STEP * want.abs().max()
    want, _ = norm("fused_add_rms_norm", "native")(
        x.float(), residual.float(), weight.float(), 1e-5
    )
    assert (both.cpu().float() - want).abs().max() <= 4 * DL16_STEP * want.abs().max()
    assert torch.equal(total.cpu().float(), dl16(x.float() + residual.float()))
