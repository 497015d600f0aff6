# SPDX-License-Identifier: MIT
"""The side file of provenance: from the kernels of a trace to the lines of the model.

TORCH_SPYRE_PROVENANCE_FILE names the file, to which each compiled graph adds its kernels when its
wrapper is loaded, from a cache as well. Its form is version 1 of torch-spyre's public schema
(spyre_provenance_v1), and docs/torch-compile.md describes it.
"""

import collections
import hashlib
import json
import os
import re

import torch

from .. import version
from ..inductor import log
from .bundle import event_key
from .origins import MAX_NAMES, PREFIX, aten_op, aten_ops, views_read
from .side_file import add

#: The variable with the name of the side file.
VARIABLE = "TORCH_SPYRE_PROVENANCE_FILE"
#: Directory of PyTorch, whose own lines are not those of a model.
TORCH = os.path.dirname(torch.__file__) + os.sep
FRAME = re.compile(r'File "([^"\n]+)", line ([1-9][0-9]*)')

Origin = collections.namedtuple("Origin", "handles bindings aten")


def wanted():
    """Returns the name of the side file, or None."""
    return os.environ.get(VARIABLE) or None


def digest(value):
    """Returns the SHA-256 of an object's canonical text, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def location(trace):
    """Returns the innermost line of a stack trace that is not PyTorch's, or the innermost one."""
    frames = FRAME.findall(trace or "")
    if not frames:
        return None
    file, line = next((f for f in reversed(frames) if not f[0].startswith(TORCH)), frames[-1])
    return {"file": file, "start_line": int(line), "start_col": 0, "end_line": None,
            "end_col": None}  # fmt: skip


def ancestors(node):
    """Returns the named sources of a node, the model's node first."""
    found, sources = [], node.meta.get("from_node")
    while sources := [s for s in sources or () if s.node_info]:
        found.append(sources[0])
        sources = sources[0].from_node
    return found[::-1]


def transform(by):
    """Returns the description of a pass that has replaced a node."""
    kind = "rewrite" if by.startswith(PREFIX) else "decomposition"
    return {"kind": kind, "pass_name": by, "reason": None}


def handle(node, handles):
    """Adds a node to @handles, a dict, with the views that it reads; returns its id."""
    sources = ancestors(node)
    names = [source.name for source in sources] + [node.name]
    record = {
        "source": location(node.stack_trace),
        "aten_op": aten_op(node),
        "ir_chain": [n for n, before in zip(names, [None, *names]) if n != before],
        "fused_from": [handle(view, handles) for view in views_read(node)],
        "transform_history": [transform(s.pass_name) for s in sources if s.pass_name]
        + [{"kind": "fusion", "pass_name": PREFIX + "partition", "reason": None}],
    }
    record["fused_from"] = list(dict.fromkeys(record["fused_from"]))
    number = str(int(digest(record)[:12], 16))
    handles[number] = {"id": number, **record}
    return number


def calls_of(program, steps):
    """Returns for each step of a plan the index of the operation that it stems from.

    Steps are in the order of the operations, and the last one that writes an operation's result is
    its last one. Copies to LX that the planner inserts count to the operation behind them.
    """
    last = {step["output"]: i for i, step in enumerate(steps)}
    calls, end = [], 0
    results = [t for t, r in zip(program.tensors, program.records) if r[0] == "op"]
    for call, result in enumerate(results):
        upto = max(end, last.get(result, -1) + 1)
        calls += [call] * (upto - end)
        end = upto
    return calls


def origin(program, owners):
    """Returns the Origin of a program whose records stem from the nodes @owners, None: no node.

    A failure, which is a defect, must not change what is compiled: it is logged, and the kernel has
    no entry.
    """
    try:
        return _origin(program, owners)
    except Exception:
        log.warning("a kernel has no entry in the side file of provenance", exc_info=True)
        return None


def _origin(program, owners):
    """Does the work of origin()."""
    handles, known = {}, {}
    calls = [node for node, record in zip(owners, program.records) if record[0] == "op"]
    nodes = list(dict.fromkeys(node for node in calls if node is not None))
    for node in nodes:
        known[node] = handle(node, handles)
    steps = enumerate(calls_of(program, program.graph.plan()["steps"]))
    bindings = [[i, known[calls[call]]] for i, call in steps if calls[call] is not None]
    return Origin(handles, bindings, aten_ops(nodes))


