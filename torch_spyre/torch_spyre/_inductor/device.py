# SPDX-License-Identifier: MIT
"""The card's device interface for dynamo and Inductor."""

import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device


class SpyreInterface(DeviceInterface):
    """torch.spyre under the names of dynamo's DeviceInterface."""

    device = torch.spyre.device
    Event = torch.Event
    Stream = torch.Stream

    class Worker:
        """The part of the interface that Inductor uses in compile workers."""

        @staticmethod
        def set_device(device):
            """Makes a card the current one."""
            torch.spyre.set_device(device)

        @staticmethod
        def current_device():
            """Returns the index of the current card."""
            return torch.spyre.current_device()

        @staticmethod
        def get_device_properties(device=None):
            """Returns the properties of a card."""
            return torch.spyre.get_device_properties(device)

    current_device = staticmethod(torch.spyre.current_device)
    set_device = staticmethod(torch.spyre.set_device)
    device_count = staticmethod(torch.spyre.device_count)
    is_available = staticmethod(torch.spyre.is_available)
    current_stream = staticmethod(torch.spyre.current_stream)
    synchronize = staticmethod(torch.spyre.synchronize)

    @staticmethod
    def exchange_device(device):
        """Makes a card the current one unless `device` is negative; returns the previous index."""
        if device < 0:
            return -1
        previous = torch.spyre.current_device()
        torch.spyre.set_device(device)
        return previous

    maybe_exchange_device = exchange_device

    @staticmethod
    def stream(stream):
        """Returns a context manager that makes `stream` current."""
        return torch.spyre.stream(stream)

    @staticmethod
    def set_stream(stream):
        """Makes `stream` the current one."""
        torch.accelerator.set_stream(stream)

    @staticmethod
    def _set_stream_by_id(stream_id, device_index, device_type):
        """Makes a stream, given by its parts, the current one."""
        torch.accelerator.set_stream(
            torch.Stream(
                stream_id=stream_id, device_index=device_index, device_type=device_type
            )
        )

    @staticmethod
    def get_raw_stream(device_idx):
        """Returns the id of the current stream of a card, the raw stream of wrappers."""
        return torch.accelerator.current_stream(device_idx).stream_id

    @staticmethod
    def get_compute_capability(device=None):
        """Returns the type of a card, for example "dd2"."""
        return torch.spyre.get_device_properties(device).type

    @staticmethod
    def is_bf16_supported(including_emulation=False):
        """Returns True: all cards compute in bfloat16."""
        return True

    @classmethod
    def is_dtype_supported(cls, dtype, including_emulation=False):
        """Returns True for dtypes that the card can store."""
        return dtype != torch.float64 and not dtype.is_complex

    @staticmethod
    def memory_allocated(device=None):
        """Returns the bytes that tensors occupy on a card."""
        return torch.spyre.memory_allocated(device)

    @staticmethod
    def is_triton_capable(device=None):
        """Returns False: Triton has no code for the card."""
        return False

    @staticmethod
    def raise_if_triton_unavailable(device=None):
        """Raises RuntimeError."""
        raise RuntimeError(
            "cannot use Triton on spyre: it has no code for the card; "
            "torch.compile works without it"
        )


def register_interface():
    """Registers the interface for "spyre" and for each visible card."""
    register_interface_for_device("spyre", SpyreInterface)
    for index in range(torch.spyre.device_count()):
        register_interface_for_device(f"spyre:{index}", SpyreInterface)
