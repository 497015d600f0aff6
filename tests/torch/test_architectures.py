# SPDX-License-Identifier: MIT
"""Architectures of transformers and torchvision as their users run them: eager on the card beside
the CPU in fp32, the tokens that the models generate, and torch.compile beside eager mode.

Ten of them run by default; SPYRE_ARCHITECTURES=all runs all, names with commas between them run
those. build/log/architectures.txt is the table of what was measured."""

import copy
import os
import warnings

import architectures
import pytest
import torch
from rounding import Margin, generate, in_dl16, rounded
from support import DEVICE, assert_same

NEW = 12
#: Small ones that differ: split projections, experts, state spaces,
#: windows, and convolutions.
FEW = ("llama", "gpt2", "gptneox", "mixtral", "phi3", "opt", "mamba", "bert", "swin", "tv_resnet18")
#: (model, test): why they differ. Each has to fail as long as it is listed.
KNOWN = {}


def selected():
    names = os.environ.get("SPYRE_ARCHITECTURES", "")
    if names == "all":
        return list(architectures.ALL)
    return names.split(",") if names else FEW


def pytest_generate_tests(metafunc):
    test = metafunc.function.__name__.removeprefix("test_")
    cases = []
    for name in selected():
        if test == "greedy" and not architectures.ALL[name].generates:
            continue
        if test == "layers" and not name.startswith("tv_"):
            continue
        reason = KNOWN.get((name, test))
        marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
        cases.append(pytest.param(name, marks=marks))
    metafunc.parametrize("subject", cases, indirect=True, scope="module")


def placed(inputs, device):
    if isinstance(inputs, tuple):
        return tuple(placed(value, device) for value in inputs)
    if isinstance(inputs, dict):
        return {name: placed(value, device) for name, value in inputs.items()}
    half = device == DEVICE and inputs.is_floating_point()
    return inputs.half().to(device) if half else inputs.to(device)


def tensors(output):
    """Returns the outputs of a model, without its caches."""
    if torch.is_tensor(output):
        return [output]
    if isinstance(output, dict):
        output = tuple(output.values())
    return [t for part in output for t in tensors(part)] if isinstance(output, tuple) else []


def run(model, inputs):
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tensors(model(*inputs) if isinstance(inputs, tuple) else model(**inputs))


def fallbacks():
    return sum(torch.spyre.fallbacks().values())


def cosine(have, want):
    have, want = have.float().cpu().flatten(), want.float().flatten()
    return torch.nn.functional.cosine_similarity(have, want, dim=0).item()


def middle_cosine(have, want):
    """The median of all steps: a router near a tie may take another expert at one of them."""
    return torch.nn.functional.cosine_similarity(have, want, dim=-1).median().item()


class Subject:
    """A model of the CPU, in fp32 with weights that fp16 holds, and the same on the card."""

    def __init__(self, name):
        torch.manual_seed(0)
        self.name, self.row = name, {}
        architecture = architectures.ALL[name]
        self.inputs = architecture.inputs
        half = architecture.model().eval().half()
        self.reference = copy.deepcopy(half).float()
        self.model = half.to(DEVICE)

    def rounded(self, function, *arguments):
        """Returns the CPU's result, with weights and results rounded to DL16."""
        return rounded(in_dl16, function, self.reference, *arguments)

    def prompt(self):
        """The one of eight prompts to which the CPU says most different tokens."""

        def variety(inputs):
            return len(set(generate(self.reference, inputs, NEW)[0].flatten().tolist()))

        return max(map(self.inputs, range(8)), key=variety)


class Table:
    """build/log/architectures.txt, written anew after each model."""

    columns = (
        "model", "eager_cosine", "rounded", "fallbacks", "greedy", "decided", "logits", "compiled",
    )  # fmt: skip

    def __init__(self):
        top = os.environ.get("SPYRE_SRCDIR")
        self.rows = []
        self.path = os.path.join(top, "build/log/architectures.txt") if top else None

    def add(self, subject):
        self.rows.append({"model": subject.name, **subject.row})
        if not self.path:
            return
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "w", encoding="utf-8") as file:
            for row in [{name: name for name in self.columns}, *self.rows]:
                print(*(f"{row.get(name, '-'):<24}" for name in self.columns), file=file)


@pytest.fixture(scope="module")
def table():
    return Table()


@pytest.fixture(scope="module")
def subject(request, table):
    subject = Subject(request.param)
    yield subject
    torch._dynamo.reset()
    table.add(subject)


