# SPDX-License-Identifier: MIT
"""`vllm serve` in processes of its own, on a port of the loopback, and a client of it."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time

#: Seconds until the server of a busy machine answers, and until a request has its answer.
START, ANSWER = 500, 300


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """A server of the checkpoint at @path; its output goes to @log. Options are vLLM's,
    @environment is added to this process's."""

    def __init__(self, path, log, *options, environment=()):
        self.port, self.log = free_port(), log
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", str(path),
                "--served-model-name", "small", "--host", "127.0.0.1", "--port", str(self.port),
                "--max-model-len", "256", "--max-num-seqs", "4", *options,
            ],
            env=os.environ | {"VLLM_ENABLE_V1_MULTIPROCESSING": "1"} | dict(environment),
            stdin=subprocess.DEVNULL, stdout=open(log, "w"), stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip

    def wait(self):
        """Waits until the server is healthy; raises with the end of its log if it ends."""
        end = time.monotonic() + START
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            try:
                if self.get("/health")[0] == 200:
                    return self
            except OSError:
                time.sleep(0.5)
        raise RuntimeError(f"the server is not healthy: {open(self.log).read()[-3000:]}")

    def members(self):
        """Returns the processes of the server's session that have not ended."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                    state, _, _, session = file.read().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if session == str(self.process.pid) and state != "Z":
                found.append(int(name))
        return found

    def terminate(self):
        """Sends SIGTERM to the server; returns its status and the processes that remain."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=120)
        end = time.monotonic() + 60
        while self.members() and time.monotonic() < end:
            time.sleep(0.2)
        return status, self.members()

    def kill(self):
        """Ends what is left of the session."""
        for pid in self.members():
            os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER)

    def get(self, path):
        connection = self.connection()
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def send(self, path, body):
        """Returns the connection, which the answer is read from."""
        connection = self.connection()
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", path, data, {"Content-Type": "application/json"})
        return connection

    def post(self, path, body):
        answer = self.send(path, body).getresponse()
        return answer.status, json.loads(answer.read())

    def metric(self, name, *labels):
        """Returns the sum of a metric over its series with these labels."""
        lines = self.get("/metrics")[1].splitlines()
        return sum(
            float(line.split()[-1])
            for line in lines
            if line.split("{")[0].split(" ")[0] == name and all(label in line for label in labels)
        )


def events(answer):
    """Returns the objects of a stream of server-sent events until its end."""
    for line in answer:
        if line.startswith(b"data: ") and line.strip() != b"data: [DONE]":
            yield json.loads(line[6:])
