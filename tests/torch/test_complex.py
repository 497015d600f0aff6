# SPDX-License-Identifier: MIT
"""Complex tensors: the card stores their parts side by side, the CPU computes with them."""

import copy
import io

import pytest
import torch
from support import DEVICE, assert_near, assert_same, exact

pytestmark = [
    pytest.mark.filterwarnings("ignore:spyre. aten"),
    pytest.mark.filterwarnings("ignore:Casting complex values to real"),
    pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental"),
]


def numbers(*size, seed=0, dtype=torch.complex64):
    """Complex numbers with parts that are exact in every format."""
    parts = exact(*size, 2, seed=seed)
    return torch.view_as_complex(parts if dtype == torch.complex32 else parts.float())


Z, W = numbers(3, 5, seed=1), numbers(3, 5, seed=2)

#: Views of a tensor of 3 by 5.
VIEWS = {
    "whole": lambda z: z, "transposed": lambda z: z.t(), "row": lambda z: z[1],
    "column": lambda z: z[:, 2], "element": lambda z: z[2, 3], "part": lambda z: z[1:, 1:4],
    "steps": lambda z: z[::2, ::2], "expanded": lambda z: z[:, :1].expand(3, 4),
    "nothing": lambda z: z[:0], "conjugated": lambda z: z.conj(),
    "part, conjugated": lambda z: z.conj()[1:, ::2], "reshaped": lambda z: z.reshape(5, 3),
    "negated": torch._neg_view,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex32], ids=str)
@pytest.mark.parametrize("name", VIEWS)
def test_copies(name, dtype):
    host, view = numbers(3, 5, dtype=dtype), VIEWS[name]
    card = host.to(DEVICE)
    assert card.dtype == dtype and card.device.type == DEVICE
    assert_same(view(card).cpu().resolve_neg(), view(host).resolve_conj().resolve_neg())
    assert_same(view(host).to(DEVICE), view(host).resolve_conj().resolve_neg())
    assert_same(view(card).clone(), view(host).resolve_conj().resolve_neg())
    assert_same(view(card).to(DEVICE, copy=True), view(host).resolve_conj().resolve_neg())


@pytest.mark.parametrize("name", ["whole", "part", "steps", "conjugated", "part, conjugated"])
@pytest.mark.parametrize("of_card", [False, True])
def test_writes_through_views(name, of_card):
    view, host, card = VIEWS[name], Z.clone(), Z.to(DEVICE)
    new = VIEWS[name](W)
    view(host).copy_(new)
    view(card).copy_(new.to(DEVICE) if of_card else new)
    assert_same(card, host)
    view(host).copy_(new.real)
    view(card).copy_(new.real.to(DEVICE) if of_card else new.real)
    assert_same(card, host)


def test_the_parts_are_views():
    host, card = Z.clone(), Z.to(DEVICE)
    for z in host, card:
        z.real[1] = 7
        z.imag[:, 2] = -3
        torch.view_as_real(z)[0, 0, 1] = 0.5
        assert z.real.data_ptr() == z.data_ptr() or z is card
        assert z.real._is_view() and z.imag._is_view()
    assert_same(card, host)
    real, imag = card.real, card.conj().imag
    card.fill_(2 - 1j)
    assert_same(real, torch.full((3, 5), 2.0))
    assert_same(imag.resolve_neg(), torch.full((3, 5), 1.0))
    card.conj().imag.fill_(4)
    assert_same(card, torch.full((3, 5), 2 - 4j))


def test_real_pairs_are_complex_numbers():
    parts = torch.view_as_real(Z).to(DEVICE)
    z = torch.view_as_complex(parts)
    assert_same(z, Z)
    z += 1
    assert_same(parts, torch.view_as_real(Z + 1))
    parts[0] = 0
    assert_same(z[0], torch.zeros(5, dtype=torch.complex64))
    with pytest.raises(RuntimeError, match="size 2"):
        torch.view_as_complex(torch.ones(3, device=DEVICE))
    with pytest.raises(RuntimeError, match="unresolved conjugated"):
        torch.view_as_real(z.conj())


