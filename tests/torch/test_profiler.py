# SPDX-License-Identifier: MIT
"""torch.autograd.profiler by ProfilerStubs; torch.profiler with rows of the card."""

import json

import pytest
import torch
from support import DEVICE, exact
from torch.autograd.profiler import profile as autograd_profile
from torch.profiler import ProfilerActivity, profile, record_function


def names(prof):
    return [event.name for event in prof.function_events]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(10, 20), torch.nn.Linear(20, 10)

    def forward(self, x):
        return self.second(self.first(x).relu())


class TestProfiler:
    def test_profiler_basic(self):
        with autograd_profile(use_device=DEVICE) as prof:
            x = exact(10, 10).to(DEVICE)
            x + x
        assert "aten::add" in names(prof)

    def test_profiler_with_record_function(self):
        with autograd_profile(use_device=DEVICE) as prof:
            with record_function("outer"), record_function("inner"):
                x = exact(10, 10).to(DEVICE)
                torch.mm(x, x)  # "@" is one operation of the card, aten::matmul
        assert {"outer", "inner", "aten::mm"} <= set(names(prof))

    def test_profiler_multiple_streams(self):
        x = exact(10, 10).to(DEVICE)
        with autograd_profile(use_device=DEVICE) as prof:
            for op in (torch.add, torch.mul):
                with torch.Stream(device=DEVICE):
                    op(x, x)
        assert {"aten::add", "aten::mul"} <= set(names(prof))

    def test_profiler_event_synchronization(self):
        with autograd_profile(use_device=DEVICE) as prof:
            event = torch.Event(device=DEVICE, enable_timing=True)
            event.record()
            event.synchronize()
            torch.ones(3, device=DEVICE) + 1
        assert names(prof)

    def test_profiler_key_averages_and_table(self):
        x = exact(10, 10).to(DEVICE)
        with autograd_profile(use_device=DEVICE, record_shapes=True) as prof:
            for _ in range(10):
                x + x
        (row,) = [row for row in prof.key_averages() if row.key == "aten::add"]
        assert row.count == 10 and row.cpu_time_total > 0
        assert "aten::add" in prof.key_averages().table(sort_by="cpu_time_total", row_limit=10)
        assert len(prof.key_averages(group_by_input_shape=True)) > 0

    def test_profiler_exception_handling(self):
        with pytest.raises(KeyError):
            with autograd_profile(use_device=DEVICE) as prof:
                torch.ones(3, device=DEVICE) + 1
                raise KeyError("mine")
        assert "aten::add" in names(prof)

    def test_profiler_empty_operations(self):
        with autograd_profile(use_device=DEVICE) as prof:
            pass
        assert isinstance(prof.function_events, list)

    def test_profiler_large_number_of_events(self):
        x = exact(10, 10).to(DEVICE)
        with autograd_profile(use_device=DEVICE) as prof:
            for i in range(100):
                with record_function(f"op_{i}"):
                    x = x + 1
        assert len({name for name in names(prof) if name.startswith("op_")}) == 100

    def test_profiler_multiple_devices(self):
        with autograd_profile(use_device=DEVICE) as prof:
            for device in ("spyre:0", "spyre:1"):
                torch.ones(3, device=device) + 1
        assert names(prof).count("aten::add") == 2

    def test_profiler_with_training_step(self):
        model = Model().to(DEVICE)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        with autograd_profile(use_device=DEVICE, record_shapes=True) as prof:
            with record_function("forward"):
                loss = model(torch.ones(4, 10, device=DEVICE)).square().mean()
            with record_function("backward"):
                loss.backward()
            with record_function("step"):
                optimizer.step()
        assert {"forward", "backward", "step"} <= set(names(prof))


class TestActivities:
    """Rows of the card through Kineto: kernels and copies, in the table and in the trace."""

    def run(self):
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
            x = exact(256, 256).to(DEVICE)
            (x @ x).relu().cpu()
            torch.spyre.synchronize()
        return prof

    def test_alias(self):
        from torch._C._autograd import DeviceType

        assert ProfilerActivity.SPYRE == ProfilerActivity.PrivateUse1
        assert DeviceType.SPYRE == DeviceType.PrivateUse1

    def test_device_rows(self):
        prof = self.run()
        rows = [e for e in prof.events() if e.device_type == torch.autograd.DeviceType.PrivateUse1]
        assert len(rows) >= 4, [e.name for e in prof.events()]
        assert all(row.time_range.elapsed_us() >= 0 for row in rows)
        text = " ".join(row.name.lower() for row in rows)
        assert "matmul" in text or "mm" in text
        assert "htod" in text or "h2d" in text

    def test_chrome_trace(self, tmp_path):
        prof = self.run()
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        kinds = {event.get("cat") for event in events}
        assert "kernel" in kinds and "gpu_memcpy" in kinds and "cpu_op" in kinds, kinds
        kernel = next(event for event in events if event.get("cat") == "kernel")
        assert kernel["dur"] > 0

    def test_device_time_lies_within_the_profile(self):
        """One clock: the rows of the card lie between the first and the last of the CPU."""
        prof = self.run()
        card = [e for e in prof.events() if e.device_type == torch.autograd.DeviceType.PrivateUse1]
        cpu = [e for e in prof.events() if e.device_type == torch.autograd.DeviceType.CPU]
        assert min(e.time_range.start for e in card) >= min(e.time_range.start for e in cpu)

    def test_memory(self):
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
            torch.empty(1 << 16, device=DEVICE)
        assert any(
            event.name == "aten::empty" and event.device_memory_usage >= 1 << 18
            for event in prof.events()
        )
