# SPDX-License-Identifier: MIT
"""The operations that torch.compile gathers into kernels or leaves eager, and its log."""

import re

import pytest
import torch
from support import DEVICE, assert_same, exact


def kernels(text):
    return [int(n) for n in re.findall(r"(\d+) kernels", text)]


def compare(function, *tensors):
    have, want = torch.compile(function)(*tensors), function(*tensors)
    have, want = ((r,) if torch.is_tensor(r) else r for r in (have, want))
    for a, b in zip(have, want, strict=True):
        assert_same(a, b)


def block(x, w, b, v, c, g, h):
    y = torch.nn.functional.linear(x, w, b)
    y = torch.nn.functional.linear(torch.nn.functional.gelu(y), v, c)
    return torch.nn.functional.layer_norm(x + y, (64,), g, h)


def weights(*shapes, dtype=torch.float32):
    return [(exact(*s, dtype=torch.float32, seed=i) / 8).to(dtype).to(DEVICE)
            for i, s in enumerate(shapes)]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_feed_forward_is_one_kernel(said, dtype):
    shapes = (2, 16, 64), (128, 64), (128,), (64, 128), (64,), (64,), (64,)
    compare(block, *weights(*shapes, dtype=dtype))
    assert kernels(said()) == [1] and "eager" not in re.sub(r"0 eager", "", said())


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_attention_is_three_kernels(said, dtype):
    """In, heads apart, heads together and out: views of sticks are operands, not copies;
    in 16 bits, two heads share a stick."""

    def attend(x, q, k, v, o):
        heads = [torch.nn.functional.linear(x, w).view(2, 16, 4, 32).transpose(1, 2)
                 for w in (q, k, v)]  # fmt: skip
        y = torch.nn.functional.scaled_dot_product_attention(*heads)
        return torch.nn.functional.linear(y.transpose(1, 2).reshape(2, 16, 128), o)

    compare(attend, *weights((2, 16, 128), *[(128, 128)] * 4, dtype=dtype))
    assert kernels(said()) == [3] and "copies" not in said(), said()


def test_what_the_card_lacks_runs_eagerly(said):
    x = exact(16, 64).to(DEVICE)
    compare(lambda x: (x + 1).atan() * 2, x)
    assert kernels(said()) == [2]
    assert "eager aten.atan.default" in said() and "no operation" in said()


def test_views_as_inputs(said):
    x, y = exact(128, 64).to(DEVICE), exact(64, 64, seed=1).to(DEVICE)
    compare(lambda x, y: x[64:].t() + y, x, y)
    compare(lambda x, y: x.view(2, 64, 64)[1] * y.expand(2, 64, 64)[0], x, y)
    compare(lambda x, y: x[:64, 1:33] - y[:, :32], x, y)
    assert kernels(said()) == [1, 1, 1] and "copies its input" in said()


def test_an_input_that_lies_otherwise(said):
    """A tensor with the strides that were met when compiling, in a storage of another form."""
    compiled = torch.compile(lambda x: x * 2 + 1)
    whole = exact(4, 8, 64).to(DEVICE)
    for x in (exact(8, 64).to(DEVICE), whole[2], whole.view(-1)[512:1024].view(8, 64)):
        assert_same(compiled(x), x * 2 + 1)


def test_results(said):
    x = exact(8, 64).to(DEVICE)
    compare(lambda x: (x + 1, x.t() * 2, x.sum(-1), x > 0, x, x[2:]), x)
    assert kernels(said())


def test_in_place(said):
    def step(x, y):
        x.add_(y)
        y[1:3] = 0
        return x * y

    x, y = exact(8, 64).to(DEVICE), exact(8, 64, seed=1).to(DEVICE)
    a, b = x.clone(), y.clone()
    assert_same(torch.compile(step)(x, y), step(a, b))
    assert_same(x, a)
    assert_same(y, b)


def test_with_the_cpu(said):
    x, y = exact(8, 64).to(DEVICE), exact(8, 64, seed=1)
    compare(lambda x, y: ((x * 2).cpu() + y, x + y.to(DEVICE)), x, y)


def test_settings_have_bundles_of_their_own(said, monkeypatch, tmp_path):
    x = exact(64, 128).to(DEVICE)
    for cores in ("1", "8"):
        torch._dynamo.reset()
        monkeypatch.setenv("SENCORES", cores)
        compare(lambda x: torch.exp(x) + 1, x)
    assert len({path.parent for path in tmp_path.rglob("bundle.mlir")}) == 2


def test_a_refused_operation_is_taken_back_without_a_replay(monkeypatch, tmp_path):
    """A program returns to a mark; none of its operations is added again."""
    from torch_spyre import _C
    from torch_spyre._inductor import emit

    operand = _C._view_operand([8, 64], [64, 1], torch.float16, [8, 64], [64, 1], 0)[0]
    added, add = [], emit.Program._do
    monkeypatch.setattr(emit.Program, "_do", lambda *args: added.append(args[1]) or add(*args))

    def bundle(name, attempts):
        program = emit.Program()
        x = program.argument(operand, 1)
        y = program.op("exp", x)
        for _ in range(attempts):
            mark = program.mark()
            program.argument(operand, 1)
            program.op("relu", program.op("sum", y, dim=-1, keepdim=1))
            program.rollback(mark)
        program.op("relu", y)
        program.graph.write(str(tmp_path / name))
        return program, [path.read_bytes() for path in sorted((tmp_path / name).iterdir())]

    plain, wanted = bundle("plain", 0)
    del added[:]
    tried, written = bundle("tried", 5)
    assert tried.records == plain.records
    assert written == wanted
    # Three that stay, and three for each attempt.
    assert len(added) == 3 + 5 * 3
