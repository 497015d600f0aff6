# SPDX-License-Identifier: MIT
"""Curves and the modelled time of cores in traces of torch.profiler, held against SPYRE_TRACE's."""

import ast
import json
from collections import Counter

import pytest
from support import process_error, python_ok

MODEL = 20000000
CARD = 10000000  # of files of SPYRE_TRACE; torch.profiler numbers cards from 0

PROGRAM = """
import hashlib, os
from torch.profiler import ProfilerActivity, profile
torch.manual_seed(1)
x, w = torch.randn(64, 256).half().to("spyre"), torch.randn(256, 512).half().to("spyre")
f = torch.compile(lambda x, w: torch.nn.functional.gelu(x @ w).softmax(-1))
f(x, w), x * 2
other = torch.Stream(device="spyre")
digest = hashlib.sha256()
torch.spyre.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
    y = f(x, w)
    more = torch.empty(1 << 22, device="spyre")
    with other:
        z = x * 2
    other.synchronize()
    digest.update(y.cpu().numpy().tobytes() + z.cpu().numpy().tobytes())
(f(x, w) + 1).cpu()
if os.environ.get("TRACE"):
    prof.export_chrome_trace(os.environ["TRACE"])
print(sorted({event.name for event in prof.events()}))
print(digest.hexdigest())
"""


class Trace:
    """A profiled run: the trace of torch.profiler, SPYRE_TRACE's of the process, and its text."""

    def __init__(self, folder, level):
        torch_file, spyre_file = folder / "torch.json", folder / "spyre.json"
        self.printed = python_ok(
            PROGRAM, TRACE=torch_file, SPYRE_TRACE=spyre_file, SPYRE_EMBEDDED_CARDS=1,
            TORCHINDUCTOR_CACHE_DIR=folder / "cache", TORCH_SPYRE_TRACE=level,
            SPYRE_TRACE_LEVEL=level or "operations",
        ).splitlines()  # fmt: skip
        self.torch = json.loads(torch_file.read_text())["traceEvents"]
        self.spyre = json.loads(spyre_file.read_text())["traceEvents"]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return Trace(tmp_path_factory.mktemp("plain"), "")


@pytest.fixture(scope="module")
def cores(tmp_path_factory):
    return Trace(tmp_path_factory.mktemp("cores"), "cores")


def curve(events, pid, name):
    """Returns the times in ns and the values of a curve."""
    found = [e for e in events if e["ph"] == "C" and (e["pid"], e["name"]) == (pid, name)]
    return [(round(e["ts"] * 1000), e["args"]["value"]) for e in found]


def is_part(part, whole):
    """True if values follow each other in a curve, at times that differ from it by one number."""
    for at in range(len(whole) - len(part) + 1):
        piece = whole[at : at + len(part)]
        shifts = [b - a for (a, _), (b, _) in zip(part, piece, strict=True)]
        values = [v for _, v in part] == [v for _, v in piece]
        if values and max(shifts) - min(shifts) <= 4:  # both round to nanoseconds
            return True
    return False


@pytest.mark.parametrize("stream", [0, 1])
def test_queue_depth(plain, stream):
    name = f"queue depth, stream {stream}"
    steps = curve(plain.torch, 0, name)
    assert len(steps) >= 2 and steps[-1][1] == 0 and max(v for _, v in steps) >= 1
    assert is_part(steps, curve(plain.spyre, CARD, name))


def test_device_memory(plain):
    """It begins with what was in use before, and has the allocation of 16 MiB."""
    steps = curve(plain.torch, 0, "device memory bytes")
    assert len(steps) >= 2 and steps[0][1] >= 2 * (64 * 256 + 256 * 512)
    assert any(b - a == 1 << 24 for (_, a), (_, b) in zip(steps, steps[1:], strict=False))
    whole = curve(plain.spyre, CARD, "device memory bytes")
    assert is_part(steps[1:], whole) and steps[0][1] in [v for _, v in whole]


