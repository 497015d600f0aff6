# SPDX-License-Identifier: MIT
"""Devices as people write them."""

import torch

from . import _C


class DtypeError(TypeError, RuntimeError):
    """A dtype without a form on the card.

    A TypeError, as of other devices without float64, and the RuntimeError that code
    expects of operations that a device does not have.
    """


def device_index(device=None, default=None):
    """Index of a card given as None, a number, a string or a torch.device.

    What names no card means `default`, or the current card.
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
