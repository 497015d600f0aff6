# SPDX-License-Identifier: MIT
"""Sizes that are symbols: the graph is compiled once, with a bundle for each size."""

import logging
import re

import pytest
import torch
from support import DEVICE, assert_same, exact, python_ok
from torch._dynamo.testing import CompileCounterWithBackend

functional = torch.nn.functional


@pytest.fixture(autouse=True)
def anew(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()


@pytest.fixture
def counted():
    return CompileCounterWithBackend("inductor")


def on_card(*size, seed=0, dtype=torch.float16):
    return (exact(*size, dtype=torch.float32, seed=seed) / 8).to(dtype).to(DEVICE)


def tuples(result):
    return result if isinstance(result, tuple) else (result,)


def compare(compiled, function, *tensors):
    for have, want in zip(tuples(compiled(*tensors)), tuples(function(*tensors)), strict=True):
        assert_same(have, want)


def feed_forward(x, w, v, g):
    y = functional.gelu(functional.linear(x, w))
    return functional.layer_norm(x + functional.linear(y, v), (64,), g)


def attention(x, w):
    rows, words, width = x.shape
    q, k, v = (functional.linear(x, w * n).view(rows, words, 2, -1).transpose(1, 2)
               for n in (1, 2, 3))  # fmt: skip
    y = functional.scaled_dot_product_attention(q, k, v)
    return x + y.transpose(1, 2).reshape(rows, words, width)


def views(x, y):
    z = (x @ y + x.shape[0]).softmax(-1)
    w = z.view(z.shape[0], 2, -1).transpose(0, 1) * 2
    return z, w.atan() + x.size(0), (w.reshape(2, -1) + 1)[:, 3:]


@pytest.mark.parametrize("norm", [functional.layer_norm, functional.rms_norm])
@pytest.mark.parametrize("train", [False, True])
def test_normalized_shape_is_a_symbol(counted, norm, train):
    def function(x):
        return norm(x, x.shape[-1:])

    compiled = torch.compile(function, backend=counted, dynamic=True, fullgraph=True)
    for n in (64, 100, 130):
        compare(compiled, function, on_card(3, n).requires_grad_(train))
    assert counted.frame_count == 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_twenty_batch_sizes_compile_once(counted, dtype):
    shapes = (128, 64), (64, 128), (64,)
    weights = [on_card(*s, seed=i, dtype=dtype) for i, s in enumerate(shapes)]
    compiled = torch.compile(feed_forward, backend=counted, dynamic=True)
    with torch.no_grad():
        for rows in [*range(2, 21), 64]:
            compare(compiled, feed_forward, on_card(rows, 3, 64, dtype=dtype), *weights)
    assert counted.frame_count == 1


def test_rows_and_words(counted):
    w = on_card(128, 128)
    compiled = torch.compile(attention, backend=counted, dynamic=True)
    with torch.no_grad():
        for rows, words in [(2, 16), (3, 7), (2, 64), (5, 65), (3, 7)]:
            compare(compiled, attention, on_card(rows, words, 128), w)
    assert counted.frame_count == 1


def test_views_and_numbers(counted):
    compiled = torch.compile(views, backend=counted, dynamic=True)
    for rows, columns in [(3, 70), (4, 70), (9, 128), (128, 70), (2, 6)]:
        compare(compiled, views, on_card(rows, 64), on_card(64, columns, seed=1))
    assert counted.frame_count == 1


def test_the_second_size_makes_a_dim_dynamic(counted):
    """By default torch.compile takes the first size as fixed and then makes the dim dynamic."""
    compiled = torch.compile(feed_forward, backend=counted)
    weights = [on_card(*s, seed=i) for i, s in enumerate([(128, 64), (64, 128), (64,)])]
    with torch.no_grad():
        for rows in (4, 6, 9, 16, 4):
            compare(compiled, feed_forward, on_card(rows, 64), *weights)
    assert counted.frame_count == 2


def test_mark_dynamic(counted):
    """torch raises if compilation fixes the dim to the size of the call."""
    compiled = torch.compile(lambda x: (x * 2).softmax(-1), backend=counted)
    for rows in (5, 6, 9):
        x = on_card(rows, 70)
        torch._dynamo.mark_dynamic(x, 0, min=2, max=64)
        compare(compiled, lambda x: (x * 2).softmax(-1), x)
    assert counted.frame_count == 1


def test_guards(counted):
    """Sizes of 1 and other strides are other graphs; sizes that have to agree do."""

    def function(x, y):
        return x + y

    compiled = torch.compile(function, backend=counted, dynamic=True)
    compare(compiled, function, on_card(5, 64), on_card(5, 64, seed=1))
    compare(compiled, function, on_card(5, 64), on_card(1, 64, seed=1))
    assert counted.frame_count == 2
    compare(compiled, function, on_card(64, 5).t(), on_card(5, 64, seed=1))
    assert counted.frame_count == 3
    compare(compiled, function, on_card(7, 70), on_card(7, 70, seed=1))
    assert counted.frame_count == 3
    with pytest.raises(Exception, match="(?s)(expand|broadcast|match)"):
        compiled(on_card(7, 70), on_card(8, 70))


def test_derivatives(counted):
    def loss(x, w, v):
        return functional.linear(functional.relu(functional.linear(x, w)), v).square().mean()

    compiled = torch.compile(loss, backend=counted, dynamic=True)
    for rows in (4, 5, 9, 64):
        grads = []
        for function in (loss, compiled):
            leaves = [on_card(*s, seed=i, dtype=torch.float32).requires_grad_()
                      for i, s in enumerate([(rows, 64), (128, 64), (10, 128)])]  # fmt: skip
            function(*leaves).backward()
            grads.append([leaf.grad for leaf in leaves])
        for want, have in zip(*grads, strict=True):
            assert_same(have, want)
    assert counted.frame_count == 1


def test_a_size_that_the_builder_refuses(counted, monkeypatch):
    """Groups of other sizes go through the partition again, and may come out in parts."""
    from torch_spyre._inductor.emit import Refused
    from torch_spyre._inductor.rules import RULES

    target = torch.ops.aten.tanh.default
    rule = RULES[target]

    def refuse(call):
        if call["self"].size[0] == 7:
            raise Refused("seven")
        return rule(call)

    monkeypatch.setitem(RULES, target, refuse)

    def function(x):
        y = x + 1
        return y.tanh() * 2, y

    compiled = torch.compile(function, backend=counted, dynamic=True)
    for rows in (5, 7, 9, 7):
        compare(compiled, function, on_card(rows, 64))
    assert counted.frame_count == 1


def test_what_is_said(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("torch_spyre.inductor"), "propagate", True)
    compiled = torch.compile(lambda x: x * 2 + x.shape[0], dynamic=True)
    with caplog.at_level(logging.INFO, "torch_spyre.inductor"):
        for rows in (5, 6, 5):
            compiled(on_card(rows, 64))
    assert "dims [0, 1] are dynamic" in caplog.text
    assert len(re.findall("first call with the sizes", caplog.text)) == 2


def test_second_process(tmp_path):
    """Its bundles are those of the first, size by size."""
    code = (
        "f = torch.compile(lambda x: (x + 1).softmax(-1), dynamic=True)\n"
        "for rows in (4, 5, 9):\n"
        "    x = torch.arange(rows * 64).view(rows, 64).half().spyre() / 64\n"
        "    print(f(x).float().sum(-1).tolist())\n"
    )
    first = python_ok(code, TORCHINDUCTOR_CACHE_DIR=tmp_path)
    made = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("bundle.mlir")}
    assert len(made) == 3
    assert python_ok(code, TORCHINDUCTOR_CACHE_DIR=tmp_path) == first
    assert made == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("bundle.mlir")}


