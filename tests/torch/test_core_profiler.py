# SPDX-License-Identifier: MIT
"""torch.profiler: rows of the card, linked to the operations of the host."""

import json

import torch
import torch_spyre  # noqa: F401
from torch.profiler import ProfilerActivity, profile


def test_trace(tmp_path):
    host = torch.randn(256, 256)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
        card = host.to("spyre")
        part = card[:, 1:].contiguous()
        part.cpu()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    events = [event for event in json.loads(path.read_text())["traceEvents"] if "dur" in event]
    copies = [event for event in events if event.get("cat") == "gpu_memcpy"]
    assert {"Memcpy HtoD", "Memcpy DtoH"} <= {event["name"] for event in copies}
    operations = [event for event in events if event.get("cat") == "cpu_op"]
    begin = min(event["ts"] for event in operations)
    end = max(event["ts"] + event["dur"] for event in operations)
    for event in copies:
        assert event["args"]["cycles"] > 0 and event["args"]["bytes"] >= 256 * 255 * 4
        assert event["args"]["device"] == 0
        # The same clock as the host's operations.
        assert begin <= event["ts"] <= end + 1e6
    averages = {row.key: row for row in prof.key_averages()}
    assert averages["Memcpy HtoD"].count >= 1


def test_no_records_without_the_activity():
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        torch.randn(16).to("spyre")
    assert not [row for row in prof.key_averages() if row.key.startswith("Memcpy")]


def test_events_of_the_old_profiler():
    with torch.autograd.profiler.profile(use_device="spyre", use_kineto=False) as prof:
        torch.randn(64, 64).to("spyre").clone()
    assert "aten::clone" in {event.name for event in prof.function_events}
