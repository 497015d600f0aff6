# SPDX-License-Identifier: MIT
"""Selected operations: results, device and fallbacks. test_opinfo.py checks values over all
samples and dtypes."""

import warnings

import pytest
import torch
from support import DEVICE, assert_near, assert_same, dl16, exact, python_ok


def fallback_warnings(work):
    """Operations that ran on the CPU meanwhile, by the warnings of a fresh process."""
    code = (
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        f"    {work}\n"
        "    torch.spyre.synchronize()\n"
        "print([str(w.message) for w in caught if 'aten::' in str(w.message)])\n"
    )
    return eval(python_ok(code))  # noqa: S307  (our own list of strings)


class TestFactory:
    def test_empty(self):
        x = torch.empty([2, 3, 4, 5], device=DEVICE)
        assert x.device.type == DEVICE and x.shape == (2, 3, 4, 5)
        with torch._subclasses.fake_tensor.FakeTensorMode():
            x = torch.empty(3, 3, device=DEVICE) + torch.empty(3, 3, device="spyre:0")
            assert x.device.type == DEVICE and x.shape == (3, 3)

    @pytest.mark.parametrize(
        "dtype", [torch.float16, torch.float32, torch.bfloat16, torch.int64, torch.bool], ids=str
    )
    def test_values(self, dtype):
        for size in [(), (3,), (5, 70), (2, 3, 130)]:
            for make in (torch.zeros, torch.ones):
                assert_same(make(size, dtype=dtype, device=DEVICE), make(size, dtype=dtype))
            assert_same(
                torch.full(size, 1, dtype=dtype, device=DEVICE), torch.full(size, 1, dtype=dtype)
            )
        x = torch.empty(4, 70, dtype=dtype, device=DEVICE)
        assert_same(torch.ones_like(x), torch.ones(4, 70, dtype=dtype))
        assert_same(x.new_ones(3, 3), torch.ones(3, 3, dtype=dtype))
        assert_same(x.new_zeros(3, 3), torch.zeros(3, 3, dtype=dtype))
        assert_same(torch.full_like(x, 1), torch.ones(4, 70, dtype=dtype))

    def test_tensor(self):
        assert torch.tensor((), device=DEVICE).shape == (0,)
        assert_same(torch.tensor([[1, 2], [3, 4]], device=DEVICE), torch.tensor([[1, 2], [3, 4]]))
        assert_same(torch.arange(100, device=DEVICE), torch.arange(100))
        assert_same(torch.eye(5, device=DEVICE), torch.eye(5))

    def test_empty_strided(self):
        x = torch.empty_strided((3, 4), (1, 3), device=DEVICE)
        assert x.stride() == (1, 3)
        assert_same(x.copy_(torch.arange(12.0).view(3, 4)), torch.arange(12.0).view(3, 4))


class TestCopy:
    def test_cross_device_copy(self):
        a = torch.rand(10)
        assert_same(a.to(DEVICE).add(2).cpu(), a + 2)

    def test_cross_diff_devices_copy(self):
        assert_same(torch.ones(10, device="spyre:0").to("spyre:1"), torch.ones(10))


