# SPDX-License-Identifier: MIT
"""The version, which is that of torch_spyre."""

__version__ = "0.1.0"
