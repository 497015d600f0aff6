# SPDX-License-Identifier: MIT
"""An engine of a small Llama: tokens equal to transformers' wherever rounding leaves no choice, as
tests/torch/test_model_families.py has it; what a step does; sampling."""

import gc

import pytest
import torch
import torch_spyre
from checkpoints import prompts
from engines import GREEDY, NEW, Engine
from vllm import SamplingParams
from vllm.exceptions import VLLMValidationError


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    engine = Engine("llama3", tmp_path_factory.mktemp("llama3"))
    yield engine
    engine.close()


class TestTokens:
    def test_unequal_lengths(self, engine):
        requests = prompts((26, 21, 12, 3))
        results = engine.tokens(requests)
        assert min(len(set(result)) for result in results) >= NEW // 3
        engine.check(requests, results)

    def test_more_requests_than_run_at_once(self, engine):
        requests = prompts((5, 40, 9, 17, 2, 33, 64, 1, 11), seed=1)
        engine.check(requests, engine.tokens(requests))

    def test_a_request_alone_has_the_same_tokens(self, engine):
        requests = prompts((26, 21, 12), seed=2)
        together = engine.tokens(requests)
        for ids, tokens in zip(requests, together, strict=True):
            alone = engine.tokens([ids])
            if alone != [tokens]:
                engine.check([ids, ids], [*alone, tokens])

    def test_chunked_prefill(self, engine):
        """Prompts longer than a step's tokens, over several pages, beside one that decodes."""
        requests = prompts((150, 4, 201), seed=3)
        engine.check(requests, engine.tokens(requests))

    def test_prefix_caching(self, engine):
        (shared,) = prompts((130,), seed=4)
        first, second = shared + [7, 8, 9], shared + [30, 20, 10]
        before = engine.metric("vllm:prefix_cache_hits")
        results = [*engine.tokens([first]), *engine.tokens([second])]
        assert engine.metric("vllm:prefix_cache_hits") - before == 128
        engine.check([first, second], results)

    def test_up_to_the_limit(self, engine):
        requests = prompts((240, 250, 248), seed=5)
        params = GREEDY.clone()
        params.max_tokens = 100
        results = engine.tokens(requests, params)
        assert [len(tokens) for tokens in results] == [16, 6, 8]
        # Rounding adds up along a prompt of random tokens: more of these tokens are near ties.
        engine.check(requests, results, least=0.25)


class TestSteps:
    def test_nothing_runs_on_the_host(self, engine):
        before = dict(torch.spyre.fallbacks())
        engine.tokens(prompts((70, 5), seed=6))
        assert dict(torch.spyre.fallbacks()) == before

    def test_decode_steps_are_replayed(self, engine):
        """With the tokens of steps that are called."""
        model = engine.llm.llm_engine.model_executor.driver_worker.model_runner.model
        requests = prompts((20, 21, 22), seed=15)
        engine.tokens(requests)
        before = model.replayed, model.called
        results = engine.tokens(requests)
        # The prompts are one step; each later one has a shape that the first run has met.
        assert (model.replayed - before[0], model.called - before[1]) == (NEW - 1, 1)
        model.graphs = False
        assert engine.tokens(requests) == results
        model.graphs = True

    def test_programs_are_cached(self, engine):
        requests = prompts((20, 21, 22), seed=7)
        engine.tokens(requests)
        before = torch_spyre._C.program_cache_stats()
        engine.tokens(prompts((19, 23, 18), seed=8))
        after = torch_spyre._C.program_cache_stats()
        assert after["misses"] == before["misses"] and after["hits"] > before["hits"]

    def test_memory_returns(self, engine):
        """Once the graphs of a shape are there, requests leave nothing behind."""
        engine.tokens(prompts((20, 21), seed=9))
        engine.tokens(prompts((20, 21), seed=9))
        gc.collect()
        before = torch.spyre.memory_allocated()
        engine.tokens(prompts((20, 21), seed=10))
        gc.collect()
        assert torch.spyre.memory_allocated() == before


class TestSampling:
    def test_seeds(self, engine):
        (ids,) = prompts((12,), seed=11)
        params = SamplingParams(
            temperature=1.0, top_p=0.9, top_k=40, max_tokens=NEW, seed=5, detokenize=False,
            ignore_eos=True,
        )  # fmt: skip
        first, second = engine.tokens([ids], params), engine.tokens([ids], params)
        params.seed = 6
        assert first == second != engine.tokens([ids], params)

    def test_logprobs(self, engine):
        (ids,) = prompts((12,), seed=12)
        params = SamplingParams(temperature=0, max_tokens=1, logprobs=3, detokenize=False)
        (output,) = engine.llm.generate([{"prompt_token_ids": ids}], params, use_tqdm=False)
        have = output.outputs[0].logprobs[0]
        with torch.no_grad():
            want = engine.model(torch.tensor([ids])).logits[0, -1].log_softmax(-1)
        for token, entry in have.items():
            assert abs(entry.logprob - want[token].item()) < 0.1

    def test_prompt_logprobs_are_refused(self, engine):
        params = SamplingParams(prompt_logprobs=1, detokenize=False)
        with pytest.raises(VLLMValidationError, match="cannot return prompt_logprobs on spyre"):
            engine.tokens(prompts((4,)), params)