class TestOps:
    def test_masked_select(self):
        x = torch.randn(10)
        assert_same(x.to(DEVICE).masked_select(x.to(DEVICE) > 0), x.masked_select(x > 0))

    def test_expand(self):
        x = torch.tensor([[1], [2], [3]], device=DEVICE)
        assert x.expand(3, 2).data_ptr() == x.data_ptr()
        assert_same(x.expand(3, 2), torch.tensor([[1, 1], [2, 2], [3, 3]]))

    def test_resize(self):
        x = torch.randn(4, 4).spyre()
        assert x.storage().size() == 16
        x.resize_(2, 2, 2, 2)
        assert x.shape == (2, 2, 2, 2) and x.storage().size() == 16

    def test_local_scalar_dense(self):
        assert torch.tensor([5.0], device=DEVICE).item() == 5.0

    def test_out_arguments(self):
        x, y = exact(5, 70).to(DEVICE), exact(5, 70, seed=1).to(DEVICE)
        out = torch.empty(5, 70, dtype=torch.float16, device=DEVICE)
        assert torch.add(x, y, out=out) is out
        assert_same(out, x + y)
        wide = torch.zeros(5, 140, dtype=torch.float16, device=DEVICE)
        torch.mul(x, y, out=wide[:, 64:134])
        assert_same(wide[:, 64:134], x * y)
        assert wide[:, :64].cpu().eq(0).all() and wide[:, 134:].cpu().eq(0).all()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            small = torch.empty(0, dtype=torch.float16, device=DEVICE)
            assert_same(torch.add(x, y, out=small), x + y)

    def test_dispatch_of_abs_to_strided_outputs(self):
        host, device = torch.randn(2, 2, 6), None
        device = host.to(DEVICE)
        x = torch.randn(2, 2, 3)
        torch.abs(x, out=host[:, :, 0:6:2])
        torch.abs(x.to(DEVICE), out=device[:, :, 0:6:2])
        assert_same(device, host)

    @pytest.mark.parametrize(
        "shapes",
        [((5, 70), (70,)), ((5, 70), (5, 1)), ((5, 1), (1, 70)), ((2, 3, 4, 65), (3, 1, 65))]
        + [((), (5, 70)), ((1,), (5, 70)), ((2, 1, 130), (4, 1))],
        ids=str,
    )
    @pytest.mark.parametrize("op", [torch.add, torch.mul, torch.maximum, torch.gt])
    def test_broadcasting(self, op, shapes):
        a, b = (exact(*shape, dtype=torch.float32, seed=i) for i, shape in enumerate(shapes))
        assert_same(op(a.to(DEVICE), b.to(DEVICE)), op(a, b))

    def test_numbers_of_python(self):
        x = exact(5, 70, dtype=torch.float32)
        for work in (
            lambda t: t + 1,
            lambda t: 3 - t,
            lambda t: t * 0.5,
            lambda t: 1 / (t.abs() + 1),
            lambda t: torch.add(t, t, alpha=3),
            lambda t: torch.sub(t, 2, alpha=0.5),
            lambda t: t.clamp(-0.5, 0.5),
            lambda t: t.pow(2),
            lambda t: t > 0.25,
            lambda t: torch.where(t > 0, t, 0.0),
        ):
            assert_near(work(x.to(DEVICE)), work(x), steps=1e-3)

    def test_type_promotion(self):
        kinds = [torch.float16, torch.float32, torch.bfloat16, torch.int32, torch.int64, torch.bool]
        for a in kinds:
            for b in kinds:
                x, y = torch.ones(3, dtype=a), torch.ones(3, dtype=b)
                result = x.to(DEVICE) * y.to(DEVICE)
                assert_same(result, x * y)

    def test_int64_is_exact_to_32_bits(self):
        """The path through fp32 would have 24 bits."""
        x = torch.tensor([2**31 - 2, -(2**31) + 1, 2**24 + 1, -7])
        for work in (
            lambda t: t + 1,
            lambda t: -t,
            lambda t: t * 1,
            lambda t: torch.maximum(t, -t),
            lambda t: t.max(),
            lambda t: t.eq(2**24 + 1),
            lambda t: t.abs(),
        ):
            assert_same(work(x.to(DEVICE)), work(x))

    def test_nan_and_infinity(self):
        x = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0])
        for work in (torch.abs, torch.exp, torch.relu, torch.neg, torch.sigmoid, torch.isnan):
            assert_same(work(x.to(DEVICE)).isnan(), work(x).isnan())
        assert_same(torch.maximum(x.to(DEVICE), torch.zeros(6, device=DEVICE)), x.clamp(min=0.0))

    def test_matmul_shapes(self):
        for a, b in [((3, 4), (4, 5)), ((1, 64), (64, 1)), ((5,), (5,)), ((3, 5), (5,))] + [
            ((5,), (5, 3)),
            ((2, 3, 100), (100, 7)),
            ((4, 2, 3, 65), (2, 65, 9)),
            ((1, 5, 130), (6, 130, 4)),
        ]:
            x, y = exact(*a), exact(*b, seed=1)
            product = x.to(DEVICE) @ y.to(DEVICE)
            assert_near(product, x.float() @ y.float(), steps=1, atol=1e-5)

    def test_matmul_after_an_operation_that_dirties_padding(self):
        """exp(0) = 1 in the lanes behind the last column must not reach a product's sums."""
        x, y = exact(5, 70), exact(70, 3, seed=1)
        expected = dl16(x.float().exp()) @ y.float()
        assert_near(x.to(DEVICE).exp() @ y.to(DEVICE), expected, steps=2, atol=1e-2)
        expected = y.float().t() @ dl16(x.float().exp()).t()
        assert_near(y.to(DEVICE).t() @ x.to(DEVICE).exp().t(), expected, steps=2, atol=1e-2)
        ones = torch.zeros(4, 3, dtype=torch.float16, device=DEVICE).exp()
        assert_same(ones.sum(1), torch.full((4,), 3.0, dtype=torch.float16))
        assert_same(ones.amax(), torch.tensor(1.0, dtype=torch.float16))
        assert_same((-ones).amin(1), torch.full((4,), -1.0, dtype=torch.float16))
        assert_same((-ones).amax(1), torch.full((4,), -1.0, dtype=torch.float16))

    def test_no_elements(self):
        x = torch.empty(0, 5, device=DEVICE)
        assert (x + 1).shape == (0, 5)
        assert_same(x.sum(), torch.tensor(0.0))
        assert_same(torch.empty(3, 0, device=DEVICE) @ torch.empty(0, 4, device=DEVICE), torch.zeros(3, 4))
        assert torch.cat([x, x]).shape == (0, 5)

    def test_convolution(self):
        x, w = exact(2, 3, 8, 8), exact(4, 3, 3, 3, seed=1)
        expected = torch.nn.functional.conv2d(x.float(), w.float(), padding=1)
        actual = torch.nn.functional.conv2d(x.to(DEVICE), w.to(DEVICE), padding=1)
        assert_near(actual, expected, steps=2, atol=1e-3)