#: c() brings a tensor of the host to where it is computed.
OPERATIONS = {
    "add": lambda c: c(Z) + c(W), "add a real": lambda c: c(Z) + c(W.real),
    "a real and a number": lambda c: c(Z.real) * 2j, "a number": lambda c: 1j - c(Z),
    "alpha": lambda c: torch.add(c(Z), c(W), alpha=1 - 2j),
    "rsub": lambda c: torch.rsub(c(Z), c(W), alpha=2),
    "mul": lambda c: c(Z) * c(W), "conj mul": lambda c: c(Z).conj() * c(W),
    "div": lambda c: c(Z) / c(W), "pow": lambda c: c(Z) ** 2, "abs": lambda c: c(Z).abs(),
    "angle": lambda c: c(Z).angle(), "exp": lambda c: c(Z).exp(), "sqrt": lambda c: c(Z).sqrt(),
    "tanh": lambda c: c(Z).tanh(), "sigmoid": lambda c: c(Z).sigmoid(), "neg": lambda c: -c(Z),
    "sgn": lambda c: c(Z).sgn(), "reciprocal": lambda c: c(Z).reciprocal(),
    "addcmul": lambda c: torch.addcmul(c(Z), c(W), c(Z), value=0.5j),
    "lerp": lambda c: torch.lerp(c(Z), c(W), 0.25), "isnan": lambda c: c(Z).isnan(),
    "isfinite": lambda c: (c(Z) / c(Z.real * 0)).isfinite(), "isinf": lambda c: c(Z).isinf(),
    "eq": lambda c: c(Z) == c(Z).conj(), "ne": lambda c: c(Z) != 1j,
    "sum": lambda c: c(Z).sum(0), "mean": lambda c: c(Z).mean(), "prod": lambda c: c(Z).prod(1),
    "norm": lambda c: torch.linalg.vector_norm(c(Z), dim=1), "all": lambda c: c(Z).all(),
    "cumsum": lambda c: c(Z).cumsum(0), "var": lambda c: c(Z).var(),
    "matmul": lambda c: c(Z) @ c(W).t(), "conj matmul": lambda c: c(Z) @ c(W).mH,
    "bmm": lambda c: c(Z)[None] @ c(W).mT[None], "addmm": lambda c: torch.addmm(
        c(Z) @ c(W).mH, c(Z), c(W).mH, beta=1j),
    "vdot": lambda c: torch.vdot(c(Z)[0], c(W)[0]), "mv": lambda c: c(Z) @ c(W)[0],
    "einsum": lambda c: torch.einsum("ij,kj->ik", c(Z), c(W).conj()),
    "where": lambda c: torch.where(c(Z.real > 0), c(Z), c(W)), "cat": lambda c: torch.cat(
        (c(Z), c(W.real), c(W).conj())),
    "stack": lambda c: torch.stack((c(Z), c(W).conj())), "repeat": lambda c: c(Z).repeat(2, 3),
    "index": lambda c: c(Z)[c(torch.tensor([2, 0]))], "flip": lambda c: c(Z).flip(0),
    "roll": lambda c: torch.fft.fftshift(c(Z)), "masked_fill": lambda c: c(Z).masked_fill(
        c(Z.real > 0), 1j),
    "complex": lambda c: torch.complex(c(Z.real), c(Z.imag)), "polar": lambda c: torch.polar(
        c(Z.real.abs()), c(Z.imag)),
    "conj": lambda c: c(Z).conj().resolve_conj(), "conj_physical": lambda c: c(Z).conj_physical(),
    "imag of conj": lambda c: c(Z).conj().imag + 1, "to complex": lambda c: c(Z.real).to(Z.dtype),
    "to real": lambda c: c(Z).to(torch.float32), "to bool": lambda c: c(Z).to(torch.bool),
    "to half": lambda c: c(Z.conj()).to(torch.float16),
    "zeros_like": lambda c: torch.zeros_like(c(Z)), "ones": lambda c: torch.ones_like(c(Z)),
    "inv": lambda c: torch.linalg.inv(c(Z)[:, :3]), "svd": lambda c: torch.linalg.svdvals(c(Z)),
    "fft": lambda c: torch.fft.fft(c(Z)), "fft of reals": lambda c: torch.fft.fft(c(Z.real)),
    "fftn": lambda c: torch.fft.fftn(c(Z.real), dim=(0, 1)).real,
    "rfft": lambda c: torch.fft.rfft(c(Z.real)), "irfft": lambda c: torch.fft.irfft(c(Z), 7),
    "hfft": lambda c: torch.fft.hfft(c(Z)), "ifft2": lambda c: torch.fft.ifft2(c(Z).conj()),
    "stft": lambda c: torch.stft(c(Z.real.reshape(15)), 4, window=c(torch.ones(4)),
                                 return_complex=True),
    "istft": lambda c: torch.istft(torch.stft(c(Z.real.reshape(15)), 4, window=c(torch.ones(4)),
                                   return_complex=True), 4, window=c(torch.ones(4))),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name):
    result = OPERATIONS[name](lambda x: x.to(DEVICE))
    assert result.device.type == DEVICE
    assert_same(result, OPERATIONS[name](lambda x: x))


