# SPDX-License-Identifier: MIT
"""Helpers of the tests of the PyTorch plugin: numbers, comparisons, child processes."""

import os
import subprocess
import sys

import torch

import torch_spyre  # noqa: F401  (where the entry point is not installed)

DEVICE = "spyre"

#: One step between neighbouring DL16 numbers, relative: nine bits of fraction.
DL16_STEP = 2.0**-9


def dl16(tensor):
    """The numbers of @tensor as the card keeps them in DL16, in fp32: nearest, ties away."""
    bits = tensor.detach().to(torch.float32).contiguous().view(torch.int32)
    magnitude = (bits & 0x7FFFFFFF) + (1 << 13) & ~((1 << 14) - 1)
    rounded = (magnitude | (bits & -0x80000000)).view(torch.float32)
    largest, smallest = 2.0**32 * (1 + 509 / 512), 2.0**-31 * (1 + 1 / 512)
    over = torch.copysign(torch.full_like(rounded, torch.inf), rounded)
    rounded = torch.where(rounded.abs() > largest, over, rounded)
    rounded = torch.where(tensor.isnan(), torch.nan, rounded)
    return torch.where(rounded.abs() < smallest, torch.copysign(torch.zeros(()), rounded), rounded)


def exact(*size, dtype=torch.float16, seed=0):
    """Numbers that the card keeps exactly, so that a round trip must return the same bits."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.rand(size, generator=generator) > 0.5
    if not dtype.is_floating_point:
        low, high = (0, 256) if dtype == torch.uint8 else (-100, 100)
        return torch.randint(low, high, size, generator=generator).to(dtype)
    values = torch.randn(size, generator=generator)
    return (dl16(values) if dtype == torch.float16 else values).to(dtype)


def picker(seed):
    """pick(n): a number from 0 to n - 1."""
    generator = torch.Generator().manual_seed(seed)
    return lambda n: int(torch.randint(0, n, (), generator=generator))


def _random_step(pick, shape):
    """A view of tensors of @shape, or None."""
    d, step = pick(len(shape)), pick(6)
    if step == 0:
        start = pick(shape[d])
        length = 1 + pick(shape[d] - start)
        return lambda x: x.narrow(d, start, length)
    if step == 1:
        e = pick(len(shape))
        return lambda x: x.transpose(d, e)
    if step == 2 and len(shape) > 1:
        i = pick(shape[d])
        return lambda x: x.select(d, i)
    if step == 3 and len(shape) < 5:
        return lambda x: x.unsqueeze(d)
    if step == 4:
        key = (slice(None),) * d + (slice(pick(shape[d]), None, 1 + pick(3)),)
        return lambda x: x[key]
    if step == 5 and shape[d] == 1:
        return lambda x: x.expand([3 if e == d else n for e, n in enumerate(shape)])
    return None


def random_view(pick, *tensors):
    """The same random chain of views of each."""
    for _ in range(1 + pick(4)):
        step = _random_step(pick, tensors[0].shape) if tensors[0].dim() else None
        if step:
            tensors = [step(tensor) for tensor in tensors]
    return tensors


def held(shape, dtype, seed=0, low=-1.0, high=1.0):
    """Random numbers on the card, and in fp32 as the card stores them."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.rand(shape, generator=generator) * (high - low) + low
    card = values.to(dtype).to(DEVICE)
    return card, card.cpu().float()


def assert_held(card, expected, dtype, tolerance):
    """A result on the card against the CPU's in fp32."""
    assert card.device.type == DEVICE
    assert card.dtype == dtype
    assert card.shape == expected.shape
    torch.testing.assert_close(
        card.cpu().float(), expected, rtol=tolerance, atol=tolerance, equal_nan=True
    )


def assert_same(actual, expected):
    """Shape, dtype and every bit; NaN equals NaN."""
    assert torch.is_tensor(actual), actual
    actual, expected = actual.detach().cpu(), expected.detach().cpu()
    assert actual.dtype == expected.dtype, f"{actual.dtype}, expected {expected.dtype}"
    assert actual.shape == expected.shape, f"{actual.shape}, expected {expected.shape}"
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


def assert_near(actual, expected, steps=1, atol=0.0):
    """Checks that a result is within some DL16 steps of the CPU's, which is in fp32."""
    torch.testing.assert_close(
        actual.detach().cpu().float(),
        expected.detach().cpu().float(),
        rtol=steps * DL16_STEP,
        atol=atol,
        equal_nan=True,
    )


def python(code, timeout=120, **environment):
    """Runs @code in a process of its own; "spyre" is registered, no card is open."""
    prelude = "import torch, torch_spyre\n"
    return subprocess.run(
        [sys.executable, "-c", prelude + code],
        env={**os.environ, **{k: str(v) for k, v in environment.items()}},
        cwd=os.path.dirname(os.path.abspath(__file__)),
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def python_ok(code, **arguments):
    """Runs python(), which must succeed; returns its output."""
    done = python(code, **arguments)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


#: Time limit and size of a square product that exceeds it on one thread of any machine. All else
#: stays below it on a busy machine, too.
TIME_LIMIT = {"SPYRE_TIMEOUT_MS": 500, "SPYRE_EMBEDDED_THREADS": 1}
TOO_LONG = 8192


def process_error(code, **arguments):
    """The last line of a process that must end with a Python exception, not a signal."""
    done = python(code, **arguments)
    assert done.returncode == 1, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" in done.stderr, done.stderr
    return done.stderr
