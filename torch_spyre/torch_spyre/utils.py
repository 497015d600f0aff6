# SPDX-License-Identifier: MIT
"""Conversion of the forms in which callers name devices."""

import torch

from . import _C


class DtypeError(TypeError, RuntimeError):
    """Raised for a dtype that the card cannot store.

    It is a TypeError, as on other devices without float64, and also the RuntimeError that
    code expects of operations that a device lacks.
    """


def device_index(device=None, default=None):
    """Returns the index of a card given as None, an int, a string or a torch.device.

    None and a device without an index give `default`, or the current card if that is None.
    Raises ValueError for another device type.
    """
    if device is None:
        index = None
    elif isinstance(device, int):
        index = device
    else:
        device = torch.device(device)
        if device.type != "spyre":
            raise ValueError(f"expected a spyre device, got {device}")
        index = device.index
    if index is not None:
        return index
    return _C._current_device() if default is None else default
