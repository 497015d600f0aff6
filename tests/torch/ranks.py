# SPDX-License-Identifier: MIT
"""Tests of several processes, each with an embedded card, in one group of torch.distributed."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from support import DEVICE, exact
from torch.testing._internal.common_distributed import MultiProcContinuousTest

BACKENDS = "cpu:gloo,spyre:spyreccl"


class RanksTest(MultiProcContinuousTest):
    """Runs each test on all ranks; the processes are started once for a class."""

    world_size = 2
    timeout = timedelta(seconds=60)

    @classmethod
    def backend_str(cls):
        return BACKENDS

    @classmethod
    def device_type(cls):
        return DEVICE

    @classmethod
    def _spawn_processes(cls, world_size):
        before = {name: os.environ.get(name) for name in ("SPYRE_EMBEDDED_CARDS", "OMP_NUM_THREADS")}
        os.environ.update(SPYRE_EMBEDDED_CARDS=str(world_size), OMP_NUM_THREADS="1")
        try:
            super()._spawn_processes(world_size)
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    @classmethod
    def _init_pg(cls, rank, world_size, rdvz_file):
        torch.spyre.set_device(rank)
        super()._init_pg(rank, world_size, rdvz_file)

    def mine(self, *size, dtype=torch.float32, seed=0, rank=None):
        """Numbers of a rank, by default this one: small integers with exact sums."""
        rank = self.rank if rank is None else rank
        generator = torch.Generator().manual_seed(100 * seed + rank)
        if dtype == torch.bool:
            return torch.rand(size, generator=generator) > 0.5
        low = 0 if dtype == torch.uint8 else -8
        return torch.randint(low, 9, size, generator=generator).to(dtype)

    def same_as_gloo(self, collective, *tensors):
        """Runs a collective on copies on the CPU and on cards; all tensors end up equal."""
        host = [t.clone() for t in tensors]
        card = [t.to(DEVICE) for t in tensors]
        collective(*host)
        collective(*card)
        for a, b in zip(host, card):
            assert torch.equal(a, b.cpu()), f"rank {self.rank}: {a} is {b.cpu()}"


__all__ = ["BACKENDS", "DEVICE", "RanksTest", "dist", "exact"]
