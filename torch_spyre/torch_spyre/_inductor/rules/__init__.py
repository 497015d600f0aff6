# SPDX-License-Identifier: MIT
"""How operations of ATen are said in operations of the builder."""

from . import formula, matmul, pointwise, reduce  # noqa: F401
from .base import RULES, Call
from .reduce import REDUCED

__all__ = ["REDUCED", "RULES", "Call"]
