# SPDX-License-Identifier: MIT
"""Operations of DTensor on cards, with PyTorch's own base class and converter.

DTensorConverter divides the arguments of an operation in all ways: each tensor is replicated or
divided along each of its dims that the number of ranks divides. Each result equals that of one
card: bit for bit, unless ranks added parts of a sum, whose order then differs.
"""

import torch
import torch.nn.functional as F
from ranks import DEVICE, RanksTest
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.testing._internal.distributed._tensor.common_dtensor import (
    DTensorContinuousTestBase,
    DTensorConverter,
)
from torch.utils._pytree import tree_leaves


class Drawn:
    """Arguments of operations; the same on all ranks."""

    def __init__(self):
        self.generator = torch.Generator().manual_seed(11)

    def __call__(self, *size):
        """Returns floats of both signs."""
        return torch.randn(size, generator=self.generator)

    def positive(self, *size):
        """Returns floats between 1/2 and 3/2."""
        return torch.rand(size, generator=self.generator) + 0.5

    def digits(self, *size):
        """Returns small integers as floats, whose sums of products are exact."""
        return torch.randint(-3, 4, size, generator=self.generator).float()

    def integers(self, *size, high):
        """Returns indices below a limit."""
        return torch.randint(0, high, size, generator=self.generator)

    def bools(self, *size):
        """Returns bools, which the converter replicates."""
        return self(*size) > 0


def unary(function):
    return lambda draw: (function, draw(8, 12))


def of_positive(function):
    return lambda draw: (function, draw.positive(8, 12))


def binary(function):
    return lambda draw: (function, draw(8, 12), draw(8, 12))


def of_integers(function):
    return lambda draw: (function, draw.integers(8, 12, high=50), draw.integers(8, 12, high=50))


