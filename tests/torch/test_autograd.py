# SPDX-License-Identifier: MIT
"""Gradients on the card."""

import os

import pytest
import torch
from support import DEVICE, assert_near, assert_same, exact

GRADIENTS = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / (y.abs() + 1),
    "sub": lambda x, y: x - y * 2,
    "matmul": lambda x, y: x @ y.t(),
    "exp": lambda x, y: (x * 0.1).exp(),
    "log": lambda x, y: (x.abs() + 1).log(),
    "sqrt": lambda x, y: (x.abs() + 1).sqrt(),
    "tanh": lambda x, y: x.tanh(),
    "sigmoid": lambda x, y: x.sigmoid(),
    "relu": lambda x, y: x.relu(),
    "gelu": lambda x, y: torch.nn.functional.gelu(x),
    "silu": lambda x, y: torch.nn.functional.silu(x),
    "softplus": lambda x, y: torch.nn.functional.softplus(x),
    "softmax": lambda x, y: x.softmax(-1) * y,
    "layer_norm": lambda x, y: torch.nn.functional.layer_norm(x, (70,)) * y,
    "mean": lambda x, y: x.mean(0) * y[0],
    "amax": lambda x, y: x.amax(-1),
    "where": lambda x, y: torch.where(y > 0, x, y),
    "views": lambda x, y: x[1:4, 5:60].t() * y[1:4, 5:60].t(),
    "expand": lambda x, y: x[:, :1].expand(5, 70) * y,
    "cat": lambda x, y: torch.cat([x, y], 1) * 3,
    "clamp": lambda x, y: x.clamp(-0.5, 0.5),
    "sin": lambda x, y: x.sin(),
    "cos": lambda x, y: x.cos(),
    "erf": lambda x, y: x.erf(),
    "pow": lambda x, y: x.pow(2),
    "pow of tensors": lambda x, y: (x.abs() + 1).pow(y),
    "fmod": lambda x, y: x.fmod(y.abs() + 1),
    "remainder": lambda x, y: x.remainder(y.abs() + 1),
    "linear": lambda x, y: torch.nn.functional.linear(x, y),
}


class TestAutograd:
    def test_autograd_init(self):
        """One autograd thread per card."""
        torch.ones(2, requires_grad=True, device=DEVICE).sum().backward()
        names = set()
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/comm", encoding="utf-8") as file:
                names.add(file.read().strip())
        assert {f"pt_autograd_{i}" for i in range(torch.accelerator.device_count())} <= names

    @pytest.mark.parametrize("name", GRADIENTS)
    def test_gradients(self, name):
        results = []
        for device in ("cpu", DEVICE):
            x = exact(5, 70, dtype=torch.float32, seed=1).to(device).requires_grad_()
            y = exact(5, 70, dtype=torch.float32, seed=2).to(device).requires_grad_()
            out = GRADIENTS[name](x, y)
            out.backward(exact(*out.shape, dtype=torch.float32, seed=3).to(device))
            results.append([out] + [t.grad for t in (x, y) if t.grad is not None])
        assert len(results[0]) == len(results[1])
        for expected, actual in zip(*results):
            assert actual.device.type == DEVICE
            assert_near(actual, expected, steps=1e-2, atol=1e-4)

    def test_accumulation_and_leaf_gradient(self):
        x = torch.ones(5, device=DEVICE, requires_grad=True)
        for _ in range(2):
            (x * 3).sum().backward()
        assert_same(x.grad, torch.full((5,), 6.0))

    def test_no_grad_and_detach(self):
        x = torch.ones(5, device=DEVICE, requires_grad=True)
        with torch.no_grad():
            assert not (x * 2).requires_grad
        assert not x.detach().requires_grad and x.detach().data_ptr() == x.data_ptr()

    def test_hooks(self):
        x, seen = torch.ones(3, device=DEVICE, requires_grad=True), []
        x.register_hook(lambda gradient: seen.append(gradient.device.type))
        (x * 2).sum().backward()
        assert seen == [DEVICE]

    def test_gradient_across_devices(self):
        x = torch.ones(3, requires_grad=True)
        (x.to(DEVICE) * 2).sum().cpu().backward()
        assert_same(x.grad, torch.full((3,), 2.0))

    def test_in_place_version_counter(self):
        x = torch.ones(3, device=DEVICE, requires_grad=True)
        y = x * 2
        z = y * y
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()

    def test_fallback_has_a_gradient(self):
        x = exact(10, dtype=torch.float32).to(DEVICE).requires_grad_()
        x.atan().sum().backward()
        assert_near(x.grad, 1 / (1 + exact(10, dtype=torch.float32).square()), steps=1e-3)
