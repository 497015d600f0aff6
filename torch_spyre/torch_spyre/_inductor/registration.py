# SPDX-License-Identifier: MIT
"""The card's entries in Inductor's tables; what they name is imported when used."""

from torch._inductor.codegen.common import (
    DeviceOpOverrides,
    register_backend_for_device,
    register_device_op_overrides,
)
from torch._inductor.custom_graph_pass import CustomGraphModulePass


class SpyreOverrides(DeviceOpOverrides):
    """Lines of Python that generated wrappers contain."""

    def import_get_raw_stream_as(self, name):
        return (
            "from torch_spyre._inductor.device import SpyreInterface\n"
            f"{name} = SpyreInterface.get_raw_stream"
        )

    def set_device(self, device_idx):
        return f"torch.spyre.set_device({device_idx})"

    def synchronize(self):
        return "torch.spyre.synchronize()"

    def device_guard(self, device_idx):
        return f"torch.spyre.device({device_idx})"

    def current_stream(self):
        return "torch.spyre.current_stream()"


class SpyrePass(CustomGraphModulePass):
    """Gathers operations of the card into kernels."""

    def __call__(self, gm):
        from .graph_pass import run

        run(gm)

    def uuid(self):
        from .bundle import identity
        from .hint import text

        return identity() + text()


class Scheduling:
    """SpyreScheduling, imported when something is scheduled; Inductor asks for a class."""

    def __new__(cls, scheduler):
        from .scheduling import SpyreScheduling

        return SpyreScheduling(scheduler)


class Wrapper:
    """SpyreWrapperCodegen, imported when a wrapper is written."""

    supports_caching = True

    @staticmethod
    def create(*args, **kwargs):
        from .scheduling import SpyreWrapperCodegen

        return SpyreWrapperCodegen.create(*args, **kwargs)


def register():
    register_device_op_overrides("spyre", SpyreOverrides())
    register_backend_for_device("spyre", Scheduling, Wrapper, device_custom_pass=SpyrePass())
