# SPDX-License-Identifier: MIT
"""The exception for what the card cannot compute."""


class Unsupported(RuntimeError):
    """Raised for an operation that the card does not have; `thing` is what was asked for."""

    def __init__(self, thing):
        super().__init__(f"Spyre backend does not support: {thing}")
