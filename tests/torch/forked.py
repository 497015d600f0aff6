# SPDX-License-Identifier: MIT
"""Runs scripts in processes of their own that do not each import PyTorch, which takes seconds.

One process imports PyTorch once, and then forks for every script; it uses no card and starts no
thread itself.
"""

import json
import os
import runpy
import signal
import subprocess
import sys
import time

LIMIT_S = 120


class Forker:
    """The process that forks."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )

    def run(self, script, arguments, environment):
        """Runs a script for each list of arguments at the same time.

        Returns (status, output) of each; the status is negative for a signal.
        """
        outputs = [f"{script}.{i}" for i in range(len(arguments))]
        request = {
            "script": str(script), "arguments": arguments, "outputs": outputs,
            "environment": environment,
        }
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        statuses = json.loads(self.process.stdout.readline())
        texts = []
        for output in outputs:
            with open(output) as file:
                texts.append(file.read())
        return list(zip(statuses, texts))

    def close(self):
        """Ends the process."""
        self.process.stdin.close()
        self.process.wait()


def become(script, arguments, output, environment):
    """Runs a script in this process, which is a fork, and ends it."""
    from torch.distributed import set_debug_level_from_env

    os.environ.update(environment)
    set_debug_level_from_env()  # as the import does
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.stdin = open(os.devnull)
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")
    sys.exit()


def statuses_of(pids):
    """Waits for processes, and kills those that take too long; returns their statuses."""
    deadline = time.monotonic() + LIMIT_S
    statuses = dict.fromkeys(pids)
    while None in statuses.values():
        for pid in [pid for pid in pids if statuses[pid] is None]:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                statuses[pid] = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    return list(statuses.values())


def serve():
    """Forks for each request."""
    import torch.distributed  # noqa: F401

    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        pids = []
        for arguments, output in zip(request["arguments"], request["outputs"]):
            pid = os.fork()
            if not pid:
                become(request["script"], arguments, output, request["environment"])
            pids.append(pid)
        print(json.dumps(statuses_of(pids)), flush=True)


if __name__ == "__main__":
    serve()
