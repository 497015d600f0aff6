# SPDX-License-Identifier: MIT
"""Odd arguments: the card's outcome is the CPU's, a result or the same kind of exception.

Empty tensors, scalars and eight dimensions in every kind of operation, arguments
that do not fit, outputs that overlap what is read.
"""

import pytest
import torch
from support import DEVICE

F = torch.nn.functional

pytestmark = pytest.mark.filterwarnings("ignore")


def outcome(use, device):
    torch.manual_seed(0)
    try:
        result = use(device)
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
        return type(error)
    return result.cpu() if torch.is_tensor(result) else result


def assert_same_outcome(use):
    expected, actual = outcome(use, "cpu"), outcome(use, DEVICE)
    if not torch.is_tensor(expected):
        assert actual == expected
        return
    assert torch.is_tensor(actual), actual
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    torch.testing.assert_close(
        actual.float(), expected.float(), rtol=2**-8, atol=2**-8, equal_nan=True
    )


def of(operation, *arguments):
    """x.operation(*arguments), or the function of that name."""

    def use(x):
        function = getattr(x, operation, None)
        result = function(*arguments) if function else getattr(F, operation)(x, *arguments)
        return result[0] if isinstance(result, tuple) else result

    return use


UNARY = {
    name: of(name)
    for name in "abs neg exp log sqrt rsqrt reciprocal square sigmoid tanh relu gelu silu mish "
    "hardtanh erf sin floor ceil round trunc frac sign isnan isinf isfinite logical_not bool int "
    "half bfloat16 clone contiguous sum mean prod max min amax amin any all std var norm argmax "
    "argsort sort unique nonzero median tril triu".split()
}
UNARY |= {
    name: of(name, -1) for name in "softmax log_softmax logsumexp cumsum cumprod".split()
}
UNARY |= {"flip": of("flip", [0]), "roll": of("roll", 1), "topk": of("topk", 1)}
SHAPES = [(0,), (), (0, 3), (3, 0), (2, 0, 3), (1,), (1,) * 8]

BINARY = (
    "add sub mul div maximum minimum pow eq lt logical_and fmod remainder atan2 floor_divide".split()
)
PAIRS = [
    ((0,), (0,)),
    ((), ()),
    ((0, 3), (3,)),
    ((3,), ()),
    ((1,) * 8, (2,) * 8),
    ((2, 3), (4,)),
    ((0,), (3,)),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, shape):
    assert_same_outcome(lambda device: UNARY[name](torch.ones(shape, device=device)))


@pytest.mark.parametrize("shapes", PAIRS, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, shapes):
    assert_same_outcome(
        lambda device: getattr(torch, name)(*(torch.ones(s, device=device) for s in shapes))
    )


def ones(*names_and_sizes):
    """A use that makes tensors of ones and hands them to a function."""
    *sizes, function = names_and_sizes
    return lambda device: function(*(torch.ones(size, device=device) for size in sizes))


def indexed(function):
    """A use with a table of 3 x 4 and an index beyond it."""
    return lambda device: function(
        torch.ones(3, 4, device=device), torch.tensor([7], device=device)
    )


def counted(function):
    """A use of a 3 x 3 tensor of 0 to 8; returns the tensor if the use returns None."""

    def use(device):
        x = torch.arange(9.0, device=device).view(3, 3)
        result = function(x)
        return x if result is None else result

    return use


