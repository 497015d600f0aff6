# SPDX-License-Identifier: MIT
"""The card's entries in Inductor's tables, whose modules are imported on first use."""

from torch._inductor.codegen.common import (
    DeviceOpOverrides,
    register_backend_for_device,
    register_device_op_overrides,
)
from torch._inductor.custom_graph_pass import CustomGraphModulePass


class SpyreOverrides(DeviceOpOverrides):
    """Python expressions for the generated wrappers."""

    def import_get_raw_stream_as(self, name):
        """Returns the import of the function for raw streams under the given name."""
        return (
            "from torch_spyre._inductor.device import SpyreInterface\n"
            f"{name} = SpyreInterface.get_raw_stream"
        )

    def set_device(self, device_idx):
        """Returns the call that makes a card the current one."""
        return f"torch.spyre.set_device({device_idx})"

    def synchronize(self):
        """Returns the call that waits for the current card."""
        return "torch.spyre.synchronize()"

    def device_guard(self, device_idx):
        """Returns the context manager of a card."""
        return f"torch.spyre.device({device_idx})"

    def current_stream(self):
        """Returns the call for the current stream."""
        return "torch.spyre.current_stream()"


class SpyrePass(CustomGraphModulePass):
    """The custom pass that gathers operations of the card into kernels."""

    def __call__(self, gm):
        """Groups the operations of the graph module."""
        from .graph_pass import run

        run(gm)

    def uuid(self):
        """Returns the part of Inductor's cache key that stands for the pass and what it reads
        beside the graph: hints, layouts of inputs, and what is to be written beside kernels."""
        from . import dump, hint, layouts, provenance
        from .bundle import identity

        told = f"{bool(provenance.wanted())}{dump.wanted()}"
        return identity() + hint.text() + layouts.text() + told


class Scheduling:
    """Stands for SpyreScheduling, which is imported on first use; Inductor requires a class."""

    def __new__(cls, scheduler):
        from .scheduling import SpyreScheduling

        return SpyreScheduling(scheduler)


class Wrapper:
    """Stands for SpyreWrapperCodegen, which is imported on first use."""

    supports_caching = True

    @staticmethod
    def create(*args, **kwargs):
        """Makes a SpyreWrapperCodegen with Inductor's arguments."""
        from .scheduling import SpyreWrapperCodegen

        return SpyreWrapperCodegen.create(*args, **kwargs)


def register():
    """Registers the card's overrides, scheduling, wrapper and pass with Inductor."""
    register_device_op_overrides("spyre", SpyreOverrides())
    register_backend_for_device("spyre", Scheduling, Wrapper, device_custom_pass=SpyrePass())
