# SPDX-License-Identifier: MIT
"""First failure data: the state that a problem report needs, as plain data."""

import os
import platform

import torch

from . import _C

_PREFIXES = ("SPYRE_", "TORCH_SPYRE_", "FLEX_", "AIU_", "SENCORES", "TORCH_DEVICE_BACKEND")


def _card(index):
    """Describes card @index: properties, state and, if it can be read, memory."""
    card = {"properties": _C._properties(index), "state": None, "memory": None}
    state = _C._state(index)
    if state is None:
        return card
    card["state"] = state
    if state["health"] in ("ok", "faulted"):
        free, total = torch.accelerator.get_memory_info(index)
        card["memory"] = {
            "free": free,
            "total": total,
            "allocated": torch.accelerator.memory_allocated(index),
            "reserved": torch.accelerator.memory_reserved(index),
        }
    return card


def get_diagnostic_report():
    """Returns versions, environment, cards with first errors and memory, and fallbacks as a dict.

    Opens no card: the entry of a card that is not open has only its properties. Memory is in
    bytes.
    """
    return {
        "versions": {
            "torch": torch.__version__,
            "libspyre": _C._libspyre_version(),
            "python": platform.python_version(),
            "kernel": platform.release(),
        },
        "environment": {
            name: value for name, value in sorted(os.environ.items()) if name.startswith(_PREFIXES)
        },
        "in_bad_fork": _C._is_in_bad_fork(),
        "cards": [_card(index) for index in range(_C._device_count())],
        "fallbacks": _C._fallback_counts(),
    }
