# SPDX-License-Identifier: MIT
"""vLLM's engine in this process, and transformers on the host in fp32."""

import gc

import torch
from checkpoints import save_model
from rounding import STORED, Margin, generate, in_dl16, rounded
from vllm import LLM, SamplingParams

NEW = 16
GREEDY = SamplingParams(temperature=0, max_tokens=NEW, ignore_eos=True, detokenize=False)
#: Tokens of fp32 have to be right wherever those of fp16 have.
ROUNDED = STORED | {torch.float32: in_dl16}


class Reference:
    """A family's model on the host; its checkpoint is at @path."""

    def __init__(self, name, path, dtype=torch.float16):
        self.model, self.dtype = save_model(name, path, dtype), dtype

    def margin(self, ids, tokens, **images):
        """Tokens of the card beside those that the host takes where it is led along them."""
        inputs = {"input_ids": torch.tensor([ids]), **images}
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        taken = torch.tensor([tokens])
        led = inputs, len(tokens), taken
        _, expected = generate(self.model, *led)
        _, rough = rounded(ROUNDED[self.dtype], generate, self.model, *led)
        return Margin(taken, expected, rough)

    def check(self, requests, results, least=0.5, images=None):
        """Raises for a wrong token, and where fewer than @least of the tokens are decided.
        @images has the further inputs of each request."""
        images = images or [{} for _ in requests]
        margins = [
            self.margin(ids, tokens, **more)
            for ids, tokens, more in zip(requests, results, images, strict=True)
        ]
        assert not any(margin.wrong for margin in margins), [str(m) for m in margins]
        decided = sum(margin.decided for margin in margins) / len(margins)
        assert decided > least, f"{decided:.0%} of the tokens are decided"


class Engine(Reference):
    """The engine that serves the model."""

    def __init__(self, name, path, dtype=torch.float16, **options):
        super().__init__(name, path, dtype)
        settings = dict(max_model_len=256, max_num_seqs=4, max_num_batched_tokens=64, seed=0)
        settings["skip_tokenizer_init"] = True
        self.llm = LLM(str(path), dtype=dtype, disable_log_stats=False, **settings | options)

    def tokens(self, requests, params=GREEDY):
        given = [{"prompt_token_ids": ids} for ids in requests]
        return [
            output.outputs[0].token_ids
            for output in self.llm.generate(given, params, use_tqdm=False)
        ]

    def metric(self, name):
        return sum(m.value for m in self.llm.get_metrics() if m.name == name)

    def close(self):
        self.llm.llm_engine.engine_core.shutdown()
        del self.llm
        gc.collect()