PRODUCTS = {
    "no rows": ones((0, 3), (3, 4), torch.mm),
    "nothing to sum": ones((2, 0), (0, 4), torch.mm),
    "no columns": ones((2, 3), (3, 0), torch.mm),
    "no batch": ones((0, 2, 3), (0, 3, 4), torch.bmm),
    "batches of nothing": ones((2, 2, 0), (2, 0, 4), torch.bmm),
    "addmm of nothing": ones((4,), (2, 0), (0, 4), torch.addmm),
    "addmm, beta 0": ones((4,), (2, 3), (3, 4), lambda b, x, y: torch.addmm(b, x, y, beta=0)),
    "vectors": ones((3,), (3,), torch.matmul),
    "empty vectors": ones((0,), (0,), torch.matmul),
    "a scalar": ones((), (3,), torch.matmul),
    "linear of nothing": ones((0, 3), (4, 3), (4,), F.linear),
    "attention over nothing": ones(
        (1, 1, 0, 4), (1, 1, 0, 4), (1, 1, 0, 4), F.scaled_dot_product_attention
    ),
    "attention, widths differ": ones(
        (1, 1, 2, 4), (1, 1, 2, 5), (1, 1, 2, 4), F.scaled_dot_product_attention
    ),
    "einsum, sizes differ": ones((2, 3), (4, 5), lambda x, y: torch.einsum("ij,jk->ik", x, y)),
    "into its own input": counted(lambda x: torch.mm(x, x + 1, out=torch.empty_like(x).t())),
    "out in steps": ones(
        (3, 4), (4, 5), (3, 10), lambda x, y, z: torch.mm(x, y, out=z[:, ::2])
    ),
    "out of another size": ones((3, 4), (4, 5), (2, 2), lambda x, y, z: torch.mm(x, y, out=z)),
}

LAYERS = {
    "layer_norm of nothing": ones((4, 0), lambda x: F.layer_norm(x, (0,))),
    "layer_norm of no rows": ones((0, 4), lambda x: F.layer_norm(x, (4,))),
    "layer_norm, weight of 3": ones((2, 4), (3,), lambda x, w: F.layer_norm(x, (4,), w)),
    "group_norm, 6 in 4": ones((2, 6, 4), lambda x: F.group_norm(x, 4)),
    "conv2d of no images": ones((0, 3, 8, 8), (4, 3, 3, 3), F.conv2d),
    "conv2d, small image": ones((1, 3, 2, 2), (4, 3, 3, 3), F.conv2d),
    "conv2d, channels": ones((1, 4, 8, 8), (4, 3, 3, 3), F.conv2d),
    "conv2d, stride 0": ones((1, 3, 8, 8), (4, 3, 3, 3), lambda x, w: F.conv2d(x, w, stride=0)),
    "conv2d, padding -1": ones((1, 3, 8, 8), (4, 3, 3, 3), lambda x, w: F.conv2d(x, w, padding=-1)),
    "max_pool2d": ones((1, 1, 1, 1), lambda x: F.max_pool2d(x, 3)),
    "dropout of 2": ones((3,), lambda x: F.dropout(x, 2.0)),
    "dropout of all": ones((3,), lambda x: F.dropout(x, 1.0)),
    "mse_loss": ones((2, 3), (3, 2), F.mse_loss),
    "softmax, dim 5": ones((3,), lambda x: F.softmax(x, 5)),
    "sum, dim twice": ones((2, 3), lambda x: x.sum((0, 0))),
}

INDICES = {
    "cross_entropy": indexed(lambda x, i: F.cross_entropy(x[:1], i)),
    "mask of another size": ones((3,), (4,), lambda x, m: x.masked_fill_(m.bool(), 0)),
    "mask of floats": ones((3,), (3,), lambda x, m: x.masked_fill_(m, 0)),
}

VIEWS = {
    "expand": ones((3,), lambda x: x.expand(2, -1, 3)),
    "write to expanded": ones((1,), lambda x: x.expand(3).add_(1)),
    "reshape": ones((3,), lambda x: x.reshape(-1, -1)),
    "permute": ones((2, 3), lambda x: x.permute(0, 0)),
    "squeeze": ones((2, 3), lambda x: x.squeeze(7)),
    "unfold too far": ones((8,), lambda x: x.unfold(0, 9, 1)),
    "split": ones((3,), lambda x: x.split(-1)),
    "as_strided beyond": ones((4,), lambda x: x.as_strided((100,), (1,))),
    "negative stride": ones((4,), lambda x: x.as_strided((2,), (-1,))),
    "cat of nothing": lambda device: torch.cat([]),
    "cat with an empty one": ones((0,), (2, 3), lambda x, y: torch.cat([x, y])),
    "cat, dim 5": ones((2, 3), lambda x: torch.cat([x], 5)),
    "copy_": ones((3,), (4,), lambda x, y: x.copy_(y)),
    "resize_ to -1": ones((3,), lambda x: x.resize_(-1)),
    "resize_ to 2^62": ones((3,), lambda x: x.resize_(1 << 62)),
    "channels_last of a matrix": ones(
        (2, 3), lambda x: x.contiguous(memory_format=torch.channels_last)
    ),
}

