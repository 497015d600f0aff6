# SPDX-License-Identifier: MIT
"""One decoder layer of each kind of the models that come first, at full size: the layers of
transformers, built from the configurations of tools/models, on a prompt and on one more token."""

import json
import os
from dataclasses import dataclass

import pytest
import torch
import transformers
from rounding import Rounded, in_dl16
from support import DEVICE
from transformers.initialization import no_init_weights

MODELS = os.path.join(os.environ["SPYRE_SRCDIR"], "tools/models")


def rope(kind, theta, **fields):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": theta} | fields}


#: Fields of the public configurations that an estimate does not need.
FIELDS = {
    "gpt-oss-20b": rope(
        "yarn", 150000.0, factor=32.0, beta_fast=32.0, beta_slow=1.0, truncate=False,
        original_max_position_embeddings=4096,
    ),
    "granite-4.0-h-small": {"attention_multiplier": 1 / 128, "residual_multiplier": 0.22},
    "granite-4.0-h-tiny": {"attention_multiplier": 1 / 128, "residual_multiplier": 0.22},
    "llama-3.1-8b": rope(
        "llama3", 500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=8192,
    ) | {"max_position_embeddings": 131072},
    "ministral-3-14b": rope(
        "yarn", 1e9, factor=16.0, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0,
        llama_4_scaling_beta=0.1, original_max_position_embeddings=16384,
    ) | {"max_position_embeddings": 262144},
    "qwen2.5-vl-7b": rope("default", 1e6, mrope_section=[16, 24, 24]),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """Layers of a model, a prompt of @tokens, and fields that differ from the real model's."""

    model: str
    layers: tuple = ()
    tokens: int = 16
    fields: tuple = ()
    #: The experts of a layer exceed the span of a core, 256 MiB. The card then computes a product for
    #: each of them, and those without rows run on the CPU.
    beyond_span: bool = False
    #: One of each structure runs by default, SPYRE_ARCHITECTURES=all runs all.
    default: bool = False

    def configuration(self):
        with open(os.path.join(MODELS, self.model + ".json"), encoding="utf-8") as file:
            fields = json.load(file)
        fields = fields.get("text_config", fields) | FIELDS.get(self.model, {})
        fields |= {"num_hidden_layers": 1, "vocab_size": 64, "pad_token_id": 0}
        if self.layers:
            fields |= {"num_hidden_layers": len(self.layers), "layer_types": list(self.layers)}
        kind = fields.pop("model_type")
        kind = {"qwen2_5_vl": "qwen2_5_vl_text"}.get(kind, kind)
        return transformers.AutoConfig.for_model(kind, **fields | dict(self.fields))


#: transformers counts the tokens of a cache in a layer of attention, so Mamba has one behind it. In
#: h-small, two layers with all 72 experts would take 7 GB in fp32, so that pair has 18. The window of
#: GPT-OSS is shorter than the prompt; that of Ministral, of 32768 tokens, is beyond reach.
CASES = {
    "gpt-oss-20b-window": Case("gpt-oss-20b", ("sliding_attention",), tokens=144, beyond_span=True),
    "gpt-oss-20b-full": Case("gpt-oss-20b", ("full_attention",), beyond_span=True),
    "granite-4.0-h-small-attention": Case("granite-4.0-h-small", ("attention",), beyond_span=True),
    "granite-4.0-h-small-mamba": Case(
        "granite-4.0-h-small", ("mamba", "attention"), fields=(("num_local_experts", 18),)
    ),
    "granite-4.0-h-tiny": Case("granite-4.0-h-tiny", ("mamba", "attention"), default=True),
    "llama-3.1-8b": Case("llama-3.1-8b", default=True),
    "ministral-3-14b": Case("ministral-3-14b"),
    "ministral-8b-full": Case("ministral-8b", ("full_attention",)),
    "ministral-8b-window": Case("ministral-8b", ("sliding_attention",)),
    "mistral-small-24b": Case("mistral-small-24b"),
    "qwen2.5-vl-7b": Case("qwen2.5-vl-7b", default=True),
}


def drawn(shape, step, seed):
    """Multiples of @step up to 127, which DL16, fp16 and fp32 hold exactly."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(-127, 128, shape, generator=generator, dtype=torch.int8)
    return values.float().mul_(step)


def build(case):
    """A model of these layers in fp32. No number of it is rounded on the card."""
    with no_init_weights():
        model = transformers.AutoModel.from_config(case.configuration()).eval()
    with torch.no_grad():
        for seed, (field, p) in enumerate(model.named_parameters()):
            if "conv1d" in field:
                p.copy_(drawn(p.shape, 2.0**-8, seed))
            elif p.dim() > 1 or "bias" in field or "sinks" in field:
                p.copy_(drawn(p.shape, 2.0**-12, seed))
            else:
                p.copy_(in_dl16(p))
    return model


@torch.no_grad()
def run(model, prompt, token):
    """The rows of a prompt, and of one more token, which the cache serves."""
    first = model(inputs_embeds=prompt, use_cache=True)
    second = model(inputs_embeds=token, past_key_values=first.past_key_values, use_cache=True)
    states = [output.last_hidden_state.float().cpu() for output in (first, second)]
    return torch.cat(states, 1)[0]


@pytest.mark.parametrize("name", CASES)
def test_layer(name):
    case = CASES[name]
    if not case.default and os.environ.get("SPYRE_ARCHITECTURES") != "all":
        pytest.skip("SPYRE_ARCHITECTURES=all runs all models at full size")
    model = build(case)
    inputs = [
        drawn((1, rows, model.config.hidden_size), 2.0**-6, seed)
        for seed, rows in enumerate((case.tokens, 1))
    ]
    expected = run(model, *inputs)
    with Rounded(in_dl16):
        rounded = run(model, *inputs)
    with torch.no_grad():
        change = (expected - model.norm(torch.cat(inputs, 1))[0]).abs().amax(-1).median()
    model = model.half().to(DEVICE)
    before = dict(torch.spyre.fallbacks())
    made = run(model, *(x.half().to(DEVICE) for x in inputs))
    fallbacks = {key for key, n in torch.spyre.fallbacks().items() if n != before.get(key, 0)}
    assert fallbacks == ({"aten::mm.out"} if case.beyond_span else set())
    # As of whole models: the median row is as close as rounding lets the CPU be. Of a single
    # one, a router near a tie may take another expert.
    have, want = ((rows - expected).abs().amax(-1).median() for rows in (made, rounded))
    assert have <= 1.5 * want
    assert change > 10 * want, "the layers change little, so that the bound says little"