#: Operations that autograd differentiates: their gradients are compared as well.
DIFFERENTIABLE = {
    # of one tensor, element by element
    "abs": unary(torch.abs),
    "clamp": unary(lambda x: x.clamp(-0.5, 0.7)),
    "cos": unary(torch.cos),
    "erf": unary(torch.erf),
    "exp": unary(torch.exp),
    "gelu": unary(F.gelu),
    "leaky_relu": unary(F.leaky_relu),
    "log": of_positive(torch.log),
    "neg": unary(torch.neg),
    "pow": unary(lambda x: x**2),
    "reciprocal": of_positive(torch.reciprocal),
    "relu": unary(F.relu),
    "rsqrt": of_positive(torch.rsqrt),
    "sigmoid": unary(torch.sigmoid),
    "silu": unary(F.silu),
    "sin": unary(torch.sin),
    "sqrt": of_positive(torch.sqrt),
    "tanh": unary(torch.tanh),
    "to_half": unary(lambda x: x.half()),
    "tril": unary(torch.tril),
    "triu": unary(torch.triu),
    # of several tensors, element by element
    "add": binary(torch.add),
    "add_broadcast": lambda draw: (torch.add, draw(8, 12), draw(12)),
    "add_scalar": unary(lambda x: x + 1.5),
    "addcmul": lambda draw: (torch.addcmul, draw(8, 12), draw(8, 12), draw(8, 12)),
    "div": lambda draw: (torch.div, draw(8, 12), draw.positive(8, 12)),
    "lerp": binary(lambda x, y: x.lerp(y, 0.25)),
    "maximum": binary(torch.maximum),
    "minimum": binary(torch.minimum),
    "mul": binary(torch.mul),
    "mul_broadcast": lambda draw: (torch.mul, draw(4, 8, 12), draw(8, 1)),
    "sub": binary(torch.sub),
    "where": lambda draw: (torch.where, draw.bools(8, 12), draw(8, 12), draw(8, 12)),
    # views and copies
    "cat": lambda draw: (lambda x, y: torch.cat([x, y], 1), draw(8, 12), draw(8, 4)),
    "chunk": unary(lambda x: x.chunk(2, 1)),
    "clone": unary(torch.clone),
    "expand": lambda draw: (lambda x: x.expand(4, 8, 12), draw(8, 12)),
    "flatten": lambda draw: (lambda x: x.flatten(1), draw(8, 4, 12)),
    "masked_fill": lambda draw: (
        lambda x, m: x.masked_fill(m, 2.0),
        draw(8, 12),
        draw.bools(8, 12),
    ),
    "pad": unary(lambda x: F.pad(x, (1, 2))),
    "permute": lambda draw: (lambda x: x.permute(2, 0, 1), draw(8, 4, 12)),
    "repeat": unary(lambda x: x.repeat(2, 1)),
    "select": unary(lambda x: x.select(0, 3)),
    "slice": unary(lambda x: x[:, 2:7]),
    "split": unary(lambda x: x.split(4, 1)),
    "squeeze": lambda draw: (lambda x: x.squeeze(1), draw(8, 1, 12)),
    "stack": lambda draw: (lambda x, y: torch.stack([x, y], 1), draw(8, 12), draw(8, 12)),
    "t": unary(torch.t),
    "transpose": lambda draw: (lambda x: x.transpose(0, 2), draw(8, 4, 12)),
    "unbind": lambda draw: (lambda x: x.unbind(1), draw(8, 3, 12)),
    "unflatten": unary(lambda x: x.unflatten(1, (4, 3))),
    "unsqueeze": unary(lambda x: x.unsqueeze(1)),
    "view": lambda draw: (lambda x: x.view(8, 48), draw(8, 4, 12)),
    # sums and other reductions
    "amax": unary(lambda x: x.amax(1)),
    "amin": unary(lambda x: x.amin(0)),
    "cumsum": unary(lambda x: x.cumsum(1)),
    "log_softmax": unary(lambda x: x.log_softmax(-1)),
    "logsumexp": unary(lambda x: x.logsumexp(1)),
    "max": unary(torch.max),
    "mean": unary(torch.mean),
    "mean_dim": unary(lambda x: x.mean(0)),
    "norm": unary(lambda x: x.norm(dim=1)),
    "softmax": unary(lambda x: x.softmax(-1)),
    "std": unary(lambda x: x.std(1)),
    "sum": unary(torch.sum),
    "sum_dim": unary(lambda x: x.sum(1, keepdim=True)),
    "var": unary(lambda x: x.var(0)),
    # products
    "addmm": lambda draw: (torch.addmm, draw(12), draw(8, 16), draw(16, 12)),
    "baddbmm": lambda draw: (torch.baddbmm, draw(4, 8, 12), draw(4, 8, 16), draw(4, 16, 12)),
    "bmm": lambda draw: (torch.bmm, draw(4, 8, 16), draw(4, 16, 12)),
    "dot": lambda draw: (torch.dot, draw(96), draw(96)),
    "einsum": lambda draw: (
        lambda x, y: torch.einsum("bik,kj->bij", x, y),
        draw(4, 8, 16),
        draw(16, 12),
    ),
    "linear": lambda draw: (F.linear, draw(4, 8, 16), draw(12, 16), draw(12)),
    "matmul": lambda draw: (torch.matmul, draw(4, 8, 16), draw(16, 12)),
    "mm": lambda draw: (torch.mm, draw(8, 16), draw(16, 12)),
    # of neural networks
    "cross_entropy": lambda draw: (F.cross_entropy, draw(8, 12), draw.integers(8, high=12)),
    "embedding": lambda draw: (F.embedding, draw.integers(8, 4, high=16), draw(16, 12)),
    "gather": lambda draw: (
        lambda x, index: x.gather(1, index),
        draw(8, 12),
        draw.integers(8, 4, high=12),
    ),
    "index_select": lambda draw: (
        lambda x, index: x.index_select(0, index),
        draw(8, 12),
        draw.integers(4, high=8),
    ),
    "layer_norm": lambda draw: (
        lambda x, w, b: F.layer_norm(x, (12,), w, b),
        draw(8, 12),
        draw(12),
        draw(12),
    ),
    "nll_loss": lambda draw: (F.nll_loss, draw(8, 12), draw.integers(8, high=12)),
    "rms_norm": lambda draw: (lambda x, w: F.rms_norm(x, (12,), w), draw(8, 12), draw(12)),
    "sdpa": lambda draw: (
        F.scaled_dot_product_attention,
        draw(3, 4, 6, 5),
        draw(3, 4, 6, 5),
        draw(3, 4, 6, 5),
    ),
    "sdpa_causal": lambda draw: (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        draw(3, 4, 6, 5),
        draw(3, 4, 6, 5),
        draw(3, 4, 6, 5),
    ),
}

