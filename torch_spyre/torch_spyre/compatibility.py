# SPDX-License-Identifier: MIT
"""Checks that the running torch has the minor version that the extension was built against."""

import importlib.metadata
import re

import torch


def _built_for():
    """Returns the minor version of torch that the package requires, None if it is not installed."""
    try:
        requirements = importlib.metadata.requires("torch_spyre") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for requirement in requirements:
        if re.match(r"torch\b(?![-_.])", requirement):
            bound = re.search(r">=\s*(\d+\.\d+)", requirement)
            return bound and bound[1]
    return None


def _refusal(built, reason=""):
    """Returns the text of an ImportError for another torch than @built."""
    return (
        f"torch_spyre was built against torch {built or '(unknown)'} and cannot be loaded by torch "
        f"{torch.__version__}{reason}: there is no device 'spyre' in this process. Build "
        "torch_spyre again with this torch (pip install --no-build-isolation), or install "
        f"torch {built or 'that it was built against'}."
    )


def problem():
    """Loads the extension; returns None, or the reason why it cannot be loaded."""
    built = _built_for()
    if built and not re.match(rf"{re.escape(built)}(\.|[a-z+]|$)", torch.__version__):
        return _refusal(built)
    try:
        from . import _C  # noqa: F401
    except ImportError as error:
        return _refusal(built, f" ({error})")
    return None
