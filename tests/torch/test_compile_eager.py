# SPDX-License-Identifier: MIT
"""Operations that a kernel cannot express run eagerly: torch.compile does not fail and gives the
results of eager mode."""

import pytest
import torch
from support import DEVICE, assert_same, exact
from test_compile_chains import inductor
from torch.nn.attention.flex_attention import flex_attention

functional = torch.nn.functional


@pytest.fixture(autouse=True)
def no_derivatives(said):
    with torch.no_grad():
        yield


def compare(function, *tensors):
    torch._dynamo.reset()
    have, want = torch.compile(function)(*tensors), function(*tensors)
    have, want = ((r,) if torch.is_tensor(r) else r for r in (have, want))
    for a, b in zip(have, want, strict=True):
        assert a.device == b.device
        assert_same(a, b)


def rotated(y):
    z = (y * 2)[:, 128:]
    return torch.cat((-z[:, 64:], z[:, :64]), -1)


def swapped(y):
    a, b = (y * 2).chunk(2, -1)
    return torch.cat((b, a), -1)


VIEWS = {
    "flat": lambda y: (y + 1)[2:].view(-1),
    "row of rows": lambda y: (y + 1)[2:][1],
    "columns of columns": lambda y: (y + 1)[:, 128:][:, :64],
    "transposed": lambda y: (y + 1)[2:].t(),
    "expanded": lambda y: (y + 1)[2:].unsqueeze(0).expand(3, 2, 256),
    "read eagerly": lambda y: (y + 1)[3].view(4, 64).atan(),
    "of an input": lambda y: y[:, 128:][:, :64].atan(),
    "rotate_half": rotated,
    "stack": lambda y: torch.stack(((y * 2)[1:][0], (y * 2)[1:][1])),
    "chunk": swapped,
    "unbind": lambda y: (y + 1)[2:].unbind(0)[1].atan(),
    "chunk, transposed": lambda y: (y + 1).chunk(2, 1)[1].transpose(0, 1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_views(name):
    compare(VIEWS[name], torch.arange(1024.0).view(4, 256).to(DEVICE))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("size", [16, 32, 64, 128])
def test_causal_attention_of_transposed_heads(size, dtype):
    def attend(*projected):
        heads = [(t * 2).view(2, 21, 4, size).transpose(1, 2) for t in projected]
        y = functional.scaled_dot_product_attention(*heads, is_causal=True)
        return y, y.transpose(1, 2).reshape(2, 21, 4 * size) + 1

    compare(attend, *(exact(2, 21, 4 * size, dtype=dtype, seed=i).to(DEVICE) for i in range(3)))


def reversed_dims(x):
    order = list(range(x.dim()))[::-1]
    return x.permute(order).contiguous().permute(order)


def channels_last(x):
    return x.movedim(1, -1).contiguous().movedim(-1, 1)


def rows(x):
    return torch.arange(3, 0, -1, device=x.device)


#: Operations that stay eager, of one tensor with four dims.
STAY_EAGER = {
    "cat": lambda x: torch.cat((x, x[:, :3]), 1), "stack": lambda x: torch.stack((x, x), 1),
    "topk": lambda x: torch.topk(x, 2, 0), "topk, dim 1": lambda x: torch.topk(x, 2, 1),
    "sort": lambda x: torch.sort(x, dim=1, stable=True), "cumsum": lambda x: x.cumsum(2),
    "pad": lambda x: functional.pad(x, (1, 2, 0, 1)), "flip": lambda x: x.flip(1),
    "roll": lambda x: x.roll(1, 2), "gather": lambda x: x.gather(0, x.argsort(0)),
    "index_select": lambda x: x.index_select(1, rows(x)),
    "index": lambda x: x[:, rows(x)], "atan": torch.atan, "asinh": lambda x: x.asinh() * 2,
    "max": lambda x: x.max(1), "min": lambda x: x.min(2), "any": lambda x: (x > 1).any(1),
    "interpolate": lambda x: functional.interpolate(x, scale_factor=2),
    "bilinear": lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "max_pool2d": lambda x: functional.max_pool2d(x, 2, return_indices=True),
    "conv of groups": lambda x: functional.conv2d(x, x[:4, :2, :2, :2], groups=2),
    "conv_transpose2d": lambda x: functional.conv_transpose2d(x, x[:4, :, :2, :2]),
    "repeat": lambda x: x.repeat(1, 2, 1, 1), "tril": torch.tril, "where": lambda x: torch.where(
        x > 0, x, x.flip(0)), "scatter": lambda x: x.scatter(1, x.argsort(1), x * 2),
    "cummax": lambda x: x.cummax(1), "hypot": lambda x: torch.hypot(x, x), "erfc": torch.erfc,
    "sdpa": lambda x: functional.scaled_dot_product_attention(x, x, x, is_causal=True),
    "matmul": lambda x: x @ x.transpose(-1, -2), "sum": lambda x: x.sum(1),
    "pixel_shuffle": lambda x: functional.pixel_shuffle(x, 2),
    "unfold": lambda x: functional.unfold(
        x, 2), "diff": lambda x: x.diff(dim=1),
}  # fmt: skip


@pytest.mark.parametrize("lie", [reversed_dims, channels_last])
@pytest.mark.parametrize("first", range(0, len(STAY_EAGER), 9))
def test_results_lie_as_the_generated_code_counts_on(first, lie):
    """Views of an eager operation's result are right for all strides of the result."""
    operations = list(STAY_EAGER.values())[first : first + 9]

    def function(x):
        found = []
        for operation in operations:
            results = operation(x)
            for y in (results,) if torch.is_tensor(results) else results:
                found += [y, y.transpose(0, -1).atan(), y.flatten()[1:]]
        return found

    x = lie(exact(4, 4, 6, 8, dtype=torch.float32).to(DEVICE))
    for have, want in zip(inductor(function, [x]), function(x), strict=True):
        torch.testing.assert_close(have.cpu(), want.cpu(), rtol=2**-18, atol=2**-18)


def test_strides_of_dims_of_one_element():
    """Inductor does not check these strides, but they affect the layout in sticks."""

    def function(x):
        y = x.amax(-1, keepdim=True).sigmoid().permute(2, 1, 0, 3).unsqueeze(3)
        y = y.expand(1, 8, 3, 2, 1).reshape(1, 8, 3, 2).clone().unsqueeze(4)
        return [functional.layer_norm(y.reshape(1, 16, 3, 1), (1,)) + 1]

    x = exact(3, 8, 1, 32, dtype=torch.float32).to(DEVICE)
    assert_same(inductor(function, [x])[0], function(x)[0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_rms_norm(dtype, said):
    x, weight = exact(4, 64, dtype=dtype).to(DEVICE), exact(64, dtype=dtype, seed=1).to(DEVICE)
    compare(lambda x: functional.rms_norm(x, [64]), x)
    compare(lambda x, w: functional.rms_norm(x * 2, [64], w, 1e-5) + 1, x, weight)
    assert "eager" not in said().replace("0 eager", ""), said()
    compare(lambda x: functional.rms_norm(x.view(2, 2, 64), [2, 64]), x)


def test_constants():
    y = torch.arange(1024.0).view(4, 256).to(DEVICE)
    compare(lambda y: y + torch.tensor([1.0, 2.0, 3.0, 4.0], device=DEVICE)[:, None], y)
    compare(lambda y: y * torch.tensor(3.0, device=DEVICE), y)
    compare(lambda y: y[torch.tensor([1, 2], device=DEVICE)], y)
    compare(lambda y: y[[1, 2]], y)


LARGEST = torch.finfo(torch.float16).max
MASKS = {
    "masked_fill": lambda x, m: x.masked_fill(m, -LARGEST),
    "where": lambda x, m: torch.where(m, x, LARGEST),
    "tensor": lambda x, m: x * 0 + torch.scalar_tensor(-LARGEST, dtype=x.dtype, device=x.device),
    "softmax": lambda x, m: torch.softmax(x.masked_fill(m, -LARGEST), -1, dtype=torch.float32),
}


@pytest.mark.parametrize("name", MASKS)
def test_largest_number(name):
    """It is 65536 in DL16, which a copy to the host makes infinite; rows with nothing else of
    attention's scores would become NaN."""
    x, m = torch.randn(3, 65), torch.rand(3, 65) < 0.5
    m[1] = True
    compare(lambda x, m: MASKS[name](x, m).float(), x.half().to(DEVICE), m.to(DEVICE))
    made = MASKS[name](x.half().to(DEVICE), m.to(DEVICE)).float().cpu()
    assert made.isfinite().all()


def test_control_flow(said):
    y = torch.arange(1024.0).view(4, 256).to(DEVICE)

    def function(y):
        return torch.cond(y.sum() > 0, lambda y: (y + 1)[2:] * 2, lambda y: (y - 1)[:2].atan(), (y,))

    for x in (y, -y):
        compare(function, x)


def test_default_device():
    y = torch.arange(1024.0).view(4, 256).to(DEVICE)
    with torch.device(DEVICE):
        compare(lambda y: torch.empty(4, 256).fill_(1) + torch.ones(256) + y, y)


def test_flex_attention_runs_eagerly():
    q, k, v = (exact(1, 2, 128, 32, seed=seed).to(DEVICE) for seed in range(3))

    def score(value, batch, head, row, column):
        return value * 2 + row

    compare(lambda q, k, v: flex_attention(q * 2, k, v, score_mod=score) + 1, q, k, v)


def test_errors_of_the_user_are_raised():
    y = torch.zeros(4, 256, device=DEVICE)
    for function in (lambda y: y.view(3, -1), lambda y: (y + 1) @ y, lambda y: torch.cat((y, y[0]))):
        with pytest.raises(RuntimeError):
            function(y)
        torch._dynamo.reset()
        with pytest.raises(RuntimeError):
            torch.compile(function)(y)


def model(x):
    y = torch.softmax(x * 2 + 1, -1)
    return y.t()[3:].atan() + y.sum(), functional.layer_norm(x, (64,))


def failing(*args, **kwargs):
    raise ZeroDivisionError("a defect")


@pytest.mark.parametrize("place", ["rule", "builder", "bundle", "finish", "pass", "partition"])
def test_a_defect_is_no_failure(place, monkeypatch, said):
    """If any part of making kernels fails, its operations run eagerly."""
    from torch_spyre._inductor import emit, finish, graph_pass
    from torch_spyre._inductor.rules import RULES

    if place == "rule":
        monkeypatch.setitem(RULES, torch.ops.aten._softmax.default, failing)
    elif place == "builder":
        monkeypatch.setattr(emit.Program, "_do", failing)
    elif place == "bundle":
        monkeypatch.setattr(finish, "bundle", failing)
    elif place == "finish":
        monkeypatch.setattr(graph_pass, "finish", failing)
    elif place == "pass":
        monkeypatch.setitem(graph_pass.PREPARATIONS, "unflatten", failing)
    else:
        monkeypatch.setattr(graph_pass, "plan", failing)
    compare(model, exact(8, 64, dtype=torch.float32).to(DEVICE))
    assert ("0 kernels" in said()) == (place != "rule"), said()


def test_settings_of_the_planner_are_not_mixed_up(monkeypatch):
    """Wrappers for other numbers of cores differ, although their program is equal."""
    from torch_spyre._inductor import kernel

    used, bundle = [], kernel.bundle
    monkeypatch.setattr(kernel, "bundle", lambda records: used.append(bundle(records)) or used[-1])
    x = exact(64, 128).to(DEVICE)
    for cores in ("1", "8", "1"):
        monkeypatch.setenv("SENCORES", cores)
        compare(lambda x: torch.exp(x) + 1, x)
    assert len(set(used)) == 2, used


def normalized(x, **wide):
    return functional.layer_norm(x, x.shape[-1:], **wide)


def column(*size):
    """A tensor with one element per stick."""
    return lambda x: x.flatten()[: 2 * torch.Size(size).numel()].view(*size, 2).sum(-1)


#: Layouts of a kernel's input, as views of a tensor of (6, 130).
LAYOUTS = {
    "transposed": lambda x: x.t(),
    "permuted": lambda x: x.view(6, 2, 65).permute(0, 2, 1),
    "column of one stick": lambda x: x[:1, :20].cumsum(0).t(),
    "row as a column": lambda x: x.view(-1)[:20].unsqueeze(-1),
    "rows as columns": lambda x: x[:, :20].unsqueeze(-1).cumsum(0),
    "an element in each stick": column(20),
    "a row in each stick": column(20, 5),
    "last dim of one, apart": lambda x: column(2, 2)(x).view(2, 1, 2, 1),
    "expanded": lambda x: x[:4, :20].unsqueeze(1).expand(4, 3, 20).transpose(1, 2),
}
READERS = {
    "sigmoid": torch.sigmoid,
    "gelu": lambda x: functional.gelu(x, approximate="tanh"),
    "lerp": lambda x: torch.lerp(x, x * 2, 0.3),
    "isnan": lambda x: torch.isnan(x),
    "layer_norm": normalized,
    "layer_norm, weight and bias": lambda x: normalized(
        x, weight=x.flatten()[: x.shape[-1]], bias=x.flatten()[-x.shape[-1] :]),
    "native_layer_norm": lambda x: torch.native_layer_norm(
        x, x.shape[-1:], None, None, 1e-5),
    "rms_norm": lambda x: functional.rms_norm(x, x.shape[-1:]),
    "softmax": lambda x: x.softmax(-1),
    "topk": lambda x: x.topk(1, 0), "topk, last": lambda x: x.topk(1, -1),
    "argmax": lambda x: x.argmax(0), "argmin": lambda x: x.argmin(-1),
    "max": lambda x: x.max(0), "min": lambda x: x.min(-1),
}  # fmt: skip
SEARCHES = ("topk", "topk, last", "argmax", "argmin", "max", "min")


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("lie", LAYOUTS)
def test_a_kernel_whatever_lies_how(lie, dtype):
    """Eager mode and torch.compile use the kernel for all layouts, with equal results."""

    def read(x):
        results = [reader(LAYOUTS[lie](x)) for reader in READERS.values()]
        return [y for r in results for y in ((r,) if torch.is_tensor(r) else r)]

    x = exact(6, 130, dtype=dtype).to(DEVICE)
    torch.spyre.reset_fallbacks()
    for have, want in zip(inductor(read, [x]), read(x), strict=True):
        assert_same(have, want)
    assert set(torch.spyre.fallbacks()) <= {"aten::cumsum.out"}, torch.spyre.fallbacks()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("lie", LAYOUTS)
def test_what_is_found_whatever_lies_how(lie, dtype):
    """A search finds what the CPU finds in the same numbers."""
    x = LAYOUTS[lie](exact(6, 130, dtype=dtype).to(DEVICE))
    for name in SEARCHES:
        have, want = READERS[name](x), READERS[name](x.cpu())
        for a, b in zip(*((r,) if torch.is_tensor(r) else r for r in (have, want)), strict=True):
            assert_same(a, b)
