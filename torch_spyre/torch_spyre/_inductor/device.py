# SPDX-License-Identifier: MIT
"""The card as dynamo and Inductor ask for it."""

import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device


class SpyreInterface(DeviceInterface):
    """torch.spyre under the names that dynamo uses."""

    device = torch.spyre.device
    Event = torch.Event
    Stream = torch.Stream

    class Worker:
        @staticmethod
        def set_device(device):
            torch.spyre.set_device(device)

        @staticmethod
        def current_device():
            return torch.spyre.current_device()

        @staticmethod
        def get_device_properties(device=None):
            return torch.spyre.get_device_properties(device)

    current_device = staticmethod(torch.spyre.current_device)
    set_device = staticmethod(torch.spyre.set_device)
    device_count = staticmethod(torch.spyre.device_count)
    is_available = staticmethod(torch.spyre.is_available)
    current_stream = staticmethod(torch.spyre.current_stream)
    synchronize = staticmethod(torch.spyre.synchronize)

    @staticmethod
    def exchange_device(device):
        if device < 0:
            return -1
        previous = torch.spyre.current_device()
        torch.spyre.set_device(device)
        return previous

    maybe_exchange_device = exchange_device

    @staticmethod
    def stream(stream):
        return torch.spyre.stream(stream)

    @staticmethod
    def set_stream(stream):
        torch.accelerator.set_stream(stream)

    @staticmethod
    def _set_stream_by_id(stream_id, device_index, device_type):
        torch.accelerator.set_stream(
            torch.Stream(
                stream_id=stream_id, device_index=device_index, device_type=device_type
            )
        )

    @staticmethod
    def get_raw_stream(device_idx):
        return torch.accelerator.current_stream(device_idx).stream_id

    @staticmethod
    def get_compute_capability(device=None):
        return torch.spyre.get_device_properties(device).type

    @staticmethod
    def is_bf16_supported(including_emulation=False):
        return True

    @classmethod
    def is_dtype_supported(cls, dtype, including_emulation=False):
        return dtype != torch.float64 and not dtype.is_complex

    @staticmethod
    def memory_allocated(device=None):
        return torch.spyre.memory_allocated(device)

    @staticmethod
    def is_triton_capable(device=None):
        return False

    @staticmethod
    def raise_if_triton_unavailable(device=None):
        raise RuntimeError("Triton has no code for spyre; torch.compile does without")


def register_interface():
    register_interface_for_device("spyre", SpyreInterface)
    for index in range(torch.spyre.device_count()):
        register_interface_for_device(f"spyre:{index}", SpyreInterface)
