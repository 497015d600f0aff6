# SPDX-License-Identifier: MIT
"""The names that a renamed back end has in torch."""

import types

import pytest
import torch
from support import DEVICE, assert_same, exact, python_ok

from torch_spyre import _C


class TestBackendModule:
    def test_backend_module_name(self):
        assert torch._C._get_privateuse1_backend_name() == DEVICE
        torch.utils.rename_privateuse1_backend(DEVICE)
        with pytest.raises(RuntimeError, match="has already been set"):
            torch.utils.rename_privateuse1_backend("dev")

    def test_backend_module_registration(self):
        with pytest.raises(RuntimeError, match="Expected one of cpu"):
            torch._register_device_module("dev", types.ModuleType("dev"))
        with pytest.raises(RuntimeError, match="The runtime module of"):
            torch._register_device_module(DEVICE, types.ModuleType("spyre"))

    def test_backend_module_function(self):
        get = torch.utils.backend_registration._get_custom_mod_func
        with pytest.raises(RuntimeError, match="Try to call torch.spyre"):
            get("func_name_")
        assert get("device_count")() == 2

    def test_current_accelerator(self):
        assert torch.accelerator.current_accelerator() == torch.device(DEVICE)
        assert torch.accelerator.is_available()
        assert torch.get_device_module(DEVICE) is torch.spyre

    @pytest.mark.parametrize(
        "name",
        "is_available is_initialized init device_count current_device set_device device "
        "synchronize Stream Event stream current_stream default_stream set_stream manual_seed "
        "manual_seed_all seed seed_all initial_seed get_rng_state set_rng_state get_rng_state_all "
        "set_rng_state_all get_amp_supported_dtype get_device_properties get_device_name "
        "empty_cache mem_get_info memory_allocated max_memory_allocated memory_reserved "
        "max_memory_reserved memory_stats reset_peak_memory_stats reset_accumulated_memory_stats "
        "get_diagnostic_report memory".split(),
    )
    def test_module_surface(self, name):
        assert hasattr(torch.spyre, name)

    @pytest.mark.parametrize(
        "name",
        "SpyreTensorLayout DataFormats spyre_empty_with_layout empty_with_layout "
        "as_strided_with_layout reinterpret_tensor reinterpret_tensor_with_layout copy_tensor "
        "get_downcast_warning set_downcast_warning get_elem_in_stick get_device_dtype "
        "get_device_state has_stream_error encode_constant start_runtime free_runtime "
        "launch_kernel prepare_kernel launch_jobplan JobPlan get_spyre_tensor_layout "
        "set_spyre_tensor_layout program_cache_stats program_cache_clear "
        "_spyre_get_allocator_stats _spyre_reset_peak_stats "
        "_spyre_reset_accumulated_stats".split(),
    )
    def test_c_surface(self, name):
        import torch_spyre._C

        assert hasattr(torch_spyre._C, name)

    #: Arguments of functions of torch.accelerator.
    ARGUMENTS = {"device_index": (1,), "set_device_index": (0,), "set_device_idx": (0,)}

    @pytest.mark.filterwarnings("ignore:Use")
    @pytest.mark.parametrize("name", torch.accelerator.__all__)
    def test_accelerator_surface(self, name):
        """Each public name, called."""
        function = getattr(torch.accelerator, name)
        if name == "set_stream":
            before = torch.accelerator.current_stream()
            function(torch.Stream(device=DEVICE))
            assert torch.accelerator.current_stream() != before
            function(before)
        else:
            function(*self.ARGUMENTS.get(name, ()))

    @pytest.mark.parametrize("name", torch.accelerator.memory.__all__)
    def test_accelerator_memory_surface(self, name):
        getattr(torch.accelerator.memory, name)()
        getattr(torch.spyre.memory, name)()

    def test_diagnostic_report(self):
        report = torch.spyre.get_diagnostic_report()
        assert report and "spyre" in str(report).lower()

    def test_version_and_location_of_the_library(self):
        import torch_spyre

        assert torch_spyre.__version__


