# SPDX-License-Identifier: MIT
"""Fallbacks in dtypes that the CPU has no kernel for, and composites that would need float64."""

import pytest
import torch
import torch.nn.functional as F
from support import DEVICE, assert_near, assert_same, exact

pytestmark = pytest.mark.filterwarnings("ignore:spyre. aten")

X = exact(4, 4, seed=1).float()
SYMMETRIC = X @ X.T + 4 * torch.eye(4)
LABELS, LENGTHS = torch.tensor([[1, 2]]), (torch.tensor([4]), torch.tensor([2]))


def ctc(c):
    log_probs = c(X.view(4, 1, 4)).log_softmax(-1)
    return F.ctc_loss(log_probs, LABELS.to(log_probs.device), *LENGTHS)


#: Operations of 16-bit floats; c() brings a tensor to where it is computed.
NARROW = {
    "cholesky": lambda c: torch.linalg.cholesky(c(SYMMETRIC)),
    "svd": lambda c: torch.linalg.svdvals(c(X)),
    "det": lambda c: torch.linalg.det(c(X)),
    "slogdet": lambda c: torch.linalg.slogdet(c(X))[1],
    "qr": lambda c: torch.linalg.qr(c(X))[1].abs(),
    "geqrf": lambda c: torch.geqrf(c(X))[0].abs(),
    "lstsq": lambda c: torch.linalg.lstsq(c(SYMMETRIC), c(X)).solution,
    "eigh": lambda c: torch.linalg.eigvalsh(c(SYMMETRIC)),
    "inv": lambda c: torch.linalg.inv(c(SYMMETRIC)),
    "pinv": lambda c: torch.linalg.pinv(c(SYMMETRIC)),
    "solve": lambda c: torch.linalg.solve(c(SYMMETRIC), c(X)),
    "quantile": lambda c: torch.quantile(c(X), 0.3, dim=0),
    "nanquantile": lambda c: torch.nanquantile(c(X), 0.3),
    "cdist": lambda c: torch.cdist(c(X), c(X[:2])),
    "pdist": lambda c: torch.pdist(c(X)),
    "ctc_loss": ctc,
    "histogram": lambda c: torch.histogram(c(X), 4)[0],
    "histogramdd": lambda c: torch.histogramdd(c(X[:, :2]), [3, 3])[0],
    "stft": lambda c: torch.stft(c(X.view(16)), 4, window=c(torch.ones(4)), return_complex=False),
    "local_response_norm": lambda c: F.local_response_norm(c(X.view(1, 4, 2, 2)), 2),
    "multi_margin_loss": lambda c: F.multi_margin_loss(c(X), torch.arange(4).to(c(X).device)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", NARROW)
def test_16_bits_are_computed_in_fp32(name, dtype):
    expected = NARROW[name](lambda x: x.to(dtype).float())
    actual = NARROW[name](lambda x: x.to(dtype).to(DEVICE))
    assert actual.dtype == dtype and actual.device.type == DEVICE
    tolerance = 2e-2 if dtype == torch.float16 else 1e-1
    torch.testing.assert_close(actual.cpu().float(), expected, rtol=tolerance, atol=tolerance)


def test_derivatives_of_what_is_computed_in_fp32():
    grads = []
    for device, dtype in (DEVICE, torch.float16), ("cpu", torch.float32):
        x = X.to(device, dtype).requires_grad_()
        (torch.cdist(x, x[:2] + 1).sum() + torch.quantile(x, 0.3)).backward()
        grads.append(x.grad.cpu().float())
    torch.testing.assert_close(*grads, rtol=2e-2, atol=2e-2)


def test_out_and_in_place_are_written_once():
    x = X.half().to(DEVICE)
    out = torch.empty(0, dtype=torch.float16, device=DEVICE)
    result = torch.special.bessel_j0(x, out=out)
    assert result is out
    assert_near(out, torch.special.bessel_j0(X))
    square = SYMMETRIC.half().to(DEVICE)
    given = torch.full((4, 4), 7.0, dtype=torch.float16, device=DEVICE)
    assert torch.linalg.cholesky(square, out=given) is given
    torch.testing.assert_close(
        given.cpu().float(), torch.linalg.cholesky(SYMMETRIC.half().float()), rtol=1e-2, atol=1e-2
    )


def test_generators_are_drawn_from_once():
    """A failed draw does not advance the generator for the second try."""
    x = torch.rand(64).half().to(DEVICE)
    torch.manual_seed(3)
    torch.multinomial(x, 8)
    once = torch.rand(4, device=DEVICE)
    torch.manual_seed(3)
    torch.multinomial(x.cpu().float(), 8)
    assert_same(once, torch.rand(4))


@pytest.mark.parametrize(
    "use",
    [
        lambda x: torch.linalg.cholesky(x(3, 4)),
        lambda x: torch.linalg.cholesky(-x(4, 4)),
        lambda x: torch.cdist(x(3, 4), x(3, 5)),
        lambda x: torch.linalg.solve(x(4, 4) * 0, x(4, 4)),
        lambda x: torch.index_select(x(3, 4), 5, torch.tensor([0])),
        lambda x: x(3, 4).index_copy(0, torch.tensor([0]).to(x(1).device), x(1, 4).float()),
    ],
)
def test_wrong_arguments_are_said_as_before(use):
    """The text is the CPU's for 16 bits, or for 32 bits if it has no kernel of 16 bits."""
    texts = []
    for device, dtype in (DEVICE, torch.float16), ("cpu", torch.float16), ("cpu", torch.float32):
        try:
            use(lambda *size: torch.ones(size, dtype=dtype, device=device))
            texts.append(None)
        except (RuntimeError, IndexError) as error:
            texts.append(str(error).splitlines()[0])
    assert texts[0] is not None
    assert texts[0] in texts[1:] or "not implemented for 'Half'" in texts[0]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8], ids=str)
