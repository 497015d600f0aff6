# SPDX-License-Identifier: MIT
"""Streams and events, based on torch.Stream and torch.Event."""

import contextlib

import torch

from . import _C
from .utils import device_index


def _device(device):
    """Returns a torch.device with an index."""
    return torch.device("spyre", device_index(device))


class Stream(torch.Stream):
    """A stream of the card's pool.

    `device` is an index, a string or a torch.device, by default the current card. Work of
    `priority` -1 precedes work of 0.
    """

    def __new__(cls, device=None, priority=0, **kwargs):
        if "stream_id" in kwargs:
            return super().__new__(cls, **kwargs)
        return super().__new__(cls, _device(device), priority=priority)

    @property
    def id(self):
        """The number of the stream on its card; 0 is the default stream."""
        return self.stream_id

    @property
    def priority(self):
        """The priority: -1 for streams of the high-priority pool, else 0."""
        return _C._stream_priority(self.stream_id)

    def __repr__(self):
        return f"torch.spyre.Stream(device={self.device}, id={self.id}, priority={self.priority})"


class Event(torch.Event):
    """A point in a stream.

    `enable_timing` is required for elapsed_time(); `blocking` has no effect. Raises
    RuntimeError if `interprocess`.
    """

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False, device=None):
        """Creates an event; RuntimeError if it is to be shared between processes."""
        if interprocess:
            raise RuntimeError("spyre: events cannot be shared between processes")
        return super().__new__(cls, _device(device), enable_timing=enable_timing)

    def elapsed_time(self, end_event):
        """Returns the milliseconds from this event to `end_event`.

        Raises RuntimeError unless both have timing and have been reached.
        """
        return _C._elapsed_time(self.event_id, end_event.event_id)


def _wrap(stream):
    """Returns a torch.Stream as a torch.spyre.Stream."""
    return Stream(
        stream_id=stream.stream_id,
        device_index=stream.device_index,
        device_type=stream.device_type,
    )


def current_stream(device=None):
    """Returns the current Stream of a card (default: the current card)."""
    return _wrap(torch.accelerator.current_stream(_device(device)))


def default_stream(device=None):
    """Returns the default Stream of a card (default: the current card)."""
    stream = torch.accelerator.current_stream(_device(device))
    return Stream(stream_id=0, device_index=stream.device_index, device_type=stream.device_type)


def set_stream(stream):
    """Makes `stream` the current stream of its card and that card current; None does nothing."""
    if stream is not None:
        torch.accelerator.set_stream(stream)


def stream(stream):
    """Context manager that makes `stream` current; None changes nothing."""
    return contextlib.nullcontext() if stream is None else stream


def is_current_stream_capturing():
    """True while a torch.accelerator.Graph captures the current stream of the current card."""
    return _C._is_capturing()


def synchronize(device=None):
    """Waits for all work of a card (default: current); raises RuntimeError if any failed."""
    _C._synchronize(device_index(device))
