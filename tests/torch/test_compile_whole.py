# SPDX-License-Identifier: MIT
"""Operations that PyTorch would decompose below torch.compile: eager mode rounds once, while each
part would round numbers that are not exact in the formats."""

import pytest
import torch
from support import DEVICE, assert_same
from test_compile_operations import compare

F = torch.nn.functional


class Given:
    """Tensors of the card: of any sign, positive, between 0 and 1, one number a channel."""

    def __init__(self, dtype):
        generator = torch.Generator().manual_seed(0)

        def normal(*size):
            return torch.randn(size, generator=generator)

        def card(values):
            return values.to(dtype).to(DEVICE)

        self.x, self.y = card(normal(4, 6, 8, 8)), card(normal(4, 6, 8, 8))
        self.positive = card(normal(4, 6, 8, 8).abs() + 0.1)
        self.share = card(torch.rand(4, 6, 8, 8, generator=generator) * 0.9 + 0.05)
        self.w, self.b, self.spread = card(normal(6)), card(normal(6)), card(normal(6).abs() + 0.5)
        self.matrix = card(normal(8, 8))
        self.classes = torch.randint(0, 6, (24,), generator=generator).to(DEVICE)
        self.map = torch.randint(0, 6, (4, 8, 8), generator=generator).to(DEVICE)
        self.scores = self.x.reshape(-1, 64)[:24, :6].contiguous()
        self.grid = self.y.permute(0, 2, 3, 1)[..., :2].contiguous()


def interpolated(mode, *dims, **options):
    return lambda g: F.interpolate(g.x.reshape(2, *dims), mode=mode, **options)


