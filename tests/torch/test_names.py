# SPDX-License-Identifier: MIT
"""The names of torch-spyre: a program that uses them runs here as well."""

import importlib
import warnings

import pytest
import torch
import torch_spyre
from support import DEVICE, assert_near, assert_same, exact, python_ok
from torch import nn
from torch.nn import functional

HALF = torch.float16
FP8 = torch.float8_e4m3fn

#: Names by the module in which torch-spyre has them.
NAMES = {
    "torch.spyre": "_is_compiled _is_in_bad_fork _lazy_init current_device current_stream "
    "default_stream device_count get_amp_supported_dtype get_diagnostic_report get_rng_state "
    "initial_seed is_available is_initialized manual_seed manual_seed_all memory set_device "
    "set_rng_state stream Stream synchronize _spyre_get_allocator_stats "
    "_spyre_reset_accumulated_stats _spyre_reset_peak_stats get_downcast_warning "
    "set_downcast_warning SpyreTensorLayout DataFormats ElementArrangement copy_tensor "
    "encode_constant launch_jobplan prepare_kernel",
    "torch.spyre.memory": "empty_cache empty_host_cache memory_allocated max_memory_allocated "
    "memory_reserved max_memory_reserved memory_stats reset_accumulated_memory_stats "
    "reset_peak_memory_stats",
    "torch_spyre.constants": "DEVICE_NAME DISTRIBUTED_BACKEND_NAME",
    "torch_spyre.memory": "memory_allocated memory_stats",
    "torch_spyre.model_utils": "load_model_to_spyre patch_module_to_for_spyre",
    "torch_spyre.ops.fallbacks": "FallbackWarning warn_fallback",
    "torch_spyre.profiler": "get_diagnostic_report",
    "torch_spyre.streams": "Stream stream current_stream default_stream synchronize",
    "torch_spyre.version": "__version__",
    "torch_spyre._inductor": "spyre_hint",
    "torch_spyre._inductor.errors": "Unsupported",
    "torch_spyre._C": "DataFormats JobPlan ElementArrangement SpyreStreamError SpyreDeviceState "
    "SpyreTensorLayout _SpyreStreamBase current_stream default_stream get_device_state "
    "get_stream_from_pool set_current_stream stream_get_error stream_get_error_string synchronize "
    "as_strided_with_layout empty_with_layout copy_tensor fill_tensor encode_constant free_runtime "
    "get_device_dtype get_downcast_warning get_elem_in_stick get_spyre_tensor_layout "
    "launch_jobplan prepare_kernel set_downcast_warning set_spyre_tensor_layout spyre_empty_with_layout "
    "start_runtime to_with_layout reinterpret_tensor reinterpret_tensor_with_layout manual_seed "
    "manual_seed_all get_rng_state set_rng_state initial_seed _get_default_generator device_count "
    "set_device current_device _spyre_get_allocator_stats _spyre_reset_accumulated_stats "
    "_spyre_reset_peak_stats",
}


FORMATS = (
    "SEN169_FP16 IEEE_FP32 INVALID SEN143_FP8 SEN152_FP8 SEN153_FP9 SENINT2 SENINT4 SENINT8 "
    "SENINT16 SENINT24 IEEE_INT64 IEEE_INT32 SENUINT32 SENUINT2 IEEE_FP16 BOOL BFLOAT16 SEN18F_FP24"
)


