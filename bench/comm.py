#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""all_reduce of spyre-perf, of spyreccl and of Gloo on CPU tensors, in alternation.

scripts/bench comm runs it. The ranks of torch.distributed are started once and wait while the
others are measured. All measure the time of calls in sequence on the slowest rank, after a
warm-up, with one thread for each rank.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch"))

# Bytes, and calls that are timed: about 100 ms of them.
SIZES = ((64 << 10, 100), (1 << 20, 40), (16 << 20, 4))
RANKS = (2, 4, 8)
AIM = 2.0


def bus_bandwidth(ranks, size, seconds):
    return size / seconds * 2 * (ranks - 1) / ranks * 1e-9


def torch_rank(backend, rank, ranks, store):
    """A rank of torch.distributed: reads "BYTES CALLS" from stdin, prints the seconds of a call."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    device = "spyre" if backend == "spyreccl" else "cpu"
    dist.init_process_group(
        backend,
        store=dist.FileStore(store, ranks),
        rank=rank,
        world_size=ranks,
        device_id=torch.device("spyre", rank) if device == "spyre" else None,
    )
    for line in sys.stdin:
        size, calls = map(int, line.split())
        tensor = torch.zeros(size // 4, device=device)
        for _ in range(max(2, calls // 4)):
            dist.all_reduce(tensor)
        dist.barrier()
        start = time.perf_counter()
        for _ in range(calls):
            dist.all_reduce(tensor)
        if device == "spyre":
            torch.accelerator.synchronize()
        seconds = torch.tensor([(time.perf_counter() - start) / calls]).to(device)
        dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
        print(seconds.item(), flush=True)
    dist.destroy_process_group()


def card_environment(ranks):
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "SPYRE_BACKEND": "embedded",
        "SPYRE_EMBEDDED_CARDS": str(ranks),
        "SPYRE_EMBEDDED_THREADS": "1",
    }


class Ranks:
    """Processes of a back end of torch.distributed, which wait between measurements."""

    def __init__(self, backend, ranks, folder):
        self.backend = backend
        store = os.path.join(folder, f"{backend}-{ranks}")
        command = [sys.executable, os.path.abspath(__file__), "--rank", backend]
        self.ranks = [
            subprocess.Popen(
                [*command, str(rank), str(ranks), store],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**card_environment(ranks), "LOCAL_RANK": str(rank)},
            )
            for rank in range(ranks)
        ]
        self.measure(4096, 1)

    def measure(self, size, calls):
        for process in self.ranks:
            process.stdin.write(f"{size} {calls}\n")
            process.stdin.flush()
        answers = [process.stdout.readline() for process in self.ranks]
        if not all(answers):
            sys.exit(f"bench/comm.py: a rank of {self.backend} has ended")
        return float(answers[0])

    def close(self):
        for process in self.ranks:
            process.stdin.close()
        for process in self.ranks:
            process.wait()


def spyre(perf, ranks, size, calls):
    """Seconds of a call of spyre-perf, which checks the results as well."""
    command = [perf, "all_reduce", "-n", str(ranks), "-d", "fp32", "-b", str(size), "-e", str(size)]
    command += [f"--iters={calls}", "-w", str(max(2, calls // 4)), "--json"]
    run = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, env=card_environment(ranks), check=True
    )
    return json.loads(run.stdout)["sizes"][0]["out_of_place"]["time_us"] * 1e-6


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--perf", required=True, help="spyre-perf")
    parser.add_argument(
        "--include", metavar="FILE", help="begin with the rows of spyre-bench --json"
    )
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--samples", type=int, default=9)
    options = parser.parse_args()
    from report import Report

    report = Report()
    if options.include:
        report.include(options.include)
    with tempfile.TemporaryDirectory() as folder:
        for ranks in RANKS:
            gloo, plugin = Ranks("gloo", ranks, folder), Ranks("spyreccl", ranks, folder)
            for size, calls in SIZES:
                samples = {"all_reduce": [], "spyreccl": [], "gloo": []}
                for _ in range(options.samples):
                    for name, seconds in (
                        ("gloo", gloo.measure(size, calls)),
                        ("all_reduce", spyre(options.perf, ranks, size, calls)),
                        ("spyreccl", plugin.measure(size, calls)),
                    ):
                        samples[name].append(bus_bandwidth(ranks, size, seconds))
                for name in ("all_reduce", "spyreccl"):
                    report.add(
                        f"{name} fp32 {size >> 10} KiB, {ranks} ranks",
                        "GB/s",
                        samples[name],
                        samples["gloo"],
                        "Gloo, CPU tensors",
                        better="higher",
                        aim=AIM,
                    )
            gloo.close()
            plugin.close()
    report.print()
    if options.json:
        report.write(options.json)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        torch_rank(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        main()
