# SPDX-License-Identifier: MIT
"""The warning about operations that run on the CPU."""

import os
import sys
import warnings

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class FallbackWarning(UserWarning):
    """Warns that an operation runs on the CPU, because the card has no kernel for it."""


def warn_text(text):
    """Warns at the line of the program that called this package; the extension calls it as well."""
    level, frame = 1, sys._getframe()
    while frame and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, FallbackWarning, stacklevel=level)


def warn_fallback(op, fallback_device="cpu"):
    """Warns that the operation `op` runs on another device."""
    warn_text(f"spyre: {op} runs on the {str(fallback_device).upper()}")
