# SPDX-License-Identifier: MIT
"""Two small cards in this process, TAP for scripts/test, and the exclusion file."""

import logging
import os

# The cards of this process are configured before torch loads the plugin.
os.environ.setdefault("SPYRE_BACKEND", "embedded")
os.environ.setdefault("SPYRE_EMBEDDED_CARDS", "2")

import exclusions  # noqa: E402
import pytest  # noqa: E402
from tap import Tap  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--tap", metavar="FILE", help="also write the results there, as TAP")
    parser.addoption(
        "--no-exclusions", action="store_true", help="run what exclusions.txt leaves out"
    )


def pytest_configure(config):
    if config.getoption("--tap"):
        config.pluginmanager.register(Tap(config.getoption("--tap")), "tap")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--no-exclusions"):
        exclusions.apply(items)


@pytest.fixture(autouse=True)
def on_card_0():
    """A test leaves device and stream as it found them."""
    import torch

    torch.manual_seed(0)
    yield
    if torch.spyre.is_initialized():
        torch.spyre.set_device(0)


@pytest.fixture
def said(caplog, tmp_path, monkeypatch):
    """Resets torch.compile; the test gets a function that returns the log of the partition."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(logging.getLogger("torch_spyre.inductor"), "propagate", True)
    import torch

    torch._dynamo.reset()
    with torch.no_grad(), caplog.at_level(logging.INFO, "torch_spyre.inductor"):
        yield lambda: caplog.text
