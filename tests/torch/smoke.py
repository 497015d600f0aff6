#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A few operations on the visible card; prints TAP and a hash of each result.

    smoke.py --hashes FILE      writes the hashes
    smoke.py --compare FILE     results must have these bytes

scripts/test torch writes them on the embedded card and compares the kernel's, in QEMU.
Inputs are made without torch's random numbers and without the CPU's functions, whose
last bits depend on the processor.
"""

import argparse
import hashlib
import json
import os
import sys
import traceback
import warnings

import torch

import torch_spyre  # noqa: F401

DEVICE = "spyre"


def numbers(*size, seed=1):
    """Multiples of 1/16 between -4 and 4: exact in every format."""
    count = 1
    for extent in size:
        count *= extent
    values = (torch.arange(count, dtype=torch.int64) * (2654435761 + 2 * seed) >> 7) % 129 - 64
    return (values.to(torch.float32) / 16).view(size)


def half(*size, seed=1):
    return numbers(*size, seed=seed).half().to(DEVICE)


def same(actual, expected):
    assert torch.equal(actual.cpu(), expected), "not what the host has"
    return actual


def copies():
    host = numbers(40, 150)
    for dtype in (torch.float16, torch.float32, torch.bfloat16, torch.int64, torch.bool):
        same(host.to(dtype).to(DEVICE), host.to(dtype))
    return host.to(DEVICE)


def views():
    host = numbers(6, 10, 150)
    device = host.to(DEVICE)
    for view in (
        lambda x: x[1:4, 3:, 60:140],
        lambda x: x.permute(2, 0, 1)[5:90],
        lambda x: x[..., ::3],
        lambda x: x.view(60, 150).t(),
    ):
        same(view(device).contiguous(), view(host).contiguous())
    device[:, 3].zero_()
    return device


def add():
    return same(half(40, 150) + half(40, 150, seed=2), numbers(40, 150).half() + numbers(40, 150, seed=2).half())


def mm():
    product = half(40, 150) @ half(150, 70, seed=2)
    assert (product.cpu().float() - numbers(40, 150) @ numbers(150, 70, seed=2)).abs().max() < 2
    return product


def softmax():
    result = half(20, 100).softmax(-1)
    assert (result.cpu().float().sum(-1) - 1).abs().max() < 0.01
    return result


def gelu():
    result = torch.nn.functional.gelu(half(20, 100))
    assert (result.cpu().float() - torch.nn.functional.gelu(numbers(20, 100))).abs().max() < 0.02
    return result


def streams():
    stream = torch.Stream(device=DEVICE)
    x = half(64, 64)
    torch.accelerator.synchronize()
    with stream:
        y = x @ x + 1
    stream.synchronize()
    return same(y, (x @ x + 1).cpu())


def errors():
    """Requesting more memory than the card has raises an exception without side effects."""
    try:
        torch.empty(1 << 40, dtype=torch.int8, device=DEVICE)
    except torch.OutOfMemoryError:
        pass
    else:
        raise AssertionError("no OutOfMemoryError")
    return half(3, 3) + 1


def model():
    layers = torch.nn.Sequential(
        torch.nn.Linear(100, 130), torch.nn.GELU(), torch.nn.LayerNorm(130), torch.nn.Linear(130, 10)
    )
    with torch.no_grad():
        for seed, parameter in enumerate(layers.parameters()):
            parameter.copy_(numbers(*parameter.shape, seed=seed) / 16)
        return layers.half().to(DEVICE)(half(8, 100))


PARTS = [copies, views, add, mm, softmax, gelu, streams, errors, model]


def digest(tensor):
    bits = tensor.detach().cpu().contiguous().view(torch.uint8)
    return hashlib.sha256(bytes(bits.flatten().tolist())).hexdigest()[:16]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hashes", metavar="FILE")
    parser.add_argument("--compare", metavar="FILE")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    expected, found, failed = {}, {}, 0
    if options.compare:
        with open(options.compare, encoding="utf-8") as file:
            expected = json.load(file)
    print(f"1..{len(PARTS)}", flush=True)
    for part in PARTS:
        name = part.__name__
        try:
            found[name] = digest(part())
            if expected and expected[name] != found[name]:
                raise AssertionError(f"{found[name]}, on the embedded card {expected[name]}")
            print(f"ok - {name} {found[name]}", flush=True)
        except Exception:
            failed = 1
            print(f"not ok - {name}", flush=True)
            print("#   " + traceback.format_exc().replace("\n", "\n#   "), flush=True)
    backend = os.environ.get("SPYRE_BACKEND", "")
    print(f"# {backend} {torch.spyre.get_device_properties(0)}")
    if options.hashes:
        with open(options.hashes, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
    return failed


if __name__ == "__main__":
    sys.exit(main())
