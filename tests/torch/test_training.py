# SPDX-License-Identifier: MIT
"""Models that learn on the card: losses against the CPU's, step by step, in fp32.

The card's functions are right to about one ulp of fp32 and its sums have an order of their own,
so that weights drift apart by rounding errors: after 30 steps losses are within BOUND of each
other. Each test names the fallbacks that are by design; others are failures.
"""

import copy

import pytest
import torch
from support import DEVICE
from torch import nn
from torch.nn import functional as F

#: Relative, of the losses of 30 steps.
BOUND = 1e-3
STEPS = 30


class Block(nn.Module):
    """A transformer block as they are written, and a head."""

    def __init__(self, width=64, heads=2, classes=10):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, -1).unbind(2)
        scores = q.transpose(1, 2) @ k.transpose(1, 2).mT * (width // self.heads) ** -0.5
        mixed = scores.softmax(-1) @ v.transpose(1, 2)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        x = x + self.down(F.gelu(self.up(self.norms[1](x))))
        return self.head(x.mean(1))


def mlp():
    return nn.Sequential(
        nn.Linear(20, 96), nn.ReLU(), nn.Linear(96, 96), nn.Tanh(), nn.Linear(96, 10)
    )


OPTIMIZERS = {
    "sgd": lambda p, **k: torch.optim.SGD(p, lr=0.05, momentum=0.9, **k),
    "sgd_nesterov": lambda p, **k: torch.optim.SGD(
        p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01, **k
    ),
    "adam": lambda p, **k: torch.optim.Adam(p, lr=2e-3, **k),
    "adamw": lambda p, **k: torch.optim.AdamW(p, lr=2e-3, weight_decay=0.05, **k),
    "rmsprop": lambda p, **k: torch.optim.RMSprop(p, lr=1e-3, **k),
}


def train(model, optimizer, x, y, loss_of):
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


def compare(model, make, x, y, loss_of, allowed=()):
    there = copy.deepcopy(model).to(DEVICE)
    expected = train(model, make(model.parameters()), x, y, loss_of)
    torch.spyre.reset_fallbacks()
    actual = train(there, make(there.parameters()), x.to(DEVICE), y.to(DEVICE), loss_of)
    assert set(torch.spyre.fallbacks()) <= set(allowed)
    assert expected[-1] < 0.7 * expected[0], "nothing was learnt"
    torch.testing.assert_close(actual, expected, rtol=BOUND, atol=1e-5)


@pytest.mark.parametrize("foreach", [False, True], ids=["for_loop", "foreach"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_mlp(name, foreach):
    """No operation falls back, with single-tensor and multi-tensor optimizers."""
    torch.manual_seed(1)
    x, y = torch.randn(48, 20), torch.randn(48, 10)
    compare(mlp(), lambda p: OPTIMIZERS[name](p, foreach=foreach), x, y, F.mse_loss)


@pytest.mark.parametrize("name", ["sgd", "adamw"])
def test_transformer_block(name):
    """The loss of classes falls back by design: it picks elements by index."""
    torch.manual_seed(2)
    x, y = torch.randn(16, 12, 64), torch.randint(0, 10, (16,))
    allowed = {"aten::nll_loss_forward.output", "aten::nll_loss_backward.grad_input"}
    compare(Block(), OPTIMIZERS[name], x, y, F.cross_entropy, allowed)


def test_half_precision_learns():
    """In DL16 the curve is another, but it goes down as far; the scale keeps gradients in range."""
    torch.manual_seed(3)
    x, y = torch.randn(48, 20), torch.randn(48, 10) * 0.5
    model = mlp()
    there = copy.deepcopy(model).to(DEVICE, torch.float16)
    make = OPTIMIZERS["sgd"]
    expected = train(model, make(model.parameters()), x, y, F.mse_loss)
    actual = train(there, make(there.parameters()), x.half().to(DEVICE), y.half().to(DEVICE),
                   F.mse_loss)
    torch.testing.assert_close(actual, expected, rtol=0.05, atol=0)


def test_schedules_do_not_compile():
    """Numbers that change with each step are operands, so programs are reused."""
    torch.manual_seed(4)
    x, y = torch.randn(48, 20).to(DEVICE), torch.randn(48, 10).to(DEVICE)
    model = mlp().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.97)
    kernels = []
    for _ in range(12):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        schedule.step()
        kernels.append(torch.spyre._C.program_cache_stats()["misses"])
    assert kernels[-1] == kernels[7], kernels
