# SPDX-License-Identifier: MIT
"""The side file of provenance, `spyre explain`, and graphs after passes."""

import json
import os
import re
import subprocess

import pytest
import torch
from support import python, python_ok
from test_provenance import MODEL, numbered

from torch_spyre._inductor import provenance, side_file

SPYRE = os.path.join(os.environ.get("SPYRE_BUILDDIR", ""), "tools", "spyre", "spyre")

#: Compiles one of the models and profiles one call of it.
RUN = """
import os
from torch.profiler import ProfilerActivity, profile
from model import Layer, chain
with torch.no_grad():
    if os.environ["WHICH"] == "chain":
        w = torch.ones(256, 512).half().to("spyre")
        f = torch.compile(lambda x: chain(x, w), dynamic=True if "DYNAMIC" in os.environ else None)
    else:
        f = torch.compile(Layer().half().eval().to("spyre"))
    for size in (64, 128) if "DYNAMIC" in os.environ else (64, 64):
        x = torch.ones(2, size, 256).half().to("spyre")
        f(x)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
        f(x)
    prof.export_chrome_trace(os.environ["TRACE"])
"""


def run(folder, name, which="chain", **environment):
    """Runs a model with a cache; returns its side file and the rows of its kernels."""
    (folder / "model.py").write_text(MODEL)
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    file, trace = folder / f"{name}.json", folder / f"{name}-trace.json"
    python_ok(RUN, PYTHONPATH=path, TORCHINDUCTOR_CACHE_DIR=folder / "cache", WHICH=which,
              TRACE=trace, TORCH_SPYRE_PROVENANCE_FILE=file, **environment)  # fmt: skip
    events = json.loads(trace.read_text())["traceEvents"]
    return file, [e for e in events if e.get("cat") == "kernel"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A function that runs a model once and returns its folder, side file and kernel rows."""
    known = {}

    def of(which):
        if which not in known:
            folder = tmp_path_factory.mktemp(which)
            known[which] = (folder, *run(folder, "first", which, INDUCTOR_PROVENANCE=1))
        return known[which]

    return of


def explained(event, file, *options):
    done = subprocess.run([SPYRE, "explain", "--event", event, "--file", file, *options],
                          capture_output=True, text=True)  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def check_form(document):
    """Checks the form and all references of a document of version 1 of the schema."""
    assert document["schemaVersion"] == 1 and document["mergeGeneration"] >= 1
    assert document["eventKey"] == {
        "version": 1, "algorithm": "sha256-prefix-80-base32-lower", "width": 16,
        "stepAttribution": "bundle",
    }  # fmt: skip
    handles, kernels = document["handles"], document["kernelIdentities"]
    for number, handle in handles.items():
        assert re.fullmatch("0|[1-9][0-9]*", number) and handle["id"] == number
        assert set(handle) == {"id", "source", "aten_op", "ir_chain", "fused_from",
                               "transform_history"}  # fmt: skip
        assert set(handle["fused_from"]) <= set(handles)
        if handle["source"]:
            assert set(handle["source"]) == {"file", "start_line", "start_col", "end_line",
                                             "end_col"}  # fmt: skip
    for key, kernel in kernels.items():
        assert re.fullmatch("[a-z2-7]{16}", key)
        assert re.fullmatch(f"spyre_kernel_v1_[A-Za-z0-9_]+_{key}", kernel["eventNameBase"])
        bound = [b["handleId"] for b in kernel["specHandleBindings"]]
        assert kernel["directHandleIds"] == list(dict.fromkeys(bound))
        assert set(bound) <= set(handles)
        assert kernel["atenOps"] == sorted(set(kernel["atenOps"]))
    projections = document["upstreamProjections"]
    for number, occurrence in document["kernelOccurrences"].items():
        assert re.fullmatch("[0-9a-f]{64}", number)
        assert occurrence["identityKey"] in kernels and occurrence["compileId"] in projections
    for number, projection in projections.items():
        listed = [[k["compilerKernelName"], k["identityKey"]] for k in projection["kernels"]]
        assert number == provenance.digest({"domain": "torch-spyre-compile-v1", "kernels": listed})
    joins = {p["upstreamJoin"] for p in projections.values()}
    assert document["status"] == ("complete" if joins == {"ok"} else "partial")


@pytest.mark.parametrize("which, lines", [("chain", 3), ("layer", 5)])
def test_from_a_row_to_the_lines(made, which, lines):
    """Each SDSC of each kernel in the trace has a line of the model, and each line a kernel."""
    folder, file, rows = made(which)
    document = json.loads(file.read_text())
    check_form(document)
    assert document["status"] == "complete"
    found = set()
    rows = [row for row in rows if "key" in row["args"]]
    assert {row["args"]["key"] for row in rows} == set(document["kernelIdentities"])
    for row in rows:
        code, out, err = explained(row["name"], file, "--json")
        assert code == 0 and not err
        steps = json.loads(out)["steps"]
        bundle = os.listdir(row["args"]["bundle"])
        count = sum(re.fullmatch(r"sdsc_\d+\.json", name) is not None for name in bundle)
        assert count and [s["step"] for s in steps] == list(range(count)), bundle
        for step in steps:
            assert step["file"] == str(folder / "model.py") and "spyre.partition" in step["passes"]
            assert (folder / "model.py").read_text().split("\n")[step["line"] - 1].strip() == \
                step["text"]  # fmt: skip
            found |= numbered(step["text"])
        code, out, err = explained(row["args"]["key"], file)
        assert code == 0 and f"model.py:{steps[0]['line']}" in out
        assert steps[0]["aten_op"] in out
    assert found == set(range(1, lines + 1))


def test_steps_of_a_chain(made):
    """Matrix product, GELU and the steps of softmax stem from their own lines, in order."""
    _, file, rows = made("chain")
    (row,) = [row for row in rows if "key" in row["args"]]
    steps = json.loads(explained(row["name"], file, "--json")[1])["steps"]
    names = re.findall(r"\d+_(\w+)", row["args"]["sdscs"])
    line = {name: int(re.search(r"#: (\d)", step["text"])[1]) for name, step in zip(names, steps)}
    assert line["batchmatmul"] == 1 and line["gelufwd"] == 2 and line["max"] == 3
    assert line[names[-1]] == 3


def test_cache_gives_the_same_file(made):
    """Nothing is compiled in the second process; the wrapper in the cache knows its origins."""
    folder, file, _ = made("chain")
    again, _ = run(folder, "again", INDUCTOR_PROVENANCE=1)
    assert json.loads(again.read_text()) == json.loads(file.read_text())


def test_no_change_without_news(made):
    _, file, _ = made("chain")
    before = file.read_bytes()
    document = json.loads(before)
    side_file.add(file, {table: document[table] for table in side_file.TABLES})
    assert file.read_bytes() == before


def test_without_tracking(tmp_path):
    """The handles do not need Inductor's tracking; what it adds is marked as missing."""
    document = json.loads(run(tmp_path, "plain")[0].read_text())
    check_form(document)
    (projection,) = document["upstreamProjections"].values()
    assert projection["upstreamJoin"] == "unavailable-provenance-level-0"
    assert document["status"] == "partial" and document["handles"]


def test_dynamic_sizes(tmp_path):
    """Kernels for sizes that come later have the same lines."""
    file, rows = run(tmp_path, "sizes", DYNAMIC=1)
    document = json.loads(file.read_text())
    check_form(document)
    (row,) = [row for row in rows if "key" in row["args"]]
    steps = json.loads(explained(row["name"], file, "--json")[1])["steps"]
    assert numbered(str([step["text"] for step in steps])) == {1, 2, 3}


def part(n):
    """A document with one kernel of its own."""
    key = "abcdefghijklmno" + "abcdefghijklmnopqrstuvwxyz"[n]
    handle = {"id": str(n), "source": None, "aten_op": None, "ir_chain": [], "fused_from": [],
              "transform_history": []}  # fmt: skip
    origin = provenance.Origin({str(n): handle}, [[0, str(n)]], ["aten.mm"])
    return {
        "handles": {str(n): handle},
        "kernelIdentities": {key: provenance.identity(key, origin)},
        "kernelOccurrences": {},
        "upstreamProjections": {str(n): {"upstreamJoin": "unavailable-provenance-level-0"}},
    }


def test_processes_add_to_one_file(tmp_path):
    """No process loses what another one has added at the same time."""
    file = tmp_path / "side.json"
    context = torch.multiprocessing.get_context("fork")
    start = context.Barrier(20)

    def work(n):
        start.wait()
        side_file.add(file, part(n))

    workers = [context.Process(target=work, args=(n,)) for n in range(20)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    document = json.loads(file.read_text())
    assert len(document["kernelIdentities"]) == 20 and document["mergeGeneration"] == 20
    assert sorted(p.name for p in tmp_path.iterdir()) == ["side.json", "side.json.lock"]


def test_one_bundle_of_two_lines(tmp_path):
    """A bundle that two graphs share has the lines of both, and no line twice."""
    file = tmp_path / "side.json"
    first, second = part(1), part(2)
    (key,) = first["kernelIdentities"]
    (entry,) = second["kernelIdentities"].values()
    second["kernelIdentities"] = {key: {**entry, "eventNameBase": "x"}}
    for document in (first, second, second):
        side_file.add(file, document)
    document = json.loads(file.read_text())
    assert document["kernelIdentities"][key]["directHandleIds"] == ["1", "2"]
    assert document["mergeGeneration"] == 2


@pytest.mark.parametrize("text, reason", [
    ("{", "not a side file of version 1"),
    ("[" * 100000, "not a side file of version 1"),
    ('{"schemaVersion": 2}', "not a side file of version 1"),
    ('{"schemaVersion": 1, "handles": []}', "it lacks one of handles"),
])  # fmt: skip
def test_file_of_others_stays(tmp_path, caplog, monkeypatch, text, reason):
    """A file that is not ours is neither changed nor an error of the program."""
    file = tmp_path / "side.json"
    file.write_text(text)
    monkeypatch.setenv(provenance.VARIABLE, str(file))
    monkeypatch.setattr(provenance.log, "propagate", True)
    provenance.publish(json.dumps(part(1)))
    assert reason in caplog.text and file.read_text() == text


HOSTILE = {
    "schemaVersion": 1,
    "handles": {
        "1": {"id": "1", "source": {"file": "/dev/zero", "start_line": 1}, "fused_from": ["1"],
              "aten_op": "\x1b[2J\x9b31m" + "a" * 9999,
              "transform_history": [{"pass_name": 7}, 5, {"pass_name": "\x07ring"}]},
        "2": {"id": "2", "source": {"file": 5, "start_line": -1}, "transform_history": {}},
        "3": [],
    },
    "kernelIdentities": {
        "aaaaaaaaaaaaaaaa": {
            "eventNameBase": ["x"],
            "specHandleBindings": [
                {"specPath": [0], "handleId": "1"}, {"specPath": [1], "handleId": "2"},
                {"specPath": [2], "handleId": "3"}, {"specPath": [-1], "handleId": "1"},
                {"specPath": [], "handleId": "1"}, {"specPath": 7, "handleId": {}}, 3,
                {"specPath": [3], "handleId": "99"},
            ],
        },
        "": {},
    },
    "kernelOccurrences": {"x": {"identityKey": 3}, "y": []},
}  # fmt: skip


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_hostile_file(tmp_path, options):
    """Values of other types are left out, and nothing controls the terminal."""
    file = tmp_path / "hostile.json"
    file.write_text(json.dumps(HOSTILE))
    code, out, err = explained("x aaaaaaaaaaaaaaaa y", file, *options)
    assert code == 0 and not err
    assert all(c == "\n" or c.isprintable() for c in out), repr(out[:200])
    if options:
        assert [s["step"] for s in json.loads(out)["steps"]] == [0, 1, 2]


@pytest.mark.parametrize("text, reason", [
    ("", "at byte 0"), ("{", "at byte"), ("[1]", "not a side file of provenance of version 1"),
    ('{"schemaVersion": 2}', "not a side file of provenance of version 1"),
    ('{"schemaVersion": 1}', "none of the 0 kernels"),
    ('{"schemaVersion": 1, "kernelIdentities": [3]}', "none of the"),
])  # fmt: skip
def test_explain_refuses(tmp_path, text, reason):
    file = tmp_path / "bad.json"
    file.write_text(text)
    code, out, err = explained("aaaaaaaaaaaaaaaa", file)
    assert code == 2 and not out and reason in err


def test_explain_reads_regular_files_only(tmp_path):
    """A pipe would never end, and a huge file does not fit."""
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(1 << 40)
    for name, reason in (("pipe", "Invalid argument"), ("huge", "File too large"),
                         ("absent", "No such file")):  # fmt: skip
        code, out, err = explained("aaaaaaaaaaaaaaaa", tmp_path / name)
        assert code == 2 and not out and reason in err


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_line_that_is_not_utf8(tmp_path, options):
    """A model in another encoding is shown, and the JSON text stays valid."""
    (tmp_path / "model.py").write_bytes(b"\n  y = '\xe9\xed\xa0\x80' + '\xc3\xa9' \xf0\x9f\n")
    handle = {"source": {"file": str(tmp_path / "model.py"), "start_line": 2}}
    file = tmp_path / "side.json"
    bindings = [{"specPath": [0], "handleId": "1"}]
    file.write_text(json.dumps({"schemaVersion": 1, "handles": {"1": handle}, "kernelIdentities": {
        "aaaaaaaaaaaaaaaa": {"specHandleBindings": bindings}}}))  # fmt: skip
    code, out, err = explained("aaaaaaaaaaaaaaaa", file, *options)
    assert code == 0 and not err
    (line,) = [s["text"] for s in json.loads(out)["steps"]] if options else out.split("\n")[-2:-1]
    assert line.strip() == "y = '????' + '\u00e9' ??"


def test_graph_after_passes(tmp_path):
    """Each named pass has a file, also if the compiled graph is in the cache."""
    dump = {"TORCH_SPYRE_DUMP_AFTER": "views, placement", "TORCH_SPYRE_DUMP_DIR": tmp_path / "d"}
    run(tmp_path, "plain")
    run(tmp_path, "dumped", **dump)
    first, last = sorted(os.listdir(tmp_path / "d"))
    assert first.endswith("01_placement.txt") and last.endswith("10_views.txt")
    before, after = ((tmp_path / "d" / name).read_text() for name in (first, last))
    assert "aten.gelu" in before and "spyre_0" not in before
    assert "aten.gelu" not in after and "spyre_0" in after


def test_pass_that_does_not_exist(tmp_path):
    done = python('torch.compile(lambda x: x + 1)(torch.ones(64, device="spyre"))',
                  TORCH_SPYRE_DUMP_AFTER="vues", TORCHINDUCTOR_CACHE_DIR=tmp_path)  # fmt: skip
    assert done.returncode == 1
    assert "TORCH_SPYRE_DUMP_AFTER names the unknown pass 'vues'; valid: constants" in done.stderr
