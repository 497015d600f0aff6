# SPDX-License-Identifier: MIT
"""Data parallel, sharded and tensor parallel modules on cards, compared with one card."""

import copy

import torch
import torch.distributed as dist
from ranks import DEVICE, RanksTest
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel


def network():
    """The same parameters on all ranks."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(96, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64)
    )


def batch(rows):
    generator = torch.Generator().manual_seed(7)
    return torch.randn(rows, 96, generator=generator), torch.randn(rows, 64, generator=generator)


def train(model, x, y, steps=3):
    """Losses of a few steps of SGD."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


class TestTraining(RanksTest):
    def alone(self, rows=16):
        """Parameters after training on this card with the whole batch."""
        model = network().to(DEVICE)
        x, y = batch(rows)
        train(model, x.to(DEVICE), y.to(DEVICE))
        return [p.detach().cpu() for p in model.parameters()]

    def share(self, rows=16):
        x, y = batch(rows)
        return x.chunk(2)[self.rank].to(DEVICE), y.chunk(2)[self.rank].to(DEVICE)

    def close(self, parameters):
        for mine, expected in zip(parameters, self.alone()):
            torch.testing.assert_close(mine, expected, rtol=1e-4, atol=1e-5)

    def test_data_parallel(self):
        model = DistributedDataParallel(network().to(DEVICE))
        train(model, *self.share())
        parameters = [p.detach().cpu() for p in model.parameters()]
        self.close(parameters)
        for p in parameters:
            other = p.to(DEVICE)
            dist.broadcast(other, 0)
            assert torch.equal(other.cpu(), p)

    def test_data_parallel_broadcasts_parameters(self):
        model = network().to(DEVICE)
        if self.rank:
            with torch.no_grad():
                for p in model.parameters():
                    p.zero_()
        model = DistributedDataParallel(model)
        for mine, expected in zip(model.parameters(), network().parameters()):
            assert torch.equal(mine.detach().cpu(), expected)

    def test_sharded(self):
        mesh = init_device_mesh(DEVICE, (2,))
        model = network().to(DEVICE)
        for layer in model:
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        train(model, *self.share())
        self.close([p.full_tensor().detach().cpu() for p in model.parameters()])

    def test_dtensor(self):
        mesh = init_device_mesh(DEVICE, (2,))
        x = self.mine(8, 96, rank=0)
        for placement in Shard(0), Shard(1), Replicate():
            t = distribute_tensor(x.to(DEVICE), mesh, [placement])
            assert torch.equal(t.full_tensor().cpu(), x)
            for other in Shard(0), Shard(1), Replicate():
                moved = t.redistribute(mesh, [other])
                assert torch.equal(moved.full_tensor().cpu(), x)
        a = distribute_tensor(x.to(DEVICE), mesh, [Shard(1)])
        b = distribute_tensor(x.t().contiguous().to(DEVICE), mesh, [Shard(0)])
        product = (a @ b).full_tensor().cpu()
        torch.testing.assert_close(product, x @ x.t(), rtol=1e-5, atol=1e-3)

    def test_tensor_parallel(self):
        mesh = init_device_mesh(DEVICE, (2,))
        model = network().to(DEVICE)
        parallel = parallelize_module(
            copy.deepcopy(model), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()}
        )
        x = batch(16)[0].to(DEVICE)
        expected, result = model(x), parallel(x)
        assert not isinstance(result, DTensor)
        torch.testing.assert_close(result.cpu(), expected.cpu(), rtol=1e-4, atol=1e-5)