def test_in_place_and_out():
    for z in Z.clone(), Z.to(DEVICE):
        w, out = W.to(z.device), torch.empty(0, dtype=Z.dtype, device=z.device)
        z.conj().mul_(w).add_(1j)
        z[1].neg_()
        z.conj_physical_()
        torch.matmul(z, w.mH, out=out)
        absolute = torch.empty(0, device=z.device)
        torch.abs(out, out=absolute)
        part = torch.zeros(6, 10, dtype=Z.dtype, device=z.device)
        torch.mul(z, w, out=part[::2, ::2].conj().conj())
        with pytest.raises(RuntimeError, match="can't be cast"):
            torch.mul(z, w, out=absolute)
        result = z, out, absolute, part
        if z.device.type == "cpu":
            expected = result
    for have, want in zip(result[:3], expected[:3], strict=True):
        assert_same(have, want)
    # The CPU multiplies dense and strided numbers by different code, with other last bits.
    torch.testing.assert_close(part.cpu(), expected[3])


@pytest.mark.parametrize("name", ["fft", "rfft", "ifft", "fft2", "ihfft"])
def test_transforms_of_fp16(name):
    """The CPU has none of 16 bits: they are computed in fp32, and rounded once."""
    x = exact(4, 16)
    result = getattr(torch.fft, name)(x.to(DEVICE))
    assert result.dtype == torch.complex32 and result.real.dtype == torch.float16
    expected = getattr(torch.fft, name)(x.float())
    assert_near(result.real, expected.real, atol=2**-12)
    assert_near(result.imag, expected.imag, atol=2**-12)
    back = torch.fft.irfft(torch.fft.rfft(x.to(DEVICE)))
    assert back.dtype == torch.float16
    assert_near(back, x, atol=2**-7)


@pytest.mark.parametrize("name", ["mul", "add", "abs", "matmul", "exp", "sum"])
def test_arithmetic_of_complex32(name):
    z = numbers(4, 4, dtype=torch.complex32)
    use = {
        "mul": lambda z: z * z.conj(), "add": lambda z: z + 1j, "abs": torch.abs,
        "matmul": lambda z: z @ z.mH, "exp": torch.exp, "sum": torch.sum,
    }[name]  # fmt: skip
    result, expected = use(z.to(DEVICE)), use(z.to(torch.complex64))
    assert result.dtype == (torch.float16 if name == "abs" else torch.complex32)
    parts = torch.view_as_real if result.is_complex() else lambda t: t
    assert_near(parts(result), parts(expected.resolve_conj()), steps=2, atol=2**-7)