#: Each of numbers of a Given.
CASES = {
    "hardswish": lambda g: F.hardswish(g.x * 3),
    "hardsigmoid": lambda g: F.hardsigmoid(g.x * 3),
    "elu": lambda g: F.elu(g.x), "celu": lambda g: F.celu(g.x, 0.5), "selu": lambda g: F.selu(g.x),
    "threshold": lambda g: F.threshold(g.x, 0.1, 0.3), "logit": lambda g: torch.logit(g.share),
    "prelu": lambda g: F.prelu(g.x, g.w), "glu": lambda g: F.glu(g.x, 1),
    "sinc": lambda g: torch.sinc(g.x), "logaddexp": lambda g: torch.logaddexp(g.x, g.y),
    "logaddexp2": lambda g: torch.logaddexp2(g.x, g.y), "xlogy": lambda g: g.x.xlogy(g.positive),
    "logsumexp": lambda g: g.x.logsumexp(-1), "entropy": lambda g: torch.special.entr(g.share),
    "log_ndtr": lambda g: torch.special.log_ndtr(g.share), "deg2rad": lambda g: g.x.deg2rad(),
    "rad2deg": lambda g: g.x.rad2deg(), "two places": lambda g: g.x.round(decimals=2),
    "bilinear": interpolated("bilinear", 12, 8, 8, size=(13, 11)),
    "bilinear, corners": interpolated("bilinear", 12, 8, 8, scale_factor=1.7, align_corners=True),
    "bicubic": interpolated("bicubic", 12, 8, 8, scale_factor=1.5),
    "linear": interpolated("linear", 96, 8, size=13),
    "trilinear": interpolated("trilinear", 3, 4, 8, 8, size=(3, 5, 5)),
    "grid_sample": lambda g: F.grid_sample(g.x, g.grid, align_corners=False),
    "affine_grid": lambda g: F.affine_grid(g.x[:, 0, :2, :3], (4, 6, 5, 5), align_corners=False),
    "group_norm": lambda g: F.group_norm(g.x, 3, g.w, g.b),
    "instance_norm": lambda g: F.instance_norm(g.x, weight=g.w, bias=g.b),
    "batch_norm, bare": lambda g: F.batch_norm(g.x, g.w, g.spread),
    "weight_norm": lambda g: torch._weight_norm(g.x, g.positive[:, :1, :1, :1].contiguous(), 0),
    "std_mean": lambda g: torch.std_mean(g.x), "nansum": lambda g: torch.nansum(g.x),
    "dist": lambda g: torch.dist(g.x, g.y), "renorm": lambda g: torch.renorm(g.x, 2, 1, 1.0),
    "pairwise_distance": lambda g: F.pairwise_distance(g.x, g.y),
    "mv": lambda g: torch.mv(g.matrix, g.matrix[1]),
    "addmv": lambda g: torch.addmv(g.matrix[0], g.matrix, g.matrix[1]),
    "addr": lambda g: torch.addr(g.matrix, g.matrix[0], g.matrix[1]),
    "cross": lambda g: torch.linalg.cross(g.x[:, :3], g.y[:, :3], dim=1),
    "linspace": lambda g: torch.linspace(0, 1, 7, device=DEVICE, dtype=g.x.dtype) * g.w[0],
    "arange": lambda g: torch.arange(0, 1, 0.1, device=DEVICE, dtype=g.x.dtype) + g.w[0],
    "binary_cross_entropy": lambda g: F.binary_cross_entropy(g.share, g.share.flip(0)),
    "huber_loss": lambda g: F.huber_loss(g.x, g.y),
    "smooth_l1_loss": lambda g: F.smooth_l1_loss(g.x, g.y),
    "soft_margin_loss": lambda g: F.soft_margin_loss(g.x, g.y.sign()),
    "multi_margin_loss": lambda g: F.multi_margin_loss(g.scores, g.classes),
    "nll_loss": lambda g: F.nll_loss(g.scores.log_softmax(-1), g.classes),
    "cross_entropy": lambda g: F.cross_entropy(g.scores, g.classes, label_smoothing=0.1),
    "cross_entropy of a map": lambda g: F.cross_entropy(g.x, g.map),
    "log_sigmoid": lambda g: F.logsigmoid(g.x * 3),
    "rrelu": lambda g: F.rrelu(g.x, 0.1, 0.3),
    "addcdiv": lambda g: torch.addcdiv(g.x, g.y, g.positive, value=0.3),
    "addcdiv, by position": lambda g: torch.addcdiv(g.x, g.y, g.positive),
    "addcdiv_": lambda g: g.x.clone().addcdiv_(g.y, g.positive, value=0.3),
    "addcmul_": lambda g: g.x.clone().addcmul_(g.y, g.positive, value=0.3),
    "matrix_norm": lambda g: torch.linalg.matrix_norm(g.matrix.float(), ord=2),
    "nuclear norm": lambda g: torch.linalg.matrix_norm(g.x.float(), ord="nuc"),
    "singular values": lambda g: torch.linalg.svdvals(g.matrix.float()),
    "singular values of svd": lambda g: torch.linalg.svd(g.matrix.float(), False)[1],
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_whole(said, name, dtype):
    given = Given(dtype)
    compare(lambda: CASES[name](given))


@pytest.mark.parametrize("name", ["bilinear", "bicubic", "linear", "trilinear", "instance_norm"])
def test_whole_in_inference_mode(said, name):
    """PyTorch decomposes composites in another way in inference mode."""
    with torch.inference_mode():
        given = Given(torch.float16)
        compare(lambda: CASES[name](given))


def gradients(function, *tensors):
    leaves = [t.detach().requires_grad_() for t in tensors]
    function(*leaves).sum().backward()
    return [leaf.grad for leaf in leaves]


DERIVATIVES = {
    "log_sigmoid": lambda x: F.logsigmoid(x * 3), "rrelu": lambda x: F.rrelu(x, 0.1, 0.3) * x,
    "addcdiv": lambda x: torch.addcdiv(x, x, x.abs() + 1, value=0.3),
    "singular values": lambda x: torch.linalg.svdvals(x[0].float()).sqrt(),
    "hardswish": lambda x: F.hardswish(x * 3), "hardsigmoid": lambda x: F.hardsigmoid(x * 3),
    "elu": F.elu, "glu": lambda x: F.glu(x, 1), "logit": lambda x: torch.logit(x.sigmoid()),
    "bilinear": lambda x: F.interpolate(x, size=(13, 11), mode="bilinear") ** 2,
    "bicubic": lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic") * 0.3,
    "linear": lambda x: F.interpolate(x[0], size=13, mode="linear") * 0.3,
    "trilinear": lambda x: F.interpolate(x[None], scale_factor=1.5, mode="trilinear") * 0.3,
    "soft_margin_loss": lambda x: F.soft_margin_loss(x, x.detach().sign()),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, x.detach().flip(0)),
    "group_norm": lambda x: F.group_norm(x, 3) * x,
    "logsumexp": lambda x: x.logsumexp(-1),
    "huber_loss": lambda x: F.huber_loss(x, x.detach().flip(0)),
}  # fmt: skip


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
    x = Given(torch.float16).x
    torch._dynamo.reset()
    for have, want in zip(
        gradients(torch.compile(DERIVATIVES[name]), x), gradients(DERIVATIVES[name], x), strict=True
    ):
        assert_same(have, want)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("function", [F.hardswish, F.hardsigmoid])
def test_piecewise_activations_are_kernels(function, dtype, said):
    """In eager mode too, with the CPU's numbers but for the format's rounding."""
    x = torch.linspace(-5, 5, 4096).to(dtype).to(DEVICE)
    torch.spyre.reset_fallbacks()
    have, want = function(x), function(x.cpu().float())
    assert not torch.spyre.fallbacks()
    limit = 2**-9 if dtype == torch.float16 else 0
    torch.testing.assert_close(have.cpu().float(), want, rtol=limit, atol=0)
    compare(function, x)
    assert "eager aten" not in said(), said()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("statistics", [True, False])
def test_batch_norm_in_training(dtype, momentum, statistics):
    """Results, running statistics and derivatives, after the first step too."""
    results = []
    for wrap in torch.compile, lambda f: f:
        torch._dynamo.reset()
        layer = torch.nn.BatchNorm2d(6, momentum=momentum, track_running_stats=statistics)
        layer = layer.to(DEVICE, dtype)
        step, found = wrap(lambda x: layer(x * 2).relu()), []
        for _ in range(2):
            x = Given(dtype).x.requires_grad_()
            y = step(x)
            y.square().sum().backward()
            found += [y, x.grad, layer.weight.grad, layer.bias.grad]
        results.append(found + list(layer.buffers()))
    for have, want in zip(*results, strict=True):
        assert_same(have, want)
