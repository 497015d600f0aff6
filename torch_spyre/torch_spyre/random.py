# SPDX-License-Identifier: MIT
"""Randomness: drawn on the host, by a generator of each card.

The same seed gives the same numbers, those of a CPU generator of that seed.
"""

from . import _C
from .utils import device_index


class _DefaultGenerators:
    """The default generator of each card, by index."""

    def __getitem__(self, index):
        return _C._default_generator(index)

    def __len__(self):
        return _C._device_count()


default_generators = _DefaultGenerators()


def _all():
    return [_C._default_generator(index) for index in range(_C._device_count())]


def manual_seed(seed):
    """Seeds the current card's generator."""
    _C._default_generator(device_index()).manual_seed(int(seed))


def manual_seed_all(seed):
    """Seeds every card's generator; opens none."""
    for generator in _all():
        generator.manual_seed(int(seed))


def seed():
    """Seeds the current card's generator from the system's entropy."""
    return _C._default_generator(device_index()).seed()


def seed_all():
    for generator in _all():
        generator.seed()


def initial_seed():
    return _C._default_generator(device_index()).initial_seed()


def get_rng_state(device="spyre"):
    return _C._default_generator(device_index(device)).get_state()


def set_rng_state(new_state, device="spyre"):
    _C._default_generator(device_index(device)).set_state(new_state)


def get_rng_state_all():
    return [generator.get_state() for generator in _all()]


def set_rng_state_all(new_states):
    for generator, state in zip(_all(), new_states):
        generator.set_state(state)
