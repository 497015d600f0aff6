# SPDX-License-Identifier: MIT
"""PyTorch on Spyre devices.

Importing this (torch does it by the entry point "torch.backends") names the
device "spyre" and opens no card.
"""

import torch

from . import _C
from ._C import DataFormats, ElementArrangement, SpyreTensorLayout
from .patches import require_layout

__version__ = "0.1.0"

__all__ = ["DataFormats", "ElementArrangement", "SpyreTensorLayout", "require_layout"]


def _register():
    torch.utils.rename_privateuse1_backend("spyre")
    from . import device, ipc, patches

    torch._register_device_module("spyre", device)
    patches.apply()
    ipc.register()
    torch.utils.generate_methods_for_privateuse1_backend(
        for_storage=True, for_packed_sequence=True
    )
    from . import _inductor

    _inductor.register()


_register()


def _autoload():
    """Called by `import torch`; importing this module has done the work."""
