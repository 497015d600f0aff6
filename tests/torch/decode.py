# SPDX-License-Identifier: MIT
"""Graph decode: one step with a cache of fixed size, captured once and replayed for each token."""

import warnings

import torch
import torch._dynamo.testing
import transformers
from support import DEVICE, assert_same


class Decoder:
    """The step of a model from tokens to the next ones.

    Tokens, positions and logits are tensors of the card that each step updates in place. The
    model makes its masks of the number of tokens in the cache, which the card counts; columns of
    the mask that the prompts do not reach stay true, since a later token is masked anyway.
    """

    def __init__(self, model, inputs, new, forward=None):
        rows, length = inputs["input_ids"].shape
        self.model, self.forward = model, forward or model
        self.cache = transformers.StaticCache(config=model.config, max_cache_len=length + new)
        tokens, self.logits = self.prefill(inputs)
        self.token = tokens[:, -1:].clone()
        padding = inputs["attention_mask"]
        self.mask = torch.cat([padding, padding.new_ones(rows, new)], 1)
        self.position = self.next_position(padding)

    def prefill(self, inputs):
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = self.model.generate(
                **inputs, past_key_values=self.cache, max_new_tokens=1, do_sample=False,
                return_dict_in_generate=True, output_logits=True,
            )  # fmt: skip
        return result.sequences, result.logits[0].clone()

    def next_position(self, padding):
        """That of Qwen 2.5 VL has three dimensions; an image has more tokens than positions."""
        position = padding.sum(-1, keepdim=True)
        deltas = getattr(self.model.model, "rope_deltas", None)
        return position if deltas is None else (position + deltas).expand(3, -1, 1).contiguous()

    def step(self):
        with torch.no_grad():
            logits = self.forward(
                input_ids=self.token, position_ids=self.position, attention_mask=self.mask,
                past_key_values=self.cache, use_cache=True,
            ).logits[:, -1]  # fmt: skip
            self.logits.copy_(logits)
            self.token.copy_(logits.argmax(-1, keepdim=True))
            self.position.add_(1)

    def capture(self):
        graph = torch.accelerator.Graph()
        with torch.Stream(device=DEVICE), graph:
            self.step()
        return graph

    def decode(self, steps):
        """The tokens and their logits as rounding.generate() returns them, one more than @steps."""
        tokens, logits = [self.token.cpu()], [self.logits.float().cpu()]
        for step in steps:
            step()
            tokens.append(self.token.cpu())
            logits.append(self.logits.float().cpu())
        return torch.cat(tokens, 1), torch.stack(logits)


def replayed(model, inputs, new):
    """The tokens of the step. Each replay has its bits, and nothing runs on the CPU."""
    step = Decoder(model, inputs, new)
    tokens, logits = step.decode([step.step] * (new - 1))
    replay = Decoder(model, inputs, new)
    with torch.spyre.no_fallbacks():
        graph = replay.capture()
        have, scores = replay.decode([graph.replay] * (new - 1))
    assert_same(have, tokens)
    assert_same(scores, logits)
    return tokens


def check_compiled(model, inputs, new):
    """The step is compiled once; called and replayed, it has the bits of eager mode. Layers with a
    window count on the host, by a number that the second compilation makes a symbol."""
    torch._dynamo.reset()
    step = Decoder(model, inputs, new)
    tokens, logits = step.decode([step.step] * (new - 1))
    counter = torch._dynamo.testing.CompileCounterWithBackend("inductor")
    compiled = Decoder(model, inputs, new, torch.compile(model.forward, backend=counter))
    graphs, frames = [], []

    def call():
        compiled.step()
        frames.append(counter.frame_count)

    def replay():
        if not graphs:
            graphs.append(compiled.capture())
        graphs[0].replay()

    have, scores = compiled.decode([call] * 8 + [replay] * (new - 9))
    assert_same(have, tokens)
    assert_same(scores, logits)
    later = frames[0] + any(
        getattr(layer, "is_sliding", False) for layer in compiled.cache.layers
    )
    assert {*frames[1:], counter.frame_count} == {later}, frames
