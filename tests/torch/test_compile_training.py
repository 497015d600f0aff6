# SPDX-License-Identifier: MIT
"""Training in torch.compile: forward, backward and optimiser step with the bits of eager mode."""

import pytest
import torch
from support import DEVICE, assert_same, exact
from torch._dynamo.testing import CompileCounterWithBackend

functional = torch.nn.functional

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def anew(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()


def values(*size, seed=0, dtype=torch.float32):
    return (exact(*size, dtype=torch.float32, seed=seed) / 8).to(dtype)


FUNCTIONS = {
    "activations": (lambda x: functional.gelu(x) + functional.silu(x) * x.tanh() + x.sigmoid()
                    + functional.gelu(x, approximate="tanh"), [(9, 70)]),
    "kinks": (lambda x: functional.relu(x) + functional.leaky_relu(x) + functional.hardtanh(x)
              + functional.softplus(x), [(9, 70)]),
    "softmax": (lambda x, w: (x @ w).softmax(-1) + (x @ w).log_softmax(-1), [(9, 70), (70, 64)]),
    "layer norm": (lambda x, w, b: functional.layer_norm(x * 2, (70,), w, b),
                   [(9, 70), (70,), (70,)]),
    "rms norm": (lambda x, w: functional.rms_norm(x, (70,), w, 1e-3), [(9, 70), (70,)]),
    "squared error": (lambda x, y: functional.mse_loss(x * 2, y), [(9, 70), (9, 70)]),
    "cross entropy": (lambda x: functional.cross_entropy(
        x * 2, torch.arange(9).to(DEVICE), reduction="none"), [(9, 70)]),
    "block": (lambda x, w: x + functional.linear(functional.gelu(functional.linear(x, w)), w.t()),
              [(2, 9, 64), (128, 64)]),
    "attention": (lambda q, k, v: functional.scaled_dot_product_attention(q, k, v),
                  [(2, 4, 32, 64)] * 3),
    "causal attention": (lambda q, k, v: functional.scaled_dot_product_attention(
        q, k, v, is_causal=True), [(2, 4, 32, 64)] * 3),
    "convolution": (lambda x, w, b: functional.conv2d(x, w, b, padding=1).relu(),
                    [(2, 64, 8, 8), (64, 64, 3, 3), (64,)]),
    "broadcast": (lambda x, y: (x.view(3, 3, 70).transpose(0, 1) * y).amax(1), [(9, 70), (70,)]),
}  # fmt: skip


def derivatives(function, tensors):
    leaves = [t.to(DEVICE).requires_grad_() for t in tensors]
    torch.manual_seed(1)
    result = function(*leaves)
    result.float().square().sum().backward()
    return [result.detach(), *(leaf.grad for leaf in leaves)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name, dtype):
    function, sizes = FUNCTIONS[name]
    tensors = [values(*s, seed=i, dtype=dtype) for i, s in enumerate(sizes)]
    want = derivatives(function, tensors)
    for a, b in zip(derivatives(torch.compile(function), tensors), want, strict=True):
        assert_same(a, b)


def gradient(function):
    """The gradient of @function(w, i, ...), where its result gets @g."""

    def derive(w, i, g):
        w = w.detach().requires_grad_(True)
        return torch.autograd.grad(function(w, i), w, g)[0]

    return derive


#: Sums of rows at equal indices, each of which rounds in the order of the additions.
SUMS = {
    "embedding": gradient(lambda w, i: functional.embedding(i, w)),
    "embedding, padding": gradient(lambda w, i: functional.embedding(i, w, padding_idx=3)),
    "embedding, frequency": gradient(
        lambda w, i: functional.embedding(i, w, scale_grad_by_freq=True)),
    "embedding_bag": gradient(
        lambda w, i: functional.embedding_bag(i[:, None], w, mode="sum")),
    "index": gradient(lambda w, i: w[i]),
    "index_select": gradient(lambda w, i: w.index_select(0, i)),
    "gather": gradient(lambda w, i: w.gather(0, i[:, None].expand(-1, 65))),
    "index_add": lambda w, i, g: w.index_add(0, i, g, alpha=0.3),
    "index_put": lambda w, i, g: w.index_put((i,), g, accumulate=True),
    "index_reduce": lambda w, i, g: w.index_reduce(0, i, g, "mean"),
    "scatter_add": lambda w, i, g: w.scatter_add(0, i[:, None].expand(-1, 65), g),
    "scatter_reduce": lambda w, i, g: w.scatter_reduce(0, i[:, None].expand(-1, 65), g, "mean"),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("name", SUMS)
def test_sums_at_indices(name, dtype):
    generator = torch.Generator().manual_seed(0)
    w = torch.randn(50, 65, generator=generator).to(dtype).to(DEVICE)
    i = torch.randint(0, 50, (800,), generator=generator).to(DEVICE)
    g = torch.randn(800, 65, generator=generator).to(dtype).to(DEVICE)
    want = SUMS[name](w, i, g)
    assert_same(torch.compile(SUMS[name])(w, i, g), want)
    assert_same(SUMS[name](w, i, g), want)


def test_dropout():
    """The same mask for the same seed, another one for the next call."""

    def drop(x):
        return functional.dropout(x * 2, 0.25) + 1

    tensors = [values(64, 70)]
    want = derivatives(drop, tensors)
    compiled = torch.compile(drop)
    for a, b in zip(derivatives(compiled, tensors), want, strict=True):
        assert_same(a, b)
    x = torch.ones(64, 70, device=DEVICE)
    first, second = compiled(x).cpu(), compiled(x).cpu()
    assert not torch.equal(first, second)
    assert 0.2 < (first == 1).float().mean() < 0.3


def perceptron():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(70, 130), torch.nn.GELU(), torch.nn.LayerNorm(130), torch.nn.Dropout(0.1),
        torch.nn.Linear(130, 10),
    ).to(DEVICE)  # fmt: skip


def trained(optimizer, options, compiled_step=None, steps=4):
    """Losses and weights; @compiled_step: whether the step is compiled too, None: nothing is."""
    torch._dynamo.reset()
    model = perceptron().train()
    optimizer = optimizer(model.parameters(), **options)
    run = model if compiled_step is None else torch.compile(model)
    step = torch.compile(optimizer.step) if compiled_step else optimizer.step
    x, y = values(8, 70).to(DEVICE), values(8, 10, seed=1).to(DEVICE)
    torch.manual_seed(1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = functional.mse_loss(run(x), y)
        loss.backward()
        step()
        losses.append(loss.detach())
    assert losses[-1].item() < losses[0].item()
    return [*losses, *(p.detach() for p in model.parameters())]


OPTIMIZERS = {
    "SGD": (torch.optim.SGD, {"lr": 0.05, "foreach": False}),
    "momentum": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}),
    "foreach": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9, "foreach": True}),
    "RMSprop": (torch.optim.RMSprop, {"lr": 0.001}),
    "Adagrad": (torch.optim.Adagrad, {"lr": 0.01}),
    "AdamW": (torch.optim.AdamW, {"lr": 0.01}),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_compiled_model(name):
    want = trained(*OPTIMIZERS[name])
    for a, b in zip(trained(*OPTIMIZERS[name], compiled_step=False), want, strict=True):
        assert_same(a, b)


