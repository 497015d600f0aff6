# SPDX-License-Identifier: MIT
"""Engines of a small Granite 4 hybrid: layers of Mamba 2, whose states are in the card's memory,
beside attention, with tokens equal to transformers' by the rule of tests/torch."""

import gc

import pytest
import torch
from checkpoints import prompts
from engines import GREEDY, Engine

NEW = 24
PARAMS = GREEDY.clone()
PARAMS.max_tokens = NEW
ROWS = 3


def runner_of(engine):
    return engine.llm.llm_engine.model_executor.driver_worker.model_runner


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    engine = Engine("granite_hybrid", tmp_path_factory.mktemp("granite"), max_num_seqs=ROWS)
    yield engine
    engine.close()


@pytest.fixture
def start(tmp_path):
    """Starts the test's engine, which ends with it."""
    engines = []

    def make(dtype=torch.float16, **options):
        engines.append(Engine("granite_hybrid", tmp_path, dtype, **options))
        return engines[0]

    yield make
    for engine in engines:
        engine.close()


class TestTokens:
    def test_unequal_lengths(self, engine):
        requests = prompts((26, 21, 12))
        results = engine.tokens(requests, PARAMS)
        assert min(len(set(result)) for result in results) >= NEW // 3
        engine.check(requests, results)

    def test_chunked_prefill(self, engine):
        """Prompts longer than a step's tokens begin with a state, beside one that decodes."""
        requests = prompts((150, 4, 201), seed=3)
        engine.check(requests, engine.tokens(requests, PARAMS))

    def test_prompts_of_one_token(self, engine):
        """They begin in a decode step, whose other requests have a state."""
        requests = prompts((1, 30, 1), seed=4)
        engine.check(requests, engine.tokens(requests, PARAMS))

    def test_more_requests_than_rows(self, engine):
        """The row of a request that has ended is another one's."""
        requests = prompts((5, 40, 9, 17, 2, 33, 11), seed=1)
        engine.check(requests, engine.tokens(requests, PARAMS))
        rows = runner_of(engine).rows
        assert len(rows.held) + len(rows.free) == ROWS

    def test_a_row_that_was_used_changes_nothing(self, engine):
        """Bits, since the steps are the same."""
        ids = prompts((30,), seed=5)
        first = engine.tokens(ids, PARAMS)
        engine.tokens(prompts((50, 60, 64), seed=6), PARAMS)
        assert engine.tokens(ids, PARAMS) == first

    def test_requests_that_are_aborted(self, engine):
        """Their rows are free again."""
        core = engine.llm.llm_engine
        for round in range(2 * ROWS):
            (ids,) = prompts((20,), seed=round)
            core.add_request(f"gone {round}", {"prompt_token_ids": ids}, PARAMS)
            for _ in range(3):
                core.step()
            core.abort_request([f"gone {round}"], internal=False)
        requests = prompts((26, 21, 12), seed=2)
        engine.check(requests, engine.tokens(requests, PARAMS))


class TestSteps:
    def test_nothing_runs_on_the_host(self, engine):
        before = dict(torch.spyre.fallbacks())
        engine.tokens(prompts((70, 5), seed=6), PARAMS)
        assert dict(torch.spyre.fallbacks()) == before

    def test_decode_steps_are_replayed(self, engine):
        """Each replay takes the states one token further, as steps that are called do."""
        model = runner_of(engine).model
        requests = prompts((20, 21, 22), seed=15)
        engine.tokens(requests, PARAMS)
        before = model.replayed, model.called
        results = engine.tokens(requests, PARAMS)
        assert (model.replayed - before[0], model.called - before[1]) == (NEW - 1, 1)
        model.graphs = False
        assert engine.tokens(requests, PARAMS) == results
        model.graphs = True

    def test_memory_returns(self, engine):
        engine.tokens(prompts((20, 21), seed=9), PARAMS)
        engine.tokens(prompts((20, 21), seed=9), PARAMS)
        gc.collect()
        before = torch.spyre.memory_allocated()
        engine.tokens(prompts((20, 21), seed=10), PARAMS)
        gc.collect()
        assert torch.spyre.memory_allocated() == before

    def test_caches_have_a_row_for_each_request(self, engine):
        runner = runner_of(engine)
        layers = runner.compilation_config.static_forward_context
        states = [layer.kv_cache for name, layer in layers.items() if name.endswith("mixer")]
        assert [tuple(t.shape) for t in states[0]] == [(ROWS + 1, 3 * 384), (ROWS + 1, 8 * 32 * 64)]
        assert len(states) == 2 and all(t.device.type == "spyre" for pair in states for t in pair)


def test_preemption(start):
    """A request gives its page to another one, and its state is computed again."""
    engine = start(num_gpu_blocks_override=8, max_num_seqs=2)
    assert engine.llm.llm_engine.vllm_config.cache_config.block_size == 192
    requests = prompts((185, 186), seed=13)
    results = engine.tokens(requests, PARAMS)
    assert engine.metric("vllm:num_preemptions") > 0
    engine.check(requests, results)


SETTINGS = {
    "bfloat16": (torch.bfloat16, {}),
    "states in float32": (torch.float16, dict(mamba_ssm_cache_dtype="float32")),
    "without graphs": (torch.float16, dict(enforce_eager=True)),
}


@pytest.mark.parametrize("dtype, options", SETTINGS.values(), ids=SETTINGS)
def test_settings(start, dtype, options):
    engine = start(dtype, **options)
    requests = prompts((90, 21, 12), seed=14)
    engine.check(requests, engine.tokens(requests, PARAMS))
    if "mamba_ssm_cache_dtype" in options:
        layers = runner_of(engine).compilation_config.static_forward_context
        caches = [layer.kv_cache for name, layer in layers.items() if name.endswith("mixer")]
        assert {pair[1].dtype for pair in caches} == {torch.float32}


def test_prefix_caching_is_turned_off(start, caplog):
    engine = start(enable_prefix_caching=True)
    assert "prefix caching is off" in caplog.text
    (shared,) = prompts((200,), seed=4)
    requests = [shared + [7, 8, 9], shared + [30, 20, 10]]
    results = [*engine.tokens(requests[:1], PARAMS), *engine.tokens(requests[1:], PARAMS)]
    assert engine.metric("vllm:prefix_cache_hits") == 0
    engine.check(requests, results)
