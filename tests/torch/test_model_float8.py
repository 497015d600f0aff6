# SPDX-License-Identifier: MIT
"""Weights and inputs of 8 bits, as the families that are published in them have it.

Checkpoints of Ministral 3 have a scale for each weight and one for its inputs, found beforehand;
those of Llama 3.1 and Granite 4 a scale for each row of a weight, and find one for each token.
transformers' own layers of these checkpoints call kernels of other vendors, and without them it
converts the weights to bfloat16 as it loads. The layers here are of torch._scaled_mm instead.

By default one family runs, in one dtype; SPYRE_ARCHITECTURES=all runs both, and compiles."""

import os

import models
import pytest
import torch
from decode import check_compiled, replayed
from rounding import STORED, Margin, generate, rounded
from support import DEVICE
from test_model_families import FALLBACKS, NEW, fallbacks, placed, since
from torch import nn

E4 = torch.float8_e4m3fn
MOST = torch.finfo(E4).max


class Static(nn.Module):
    """Scales of whole factors. Numbers become codes in @wide: in fp32 on the card, in fp64 on the
    CPU, whose results of fp32 may be rounded, as this division is not."""

    wide = torch.float32

    def __init__(self, linear, most):
        super().__init__()
        weight = linear.weight.double()
        scale = self.scale_of(weight)
        self.register_buffer("scale", scale.t().contiguous())
        self.register_buffer("input_scale", most.double() / MOST)
        self.register_buffer("weight", (weight / scale).clamp(-MOST, MOST).to(E4))
        self.bias = linear.bias

    def scale_of(self, weight):
        return weight.abs().amax() / MOST

    def scale_of_inputs(self, rows):
        return self.input_scale

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1]).to(self.wide)
        scale = self.scale_of_inputs(rows)
        codes = (rows / scale).clamp(-MOST, MOST).to(E4)
        result = torch._scaled_mm(
            codes, self.weight.t(), scale.float(), self.scale.float(), bias=self.bias,
            out_dtype=x.dtype,
        )  # fmt: skip
        return result.view(*x.shape[:-1], -1)


class Dynamic(Static):
    """Scales of rows, those of the inputs by their largest number."""

    def scale_of(self, weight):
        return weight.abs().amax(1, keepdim=True) / MOST

    def scale_of_inputs(self, rows):
        return rows.abs().amax(-1, keepdim=True).clamp(min=1e-4) / MOST


def largest_inputs(model, layers, inputs):
    """The largest number that each linear layer takes."""
    found = {}

    def note(layer, args):
        found[layer] = torch.maximum(found.get(layer, torch.tensor(0.0)), args[0].abs().amax())

    hooks = [layer.register_forward_pre_hook(note) for layer in layers]
    generate(model, inputs, 2)
    for hook in hooks:
        hook.remove()
    return found


def narrowed(family, kind):
    """The model in fp32 with the linear layers of its decoder in 8 bits."""
    model = family.model()
    decoder = model.get_submodule(family.layers)
    layers = {n: m for n, m in decoder.named_modules() if type(m) is nn.Linear}
    most = largest_inputs(model, layers.values(), family.inputs())
    with torch.no_grad():
        for name, layer in layers.items():
            parent, _, own = name.rpartition(".")
            setattr(decoder.get_submodule(parent), own, kind(layer, most[layer]))
    return model, len(layers)


def on_card(model, dtype):
    """Scales are of fp32, as checkpoints have them, and codes stay."""
    for module in model.modules():
        for name, value in list(module.named_buffers(recurse=False)):
            if value.dtype == torch.float64:
                setattr(module, name, value.float())
    layers = [m for m in model.modules() if isinstance(m, Static)]
    kept = [dict(m.named_buffers(recurse=False)) for m in layers]
    model.to(dtype)
    for layer, buffers in zip(layers, kept, strict=True):
        for name, value in buffers.items():
            setattr(layer, name, value)
    return model.to(DEVICE)


ALL = os.environ.get("SPYRE_ARCHITECTURES") == "all"
FP16, BF16 = torch.float16, torch.bfloat16
CASES = {"llama3-dynamic-fp16": ("llama3", Dynamic, FP16)}
if ALL:
    CASES["llama3-dynamic-bf16"] = ("llama3", Dynamic, BF16)
    CASES["ministral3-static-fp16"] = ("ministral3", Static, FP16)
    CASES["ministral3-static-bf16"] = ("ministral3", Static, BF16)


class Subject:
    def __init__(self, name, kind, dtype):
        self.name, self.kind, self.dtype = name, kind, dtype
        self.family = models.FAMILIES[name]
        self.reference, self.count = narrowed(self.family, kind)
        self.model = on_card(narrowed(self.family, kind)[0], dtype)
        for module in self.reference.modules():
            if isinstance(module, Static):
                module.wide = torch.float64

    def inputs(self):
        return placed(self.family.inputs(), self.dtype)

    def led(self, tokens):
        """The CPU's logits along @tokens, in fp32 and rounded."""
        inputs = self.family.inputs()
        _, expected = generate(self.reference, inputs, NEW, tokens)
        _, rough = rounded(STORED[self.dtype], generate, self.reference, inputs, NEW, tokens)
        return expected, rough


@pytest.fixture(scope="module", params=CASES)
def subject(request):
    return Subject(*CASES[request.param])


def test_tokens(subject):
    """Each is the CPU's with the same codes and scales, wherever rounding leaves no choice. It
    leaves one more often than for 16 bits: where it takes an input beyond the middle of two codes,
    that input changes by up to an eighth."""
    before = fallbacks()
    tokens, logits = generate(subject.model, subject.inputs(), NEW)
    assert subject.count >= 14
    assert sum(since(before).values()) <= FALLBACKS[subject.name], since(before)
    expected, rough = subject.led(tokens)
    margin = Margin(tokens, expected, rough)
    assert margin.decided > 0.1, f"{margin.decided:.0%} of the tokens are decided"
    assert not margin.wrong, margin
    have, want = ((x - expected).abs().amax(-1).median() for x in (logits, rough))
    assert have <= 1.5 * want
    graph = replayed(subject.model, subject.inputs(), NEW)
    if not torch.equal(graph, tokens):
        assert not Margin(graph, *subject.led(graph)).wrong


@pytest.mark.skipif(not ALL, reason="SPYRE_ARCHITECTURES=all compiles")
def test_compiled(subject):
    check_compiled(subject.model, subject.inputs(), NEW)