def test_histogram_of_integers(dtype):
    """The count of tokens per expert of a mixture."""
    values = torch.tensor([1, 2, 2, 0, 3, 1, 2], dtype=dtype)
    expected = torch.bincount(values.long(), minlength=4).to(dtype)
    actual = torch.histc(values.to(DEVICE), bins=4, min=0, max=3)
    assert_same(actual, expected)
    out = torch.empty(0, dtype=dtype, device=DEVICE)
    assert_same(torch.histc(values.to(DEVICE), bins=4, min=0, max=3, out=out), expected)


def test_float64_on_the_way():
    square = SYMMETRIC.to(DEVICE)
    torch.testing.assert_close(torch.linalg.pinv(square).cpu(), torch.linalg.pinv(SYMMETRIC))
    assert_same(torch.linalg.matrix_rank(square), torch.linalg.matrix_rank(SYMMETRIC))
    assert_same(torch.linalg.matrix_rank(square, tol=1e9), torch.tensor(0))
    x = square.requires_grad_()
    torch.linalg.pinv(x).sum().backward()
    host = SYMMETRIC.clone().requires_grad_()
    torch.linalg.pinv(host).sum().backward()
    torch.testing.assert_close(x.grad.cpu(), host.grad)


#: Operations in float64 by definition or by an argument.
WIDE = {
    "float_power": lambda x: torch.float_power(x.abs(), 1.5),
    "float_power of tensors": lambda x: torch.float_power(x.abs(), x),
    "float_power of a number": lambda x: torch.float_power(2, x),
    "float_power of integers": lambda x: torch.float_power((x * 4).int(), 2),
    "softmax": lambda x: x.softmax(-1, dtype=torch.float64),
    "log_softmax": lambda x: F.log_softmax(x, 0, dtype=torch.float64),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("name", WIDE)
def test_float64_is_rounded_to_fp32(name, dtype):
    """The CPU computes in float64, and the card gets the nearest fp32."""
    x = X.to(dtype)
    expected = WIDE[name](x).float()
    assert_same(WIDE[name](x.to(DEVICE)), expected)
    torch._dynamo.reset()
    with torch.no_grad():
        assert_same(torch.compile(WIDE[name])(x.to(DEVICE)), expected)


def test_batch_norm_of_nothing():
    layer = torch.nn.BatchNorm1d(3).to(DEVICE)
    x = torch.ones(0, 3, device=DEVICE, requires_grad=True)
    y = layer(x)
    y.sum().backward()
    assert y.shape == (0, 3) and x.grad.shape == (0, 3)
    assert_same(layer.weight.grad, torch.zeros(3))


def test_group_norm_of_a_transposed_input():
    x = exact(2, 5, 6, dtype=torch.float32, seed=2)
    args = None, None, 2, 6, 5, 3, 1e-5
    expected = torch.native_group_norm(x.transpose(1, 2).contiguous(), *args)
    results = torch.native_group_norm(x.to(DEVICE).transpose(1, 2), *args)
    for actual, wanted in zip(results, expected):
        torch.testing.assert_close(actual.cpu(), wanted, rtol=1e-5, atol=1e-5)
