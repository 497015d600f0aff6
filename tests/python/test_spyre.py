# SPDX-License-Identifier: MIT
"""The package "spyre" against the library that it was built with (make installcheck)."""

import gc
import os
import shlex
import subprocess
import sys
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
        self.assertEqual(spyre.__version__, "{}.{}.{}".format(*spyre.version()))

    def test_library_that_is_missing(self):
        """The error says what to install or set."""
        code = "import sys; sys.modules['spyre._library'] = None; import spyre"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("ImportError: cannot load libspyre: ", run.stderr)
        self.assertIn("; install it (docs/install.md), run ldconfig, or name the folder", run.stderr)
        self.assertIn("LD_LIBRARY_PATH", run.stderr)

    def test_library_that_is_too_old(self):
        """A library without the functions of this package is called older, not missing."""
        stub = self.folder / "libspyre.so.0"
        compiler = shlex.split(os.environ.get("CC", "cc"))
        subprocess.run([*compiler, "-shared", "-Wl,-soname,libspyre.so.0", "-x", "c", os.devnull,
                        "-o", str(stub)], check=True)
        environment = dict(os.environ, LD_LIBRARY_PATH=str(self.folder))
        run = subprocess.run([sys.executable, "-c", "import spyre"], capture_output=True, text=True,
                             env=environment)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("libspyre.so.0 is older than this package: install both from one version", run.stderr)

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

    def test_numpy_functions(self):
        values = np.arange(6, dtype=np.float32).reshape(2, 3)
        with spyre.Context() as card:
            array = card.array(values)
            np.testing.assert_array_equal(array, values)
            self.assertEqual(np.asarray(array).dtype, np.float32)
            self.assertEqual(np.asarray(array, np.float64).dtype, np.float64)
            self.assertEqual(
                repr(array),
                f"spyre.Array(shape=(2, 3), dtype=float32, address={array.address:#x})")
            with self.assertRaisesRegex(ValueError, "without a copy"):
                array.__array__(copy=False)
            self.assertEqual(card.empty(7).shape, (7,))

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

    def test_byte_orders(self):
        """Arrays of either byte order, as in files of other hosts, are the same numbers."""
        a = np.linspace(-1, 1, 256, dtype=np.float32).reshape(4, 64)
        spyre.build("add", [a, a, a], self.folder / "add", cores=2)
        with spyre.Context() as card:
            kernel = card.load(self.folder / "add")
            for order in "<>":
                given = a.astype(a.dtype.newbyteorder(order))
                x, out = card.array(given), card.empty(given.shape, given.dtype)
                kernel(x, x, out)
                np.testing.assert_array_equal(out.numpy(), a + a)
                np.testing.assert_array_equal(x.numpy(), a)
                self.assertEqual(x.dtype, np.float32)

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

    def test_arguments_of_the_wrong_type(self):
        a = np.ones((2, 64), np.float16)
        with self.assertRaisesRegex(TypeError, "operand 1 is of type list"):
            spyre.build("neg", [a, [1]], self.folder / "x")
        spyre.build("neg", [a, a], self.folder / "neg")
        with spyre.Context() as card, spyre.Context() as other:
            kernel, x = card.load(self.folder / "neg"), card.array(a)
            with self.assertRaisesRegex(TypeError, "argument 1 is of type ndarray: pass Array"):
                kernel(x, a)
            with self.assertRaisesRegex(ValueError, "argument 1 is of another context"):
                kernel(x, other.empty(a.shape))
            with self.assertRaisesRegex(TypeError, "input 1 is of type Array: pass int"):
                spyre.Graph().op("add", 0, x)
            with self.assertRaisesRegex(ValueError, "99 dimensions"):
                card.empty((1,) * 99)
            with self.assertRaisesRegex(TypeError, "size 1 of the shape is of type float: pass int"):
                card.empty((2, 64.0))
            with self.assertRaisesRegex(TypeError, "context is of type NoneType: pass Context"):
                spyre.Array(None, a.shape, a.dtype)
            with self.assertRaisesRegex(TypeError, "context is of type Kernel: pass Context"):
                spyre.Graph().load(kernel)
            self.assertEqual(card.empty((np.int64(2), 64)).shape, (2, 64))
        with self.assertRaisesRegex(TypeError, "index is of type str: pass int"):
            spyre.Context("0")
        with self.assertRaisesRegex(TypeError, "op is of type bytes: pass str"):
            spyre.build(b"neg", [a, a], self.folder / "x")
        with self.assertRaisesRegex(TypeError, "cores is of type float: pass int"):
            spyre.build("neg", [a, a], self.folder / "x", cores=1.0)
        with self.assertRaisesRegex(TypeError, "size 0 of the shape is of type str: pass int"):
            spyre.Graph().argument("4x64")
        with self.assertRaisesRegex(TypeError, "name is of type int: pass str"):
            spyre.Graph().op(3)
        with self.assertRaisesRegex(TypeError, "attribute dim is of type str: pass int or float or number"):
            spyre.Graph().op("sum", 0, dim="0")

    def test_texts_of_objects(self):
        a = np.ones((2, 64), np.float16)
        spyre.build("neg", [a, a], self.folder / "neg", cores=1)
        with spyre.Context() as card:
            kernel = card.load(self.folder / "neg")
            self.assertEqual(repr(card), "spyre.Context(index=0)")
            self.assertEqual(repr(kernel), "spyre.Kernel(num_args=2, num_cores=1)")
        self.assertEqual(repr(card), "spyre.Context(index=0, closed)")
        self.assertEqual(repr(kernel), "spyre.Kernel(context closed)")

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