@pytest.mark.parametrize("name", [n for n in OPTIMIZERS if n != "AdamW"])
def test_compiled_step(name):
    want = trained(*OPTIMIZERS[name])
    for a, b in zip(trained(*OPTIMIZERS[name], compiled_step=True), want, strict=True):
        assert_same(a, b)


@pytest.mark.parametrize("foreach", [False, True])
def test_compiled_adamw(foreach):
    """dynamo traces the variant whose corrections are tensors of fp32, eager mode's are floats of
    the host: the same to fp32's precision, not to the bit, on every device."""
    options = {"lr": 0.01, "foreach": foreach}
    torch.manual_seed(0)
    start = [torch.randn(8, 70), torch.randn(70)]
    results = []
    for compiled in (False, True):
        torch._dynamo.reset()
        weights = [torch.nn.Parameter(p.to(DEVICE)) for p in start]
        optimizer = torch.optim.AdamW(weights, **options)
        step = torch.compile(optimizer.step) if compiled else optimizer.step
        for i in range(4):
            for weight, p in zip(weights, start):
                weight.grad = (p * (1 + i)).to(DEVICE)
            step()
        results.append([w.detach().cpu() for w in weights])
    for have, want in zip(*results):
        torch.testing.assert_close(have, want, rtol=1e-5, atol=2e-5)


class TestNumbers:
    """Floats that change: one kernel for all values."""

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
    def test_argument(self, dtype):
        counted = CompileCounterWithBackend("inductor")

        def function(p, g, rate):
            return p - g * rate, (p / rate).sigmoid(), torch.where(p > rate, p, g + rate)

        compiled = torch.compile(function, backend=counted)
        p, g = (values(8, 70, seed=s, dtype=dtype).to(DEVICE) for s in (0, 1))
        for rate in (0.1, 0.2, 0.3, 1e-3, 7.0, 0.1):
            for a, b in zip(compiled(p, g, rate), function(p, g, rate), strict=True):
                assert_same(a, b)
        assert counted.frame_count == 2

    def test_tensor_of_the_host(self, tmp_path):
        counted = CompileCounterWithBackend("inductor")
        compiled = torch.compile(lambda p, n: p * n + n, backend=counted)
        p, n = values(8, 70).to(DEVICE), torch.tensor(0.5)
        for value in (0.1, 0.2, 0.3):
            n.fill_(value)
            assert_same(compiled(p, n), p * n + n)
        assert counted.frame_count == 1 and len(list(tmp_path.rglob("bundle.mlir"))) == 1

    def test_where_it_has_to_be_fixed(self):
        """alpha is not an operand, so each value compiles anew; values are not mixed up."""
        compiled = torch.compile(lambda p, g, rate: torch.add(p, g, alpha=rate))
        p, g = (values(8, 70, seed=s).to(DEVICE) for s in (0, 1))
        for rate in (0.1, 0.2, 0.3, 0.4, 0.3):
            assert_same(compiled(p, g, rate), torch.add(p, g, alpha=rate))
