# SPDX-License-Identifier: MIT
"""The functions of torch_spyre._C that are written in Python: streams, generators, errors."""

import enum

from . import _C, random, streams
from .utils import device_index


class SpyreStreamError(enum.IntEnum):
    """How a stream stands."""

    Success = 0
    #: The stream refuses work, because work on the card has failed.
    Shutdown = 1


def device_count():
    """Returns the number of visible cards."""
    return _C._device_count()


def current_device():
    """Returns the index of this thread's current card."""
    return _C._current_device()


def set_device(idx):
    """Makes a card the current one of this thread; raises RuntimeError if there is none."""
    _C._set_device(idx)


def _card(index):
    """Returns the index of a card given as -1 for the current one."""
    return current_device() if index == -1 else index


def _get_default_generator(device=-1):
    """Returns the generator of a card."""
    return _C._default_generator(device)


def manual_seed(seed, device=-1):
    """Seeds the generator of a card."""
    random.manual_seed(seed, _card(device))


def manual_seed_all(seed):
    """Seeds the generators of all cards."""
    random.manual_seed_all(seed)


def initial_seed(device=-1):
    """Returns the seed of a card's generator."""
    return random.initial_seed(_card(device))


def get_rng_state(device=-1):
    """Returns the state of a card's generator."""
    return random.get_rng_state(_card(device))


def set_rng_state(new_state, device=-1):
    """Sets the state of a card's generator."""
    random.set_rng_state(new_state, _card(device))


def fill_tensor(self, value):
    """Fills a tensor with a number, and returns it."""
    return self.fill_(value)


def get_stream_from_pool(device, priority=0):
    """Returns the next stream of a card's pool."""
    return streams.Stream(device, priority)


def current_stream(device):
    """Returns the current stream of a card."""
    return streams.current_stream(device)


def default_stream(device):
    """Returns the default stream of a card."""
    return streams.default_stream(device)


def set_current_stream(stream):
    """Makes a stream the current one of its card; returns the one before."""
    before = streams.current_stream(stream.device)
    streams.set_stream(stream)
    return before


def synchronize(device=None):
    """Waits for all work of a card, or of all open cards."""
    if device is not None:
        _C._synchronize(device_index(device))
        return
    for index in range(_C._device_count()):
        if _C._state(index) is not None:
            _C._synchronize(index)


def stream_get_error(stream):
    """Returns how a stream stands: all streams of a card refuse work once one has failed."""
    state = _C._state(stream.device_index)
    if state is None or state["health"] == "ok":
        return SpyreStreamError.Success
    return SpyreStreamError.Shutdown


def stream_get_error_string(error):
    """Returns what a SpyreStreamError means."""
    if SpyreStreamError(error) == SpyreStreamError.Success:
        return "no error"
    return "work on the card has failed; call torch.spyre.reset()"


def register():
    """Puts the functions of this module into torch_spyre._C."""
    _C._SpyreStreamBase = streams.Stream
    for function in (
        SpyreStreamError,
        device_count,
        current_device,
        set_device,
        _get_default_generator,
        manual_seed,
        manual_seed_all,
        initial_seed,
        get_rng_state,
        set_rng_state,
        fill_tensor,
        get_stream_from_pool,
        current_stream,
        default_stream,
        set_current_stream,
        synchronize,
        stream_get_error,
        stream_get_error_string,
    ):
        setattr(_C, function.__name__, function)
