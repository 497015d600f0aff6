# SPDX-License-Identifier: MIT
"""The environment of the tests of the vLLM plugin: one embedded card, no network, no usage report.

Helpers of tests/torch are used as they are.
"""

import os
import sys

import pytest

for name, value in {
    "SPYRE_BACKEND": "embedded",
    "SPYRE_EMBEDDED_CARDS": "1",
    "TORCH_SPYRE_DOWNCAST_WARN": "0",
    # The engine is in this process, where its card's fallbacks can be counted.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
}.items():
    os.environ.setdefault(name, value)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(__file__)), "torch"))

from tap import Tap  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--tap", metavar="FILE", help="also write the results there, as TAP")


def pytest_configure(config):
    if config.getoption("--tap"):
        config.pluginmanager.register(Tap(config.getoption("--tap")), "tap")


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """A checkpoint at reference.path that servers can serve, and its model on the host."""
    from checkpoints import save_tokenizer
    from engines import Reference

    path = tmp_path_factory.mktemp("llama3")
    reference = Reference("llama3", path)
    reference.path = path
    save_tokenizer(path)
    return reference


@pytest.fixture
def start(reference, tmp_path):
    """Starts the test's server, which ends with it."""
    from servers import Server

    servers = []

    def make(*options, **environment):
        log = tmp_path / "server.log"
        servers.append(Server(reference.path, log, *options, environment=environment))
        return servers[0].wait()

    yield make
    for server in servers:
        server.kill()
