# SPDX-License-Identifier: MIT
"""PyTorch's own models for tests of DTensor, trained on several cards and on one.

Losses and gathered parameters equal those of one card to within the rounding of sums, which the
ranks add in another order. PyTorch's experts divided inside are not trained, and not run with
divided sequences: that module expects plain tensors there and gets DTensors.
"""

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
from torch.testing._internal.distributed._tensor.common_dtensor import (
    DTensorContinuousTestBase,
    MLPModule,
    MLPStacked,
    ModelArgs,
    Transformer,
)

STEPS = 3


def drawn(*size, seed=0):
    """Returns floats that are the same on all ranks, on this rank's card."""
    return torch.randn(size, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def transformer(**options):
    """Returns PyTorch's small model without dropout; with equal parameters on all ranks."""
    torch.manual_seed(5)
    return Transformer(ModelArgs(dropout_p=0.0, **options)).to(DEVICE)


def tokens(rows, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 8, (rows, 16), generator=generator).to(DEVICE)


def whole(tensor):
    """Returns a parameter or gradient of all ranks, on the host."""
    tensor = tensor.detach()
    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).cpu()


def train(model, batches, loss_of, optimizer):
    """Trains for a step with each batch; returns the losses."""
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(model(batch), batch)
        loss.backward()
        optimizer.step()
        losses.append(whole(loss))
    return losses


def language_loss(logits, batch):
    """Returns the mean loss of predicting each next token."""
    return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), batch[:, 1:].flatten())


def alike(model):
    """Returns False for a mixture of DTensors and others, which no foreach operation takes."""
    return len({isinstance(p, DTensor) for p in model.parameters()}) == 1


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=alike(model))


def adam(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=alike(model))


class Models(DTensorContinuousTestBase, RanksTest):
    def close(self, mine, expected, rtol=1e-4, atol=1e-5):
        for name, parameter in mine.named_parameters():
            other = whole(expected.get_parameter(name))
            torch.testing.assert_close(
                whole(parameter), other, rtol=rtol, atol=atol, msg=lambda m: f"{name}: {m}"
            )

    def train_both(self, model, expected, make_optimizer=sgd):
        """Trains a divided model and one of one card with the same batches."""
        batches = [tokens(4, seed) for seed in range(STEPS)]
        losses = train(model, batches, language_loss, make_optimizer(model))
        others = train(expected, batches, language_loss, make_optimizer(expected))
        torch.testing.assert_close(losses, others, rtol=1e-4, atol=1e-5)
        assert others[-1] != others[0]
        self.close(model, expected)

    def tensor_parallel(self, sequences, make_optimizer=sgd, **options):
        expected = transformer(**options)
        model = Transformer.parallelize(
            copy.deepcopy(expected), self.build_device_mesh(), use_seq_parallel=sequences
        )
        self.train_both(model, expected, make_optimizer)


