# SPDX-License-Identifier: MIT
"""Rules that lower operations of ATen to operations of the builder."""

from . import index, matmul, pointwise, reduce, table  # noqa: F401
from .base import RULES, Call
from .reduce import REDUCED

__all__ = ["REDUCED", "RULES", "Call"]