#: torch.ops.spyre: arguments by name.
OPERATIONS = {
    "softplus": "input beta threshold",
    "layer_norm": "x normalized_shape weight bias eps",
    "exx2": "x exx2Scale useZeroMean",
    "layernormscale": "x eps",
    "layernormnorm": "x mean norm_mean weight bias",
    "rms_norm": "x normalized_shape weight eps",
    "topkvalue": "x k dim",
    "topkindex": "x k dim",
    "gelu": "input approximate",
    "silu": "input",
    "clamp": "input min max",
    "empty": "size device dtype",
    "logical_not": "input",
    "copy_from_d2d": "src dst src_off dst_off",
    "copy_forced": "src dst",
    "opaque_copy_": "value acc",
    "overwrite": "input output dims offsets",
    "overwrite_f": "input output dims offsets",
    "restickify": "x",
    "max_dim_int64_fallback": "input dim keepdim",
    "min_dim_int64_fallback": "input dim keepdim",
    "max_default_int64_fallback": "input",
    "unfold": "input kernel_size dilation padding stride",
    "reshape_via_cpu": "input shape",
    "batched_matmul": "x y",
    "conv2d": "input weight stride padding dilation groups",
    "conv2d_with_bias": "input weight bias stride padding dilation groups",
    "constant": "fill_value dtype device",
    "to_dtype_cpu": "input dtype",
    "qfp8ch": "input",
    "quantize_fp8_with_scale": "input scale",
    "dequantize_fp8_with_scale": "input scale",
    "scaled_mm": "mat1 mat2 out_dtype",
    "quantize_weight_fp8_with_scale": "input scale",
    "qfp8wt": "input",
    "causal_mask": "seqlen_q seqlen_kv dtype device",
    "stagger_to_standard_ea": "x",
    "prod_dim_int": "input dim keepdim",
    "broadcast_async": "input src_rank group_name",
    "all_gather_async": "input group_size group_name",
    "all_reduce_async": "input reduce_op group_name",
    "wait_work": "tensor",
}


def spyre(name):
    return getattr(torch.ops.spyre, name)


class TestOperations:
    @pytest.mark.parametrize("name", OPERATIONS)
    def test_operation_takes_these_arguments(self, name):
        arguments = spyre(name).default._schema.arguments
        assert " ".join(argument.name for argument in arguments) == OPERATIONS[name]


class TestPresence:
    @pytest.mark.parametrize("module", NAMES)
    def test_names_of_a_module(self, module):
        where = torch.spyre if module == "torch.spyre" else None
        where = torch.spyre.memory if module == "torch.spyre.memory" else where
        where = where or importlib.import_module(module)
        assert [name for name in NAMES[module].split() if not hasattr(where, name)] == []

    def test_formats(self):
        assert set(FORMATS.split()) <= set(torch_spyre.DataFormats.__members__)

    def test_names_that_are_nowhere(self):
        """A probe of the device module, as PyTorch makes, is answered with no."""
        assert not hasattr(torch.spyre, "no_such_name")
        assert not hasattr(torch.spyre, "_default_generator")

    def test_constants(self):
        constants = importlib.import_module("torch_spyre.constants")
        version = importlib.import_module("torch_spyre.version")
        assert constants.DEVICE_NAME == DEVICE
        assert constants.DISTRIBUTED_BACKEND_NAME == "spyreccl"
        assert version.__version__ == torch_spyre.__version__


def image(seed=0):
    return exact(2, 4, 8, 8, seed=seed)


