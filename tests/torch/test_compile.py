# SPDX-License-Identifier: MIT
"""torch.compile: the same bits as eager, one bundle per fused group, a cache on disk."""

import os
import shutil

import pytest
import torch
from support import DEVICE, assert_same, exact, python, python_ok

BACKENDS = ["inductor", "spyre"]

FUNCTIONS = {
    "pointwise": lambda x, y: (x + y) * x - y.abs(),
    "activation": lambda x, y: torch.nn.functional.gelu(x) + y.sigmoid(),
    "softmax": lambda x, y: (x * 0.5 + y).softmax(-1),
    "layer_norm": lambda x, y: torch.nn.functional.layer_norm(x + y, (x.shape[-1],)),
    "matmul and bias": lambda x, y: torch.relu(x @ y.t() + y[:, 0]),
    "reductions": lambda x, y: (x * y).sum(-1) / y.abs().amax(-1),
    "views": lambda x, y: (x.t()[1:] * y.t()[1:]).contiguous().view(-1)[5:],
    "cat": lambda x, y: torch.cat([x, y * 2], 1) + 1,
    "where": lambda x, y: torch.where(x > y, x, y * y),
    "fallback in the middle": lambda x, y: (x + 1).atan() * y,
    "two outputs": lambda x, y: (x + y, x - y),
    "numbers": lambda x, y: (x * 3 + 0.5).clamp(-1, 1),
}


def outputs(result):
    return result if isinstance(result, tuple) else (result,)


class TestCompile:
    @pytest.mark.parametrize("backend", BACKENDS)
    @pytest.mark.parametrize("name", FUNCTIONS)
    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
    def test_equals_eager(self, name, backend, dtype):
        torch._dynamo.reset()
        x, y = (exact(48, 130, dtype=dtype, seed=s).to(DEVICE) for s in (1, 2))
        compiled = torch.compile(FUNCTIONS[name], backend=backend)
        for have, want in zip(outputs(compiled(x, y)), outputs(FUNCTIONS[name](x, y))):
            assert have.device.type == DEVICE
            assert_same(have, want)

    def test_in_place(self):
        torch._dynamo.reset()

        @torch.compile
        def step(x, y):
            x.add_(y).mul_(2)
            return x + 1

        x, y = exact(5, 70).to(DEVICE), exact(5, 70, seed=1).to(DEVICE)
        expected = x.clone().add_(y).mul_(2)
        assert_same(step(x, y), expected + 1)
        assert_same(x, expected)

    def test_gradients(self):
        torch._dynamo.reset()
        results = []
        for wrap in (lambda f: f, torch.compile):
            x = exact(5, 70, dtype=torch.float32).to(DEVICE).requires_grad_()
            w = exact(70, 6, dtype=torch.float32, seed=1).to(DEVICE).requires_grad_()
            wrap(lambda a, b: (a @ b).relu().sum())(x, w).backward()
            results.append((x.grad, w.grad))
        for have, want in zip(*results):
            assert_same(have, want)

    def test_graph_break(self):
        torch._dynamo.reset()

        @torch.compile
        def broken(x):
            y = x + 1
            torch._dynamo.graph_break()
            return y * 2

        x = exact(5, 70).to(DEVICE)
        assert_same(broken(x), (x + 1) * 2)

    def test_shapes_change(self):
        torch._dynamo.reset()
        compiled = torch.compile(lambda x: (x * 2).softmax(-1))
        for rows, columns in [(3, 64), (5, 64), (5, 70), (9, 130), (3, 64)]:
            x = exact(rows, columns).to(DEVICE)
            assert_same(compiled(x), (x * 2).softmax(-1))

    def test_streams(self):
        torch._dynamo.reset()
        compiled = torch.compile(lambda x: x @ x + 1)
        x = exact(64, 64).to(DEVICE)
        expected = x @ x + 1
        torch.spyre.synchronize()
        with torch.spyre.stream(torch.spyre.Stream()):
            result = compiled(x)
        torch.spyre.synchronize()
        assert_same(result, expected)

    def test_module(self):
        torch._dynamo.reset()
        model = torch.nn.Sequential(
            torch.nn.Linear(70, 130), torch.nn.GELU(), torch.nn.LayerNorm(130),
            torch.nn.Linear(130, 5),
        )
        model = model.half().to(DEVICE).eval()
        x = exact(9, 70).to(DEVICE)
        with torch.no_grad():
            assert_same(torch.compile(model)(x), model(x))

    def test_mixed_devices(self):
        torch._dynamo.reset()
        compiled = torch.compile(lambda x, y: x + y)
        with pytest.raises(Exception, match="(?s)(spyre.*cpu|cpu.*spyre)"):
            compiled(exact(3).to(DEVICE), exact(3))


