# SPDX-License-Identifier: MIT
"""Reports on cards; torch.profiler records their work."""

from .diagnostics import get_diagnostic_report

__all__ = ["get_diagnostic_report"]
