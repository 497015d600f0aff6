# SPDX-License-Identifier: MIT
"""Idioms of programs for other devices."""

import io
import os
import pickle
import warnings

import pytest
import torch
import torch_spyre
from support import DEVICE, assert_same, exact, python, python_ok

NAN = float("nan")


class TestPlacesOfNaN:
    ROWS = torch.tensor([[1.0, NAN, 3.0, NAN], [4.0, -2.0, -2.0, 9.0], [NAN, 1.0, 0.0, -1.0]])

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
    @pytest.mark.parametrize("dim", [0, 1, -1])
    def test_smallest(self, dtype, dim):
        host = self.ROWS.to(dtype)
        card = host.to(DEVICE)
        assert_same(card.argmin(dim), host.argmin(dim))
        assert_same(card.argmin(dim, keepdim=True), host.argmin(dim, keepdim=True))
        for actual, expected in zip(card.min(dim), host.min(dim)):
            assert_same(actual, expected)
        assert_same(card.argmin(), host.argmin())

    def test_numbers_alone(self):
        host = exact(7, 150, seed=3)
        host[:, 140] = host.min() - 1
        host[2, 3] = host[2, 140]
        assert_same(host.to(DEVICE).argmin(1), host.argmin(1))


class TestTrace:
    def test_results_are_checked(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).to(DEVICE)
        x = exact(2, 4, dtype=torch.float32).to(DEVICE)
        with warnings.catch_warnings():
            warnings.simplefilter("error", torch.jit.TracerWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            traced = torch.jit.trace(model, x)
        assert_same(traced(x), model(x))

    @pytest.mark.filterwarnings("ignore")
    def test_a_difference_is_seen(self):
        calls = []

        def changing(x):
            calls.append(0)
            return x + len(calls)

        with pytest.raises(torch.jit.TracingCheckError), pytest.warns(torch.jit.TracerWarning):
            torch.jit.trace(changing, torch.ones(3, device=DEVICE))


class TestFlexAttention:
    @pytest.mark.filterwarnings("ignore")
    def test_unfused(self):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        q, k, v = (exact(1, 2, 16, 16, dtype=torch.float32, seed=seed) for seed in (1, 2, 3))

        def score(score, b, h, i, j):
            return torch.where(i >= j, score, float("-inf"))

        expected = flex_attention(q, k, v, score_mod=score)
        actual = flex_attention(*(x.to(DEVICE) for x in (q, k, v)), score_mod=score)
        torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-5)
        mask = create_block_mask(lambda b, h, i, j: i >= j, 1, 1, 16, 16, device=DEVICE)
        actual = flex_attention(*(x.to(DEVICE) for x in (q, k, v)), block_mask=mask)
        torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-5)


class TestPickle:
    def test_functions_that_are_wrapped(self):
        assert pickle.loads(pickle.dumps(torch.empty)) is torch.empty
        buffer = io.BytesIO()
        torch.save({"make": torch.empty}, buffer)
        buffer.seek(0)
        assert torch.load(buffer, weights_only=False)["make"] is torch.empty

    def test_without_the_plugin(self):
        code = f"import pickle; print(pickle.loads({pickle.dumps(torch.empty)!r})(2).shape)"
        out = python("", **{"TORCH_DEVICE_BACKEND_AUTOLOAD": 0})
        assert out.returncode == 0, out.stderr
        import subprocess
        import sys

        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0 and "torch.Size([2])" in done.stdout, done.stderr


class TestErrors:
    @pytest.mark.parametrize("kind", [TypeError, RuntimeError])
    def test_float64(self, kind):
        with pytest.raises(kind, match="Double has no form on the card"):
            torch.ones(2, dtype=torch.float64, device=DEVICE)
        with pytest.raises(torch_spyre.utils.DtypeError):
            torch.ones(2).double().to(DEVICE)

    @pytest.mark.parametrize("number", [2**33, 2**31, -(2**31) - 1, torch.iinfo(torch.int64).min])
    def test_numbers_that_do_not_fit(self, number):
        for make in (
            lambda: torch.full((2,), number, device=DEVICE),
            lambda: torch.zeros(2, dtype=torch.int64, device=DEVICE).fill_(number),
        ):
            with pytest.raises(RuntimeError, match=f"{number} does not fit int64.*32 bits"):
                make()
        least = torch.full((2,), -(2**31), device=DEVICE)
        assert_same(least, torch.full((2,), -(2**31)))

    @pytest.mark.parametrize("number", [2**31, 2.0**40, float("inf"), -float("inf"), float("nan")])
    def test_numbers_beyond_int32(self, number):
        for device in "cpu", DEVICE:
            for make in (
                lambda where: torch.full((2,), number, dtype=torch.int32, device=where),
                lambda where: torch.zeros(2, dtype=torch.int32, device=where).fill_(number),
            ):
                with pytest.raises(RuntimeError, match="without overflow"):
                    make(device)

    def test_copies_that_cut_say_so(self):
        big = torch.tensor([1, 2**33 + 5])
        with pytest.warns(UserWarning, match="8589934597 does not fit.*becomes 5;"):
            assert_same(big.to(DEVICE), torch.tensor([1, 5]))
        many = torch.tensor([2**31 - 1, 1]).to(DEVICE)
        with pytest.warns(UserWarning, match="2147483648 does not fit"):
            many.sum()


class TestVersions:
    def test_another_torch(self, tmp_path):
        """The package as built for another torch: `import torch` works, and says both versions."""
        home = os.path.dirname(torch_spyre.__file__)
        os.symlink(home, tmp_path / "torch_spyre")
        info = tmp_path / "torch_spyre-0.1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: torch_spyre\nVersion: 0.1.0\n"
            "Requires-Dist: torch<1.8,>=1.7\n"
        )
        (info / "entry_points.txt").write_text(
            "[torch.backends]\nspyre = torch_spyre:_autoload\n"
        )
        out = python_ok(
            """
print("works", torch.ones(2).sum().item())
try:
    torch_spyre.SpyreTensorLayout
except ImportError as error:
    print(error)
""",
            PYTHONPATH=str(tmp_path),
            PYTHONWARNINGS="ignore",
        )
        assert "works 2.0" in out
        assert f"built against torch 1.7 and cannot be loaded by torch {torch.__version__}" in out

    def test_requirement_of_the_wheel(self):
        import importlib.metadata

        major, minor = (int(part) for part in torch.__version__.split(".")[:2])
        wanted = {f">={major}.{minor}", f"<{major}.{minor + 1}"}
        found = [r for r in importlib.metadata.requires("torch_spyre") if r.startswith("torch")]
        assert len(found) == 1 and set(found[0].removeprefix("torch").split(",")) == wanted
