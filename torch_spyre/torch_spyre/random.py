# SPDX-License-Identifier: MIT
"""Random numbers, drawn on the host by one generator per card.

A generator draws the same numbers as a CPU generator of the same seed.
"""

from . import _C
from .utils import device_index


class _DefaultGenerators:
    """The default generators of the cards, by index."""

    def __getitem__(self, index):
        return _C._default_generator(index)

    def __len__(self):
        return _C._device_count()


default_generators = _DefaultGenerators()


def _all():
    """Returns the default generators of all cards."""
    return [_C._default_generator(index) for index in range(_C._device_count())]


def manual_seed(seed, device=None):
    """Seeds a card's generator (default: the current card's) with the int `seed`."""
    _C._default_generator(device_index(device)).manual_seed(int(seed))


def manual_seed_all(seed):
    """Seeds the generators of all cards with the int `seed`; opens no card."""
    for generator in _all():
        generator.manual_seed(int(seed))


def seed():
    """Seeds the current card's generator from the system's entropy; returns the seed."""
    return _C._default_generator(device_index()).seed()


def seed_all():
    """Seeds the generators of all cards from the system's entropy."""
    for generator in _all():
        generator.seed()


def initial_seed(device="spyre"):
    """Returns the seed of a card's generator."""
    return _C._default_generator(device_index(device)).initial_seed()


def get_rng_state(device="spyre"):
    """Returns the state of a card's generator as a ByteTensor on the CPU."""
    return _C._default_generator(device_index(device)).get_state()


def set_rng_state(new_state, device="spyre"):
    """Sets the state of a card's generator to one of get_rng_state(); raises if it is not one."""
    _C._default_generator(device_index(device)).set_state(new_state)


def get_rng_state_all():
    """Returns the states of the generators of all cards, by index."""
    return [generator.get_state() for generator in _all()]


def set_rng_state_all(new_states):
    """Sets the states of the generators of all cards to those of get_rng_state_all()."""
    for generator, state in zip(_all(), new_states):
        generator.set_state(state)
