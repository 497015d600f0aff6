# SPDX-License-Identifier: MIT
"""Makes Hugging Face's accelerate, and Trainer on top of it, choose cards, and tells transformers
of captures.

They look for the devices that they know by name. The functions that do so are wrapped once a
program has imported them; a choice that the program makes itself (cpu=True, use_cpu, a device
map, ACCELERATE_TORCH_DEVICE) stays.
"""

import functools
import os
import sys

import torch

from . import _C
from ._inductor import after_import


def _default_device(state):
    """Makes the default device of a process without another accelerator its current card."""
    original = state.PartialState.default_device.fget

    @functools.wraps(original)
    def default_device(self):
        device = original(self)
        if device.type != "cpu" or not _C._device_count():
            return device
        return torch.device("spyre", _C._current_device())

    state.PartialState.default_device = property(default_device)


def _memory_of_cards(modeling):
    """Offers the cards' free memory to automatic device maps, before that of the CPU."""
    original = modeling.get_max_memory

    @functools.wraps(original)
    def get_max_memory(max_memory=None):
        found = original(max_memory)
        if max_memory is not None or any(isinstance(device, int) for device in found):
            return found
        cards = range(_C._device_count())
        return {index: torch.spyre.mem_get_info(index)[0] for index in cards} | found

    modeling.get_max_memory = get_max_memory


def _device_of_trainer(training_args):
    """Lets Trainer use accelerate's default device, where it would look for names again."""
    arguments = training_args.TrainingArguments
    original = arguments.__dict__["_setup_devices"].func

    @functools.wraps(original)
    def setup_devices(self):
        device, state = original(self), self.distributed_state
        chosen = "ACCELERATE_TORCH_DEVICE" in os.environ
        if device.type == "cpu" and not chosen and state and state.device.type == "spyre":
            return state.device
        return device

    arguments._setup_devices = functools.cached_property(setup_devices)
    arguments._setup_devices.__set_name__(arguments, "_setup_devices")


def _captures(import_utils):
    """A capture on a card is one as well: in it, models do not read masks to leave them out."""
    original = import_utils.is_cuda_stream_capturing

    @functools.wraps(original)
    def is_cuda_stream_capturing():
        return _C._is_capturing() or original()

    import_utils.is_cuda_stream_capturing = is_cuda_stream_capturing


#: Module, what it must contain for the wrapper to apply, wrapper.
WRAPPERS = (
    ("accelerate.state", "PartialState.default_device", _default_device),
    ("accelerate.utils.modeling", "get_max_memory", _memory_of_cards),
    ("transformers.utils.import_utils", "is_cuda_stream_capturing", _captures),
    ("transformers.training_args", "TrainingArguments._setup_devices", _device_of_trainer),
)


def _wrap(module, path, wrapper):
    """Calls a wrapper, unless the installed version of the library has other names."""
    found = sys.modules[module]
    for name in path.split("."):
        found = getattr(found, name, None)
    if found is not None:
        wrapper(sys.modules[module])


def register():
    """Registers the wrappers for the time when a program imports the modules."""
    for module, path, wrapper in WRAPPERS:
        after_import(module, functools.partial(_wrap, module, path, wrapper))