def identity(key, origin):
    """Returns the entry of a bundle."""
    names = [re.sub(r"\W", "_", name.rpartition(".")[2]) for name in origin.aten[:MAX_NAMES]]
    return {
        "directHandleIds": list(dict.fromkeys(number for _, number in origin.bindings)),
        "specHandleBindings": [{"specPath": [i], "handleId": n} for i, n in origin.bindings],
        "atenOps": sorted(origin.aten),
        "eventNameBase": f"spyre_kernel_v1_{'_'.join(names) or 'fused'}_{key}",
    }


def upstream(names):
    """Returns what Inductor's provenance tracking knows of the kernels @names, and its aliases."""
    from torch._inductor import config, debug

    level = config.trace.provenance_tracking_level
    known = debug._inductor_triton_kernel_to_post_grad_node_info if level else {}
    kernels = {k: list(v) for k, v in known.items() if k.rpartition(":")[0] in names}
    to_pre = debug._inductor_post_to_pre_grad_nodes.get("postToPre", {}) if level else {}
    posts = list(dict.fromkeys(post for nodes in kernels.values() for post in nodes))
    post_to_pre = {post: list(to_pre[post]) for post in posts if post in to_pre}
    information = debug.create_kernel_information_json() if level else {}
    return kernels, {
        "upstreamJoin": "ok" if level else "unavailable-provenance-level-0",
        "preToPost": inverse(post_to_pre),
        "postToPre": post_to_pre,
        "cppCodeToPost": kernels,
        "postToCppCode": inverse(kernels),
        "kernelStackTraces": {
            kernel: {
                "stackTraces": list(dict.fromkeys(information[kernel]["stack_traces"])),
                "postGradNodes": information[kernel]["post_grad_nodes"],
                "preGradNodes": information[kernel]["pre_grad_nodes"],
            }
            for kernel in kernels
        },
    }


def inverse(mapping):
    """Returns a mapping of names to lists of names in the other direction."""
    made = {}
    for name, values in mapping.items():
        for value in values:
            made.setdefault(value, []).append(name)
    return made


def settings():
    """Returns the settings of Inductor that decide on what it knows."""
    from torch._inductor import config
    from torch._logging import _internal

    return {
        "provenanceTrackingLevel": config.trace.provenance_tracking_level,
        "structuredTracing": bool(_internal.GET_DTRACE_STRUCTURED),
    }


def document(kernels):
    """Returns the document of a graph's kernels, a list of (name, directory, Origin)."""
    keys = [(name, event_key(directory)) for name, directory, _ in kernels]
    listed = [list(pair) for pair in keys]
    number = digest({"domain": "torch-spyre-compile-v1", "kernels": listed})
    aliases, relations = upstream([name for name, _ in keys])
    occurrences = {}
    for name, key in keys:
        found = {"domain": "torch-spyre-occurrence-v1", "compileId": number,
                 "compilerKernelName": name, "identityKey": key}  # fmt: skip
        occurrences[digest(found)] = {
            "identityKey": key, "compileId": number, "compilerKernelName": name,
            "registrations": [
                {"ordinal": int(alias.rpartition(":")[2]), "alias": alias}
                for alias in aliases if alias.rpartition(":")[0] == name
            ],
        }  # fmt: skip
    projection = {
        "source": "inductor_provenance_tracking_node_mappings",
        "version": 2.0,
        "producer": {"torchSpyreVersion": version.__version__, "torchVersion": torch.__version__},
        "settings": settings(),
        "kernels": [{"compilerKernelName": name, "identityKey": key} for name, key in keys],
        "uncollectedKernels": [],
        "upstreamProjectionFailed": False,
        **relations,
    }
    return {
        "handles": {n: h for _, _, origin in kernels for n, h in origin.handles.items()},
        "kernelIdentities": {
            key: identity(key, origin) for (_, key), (_, _, origin) in zip(keys, kernels)
        },
        "kernelOccurrences": occurrences,
        "upstreamProjections": {number: projection},
    }


def publish(text):
    """Adds a document, as text, to the side file; the wrapper calls it. Failures are logged."""
    path = wanted()
    if path is None:
        return
    try:
        add(path, json.loads(text))
    except (OSError, ValueError) as error:
        log.warning("cannot add kernels to %s=%s: %s", VARIABLE, path, error)
