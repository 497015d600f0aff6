# SPDX-License-Identifier: MIT
"""The seven model families of models.py as their users run them: 24 tokens for three prompts of
unequal length, two of them with images where the model sees, in transformers' default settings.

By default three of the families also run compiled, in fp16; SPYRE_ARCHITECTURES=all compiles all
of them, in bf16 as well. All decode with a graph of a step, captured once."""

import os

import models
import pytest
import torch
from decode import check_compiled, replayed
from rounding import STORED, Margin, generate, rounded
from support import DEVICE, assert_same

NEW = 24
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}

#: Compiled by default: symbols in sizes, two kinds of layers with experts, vision.
FEW = {("llama3", "fp16"), ("granite_hybrid", "fp16"), ("qwen2_5_vl", "fp16")}
#: Calls of operations that run on the CPU in a whole generate(): at most these, and never more. Those
#: of Qwen have sizes that depend on data: elements at masks, repeats, unique elements.
FALLBACKS = {
    "gpt_oss": 0,
    "granite_hybrid": 0,
    "mistral_small": 0,
    "qwen2_5_vl": 11,
    "llama3": 0,
    "ministral": 0,
    "ministral3": 0,
}


def placed(inputs, dtype):
    return {
        name: value.to(DEVICE, dtype) if value.is_floating_point() else value.to(DEVICE)
        for name, value in inputs.items()
    }


def fallbacks():
    return dict(torch.spyre.fallbacks())


def since(before):
    counts = {name: n - before.get(name, 0) for name, n in fallbacks().items()}
    return {name: n for name, n in counts.items() if n}


class Census:
    """The names of the operations that ran on the CPU inside of a model's decoder layers."""

    def __init__(self, layers):
        self.prefill, self.decode, self.entered = set(), set(), {}
        for layer in layers:
            layer.register_forward_pre_hook(self.enter)
            layer.register_forward_hook(self.leave)

    def enter(self, layer, args):
        self.entered[layer] = fallbacks()

    def leave(self, layer, args, result):
        names = self.prefill if args[0].shape[1] > 1 else self.decode
        names.update(since(self.entered.pop(layer)))


class Subject:
    """A family's tokens and logits on the card, and the CPU's where it is led along them."""

    def __init__(self, name, dtype):
        self.name, self.dtype = name, dtype
        model = self.on_card()
        self.census = Census(model.get_submodule(models.FAMILIES[name].layers))
        before = fallbacks()
        self.tokens, self.logits = generate(model, self.inputs(), NEW)
        self.fallbacks = since(before)
        self.expected, self.rounded = self.led(self.tokens)

    def led(self, tokens):
        """The CPU's logits along @tokens, in fp32 and rounded."""
        family = models.FAMILIES[self.name]
        inputs, reference = family.inputs(), family.model()
        _, expected = generate(reference, inputs, NEW, tokens)
        _, rough = rounded(STORED[self.dtype], generate, reference, inputs, NEW, tokens)
        return expected, rough

    def check_tokens(self, tokens):
        """Those of another way to decode; test_tokens checks those of generate()."""
        if not torch.equal(tokens, self.tokens):
            margin = Margin(tokens, *self.led(tokens))
            assert not margin.wrong, margin

    def on_card(self):
        return models.FAMILIES[self.name].model().to(self.dtype).to(DEVICE)

    def inputs(self):
        return placed(models.FAMILIES[self.name].inputs(), self.dtype)


CASES = [(name, dtype) for name in models.FAMILIES for dtype in DTYPES]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def subject(request):
    name, dtype = request.param
    subject = Subject(name, DTYPES[dtype])
    subject.compiles = os.environ.get("SPYRE_ARCHITECTURES") == "all" or request.param in FEW
    return subject


class TestEager:
    def test_tokens(self, subject):
        """Each is the CPU's in fp32 wherever rounding leaves no choice."""
        variety = [len(set(row.tolist())) for row in subject.tokens]
        assert min(variety) >= 8, f"{variety} different tokens say little"
        margin = Margin(subject.tokens, subject.expected, subject.rounded)
        assert margin.decided > 0.5, f"{margin.decided:.0%} of the tokens are decided"
        assert not margin.wrong, margin

    def test_logits(self, subject):
        """The median step is as close as rounding lets the CPU be; that of a single one says less,
        because a router near a tie may take another expert."""
        have, want = (
            (logits - subject.expected).abs().amax(-1).median()
            for logits in (subject.logits, subject.rounded)
        )
        assert have <= 1.5 * want

    def test_fallbacks_of_generate(self, subject):
        assert sum(subject.fallbacks.values()) <= FALLBACKS[subject.name], subject.fallbacks

    def test_fallbacks_in_decoder_layers(self, subject):
        assert not subject.census.prefill and not subject.census.decode


class TestCompiled:
    def test_bits_of_eager_mode(self, subject):
        """In the default settings, in which sizes become symbols as the cache grows."""
        if not subject.compiles:
            pytest.skip("SPYRE_ARCHITECTURES=all compiles all families")
        torch._dynamo.reset()
        model = subject.on_card()
        model.forward = torch.compile(model.forward)
        tokens, logits = generate(model, subject.inputs(), NEW)
        assert_same(tokens, subject.tokens)
        assert_same(logits, subject.logits)


class TestGraph:
    """The decode step with a cache of fixed size, captured once and replayed for each token."""

    def test_tokens(self, subject):
        subject.check_tokens(replayed(subject.on_card(), subject.inputs(), NEW))

    def test_compiled(self, subject):
        if not subject.compiles:
            pytest.skip("SPYRE_ARCHITECTURES=all compiles all families")
        check_compiled(subject.on_card(), subject.inputs(), NEW)
