# SPDX-License-Identifier: MIT
"""Servers that run out of pages, lose their engine or their card, or end under load."""

import json
import os
import re
import signal
import threading
import time

import pytest
from checkpoints import prompts
from servers import events

COMPLETE = "/v1/completions"
GREEDY = {"model": "small", "temperature": 0, "ignore_eos": True, "return_token_ids": True}
#: Seconds after which a server that has lost its engine must have ended.
PATIENCE = 200


class Streams:
    """Clients that read long answers until they end or break off."""

    def __init__(self, server, count=3):
        self.ends = [None] * count
        self.begun = [threading.Event() for _ in range(count)]
        self.threads = [
            threading.Thread(target=self.read, args=(server, i, ids))
            for i, ids in enumerate(prompts([9] * count, seed=31))
        ]
        for thread in self.threads:
            thread.start()

    def read(self, server, i, ids):
        """Keeps the reason of the end: "length", the server's error, or that of the connection."""
        body = GREEDY | {"prompt": ids, "max_tokens": 240, "stream": True}
        end = "broken off"
        try:
            for event in events(server.send(COMPLETE, body).getresponse()):
                if "choices" not in event:
                    end = json.dumps(event)
                elif event["choices"]:
                    end = event["choices"][0]["finish_reason"] or end
                self.begun[i].set()
        except (OSError, ValueError) as error:
            end = str(error)
        self.ends[i] = end
        self.begun[i].set()

    def wait_for_begin(self):
        for begun in self.begun:
            assert begun.wait(PATIENCE)
        assert self.ends == [None] * len(self.ends), self.ends

    def join(self):
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), f"a client still waits after {PATIENCE} s"
        return self.ends


def ended(server):
    """Waits until the server has ended, with all of its processes."""
    server.process.wait(timeout=PATIENCE)
    end = time.monotonic() + PATIENCE
    while server.members():
        assert time.monotonic() < end, "processes of the server are left"
        time.sleep(0.2)


def process_of(server, name):
    """The last process of the server whose name begins like this."""
    for pid in sorted(server.members(), reverse=True):
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            if file.read().startswith(name):
                return pid
    raise AssertionError(f"the server has no process {name}")


def test_pages_run_out_and_the_engine_is_killed(start, reference):
    """Preempted requests lose nothing. A server without an engine ends."""
    server = start("--num-gpu-blocks-override", "5", "--no-enable-prefix-caching")
    requests, results = prompts((60, 61, 62, 40), seed=30), [None] * 4

    def ask(i):
        answer = server.post(COMPLETE, GREEDY | {"prompt": requests[i], "max_tokens": 16})
        results[i] = answer[1]["choices"][0]["token_ids"]

    clients = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert server.metric("vllm:num_preemptions_total") > 0
    reference.check(requests, results)

    streams = Streams(server)
    streams.wait_for_begin()
    os.kill(process_of(server, "VLLM::EngineCor"), signal.SIGKILL)
    assert "length" not in streams.join()
    ended(server)
    assert "EngineDeadError" in open(server.log).read()


FAULTS = os.path.join(os.path.dirname(__file__), "faults")


def test_the_card_is_reset(start, tmp_path):
    """Clients learn of it, and a server without its weights ends."""
    flag = tmp_path / "reset"
    server = start(SPYRE_TEST_RESET=str(flag), PYTHONPATH=FAULTS)
    streams = Streams(server)
    streams.wait_for_begin()
    flag.touch()
    assert "length" not in streams.join()
    ended(server)
    log = open(server.log).read()
    assert "the test has reset the card: status 0" in log
    assert re.search("card( 0)? was reset", log) and "EngineDeadError" in log


def test_it_is_terminated_under_load(start):
    """Requests in flight have their whole answer, and later ones none."""
    server = start()
    streams = Streams(server)
    streams.wait_for_begin()
    status, left = server.terminate()
    assert (status, left) == (0, [])
    assert streams.join() == ["length"] * 3
    with pytest.raises(OSError):
        server.get("/health")


def test_a_rank_is_killed(start):
    """The other rank waits for it in no collective, and the server ends."""
    server = start("--tensor-parallel-size", "2", SPYRE_EMBEDDED_CARDS="2")
    streams = Streams(server)
    streams.wait_for_begin()
    os.kill(process_of(server, "VLLM::Worker_TP"), signal.SIGKILL)
    assert "length" not in streams.join()
    ended(server)
