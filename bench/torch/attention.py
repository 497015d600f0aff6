# SPDX-License-Identifier: MIT
"""Attention of a prompt on the card, eager and compiled, next to torch on the CPU in fp32 on the
same cores. Operands and results stay where they are computed."""

import time

import torch
from torch.nn.functional import scaled_dot_product_attention

HEADS, TOKENS, SIZE = 8, 1024, 64
CALLS = 4


def operands(device, dtype):
    shape = (1, HEADS, TOKENS, SIZE)
    return [torch.randn(shape).to(dtype).to(device) for _ in range(3)]


def full(q, k, v):
    return scaled_dot_product_attention(q, k, v)


def causal(q, k, v):
    return scaled_dot_product_attention(q, k, v, is_causal=True)


@torch.no_grad()
def milliseconds(function, tensors):
    start = time.perf_counter()
    for _ in range(CALLS):
        result = function(*tensors)
    torch.accelerator.synchronize()
    assert result.shape == tensors[0].shape
    return 1e3 * (time.perf_counter() - start) / CALLS


def run(report, samples):
    card, host = operands("spyre", torch.float16), operands("cpu", torch.float32)
    for kind in (full, causal):
        for way, ours in (("eager", kind), ("compiled", torch.compile(kind))):
            milliseconds(ours, card), milliseconds(kind, host)
            pairs = [(milliseconds(ours, card), milliseconds(kind, host)) for _ in range(samples)]
            report.add(
                f"{kind.__name__} attention {HEADS} x {TOKENS} x {SIZE}, {way}",
                "ms",
                *zip(*pairs),
                "torch, CPU, fp32",
                aim=1.0,
            )