def test_eager(subject):
    """Every tensor that the model returns points where the CPU's does; one that more than the
    formats' rounding turned stands at no more than twice the angle that rounding on the CPU has."""
    inputs = subject.inputs(0)
    expected = run(subject.reference, placed(inputs, "cpu"))
    before = fallbacks()
    subject.row["eager_cosine"] = "failed"
    actual = run(subject.model, placed(inputs, DEVICE))
    subject.row["fallbacks"] = fallbacks() - before
    assert len(actual) == len(expected) > 0
    cosines = []
    for have, want in zip(actual, expected, strict=True):
        assert have.device.type == DEVICE
        assert want.abs().max() > 1e-3, "outputs too small to say anything"
        assert have.isfinite().all()
        cosines.append(cosine(have, want))
    subject.row["eager_cosine"] = f"{min(cosines):.6f}"
    if min(cosines) >= 0.999:
        return
    of_dl16 = map(cosine, subject.rounded(run, placed(inputs, "cpu")), expected)
    for have, want in zip(cosines, of_dl16, strict=True):
        subject.row["rounded"] = f"{want:.6f}"
        assert 1 - have <= max(0.001, 4 * (1 - want))


def allowed(module, x, want):
    """How far rounding may bring a layer from its result: a step of DL16 at the largest number.

    Layer norm rounds the row less its mean, the mean of its squares, whose root is the scale, and
    the scaled row, each by half a step. The mean's own rounding is part of the row's new mean.
    """
    step = 2**-9 * want.abs().max()
    if type(module) is not torch.nn.LayerNorm:
        return step
    scaled = torch.nn.functional.layer_norm(
        x, module.normalized_shape, module.weight, eps=module.eps
    )
    return (2**-10 * (2.5 * scaled.abs() + want.abs())).maximum(step)


def test_layers(subject):
    """Each layer alone, of the numbers that the card gave it, is right but for its roundings."""
    host = copy.deepcopy(subject.model).cpu().float()
    given = {}

    def before(name):
        def note(module, args):
            given[name] = [t.cpu().float() for t in args]

        return note

    def after(name):
        def check(module, args, result):
            inputs, layer = given.pop(name), host.get_submodule(name)
            want = layer(*inputs)
            off, most = (result.cpu().float() - want).abs(), allowed(layer, inputs[0], want)
            assert (off <= most).all(), f"{name}, {module}: {(off / most).max():.3f} of the limit"

        return check

    hooks = []
    for name, module in subject.model.named_modules():
        if not any(module.children()):
            hooks.append(module.register_forward_pre_hook(before(name)))
            hooks.append(module.register_forward_hook(after(name)))
    try:
        run(subject.model, placed(subject.inputs(0), DEVICE))
    finally:
        for hook in hooks:
            hook.remove()


def test_greedy(subject):
    """The CPU, led along the card's tokens, takes each of them wherever its first token leads by
    more than what rounding on the CPU does to both: twice the largest error of a logit."""
    subject.row["greedy"] = "failed"
    inputs = subject.prompt()
    tokens, logits = generate(subject.model, placed(inputs, DEVICE), NEW)
    _, expected = generate(subject.reference, inputs, NEW, tokens)
    _, of_dl16 = subject.rounded(generate, inputs, NEW, tokens)
    margin = Margin(tokens, expected, of_dl16)
    subject.row["greedy"] = str(margin)
    subject.row["decided"] = f"{margin.decided:.0%}"
    assert margin.decided > 0.5, "ties say nothing"
    assert not margin.wrong
    have, want = middle_cosine(logits, expected), middle_cosine(of_dl16, expected)
    subject.row["logits"] = f"{have:.6f}"
    assert 1 - have <= max(0.001, 4 * (1 - want))


def test_compiled(subject):
    """torch.compile in its default settings leaves the bits of eager mode."""
    inputs = placed(subject.inputs(0), DEVICE)
    torch._dynamo.reset()
    subject.row["compiled"] = "failed"
    eager = run(subject.model, inputs)
    compiled = run(torch.compile(subject.model), inputs)
    off = [(a.float() - b.float()).abs().max().item() for a, b in zip(compiled, eager, strict=True)]
    subject.row["compiled"] = "bits equal" if max(off) == 0 else f"off by {max(off):.2g}"
    for have, want in zip(compiled, eager, strict=True):
        assert_same(have, want)
