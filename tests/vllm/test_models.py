# SPDX-License-Identifier: MIT
"""Engines with other models and settings, one after the other."""

import pytest
import torch
from checkpoints import prompts
from engines import GREEDY, NEW, Engine
from vllm import SamplingParams


@pytest.fixture
def start(tmp_path):
    """Starts the test's engine, which ends with it."""
    engines = []

    def make(name, dtype=torch.float16, **options):
        engines.append(Engine(name, tmp_path, dtype, **options))
        return engines[0]

    yield make
    for engine in engines:
        engine.close()


def test_preemption(start):
    """Pages for two of three requests: one is preempted and computed again."""
    engine = start("llama3", num_gpu_blocks_override=5, max_num_seqs=3, enable_prefix_caching=False)
    requests = prompts((60, 61, 62), seed=13)
    results = engine.tokens(requests)
    assert engine.metric("vllm:num_preemptions") > 0
    engine.check(requests, results)


def test_seeds(start):
    """A seed gives the same tokens however a prompt is divided: here into two chunks beside other
    requests, and, since its page is cached then, into one."""
    engine = start("llama3")
    requests = prompts((100, 70, 90), seed=20)
    params = SamplingParams(seed=7, max_tokens=NEW, ignore_eos=True, detokenize=False)
    together = engine.tokens(requests, params)
    assert engine.tokens(requests[:1], params) == together[:1]
    assert engine.metric("vllm:prefix_cache_hits") >= 64
    # Another draw, and so another seed, gives others.
    params.seed = 8
    assert engine.tokens(requests[:1], params) != together[:1]


def test_embeddings_as_prompts(start):
    engine = start("llama3", enable_prompt_embeds=True)
    requests = prompts((90, 12), seed=21)
    embed = engine.model.get_input_embeddings()
    given = [
        {"prompt_embeds": embed(torch.tensor(requests[0])).detach().half()},
        {"prompt_token_ids": requests[1]},
    ]
    outputs = engine.llm.generate(given, GREEDY, use_tqdm=False)
    engine.check(requests, [output.outputs[0].token_ids for output in outputs])


FAMILIES = {
    "a window in most layers": ("ministral", torch.float16),
    "experts, sinks and windows": ("gpt_oss", torch.float16),
    "bfloat16": ("llama3", torch.bfloat16),
    "float32": ("llama3", torch.float32),
}


@pytest.mark.parametrize("name, dtype", FAMILIES.values(), ids=FAMILIES)
def test_families(start, name, dtype):
    engine = start(name, dtype)
    requests = prompts((90, 21, 12), seed=14)
    engine.check(requests, engine.tokens(requests))


def test_graphs_are_few(start, monkeypatch):
    """Shapes that were not used for long are forgotten."""
    monkeypatch.setattr("vllm_spyre_open.model.GRAPHS", 2)
    engine = start("llama3")
    requests = prompts((60, 3, 120), seed=16)
    results = engine.tokens(requests)
    model = engine.llm.llm_engine.model_executor.driver_worker.model_runner.model
    assert len(model.steps) == 2
    engine.check(requests, results)
