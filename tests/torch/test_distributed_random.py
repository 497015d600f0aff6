# SPDX-License-Identifier: MIT
"""Random programs of several cards: models that are trained, and compiled graphs of collectives.

Ranks draw the same programs from a seed. SPYRE_TEST_SEED is the first one, SPYRE_TEST_ROUNDS the
number of programs of a test.
"""

import copy
import os
import random

import torch
import torch.distributed._functional_collectives as funcol
from ranks import DEVICE, RanksTest
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel


def seeds(first, rounds):
    """Returns the seeds of a test, by default from @first on."""
    first = int(os.environ.get("SPYRE_TEST_SEED", first))
    return range(first, first + int(os.environ.get("SPYRE_TEST_ROUNDS", rounds)))


def draw_model(rng):
    """Returns linear layers of random sizes, with functions and norms between them."""
    sizes = [rng.choice([5, 33, 64, 70, 96, 128]) for _ in range(rng.randint(2, 4))]
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers.append(nn.Linear(inputs, outputs, bias=rng.random() < 0.7))
        layers.append(rng.choice([nn.ReLU, nn.GELU, nn.Tanh])())
        if rng.random() < 0.3:
            layers.append(nn.LayerNorm(outputs))
    return nn.Sequential(*layers), sizes[0], sizes[-1]


def draw_optimizer(rng):
    # foreach operations take no mixture of DTensors and others.
    return rng.choice(
        [
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=False),
            lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
        ]
    )


def train(model, x, y, optimizer, clips, parts=1):
    """Trains for three steps, each with gradients of several parts of the batch."""
    optimizer = optimizer(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        for some_x, some_y in zip(x.chunk(parts), y.chunk(parts)):
            (nn.functional.mse_loss(model(some_x), some_y) / parts).backward()
        if clips:
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()


def plan_of(model):
    """Divides pairs of linear layers, the first by columns and the second by rows."""
    linear = [i for i, layer in enumerate(model) if isinstance(layer, nn.Linear)]
    plan = {}
    for first, second in zip(linear, linear[1:]):
        norm_between = any(isinstance(layer, nn.LayerNorm) for layer in model[first:second])
        if str(first) not in plan and not norm_between:
            plan |= {str(first): ColwiseParallel(), str(second): RowwiseParallel()}
    return plan


def whole(tensor):
    tensor = tensor.detach()
    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).cpu()


class TestModels(RanksTest):
    """Trains models on two cards and on one; parameters agree to within rounding."""

    def train_divided(self, model, x, y, optimizer, clips, rng):
        """Trains by one way of several cards, which the error names. Returns its name."""
        mesh = init_device_mesh(DEVICE, (self.world_size,))
        way = rng.choice(["shards", "kept shards", "shards, two parts", "tensor parallel", "DDP"])
        if way == "tensor parallel":
            parallelize_module(model, mesh, plan_of(model))
            train(model, x, y, optimizer, clips=False)
            return way
        x, y = x.chunk(self.world_size)[self.rank], y.chunk(self.world_size)[self.rank]
        if way == "DDP":
            train(DistributedDataParallel(model), x, y, optimizer, clips)
            return way
        for layer in model:
            if isinstance(layer, nn.Linear) and rng.random() < 0.7:
                fully_shard(layer, mesh=mesh, reshard_after_forward=way != "kept shards")
        fully_shard(model, mesh=mesh)
        train(model, x, y, optimizer, clips, parts=2 if way == "shards, two parts" else 1)
        return way

    def test_models(self):
        for seed in seeds(1, 6):
            rng = random.Random(seed)
            torch.manual_seed(seed)
            model, inputs, outputs = draw_model(rng)
            rows = 2 * self.world_size * rng.randint(1, 4)
            x, y = torch.randn(rows, inputs).to(DEVICE), torch.randn(rows, outputs).to(DEVICE)
            optimizer, clips = draw_optimizer(rng), rng.random() < 0.3
            divided, alone = copy.deepcopy(model).to(DEVICE), model.to(DEVICE)
            way = self.train_divided(divided, x, y, optimizer, clips, rng)
            train(alone, x, y, optimizer, clips and way != "tensor parallel")
            for (name, mine), expected in zip(divided.named_parameters(), alone.parameters()):
                torch.testing.assert_close(
                    whole(mine),
                    whole(expected),
                    rtol=2e-3,
                    atol=2e-4,
                    msg=lambda text: f"seed {seed}, {way}, {name} of {model}: {text}",
                )


