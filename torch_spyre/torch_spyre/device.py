# SPDX-License-Identifier: MIT
"""torch.spyre: devices, streams, randomness and memory of Spyre cards."""

import contextlib

import torch

from . import _C, memory
from .diagnostics import get_diagnostic_report
from .memory import (
    empty_cache,
    empty_host_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)
from .random import (
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import (
    Event,
    Stream,
    current_stream,
    default_stream,
    is_current_stream_capturing,
    set_stream,
    stream,
    synchronize,
)
from .utils import device_index

__all__ = [
    "Event",
    "Stream",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "empty_host_cache",
    "fallbacks",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_diagnostic_report",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "no_fallbacks",
    "reset",
    "reset_accumulated_memory_stats",
    "reset_fallbacks",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]


def device_count():
    """Returns the number of visible cards (SPYRE_DEVICES, AIU_WORLD_SIZE); opens none."""
    return _C._device_count()


def is_available():
    """Returns True if a card is visible; opens none and does not raise."""
    return device_count() > 0


def is_initialized():
    """Returns True if this process has opened a card."""
    return _C._is_initialized()


def _is_in_bad_fork():
    """Returns True in a child forked after the card was initialised."""
    return _C._is_in_bad_fork()


def init():
    """Opens the current card, as its first use does.

    Raises RuntimeError if the card cannot be opened.
    """
    _C._open()


_lazy_init = init


def _is_compiled():
    """Returns True: the extension is compiled for cards."""
    return True


def __getattr__(name):
    """Finds the public names of torch_spyre._C, as torch-spyre has them in torch.spyre."""
    if name.startswith("_") and not name.startswith("_spyre_"):
        raise AttributeError(f"module 'torch.spyre' has no attribute {name!r}")
    try:
        return getattr(_C, name)
    except AttributeError:
        raise AttributeError(f"module 'torch.spyre' has no attribute {name!r}") from None


def current_device():
    """Returns the index of this thread's current card."""
    return _C._current_device()


def set_device(device):
    """Makes a card the current one of this thread; opens none.

    `device` is an index, a string or a torch.device; None and a device without an index change
    nothing. Raises ValueError for another device type, RuntimeError if there is no such card.
    """
    _C._set_device(device_index(device))


def _exchange_device(index):
    """Sets the current device unless `index` is negative; returns the previous one."""
    previous = current_device()
    if index >= 0:
        _C._set_device(index)
    return previous


_maybe_exchange_device = _exchange_device


class device:
    """Context manager that changes the current card of this thread.

    `device` is an index, a string or a torch.device; None and -1 change nothing.
    """

    def __init__(self, device):
        self.index = device_index(device, default=-1)
        self.previous = -1

    def __enter__(self):
        self.previous = _exchange_device(self.index)
        return self

    def __exit__(self, *exception):
        self.index = _exchange_device(self.previous)
        return False


class device_of(device):
    """Context manager that makes the card of a tensor or storage current.

    Objects on other devices change nothing.
    """

    def __init__(self, obj):
        super().__init__(obj.device if obj.device.type == "spyre" else None)


class DeviceProperties(dict):
    """Properties of a card, readable as items and as attributes."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"a Spyre card has no property {name!r}") from None


def get_device_properties(device=None):
    """Returns the DeviceProperties of a card (default: the current one); opens none.

    Sizes are in bytes, clocks in kHz. Raises RuntimeError if there is no such card.
    """
    index = device_index(device)
    properties = DeviceProperties(_C._properties(index))
    properties.update(
        type="dd2",
        index=index,
        multi_processor_count=properties["num_cores"],
        total_memory=properties["memory_bytes"],
    )
    return properties


def get_device_name(device=None):
    """Returns the name of a card (default: current); raises RuntimeError for a wrong index."""
    return get_device_properties(device)["name"]


def get_device_capability(device=None):
    """Returns the dtypes that tensors on a card can have, as torch.accelerator does."""
    return torch.accelerator.get_device_capability(device_index(device))


def get_amp_supported_dtype():
    """Returns the dtypes that torch.autocast can use on cards."""
    return [torch.float16, torch.bfloat16]


def is_bf16_supported(including_emulation=True):
    """Returns True: all cards compute in bfloat16, without emulation."""
    return True


def fallbacks():
    """Returns how often each operation ran on the CPU, as a dict by name with overload."""
    return _C._fallback_counts()


def reset_fallbacks():
    """Sets the counts of fallbacks() to 0; operations that have warned do not warn again."""
    _C._reset_fallback_counts()


def reset(device=None, *, hard=False):
    """Resets a card after an error, so that the process can use it again.

    Cancels queued work. Tensors keep their memory, but memory that cancelled work was writing
    may hold any part of the result. If the card itself was reset or lost, or with `hard`, the
    card is opened again and the memory of its tensors is lost: using one of them raises
    RuntimeError. `hard` resets the card for all processes and requires CAP_SYS_ADMIN on a card
    of the kernel. Raises RuntimeError if the reset fails.
    """
    _C._reset(device_index(device), hard)


@contextlib.contextmanager
def no_fallbacks():
    """Context manager that raises RuntimeError at its end if an operation ran on the CPU."""
    before = fallbacks()
    yield
    new = {name: n - before.get(name, 0) for name, n in fallbacks().items()}
    new = {name: n for name, n in new.items() if n}
    if new:
        raise RuntimeError(f"spyre: operations ran on the CPU: {new}")
