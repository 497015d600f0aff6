# SPDX-License-Identifier: MIT
"""PyTorch on Spyre devices.

Importing this (torch does it by the entry point "torch.backends") names the
device "spyre" and opens no card.
"""

import warnings


def _autoload():
    """Called by `import torch`; importing this module has done the work.

    Defined first: in a program that imports this module before torch, the next import calls it.
    """


import torch

from .compatibility import problem

__version__ = "0.1.0"

__all__ = ["DataFormats", "ElementArrangement", "SpyreTensorLayout", "require_layout"]

_problem = problem()


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


if _problem is None:
    from . import _C
    from ._C import DataFormats, ElementArrangement, SpyreTensorLayout
    from .patches import require_layout

    _register()
else:
    # `import torch` loads this: it has to work for those who do not want the device.
    warnings.warn(_problem, RuntimeWarning, stacklevel=2)

    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise ImportError(_problem)
