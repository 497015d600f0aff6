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

    def test_arrows_from_operations_to_the_card(self, tmp_path):
        """Each begins in the row of the operation that queued what it ends at."""
        self.run().export_chrome_trace(str(tmp_path / "trace.json"))
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        begins = {e["id"]: e for e in events if e["ph"] == "s" and e["cat"] == "ac2g"}
        ends = {e["id"]: e for e in events if e["ph"] == "f" and e["cat"] == "ac2g"}
        assert ends and begins.keys() == ends.keys()
        slices = [e for e in events if e["ph"] == "X"]

        def names_at(point, category):
            return {
                e["name"]
                for e in slices
                if e["cat"] in category
                and (e["pid"], e["tid"]) == (point["pid"], point["tid"])
                and e["ts"] <= point["ts"] <= e["ts"] + e["dur"]
            }

        origins = set()
        for key, end in ends.items():
            assert names_at(end, ("kernel", "gpu_memcpy", "gpu_memset"))
            assert begins[key]["ts"] <= end["ts"]
            origins |= names_at(begins[key], ("cpu_op",))
        assert {"aten::matmul", "aten::relu", "aten::_copy_from"} <= origins, origins

    def test_names_of_rows(self, tmp_path):
        """A process for each card, a thread for each of its streams."""
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
            for card in ("spyre:0", "spyre:1"):
                torch.ones(64, 64, device=card).neg().cpu()
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        named = [e for e in events if e["ph"] == "M"]
        for card in (0, 1):
            assert [e for e in named if e["pid"] == card and e["args"].get("name") == f"spyre:{card}"]
        rows = {(e["pid"], e["tid"]) for e in events if e.get("cat") == "kernel"}
        assert {pid for pid, tid in rows} == {0, 1}
        for pid, tid in rows:
            assert [e for e in named if (e["pid"], e["tid"]) == (pid, tid)
                    and e["args"].get("name") == f"stream {tid}"]  # fmt: skip

    def test_table(self):
        """Time of the card is charged to the operation that queued the work."""
        rows = {row.key: row for row in self.run().key_averages()}
        assert rows["aten::matmul"].device_time_total > 0
        assert rows["aten::matmul"].self_cpu_time_total > 0
        assert rows["spyre_launch"].self_cpu_time_total > 0
        kernel = next(row for row in rows.values() if "batchmatmul" in row.key)
        assert kernel.device_time_total == pytest.approx(rows["aten::matmul"].device_time_total)

    def test_shapes_stacks_and_schedule(self, tmp_path):
        """wait, warmup, active: a trace for each cycle, none of the rest in it."""
        seen = []

        def ready(prof):
            path = tmp_path / f"{len(seen)}.json"
            prof.export_chrome_trace(str(path))
            seen.append((prof.events(), json.loads(path.read_text())))

        x = exact(64, 32).to(DEVICE)
        with profile(
            activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1],
            schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2),
            on_trace_ready=ready,
            record_shapes=True,
            with_stack=True,
            profile_memory=True,
        ) as prof:
            for _ in range(9):
                x.relu().cpu()
                prof.step()
        assert len(seen) == 2
        for events, trace in seen:
            relus = [e for e in events if e.name == "aten::relu"]
            assert len(relus) == 2 and all(e.input_shapes == [[64, 32]] for e in relus)
            assert all(e.device_memory_usage > 0 for e in relus)
            kernels = [e for e in trace["traceEvents"] if e.get("cat") == "kernel"]
            assert len(kernels) == 2
            stacks = [e for e in trace["traceEvents"] if e.get("cat") == "python_function"]
            assert any("test_profiler.py" in e["name"] for e in stacks)

    def test_memory_timeline_rows(self):
        with profile(
            activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True
        ) as prof:
            x = torch.empty(1 << 18, device=DEVICE)
            del x
        sizes = [event.device_memory_usage for event in prof.events()]
        assert max(sizes) >= 1 << 20
        # Memory freed outside of an operation has a row of its own.
        assert min(sizes) <= -(1 << 20)

    def test_elapsed_time_is_wall_time(self):
        import time

        x = torch.ones(1536, 1536, dtype=torch.float16, device=DEVICE)
        x @ x
        torch.spyre.synchronize()
        start, end = (torch.Event(device=DEVICE, enable_timing=True) for _ in range(2))
        begin = time.perf_counter()
        start.record()
        x @ x
        end.record()
        end.synchronize()
        wall = (time.perf_counter() - begin) * 1000
        # The waits for events are outside of it, on a busy machine too.
        assert 0.3 * wall <= start.elapsed_time(end) <= wall + 0.1

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
