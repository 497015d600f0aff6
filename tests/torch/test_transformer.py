# SPDX-License-Identifier: MIT
"""torch.nn's attention and encoder layers, which call whole layers when no gradient is wanted."""

import copy

import pytest
import torch
from support import DEVICE, assert_near
from torch import nn

BATCH, LENGTH, WIDTH, HEADS = 3, 9, 32, 4


def padding():
    """True after the ends of sentences of 9, 5 and 1 words."""
    return torch.arange(LENGTH) >= torch.tensor([[9], [5], [1]])


def later():
    return torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)


MASKS = {
    "none": {},
    "keys": {"src_key_padding_mask": padding()},
    "scores": {"mask": later()},
    "both": {"mask": later(), "src_key_padding_mask": padding()},
}


def on_card(arguments):
    return {name: mask.to(DEVICE) for name, mask in arguments.items()}


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@torch.no_grad()
def test_encoder(masks, norm_first, activation):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 64, batch_first=True, dropout=0.0,
                                       activation=activation, norm_first=norm_first)
    host = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    card = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first).eval()
    card.load_state_dict(host.state_dict())
    card.to(DEVICE)
    x = torch.randn(BATCH, LENGTH, WIDTH)
    with torch.spyre.no_fallbacks():
        # By default it makes a causal mask with triu to compare with.
        have = card(x.to(DEVICE), is_causal=False, **on_card(MASKS[masks]))
    assert_near(have, host(x, **MASKS[masks]), steps=0.05, atol=1e-5)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("masks", MASKS)
@torch.no_grad()
def test_attention_weights(masks, average):
    torch.manual_seed(0)
    host = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).eval()
    card = copy.deepcopy(host).to(DEVICE)
    x = torch.randn(BATCH, LENGTH, WIDTH)
    given = {("attn_mask" if name == "mask" else "key_padding_mask"): mask
             for name, mask in MASKS[masks].items()}
    want = host(x, x, x, average_attn_weights=average, **given)
    y = x.to(DEVICE)
    with torch.spyre.no_fallbacks():
        have = card(y, y, y, average_attn_weights=average, **on_card(given))
        alone, none = card(y, y, y, need_weights=False, **on_card(given))
    assert none is None
    for a, b in zip([*have, alone], [*want, want[0]], strict=True):
        assert_near(a, b, steps=0.05, atol=1e-5)


@torch.no_grad()
def test_attention_of_three_tensors():
    torch.manual_seed(0)
    host = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).eval()
    q, k, v = (torch.randn(BATCH, n, WIDTH) for n in (4, LENGTH, LENGTH))
    arguments = [WIDTH, HEADS, host.in_proj_weight, host.in_proj_bias, host.out_proj.weight,
                 host.out_proj.bias]
    want = host(q, k, v)
    have = torch._native_multi_head_attention(
        q.to(DEVICE), k.to(DEVICE), v.to(DEVICE),
        *(a.to(DEVICE) if isinstance(a, torch.Tensor) else a for a in arguments))
    for a, b in zip(have, want, strict=True):
        assert_near(a, b, steps=0.05, atol=1e-5)
    with pytest.raises(RuntimeError, match="expected \\[batch, length, 32\\]"):
        torch._native_multi_head_attention(
            *[q[0].to(DEVICE)] * 3,
            *(a.to(DEVICE) if isinstance(a, torch.Tensor) else a for a in arguments))
    with pytest.raises(RuntimeError, match="cannot be split into 5 heads"):
        torch._native_multi_head_attention(
            *[q.to(DEVICE)] * 3, WIDTH, 5,
            *(a.to(DEVICE) for a in arguments[2:]))


@torch.no_grad()
def test_nested_tensors_are_refused_by_name():
    x = torch.randn(BATCH, LENGTH, WIDTH, device=DEVICE)
    with pytest.raises(NotImplementedError, match="enable_nested_tensor=False"):
        torch._nested_tensor_from_mask(x, ~padding().to(DEVICE), mask_check=False)


def test_training_goes_the_other_way():
    """With gradients the modules call the parts, whose results are the same."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 64, batch_first=True, dropout=0.0).to(DEVICE)
    x = torch.randn(BATCH, LENGTH, WIDTH, device=DEVICE)
    layer.train()(x).sum().backward()
    assert layer.linear1.weight.grad.abs().max() > 0
    with torch.no_grad():
        assert_near(layer.eval()(x), layer.train()(x).cpu(), steps=0.05, atol=1e-5)
