#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""train.py [digits.u8 [weights.f16]]: trains the network of digits.c (numpy only).

logits = relu(x @ W1 + b1) @ W2 + b2, with x = pixels / 16, 64 -> 128 -> 10.

Image i is held out if i % 3 == 2 and is never looked at here except to print
the final accuracy. Three in ten training images are shifted by up to one pixel.
(The settings below were chosen on a fifth of the training part.)
All arithmetic is float64 and the seed is fixed, so that the rounding to fp16
at the end hides the last-bit differences between BLAS libraries.

weights.f16, little endian:
    0   8 bytes  "SPYRNET1"
    8   u32 x 3  inputs, hidden, classes
    20  u32      0
    24  f16[inputs][hidden] W1, f16[hidden] b1, f16[hidden][classes] W2, f16[classes] b2
"""
import os
import struct
import sys

import numpy as np

HIDDEN = 128
CLASSES = 10
EPOCHS = 90
BATCH = 32
RATE = 2e-3
DECAY = 2e-4
SHIFTED = 0.3


def load(path):
    raw = open(path, "rb").read()
    count, rows, cols = struct.unpack_from("<IHH", raw, 8)
    if raw[:8] != b"SPYRDIG1" or (rows, cols) != (8, 8) or len(raw) != 16 + 65 * count:
        sys.exit(f"{path}: not a digits.u8 file")
    labels = np.frombuffer(raw, np.uint8, count, 16)
    images = np.frombuffer(raw, np.uint8, 64 * count, 16 + count)
    return images.reshape(count, 8, 8) / 16.0, labels.astype(int)


def shifted(x, rng):
    """The images, some of them moved by -1, 0 or 1 pixel in both directions."""
    out = np.zeros_like(x)
    moves = rng.randint(-1, 2, (len(x), 2))
    moves[rng.random_sample(len(x)) >= SHIFTED] = 0
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            pick = (moves[:, 0] == dy) & (moves[:, 1] == dx)
            pad = np.pad(x[pick], ((0, 0), (1, 1), (1, 1)))
            out[pick] = pad[:, 1 - dy:9 - dy, 1 - dx:9 - dx]
    return out


def forward(p, x):
    hidden = np.maximum(x @ p[0] + p[1], 0)
    return hidden, hidden @ p[2] + p[3]


def gradients(p, x, y):
    hidden, logits = forward(p, x)
    e = np.exp(logits - logits.max(1, keepdims=True))
    d = e / e.sum(1, keepdims=True)
    d[np.arange(len(y)), y] -= 1
    d /= len(y)
    back = (d @ p[2].T) * (hidden > 0)
    return [x.T @ back + DECAY * p[0], back.sum(0), hidden.T @ d + DECAY * p[2], d.sum(0)]


def train(x, y):
    rng = np.random.RandomState(5082)   # its streams are frozen across numpy versions
    p = [rng.standard_normal((64, HIDDEN)) * np.sqrt(2 / 64), np.zeros(HIDDEN),
         rng.standard_normal((HIDDEN, CLASSES)) * np.sqrt(2 / HIDDEN), np.zeros(CLASSES)]
    m = [np.zeros_like(w) for w in p]
    v = [np.zeros_like(w) for w in p]
    steps = EPOCHS * (len(x) // BATCH)
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))
        moved = shifted(x, rng).reshape(len(x), 64)
        for k in range(len(x) // BATCH):
            pick = order[k * BATCH:(k + 1) * BATCH]
            step += 1
            rate = RATE * (1 - step / (steps + 1))
            for w, g, a, b in zip(p, gradients(p, moved[pick], y[pick]), m, v):
                a += 0.1 * (g - a)
                b += 0.001 * (g * g - b)
                w -= rate * (a / (1 - 0.9 ** step)) / (np.sqrt(b / (1 - 0.999 ** step)) + 1e-8)
    return p


def main(data, weights):
    x, y = load(data)
    held_out = np.arange(len(x)) % 3 == 2
    p = [w.astype("<f2") for w in train(x[~held_out], y[~held_out])]
    with open(weights, "wb") as f:
        f.write(b"SPYRNET1" + struct.pack("<IIII", 64, HIDDEN, CLASSES, 0))
        f.write(b"".join(w.tobytes() for w in p))
    exact = [w.astype(np.float64) for w in p]
    for name, part in (("trained on", ~held_out), ("held out", held_out)):
        guess = forward(exact, x[part].reshape(-1, 64))[1].argmax(1)
        print(f"{name}: {part.sum()} images, accuracy {np.mean(guess == y[part]):.4f}")
    print(f"{weights}: {os.path.getsize(weights)} bytes")


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    if len(sys.argv) > 3 or (len(sys.argv) > 1 and sys.argv[1].startswith("-")):
        sys.exit(__doc__)
    main(*(sys.argv[1:] + [os.path.join(here, n) for n in ("digits.u8", "weights.f16")][len(sys.argv) - 1:]))
