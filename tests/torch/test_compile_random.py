# SPDX-License-Identifier: MIT
"""A thousand random graphs, fused, against the same operations one by one: every bit.

The graphs go the way of torch.compile from the pass over Inductor's graph to
the launch of the bundles, without dynamo and without a wrapper in between, as
these take most of the time. Every 100th goes all the way.
"""

import operator
import os
import random

import pytest
import torch
from support import DEVICE, assert_same, exact
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

GRAPHS = int(os.environ.get("SPYRE_TEST_GRAPHS", 1000))
CHUNKS = 20
DTYPES = [torch.float16, torch.float32]
SIZES = [(16, 64), (5, 130), (3, 7, 64), (2, 33, 96)]

UNARY = [
    torch.abs, torch.neg, torch.relu, torch.sigmoid, torch.tanh, torch.exp,
    torch.sin, torch.cos, torch.erf, torch.nn.functional.silu, torch.nn.functional.gelu, torch.floor,
    torch.square, lambda x: x * 0.5, lambda x: x + 3, lambda x: 1 - x,
    lambda x: x.clamp(-1, 2), lambda x: torch.rsqrt(x.abs() + 1),
    lambda x: torch.reciprocal(x.abs() + 1),
    lambda x: torch.log(x.abs() + 1), lambda x: torch.sqrt(x.abs()),
    lambda x: torch.softmax(x, -1), lambda x: torch.nn.functional.softplus(x),
    lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
    lambda x: torch.nn.functional.leaky_relu(x, 0.25),
]  # fmt: skip
BINARY = [
    torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum,
    lambda x, y: x / (y.abs() + 1), lambda x, y: torch.where(x > y, x, y),
    lambda x, y: torch.where(x <= 0, y, x * 2), lambda x, y: torch.add(x, y, alpha=2),
    lambda x, y: torch.pow(x.abs() + 0.5, y), torch.fmod, torch.remainder,
]  # fmt: skip
REDUCED = [
    lambda x: x.sum(-1, keepdim=True), lambda x: x.amax(-1, keepdim=True),
    lambda x: x.mean(-1, keepdim=True), lambda x: x.amin(-1, keepdim=True),
    lambda x: x.amax(0, keepdim=True),
]  # fmt: skip


def program(rng):
    """A function of a few tensors: steps that name earlier values by number."""
    size, dtype = rng.choice(SIZES), rng.choice(DTYPES)
    inputs = rng.randint(1, 3)
    steps, products = [], 0
    for _ in range(rng.randint(2, 8)):
        have = inputs + len(steps)
        kind = rng.choices(["unary", "binary", "reduced", "product"], [5, 5, 2, 1])[0]
        if kind == "unary":
            steps.append((rng.choice(UNARY), (rng.randrange(have),)))
        elif kind == "binary":
            steps.append((rng.choice(BINARY), (rng.randrange(have), rng.randrange(have))))
        elif kind == "reduced":
            # Back to the full size, so that any value fits any other.
            reduce, whole, at = rng.choice(REDUCED), rng.randrange(inputs), rng.randrange(have)
            steps.append((lambda x, y, f=reduce: f(x) + y, (at, whole)))
        else:
            products += 1
            steps.append((torch.matmul, (rng.randrange(have), -products)))
    results = {inputs + len(steps) - 1, rng.randrange(inputs, inputs + len(steps))}

    def function(*tensors):
        values, weights = list(tensors[:inputs]), tensors[inputs:]
        for step, places in steps:
            step_values = [weights[-1 - p] if p < 0 else values[p] for p in places]
            values.append(step(*step_values))
        return tuple(values[r] for r in sorted(results))

    seed = rng.randrange(1 << 30)
    tensors = [exact(*size, dtype=dtype, seed=seed + i) for i in range(inputs)]
    for i in range(products):
        weight = exact(size[-1], size[-1], dtype=torch.float32, seed=seed + 100 + i) / 8
        tensors.append(weight.to(dtype))
    return function, tensors


class Run(torch.fx.Interpreter):
    """Runs a graph behind the pass, as the generated wrapper would."""

    def call_function(self, target, args, kwargs):
        from torch_spyre._inductor.kernel import group
        from torch_spyre._inductor.lowering import EagerTarget, GroupTarget, ViewTarget

        if isinstance(target, GroupTarget):
            return group(target.specification)(*args)
        if isinstance(target, ViewTarget):
            return target.strided(*args)
        if isinstance(target, EagerTarget):
            target = target.op
        return super().call_function(target, args, kwargs)


def fused(function, tensors):
    """The function after the pass, and the number of its kernels."""
    from torch._inductor.decomposition import select_decomp_table
    from torch_spyre._inductor.graph_pass import run
    from torch_spyre._inductor.lowering import EagerTarget, GroupTarget

    mode = FakeTensorMode()
    fakes = [mode.from_tensor(t) for t in tensors]
    with mode:
        gm = make_fx(function, select_decomp_table(), tracing_mode="fake")(*fakes)
    for node in gm.graph.nodes:
        assert node.op != "get_attr", node
    run(gm)
    targets = [n.target for n in gm.graph.nodes if n.op == "call_function"]
    kernels = sum(isinstance(t, GroupTarget) for t in targets)
    eager = [t for t in targets if isinstance(t, EagerTarget)]
    strange = [t for t in targets if isinstance(t, torch._ops.OpOverload)]
    assert not strange and targets.count(operator.getitem) >= kernels
    return Run(gm).run(*tensors), kernels, eager


def check(have, want, number):
    try:
        assert_same(have, want)
    except AssertionError as error:
        raise AssertionError(f"graph {number}: {error}") from None


@pytest.fixture(autouse=True)
def no_derivatives():
    with torch.no_grad():
        yield


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_graphs(chunk, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    for number in range(chunk, GRAPHS, CHUNKS):
        function, tensors = program(random.Random(number))
        tensors = [t.to(DEVICE) for t in tensors]
        results, kernels, eager = fused(function, tensors)
        assert kernels == 1 and not eager, f"graph {number}: {kernels} kernels, eager {eager}"
        for have, want in zip(results, function(*tensors)):
            check(have, want, number)


@pytest.mark.parametrize("number", range(0, GRAPHS, 100))
def test_random_graphs_whole(number, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()
    function, tensors = program(random.Random(number))
    tensors = [t.to(DEVICE) for t in tensors]
    for have, want in zip(torch.compile(function)(*tensors), function(*tensors)):
        check(have, want, number)
