#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds two 64x128 tensors on a Spyre card, as add.c does, with the package "spyre" and numpy."""

import sys

import numpy as np

import spyre

directory = sys.argv[1] if len(sys.argv) > 1 else "add.bundle"
a = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)
b = np.full_like(a, 0.5)

spyre.build("add", [a, b, a], directory)
with spyre.Context() as card:
    total = card.empty(a.shape, a.dtype)
    card.load(directory)(card.array(a), card.array(b), total)
    result = total.numpy()

assert np.array_equal(result, a + b), result
print(f"{result.size} sums are right, the last one is {result[-1, -1]:g}")
