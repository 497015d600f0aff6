# SPDX-License-Identifier: MIT
"""Where PyTorch has no hook: functions of its own that are wrapped."""

import functools

from torch import _tensor_str


def _print_on_host():
    """Formats numbers on the host, in float64, which the card has not."""
    original = _tensor_str._tensor_str

    @functools.wraps(original)
    def tensor_str(self, indent):
        return original(self.cpu() if self.device.type == "spyre" else self, indent)

    _tensor_str._tensor_str = tensor_str


def apply():
    _print_on_host()
