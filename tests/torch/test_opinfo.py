# SPDX-License-Identifier: MIT
"""Every supported operation and dtype against the CPU, on the samples of torch's OpInfo.

The reference is computed on the CPU from what the card holds: half-precision
inputs as DL16 keeps them, in fp32, the result rounded to DL16. SPYRE_OPINFO_SAMPLES
is how many samples each case takes at most, evenly spread (12).
"""

import os
import warnings
from math import isfinite

import torch
from support import DL16_STEP, dl16
from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase
from torch.utils._pytree import tree_flatten, tree_map

SAMPLES = int(os.environ.get("SPYRE_OPINFO_SAMPLES", "12"))
DTYPES = (torch.float16, torch.float32, torch.bfloat16, torch.int64, torch.bool)

# Operations of the public table and those that fall back, by their names in OpInfo.
EXACT = set(
    """abs neg floor ceil sign logical_not bitwise_not clamp clamp_min clamp_max maximum minimum
    add sub mul bitwise_and bitwise_or bitwise_xor logical_and logical_or eq ne gt lt ge le where
    nn.functional.relu relu max_reduction_no_dim max_reduction_with_dim min_reduction_no_dim
    min_reduction_with_dim max min amax amin argmax argmin topk isin isnan
    t permute cat repeat unbind unfold reshape view transpose clone contiguous squeeze unsqueeze
    flatten split split_with_sizes expand narrow select stack chunk diagonal as_strided view_as
    expand_as movedim swapaxes unflatten tril triu index_copy index_select gather masked_fill fill
    zero_ ones_like zeros_like full_like ones zeros full new_ones new_zeros new_full empty_like
    item any all sort argsort masked_scatter nn.functional.pad nn.functional.embedding arange flip roll
    tile constant_pad_nd
    nn.functional.threshold nn.functional.hardtanh nn.functional.relu6""".split()
)
# Elementwise: one rounding of an fp32 function that is right to about one ulp.
ROUNDED = set(
    """exp log sqrt rsqrt reciprocal tanh sigmoid nn.functional.silu nn.functional.softplus
    nn.functional.gelu nn.functional.mish nn.functional.leaky_relu div true_divide pow square sin
    cos erf fmod remainder expm1 log1p""".split()
)
# Sums: the order of the additions and the roundings in between are the card's.
SUMMED = set(
    """mm matmul addmm bmm baddbmm mv addmv dot nn.functional.linear nn.functional.conv2d softmax log_softmax
    nn.functional.layer_norm nn.functional.rms_norm nn.functional.scaled_dot_product_attention sum
    mean linalg.vector_norm norm cumsum cumprod prod var std nn.functional.mse_loss addcmul addcdiv lerp""".split()
)
# Operations that return the places of elements in an order.
PLACES = {"topk", "sort", "argsort"}
# Shapes and dtypes without defined numbers.
UNDEFINED = {"empty_like"}

supported = [op for op in op_db if op.name in EXACT | ROUNDED | SUMMED and op.variant_test_name == ""]
supported += [
    op
    for op in op_db
    if op.variant_test_name and op.name in {"max", "min", "clamp", "add", "div", "softmax", "norm"}
]


def tolerance(op, dtype):
    """rtol, atol against an fp32 reference of the same inputs."""
    step = {torch.float16: DL16_STEP, torch.bfloat16: 2.0**-8}.get(dtype, 2.0**-23)
    if not dtype.is_floating_point:
        step = 2.0**-23
    if op.name in EXACT:
        # fp16 results are rounded once: the reference is rounded, too.
        return (step, 0.0) if dtype in (torch.float16, torch.bfloat16) else (0.0, 0.0)
    if op.name in ROUNDED:
        return (step, 2.0**-24) if dtype != torch.float32 else (2.0**-21, 2.0**-24)
    return 4 * step, 16 * step


def has_form(sample):
    """The card has no float64 and no complex numbers (test_copy has the errors)."""
    things = tree_flatten((sample.input, sample.args, sample.kwargs))[0]
    dtypes = {getattr(x, "dtype", x) for x in things if isinstance(x, (torch.Tensor, torch.dtype))}
    return not dtypes & {torch.float64, torch.complex64, torch.complex128}