class TestQuantization:
    def test_quantize(self):
        x = torch.randn(3, 4, device=DEVICE)
        quantized = torch.quantize_per_tensor(x, 0.1, 10, torch.qint8)
        assert quantized.dtype == torch.qint8 and quantized.device.type == DEVICE


class TestFallback:
    def test_scalar_type_fallback(self):
        assert_same(torch.triu_indices(3, 3, device=DEVICE), torch.triu_indices(3, 3))

    def test_tensor_type_fallback(self):
        x = torch.tensor([[1.0, 2, 3], [2, 3, 4]], device=DEVICE)
        y = torch.tensor([1, 0], device=DEVICE)
        assert_same(x[y, y], torch.tensor([3.0, 1.0]))

    def test_tensorlist_type_fallback(self):
        v = torch.tensor([1.0, 2, 3], device=DEVICE)
        for result in torch._foreach_add((v, v), (v, v)):
            assert_same(result, torch.tensor([2.0, 4, 6]))

    def test_views_as_fallback_arguments(self):
        """In and out of the CPU with strides and offsets, in place, too."""
        host, device = exact(6, 130, dtype=torch.float32), None
        device = host.to(DEVICE)
        assert_same(device.t()[3:90].cummax(0).values, host.t()[3:90].cummax(0).values)
        device[1:, 5:70].asinh_()
        host[1:, 5:70].asinh_()
        assert_same(device, host)
        out = torch.zeros(6, 300, device=DEVICE)
        expected = torch.zeros(6, 300)
        torch.atan(device, out=out[:, 7:137])
        torch.atan(host, out=expected[:, 7:137])
        assert_same(out, expected)

    def test_one_warning_per_operation(self):
        texts = fallback_warnings("x = torch.ones(3, device='spyre'); [x.atan() for _ in range(3)]; x.asinh()")
        assert len([text for text in texts if "aten::atan" in text]) == 1
        assert len([text for text in texts if "aten::asinh" in text]) == 1
        assert all("CPU" in text for text in texts)

    @pytest.mark.parametrize(
        "work",
        [
            "x + x", "x - x", "x * x", "x / x", "torch.maximum(x, x)", "torch.minimum(x, x)",
            "x.abs()", "x.neg()", "x.exp()", "x.abs().log()", "x.abs().sqrt()", "x.rsqrt()",
            "x.reciprocal()", "x.tanh()", "x.floor()", "x.ceil()", "x.sign()", "(x > 0).logical_not()",
            "~(x > 0)", "(x > 0) & (x < 1)", "x.clamp(0, 1)", "x.pow(2)", "torch.where(x > 0, x, x)",
            "x == x", "x != x", "x >= x", "x <= x", "x.sum(-1)", "x.mean(-1)", "x.amax(-1)",
            "x.amin(-1)", "x.sum()", "x.max()", "x.min()", "torch.linalg.vector_norm(x)",
            "x.softmax(-1)", "torch.nn.functional.layer_norm(x, (64,))",
            "torch.nn.functional.rms_norm(x, (64,))", "torch.nn.functional.silu(x)", "x.relu()",
            "x.sigmoid()", "torch.nn.functional.softplus(x)", "torch.nn.functional.gelu(x)",
            "torch.nn.functional.mish(x)", "x @ x", "torch.addmm(x, x, x)", "torch.bmm(x[None], x[None])",
            "torch.nn.functional.linear(x, x, x[0])",
            "torch.nn.functional.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None])",
            "x.t().contiguous()", "x.clone()", "torch.cat([x, x])", "torch.stack([x, x])",
            "x.repeat(2, 1)", "x.unbind()", "x.unfold(0, 2, 1).clone()", "x.fill_(3)", "x.zero_()",
            "x[0, 0].item()", "torch.ones(64, 64, device='spyre')",
        ],
    )
    def test_runs_on_the_card(self, work):
        """The operations of the public table are the card's own, in half precision."""
        x = torch.ones(64, 64, device=DEVICE, dtype=torch.float16)
        with torch.spyre.no_fallbacks():
            eval(work, {"torch": torch, "x": x})  # noqa: S307  (the list above)
            torch.spyre.synchronize()


class TestAutogradFunction:
    def test_custom_function(self):
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                return x * 2

            @staticmethod
            def backward(context, gradient):
                return gradient * 2

        x = torch.ones(4, device=DEVICE, requires_grad=True)
        Double.apply(x).sum().backward()
        assert_same(x.grad, torch.full((4,), 2.0))
