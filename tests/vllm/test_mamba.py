# SPDX-License-Identifier: MIT
"""Layers of Mamba 2 on the card, beside the recurrence itself on the host, one token after the
other. Requests come in steps of any lengths, and have rows that others have left."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support import DEVICE
from vllm.config import VllmConfig
from vllm.forward_context import set_forward_context
from vllm_spyre_open import batches, mamba, states

HEADS, SIZE, STATE, TAPS, CHUNK = 4, 32, 64, 3, 16
INNER = HEADS * SIZE


def numbers(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16().float()


def bare(groups, device, bias=True):
    """Returns a layer without projections, whose weights are numbers."""
    layer = torch.nn.Module.__new__(mamba.SpyreMixer)
    torch.nn.Module.__init__(layer)
    width = INNER + 2 * groups * STATE
    layer.head_dim, layer.ssm_state_size, layer.conv_kernel_size = SIZE, STATE, TAPS + 1
    layer.tped_intermediate_size, layer.tped_conv_size = INNER, width
    layer.model_config = SimpleNamespace(get_mamba_chunk_size=lambda: CHUNK)
    layer.get_state_dtype = lambda: (torch.float32, torch.float32)
    parts = [INNER, groups * STATE, groups * STATE]
    layer.split_hidden_states_B_C_fn = lambda x: x.split(parts, -1)
    layer.prefix = "layer"
    weight = numbers(0, width, 1, TAPS + 1) / 2
    given = numbers(1, width) / 4 if bias else None
    layer.conv1d = SimpleNamespace(weight=weight, bias=given if given is None else given.to(device))
    layer.A = -numbers(2, HEADS).exp().to(device)
    layer.D, layer.dt_bias = numbers(3, HEADS).to(device), numbers(4, HEADS).to(device)
    layer.tables(device)
    layer.kv_cache = layer.caches(6, device)
    return layer


def recurrence(layer, inputs):
    """Returns the results of all tokens of a request."""
    width, groups = layer.tped_conv_size, (layer.tped_conv_size - INNER) // 2 // STATE
    padded = F.pad(inputs[:, :width], (0, 0, TAPS, 0))
    weight = layer.conv1d.weight.view(width, TAPS + 1)
    mixed = sum(padded[tap:][: len(inputs)] * weight[:, tap] for tap in range(TAPS + 1))
    if layer.conv1d.bias is not None:
        mixed = mixed + layer.conv1d.bias.cpu()
    x, b, c = layer.split_hidden_states_B_C_fn(F.silu(mixed))
    x = x.view(-1, HEADS, SIZE)
    b, c = (part.view(-1, groups, STATE).repeat_interleave(HEADS // groups, 1) for part in (b, c))
    time = F.softplus(inputs[:, width:] + layer.dt_bias.cpu())
    state, results = torch.zeros(HEADS, SIZE, STATE), []
    for i, step in enumerate(time):
        given = (x[i] * step[:, None]).unsqueeze(-1) * b[i].unsqueeze(1)
        state = state * (step * layer.A.cpu()).exp()[:, None, None] + given
        results.append((state @ c[i].unsqueeze(-1)).squeeze(-1) + x[i] * layer.D.cpu()[:, None])
    return torch.stack(results).view(len(inputs), -1)


def take(layer, requests, starts, lengths, rows):
    """Returns the results of a step's tokens, [requests] of [length, heads * size]."""
    offsets = np.cumsum([0, *lengths])
    step = states.Step(offsets[:-1], np.array(lengths), np.array(starts), np.array(rows))
    tokens = batches.bucket(int(offsets[-1]))
    metadata = mamba.SpyreStateMetadata(states.plan(step, tokens, TAPS, CHUNK))
    metadata.place(tensor.to(DEVICE) for tensor in metadata.tensors())
    given = torch.cat([x[s : s + n] for x, s, n in zip(requests, starts, lengths, strict=True)])
    given = F.pad(given, (0, 0, 0, tokens - len(given)))
    config = VllmConfig()
    with set_forward_context({"layer": metadata}, config), torch.spyre.no_fallbacks():
        result = layer.scanned(given.to(DEVICE)).cpu()
    assert len(result) == tokens
    return result[: offsets[-1]].split(list(lengths))


#: Tokens of three requests, and those that each has in the steps.
STEPS = {
    "whole prompts, then one token": [(7, 40, 17), (1, 1, 1), (1, 1, 1)],
    "chunks of a prompt beside decodes": [(16, 33, 1), (1, 48, 1), (1, 1, 20)],
    "chunks of unequal parts": [(5, 2, 3), (11, 17, 3), (30, 1, 64)],
    "two of three": [(9, 0, 8), (1, 12, 0), (0, 1, 1), (2, 2, 2)],
}


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_results_are_those_of_the_recurrence(steps, groups):
    layer = bare(groups, DEVICE)
    for cache in layer.kv_cache:
        # Numbers that earlier requests left in the rows must not change the results.
        cache.fill_(1000)
    width = layer.tped_conv_size + HEADS
    totals = [sum(step[i] for step in steps) for i in range(3)]
    requests = [numbers(10 + i, total, width) for i, total in enumerate(totals)]
    want = [recurrence(layer, request) for request in requests]
    rows, starts, have = (4, 2, 5), [0, 0, 0], [[], [], []]
    for lengths in steps:
        there = [i for i in range(3) if lengths[i]]
        results = take(
            layer, [requests[i] for i in there], [starts[i] for i in there],
            [lengths[i] for i in there], [rows[i] for i in there],
        )  # fmt: skip
        for i, result in zip(there, results, strict=True):
            have[i].append(result)
            starts[i] += lengths[i]
    for i in range(3):
        error = (torch.cat(have[i]) - want[i]).abs().max() / want[i].abs().max()
        assert error < 1e-4
    assert layer.kv_cache[1][1].eq(1000).all() and layer.kv_cache[0][3].eq(1000).all()


def test_infinite_states_are_not_inherited():
    layer = bare(1, DEVICE)
    for cache in layer.kv_cache:
        cache.fill_(float("inf"))
    (request,) = (numbers(20, 3, layer.tped_conv_size + HEADS),)
    want = recurrence(layer, request)
    first = take(layer, [request], [0], [1], [1])[0]
    second = take(layer, [request], [1], [2], [1])[0]
    assert (torch.cat([first, second]) - want).abs().max() < 1e-4 * want.abs().max()


def test_without_a_bias():
    layer = bare(1, DEVICE, bias=False)
    request = numbers(21, 20, layer.tped_conv_size + HEADS)
    want = recurrence(layer, request)
    have = take(layer, [request], [0], [20], [3])[0]
    assert (have - want).abs().max() < 1e-4 * want.abs().max()