class TestArtefacts:
    """The files of a compilation, in a cache folder of the test."""

    CODE = (
        "f = torch.compile(lambda x, y: (x @ y + 1).softmax(-1))\n"
        "x = torch.arange(64 * 64).view(64, 64).half().spyre() / 4096\n"
        "y = f(x, x)\n"
        "print(y.float().sum().item())\n"
    )

    def run(self, folder, **environment):
        return python_ok(
            self.CODE, TORCHINDUCTOR_CACHE_DIR=folder, SPYRE_KERNEL_CACHE=1, **environment
        )

    def test_bundles_of_the_public_form(self, tmp_path):
        self.run(tmp_path)
        bundles = [folder for folder, _, files in os.walk(tmp_path) if "bundle.mlir" in files]
        assert bundles
        for folder in bundles:
            assert any(name.startswith("sdsc_") for name in os.listdir(folder))

    def test_cache(self, tmp_path):
        """The second start compiles nothing anew, and a wiped cache is no error."""
        first = self.run(tmp_path)
        files = {
            os.path.join(folder, name): os.stat(os.path.join(folder, name)).st_mtime_ns
            for folder, _, names in os.walk(tmp_path)
            for name in names
            if name.endswith((".mlir", ".json", ".bin"))
        }
        assert self.run(tmp_path) == first
        for path, when in files.items():
            assert os.stat(path).st_mtime_ns == when, path

    def bundles(self, folder):
        return {path.parent: path.stat().st_mtime_ns for path in folder.rglob("bundle.mlir")}

    def test_deleted_bundle(self, tmp_path):
        """The wrapper in the cache holds the program: a bundle that is gone is made again."""
        first = self.run(tmp_path)
        made = self.bundles(tmp_path)
        for folder in made:
            shutil.rmtree(folder)
        assert self.run(tmp_path) == first
        again = self.bundles(tmp_path)
        assert set(again) == set(made) and again != made

    def test_other_settings_and_libraries(self, tmp_path):
        """Bundles depend on the planner's settings and on the library's file."""
        first = self.run(tmp_path, SENCORES="4")
        made = self.bundles(tmp_path)
        assert self.run(tmp_path, SENCORES="2") == first
        cores = self.bundles(tmp_path)
        assert len(cores) == 2 * len(made) and made.items() <= cores.items()
        other = "from torch_spyre._inductor import bundle\nbundle.library = lambda: 'another'\n"
        done = python_ok(other + self.CODE, TORCHINDUCTOR_CACHE_DIR=tmp_path, SENCORES="4")
        assert done == first
        assert len(self.bundles(tmp_path)) == 3 * len(made)

    def test_another_extension(self, tmp_path, monkeypatch):
        """It has another table of operations, so that graphs in the cache are not its own."""
        from torch_spyre._inductor import bundle

        identity = bundle._identity.__wrapped__
        first = identity(())
        assert identity(()) == first
        (tmp_path / "_C.so").write_bytes(b"another")
        monkeypatch.setattr(bundle._C, "__file__", str(tmp_path / "_C.so"))
        assert identity(()) != first

    def test_cache_switched_off(self, tmp_path):
        first = self.run(tmp_path)
        made = self.bundles(tmp_path)
        assert self.run(tmp_path, SPYRE_INDUCTOR_SDSC_CACHE="0") == first
        again = self.bundles(tmp_path)
        assert set(again) == set(made)
        assert all(again[folder] != when for folder, when in made.items())

    def test_torch_logs(self, tmp_path):
        """The plan with its operations, cores and cycles, what runs eagerly, graph breaks."""
        code = (
            "def f(x, y):\n"
            "    z = (x @ y + 1).softmax(-1).atan()\n"
            "    torch._dynamo.graph_break()\n"
            "    return z * 2\n"
            "x = torch.arange(64 * 64).view(64, 64).half().spyre() / 4096\n"
            "torch.compile(f)(x, x)\n"
        )
        done = python(
            code,
            TORCHINDUCTOR_CACHE_DIR=tmp_path,
            TORCH_LOGS="+torch_spyre.inductor,graph_breaks",
        )
        said = done.stderr
        assert done.returncode == 0, said
        assert "2 kernels" not in said and said.count("1 kernels") == 2, said[-3000:]
        for words in ("3 operations (aten.matmul.default", "aten._softmax.default", "modelled",
                      "cores 32", "eager aten.atan.default", "no operation for it",
                      "Graph break", "graph_break()"):  # fmt: skip
            assert words in said, f"{words}: {said[-3000:]}"