#: Operations without gradients.
OTHER = {
    "all": lambda draw: (torch.all, draw.bools(8, 12)),
    "any": lambda draw: (torch.any, draw.bools(8, 12)),
    "argmax": unary(lambda x: x.argmax(1)),
    "argmin": unary(lambda x: x.argmin(1)),
    "bitwise_and": of_integers(torch.bitwise_and),
    "bitwise_or": of_integers(torch.bitwise_or),
    "ceil": unary(torch.ceil),
    "eq": of_integers(torch.eq),
    "floor": unary(torch.floor),
    "full_like": unary(lambda x: torch.full_like(x, 3.0)),
    "ge": binary(torch.ge),
    "gt": binary(torch.gt),
    "isnan": unary(torch.isnan),
    "le": binary(torch.le),
    "logical_and": lambda draw: (torch.logical_and, draw.bools(8, 12), draw.bools(8, 12)),
    "logical_not": lambda draw: (torch.logical_not, draw.bools(8, 12)),
    "lt": binary(torch.lt),
    "mse_loss": binary(F.mse_loss),
    "ne": of_integers(torch.ne),
    "new_zeros": unary(lambda x: x.new_zeros(8, 4)),
    "ones_like": unary(torch.ones_like),
    "remainder": of_integers(lambda x, y: x.remainder(y + 1)),
    "round": unary(torch.round),
    "sdpa_causal_without_gradient": lambda draw: (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        draw(3, 4, 6, 5),
        draw(3, 4, 6, 5),
        draw(3, 4, 6, 5),
    ),
    "sign": unary(torch.sign),
    "sort": unary(lambda x: x.sort(1)),
    "sum_of_integers": lambda draw: (lambda x: x.sum(0), draw.integers(8, 12, high=50)),
    "topk": unary(lambda x: x.topk(3, 1)),
    "add_": lambda draw: (lambda x, y: x.clone().add_(y), draw(8, 12), draw(12)),
    "mul_": unary(lambda x: x.clone().mul_(3.0)),
    "zero_": unary(lambda x: x.clone().zero_()),
}

#: Operations and ways that are not compared, with the reason.
LEFT_OUT = {
    "gradient of mse_loss's mean": "DTensor 2.13 divides by the elements of a rank instead of all",
    "unbind along a divided dim": "DTensor raises RuntimeError, as it would need redistribution",
    "dropout, rand_like, ...": "ranks draw other numbers than one card",
    "complex numbers, float8": "equal to one card's when tried; complex ones on the CPU",
    "index_put, scatter, scatter_add": "equal to one card's when tried; some gather first",
}

#: Operations that DTensor 2.13 divides wrongly in some ways, whatever the device: with divided
#: channels or space it raises or gives a result of another size. Each way ends as with Gloo.
AS_WITH_GLOO = {
    "conv2d": lambda draw: (
        lambda x, w: F.conv2d(x, w, padding=1),
        draw.digits(4, 8, 6, 6),
        draw.digits(4, 8, 3, 3),
    ),
    "conv_transpose2d": lambda draw: (
        F.conv_transpose2d,
        draw.digits(4, 8, 6, 6),
        draw.digits(8, 4, 3, 3),
    ),
    "max_pool2d": lambda draw: (lambda x: F.max_pool2d(x, 2), draw.digits(4, 8, 6, 6)),
    "avg_pool2d": lambda draw: (lambda x: F.avg_pool2d(x, 2), draw.digits(4, 8, 6, 6)),
}

#: Operations that four ranks compare as well: those with sums, views or several tensors.
OF_FOUR = set(
    "add_broadcast cat view flatten unflatten transpose expand split mean_dim softmax sum_dim var"
    " amax logsumexp addmm bmm dot linear mm cross_entropy embedding layer_norm sdpa_causal topk"
    " argmax sum_of_integers".split()
)

#: Collectives that add or otherwise combine the numbers of ranks.
REDUCTIONS = {
    torch.ops.c10d_functional.all_reduce,
    torch.ops.c10d_functional.reduce_scatter_tensor,
    torch.ops.c10d_functional.all_reduce_coalesced,
    torch.ops.c10d_functional.reduce_scatter_tensor_coalesced,
}


