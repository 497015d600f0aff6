# SPDX-License-Identifier: MIT
"""spyre_hint: requested divisions of compiled functions, and their results."""

import glob
import json
import re
import warnings

import pytest
import torch
from support import DEVICE, assert_same, exact, python_ok

from torch_spyre._inductor import declare_tensor_dim, name_tensor_dims, spyre_hint

M, K, N = 128, 256, 192


@pytest.fixture(autouse=True)
def names(said):
    for name, size in (("M", M), ("K", K), ("N", N), ("B", 4)):
        declare_tensor_dim(name, size)


def named(*names, seed=0):
    size = [{"M": M, "K": K, "N": N, "B": 4}[name] for name in names]
    return name_tensor_dims(exact(*size, seed=seed).to(DEVICE), names)


def plain(*tensors):
    return [t.clone() for t in tensors]


def whole(*size, seed=0):
    """Small whole numbers: sums are exact, in whatever order they are taken."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-2, 3, size, generator=generator).to(torch.float16).to(DEVICE)


def bundles(text):
    """The steps of the kernels that the log names: name and slices of each."""
    steps = []
    for directory in re.findall(r"bundle (\S+)", text):
        for path in sorted(glob.glob(f"{directory}/sdsc_*.json")):
            with open(path, encoding="utf-8") as file:
                ((root, sdsc),) = json.load(file).items()
            steps.append((root.split("_", 1)[1], sdsc["numWkSlicesPerDim_"], sdsc["numCoresUsed_"]))
    return steps


def slices(text, op):
    return [division for name, division, _ in bundles(text) if name == op]


def test_division_is_in_the_bundle(said):
    def divided(x, y):
        with spyre_hint(work_div={"M": 4, "N": 3}):
            return x @ y

    x, y = named("M", "K"), named("K", "N", seed=1)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="spyre_hint")
        result = torch.compile(divided)(x, y)
    assert bundles(said()) == [("batchmatmul", {"mb": 4, "out": 3, "in": 1}, 12)]
    assert "asked for mb/4 out/3" in said() and "{'M': 4}): taken" in said()
    assert_same(result, x @ y)


def test_what_is_summed_is_divided_by_name(said):
    def divided(x, y):
        with spyre_hint(work_div={"K": 4, "M": 2}):
            return x @ y

    x = name_tensor_dims(whole(M, K), ["M", "K"])
    y = name_tensor_dims(whole(K, N, seed=1), ["K", "N"])
    assert_same(torch.compile(divided)(x, y), x @ y)
    assert slices(said(), "batchmatmul") == [{"mb": 2, "out": 1, "in": 4}]


def test_positions_need_no_names(said):
    def divided(x):
        with spyre_hint(work_div={0: 8, -1: 3}):
            return torch.nn.functional.gelu(x)

    x = exact(M, N).to(DEVICE)
    assert_same(torch.compile(divided)(x), torch.nn.functional.gelu(x))
    assert slices(said(), "gelufwd") == [{"mb": 8, "out": 3}]


def walked(x, y, bias):
    """Names go through permutations, broadcasts, reductions, casts and products."""
    with spyre_hint(work_div={"M": 2}):
        transposed = y.t() @ x.t()
        transposed = (transposed + bias[:, None]).transpose(0, 1)
        rest = transposed.contiguous() - transposed.amax(-1, keepdim=True)
        return rest.exp().sum(1), rest.float().mean(0)


def test_names_pass_through_operations(said):
    tensors = named("M", "K"), named("K", "N", seed=1), named("N", seed=2)
    have, want = torch.compile(walked)(*tensors), torch.compile(walked)(*plain(*tensors))
    for a, b in zip(have, want, strict=True):
        assert torch.equal(a.cpu(), b.cpu())
    divided = [name for name, _, cores in bundles(said()) if cores == 2]
    assert {"batchmatmul", "add", "exp", "sum"} <= set(divided), bundles(said())
    assert said().count("taken") == 1


def test_linear_with_batch_dims(said):
    def divided(x, w, b):
        with spyre_hint(work_div={"B": 4, "N": 3}):
            return torch.nn.functional.linear(x, w, b)

    x, w, b = named("B", "M", "K"), named("N", "K", seed=1), named("N", seed=2)
    assert_same(torch.compile(divided)(x, w, b), torch.nn.functional.linear(x, w, b))
    (product,) = slices(said(), "batchmatmul")
    assert product["out"] == 3 and max(product.values()) == 4


def test_positions_of_some_operations(said):
    def divided(x):
        with spyre_hint(work_div={1: 3}):
            return x.exp().sum(-1).sum() + 1

    x = name_tensor_dims(whole(M, N) / 64, ["M", "N"])
    torch.compile(divided)(x)
    assert slices(said(), "exp") == [{"mb": 1, "out": 3}]


def test_inner_hints_win(said):
    def divided(x):
        with spyre_hint(work_div={"M": 4, "N": 3}):
            y = x.exp()
            with spyre_hint(work_div={"M": 8}):
                return y.exp() @ x.t()

    x = named("M", "N")
    torch.compile(divided)(x)
    assert slices(said(), "exp") == [{"mb": 4, "out": 3}, {"mb": 8, "out": 3}]


def test_names_within_the_function(said):
    def divided(x):
        name_tensor_dims(x, ["M", "N"])
        with spyre_hint(work_div={"M": 16}):
            return x.exp()

    torch.compile(divided)(exact(M, N).to(DEVICE))
    assert slices(said(), "exp") == [{"mb": 16, "out": 1}]


@pytest.mark.parametrize("dims", [("M", "N"), ("N", "M")], ids="".join)
def test_caches_tell_hints_and_names_apart(said, dims):
    """One function, compiled for tensors with other names, and for other numbers."""
    made = set()
    for number in (2, 4):
        torch._dynamo.reset()
        declare_tensor_dim("M", 192)

        def divided(x, number=number):
            with spyre_hint(work_div={"M": number}):
                return x.exp()

        for order in (dims, dims[::-1]):
            torch._dynamo.reset()
            x = name_tensor_dims(exact(192, 192).to(DEVICE), order)
            try:
                torch.compile(divided)(x)
            except Exception as error:  # 3 sticks
                assert "3 sticks" in str(error)
            else:
                made.add(re.findall(r"bundle (\S+)", said())[-1])
                assert bundles(said())[-1][2] == number
    assert len(made) == 2


def test_tiles_are_noted_only(said):
    def tiled(x):
        with spyre_hint(tiles={"M": 4, "N": 1}):
            return x.exp() + 1

    x = named("M", "N")
    assert_same(torch.compile(tiled)(x), x.exp() + 1)
    assert "spyre_hint(tiles={'M': 4}): not used" in said() and "'N'" not in said()


def test_bad_tiles():
    def tiled(x, tiles):
        with spyre_hint(tiles=tiles):
            return x.exp()

    assert "3 tiles do not divide" in refused(tiled, named("M", "N"), {"M": 3})
    assert "size of 192" in refused(tiled, named("M", "N"), {-1: 5})
    assert "dim 'Q' is not declared" in refused(tiled, named("M", "N"), {"Q": 2})


def test_eager_is_not_touched():
    x = named("M", "N")
    with spyre_hint(work_div={"M": 3, "nobody": 2}, tiles={"M": 2}):
        assert_same(x + x, x.clone() * 2)


def test_graph_breaks_in_a_block():
    def divided(x):
        with spyre_hint(work_div={"M": 4}):
            y = x + 1
            torch._dynamo.graph_break()
            y = y * 2
        return y - 1

    x = named("M", "N")
    assert_same(torch.compile(divided)(x), divided(x.clone()))


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(K, N, dtype=torch.float16)

    def forward(self, x):
        with spyre_hint(work_div={"N": 3, "M": 2}):
            return torch.relu(self.linear(x))


def test_names_of_weights(said):
    layer = Layer().to(DEVICE)
    name_tensor_dims(layer.linear.weight, ["N", "K"])
    x = named("M", "K")
    result = torch.compile(layer, fullgraph=True)(x)
    assert_same(result, layer(x.clone()))
    assert slices(said(), "batchmatmul") == [{"mb": 2, "out": 3, "in": 1}]


def test_others_ignore_hints():
    def divided(x):
        with spyre_hint(work_div={"M": 4}):
            return x + 1

    x = torch.ones(4)
    assert torch.equal(torch.compile(divided, backend="eager")(x), x + 1)
    assert torch.equal(torch.compile(divided, backend="aot_eager")(x), x + 1)


def warned(function, *tensors):
    with pytest.warns(UserWarning, match="spyre_hint") as found:
        result = torch.compile(function)(*tensors)
    return result, " ".join(str(w.message) for w in found if "spyre_hint" in str(w.message))


def test_what_no_operation_has_is_ignored(said):
    def divided(x):
        with spyre_hint(work_div={"K": 4, "M": 2}):
            return x.exp()

    x = named("M", "N")
    result, text = warned(divided, x)
    assert "{'K': 4}" in text and "'M'" not in text and "iterates over" in text
    assert "{'K': 4}): ignored" in said()
    assert slices(said(), "exp") == [{"mb": 2, "out": 1}]
    assert_same(result, x.exp())


def test_what_is_reduced_along_sticks_is_ignored(said):
    def divided(x):
        with spyre_hint(work_div={"N": 3, "M": 2}):
            return x.sum(-1)

    x = named("M", "N")
    result, text = warned(divided, x)
    assert "{'N': 3}" in text and "reduced along sticks" in text and "'M'" not in text
    assert slices(said(), "sum") == [{"mb": 2, "out": 1}]
    assert_same(result, x.sum(-1))


def test_results_are_not_named_by_hand(said):
    def divided(x):
        y = name_tensor_dims(x + 1, ["N", "M"])
        with spyre_hint(work_div={"M": 2}):
            return y.exp()

    with pytest.warns(UserWarning, match="only its inputs get names"):
        torch.compile(divided)(named("M", "N"))
    assert slices(said(), "exp") == [{"mb": 2, "out": 1}]


@pytest.mark.parametrize("text, cores", [("many", 32), ("-3", 32), ("", 32), ("8", 8)])
def test_cores(text, cores, monkeypatch):
    """Wrong values are left to the planner, whose error names the valid ones."""
    from torch_spyre._inductor import division

    monkeypatch.setenv("SENCORES", text)
    assert division.cores() == cores


def test_what_passes_the_cores_is_skipped(said, monkeypatch):
    monkeypatch.setenv("SENCORES", "8")

    def divided(x):
        with spyre_hint(work_div={"M": 4, "N": 3, "B": 2}):
            return x.exp()

    x = named("B", "M", "N")
    result, text = warned(divided, x)
    assert "{'N': 3}" in text and "4 slices before it" in text and "8 cores" in text
    assert bundles(said())[0][2] == 8
    assert_same(result, x.exp())


def test_one_slice_is_nothing(said):
    def divided(x):
        with spyre_hint(work_div={"M": 1}):
            return x.exp()

    torch.compile(divided)(named("M", "N"))
    assert "asked for" not in said()


def refused(function, *tensors):
    with pytest.raises(Exception) as found:
        torch.compile(function)(*tensors)
    return str(found.value)


def test_what_does_not_divide_is_an_error():
    def rows(x):
        with spyre_hint(work_div={"M": 3}):
            return x.exp()

    def sticks(x):
        with spyre_hint(work_div={"N": 2}):
            return x.exp()

    text = refused(rows, named("M", "N"))
    assert "spyre_hint(work_div={'M': 3})" in text and "128 elements" in text
    assert "3 sticks of 64 elements" in refused(sticks, named("M", "N"))


def test_what_one_core_cannot_reach_is_an_error():
    """A refusal of the planner is blamed on the hint if it does not occur without the hint."""
    size = 1 << 17

    def divided(x, y):
        with spyre_hint(work_div={0: 2}):
            return x @ y

    x = torch.zeros(2, size, dtype=torch.float16, device=DEVICE)
    y = torch.zeros(size, 64, dtype=torch.float16, device=DEVICE)
    text = refused(divided, x, y)
    assert "spyre_hint(work_div=)" in text and "65535" in text


def test_undeclared_names():
    """A position may be meant for other operations in the block; a name must be declared."""

    def divided(x):
        with spyre_hint(work_div={"nobody": 2}):
            return x.exp()

    assert "declare_tensor_dim('nobody', size)" in refused(divided, named("M", "N"))

    def far(x):
        with spyre_hint(work_div={2: 2}):
            return x.exp()

    assert "over dim 2" in warned(far, named("M", "N"))[1]


@pytest.mark.parametrize("given, error, text", [
    ({"work_div": [("M", 2)]}, TypeError, "takes a dict"),
    ({"work_div": {1.5: 2}}, TypeError, "a name, or a position"),
    ({"work_div": {"M": 2.0}}, TypeError, "takes an int"),
    ({"work_div": {"M": True}}, TypeError, "takes an int"),
    ({"work_div": {"M": 0}}, ValueError, "1 is the least"),
    ({"tiles": {"M": -1}}, ValueError, "1 is the least"),
    ({"tiles": 4}, TypeError, "takes a dict"),
    ({"work": {}}, TypeError, "work"),
])  # fmt: skip
def test_bad_hints(given, error, text):
    def divided(x):
        with spyre_hint(**given):
            return x + 1

    with pytest.raises(error, match=text):
        spyre_hint(**given)
    with pytest.raises(error, match=text):
        torch.compile(divided)(named("M", "N"))


def test_bad_names():
    x = exact(M, N).to(DEVICE)
    with pytest.raises(ValueError, match="1 names"):
        name_tensor_dims(x, ["M"])
    with pytest.raises(ValueError, match="dim 'Q' is not declared"):
        name_tensor_dims(x, ["M", "Q"])
    with pytest.raises(ValueError, match="declared with size 256, the tensor has 192"):
        name_tensor_dims(x, ["M", "K"])
    with pytest.raises(TypeError, match="list of names"):
        name_tensor_dims(x, "MN")
    with pytest.raises(TypeError, match="takes a tensor"):
        name_tensor_dims([1], ["M"])
    for name, size, error in (("", 2, TypeError), (3, 2, TypeError), ("Q", 2.0, TypeError),
                              ("Q", 0, ValueError)):  # fmt: skip
        with pytest.raises(error):
            declare_tensor_dim(name, size)
    assert name_tensor_dims(x, [None, "N"]) is x


def test_derivatives_are_planned(said):
    def divided(x, w):
        with spyre_hint(work_div={"M": 4}):
            return (x @ w).relu().sum()

    x, w = named("M", "K"), named("K", "N", seed=1).requires_grad_()
    v = w.detach().clone().requires_grad_()
    with torch.enable_grad():
        torch.compile(divided)(x, w).backward()
        (x.clone() @ v).relu().sum().backward()
    assert slices(said(), "batchmatmul")[0]["mb"] == 4
    assert_same(w.grad, v.grad)


def test_each_size_is_divided(said):
    def divided(x):
        with spyre_hint(work_div={0: 4, "N": 3}):
            return x.exp() + 1

    compiled = torch.compile(divided, dynamic=True)
    for rows in (32, 64, 80):
        x = name_tensor_dims(exact(rows, N).to(DEVICE), [None, "N"])
        assert_same(compiled(x), x.exp() + 1)
        assert bundles(said())[-1][2] == 12, bundles(said())


HINTED = """
from torch_spyre._inductor import spyre_hint
import logging, os
logging.basicConfig(level=logging.INFO)
logging.getLogger("torch_spyre.inductor").propagate = True
def divided(x):
    with spyre_hint(work_div={0: int(os.environ["ROWS"])}):
        return x.exp()
torch.compile(divided)(torch.ones(128, 64, dtype=torch.float16, device="spyre"))
from torch._dynamo.utils import counters
print(counters["inductor"]["fxgraph_cache_hit"], counters["aot_autograd"]["autograd_cache_hit"])
"""


def test_other_processes_find_their_hints(tmp_path):
    """Inductor's caches hold a graph for each hint."""
    found = [
        python_ok(HINTED, ROWS=rows, TORCHINDUCTOR_CACHE_DIR=tmp_path).split()
        for rows in (4, 8, 4)
    ]
    assert [sum(map(int, f)) > 0 for f in found] == [False, False, True]
    made = glob.glob(f"{tmp_path}/spyre/*/*/sdsc_0.json")
    assert len(made) == 2