OUTPUTS = {
    "out of another dtype": ones((3,), lambda x: torch.add(x, 1, out=x.int())),
    "out that grows": ones((3,), (0,), lambda x, y: torch.add(x, 1, out=y)),
    "out transposed": ones((3, 4), (4, 3), lambda x, y: torch.add(x, 1, out=y.t())),
    "out expanded": ones((3,), (1,), lambda x, y: torch.add(x, 1, out=y.expand(3))),
    "out is the input": counted(lambda x: torch.add(x, 1, out=x)),
    "out overlaps the input": counted(lambda x: torch.add(x[:-1], 1, out=x[1:])),
    "a part in place": counted(lambda x: x.flatten()[::2].mul_(3) and None),
    "transposed onto itself": counted(lambda x: x.t().add_(x) and None),
    "reversed onto itself": counted(lambda x: x.copy_(x.flip(0)) and None),
    "itself twice": counted(lambda x: x.add_(x).add_(x)),
}

GRADIENTS = {
    "leaf in place": lambda device: torch.ones(3, device=device, requires_grad=True).add_(1),
    "integers": lambda device: torch.ones(3, dtype=torch.int32, device=device).requires_grad_(),
    "not a scalar": lambda device: torch.ones(3, device=device, requires_grad=True).backward(),
    "out": lambda device: torch.add(
        torch.ones(3, device=device, requires_grad=True), 1, out=torch.empty(3, device=device)
    ),
}


def after_write(device):
    """Backward through a result that was overwritten."""
    x = torch.ones(3, device=device, requires_grad=True)
    y = (x * x).exp()
    y.mul_(y)
    y.sum().backward()


GRADIENTS["overwritten"] = after_write

NUMBERS = {
    "full of nan": lambda device: torch.full((3,), float("nan"), device=device),
    "full of -inf": lambda device: torch.full((3,), float("-inf"), device=device),
    "full of 1e300": lambda device: torch.full((3,), 1e300, device=device),
    "arange, step 0": lambda device: torch.arange(0, 5, 0, device=device),
    "arange downwards": lambda device: torch.arange(5, 0, device=device),
    "linspace of -2": lambda device: torch.linspace(0, 1, -2, device=device),
    "negative size": lambda device: torch.empty(-1, device=device),
    "randint of nothing": lambda device: torch.randint(5, 5, (3,), device=device),
    "bernoulli of 2": lambda device: torch.full((3,), 2.0, device=device).bernoulli(),
    "normal, deviation -1": lambda device: torch.empty(3, device=device).normal_(0, -1),
    "uniform from 2 to 1": lambda device: torch.empty(3, device=device).uniform_(2, 1),
    "item of none": ones((0,), lambda x: x.item()),
    "item of two": ones((2,), lambda x: x.item()),
    "integers by 0": ones((3,), lambda x: x.int() // 0),
    "bool minus bool": ones((3,), lambda x: x.bool() - x.bool()),
    "minus bool": ones((3,), lambda x: -x.bool()),
    "integers to -1": ones((3,), lambda x: x.int() ** -1),
    "clamp without bounds": ones((3,), lambda x: x.clamp()),
    "clamp, bounds reversed": counted(lambda x: x.clamp(2, 1)),
    "mean of integers": ones((3,), lambda x: x.int().mean()),
    "truth of two": ones((2,), bool),
}

ODD = {
    f"{kind}: {name}": use
    for kind, uses in {
        "product": PRODUCTS,
        "layer": LAYERS,
        "index": INDICES,
        "view": VIEWS,
        "output": OUTPUTS,
        "gradient": GRADIENTS,
        "number": NUMBERS,
    }.items()
    for name, use in uses.items()
}


@pytest.mark.parametrize("name", ODD)
def test_odd(name):
    assert_same_outcome(ODD[name])
    # The failure has no lasting effect: the card computes.
    assert (torch.ones(3, device=DEVICE) * 2).sum().item() == 6
