# SPDX-License-Identifier: MIT
"""Traces of torch.profiler, read by programs that are not ours: HTA and aiu-trace-analyzer."""

import base64
import csv
import json
import os
import subprocess
import sys

import pytest
from support import process_error, python, python_ok

TOOLS = os.path.join(sys.prefix, "trace")

PROGRAM = """
import os
from torch.profiler import ProfilerActivity, profile, record_function
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256))
model = model.half().eval().to("spyre")
x = torch.ones(64, 256, dtype=torch.float16)
with torch.no_grad(), torch.device("spyre"):
    model(x.to("spyre")).cpu()
    streams = int(os.environ["STREAMS"])
    other = torch.Stream(device="spyre") if streams > 1 else torch.accelerator.current_stream()
    activities = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
    with profile(activities=activities) as prof:
        for step in range(4):
            with record_function("step"), record_function("first" if step == 0 else "later"):
                y = model(x.to("spyre"))
                with other:
                    z = model(x.to("spyre"))
            (y + 1).cpu(), z.cpu()
            prof.step()
prof.export_chrome_trace(os.environ["TRACE"])
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Returns a function that gives the path of a trace in a dialect."""
    made = {}

    def trace(dialect):
        if dialect not in made:
            path = tmp_path_factory.mktemp(dialect) / "trace.json"
            # acelyzer refuses processes that see several cards, and work at the same time.
            number = 1 if dialect == "aiu" else 2
            where = {"TORCH_SPYRE_TRACE_DIALECT": dialect, "SPYRE_EMBEDDED_CARDS": number,
                     "STREAMS": number}  # fmt: skip
            python_ok(PROGRAM, TRACE=path, **where)
            made[dialect] = path
        return made[dialect]

    return trace


def events(path):
    return json.loads(path.read_text())["traceEvents"]


def of(found, category):
    return [e for e in found if e.get("cat") == category and "dur" in e]


@pytest.mark.parametrize("dialect", ["spyre", "cuda", "aiu"])
def test_each_row_has_its_call(traces, dialect):
    """Work of a card and the call that queued it share a number, which no others have."""
    found = events(traces(dialect))
    work = [e for c in ("kernel", "gpu_memcpy", "gpu_memset") for e in of(found, c)]
    calls = {e["args"]["correlation"]: e for e in of(found, "privateuse1_runtime")}
    assert work and len(calls) == len(of(found, "privateuse1_runtime"))
    assert {e["args"]["correlation"] for e in work} == set(calls)
    hosts = {e["tid"] for e in of(found, "cpu_op")}
    for e in work:
        call = calls[e["args"]["correlation"]]
        assert call["ts"] <= e["ts"] and call["dur"] > 0
        assert (call["tid"] in hosts) == (dialect != "aiu")
    arrows = {e["id"]: e for e in found if e.get("ph") == "f"}
    assert {e["id"] for e in found if e.get("ph") == "s" and e.get("cat") == "ac2g"} <= set(arrows)


def test_names_of_calls(traces):
    names = {d: {e["name"] for e in of(events(traces(d)), "privateuse1_runtime")}
             for d in ("spyre", "cuda", "aiu")}  # fmt: skip
    assert {"spyre_launch", "spyre_copy_h2d_async", "spyre_copy_d2h_async"} <= names["spyre"]
    assert {"cudaLaunchKernel", "cudaMemcpyAsync"} <= names["cuda"]
    assert {"aiuLaunchScheduleCompute", "aiuPrepareDMAs"} == names["aiu"]


def test_ranges_on_the_rows_of_cards(traces):
    """Each range covers exactly the work that was queued in it, on each stream."""
    found = events(traces("spyre"))
    ranges = of(found, "gpu_user_annotation")
    assert {(e["name"], e["tid"]) for e in ranges} >= {("step", 0), ("first", 0), ("later", 0)}
    assert len({e["tid"] for e in ranges}) == 2
    assert sum(e["name"] == "step" and e["tid"] == 0 for e in ranges) == 4
    for e in ranges:
        inside = [k for k in of(found, "kernel") if k["tid"] == e["tid"]
                  and e["ts"] <= k["ts"] and k["ts"] + k["dur"] <= e["ts"] + e["dur"] + 0.002]
        assert inside, e


def test_bandwidth_and_properties(traces):
    trace = json.loads(traces("spyre").read_text())
    for e in of(trace["traceEvents"], "gpu_memcpy"):
        rate = e["args"]["memory bandwidth (GB/s)"]
        assert rate == pytest.approx(e["args"]["bytes"] / e["dur"] / 1e3, rel=0.05, abs=1e-3)
    card = trace["deviceProperties"][0]
    assert card["id"] == 0 and card["numSms"] == 32 and card["totalGlobalMem"] > 0
    assert trace["libspyre"].count(".") == 2


