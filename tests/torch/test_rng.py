# SPDX-License-Identifier: MIT
"""Generators and random tensors."""

import pytest
import torch
from support import DEVICE, assert_same


class TestRNG:
    def test_generator(self):
        generator = torch.Generator(device="spyre:1")
        assert generator.device == torch.device("spyre", 1)

    def test_rng_state(self):
        state = torch.spyre.get_rng_state(0)
        first = torch.rand(100, device=DEVICE)
        torch.spyre.set_rng_state(state, 0)
        assert_same(torch.rand(100, device=DEVICE), first)
        assert torch.rand(100, device=DEVICE).cpu().ne(first.cpu()).any()

    def test_rng_state_all(self):
        states = torch.spyre.get_rng_state_all()
        assert len(states) == torch.spyre.device_count()
        first = torch.rand(10, device="spyre:1")
        torch.spyre.set_rng_state_all(states)
        assert_same(torch.rand(10, device="spyre:1"), first)

    def test_manual_seed(self):
        torch.spyre.manual_seed_all(42)
        assert torch.spyre.initial_seed() == 42
        torch.spyre.manual_seed(7)
        assert torch.spyre.initial_seed() == 7

    def test_torch_manual_seed(self):
        """torch.manual_seed() seeds the cards, too."""
        torch.manual_seed(5)
        first = torch.randn(64, device=DEVICE)
        torch.manual_seed(5)
        assert_same(torch.randn(64, device=DEVICE), first)

    def test_seed(self):
        torch.spyre.seed_all()
        first = torch.spyre.initial_seed()
        torch.spyre.seed_all()
        assert torch.spyre.initial_seed() != first

    def test_create_generator_and_seed(self):
        generator = torch.Generator(device="spyre:0")
        generator.manual_seed(42)
        assert generator.initial_seed() == 42
        first = torch.rand(10, generator=generator, device=DEVICE)
        generator.manual_seed(42)
        assert_same(torch.rand(10, generator=generator, device=DEVICE), first)

    def test_generator_state(self):
        generator = torch.Generator(device=DEVICE)
        state = generator.get_state()
        first = torch.rand(10, generator=generator, device=DEVICE)
        generator.set_state(state)
        assert_same(torch.rand(10, generator=generator, device=DEVICE), first)
        other = generator.clone_state()
        assert other.device == generator.device
        assert_same(
            torch.rand(10, generator=generator, device=DEVICE),
            torch.rand(10, generator=other, device=DEVICE),
        )

    def test_generator_of_another_device(self):
        with pytest.raises(RuntimeError, match="(?i)generator"):
            torch.rand(3, generator=torch.Generator(), device=DEVICE)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
    def test_uniform(self, dtype):
        x = torch.rand(10000, dtype=dtype, device=DEVICE).cpu().float()
        assert x.min() >= 0 and x.max() < 1.001
        assert abs(x.mean() - 0.5) < 0.02 and abs(x.var() - 1 / 12) < 0.01
        y = torch.empty(10000, dtype=dtype, device=DEVICE).uniform_(-3, 5).cpu().float()
        assert y.min() >= -3 and y.max() <= 5 and abs(y.mean() - 1) < 0.1

    def test_normal(self):
        x = torch.randn(10000, device=DEVICE).cpu()
        assert abs(x.mean()) < 0.05 and abs(x.std() - 1) < 0.05

    def test_integers(self):
        x = torch.randint(3, 9, (1000,), device=DEVICE)
        assert x.dtype == torch.int64 and set(x.cpu().tolist()) == set(range(3, 9))
        assert sorted(torch.randperm(50, device=DEVICE).cpu().tolist()) == list(range(50))

    def test_dropout(self):
        x = torch.ones(10000, device=DEVICE)
        y = torch.nn.functional.dropout(x, 0.25).cpu()
        assert set(y.unique().tolist()) <= {0.0, y.max().item()}
        assert abs(y.max().item() - 1 / 0.75) < 0.01 and abs(y.eq(0).float().mean() - 0.25) < 0.03
        assert_same(torch.nn.functional.dropout(x, 0.25, training=False), x)

    def test_fork_rng(self):
        torch.manual_seed(1)
        with torch.random.fork_rng(devices=[0], device_type=DEVICE):
            inside = torch.rand(5, device=DEVICE)
        assert_same(torch.rand(5, device=DEVICE), inside)