def test_numbers_of_python():
    card = Z.to(DEVICE)
    assert card[1, 2].item() == Z[1, 2].item() and card.tolist() == Z.tolist()
    assert card.conj()[1, 2].item() == Z[1, 2].item().conjugate()
    assert str(card).replace(f", device='{card.device}'", "") == str(Z)
    assert "conj" not in repr(card.conj().cpu())
    assert_same(torch.tensor([1 + 2j, 3], device=DEVICE), torch.tensor([1 + 2j, 3]))
    assert_same(torch.full((2, 3), 1j, device=DEVICE), torch.full((2, 3), 1j))
    assert_same(torch.zeros(3, dtype=Z.dtype, device=DEVICE), torch.zeros(3, dtype=Z.dtype))
    torch.manual_seed(5)
    drawn = torch.randn(4, dtype=Z.dtype, device=DEVICE)
    torch.manual_seed(5)
    assert_same(drawn, torch.randn(4, dtype=Z.dtype))
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.zeros(3, device=DEVICE).fill_(1j)


def test_matmul_has_no_complex_derivative():
    """As PyTorch says of operations of its table; mm and bmm have one."""
    z = Z.to(DEVICE).requires_grad_()
    with pytest.raises(RuntimeError, match="complex"):
        z @ z.mH


def test_storages():
    card = Z.to(DEVICE)
    file = io.BytesIO()
    torch.save({"z": card, "part": card.t()[1:]}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded["z"].device == card.device
    assert_same(loaded["z"], Z)
    loaded["z"].zero_()
    assert_same(loaded["part"], torch.zeros(4, 3, dtype=Z.dtype))
    assert_same(copy.deepcopy(card), Z)
    card.resize_(4, 5)
    assert_same(card[:3], Z)
    assert_same(torch.empty_like(card.t()).copy_(card.t()), card.t())
    assert_same(card.view(torch.float32), torch.view_as_real(card).reshape(4, 10))


def test_derivatives():
    grads = []
    for device in "cpu", DEVICE:
        x = Z.real.clone().to(device).requires_grad_()
        z = W.clone().to(device).requires_grad_()
        y = torch.fft.fft(x) * z.conj()
        (y.real.sum() + y.imag.square().sum() + z.mm(z.mH).abs().sum()).backward()
        grads.append((x.grad.cpu(), z.grad.cpu()))
    for have, want in zip(*grads, strict=True):
        torch.testing.assert_close(have, want)


def mixed(x):
    """The mixing of tokens in FNet."""
    return torch.fft.fftn(x, dim=(-2, -1)).real * 0.5 + x


def filtered(x):
    spectrum = torch.fft.rfft(x)
    return torch.fft.irfft(spectrum * spectrum.conj().abs(), x.shape[-1]).relu() + 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("function", [mixed, filtered])
def test_compiled_is_eager(function, dtype):
    x = exact(2, 8, 16).to(dtype).to(DEVICE)
    torch._dynamo.reset()
    with torch.no_grad():
        assert_same(torch.compile(function)(x), function(x))


def test_complex_arguments_of_compiled_functions():
    z = Z.to(DEVICE)
    torch._dynamo.reset()
    with torch.no_grad():
        compiled = torch.compile(lambda z: (z * z.conj() + 1, z.real + 1, z.imag.relu()))
        for have, want in zip(compiled(z), (z * z.conj() + 1, z.real + 1, z.imag.relu())):
            assert_same(have, want)


def test_complex128_is_refused():
    for use in (
        lambda: Z.to(torch.complex128).to(DEVICE),
        lambda: torch.empty(3, dtype=torch.complex128, device=DEVICE),
        lambda: Z.to(DEVICE).to(torch.complex128),
    ):
        with pytest.raises(TypeError, match="complex64"):
            use()