KERNELS = """
import os
from torch.profiler import ProfilerActivity, profile
x = torch.ones(64, 256).half().to("spyre")
w = torch.ones(256, 512).half().to("spyre")
f = torch.compile(lambda x, w: torch.nn.functional.gelu(x @ w).softmax(-1))
f(x, w), x * 2
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
    f(x, w)
    x * 2
    f(x, w)
prof.export_chrome_trace(os.environ["TRACE"])
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
    x * 2
prof.export_chrome_trace(os.environ["TRACE"] + "2")
"""


def test_names_and_arguments_of_kernels(tmp_path):
    """Operations of ATen first, then the key of the bundle; costs that fit the record."""
    where = tmp_path / 'quo"te'
    trace = tmp_path / "trace.json"
    python_ok(KERNELS, TRACE=trace, TORCHINDUCTOR_CACHE_DIR=where, SPYRE_EMBEDDED_CARDS=1)
    fused, eager, again = of(events(trace), "kernel")
    args = fused["args"]
    assert fused["name"] == again["name"] == f"aten.matmul+aten.gelu+aten._softmax {args['key']}"
    assert os.path.isdir(args["bundle"].replace("quo'te", 'quo"te'))  # Kineto escapes nothing
    digest = bytes.fromhex(os.path.basename(args["bundle"])[:20])
    assert args["key"] == base64.b32encode(digest).decode().lower()
    assert args["shapes"] == "64x256 SEN169_FP16, 256x512 SEN169_FP16 -> 64x512 SEN169_FP16"
    assert args["macs"] >= 64 * 256 * 512 and args["LX bytes"] > 0 and 1 <= args["cores"] <= 32
    assert args["bytes read"] >= 2 * (64 * 256 + 256 * 512)
    assert args["bytes written"] >= 2 * 64 * 512
    assert args["modelled us"] == pytest.approx(args["cycles"] / 1500, rel=1e-3)
    peak = 32 * 1024 * args["cycles"]
    assert args["PT utilisation (%)"] == pytest.approx(100 * args["macs"] / peak, rel=1e-3)
    assert eager["name"] == "aten.mul " + eager["args"]["sdscs"]
    assert eager["args"]["shapes"] == "64x256 SEN169_FP16 -> 64x256 SEN169_FP16"
    assert "key" not in eager["args"] and eager["args"]["PT utilisation (%)"] == 0
    (other,) = of(events(tmp_path / "trace.json2"), "kernel")
    assert other["name"] == eager["name"] and other["args"]["shapes"] == eager["args"]["shapes"]


def test_a_dialect_that_does_not_exist():
    error = process_error(
        "from torch.profiler import *\n"
        "with profile(activities=[ProfilerActivity.PrivateUse1]): pass",
        TORCH_SPYRE_TRACE_DIALECT="french",
    )
    assert "TORCH_SPYRE_TRACE_DIALECT is 'french'; it takes spyre, cuda or aiu" in error


TABLES = {
    "temporal": "get_temporal_breakdown(visualize=False)",
    "kernels": "get_gpu_kernel_breakdown(visualize=False)",
    "idle": "get_idle_time_breakdown(visualize=False)",
    "queue": "get_queue_length_summary()",
    "launches": "get_cuda_kernel_launch_stats(visualize=False)",
    "bandwidth": "get_memory_bw_summary()",
    "annotations": "get_gpu_user_annotation_breakdown(visualize=False)",
}

HTA = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
sys.path.append(os.environ["TOOLS"])
from hta.trace_analysis import TraceAnalysis
trace, texts = TraceAnalysis(trace_dir=os.environ["FOLDER"]), {}
for name, call in json.loads(os.environ["TABLES"]).items():
    table = eval("trace." + call)
    table = table[0] if isinstance(table, tuple) else table
    table = next(iter(table.values())) if isinstance(table, dict) else table
    texts[name] = table.to_string() if len(table) else ""