#: Operations as calls of others: name, arguments, and the same by PyTorch's names.
SAME = [
    ("softplus", lambda: (exact(4, 70), 2.0, 1.0), functional.softplus),
    ("gelu", lambda: (exact(4, 70), "tanh"), lambda x, how: functional.gelu(x, approximate=how)),
    ("silu", lambda: (exact(4, 70),), functional.silu),
    ("clamp", lambda: (exact(4, 70), -0.5, 1.0), torch.clamp),
    ("clamp", lambda: (exact(4, 70), None, 1.0), torch.clamp),
    ("logical_not", lambda: (exact(4, 70).round(),), lambda x: torch.logical_not(x).half()),
    ("layer_norm", lambda: (exact(4, 70), [70], exact(70), exact(70)), functional.layer_norm),
    ("rms_norm", lambda: (exact(4, 70), [70], exact(70), 1e-3), functional.rms_norm),
    ("topkvalue", lambda: (exact(4, 70), 3, 1), lambda *a: torch.topk(*a)[0]),
    ("topkindex", lambda: (exact(4, 70), 3, 1), lambda *a: torch.topk(*a)[1].half()),
    (
        "max_dim_int64_fallback",
        lambda: (exact(4, 70, dtype=torch.int64), 1, True),
        lambda x, d, k: torch.max(x, d, k)[0],
    ),
    (
        "min_dim_int64_fallback",
        lambda: (exact(4, 70, dtype=torch.int64), 0),
        lambda x, d: torch.min(x, d)[0],
    ),
    ("max_default_int64_fallback", lambda: (exact(4, 70, dtype=torch.int64),), torch.max),
    ("prod_dim_int", lambda: (exact(4, 5, 70), 1, True), torch.prod),
    ("batched_matmul", lambda: (exact(2, 4, 70), exact(2, 70, 8, seed=1)), torch.matmul),
    (
        "conv2d",
        lambda: (image(), exact(8, 4, 3, 3, seed=1), [1, 1], [1, 1], [1, 1], 1),
        lambda x, w, *window: functional.conv2d(x, w, None, *window),
    ),
    (
        "conv2d_with_bias",
        lambda: (image(), exact(8, 2, 3, 3, seed=1), exact(8), [2, 2], [1, 1], [1, 1], 2),
        functional.conv2d,
    ),
    (
        "unfold",
        lambda: (image(), [3, 3], None, [1, 1]),
        lambda x, size, dilation, padding: functional.unfold(x, size, padding=padding),
    ),
    ("reshape_via_cpu", lambda: (exact(4, 70), [7, 40]), torch.reshape),
    ("to_dtype_cpu", lambda: (exact(4, 70), torch.float32), lambda x, to: x.to(to)),
    ("restickify", lambda: (exact(4, 70),), torch.clone),
    ("stagger_to_standard_ea", lambda: (exact(4, 64),), torch.clone),
    ("opaque_copy_", lambda: (exact(4, 70), exact(4, 70, seed=1)), lambda x, y: x),
]


def moved(arguments):
    return [x.to(DEVICE) if torch.is_tensor(x) else x for x in arguments]


class TestArithmetic:
    @pytest.mark.filterwarnings("ignore::torch_spyre.ops.fallbacks.FallbackWarning")
    @pytest.mark.parametrize("name, arguments, other", SAME)
    def test_is_the_operation_of_pytorch(self, name, arguments, other):
        arguments = moved(arguments())
        result = spyre(name)(*arguments)
        result = result[0] if isinstance(result, (tuple, list)) else result
        assert result.device.type == DEVICE
        assert_same(result, other(*arguments))
        assert result.data_ptr() != arguments[0].data_ptr()

    @pytest.mark.parametrize(
        "name, arguments",
        [
            ("exx2", (1.0, False)),
            ("layernormscale", (1e-5,)),
        ],
    )
    def test_steps_of_layer_norm_name_the_whole(self, name, arguments):
        from torch_spyre._inductor.errors import Unsupported

        with pytest.raises(Unsupported, match="use torch.ops.spyre.layer_norm"):
            spyre(name)(exact(4, 64).to(DEVICE), *arguments)

    def test_empty_and_constant(self):
        made = torch.ops.spyre.empty([3, 4], torch.device(DEVICE), HALF)
        assert made.shape == (3, 4) and made.dtype == HALF and made.device.type == DEVICE
        assert torch.ops.spyre.constant(2.5, HALF, torch.device(DEVICE)) == 2.5

    def test_causal_mask(self):
        mask = torch.ops.spyre.causal_mask(4, 6, HALF, torch.device(DEVICE))
        expected = torch.full((1, 1, 4, 6), -torch.inf, dtype=HALF).triu(1)
        assert mask.device.type == DEVICE
        assert_same(mask, expected)

    def test_autograd_goes_through(self):
        x = exact(4, 64, dtype=torch.float32).to(DEVICE).requires_grad_()
        torch.ops.spyre.rms_norm(x, [64]).sum().backward()
        given = x.grad.clone()
        x.grad = None
        functional.rms_norm(x, [64], None, 1e-5).sum().backward()
        assert_same(given, x.grad)

    def test_compiled_equals_eager(self, said):
        def f(x, w):
            return torch.ops.spyre.gelu(torch.ops.spyre.layer_norm(x, [64], w)) + x

        x, w = exact(8, 64).to(DEVICE), exact(64, seed=1).to(DEVICE)
        assert_same(torch.compile(f, fullgraph=True)(x, w), f(x, w))
        assert "0 eager operations" in said()


