# SPDX-License-Identifier: MIT
"""Compiled kernels read weights in the layouts that these have, without copies."""

import json

import pytest
import torch
from support import DEVICE, assert_same, exact, python_ok
from torch.profiler import ProfilerActivity, profile
from torch_spyre.model_utils import load_model_to_spyre


@pytest.fixture
def kernels(tmp_path):
    """Returns a function that runs another and returns its result and the kernels' names."""

    def run(function, *arguments):
        with profile(activities=[ProfilerActivity.PrivateUse1]) as prof:
            result = function(*arguments)
            torch.spyre.synchronize()
        path = tmp_path / "trace.json"
        prof.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
        return result, [e["name"] for e in events if e.get("cat") == "kernel"]

    return run


def copies(names):
    """Returns the kernels that move elements to another layout."""
    return [name for name in names if "ReStickify" in name or name == "0_identity"]


def filled(module, dtype):
    """Returns a module in inference with exact numbers."""
    for i, parameter in enumerate(module.parameters()):
        parameter.data = exact(*parameter.shape, dtype=torch.float32, seed=i) / 8
    return module.to(dtype).eval().requires_grad_(False)


def feed_forward():
    return torch.nn.Sequential(
        torch.nn.Linear(128, 256), torch.nn.GELU(), torch.nn.Linear(256, 128, bias=False)
    )


@pytest.mark.parametrize(
    "dtype, move, dynamic",
    [
        (torch.float16, torch.nn.Module.to, False),
        (torch.float16, load_model_to_spyre, False),
        (torch.float16, torch.nn.Module.to, True),
        (torch.bfloat16, torch.nn.Module.to, False),
        (torch.float32, torch.nn.Module.to, True),
    ],
    ids=["float16", "loaded", "dynamic", "bfloat16", "float32"],
)
def test_weights_of_linear(kernels, dtype, move, dynamic):
    model = move(filled(feed_forward(), dtype), device=DEVICE)
    compiled = torch.compile(model, dynamic=dynamic)
    x = exact(5, 128, seed=9).to(dtype).to(DEVICE)
    assert_same(compiled(x), model(x))
    result, names = kernels(compiled, x)
    assert_same(result, model(x))
    assert len(names) == 1 and not copies(names), names


class Tied(torch.nn.Module):
    """An embedding whose weight is that of the last product, as in language models."""

    def __init__(self, rows, width):
        super().__init__()
        self.table = torch.nn.Embedding(rows, width)
        self.head = torch.nn.Linear(width, rows, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens):
        return self.head(self.table(tokens) * 2)


@pytest.mark.parametrize("rows", [1024, 1000])
@pytest.mark.parametrize("tokens", [1, 3])
def test_tied_weights(kernels, rows, tokens):
    """Neither the lookup nor the product copies the table."""
    model = filled(Tied(rows, 192), torch.float16).to(DEVICE)
    tokens = (torch.arange(tokens) * 311).to(DEVICE)
    compiled = torch.compile(model)
    compiled(tokens)
    result, names = kernels(compiled, tokens)
    assert_same(result, model(tokens))
    assert "0_ReStickifyOpHBM+1_identity" not in names and "0_identity" not in names, names


def test_embedding_in_its_own_layout(kernels):
    model = load_model_to_spyre(filled(torch.nn.Embedding(512, 128), torch.float16))
    compiled = torch.compile(lambda tokens: model(tokens) + 1)
    tokens = (torch.arange(9) * 31).to(DEVICE)
    compiled(tokens)
    result, names = kernels(compiled, tokens)
    assert_same(result, model(tokens) + 1)
    assert not copies(names), names


def test_weights_that_lie_otherwise_later(kernels):
    """A weight with another layout than at the first call is copied, and results stay right."""
    linear = filled(torch.nn.Linear(128, 256, bias=False), torch.float16).to(DEVICE)
    compiled = torch.compile(lambda x, w: torch.nn.functional.linear(x, w) + 1)
    x = exact(5, 128, seed=9).to(DEVICE)
    laid_out = linear.weight
    # Dynamo would compile anew for a tensor that is no parameter.
    default = torch.nn.Parameter(laid_out.cpu().to(DEVICE), requires_grad=False)
    assert laid_out.device_tensor_layout() != default.device_tensor_layout()
    for weight, copied in ((laid_out, False), (default, True), (laid_out, False)):
        compiled(x, weight)
        result, names = kernels(compiled, x, weight)
        assert_same(result, torch.nn.functional.linear(x, default) + 1)
        assert bool(len(names) > 1) == copied, names


def test_views_of_laid_out_weights():
    """Rows, columns, transposition and a reduction of a weight with sticks along its rows."""
    weight = filled(torch.nn.Linear(128, 256, bias=False), torch.float16).to(DEVICE).weight

    def work(x, w):
        return x @ w[:64].t(), w[:, 64:].sum(-1), w.t().contiguous(), w.view(2, 128, 128) * 2, w[3]

    x = exact(5, 128, seed=9).to(DEVICE)
    for have, want in zip(torch.compile(work)(x, weight), work(x, weight), strict=True):
        assert_same(have, want)


def test_weight_of_a_subclass():
    class Named(torch.Tensor):
        """A tensor with another type, such as those of torchvision."""

    weight = exact(256, 128, seed=1).to(DEVICE)
    x = exact(5, 128, seed=9).to(DEVICE)
    compiled = torch.compile(lambda x, w: torch.nn.functional.linear(x, w) + 1)
    have = compiled(x, weight.as_subclass(Named)).as_subclass(torch.Tensor)
    assert_same(have, torch.nn.functional.linear(x, weight) + 1)


PROGRAM = """
import torch, torch_spyre
from torch._dynamo.utils import counters
from torch_spyre.model_utils import load_model_to_spyre
torch.manual_seed(0)
weight = (torch.arange(256 * 128).reshape(256, 128) % 7).half() / 8
linear = torch.nn.Linear(128, 256, bias=False).half().eval().requires_grad_(False)
linear.weight.data = weight
if {default}:
    weight = torch.nn.Parameter(weight.to("spyre"), requires_grad=False)
else:
    weight = linear.to("spyre").weight
x = torch.ones(5, 128, dtype=torch.float16).to("spyre")
print(torch.compile(torch.nn.functional.linear)(x, weight).sum().item())
print(counters["inductor"]["fxgraph_cache_hit"] + counters["aot_autograd"]["autograd_cache_hit"])
"""


def test_caches_tell_layouts_apart(tmp_path):
    """A graph that another process has compiled is reused for the same layouts only."""
    where = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    runs = [
        python_ok(PROGRAM.format(default=default), **where).split()
        for default in (False, True, False, True)
    ]
    assert len({result for result, _ in runs}) == 1
    assert [int(hits) > 0 for _, hits in runs] == [False, False, True, True], runs