def samples_of(op, dtype):
    found = [s for s in op.sample_inputs("cpu", dtype, requires_grad=False) if has_form(s)]
    if len(found) <= SAMPLES:
        return found
    return [found[i * len(found) // SAMPLES] for i in range(SAMPLES)]


def on_card(thing, device):
    return tree_map(lambda x: x.to(device) if torch.is_tensor(x) else x, thing)


def as_card_keeps(thing):
    """Half precision as fp32 numbers that DL16 has; bfloat16 as fp32."""

    def keep(x):
        if not torch.is_tensor(x):
            return torch.float32 if x in (torch.float16, torch.bfloat16) else x
        if x.dtype == torch.float16:
            return x.copy_(dl16(x).to(torch.float16)).float()
        return x.float() if x.dtype == torch.bfloat16 else x

    return tree_map(keep, thing)


def widest(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def pick(x, dim, places):
    return x.gather(dim, places) if x.dim() else x.clone()


def tensors(thing):
    return [x for x in tree_flatten(thing)[0] if torch.is_tensor(x) or isinstance(x, (int, float))]


class TestConsistency(TestCase):
    def check(self, actual, expected, op, dtype):
        assert len(actual) == len(expected)
        rtol, atol = tolerance(op, dtype)
        for have, want in zip(actual, expected):
            if not torch.is_tensor(have):
                self.assertEqual(have, want, rtol=rtol, atol=atol)
                continue
            self.assertEqual(have.device.type, "spyre")
            self.assertEqual(have.shape, want.shape)
            have = have.cpu()
            # Sums that cancel: the error is relative to the summands.
            largest = want.double().abs().max().item() if op.name in SUMMED and want.numel() else 1
            if op.name in UNDEFINED:
                continue
            if have.dtype == torch.float16:
                want = dl16(want).to(torch.float16)
            elif have.dtype in (torch.bfloat16, torch.float32) and want.is_floating_point():
                want = want.to(have.dtype)
            self.assertEqual(have.dtype, want.dtype)
            torch.testing.assert_close(
                have.float() if have.dtype.is_floating_point else have,
                want.float() if want.dtype.is_floating_point else want,
                rtol=rtol,
                atol=atol * max(1, largest if isfinite(largest) else 1),
                equal_nan=True,
            )

    def compare(self, device, dtype, op, sample):
        inputs = (sample.input, sample.args, sample.kwargs)
        there = on_card(inputs, device)
        inputs = as_card_keeps(inputs)
        if op.name in ROUNDED and dtype.is_floating_point:
            # The CPU's functions of fp32 are wrong where they are small: gelu(-9).
            inputs = tree_map(widest, inputs)
        expected = op(inputs[0], *inputs[1], **inputs[2])
        kwargs = dict(there[2])
        if "device" in kwargs:
            kwargs["device"] = device
        actual = op(there[0], *there[1], **kwargs)
        actual, expected = tensors(actual), tensors(expected)
        if op.name in PLACES and not inputs[2].get("stable"):
            # The order of equal elements is undefined, so the values at the indices are compared.
            first = 1 if op.name == "topk" else 0
            dim = inputs[1][first] if len(inputs[1]) > first else inputs[2].get("dim", -1)
            actual[-1] = pick(there[0], dim, actual[-1])
            expected[-1] = pick(inputs[0], dim, expected[-1])
        self.check(actual, expected, op, dtype)

    @ops(supported, allowed_dtypes=DTYPES)
    def test_consistency(self, device, dtype, op):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cases = samples_of(op, dtype)
            if not cases:
                self.skipTest("OpInfo has no sample")
            for sample in cases:
                if op.is_factory_function or "device" in sample.kwargs:
                    sample.kwargs["device"] = "cpu"
                self.compare(device, dtype, op, sample)

    @ops([op for op in supported if op.supports_out], allowed_dtypes=(torch.float32,))
    def test_out(self, device, dtype, op):
        """out= is the same tensor, in its own memory, with the result in it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sample = next(iter(samples_of(op, dtype)), None)
            if sample is None:
                self.skipTest("OpInfo has no sample")
            there = on_card((sample.input, sample.args, sample.kwargs), device)
            kwargs = dict(there[2])
            if op.is_factory_function or "device" in kwargs:
                kwargs["device"] = device
            expected = op(there[0], *there[1], **kwargs)
            if not torch.is_tensor(expected):
                self.skipTest("more than one result")
            out = torch.empty_like(expected)
            address = out.data_ptr()
            assert op(there[0], *there[1], **kwargs, out=out) is out
            assert out.data_ptr() == address
            torch.testing.assert_close(out.cpu(), expected.cpu(), rtol=0, atol=0, equal_nan=True)

    @ops(
        [op for op in supported if not op.is_factory_function and op.name not in UNDEFINED],
        allowed_dtypes=(torch.float32,),
    )
    def test_noncontiguous_samples(self, device, dtype, op):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for sample in samples_of(op, dtype)[:4]:
                if "device" in sample.kwargs:
                    continue
                strided = sample.noncontiguous()
                dense = on_card((sample.input, sample.args, sample.kwargs), device)
                there = on_card((strided.input, strided.args, strided.kwargs), device)
                expected = tensors(op(dense[0], *dense[1], **dense[2]))
                for have, want in zip(tensors(op(there[0], *there[1], **there[2])), expected):
                    if torch.is_tensor(have):
                        torch.testing.assert_close(
                            have.cpu(), want.cpu(), rtol=0, atol=0, equal_nan=True
                        )


instantiate_device_type_tests(TestConsistency, globals(), only_for=("privateuse1",))
