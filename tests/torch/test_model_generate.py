# SPDX-License-Identifier: MIT
"""Ways to call generate(): caches of fixed size, sampling, streaming; with reduced models."""

import functools
import os
import threading

import models
import pytest
import torch
import torch._dynamo.testing
import transformers
from rounding import generate
from support import DEVICE, assert_same

NEW = 12


def on_card(name):
    family = models.FAMILIES[name]
    inputs = {
        key: value.to(DEVICE, torch.float16) if value.is_floating_point() else value.to(DEVICE)
        for key, value in family.inputs().items()
    }
    return family.model().half().to(DEVICE), inputs


@pytest.mark.parametrize("name", models.FAMILIES)
def test_static_cache(name):
    """The tokens of a cache that grows; more keys, which are masked, change no token."""
    model, inputs = on_card(name)
    tokens, _ = generate(model, inputs, NEW)
    static, _ = generate(model, inputs, NEW, cache_implementation="static")
    assert_same(static, tokens)


def compiled_families():
    return models.FAMILIES if os.environ.get("SPYRE_ARCHITECTURES") == "all" else ["llama3"]


@pytest.mark.parametrize("name", compiled_families())
def test_static_cache_compiled(name):
    """Eager mode's bits. The prompt and the step are compiled once each; another call of the same
    sizes compiles nothing. By default of one family, with SPYRE_ARCHITECTURES=all of all."""
    torch._dynamo.reset()
    model, inputs = on_card(name)
    tokens, logits = generate(model, inputs, NEW, cache_implementation="static")
    counter = torch._dynamo.testing.CompileCounterWithBackend("inductor")
    compiled, frames = torch.compile(model.forward, backend=counter), []

    @functools.wraps(model.forward)
    def forward(*args, **kwargs):
        result = compiled(*args, **kwargs)
        frames.append(counter.frame_count)
        return result

    model.forward = forward
    for _ in range(2):
        have, scores = generate(model, inputs, NEW, cache_implementation="static")
        assert_same(have, tokens)
        assert_same(scores, logits)
    assert len(frames) == 2 * NEW and set(frames[1:]) == {frames[1]}, frames


def test_sampling():
    """The same seed draws the CPU's tokens, and another one does not."""
    model, inputs = on_card("llama3")
    options = {"max_new_tokens": NEW, "do_sample": True, "top_k": 50, "top_p": 0.9}

    def sample(model, inputs, seed):
        torch.manual_seed(seed)
        with torch.no_grad():
            return model.generate(**inputs, **options).cpu()

    family = models.FAMILIES["llama3"]
    expected = sample(family.model(), family.inputs(), 5)
    assert_same(sample(model, inputs, 5), expected)
    assert not torch.equal(sample(model, inputs, 6), expected)


class Numbers:
    """Decodes tokens as their numbers."""

    def decode(self, ids, **options):
        return " ".join(str(int(token)) for token in ids) + " "


def test_streaming():
    """Another thread generates; the text that arrives is that of all tokens."""
    model, inputs = on_card("llama3")
    one = {name: value[:1] for name, value in inputs.items()}
    streamer = transformers.TextIteratorStreamer(Numbers(), skip_prompt=True, timeout=60)
    options = {"max_new_tokens": NEW, "do_sample": False, "streamer": streamer}
    thread = threading.Thread(target=lambda: model.generate(**one, **options))
    thread.start()
    text = "".join(streamer)
    thread.join()
    tokens, _ = generate(model, one, NEW)
    assert text.split() == [str(token) for token in tokens[0].tolist()]