def with_number(x, a):
    """Operations of a tensor and a number, none of which makes dynamo fix the number."""
    return (
        x + a, x - a, a - x, x * a, x / a, a / x, x > a, x <= a, x == a, x * a * a, x * (a + 1),
        x / (1 / a), x * (a**0.5), torch.softmax(x * a, -1), torch.where(x > 0, x, a),
    )  # fmt: skip


def with_fixed_number(x, a):
    """Operations that have the number in their definition."""
    return (
        x**a, x.clamp(min=a), x.clamp(max=a), x.masked_fill(x > 0, a), torch.full_like(x, a) + x,
        torch.add(x, x, alpha=a), functional.leaky_relu(x, a), functional.elu(x, a),
        functional.softplus(x, a), functional.layer_norm(x, x.shape[-1:], eps=a),
        torch.floor_divide(x, a), x % a, torch.lerp(x, -x, a),
    )  # fmt: skip


@pytest.mark.parametrize("function", [with_number, with_fixed_number])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_a_number_that_changes(function, dtype):
    """Its first value is a constant of the graph, later ones are operands if they can be."""
    x = on_card(4, 70, dtype=dtype)
    compiled = torch.compile(function)
    with torch.no_grad():
        for number in 0.3, 0.7, 1 / 3, 1e-3, 6e4:
            compare(lambda x: compiled(x, number), lambda x: function(x, number), x)


def means(x, w):
    y = x * 2 + x.shape[1]
    return y.sum(-1, dtype=torch.float32), w * y.float().mean(-1, keepdim=True, dtype=torch.float32)


def test_arguments_by_name(counted):
    """A dtype, the only argument by name, is not taken for an object that stands for one."""
    compiled = torch.compile(means, backend=counted, dynamic=True)
    for rows, columns in [(3, 70), (4, 70), (9, 128)]:
        compare(compiled, means, on_card(rows, columns), on_card(rows, 1))
    assert counted.frame_count == 1