class TestCopies:
    @pytest.mark.parametrize("device", ["cpu", DEVICE])
    @pytest.mark.parametrize(
        "size, part, dims, offsets",
        [
            ((8, 4, 64), (1, 4, 64), [0], [3]),
            ((4, 8, 64), (4, 2, 64), [1], [5]),
            ((8, 8, 64), (1, 1, 64), [0, 1], [7, 2]),
            ((4, 150), (4, 20), [-1], [63]),
        ],
    )
    def test_overwrite(self, device, size, part, dims, offsets):
        cache, token = exact(*size), exact(*part, seed=1)
        view = expected = cache.clone()
        for dim, offset in zip(dims, offsets):
            view = view.narrow(dim, offset, part[dim])
        view.copy_(token)
        given = cache.clone().to(device)
        made = torch.ops.spyre.overwrite_f(token.to(device), given, dims, offsets)
        assert_same(made, expected)
        assert_same(given, cache)
        assert torch.ops.spyre.overwrite(token.to(device), given, dims, offsets) is None
        assert_same(given, expected)

    def test_overwrite_of_what_is_not_there(self):
        cache, token = exact(8, 4).to(DEVICE), exact(1, 4).to(DEVICE)
        with pytest.raises((RuntimeError, IndexError)):
            torch.ops.spyre.overwrite(token, cache, [0], [8])
        with pytest.raises(ValueError):
            torch.ops.spyre.overwrite(token, cache, [0], [1, 2])

    def test_overwrite_of_many_slots_compiled(self, said):
        def f(token, cache, slot):
            torch.ops.spyre.overwrite(token, cache, [0], [slot])
            return torch.ops.spyre.overwrite_f(token + 1, cache, [0], [slot + 1]).sum()

        cache, reference = exact(16, 64).to(DEVICE), exact(16, 64).to(DEVICE)
        compiled = torch.compile(f, fullgraph=True)
        for slot in (3, 7, 11):
            token = exact(1, 64, seed=slot).to(DEVICE)
            assert_same(compiled(token, cache, slot), f(token, reference, slot))
            assert_same(cache, reference)

    def test_copies(self):
        source, target = exact(6, 64).to(DEVICE), torch.zeros(6, 64, dtype=HALF, device=DEVICE)
        torch.ops.spyre.copy_forced(source, target)
        assert_same(target, source)
        target.zero_()
        torch.ops.spyre.copy_from_d2d(source[2:4], target[:2], 128, 0)
        assert_same(target[:2], source[2:4])
        torch.ops.spyre.copy_from_d2d(source[:2], target[:2], 256, 128)
        assert_same(target[2:4], source[4:6])

    def test_elements_in_another_order(self):
        from torch_spyre._C import ElementArrangement, SpyreTensorLayout

        layout = SpyreTensorLayout([4, 64], HALF)
        other = layout.with_element_arrangement(ElementArrangement.FP32_TO_DL16)
        assert other.element_arrangement == ElementArrangement.FP32_TO_DL16
        assert other.device_size == layout.device_size and other != layout
        x = torch.empty(4, 64, dtype=HALF, device=DEVICE, device_layout=other)
        assert x.device_tensor_layout() == other
        with pytest.raises(RuntimeError, match="arrangement"):
            x.copy_(exact(4, 64))

    def test_empty_with_all_arguments(self):
        layout = torch_spyre.SpyreTensorLayout([4, 64], [64, 1], HALF, [1, 0])
        given = {"dtype": HALF, "device": DEVICE, "device_layout": layout}
        for more in (
            {"memory_format": torch.contiguous_format, "pin_memory": False},
            {"layout": torch.strided, "out": None},
        ):
            assert torch.empty([4, 64], **given, **more).device_tensor_layout() == layout
        with pytest.raises(RuntimeError, match="memory format"):
            torch.empty([4, 64], **given, memory_format=torch.channels_last)
        with pytest.raises(RuntimeError, match="pin"):
            torch.empty([4, 64], **given, pin_memory=True)
        with pytest.raises(TypeError):
            torch.empty(4, size=[4, 64], **given)

    def test_to_with_the_layout_that_it_has(self):
        x = exact(4, 64).to(DEVICE)
        layout = x.device_tensor_layout()
        assert x.to(device_layout=layout) is x
        assert x.to(DEVICE, device_layout=layout, copy=True) is not x
        assert x[:2].to(device_layout=torch_spyre.SpyreTensorLayout([2, 64], HALF)).shape == (2, 64)