class Parallel:
    """Tests of a mesh of one dim; for Models."""

    def test_tensor_parallel(self):
        self.tensor_parallel(sequences=False)

    def test_sequence_parallel(self):
        self.tensor_parallel(sequences=True)

    def test_tensor_parallel_with_adam(self):
        self.tensor_parallel(sequences=False, make_optimizer=adam)

    def test_checkpointed_activations(self):
        self.tensor_parallel(sequences=True, checkpoint_activations=True)

    def test_separate_output_weights(self):
        self.tensor_parallel(sequences=False, weight_tying=False)

    def test_local_outputs_for_attention(self):
        expected = transformer()
        model = Transformer.parallelize(
            copy.deepcopy(expected),
            self.build_device_mesh(),
            use_seq_parallel=False,
            local_output_for_attn=True,
        )
        self.train_both(model, expected)

    def test_experts_divided_inside(self):
        """Only forward: PyTorch's module adds up no gradients of tokens that all ranks have."""
        expected = transformer(num_experts=4)
        model = Transformer.parallelize(copy.deepcopy(expected), self.build_device_mesh(), False)
        with torch.no_grad():
            mine, other = model(tokens(4)), expected(tokens(4))
        torch.testing.assert_close(whole(mine), other.cpu(), rtol=1e-4, atol=1e-5)

    def test_experts_divided_among_ranks(self):
        """Each rank has its own tokens, which all experts compute, and a part of the experts."""
        expected = transformer(num_experts=4, weight_tying=False)
        model = Transformer.parallelize(
            copy.deepcopy(expected), None, False, ep_mesh=self.build_device_mesh()
        )
        batch = tokens(4 * self.world_size)
        expected(batch).square().sum().backward()
        mine = model(batch.chunk(self.world_size)[self.rank])
        mine.square().sum().backward()
        for name, parameter in model.named_parameters():
            gradient = parameter.grad
            if not isinstance(gradient, DTensor):
                dist.all_reduce(gradient)
            other = whole(expected.get_parameter(name).grad)
            torch.testing.assert_close(whole(gradient), other, rtol=1e-4, atol=1e-3)

    def test_mlp(self):
        expected = MLPModule(DEVICE)
        mesh = self.build_device_mesh()
        model = parallelize_module(
            copy.deepcopy(expected),
            mesh,
            {
                "net1": ColwiseParallel(input_layouts=Shard(0)),
                "net2": RowwiseParallel(output_layouts=Shard(0)),
            },
        )
        x = drawn(8, 10)
        part = distribute_tensor(x, mesh, [Shard(0)]).to_local()
        for module, batch in (model, part), (expected, x):
            optimizer = sgd(module)
            for _ in range(STEPS):
                optimizer.zero_grad()
                module(batch).sum().backward()
                optimizer.step()
        self.close(model, expected)

    def test_mlp_of_replicated_and_divided_parameters(self):
        expected = MLPStacked(DEVICE)
        mesh = self.build_device_mesh()
        model = copy.deepcopy(expected)
        for i, layer in enumerate(model.layers):
            for child in layer.net1, layer.net2:
                for name, parameter in list(child.named_parameters()):
                    placement = Replicate() if i else Shard(0)
                    divided = distribute_tensor(parameter, mesh, [placement])
                    child.register_parameter(name, torch.nn.Parameter(divided))
        x = drawn(8, 10)
        model(distribute_tensor(x, mesh, [Replicate()])).sum().backward()
        expected(x).sum().backward()
        for name, parameter in model.named_parameters():
            other = whole(expected.get_parameter(name).grad)
            torch.testing.assert_close(whole(parameter.grad), other, rtol=1e-4, atol=1e-5)


class TestTwo(Parallel, Models):
    world_size = 2


class TestFour(Parallel, Models):
    world_size = 4

    def two_dims(self, sequences):
        """Tensor parallel in pairs of ranks, sharded data parallel between them."""
        mesh = init_device_mesh(DEVICE, (2, 2), mesh_dim_names=("data", "tensor"))
        expected = transformer()
        model = Transformer.parallelize(copy.deepcopy(expected), mesh["tensor"], sequences)
        for layer in model.layers:
            fully_shard(layer, mesh=mesh["data"])
        fully_shard(model, mesh=mesh["data"])
        place = mesh["data"].get_local_rank()
        batches = [tokens(4, seed) for seed in range(STEPS)]
        parts = [batch.chunk(2)[place] for batch in batches]
        train(model, parts, language_loss, sgd(model))
        train(expected, batches, language_loss, sgd(expected))
        self.close(model, expected)

    def test_sharded_and_tensor_parallel(self):
        self.two_dims(sequences=False)

    def test_sharded_and_sequence_parallel(self):
        self.two_dims(sequences=True)

    def test_experts_in_two_dims(self):
        """Experts are divided among pairs of ranks, and each one inside a pair."""
        mesh = init_device_mesh(DEVICE, (2, 2), mesh_dim_names=("expert", "tensor"))
        expected = transformer(num_experts=4, weight_tying=False)
        model = Transformer.parallelize(
            copy.deepcopy(expected), mesh["tensor"], False, ep_mesh=mesh["expert"]
        )
        batch = tokens(8)
        result = expected(batch).detach().chunk(2)[mesh["expert"].get_local_rank()]
        with torch.no_grad():
            mine = model(batch.chunk(2)[mesh["expert"].get_local_rank()])
        torch.testing.assert_close(whole(mine), result.cpu(), rtol=1e-4, atol=1e-5)