def test_power_and_bandwidth_of_operations(plain):
    """The modelled averages of each operation, in modelled time."""
    names = {e["name"] for e in plain.torch if e["ph"] == "C" and e["pid"] == MODEL}
    assert names == {"power W", "LPDDR5 GB/s"}
    kernels = [e["args"] for e in plain.torch if e.get("cat") == "kernel"]
    rates = [v for _, v in curve(plain.torch, MODEL, "LPDDR5 GB/s")]
    for k in kernels:
        expected = 1.5 * (k["bytes read"] + k["bytes written"]) / k["cycles"]
        assert any(v == pytest.approx(expected, abs=0.011) for v in rates)
    watts = [v for _, v in curve(plain.torch, MODEL, "power W")]
    assert max(watts) > 29 and watts[-1] == 20 and min(watts) == 20


def test_rows_are_in_no_table(plain, cores):
    """Events of Python, of which tables are made, are those of operations."""
    for trace in (plain, cores):
        names = set(ast.literal_eval(trace.printed[-2]))
        assert any(name.startswith("aten.matmul") for name in names)
        assert not names & {e["name"] for e in trace.torch if e["ph"] == "C" or e["pid"] == MODEL}


def spans(events, pid, kind):
    """Returns the events of modelled time by kind, without what differs between the files."""
    found = Counter()
    for e in events:
        if e["ph"] == "X" and e["pid"] == pid:
            args = dict(e["args"])
            category = args.pop("kind") if kind else e["cat"]
            for name in ("call", "start_cycle"):
                args.pop(name)
            found[(category, e["tid"], e["name"], json.dumps(args, sort_keys=True))] += 1
    return found


def test_cores(cores):
    """Each phase, core and engine of the profiled work is SPYRE_TRACE's, with all numbers."""
    mine, all_spans = spans(cores.torch, MODEL, True), spans(cores.spyre, MODEL, False)
    kinds = Counter(key[0] for key in mine.elements())
    assert set(kinds) == {"launch", "dma", "phase", "lpddr", "core", "engine"}
    assert kinds["core"] > 32 and mine <= all_spans
    engines = {json.loads(key[3]).get("engine") for key in mine}
    assert {"PT", "SFU", "LX", "ring"} <= engines
    for name in ("PT %", "LPDDR5 GB/s", "LX bytes", "power W"):
        steps = curve(cores.torch, MODEL, name)
        assert max(v for _, v in steps) > 0 and is_part(steps, curve(cores.spyre, MODEL, name))


def test_cores_belong_to_kernels(cores):
    """Phases have the call of their kernel and add up to its cycles; rows have names."""
    kernels = {e["args"]["correlation"]: e for e in cores.torch if e.get("cat") == "kernel"}
    rows = [e for e in cores.torch if e["ph"] == "X" and e["pid"] == MODEL]
    phases = [e for e in rows if e["args"]["kind"] == "phase"]
    assert len(kernels) >= 2
    for call, kernel in kernels.items():
        mine = [e["args"]["cycles"] for e in phases if e["args"]["call"] == call]
        assert sum(mine) == kernel["args"]["cycles"] > 0
    named = {(e["tid"], e["args"]["name"]) for e in cores.torch
             if e["ph"] == "M" and e["pid"] == MODEL and e["name"] == "thread_name"}  # fmt: skip
    assert {(0, "launches"), (100, "core 00"), (101, "core 00 PT"), (415, "core 31 ring")} <= named
    assert {e["tid"] for e in rows} <= {tid for tid, _ in named}


def test_bits_do_not_depend_on_it(plain, cores, tmp_path):
    printed = python_ok(PROGRAM, SPYRE_EMBEDDED_CARDS=1).splitlines()
    assert printed[-1] == plain.printed[-1] == cores.printed[-1]


@pytest.mark.parametrize("use", ["torch.ones(3, device='spyre')", "profile().__enter__()"])
def test_unknown_level(use):
    error = process_error(f"from torch.profiler import profile\n{use}", TORCH_SPYRE_TRACE="all")
    assert "TORCH_SPYRE_TRACE is 'all'; it takes operations or cores" in error