def fp8_of(x):
    return x.clamp(-448, 448).to(FP8)


class TestFp8:
    @pytest.mark.parametrize("name", ["qfp8ch", "qfp8wt"])
    @pytest.mark.parametrize("device", ["cpu", DEVICE])
    def test_rounds_and_saturates(self, name, device):
        x = torch.cat([exact(500) * 100, torch.tensor([500.0, -1e4, 0.0, 1e-4, 465, 447])]).half()
        made = spyre(name)(x.to(device))
        assert made.dtype == FP8 and made.device.type == device
        expected = fp8_of(x.to(device).cpu())
        assert torch.equal(made.cpu().view(torch.uint8), expected.view(torch.uint8))

    @pytest.mark.parametrize("name", ["quantize_fp8_with_scale", "quantize_weight_fp8_with_scale"])
    def test_there_and_back(self, name):
        x, scale = (exact(2, 4, 96) * 10).half().to(DEVICE), exact(2, 4, 1, seed=1).abs().to(DEVICE)
        made = spyre(name)(x, scale)
        expected = fp8_of((x * scale.reciprocal()).cpu())
        assert torch.equal(made.cpu().view(torch.uint8), expected.view(torch.uint8))
        back = torch.ops.spyre.dequantize_fp8_with_scale(made, scale)
        assert back.dtype == HALF
        assert_same(back, expected.half().to(DEVICE) * scale)

    @pytest.mark.parametrize("out", [None, torch.float32, torch.bfloat16])
    def test_product(self, out):
        a, b = exact(8, 128).to(FP8), exact(128, 16, seed=1).to(FP8)
        made = torch.ops.spyre.scaled_mm(a.to(DEVICE), b.to(DEVICE), out)
        assert made.dtype == (out or HALF)
        assert_near(made, a.float() @ b.float(), steps=4)

    @pytest.mark.parametrize("out", [torch.float32, HALF])
    def test_scaled_mm_of_pytorch(self, out):
        a, b = exact(8, 128).to(FP8), exact(16, 128, seed=1).to(FP8).t()
        rows, columns = exact(8, 1, dtype=torch.float32), exact(1, 16, dtype=torch.float32)
        bias = exact(16, seed=2).to(out)
        with torch.spyre.no_fallbacks():
            made = torch._scaled_mm(*moved((a, b, rows, columns, bias)), out_dtype=out)
        assert made.dtype == out and made.device.type == DEVICE
        assert_near(made, a.float() @ b.float() * rows * columns + bias.float(), 1, atol=2e-3)


