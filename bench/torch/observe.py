# SPDX-License-Identifier: MIT
"""Cost of observing: a loop of launches and a step of MiniLM with each tool on, next to the same
with nothing on, in turns. Results must have the same bits with each of them.

Variables that are read when a card is opened need processes of their own, so each environment has
one, which waits while another one is measured. Starting and ending a tool, and writing its file, are
not in the figures.
"""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time

#: Seconds that a sample should take.
SAMPLE = 0.5
LAUNCHES = "launches", "us/launch"
MINILM = "MiniLM step", "ms"

#: name, the process that runs it, the largest ratio that it should have.
MODES = [
    ("nothing", "plain", None),
    ("nothing, other process", "again", None),
    ("spyre-smi at 10 Hz", "plain", 1.01),
    ("SPYRE_TRACE", "trace", None),
    ("torch.profiler", "plain", 1.05),
    ("memory history", "plain", None),
    ("SPYRE_TRACE, cores", "trace_cores", None),
    ("torch.profiler, cores", "torch_cores", None),
]


def environments(folder):
    """Returns the variables of each process."""
    return {
        "plain": {},
        "again": {},
        "trace": {"SPYRE_TRACE": f"{folder}/trace.json"},
        "trace_cores": {"SPYRE_TRACE": f"{folder}/cores.json", "SPYRE_TRACE_LEVEL": "cores"},
        "torch_cores": {"TORCH_SPYRE_TRACE": "cores"},
    }


class Process:
    """A process that has opened its card and compiled, and runs what it is told to."""

    def __init__(self, variables):
        self.child = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--process"],
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, work, mode, count):
        """Returns the seconds of @count times @work, and the digest of its results."""
        print(json.dumps([work, mode, count]), file=self.child.stdin, flush=True)
        answer = self.child.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process of '{mode}' ended with status {self.child.wait()}")
        return json.loads(answer)

    def end(self):
        self.child.stdin.close()
        if self.child.wait():
            raise RuntimeError(f"a process ended with status {self.child.returncode}")


@contextlib.contextmanager
def smi():
    """spyre-smi reads the cards ten times per second meanwhile."""
    command = [
        os.path.join(os.environ["SPYRE_BUILDDIR"], "tools/spyre-smi"),
        "--query-device=index,memory.used,utilization.device,power.draw",
        "--format=csv,noheader",
        "--loop-ms=100",
    ]
    with tempfile.TemporaryFile() as out:
        with subprocess.Popen(command, stdout=out) as polling:
            try:
                while not os.fstat(out.fileno()).st_size:
                    if polling.poll() is not None:
                        raise RuntimeError(f"spyre-smi ended with status {polling.returncode}")
                    time.sleep(0.01)
                yield
            finally:
                polling.terminate()


@contextlib.contextmanager
def history():
    import torch

    torch.spyre.memory._record_memory_history(max_entries=100000)
    try:
        yield
    finally:
        torch.spyre.memory._record_memory_history(enabled=None)


def tool_of(mode):
    """Returns what is on while a sample is taken, besides the variables of the process."""
    from torch.profiler import ProfilerActivity, profile

    if mode.startswith("torch.profiler"):
        return profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1])
    return {"spyre-smi at 10 Hz": smi, "memory history": history}.get(
        mode, contextlib.nullcontext
    )()


def works():
    """Returns functions of a number of repetitions that return a result on the host."""
    import minilm
    import torch

    torch.manual_seed(0)
    x, y = (torch.randn(96, 320).half().to("spyre") for _ in range(2))
    model, batch = minilm.load("spyre", torch.float16), minilm.batches("spyre", minilm.BATCH)[0]
    compiled = torch.compile(model)

    def launches(count):
        for _ in range(count):
            z = torch.add(x, y)
        return z.cpu()

    @torch.no_grad()
    def step(count):
        for _ in range(count):
            result = compiled(**batch).last_hidden_state.cpu()
        return result

    return {LAUNCHES[0]: launches, MINILM[0]: step}


def serve():
    import torch

    import torch_spyre  # noqa: F401

    made = works()
    for line in sys.stdin:
        name, mode, count = json.loads(line)
        with tool_of(mode):
            torch.spyre.synchronize()
            start = time.perf_counter()
            result = made[name](count)
            seconds = time.perf_counter() - start
        print(json.dumps([seconds, hashlib.sha256(result.numpy().tobytes()).hexdigest()]), flush=True)


def measure(processes, work, samples):
    """Returns the samples of each mode in seconds, and their digests."""
    count = 1
    for process in processes.values():
        process.run(work, "nothing", 1)  # compiles
    while count < 1 << 16 and min(
        processes["plain"].run(work, "nothing", count)[0] for _ in range(3)
    ) < SAMPLE:  # fmt: skip
        count *= 2
    seconds, digests = {name: [] for name, _, _ in MODES}, {}
    for _ in range(samples):
        for name, process, _ in MODES:
            taken, digest = processes[process].run(work, name, count)
            seconds[name].append(taken / count)
            digests.setdefault(digest, set()).add(name)
    return seconds, digests


def run(report, samples):
    """Adds the figures; raises an error if a result depends on a tool."""
    with tempfile.TemporaryDirectory() as folder:
        processes = {name: Process(values) for name, values in environments(folder).items()}
        for (work, unit), scale in ((LAUNCHES, 1e6), (MINILM, 1e3)):
            seconds, digests = measure(processes, work, samples)
            if len(digests) != 1:
                raise RuntimeError(f"{work}: results depend on what is on: {digests}")
            scaled = {name: [scale * s for s in taken] for name, taken in seconds.items()}
            for name, _, aim in MODES[1:]:
                report.add(f"{work}, {name}", unit, scaled[name], scaled["nothing"], "nothing on",
                           aim=aim, note="same bits")  # fmt: skip
        for process in processes.values():
            process.end()


if __name__ == "__main__" and "--process" in sys.argv:
    serve()
