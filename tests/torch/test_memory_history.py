# SPDX-License-Identifier: MIT
"""torch.spyre.memory's history and snapshots, read by PyTorch's own viewer of memory."""

import base64
import collections
import pickle
import re
import runpy
import sys
import threading

import pytest
import torch
from support import DEVICE, python_ok
from torch.cuda import _memory_viz

memory = torch.spyre.memory
MIB = 1 << 20


@pytest.fixture(autouse=True)
def off_afterwards():
    """No test leaves a history to the next one."""
    torch.accelerator.empty_cache()
    memory._record_memory_history(None)
    yield
    memory._record_memory_history(None)


def history(device=0):
    """The entries of a card but those of snapshots."""
    entries = memory._snapshot()["device_traces"][device]
    return [entry for entry in entries if entry["action"] != "snapshot"]


def actions(device=0):
    return [entry["action"] for entry in history(device)]


def names(frames):
    return [frame["name"] for frame in frames]


def statistic(name):
    return sum(torch.accelerator.memory_stats(i)[name] for i in range(2))


def viewer(monkeypatch, *arguments):
    """Runs python -m torch.cuda._memory_viz, in this process."""
    monkeypatch.setattr(sys, "argv", ["_memory_viz.py", *map(str, arguments)])
    runpy.run_module("torch.cuda._memory_viz", run_name="__main__")


def allocated_here(elements):
    return torch.empty(elements, dtype=torch.float16, device=DEVICE)


