# SPDX-License-Identifier: MIT
"""The decoder that scripts/bench llm measures."""

import importlib.util
import os

import models
import pytest
import torch
from support import DEVICE

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/torch/llm.py")


@pytest.fixture
def bench(monkeypatch):
    spec = importlib.util.spec_from_file_location("bench_llm", BENCH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, value in {"PROMPT": 8, "CONTEXT": 16, "STEPS": 4}.items():
        monkeypatch.setattr(module, name, value)
    return module


@pytest.mark.parametrize("device, captured", [("cpu", False), (DEVICE, False), (DEVICE, True)])
def test_samples_do_not_fill_the_cache(bench, device, captured):
    """A model that is measured more often than its cache has space for the samples."""
    model = models.FAMILIES["llama3"].model().to(device)
    decoder = bench.Decoder(model, 2, captured=captured)
    for _ in range(4):
        assert decoder.rate() > 0
        assert decoder.position.tolist() == [[12], [12]]
        assert {int(layer.cumulative_length) for layer in decoder.cache.layers} == {12}
    assert decoder.token.shape == (2, 1) and decoder.token.dtype == torch.int64
