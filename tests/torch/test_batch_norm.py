# SPDX-License-Identifier: MIT
"""Batch norm: training updates the running statistics, which the schema does not declare."""

import copy

import pytest
import torch
from support import DEVICE, assert_near
from torch import nn

MODULES = {
    "1d": (nn.BatchNorm1d(6), (4, 6, 5)),
    "2d": (nn.BatchNorm2d(6), (4, 6, 5, 3)),
    "3d": (nn.BatchNorm3d(6), (2, 6, 3, 4, 2)),
    "plain": (nn.BatchNorm2d(6, affine=False), (4, 6, 5, 3)),
    "average": (nn.BatchNorm2d(6, momentum=None), (4, 6, 5, 3)),
    "instance": (nn.InstanceNorm2d(6, track_running_stats=True), (4, 6, 5, 3)),
}


@pytest.mark.parametrize("name", MODULES)
def test_running_statistics(name):
    module, shape = MODULES[name]
    host, card = copy.deepcopy(module), copy.deepcopy(module).to(DEVICE)
    generator = torch.Generator().manual_seed(0)
    for step in range(3):
        x = torch.randn(shape, generator=generator) * 2 + step
        assert torch.equal(card(x.to(DEVICE)).cpu(), host(x)), step
    assert host.running_mean.abs().min() > 0
    for name, want in host.named_buffers():
        assert torch.equal(card.get_buffer(name).cpu(), want), name


def test_statistics_stay_in_evaluation():
    card = nn.BatchNorm2d(6).to(DEVICE).eval()
    card(torch.randn(4, 6, 5, 3, device=DEVICE))
    assert card.running_mean.count_nonzero() == 0 and (card.running_var == 1).all()


def test_results_that_are_given():
    x, mean, variance = torch.randn(4, 6, 5), torch.zeros(6), torch.ones(6)
    want = torch.native_batch_norm(x, None, None, mean, variance, True, 0.5, 1e-5)
    held = [torch.zeros(6, device=DEVICE), torch.ones(6, device=DEVICE)]
    out = [torch.empty(0, device=DEVICE) for _ in range(3)]
    torch.native_batch_norm(x.to(DEVICE), None, None, *held, True, 0.5, 1e-5, out=out)
    for have, wanted in zip(out + held, [*want, mean, variance], strict=True):
        assert torch.equal(have.cpu(), wanted)


def test_statistics_of_a_view():
    held = torch.zeros(4, 6, device=DEVICE)
    x, mean, variance = torch.randn(4, 6, 5), torch.zeros(6), torch.zeros(6)
    torch.nn.functional.batch_norm(x, mean, variance, training=True)
    torch.nn.functional.batch_norm(x.to(DEVICE), held[1], held[3], training=True)
    assert torch.equal(held.cpu(), torch.stack([mean * 0, mean, mean * 0, variance]))


def test_update_of_statistics():
    x, mean, variance = torch.randn(4, 6, 5), torch.zeros(6), torch.ones(6)
    held = mean.to(DEVICE), variance.to(DEVICE)
    want = torch.batch_norm_update_stats(x, mean, variance, 0.1)
    have = torch.batch_norm_update_stats(x.to(DEVICE), *held, 0.1)
    for a, b in zip([*have, *held], [*want, mean, variance], strict=True):
        assert torch.equal(a.cpu(), b)


@pytest.mark.parametrize("affine", [True, False])
def test_evaluation_rounds_once(affine):
    """Means of some twenty deviations: the factor and the summand of a channel nearly cancel."""
    generator = torch.Generator().manual_seed(0)
    module = nn.BatchNorm2d(6, affine=affine).eval()
    for tensor in module.state_dict().values():
        if tensor.is_floating_point():
            tensor.uniform_(0.5, 2, generator=generator)
    module.running_var.mul_(0.01)
    module = module.half().to(DEVICE)
    deviations = torch.randn(4, 6, 5, 70, generator=generator) * 0.1
    x = (deviations + module.running_mean.cpu().float()[:, None, None]).half().to(DEVICE)
    want = copy.deepcopy(module).cpu().float()(x.cpu().float())
    with torch.no_grad():
        assert_near(module(x), want, steps=0.51, atol=1e-6)
