# SPDX-License-Identifier: MIT
"""PyTorch on Spyre devices.

Importing this module registers the device "spyre" and opens no card. torch imports it
through the entry point "torch.backends".
"""

import warnings


def _autoload():
    """Does nothing: `import torch` calls it after this module has registered the device.

    It is defined first, because a program that imports this module before torch reaches the call
        during the next import statement.
    """


import torch

from .compatibility import problem

__version__ = "0.1.0"

__all__ = ["DataFormats", "ElementArrangement", "SpyreTensorLayout", "require_layout"]

_problem = problem()


def _register():
    """Makes torch.spyre a device module and registers all hooks of the plugin."""
    torch.utils.rename_privateuse1_backend("spyre")
    from . import device, ipc, model_utils, patches

    torch._register_device_module("spyre", device)
    patches.apply()
    model_utils.lay_out_linear_weights()
    ipc.register()
    torch.utils.generate_methods_for_privateuse1_backend(
        for_storage=True, for_packed_sequence=True
    )
    from . import _inductor, accelerate, distributed, dtensor, lowlevel, ops  # noqa: F401

    lowlevel.register()
    _inductor.register()
    accelerate.register()
    distributed.register()
    dtensor.register()


if _problem is None:
    from . import _C
    from ._C import DataFormats, ElementArrangement, SpyreTensorLayout
    from .patches import require_layout

    _register()
else:
    # `import torch` loads this module, so it must not fail for users of other devices.
    warnings.warn(_problem, RuntimeWarning, stacklevel=2)

    def __getattr__(name):
        """Raises the ImportError of a torch_spyre that could not be loaded."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise ImportError(_problem)