class Own(nn.Module):
    """A module that decides itself how it is moved."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64)
        self.seen = 0

    def _apply(self, function, recurse=True):
        self.seen += 1
        return super()._apply(function, recurse)


class TestModels:
    def model(self):
        return nn.Sequential(
            nn.Embedding(100, 128), nn.Linear(128, 192), nn.LayerNorm(192), nn.Linear(192, 10)
        )

    def test_layouts(self):
        from torch_spyre.model_utils import load_model_to_spyre

        model = self.model().requires_grad_(False)
        assert load_model_to_spyre(model, HALF) is model
        sizes = [p.device_tensor_layout().device_size for p in model.parameters()]
        assert sizes[0] == [100, 2, 64]  # rows of the table side by side
        assert sizes[1] == [3, 128, 64]  # sticks of out_features
        assert sizes[2] == [3, 64]
        assert not any(p.requires_grad or p.dtype != HALF for p in model.parameters())
        weight = model[1].weight
        assert load_model_to_spyre(model)[1].weight is weight

    def test_results_are_those_of_to(self):
        from torch_spyre.model_utils import load_model_to_spyre

        plain, loaded = self.model(), self.model()
        loaded.load_state_dict(plain.state_dict())
        index = torch.arange(12).to(DEVICE)
        with torch.no_grad():
            assert_same(
                load_model_to_spyre(loaded, HALF)(index), plain.to(DEVICE, HALF)(index)
            )

    def test_tied_weights_integers_and_own_modules(self):
        from torch_spyre.model_utils import load_model_to_spyre

        own = Own()
        model = nn.ModuleList([nn.Embedding(64, 64), nn.Linear(64, 64, bias=False), own])
        model[1].weight = model[0].weight
        model.register_buffer("positions", torch.arange(4))
        load_model_to_spyre(model, torch.bfloat16)
        assert model[1].weight is model[0].weight
        assert model[1].weight.device.type == DEVICE
        assert model.positions.dtype == torch.int64 and model.positions.device.type == DEVICE
        assert own.seen == 1 and own.linear.weight.dtype == torch.bfloat16

    def test_dtype_that_the_card_lacks(self):
        from torch_spyre.model_utils import load_model_to_spyre

        with pytest.raises(TypeError, match="float32"):
            load_model_to_spyre(nn.Linear(2, 2), torch.float64)

    def test_patched_to(self):
        """In a process of its own: the method stays patched."""
        python_ok("""
from torch_spyre.model_utils import patch_module_to_for_spyre
patch_module_to_for_spyre()
patched = torch.nn.Module.to
patch_module_to_for_spyre()
assert torch.nn.Module.to is patched
model = torch.nn.Linear(128, 192).to("spyre", torch.float16)
assert model.weight.device_tensor_layout().device_size == [3, 128, 64]
assert torch.nn.Linear(2, 2).to(torch.float64).weight.dtype == torch.float64
assert torch.nn.Linear(2, 2).to("meta").weight.device.type == "meta"
""")


class TestStreams:
    def test_streams(self):
        C = torch_spyre._C
        device = torch.device(DEVICE, 0)
        stream = C.get_stream_from_pool(device, -1)
        assert isinstance(stream, C._SpyreStreamBase) and stream.priority == -1
        before = C.set_current_stream(stream)
        assert before == C.default_stream(device)
        assert C.current_stream(device).id == stream.id
        assert C.set_current_stream(before) == stream
        x = torch.spyre.fill_tensor(torch.empty(4, dtype=HALF, device=device), 2.0)
        C.synchronize(device)
        C.synchronize()
        assert x.tolist() == [2.0] * 4

    def test_state(self):
        C = torch_spyre._C
        stream = torch.spyre.current_stream()
        assert C.stream_get_error(stream) == C.SpyreStreamError.Success
        assert C.stream_get_error_string(C.SpyreStreamError.Success) == "no error"
        assert "reset" in C.stream_get_error_string(C.SpyreStreamError.Shutdown)

    def test_state_of_a_faulted_card(self):
        """The time limit of an operation ends it, and the streams refuse work until a reset."""
        out = python_ok(
            """