def whole(value):
    """Returns the tensors of a result, gathered."""
    return [
        t.full_tensor() if isinstance(t, DTensor) else t
        for t in tree_leaves(value)
        if isinstance(t, torch.Tensor)
    ]


def gradients(results, inputs):
    """Returns the gradients of all results with regard to floats among the inputs."""
    wanted = [x for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]
    results = [r for r in results if r.requires_grad]
    generator = torch.Generator().manual_seed(3)
    outer = [torch.randn(r.shape, generator=generator).to(r.device, r.dtype) for r in results]
    return whole(torch.autograd.grad(results, wanted, outer))


class Operations(DTensorContinuousTestBase, RanksTest):
    """Compares operations on divided tensors with the same ones on one card."""

    def same(self, mine, expected, added, what):
        """Compares results; by PyTorch's tolerances where ranks @added parts of sums."""
        assert len(mine) == len(expected), what
        for a, b in zip(mine, expected):
            if added:
                torch.testing.assert_close(a.cpu(), b.cpu(), msg=lambda text: f"{what}: {text}")
            else:
                assert a.dtype == b.dtype and torch.equal(a.cpu(), b.cpu()), what

    def check(self, name, function, *args, backward):
        """Runs an operation in all ways that the converter finds; returns their number."""
        args = tuple(x.to(DEVICE) for x in args)
        for x in args:
            x.requires_grad_(backward and x.is_floating_point())
        expected = whole(function(*args))
        slopes = gradients(expected, args) if backward else []
        converter = DTensorConverter(self.mesh, args, {})
        ways = 0
        for inputs, _ in converter:
            assert converter.successful(), name
            what = f"{name} of {[x.placements for x in inputs]}"
            with CommDebugMode() as comm:
                results = whole(function(*inputs))
            added = REDUCTIONS & comm.get_comm_counts().keys()
            self.same(results, expected, added, what)
            if backward:
                with CommDebugMode() as comm:
                    mine = gradients(results, inputs)
                added |= REDUCTIONS & comm.get_comm_counts().keys()
                self.same(mine, slopes, added, f"gradients of {what}")
            ways += 1
        return ways


class TestTwo(Operations):
    world_size = 2


class TestFour(Operations):
    world_size = 4


class TestAsWithGloo(RanksTest):
    """Compares each way with the same one on CPU tensors, whose collectives are Gloo's."""

    def outcomes(self, device, function, args):
        """Returns for each way the results and gradients, or the exception instead of them."""
        args = tuple(x.to(device).requires_grad_() for x in args)
        mesh = init_device_mesh(device, (self.world_size,))
        outcomes = {}
        for inputs, _ in DTensorConverter(mesh, args, {}):
            outcome = outcomes[str([x.placements for x in inputs])] = []
            try:
                result = function(*inputs)
                outcome += [x.tolist() for x in whole(result)]
                slopes = torch.autograd.grad(result.sum(), inputs)
                outcome += [x.tolist() for x in whole(slopes)]
            except (RuntimeError, IndexError, NotImplementedError) as error:
                outcome.append(f"{type(error).__name__}: {error}")
        return outcomes

    def check_as_with_gloo(self, function, *args):
        outcomes = self.outcomes(DEVICE, function, args)
        for way, expected in self.outcomes("cpu", function, args).items():
            assert outcomes[way] == expected, f"{way}: {outcomes[way]} is not {expected}"
        others = [(Replicate(),)] * (len(args) - 1)
        for batch in Replicate(), Shard(0):
            assert outcomes[str([(batch,), *others])][0] == function(*args).tolist()


def method_of(name, make, backward):
    """Returns the test method of an operation."""

    def test(self):
        function, *args = make(Drawn())
        self.mesh = self.build_device_mesh()
        self.check(name, function, *args, backward=backward)

    return test


def add_methods():
    """Gives the classes a test of each operation."""
    for table, backward in (DIFFERENTIABLE, True), (OTHER, False):
        for name, make in table.items():
            for ranks in (TestTwo, TestFour) if name in OF_FOUR else (TestTwo,):
                setattr(ranks, f"test_{name}", method_of(name, make, backward))
    for name, make in AS_WITH_GLOO.items():

        def test(self, make=make):
            self.check_as_with_gloo(*make(Drawn()))

        setattr(TestAsWithGloo, f"test_{name}", test)


add_methods()
