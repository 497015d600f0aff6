#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""vLLM on a card beside vLLM's own CPU platform: servers, offline batches, and start-up.

scripts/bench vllm runs it. Both servers are up at the same time and are asked in alternation, by
`vllm bench serve`, with the same prompts; the one that is not asked is idle. `vllm bench latency`
runs once for each batch and platform, one after the other.
"""

import argparse
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch"))

#: Requests in flight, and the requests of a sample.
LOADS = ((1, 4), (4, 12), (8, 24))
#: Tokens of a prompt, and of an answer.
PROMPT, ANSWER = 64, 32
LIMITS = ["--max-model-len", "256", "--max-num-seqs", "8"]
#: Seconds within which a server or a benchmark must be done.
PATIENCE = 900
VLLM = [sys.executable, "-m", "vllm.entrypoints.cli.main"]
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Platform:
    """One of both: the environment of its processes, and its server."""

    def __init__(self, name, folder, options, environment):
        self.name, self.folder, self.options = name, folder, options
        self.environment = os.environ | QUIET | environment
        self.server = None

    def path(self, name):
        return os.path.join(self.folder, f"{self.name}-{name}")

    def run(self, *arguments):
        """Runs a command of vLLM to its end, and returns the JSON that it wrote."""
        out = self.path("result.json")
        arguments = [out if argument is None else argument for argument in arguments]
        with open(self.path("bench.log"), "w", encoding="utf-8") as log:
            status = subprocess.run(
                [*VLLM, *arguments], env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, timeout=PATIENCE,
            ).returncode  # fmt: skip
        if status:
            sys.exit(f"bench/serving.py: vllm {arguments[0]} on {self.name} ended with {status}:\n"
                     f"{tail(self.path('bench.log'))}")  # fmt: skip
        with open(out, encoding="utf-8") as file:
            return json.load(file)

    def start(self, checkpoint):
        """Starts the server; returns the seconds until it is healthy."""
        self.port = free_port()
        begin = time.monotonic()
        with open(self.path("server.log"), "w", encoding="utf-8") as log:
            self.server = subprocess.Popen(
                [
                    *VLLM, "serve", checkpoint, "--served-model-name", "model",
                    "--host", "127.0.0.1", "--port", str(self.port), *LIMITS, *self.options,
                ],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        while not self.healthy():
            if self.server.poll() is not None or time.monotonic() - begin > PATIENCE:
                sys.exit(f"bench/serving.py: no server on {self.name}:\n"
                         f"{tail(self.path('server.log'))}")  # fmt: skip
            time.sleep(0.1)
        return time.monotonic() - begin

    def healthy(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def stop(self):
        """Ends the server, and what is left of its session after a minute."""
        if self.server is None:
            return
        self.server.send_signal(signal.SIGTERM)
        try:
            self.server.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self.server.pid, signal.SIGKILL)
            self.server.wait()
        self.server = None

    def ask(self, checkpoint, flight, requests, seed):
        """Returns the figures of `vllm bench serve`."""
        return self.run(
            "bench", "serve", "--backend", "openai",
            "--base-url", f"http://127.0.0.1:{self.port}", "--model", "model",
            "--tokenizer", checkpoint, "--dataset-name", "random", "--seed", str(seed),
            "--random-input-len", str(PROMPT), "--random-output-len", str(ANSWER), "--ignore-eos",
            "--num-prompts", str(requests), "--max-concurrency", str(flight),
            "--disable-tqdm", "--save-result", "--result-filename", None,
        )  # fmt: skip

    def latency(self, checkpoint, batch, samples):
        """Returns the seconds of each of the batches of `vllm bench latency`."""
        return self.run(
            "bench", "latency", "--model", checkpoint, "--input-len", str(PROMPT),
            "--output-len", str(ANSWER), "--batch-size", str(batch), *LIMITS, *self.options,
            "--num-iters-warmup", "2", "--num-iters", str(samples), "--output-json", None,
        )["latencies"]  # fmt: skip


def tail(path, lines=20):
    with open(path, encoding="utf-8", errors="replace") as file:
        return "".join(file.readlines()[-lines:])


def compare_servers(report, card, peer, checkpoint, samples):
    """Adds rates and latencies of both servers under each load."""
    for flight, requests in LOADS:
        found = {card: [], peer: []}
        for sample in range(-1, samples):  # the first one compiles what the load needs
            for platform in found:
                figures = platform.ask(checkpoint, flight, requests, sample + 1)
                if figures["completed"] != requests:
                    sys.exit(f"bench/serving.py: {platform.name} answered {figures['completed']} "
                             f"of {requests} requests")  # fmt: skip
                if sample >= 0:
                    found[platform].append(figures)
        for what, unit, key, better in (
            ("output", "tokens/s", "output_throughput", "higher"),
            ("time to first token", "ms", "median_ttft_ms", "lower"),
            ("time between tokens", "ms", "median_itl_ms", "lower"),
        ):
            report.add(
                f"vllm serve, {flight} in flight, {what}", unit,
                [one[key] for one in found[card]], [one[key] for one in found[peer]],
                peer.name, better, 1.0,
            )  # fmt: skip


def compare_starts(report, card, peer, checkpoint, samples):
    """Adds the time from the command to /health of an engine that has run before."""
    seconds = {card: [], peer: []}
    for sample in range(-1, samples):
        for platform in seconds:
            platform.stop()
            second = platform.start(checkpoint)
            if sample >= 0:
                seconds[platform].append(second)
            if sample < 0:
                platform.ask(checkpoint, 1, 2, 0)
            platform.stop()
    report.add("vllm serve, start to /health, warm", "s", seconds[card], seconds[peer], peer.name,
               "lower", 1.5)  # fmt: skip


def compare_batches(report, card, peer, checkpoint, samples):
    """Adds the rate of offline batches."""
    for batch, _ in LOADS:
        rates = [
            [batch * ANSWER / one for one in platform.latency(checkpoint, batch, samples)]
            for platform in (card, peer)
        ]
        report.add(f"vllm bench latency, batch {batch}", "tokens/s", *rates, peer.name, "higher", 1.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--checkpoint", required=True, help="folder of SmolLM2-135M-Instruct")
    parser.add_argument("--cpu", required=True, help="folder of a vLLM built for CPUs")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--samples", type=int, default=5)
    options = parser.parse_args()
    from report import Report

    report = Report()
    path = os.pathsep.join(filter(None, (options.cpu, os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryDirectory() as folder:
        card = Platform("card", folder, [], {})
        peer = Platform(
            "vLLM, CPU, fp32", folder, ["--dtype", "float32"],
            # No plugin's platform, and all processors: by default vLLM leaves one unused.
            {
                "PYTHONPATH": path, "VLLM_PLUGINS": "", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
                "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_CPU_KVCACHE_SPACE": "1",
            },
        )  # fmt: skip
        try:
            compare_starts(report, card, peer, options.checkpoint, min(3, options.samples))
            for platform in (card, peer):
                platform.start(options.checkpoint)
            compare_servers(report, card, peer, options.checkpoint, options.samples)
        finally:
            card.stop()
            peer.stop()
        compare_batches(report, card, peer, options.checkpoint, options.samples)
    report.print()
    if options.json:
        report.write(options.json)


if __name__ == "__main__":
    main()
