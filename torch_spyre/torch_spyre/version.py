# SPDX-License-Identifier: MIT
"""The version of the package."""

from . import __version__

__all__ = ["__version__"]
