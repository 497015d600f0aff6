# SPDX-License-Identifier: MIT
"""The package "spyre" against the library that it was built with (make installcheck)."""

import gc
import tempfile
import unittest
from pathlib import Path

import numpy as np

import spyre


class Test(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_library(self):
        self.assertGreaterEqual(spyre.device_count(), 1)
        self.assertIn("matmul", spyre.operations())
        self.assertEqual(spyre.version()[0], spyre.lib.SPYRE_VERSION_MAJOR)

    def test_copies(self):
        """Each dtype comes back as it went, from any strides."""
        random = np.random.default_rng(1)
        with spyre.Context() as card:
            for name in ("float16", "float32", "int8", "uint8", "int32", "int64", "bool"):
                values = random.integers(0, 2 if name == "bool" else 100, (5, 3, 70)).astype(name)
                for view in (values, values[::2], values.transpose(2, 0, 1)):
                    with self.subTest(name=name, shape=view.shape):
                        array = card.array(view)
                        np.testing.assert_array_equal(array.numpy(), view)
                        self.assertEqual((array.shape, array.dtype), (view.shape, view.dtype))

    def test_kernel(self):
        a = np.arange(12, dtype=np.float32).reshape(3, 4)
        spyre.build("mul", [a, a, a], self.folder / "mul", cores=2)
        with spyre.Context() as card:
            kernel, x, out = card.load(self.folder / "mul"), card.array(a), card.empty(a.shape, a.dtype)
            kernel(x, x, out)
            np.testing.assert_array_equal(out.numpy(), a * a)
            x.write(a + 1)
            kernel(x, x, out)
            np.testing.assert_array_equal(out.numpy(), (a + 1) ** 2)
            self.assertEqual(kernel.info()["num_args"], 3)
            self.assertLessEqual(kernel.info()["num_cores"], 2)

    def test_graph(self):
        a = np.linspace(-1, 1, 256, dtype=np.float32).reshape(4, 64)
        graph = spyre.Graph()
        x, y, out = (graph.argument(a.shape, a.dtype) for _ in range(3))
        graph.op("relu", graph.op("add", x, y), out=out)
        with spyre.Context() as card:
            result = card.empty(a.shape, a.dtype)
            graph.load(card)(card.array(a), card.array(a), result)
            np.testing.assert_array_equal(result.numpy(), np.maximum(a + a, 0))

    def test_errors(self):
        a = np.ones((2, 64), np.float16)
        with self.assertRaisesRegex(spyre.Error, "no_such_operation") as caught:
            spyre.build("no_such_operation", [a, a], self.folder / "x")
        self.assertEqual(caught.exception.status, spyre.lib.SPYRE_ERROR_UNSUPPORTED)
        with self.assertRaisesRegex(TypeError, "complex64"), spyre.Context() as card:
            card.array(np.ones(4, np.complex64))
        with self.assertRaisesRegex(spyre.Error, "NO_DEVICE"):
            spyre.Context(99)
        spyre.build("neg", [a, a], self.folder / "neg")
        with spyre.Context() as card:
            kernel, x = card.load(self.folder / "neg"), card.array(a)
            with self.assertRaisesRegex(spyre.Error, "2 arguments"):
                kernel(x)
            with self.assertRaisesRegex(ValueError, "shape"):
                x.write(np.ones((2, 63), np.float16))

    def test_lifetime(self):
        """Memory goes with its array; what outlives the card refuses, without a crash."""
        with spyre.Context() as card:
            before = card.memory()["context_used"]
            array = card.array(np.ones((64, 64), np.float16))
            self.assertEqual(card.memory()["context_used"], before + 64 * 64 * 2)
            array = None
            gc.collect()
            self.assertEqual(card.memory()["context_used"], before)
            array = card.array(np.ones(4, np.float32))
        with self.assertRaisesRegex(ValueError, "closed"):
            array.numpy()
        with self.assertRaisesRegex(ValueError, "closed"):
            card.properties()
        card.close()


if __name__ == "__main__":
    unittest.main()
