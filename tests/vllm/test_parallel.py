# SPDX-License-Identifier: MIT
"""A model divided among two cards: ranks are processes, which exchange by spyreccl."""

import pytest
import torch
from checkpoints import prompts, save_model
from engines import Engine
from vllm import LLM


@pytest.fixture
def cards(monkeypatch):
    """Sets the number of embedded cards of the workers; this process opens none."""
    return lambda count: monkeypatch.setenv("SPYRE_EMBEDDED_CARDS", str(count))


@pytest.fixture
def start(cards, tmp_path):
    """Starts the test's engine of two ranks, which ends with it."""
    engines = []

    def make(name, **options):
        cards(2)
        engines.append(Engine(name, tmp_path, tensor_parallel_size=2, **options))
        return engines[0]

    yield make
    for engine in engines:
        engine.close()


def state(worker):
    """Returns the rank's card, the bytes of its weights, and its fallbacks."""
    fallbacks = sum(torch.spyre.fallbacks().values())
    return worker.card.index, worker.model_runner.model_memory_usage, fallbacks


FAMILIES = {
    "grouped heads": "llama3",
    "experts, sinks and windows": "gpt_oss",
    "states and experts": "granite_hybrid",
}


@pytest.mark.parametrize("name", FAMILIES.values(), ids=FAMILIES)
def test_tokens(start, name):
    """Each card has about half of the weights, and nothing of a step runs on the host."""
    engine = start(name)
    before = engine.llm.collective_rpc(state)
    requests = prompts((90, 21, 12, 150), seed=40)
    engine.check(requests, engine.tokens(requests))
    after = engine.llm.collective_rpc(state)
    assert after == before and [card for card, _, _ in after] == [0, 1]
    whole = 2 * sum(parameter.numel() for parameter in engine.model.parameters())
    assert all(size < 0.65 * whole for _, size, _ in after), (after, whole)


def test_more_ranks_than_cards(cards, tmp_path, capfd):
    cards(1)
    save_model("llama3", tmp_path)
    with pytest.raises(Exception, match="initialization failed"):
        LLM(str(tmp_path), skip_tokenizer_init=True, tensor_parallel_size=2, max_model_len=256)
    text = "".join(capfd.readouterr())
    assert "cannot place rank 1 of --tensor-parallel-size 2" in text
