# SPDX-License-Identifier: MIT
"""A thousand requests of random lengths at a server, sixteen in flight."""

import queue
import random
import threading

from checkpoints import prompts

REQUESTS, IN_FLIGHT = 1000, 16
LIMIT = ("--max-num-seqs", str(IN_FLIGHT))
#: Requests whose tokens are compared with those of transformers.
SAMPLE = 50


def ask_all(server, requests):
    """Returns the tokens of each of the @requests, pairs of a prompt and a number of tokens."""
    todo, results = queue.SimpleQueue(), [None] * len(requests)
    for i in range(len(requests)):
        todo.put(i)

    def client():
        while True:
            try:
                i = todo.get_nowait()
            except queue.Empty:
                return
            prompt, count = requests[i]
            body = {
                "model": "small", "prompt": prompt, "max_tokens": count, "temperature": 0,
                "ignore_eos": True, "return_token_ids": True,
            }  # fmt: skip
            status, answer = server.post("/v1/completions", body)
            results[i] = answer["choices"][0]["token_ids"] if status == 200 else answer

    clients = [threading.Thread(target=client) for _ in range(IN_FLIGHT)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    return results


def random_requests(count, seed):
    generator = random.Random(seed)
    lengths = [generator.randint(1, 120) for _ in range(count)]
    return [(ids, generator.randint(1, 24)) for ids in prompts(lengths, seed)]


def ask_a_thousand(server, reference):
    """None is lost, and none is wrong."""
    requests = random_requests(REQUESTS, seed=51)
    results = ask_all(server, requests)
    assert [len(tokens) for tokens in results] == [count for _, count in requests]
    sample = random.Random(52).sample(range(REQUESTS), SAMPLE)
    reference.check([requests[i][0] for i in sample], [results[i] for i in sample])
    assert server.metric("vllm:num_requests_running") == 0
    assert server.metric("vllm:num_requests_waiting") == 0
    assert server.metric("vllm:kv_cache_usage_perc") == 0


def test_steps_that_are_replayed(start, reference):
    ask_a_thousand(start(*LIMIT), reference)


def test_memory_returns(start, reference):
    """Of steps that are called, programs alone stay in the card's memory, within their limit."""
    limit = 8 << 20
    server = start(*LIMIT, "--enforce-eager", TORCH_SPYRE_PROGRAM_CACHE_MIB=str(limit >> 20))
    ask_all(server, random_requests(200, seed=50))
    before = server.metric("spyre_memory_used_bytes")
    ask_a_thousand(server, reference)
    after = server.metric("spyre_memory_used_bytes")
    assert after <= before + limit, (before, after)
