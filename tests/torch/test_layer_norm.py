# SPDX-License-Identifier: MIT
"""Layer norm where the mean of a row is large beside its deviation."""

import pytest
import torch
from support import DEVICE, dl16

FUNCTION = torch.nn.functional.layer_norm


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("width", [192, 1000])
@pytest.mark.parametrize("mean", [0.0, 0.1, 1.0, -3.0, 10.0])
def test_mean_beside_deviation(mean, width, affine):
    """Right to a few roundings: the variance is not the difference of two large moments."""
    generator = torch.Generator().manual_seed(1)
    x = dl16(torch.randn(48, width, generator=generator) * 0.1 + mean)
    normal = FUNCTION(x, (width,))
    have = FUNCTION(x.half().to(DEVICE), (width,))
    magnitude, want = normal.abs(), normal
    if affine:
        weight, bias = dl16(torch.rand(2, width, generator=generator) + 0.5)
        have = FUNCTION(
            x.half().to(DEVICE), (width,), weight.half().to(DEVICE), bias.half().to(DEVICE)
        )
        magnitude, want = magnitude * weight + bias, normal * weight + bias
    error = (have.float().cpu() - want).abs()
    assert (error <= 4 * 2**-9 * magnitude + 2**-8).all(), error.max()


def test_compiled_has_the_bits_of_eager():
    x = (torch.randn(48, 192) * 0.1 + 3).half().to(DEVICE)
    compiled = torch.compile(lambda t: FUNCTION(t, (192,)))
    assert torch.equal(compiled(x).cpu(), FUNCTION(x, (192,)).cpu())


@pytest.mark.parametrize("norm", [FUNCTION, torch.nn.functional.rms_norm], ids=["layer", "rms"])
def test_rows_without_deviation(norm):
    """An eps that DL16 lacks, as BERT's, keeps rows of zeros and of one number finite."""
    x = torch.randn(4, 130)
    x[1], x[2] = 0, 2
    have = norm(x.half().to(DEVICE), (130,), eps=1e-12).cpu()
    want = norm(x, (130,), eps=1e-12)
    assert (have.float() - want).abs().max() <= 2**-6
    assert (have[1] == 0).all()
