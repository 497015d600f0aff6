# SPDX-License-Identifier: MIT
"""From a line of the model to the kernel that computes it: Inductor's artefacts and tlparse."""

import json
import os
import re
import subprocess
import sys

import pytest
from support import python_ok

TLPARSE = os.path.join(sys.prefix, "trace", "bin", "tlparse")

#: Lines with a number in a comment must be among the origins of kernels.
MODEL = """
import torch
from torch import nn

def chain(x, w):
    x = x @ w  #: 1
    x = nn.functional.gelu(x)  #: 2
    return x.softmax(-1)  #: 3

class Layer(nn.Module):
    def __init__(self, width=256, heads=4):
        super().__init__()
        self.heads = heads
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.into(self.first(x)).view(batch, length, 3, self.heads, -1)  #: 1
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(q, k, v)  #: 2
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))  #: 3
        wide = nn.functional.gelu(self.up(self.second(x)))  #: 4
        return x + self.down(wide)  #: 5
"""

RUN = """
import hashlib
from model import Layer, chain
torch.manual_seed(0)
layer = Layer().half().eval().to("spyre")
x = torch.randn(2, 64, 256).half()
w = (torch.randn(256, 512) / 16).half()
with torch.no_grad():
    results = [torch.compile(chain)(x[0].to("spyre"), w.to("spyre")),
               torch.compile(layer)(x.to("spyre"))]
for y in results:
    print(hashlib.sha256(y.cpu().numpy().tobytes()).hexdigest())
"""


def run(folder, **environment):
    """Runs the model in a process of its own with an empty cache; returns what it prints."""
    (folder / "model.py").write_text(MODEL)
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return python_ok(RUN, PYTHONPATH=path, TORCHINDUCTOR_CACHE_DIR=folder / "cache", **environment)


class Log:
    """The artefacts of a log of TORCH_TRACE, by compiled function and name."""

    def __init__(self, path):
        self.compiled = {}
        lines = path.read_text().split("\n")
        for i, line in enumerate(lines):
            if line.startswith("\t") or "{" not in line:
                continue
            entry = json.loads(line[line.index("{"):])
            name = entry.get("artifact", {}).get("name")
            name = "inductor_output_code" if "inductor_output_code" in entry else name
            if name is None or entry.get("frame_id") is None:
                continue
            end = i + 1
            while end < len(lines) and lines[end].startswith("\t"):
                end += 1
            text = "\n".join(x[1:] for x in lines[i + 1:end])
            self.compiled.setdefault(entry["frame_id"], {})[name] = text

    def of(self, frame, name):
        """An artefact; the mappings and the stack traces as objects."""
        text = self.compiled[frame][name]
        return json.loads(text) if text.startswith("{") else text


MAPPINGS = "inductor_provenance_tracking_node_mappings"
STACKS = "inductor_provenance_tracking_kernel_stack_traces"


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """The folder of a traced run, what it printed, its log file and the log."""
    folder = tmp_path_factory.mktemp("traced")
    printed = run(folder, TORCH_TRACE=folder / "log", INDUCTOR_PROVENANCE=1)
    (file,) = (folder / "log").iterdir()
    return folder, printed, file, Log(file)


def numbered(text):
    """The numbers of the marked lines that a stack trace or a list of them contains."""
    return {int(n) for n in re.findall(r"#: (\d)", text)}


def pairs(mapping):
    return {(a, b) for a, values in mapping.items() for b in values}


@pytest.mark.parametrize("frame, lines", [(0, 3), (1, 5)])
def test_each_line_has_its_kernel(traced, frame, lines):
    log = traced[3]
    traces = log.of(frame, STACKS)
    assert traces and all(traces.values())
    for kernel, stack in traces.items():
        assert len(set(stack)) == len(stack) and all("model.py" in text for text in stack), kernel
    ours = {k: v for k, v in traces.items() if k.startswith("spyre_")}
    assert numbered(str(ours)) == set(range(1, lines + 1))