from torch_spyre import _C
stream = torch.spyre.current_stream()
try:
    x = torch.ones(2048, 2048, device="spyre")
    for _ in range(50):
        x = x @ x
    torch.spyre.synchronize()
except RuntimeError:
    pass
print(_C.stream_get_error(stream).name)
torch.spyre.reset()
print(_C.stream_get_error(stream).name)
""",
            SPYRE_TIMEOUT_MS=1,
        )
        assert out.split() == ["Shutdown", "Success"]


class TestGenerators:
    def test_generators(self):
        C = torch_spyre._C
        C.manual_seed(7)
        assert C.initial_seed() == torch.spyre.initial_seed() == 7
        assert torch.spyre.initial_seed("spyre:0") == C._get_default_generator(0).initial_seed()
        torch.spyre.manual_seed(8, 1)
        assert C.initial_seed(1) == torch.spyre.initial_seed(1) == 8
        assert C.initial_seed(0) == 7
        state = C.get_rng_state(0)
        drawn = torch.rand(4, device="spyre:0")
        C.set_rng_state(state, 0)
        assert_same(torch.rand(4, device="spyre:0"), drawn)
        C.manual_seed_all(9)
        assert [C.initial_seed(index) for index in range(C.device_count())] == [9, 9]


class TestStatistics:
    def test_allocator(self):
        torch.spyre._spyre_reset_peak_stats(0)
        torch.spyre._spyre_reset_accumulated_stats(device=0)
        before = torch.spyre._spyre_get_allocator_stats(0)
        x = torch.empty(1 << 20, dtype=HALF, device="spyre:0")
        after = torch.spyre._spyre_get_allocator_stats(device=0)
        grown = after["allocated_bytes.all.current"] - before["allocated_bytes.all.current"]
        assert grown >= x.nbytes
        assert after["allocation.all.current"] == before["allocation.all.current"] + 1
        assert after["allocation.all.allocated"] >= 1

    def test_cards(self):
        C = torch_spyre._C
        assert C.device_count() == torch.spyre.device_count() == 2
        C.set_device(1)
        assert C.current_device() == torch.spyre.current_device() == 1
        C.set_device(0)
        with pytest.raises(RuntimeError):
            C.set_device(2)


class TestWarnings:
    def test_category_of_fallbacks(self):
        """A filter by category, which is how programs silence fallbacks."""
        out = python_ok("""
import warnings
from torch_spyre.ops.fallbacks import FallbackWarning, warn_fallback
x = torch.ones(4, device="spyre")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    x.atan()
    x.atan()
print([(w.category.__name__, w.filename.endswith("fallbacks.py")) for w in caught])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warnings.simplefilter("ignore", FallbackWarning)
    x.asinh()
print(len(caught))
warnings.simplefilter("error", FallbackWarning)
try:
    x.tril()
except FallbackWarning as warning:
    print(warning)
except RuntimeError as error:
    print("as", type(error), error)
""")
        lines = out.splitlines()
        assert lines[0] == "[('FallbackWarning', False)]"
        assert lines[1] == "0"
        assert "tril" in lines[2] or "triu" in lines[2]

    def test_warn_fallback(self):
        from torch_spyre.ops.fallbacks import FallbackWarning, warn_fallback

        with pytest.warns(FallbackWarning, match="spyre: mine runs on the CPU") as caught:
            warn_fallback("mine")
        assert issubclass(FallbackWarning, UserWarning)
        assert caught[0].filename == __file__

    def test_downcast_warning(self):
        assert torch.spyre.get_downcast_warning() is True
        torch.spyre.set_downcast_warning(False)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.ones(2, dtype=torch.int64).to(DEVICE)
        torch.spyre.set_downcast_warning(True)


class TestEnvironment:
    def test_local_rank(self):
        """Each process of a group begins with its own card, in each of its threads."""
        code = """