class TestBackendProperty:
    def test_backend_generate_methods(self):
        assert all(hasattr(torch.Tensor, name) for name in ("is_spyre", "spyre"))
        assert all(hasattr(torch.UntypedStorage, name) for name in ("is_spyre", "spyre"))
        assert hasattr(torch.nn.Module, "spyre")
        assert hasattr(torch.nn.utils.rnn.PackedSequence, "is_spyre")

    def test_backend_tensor_methods(self):
        x = torch.empty(4, 4)
        assert not x.is_spyre
        for place in (torch.device(DEVICE), torch.device("spyre:0"), 0):
            assert x.spyre(place).is_spyre
        assert x.spyre(1).device.index == 1

    def test_backend_module_methods(self):
        model = torch.nn.Linear(3, 3)
        model.spyre()
        assert model.weight.device.type == DEVICE

    def test_backend_packed_sequence_methods(self):
        packed = torch.nn.utils.rnn.PackedSequence(torch.rand(5, 3), torch.ones(5, dtype=int))
        assert not packed.is_spyre
        there = packed.spyre()
        assert there.is_spyre and there.data.is_spyre


class TestTensorType:
    @pytest.mark.parametrize(
        "dtype, name",
        [(torch.bool, "Bool"), (torch.float32, "Float"), (torch.half, "Half")]
        + [(torch.int32, "Int"), (torch.int64, "Long"), (torch.int8, "Char")]
        + [(torch.short, "Short"), (torch.uint8, "Byte"), (torch.bfloat16, "BFloat16")],
    )
    def test_backend_tensor_type(self, dtype, name):
        x = torch.empty(4, 4, dtype=dtype, device=DEVICE)
        assert x.type() == f"torch.spyre.{name}Tensor"

    def test_printing(self):
        assert "device='spyre:0'" in repr(torch.ones(20, device=DEVICE))
        assert "1.5000" in repr(torch.full((2, 2), 1.5, device=DEVICE))
        assert "grad_fn" in repr(torch.ones(2, device=DEVICE, requires_grad=True) * 2)


class TestUse:
    """Common operations that do not depend on the device."""

    def test_device_context_of_factories(self):
        with torch.device(DEVICE):
            assert torch.ones(3).is_spyre
            assert torch.nn.Linear(3, 4).weight.is_spyre

    def test_set_default_device(self):
        python_ok(
            "torch.set_default_device('spyre')\n"
            "assert (torch.ones(3) + torch.arange(3)).cpu().tolist() == [1, 2, 3]\n"
        )

    def test_numpy_says_what_to_do(self):
        with pytest.raises(TypeError, match="cpu"):
            exact(3).to(DEVICE).numpy()

    def test_tolist_item_bool_len(self):
        x = torch.tensor([1.0, 2.0, 3.0], device=DEVICE)
        assert x.tolist() == [1, 2, 3] and len(x) == 3
        assert x[1].item() == 2.0 and bool(x[0]) and float(x[2]) == 3.0
        assert int(torch.tensor(7, device=DEVICE)) == 7
        assert torch.tensor(True, device=DEVICE).item() is True

    def test_iteration(self):
        rows = list(exact(3, 5).to(DEVICE))
        assert_same(torch.stack(rows), exact(3, 5))

    def test_training_step(self):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(10, 20), torch.nn.ReLU(), torch.nn.Linear(20, 1)
        )
        twin = torch.nn.Sequential(
            torch.nn.Linear(10, 20), torch.nn.ReLU(), torch.nn.Linear(20, 1)
        )
        twin.load_state_dict(model.state_dict())
        twin.to(DEVICE)
        x, y = torch.randn(32, 10), torch.randn(32, 1)
        losses = []
        for net, device in ((model, "cpu"), (twin, DEVICE)):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for _ in range(5):
                optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(net(x.to(device)), y.to(device))
                loss.backward()
                optimizer.step()
            losses.append(loss.item())
        assert losses[1] == pytest.approx(losses[0], rel=1e-2)


