# SPDX-License-Identifier: MIT
"""One server for all tests: clients, streams, requests that are refused, and its end."""

import re
import threading
import time

import pytest
from checkpoints import prompts
from servers import Server, events

COMPLETE, CHAT = "/v1/completions", "/v1/chat/completions"
GREEDY = {"model": "small", "temperature": 0, "max_tokens": 12, "ignore_eos": True}
SAY = {"messages": [{"role": "user", "content": "What is a card?"}]}


@pytest.fixture(scope="module")
def server(reference, tmp_path_factory):
    server = Server(reference.path, tmp_path_factory.mktemp("log") / "server.log")
    try:
        yield server.wait()
    finally:
        server.kill()


class TestAnswers:
    def test_models(self, server):
        status, text = server.get("/v1/models")
        assert status == 200 and '"small"' in text

    def test_completion(self, server):
        body = GREEDY | {"prompt": "A Spyre card has"}
        status, answer = server.post(COMPLETE, body)
        assert status == 200
        assert answer["usage"]["completion_tokens"] == 12 and answer["choices"][0]["text"]
        assert answer["choices"][0]["finish_reason"] == "length"

    def test_chat(self, server):
        status, answer = server.post(CHAT, GREEDY | SAY)
        assert status == 200
        message = answer["choices"][0]["message"]
        assert message["role"] == "assistant" and message["content"]

    def test_stream(self, server):
        body = GREEDY | {"prompt": "A Spyre card has"}
        whole = server.post(COMPLETE, body)[1]["choices"][0]["text"]
        answer = server.send(COMPLETE, body | {"stream": True}).getresponse()
        parts = [event["choices"][0]["text"] for event in events(answer)]
        assert len(parts) > 3 and "".join(parts) == whole

    def test_stop(self, server):
        body = GREEDY | {"prompt": "A Spyre card has"}
        whole = server.post(COMPLETE, body)[1]["choices"][0]["text"]
        stop = whole[len(whole) // 2 :][:2]
        (choice,) = server.post(COMPLETE, body | {"stop": [stop]})[1]["choices"]
        assert choice["finish_reason"] == "stop"
        assert choice["text"] == whole[: whole.index(stop)]

    def test_four_clients(self, server, reference):
        requests, results = prompts((70, 5, 31, 18), seed=20), [None] * 4

        def ask(i):
            body = GREEDY | {"prompt": requests[i], "return_token_ids": True}
            results[i] = server.post(COMPLETE, body)[1]["choices"][0]["token_ids"]

        clients = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        reference.check(requests, results)

    def test_structured_output(self, server):
        body = GREEDY | {"prompt": "yes or no:", "structured_outputs": {"choice": ["yes", "no"]}}
        body |= {"ignore_eos": False}
        status, answer = server.post(COMPLETE, body)
        assert status == 200 and answer["choices"][0]["text"] in ("yes", "no")


class TestTrouble:
    def test_a_client_goes_away(self, server):
        """The request ends before it has all of its tokens."""
        before = server.metric("vllm:generation_tokens_total")
        body = GREEDY | {"prompt": "A card", "stream": True, "max_tokens": 240}
        connection = server.send(COMPLETE, body)
        answer = connection.getresponse()
        next(events(answer))
        answer.close()
        connection.close()
        end = time.monotonic() + 300
        while server.metric("vllm:num_requests_running"):
            assert time.monotonic() < end, "the request is still running"
            time.sleep(0.2)
        assert 0 < server.metric("vllm:generation_tokens_total") - before < 240

    REFUSED = {
        "not JSON": (b"{", 400, "JSON"),
        "a wrong type": (
            {"model": "small", "prompt": "a", "max_tokens": "many"},
            400,
            "max_tokens",
        ),
        "another model": ({"model": "large", "prompt": "a"}, 404, "large"),
        "too long": (GREEDY | {"prompt": [5] * 300}, 400, "256"),
        "a token beyond the vocabulary": (GREEDY | {"prompt": [5000]}, 400, "vocab"),
        "prompt_logprobs": (GREEDY | {"prompt": "a", "prompt_logprobs": 1}, 400, "on spyre"),
    }

    @pytest.mark.parametrize("what", REFUSED)
    def test_refused(self, server, what):
        body, status, text = self.REFUSED[what]
        have, answer = server.post(COMPLETE, body)
        assert have == status and text in str(answer)
        assert server.get("/health")[0] == 200

    def test_metrics(self, server):
        assert server.metric("vllm:generation_tokens_total") > 12
        assert server.metric("vllm:kv_cache_usage_perc") == 0

    def test_counters_of_the_card(self, server):
        """Those of the engine's card, and of no other's on this machine."""
        before = server.metric("spyre_launches_total")
        server.post(COMPLETE, GREEDY | {"prompt": "A card"})
        assert server.metric("spyre_launches_total") > before > 0
        assert server.metric("spyre_memory_used_bytes") > 0
        pids = set(re.findall(r'^spyre_.*pid="(\d+)"', server.get("/metrics")[1], re.M))
        assert len(pids) == 1 and int(pids.pop()) in server.members()

    def test_it_ends_cleanly(self, server):
        assert len(server.members()) > 1
        status, left = server.terminate()
        assert (status, left) == (0, [])