print(json.dumps(texts))
"""


def test_tables_of_hta(traces):
    """Each table has rows."""
    folder = traces("cuda").parent
    printed = python_ok(HTA, TOOLS=TOOLS, FOLDER=folder, TABLES=json.dumps(TABLES))
    texts = json.loads(printed.splitlines()[-1])
    assert all(texts[name] for name in TABLES), texts
    assert "Memcpy HtoD" in texts["bandwidth"] and "Memcpy DtoH" in texts["bandwidth"]
    assert "step" in texts["annotations"] and "COMPUTATION" in texts["kernels"]
    assert len(texts["launches"].splitlines()) > 8


def test_acelyzer_has_no_warning(traces, tmp_path):
    for check in (["-V"], []):
        text = acelyzer(tmp_path, *check, "-C", "prep_queue",
                        "-i", traces("aiu"), "-o", tmp_path / "out.json")  # fmt: skip
        assert "WARN" not in text, text


PRODUCTS = """
import os
from torch.profiler import ProfilerActivity, profile
x, w = (torch.ones(*size).half().to("spyre") for size in ((64, 256), (256, 512)))
f = torch.compile(lambda x, w: torch.nn.functional.gelu(x @ w).softmax(-1))
f(x, w).cpu()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
    for _ in range(5):
        f(x, w).cpu()
prof.export_chrome_trace(os.environ["TRACE"])
"""


def acelyzer(folder, *options):
    """Returns what acelyzer prints, which must succeed."""
    done = subprocess.run(
        [sys.executable, "-c", "from acelyzer.acelyzer import main; main()", *options],
        env={**os.environ, "PYTHONPATH": TOOLS}, capture_output=True, text=True, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_acelyzer_fills_its_table_of_pt_utilisation(tmp_path):
    """It has the kernel's products, and the times of the trace; no warning."""
    trace, ideal = tmp_path / "trace.json", tmp_path / "ideal"
    python_ok(PRODUCTS, TRACE=trace, TORCH_SPYRE_IDEAL_CYCLES=ideal, SPYRE_EMBEDDED_CARDS=1,
              TORCH_SPYRE_TRACE_DIALECT="aiu")  # fmt: skip
    kernels = of(events(trace), "kernel")
    (name,) = {e["name"] for e in kernels}
    (path,) = ideal.rglob("*.json")
    assert path == ideal / "inductor-spyre" / name / "perf" / "ideal_cycles.json"
    operations = "aten.matmul+aten.gelu+aten._softmax"
    (entry,) = json.loads(path.read_text())
    cycles = kernels[0]["args"]["macs"] / (32 * 1024)
    assert entry == {"ideal_cycles": cycles, "op_category": operations}
    assert cycles >= 64 * 256 * 512 / (32 * 1024)
    text = acelyzer(tmp_path, "--freq=1500:1500", "-C", "prep_queue", "rcu_util", "-c", ideal,
                    "-i", trace, "-o", tmp_path / "out.json")  # fmt: skip
    assert "WARN" not in text and "ERROR" not in text, text
    with open(tmp_path / "out_categories.csv", newline="") as file:
        rows = {row["Category"]: row for row in csv.DictReader(file)}
    for row in (rows[operations], rows["Total"]):
        time = sum(e["dur"] for e in kernels)
        assert len(kernels) == int(row["Calls"]) == 5
        assert float(row["Kernel_Time"]) == pytest.approx(time)
        assert int(row["Ideal_Cyc"]) == 5 * cycles
        assert float(row["Ideal_Time"]) == pytest.approx(5 * cycles / 1500, abs=1e-4)
        assert float(row["PT_Util"]) == pytest.approx(5 * cycles / 1500 / time, abs=1e-4)
        assert float(row["Ideal_Time"]) > 0


def test_folders_of_foreign_names(tmp_path):
    """Operations have any names; the folder of their kernel is where it should be."""
    trace, ideal = tmp_path / "trace.json", tmp_path / "a" / "b" / "ideal"
    rename = "import torch_spyre._inductor.finish as finish\n" \
             "finish.title = lambda operations: '../../../x/\"y'\n"  # fmt: skip
    python_ok(rename + PRODUCTS, TRACE=trace, TORCH_SPYRE_IDEAL_CYCLES=ideal,
              TORCHINDUCTOR_CACHE_DIR=tmp_path / "cache", SPYRE_EMBEDDED_CARDS=1)  # fmt: skip
    (name,) = {e["name"] for e in of(events(trace), "kernel")}
    assert name.startswith("_.._.._.._x__y ")
    (path,) = tmp_path.rglob("ideal_cycles.json")
    assert path == ideal / "inductor-spyre" / name / "perf" / "ideal_cycles.json"
    assert json.loads(path.read_text())[0]["op_category"] == '../../../x/"y'


def test_ideal_cycles_that_cannot_be_written(tmp_path):
    """The profile goes on, with a warning that names the file."""
    (tmp_path / "file").write_text("")
    where = tmp_path / "file"
    done = python(PRODUCTS, TRACE=tmp_path / "trace.json", TORCH_SPYRE_IDEAL_CYCLES=where)
    assert done.returncode == 0, done.stderr
    assert "cannot write the ideal cycles" in done.stderr and f"{where}/ind" in done.stderr
    assert of(events(tmp_path / "trace.json"), "kernel")