@pytest.mark.parametrize("frame", [0, 1])
def test_mappings_agree(traced, frame):
    """Each kernel has one node of the graph, which has the model's nodes, and back again."""
    log = traced[3]
    maps = log.of(frame, MAPPINGS)
    kernels = maps["cppCodeToPost"]
    assert kernels.keys() == log.of(frame, STACKS).keys()
    post = log.of(frame, "inductor_post_grad_graph")
    before = log.of(frame, "before_pre_grad_graph")
    for kernel, nodes in kernels.items():
        assert nodes == [kernel.rpartition("_")[0]] or not kernel.startswith("spyre_")
        for node in nodes:
            assert re.search(rf"\b{node}\b.* = ", post), node
            assert maps["postToPre"][node]
    assert pairs(maps["postToCppCode"]) == {(b, a) for a, b in pairs(kernels)}
    assert pairs(maps["preToPost"]) == {(b, a) for a, b in pairs(maps["postToPre"])}
    for node in maps["preToPost"]:
        assert re.search(rf"\b{node}\b.* = ", before), node


def test_origins_of_a_chain(traced):
    """All of the model's nodes lead to the one kernel."""
    maps = traced[3].of(0, MAPPINGS)
    assert maps["cppCodeToPost"] == {"spyre_0_0:1": ["spyre_0"]}
    before = traced[3].of(0, "before_pre_grad_graph")
    made = set(re.findall(r"^ +(\w+): .* = .*$", before, re.MULTILINE))
    assert len(made) == 3 and set(maps["postToPre"]["spyre_0"]) == made


@pytest.mark.parametrize("frame", [0, 1])
def test_wrapper_names_each_kernel(traced, frame):
    """The debug handle and the origins stand before the call."""
    log = traced[3]
    code = log.of(frame, "inductor_output_code")
    for kernel in log.of(frame, MAPPINGS)["cppCodeToPost"]:
        if kernel.startswith("spyre_"):
            name = kernel.partition(":")[0]
            handle = rf"# \[Provenance debug handles\] {kernel}\n +\w+ = {name}\("
            assert re.search(r"Source Nodes: \[\w.*Original ATen: \[\w.*\n +" + handle, code), code
    if frame == 0:
        assert "Original ATen: [aten.matmul, aten.gelu, aten._softmax]" in code


def test_same_bits(traced, tmp_path):
    assert run(tmp_path) == traced[1]


def test_page_of_tlparse(traced, tmp_path):
    """tlparse reads the log without complaint, and its page links line, node and kernel."""
    done = subprocess.run(
        [TLPARSE, "--inductor-provenance", "--strict", "--no-browser", "-o", tmp_path / "out",
         traced[2]], capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for frame, lines in ((0, 3), (1, 5)):
        page = (tmp_path / "out" / f"provenance_tracking_-_{frame}_0_0.html").read_text()
        (text,) = re.findall(r'<script id="lineMappings"[^>]*>(.*?)</script>', page, re.DOTALL)
        maps = json.loads(text)
        code, post, before = (
            [""] + traced[3].of(frame, name).split("\n")
            for name in ("inductor_output_code", "inductor_post_grad_graph",
                         "before_pre_grad_graph")
        )  # fmt: skip
        calls = [n for n, line in enumerate(code) if re.search(r" = spyre_\d_\d\(", line)]
        assert calls and set(map(str, calls)) <= set(maps["pyCodeToPost"])
        reached = set()
        for call in calls:
            (node,) = maps["pyCodeToPost"][str(call)]
            assert re.search(r" = spyre_\d_\d", code[call])[0].startswith(
                " = " + post[node].split()[0])  # fmt: skip
            reached |= set(maps["postToPre"][str(node)])
        # The comment with a line of the model stands above the first node that stems from it.
        commented = [n for n, line in enumerate(before) if "#: " in line]
        nodes = {next(m for m in range(n, len(before)) if " = " in before[m] and m not in commented)
                 for n in commented}  # fmt: skip
        assert len(nodes) == lines and nodes <= reached
