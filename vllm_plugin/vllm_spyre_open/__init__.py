# SPDX-License-Identifier: MIT
"""vLLM on Spyre devices, as a platform plugin out of its tree.

vLLM finds the package by the entry point "spyre" and calls find_platform() in each of its
processes.
"""

import importlib.util

from .version import __version__

__all__ = ["__version__", "find_platform"]


def find_platform():
    """Returns the name of the platform's class; None if there is no PyTorch plugin for the card.

    It is found without being imported, because vLLM calls this while it imports itself, and hides
    errors. A card is opened by the worker alone.
    """
    if importlib.util.find_spec("torch_spyre") is None:
        return None
    return "vllm_spyre_open.platform.SpyrePlatform"