class TestViewer:
    @pytest.fixture
    def snapshots(self, tmp_path, monkeypatch):
        """Two files: with a tensor of 3 MiB that lives, and with another one of 20 MiB."""
        monkeypatch.setenv("HOME", str(tmp_path))
        script = tmp_path / ".cache" / "flamegraph.pl"
        script.parent.mkdir()
        script.write_text("#!/bin/sh\ncat\n")  # Otherwise the viewer downloads it.
        script.chmod(0o755)
        memory._record_memory_history()
        kept = allocated_here(3 * MIB // 2)
        allocated_here(1000)
        memory._dump_snapshot(tmp_path / "before.pickle")
        kept = kept, allocated_here(10 * MIB)
        memory._dump_snapshot(str(tmp_path / "after.pickle"))
        return tmp_path / "before.pickle", tmp_path / "after.pickle", kept

    def test_trace(self, snapshots, monkeypatch, capsys):
        viewer(monkeypatch, "trace", snapshots[1])
        text = capsys.readouterr().out
        assert ":3.0MiB]" in text and ":20.0MiB]" in text and "= cudaMalloc(" in text
        assert "del " in text and "# free completed for" in text

    def test_flame_graphs(self, snapshots, tmp_path, monkeypatch, capsys):
        """Bytes by stack: of segments, of all, and of those between two snapshots."""
        for command in ("segments", "memory"):
            viewer(monkeypatch, command, snapshots[0], "-o", tmp_path / "out")
            lines = (tmp_path / "out").read_text().splitlines()
            live = [line for line in lines if "allocated_here" in line]
            assert len(live) == 1 and live[0].endswith(f" {3 * MIB}"), lines
        # The command passes dicts where the function wants their segments.
        before, after = (pickle.loads(path.read_bytes())["segments"] for path in snapshots[:2])
        text = _memory_viz.compare(before, after)
        assert f" {20 * MIB}" in text and "only_before" not in text
        assert "only_after = []" not in capsys.readouterr().out

    def test_plots(self, snapshots, tmp_path, monkeypatch):
        for command in ("trace_plot", "segment_plot"):
            viewer(monkeypatch, command, snapshots[1], "-o", tmp_path / "out.html")
            page = (tmp_path / "out.html").read_text()
            data = base64.b64decode(re.search(r'"base64": "([^"]+)"', page).group(1))
            assert pickle.loads(data) == pickle.loads(snapshots[1].read_bytes())

    def test_statistics(self, snapshots, monkeypatch, capsys):
        """The viewer adds up what the allocator has counted."""
        data = memory._snapshot()
        segments = data["segments"]
        blocks = [block for segment in segments for block in segment["blocks"]]
        live = [block for block in blocks if block["state"] == "active_allocated"]
        assert sum(s["total_size"] for s in segments) == statistic("reserved_bytes.all.current")
        assert sum(b["size"] for b in live) == statistic("allocated_bytes.all.current")
        assert sum(b["size"] for b in blocks) == statistic("reserved_bytes.all.current")
        assert len(live) == statistic("allocation.all.current")
        total = sum(b["requested_size"] for b in live)
        assert total == statistic("requested_bytes.all.current")
        viewer(monkeypatch, "stats", snapshots[1])
        total = f"total_allocated: {_memory_viz.Bytes(total)}"
        assert total in _memory_viz.segsum(data) and total in capsys.readouterr().out


def test_history_adds_up():
    """Replayed, the history is the change of the allocator's statistics."""
    before = statistic("requested_bytes.all.current"), statistic("reserved_bytes.all.current")
    memory._record_memory_history()
    kept = [allocated_here(1000 * i) for i in range(1, 40)]
    del kept[::2]
    torch.accelerator.empty_cache()
    sign = {"alloc": (1, 0), "free_completed": (-1, 0), "segment_alloc": (0, 1)}
    sign["segment_free"] = (0, -1)
    found = history()
    requested = sum(e["size"] * sign.get(e["action"], (0, 0))[0] for e in found)
    reserved = sum(e["size"] * sign.get(e["action"], (0, 0))[1] for e in found)
    assert requested == statistic("requested_bytes.all.current") - before[0] > 0
    assert reserved == statistic("reserved_bytes.all.current") - before[1]
    assert [e["time_us"] for e in found] == sorted(e["time_us"] for e in found)


def test_off():
    """Without a history there are segments, but neither entries nor stacks."""
    kept = allocated_here(1000)
    memory._record_memory_history()
    memory._record_memory_history(None)
    allocated_here(1000)
    snapshot = memory._snapshot()
    assert snapshot["device_traces"] == [[], []]
    blocks = [block for s in snapshot["segments"] for block in [s, *s["blocks"]]]
    assert blocks and not any(block["frames"] for block in blocks) and kept.numel() == 1000


def test_ring_is_bounded():
    memory._record_memory_history(max_entries=7)
    for i in range(50):
        allocated_here(64 * i + 64)
    entries = memory._snapshot()["device_traces"][0]
    assert len(entries) == 7
    assert [e["size"] for e in entries if e["action"] == "alloc"][-1] == 50 * 128
    memory._record_memory_history(max_entries=3)
    assert len(memory._snapshot()["device_traces"][0]) == 3
    memory._record_memory_history(clear_history=True)
    assert not history()


def test_state_keeps_stacks_of_blocks():
    """enabled="state" has no history beyond one entry, but the stacks of live blocks."""
    memory._record_memory_history("state")
    kept = [allocated_here(1000) for _ in range(10)]
    snapshot = memory._snapshot()
    assert len(snapshot["device_traces"][0]) == 1
    blocks = [block for s in snapshot["segments"] for block in s["blocks"]]
    assert sum("allocated_here" in names(block["frames"]) for block in blocks) == len(kept)


@pytest.mark.parametrize("context", [None, "state", "alloc", "all"])
def test_contexts(context):
    memory._record_memory_history(context=context, stacks="python")
    kept = allocated_here(1024)
    allocated_here(2048)
    level = [None, "state", "alloc", "all"].index(context)
    entries = {entry["action"]: entry["frames"] for entry in history()}
    assert bool(entries["alloc"]) == (level >= 2)
    assert bool(entries["free_requested"]) == (level >= 3)
    segments = memory.memory_snapshot()
    live = [b for s in segments for b in s["blocks"] if b["requested_size"] == kept.nbytes]
    assert any("allocated_here" in names(block["frames"]) for block in live) == (level >= 1)


def test_frames_of_cpp():
    for stacks, has_cpp in (("python", False), ("all", True)):
        memory._record_memory_history(stacks=stacks, clear_history=True)
        allocated_here(1000)
        frames = next(e for e in history() if e["action"] == "alloc")["frames"]
        assert "allocated_here" in names(frames)
        assert any("::" in name for name in names(frames)) == has_cpp
        line = next(f for f in frames if f["name"] == "allocated_here")
        assert line["filename"] == __file__ and line["line"] > 0


def test_skipped_actions():
    memory._record_memory_history(skip_actions=["free_requested", "segment_alloc"])
    allocated_here(1000)
    assert set(actions()) == {"alloc", "free_completed"}
    with pytest.raises(RuntimeError, match="Unknown TraceEntry action: freed"):
        memory._record_memory_history(skip_actions=["freed"])
    assert "alloc" in actions()


@pytest.mark.parametrize(
    "arguments", [{"enabled": "some"}, {"context": "none"}, {"stacks": "c++"}, {"enabled": ""}]
)
def test_unknown_options(arguments):
    with pytest.raises(ValueError, match="expected '"):
        memory._record_memory_history(**arguments)
    allocated_here(1000)
    assert not actions()


def test_options_that_cards_lack():
    with pytest.raises(NotImplementedError, match="torch.profiler"):
        memory._record_memory_history(compile_context=True)
    with pytest.raises(TypeError):
        memory._record_memory_history(max_entries=-1)


def test_threads():
    """Each allocation of each thread is there, with the stack of its thread."""
    memory._record_memory_history(stacks="python")

    def worker_of_history():
        for _ in range(100):
            allocated_here(1000)

    threads = [threading.Thread(target=worker_of_history) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        memory._snapshot()
    for thread in threads:
        thread.join()
    found = history()
    counts = collections.Counter(entry["action"] for entry in found)
    assert counts["alloc"] == counts["free_requested"] == counts["free_completed"] == 400
    allocs = [entry for entry in found if entry["action"] == "alloc"]
    assert all("worker_of_history" in names(entry["frames"]) for entry in allocs)


def test_each_card_has_its_own():
    memory._record_memory_history()
    torch.empty(1000, device="spyre:1")
    assert not actions(0) and "alloc" in actions(1)


def test_accelerator_has_the_snapshot():
    """torch.accelerator's function, which knows CUDA and XPU by name, answers for cards."""
    memory._record_memory_history()
    kept = allocated_here(1024)
    snapshot = torch.accelerator.memory._snapshot(augment_with_fx_traces=True)
    assert snapshot["segments"] == memory._snapshot()["segments"]
    assert kept.nbytes in [entry["size"] for entry in snapshot["device_traces"][0]]


def test_pools_of_graphs():
    """Memory of a graph is in segments of its pool."""
    x = torch.ones(1000, device=DEVICE)
    memory._record_memory_history()
    graph = torch.accelerator.Graph()
    with graph:
        y = x + x
    pools = {segment["segment_pool_id"] for segment in memory.memory_snapshot()} - {(0, 0)}
    assert len(pools) == 1
    own = memory.memory_snapshot(pools.pop())
    blocks = [block for segment in own for block in segment["blocks"]]
    assert y.data_ptr() in [b["address"] for b in blocks if b["state"] == "active_allocated"]
    assert len(own) < len(memory.memory_snapshot())


def test_snapshot_of_out_of_memory(tmp_path):
    """An observer writes the snapshot of a failure; one that fails does not hide it.

    The process ends with a live tensor and the history on.
    """
    python_ok(
        "memory, seen = torch.spyre.memory, []\n"
        "def write(device, requested, total, free):\n"
        "    seen.append((device, requested, total, free))\n"
        f"    memory._dump_snapshot({str(tmp_path / 'oom.pickle')!r})\n"
        "memory._attach_out_of_memory_observer(lambda *args: 1 / 0)\n"
        "memory._attach_out_of_memory_observer(write)\n"
        "memory._record_memory_history()\n"
        "x = torch.ones(1 << 20, device='spyre')\n"
        "def too_much():\n"
        "    torch.empty(1 << 30, device='spyre', dtype=torch.float16)\n"
        "try:\n"
        "    too_much()\n"
        "except torch.OutOfMemoryError:\n"
        "    pass\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
        "(device, requested, total, free), = seen\n"
        "assert device == 0 and requested == 2 << 30 and 0 < free < total <= 96 << 20, seen\n",
        SPYRE_EMBEDDED_LPDDR_MIB=96,
    )
    snapshot = pickle.loads((tmp_path / "oom.pickle").read_bytes())
    oom = [e for e in snapshot["device_traces"][0] if e["action"] == "oom"]
    assert len(oom) == 1 and oom[0]["size"] == 2 << 30 and 0 < oom[0]["device_free"] < 96 << 20
    assert "too_much" in names(oom[0]["frames"])
    assert "OutOfMemoryError # 2.0GiB requested" in _memory_viz.trace(snapshot)


def test_reset_ends_the_blocks():
    """Memory that a reset of the card has lost is freed in the history."""
    python_ok(
        "memory = torch.spyre.memory\n"
        "memory._record_memory_history()\n"
        "x = torch.ones(1000, device='spyre')\n"
        "torch.spyre.reset(hard=True)\n"
        "s = memory._snapshot()\n"
        "found = [e['action'] for e in s['device_traces'][0]]\n"
        "assert found.count('alloc') == found.count('free_completed') >= 1, found\n"
        "assert found.count('segment_alloc') == found.count('segment_free') >= 1, found\n"
        "assert not s['segments'], s\n"
        "del x\n"
    )
