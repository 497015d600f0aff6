# SPDX-License-Identifier: MIT
"""Lets torchvision of PyPI load beside a torch for the CPU.

Its operators are built for CUDA and do not load there. Its part in Python, which prepares images,
wants two of them to have names, and calls none. With this folder in PYTHONPATH every process of a
test has them.
"""

import importlib.abc
import sys


class Names(importlib.abc.MetaPathFinder):
    """Finds no module, but names the operators before torchvision is imported."""

    library = None

    def find_spec(self, fullname, path=None, target=None):
        if fullname == "torchvision" and self.library is None:
            import torch

            self.library = torch.library.Library("torchvision", "DEF")
            for name in ("nms", "qnms"):
                self.library.define(f"{name}(Tensor boxes) -> Tensor")
        return None


sys.meta_path.insert(0, Names())