#: Operations of one rank, of one or two tensors of the same size.
LOCAL = {
    "relu": lambda x, y: x.relu(),
    "neg": lambda x, y: -x,
    "add_one": lambda x, y: x + 1,
    "add_zero": lambda x, y: x + 0,
    "same": lambda x, y: x.to(x.dtype),
    "clone": lambda x, y: x.clone(),
    "sub": lambda x, y: x - y,
    "add": lambda x, y: x + y,
    "reshape": lambda x, y: x.reshape(-1, 32),
    "t": lambda x, y: x.t(),
    "half": lambda x, y: x[: x.shape[0] // 2],
    "write": lambda x, y: x.add_(1),
}


def on_all(of_all, result):
    """Returns a tensor of its own for each rank."""
    return [result.clone() for _ in of_all]


#: Collectives, on cards and with the tensors of all ranks on the host.
COLLECTIVE = {
    "all_reduce": (
        lambda x, root, ranks: funcol.all_reduce(x, "sum", ranks),
        lambda of_all, root: on_all(of_all, torch.stack(of_all).sum(0)),
    ),
    "all_reduce_max": (
        lambda x, root, ranks: funcol.all_reduce(x, "max", ranks),
        lambda of_all, root: on_all(of_all, torch.stack(of_all).amax(0)),
    ),
    "broadcast": (
        lambda x, root, ranks: funcol.broadcast(x, root, ranks),
        lambda of_all, root: on_all(of_all, of_all[root]),
    ),
    "all_gather": (
        lambda x, root, ranks: funcol.all_gather_tensor(x, 0, ranks),
        lambda of_all, root: on_all(of_all, torch.cat(of_all)),
    ),
    "reduce_scatter": (
        lambda x, root, ranks: funcol.reduce_scatter_tensor(x, "sum", 0, ranks),
        lambda of_all, root: list(torch.stack(of_all).sum(0).clone().chunk(len(of_all))),
    ),
    "all_to_all": (
        lambda x, root, ranks: funcol.all_to_all_single(x, None, None, ranks),
        lambda of_all, root: [
            torch.cat([x.chunk(len(of_all))[rank] for x in of_all]) for rank in range(len(of_all))
        ],
    ),
}

#: Collectives are drawn as often as all other operations.
NAMES = list(LOCAL) + 2 * list(COLLECTIVE)


def fits(name, x, ranks):
    """Returns True if an operation can be executed on a tensor of this size."""
    if name == "reshape":
        return x.numel() % 32 == 0
    if name == "all_gather":
        return x.shape[0] <= 64
    divisor = {"half": 2, "reduce_scatter": ranks, "all_to_all": ranks}.get(name, 1)
    return x.shape[0] % divisor == 0


def inputs_of(seed, ranks, again):
    """Returns two tensors of each rank: small integers, whose sums are exact."""
    generator = torch.Generator().manual_seed(seed)
    return [
        [torch.randint(-3, 4, (4 * ranks, 64), generator=generator).float() + again for _ in "xy"]
        for _ in range(ranks)
    ]


def step_of_all(values, name, a, b, root):
    """Executes a step on the host; values[i][r] is tensor i of rank r."""
    if name in COLLECTIVE:
        values.append(COLLECTIVE[name][1](values[a], root))
    else:
        values.append([LOCAL[name](x, y) for x, y in zip(values[a], values[b])])


def draw_steps(seed, ranks):
    """Returns steps (name, two operands, root), and the numbers of the results."""
    rng = random.Random(seed)
    values = [list(of_all) for of_all in zip(*inputs_of(seed, ranks, 0))]
    steps = []
    for _ in range(rng.randint(4, 12)):
        name, a, root = rng.choice(NAMES), rng.randrange(len(values)), rng.randrange(ranks)
        b = rng.choice([i for i, v in enumerate(values) if v[0].shape == values[a][0].shape])
        if fits(name, values[a][0], ranks):
            steps.append((name, a, b, root))
            step_of_all(values, *steps[-1])
    results = {rng.randrange(len(values)) for _ in range(4)} | {len(values) - 1}
    return steps, sorted(results)


class TestGraphs(RanksTest):
    """Compares compiled programs with their steps on the host, bit by bit."""

    def run_steps(self, steps, results, *inputs):
        values, ranks = list(inputs), list(range(self.world_size))
        for name, a, b, root in steps:
            if name in COLLECTIVE:
                values.append(COLLECTIVE[name][0](values[a], root, ranks))
            else:
                values.append(LOCAL[name](values[a], values[b]))
        return [values[i] for i in results]

    def check(self, seed):
        steps, results = draw_steps(seed, self.world_size)
        torch._dynamo.reset()
        compiled = torch.compile(lambda *x: self.run_steps(steps, results, *x), fullgraph=True)
        for again in range(2):
            inputs = inputs_of(seed, self.world_size, again)
            mine = [x.to(DEVICE) for x in inputs[self.rank]]
            outputs = compiled(*mine)
            values = [list(of_all) for of_all in zip(*inputs)]
            for step in steps:
                step_of_all(values, *step)
            # Steps may have changed the inputs.
            numbers = [*results, 0, 1]
            for number, output in zip(numbers, [*outputs, *mine]):
                assert torch.equal(output.cpu(), values[number][self.rank]), (
                    f"seed {seed}, rank {self.rank}, tensor {number}: {steps}"
                )

    def test_graphs(self):
        # A step of program 5 reads the operand of a collective that has ended.
        for seed in seeds(4, 3):
            self.check(seed)