class TestRuntime:
    """torch_spyre._C, for programs that know the card."""

    def test_states_and_free_runtime(self):
        python_ok(
            "from torch_spyre import _C\n"
            "State = _C.SpyreDeviceState\n"
            "assert _C.get_device_state() == State.NotInitialized\n"
            "_C.start_runtime()\n"
            "assert _C.get_device_state() == State.Ok and not _C.has_stream_error()\n"
            "x = torch.ones(3, device='spyre')\n"
            "_C.free_runtime()\n"
            "assert _C.get_device_state() == State.NotInitialized\n"
            "try:\n"
            "    x + x\n"
            "    raise SystemExit('memory outlived its card')\n"
            "except RuntimeError as error:\n"
            "    assert 'lost' in str(error), error\n"
            "assert torch.ones(3, device='spyre').sum().item() == 3\n"
        )

    @pytest.fixture
    def bundle(self, tmp_path):
        """A bundle on disk that adds two tensors of fp16 into a third."""
        x = exact(40, 70).to(DEVICE)
        size, stride = list(x.shape), list(x.stride())
        operand, _, _ = _C._view_operand(size, stride, x.dtype, size, stride, 0)
        graph = _C._Graph()
        inputs = [graph.add_argument(operand, 0) for _ in range(2)]
        graph.add_op("add", [], inputs, graph.add_argument(operand, 0))
        graph.write(str(tmp_path))
        return str(tmp_path)

    def test_launch_kernel(self, bundle):
        x, y = exact(40, 70).to(DEVICE), exact(40, 70, seed=1).to(DEVICE)
        z = torch.empty_like(x)
        _C.launch_kernel(bundle, [x, y, z])
        assert_same(z, x + y)
        with pytest.raises(RuntimeError, match="ARGUMENT_MISMATCH"):
            _C.launch_kernel(bundle, [x, z])
        with pytest.raises(RuntimeError, match="spyre:1"):
            _C.launch_kernel(bundle, [x, y.to("spyre:1"), z])
        with pytest.raises(RuntimeError, match="(?i)format"):
            _C.launch_kernel(bundle, [x, y.float(), z])
        with pytest.raises(RuntimeError, match="40|device_size"):
            _C.launch_kernel(bundle, [x, y[:39].clone(), z])
        with pytest.raises(RuntimeError, match="contiguous"):
            _C.launch_kernel(bundle, [x, y.flatten()[::2], z])

    def test_job_plan(self, bundle):
        """Loaded once, launched often; a reset of the card ends it."""
        x = exact(40, 70).to(DEVICE)
        z = torch.empty_like(x)
        plan = _C.prepare_kernel(bundle, torch.spyre.current_stream())
        assert (plan.num_steps, plan.get_step_type(0)) == (1, "Compute")
        assert plan.job_allocation_size > 0 and plan.directory == bundle
        assert plan.get_step_name(0) == plan.name
        for ask in plan.get_step_type, plan.get_step_name:
            with pytest.raises(IndexError):
                ask(1)
        _C.launch_jobplan(plan, [x, x, z])
        _C.launch_jobplan(plan, [x, z, z])
        assert_same(z, x + (x + x))
        other = _C.prepare_kernel(bundle, torch.Stream(device="spyre:1"))
        with pytest.raises(RuntimeError, match="spyre:1"):
            _C.launch_jobplan(other, [x, x, z])

    def test_allocator_stats(self):
        x = torch.ones(1000, device=DEVICE)
        stats = _C._spyre_get_allocator_stats()
        assert stats["allocated_bytes.all.current"] >= x.nbytes
        assert stats["allocation.all.current"] >= 1
        del x
        _C._spyre_reset_peak_stats()
        stats = _C._spyre_get_allocator_stats()
        assert stats["allocated_bytes.all.peak"] == stats["allocated_bytes.all.current"]