import threading
seen = [torch.spyre.current_device()]
thread = threading.Thread(target=lambda: seen.append(torch.ones(1, device="spyre").device.index))
thread.start()
thread.join()
print(seen)
"""
        for rank, card in (("1", 1), ("2", 0), ("one", 0)):
            assert python_ok(code, LOCAL_RANK=rank).strip() == str([card, card])

    def test_ignored_hints(self):
        code = """
from torch_spyre._inductor import spyre_hint
def f(x):
    with spyre_hint(work_div={0: 2}, num_tiles_per_dim={"A": 4}, slices={"B": 2}):
        return x + 1
print(torch.compile(f)(torch.ones(64, 64, device="spyre")).sum().item())
"""
        assert python_ok(code, SPYRE_INDUCTOR_IGNORE_HINTS=1).strip() == "8192.0"


class TestHints:
    def test_other_names_of_tiles(self):
        from torch_spyre._inductor import spyre_hint

        for name in ("tiles", "num_tiles_per_dim", "slices"):
            with spyre_hint(**{name: {"A": 4}}):
                pass
            with pytest.raises(ValueError, match=name):
                spyre_hint(**{name: {"A": 0}})


class TestCollectives:
    @pytest.fixture
    def group(self, tmp_path):
        torch.distributed.init_process_group(
            "gloo",
            store=torch.distributed.FileStore(str(tmp_path / "store"), 1),
            rank=0,
            world_size=1,
        )
        yield
        torch.distributed.destroy_process_group()

    def test_without_a_group(self):
        with pytest.raises(RuntimeError, match="init_process_group"):
            torch.ops.spyre.broadcast_async(exact(4).to(DEVICE), 0, "default")

    def test_alone(self, group):
        x = exact(4, 6).to(DEVICE)
        wait = torch.ops.spyre.wait_work
        made = wait(torch.ops.spyre.broadcast_async(x, 0, "default"))
        assert made.data_ptr() != x.data_ptr()
        assert_same(made, x)
        assert_same(wait(torch.ops.spyre.all_gather_async(x, 1)), x)
        assert wait(torch.ops.spyre.all_reduce_async(x)) is x
        with pytest.raises(RuntimeError, match="out of range"):
            torch.ops.spyre.broadcast_async(x, 1, "default")
        with pytest.raises(RuntimeError, match="world size"):
            torch.ops.spyre.all_gather_async(x, 2)
        with pytest.raises(RuntimeError, match="sum"):
            torch.ops.spyre.all_reduce_async(x, "max")

    def test_two_processes(self, tmp_path):
        """Each process has its own card."""
        code = """
import sys
import torch.distributed as dist
from torch.multiprocessing import spawn
def work(rank, path):
    dist.init_process_group("gloo", store=dist.FileStore(path, 2), rank=rank, world_size=2)
    x = torch.full((2, 3), float(rank + 1), device="spyre")
    ops = torch.ops.spyre
    assert ops.wait_work(ops.broadcast_async(x, 1, "default")).tolist() == [[2.0] * 3] * 2
    gathered = ops.wait_work(ops.all_gather_async(x, 2))
    assert gathered.tolist() == [[1.0] * 3] * 2 + [[2.0] * 3] * 2
    ops.wait_work(ops.all_reduce_async(x))
    assert x.tolist() == [[3.0] * 3] * 2
    dist.destroy_process_group()
"""
        run = "import both\nif __name__ == '__main__':\n    both.spawn(both.work, (STORE,), 2)\n"
        (tmp_path / "both.py").write_text("import torch, torch_spyre\n" + code)
        script = run.replace("STORE", repr(str(tmp_path / "store")))
        python_ok(f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n" + script)
