# SPDX-License-Identifier: MIT
"""Plans of attention for the requests of a step, as arrays of the host.

Requests of one step have queries and keys of different lengths. They are sorted into groups whose
lengths lie in one bucket, so that nothing is padded to the longest request, and the sizes of
programs are few. numpy only: no card, no vLLM.
"""

from dataclasses import dataclass

import numpy as np

#: Keys of a group are a multiple of this, the numbers of 16 bits in a stick.
STICK = 64


def bucket(number, least=1):
    """Returns the power of two, or one and a half times it from four times @least on, that
    @number fits in."""
    size = least
    while size < number:
        if size >= 4 * least and size * 3 // 2 >= number and size % 2 == 0:
            return size * 3 // 2
        size *= 2
    return size


@dataclass(frozen=True)
class Shape:
    """Sizes of a group, which select its programs: requests, tokens and keys of each."""

    requests: int
    queries: int
    keys: int


@dataclass
class Group:
    """Requests that one call of the attention kernel computes.

    rows [requests * queries]: the token of the step that each query is, 0 for padding.
    slots [requests * keys]: the slot of the cache that each key is in, or its token.
    mask [requests, queries, keys]: True where a query sees a key.
    """

    shape: Shape
    rows: np.ndarray
    slots: np.ndarray
    mask: np.ndarray


@dataclass
class Plan:
    """Groups of a step, and where their results are.

    slots [tokens]: the slot that each token's key and value are written to.
    order [tokens]: the row of each token's result among the results of all groups in their order;
    None if there is one group, whose rows are the tokens.
    """

    groups: list
    slots: np.ndarray
    order: np.ndarray | None

    @property
    def key(self):
        """What plans with the same programs have in common."""
        shapes = tuple(group.shape for group in self.groups)
        return len(self.slots), shapes, self.order is None


@dataclass(frozen=True)
class Layer:
    """Properties of attention layers that share a plan: window is 0 for all keys. Layers that are
    not causal, those of encoders, have no cache: their keys are the tokens of the step."""

    window: int = 0
    sinks: bool = False
    causal: bool = True


def first_keys(starts, layer):
    """Returns the first position that the first query of each request sees."""
    if not layer.window:
        return np.zeros_like(starts)
    return np.maximum(starts - (layer.window - 1), 0)


def _group(members, queries, keys, step, layer):
    """Returns the Group of the requests @members of @step."""
    count = bucket(len(members))
    rows = np.zeros((count, queries), np.int64)
    slots = np.full((count, keys), step.empty if layer.causal else 0, np.int64)
    mask = np.zeros((count, queries, keys), bool)
    first = first_keys(step.starts, layer)
    for row, request in enumerate(members):
        length = step.lengths[request]
        rows[row, :length] = step.offsets[request] + np.arange(length)
        position = np.arange(first[request], step.ends[request])
        query = step.starts[request] + np.arange(length)[:, None]
        if layer.causal:
            slots[row, : len(position)] = step.slots_of(request, position)
            seen = position <= query
        else:
            slots[row, : len(position)] = step.offsets[request] + position
            seen = np.ones((length, len(position)), bool)
        if layer.window:
            seen &= abs(query - position) < layer.window
        mask[row, :length, : len(position)] = seen
    if layer.sinks:
        # The last key is the sink, which no position takes: see plan().
        mask[..., -1] = True
    return Group(Shape(count, queries, keys), rows.ravel(), slots.ravel(), mask)


@dataclass
class Step:
    """Requests of a step as vLLM schedules them.

    offsets, lengths [requests]: tokens of each request among those of the step.
    starts, ends [requests]: position of its first token, and its length with this step's tokens.
    table [requests, pages]: numbers of its pages.
    block: tokens of a page. empty: a slot that is never written.
    """

    offsets: np.ndarray
    lengths: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    table: np.ndarray
    block: int
    empty: int

    def slots_of(self, request, position):
        return self.table[request, position // self.block] * self.block + position % self.block


def order_of(groups, members, step, tokens):
    """Returns Plan.order for the groups and the requests in each."""
    order = np.zeros(tokens, np.int64)
    base = 0
    for group, requests in zip(groups, members, strict=True):
        for row, request in enumerate(requests):
            length = step.lengths[request]
            start = base + row * group.shape.queries
            order[step.offsets[request] :][:length] = start + np.arange(length)
        base += group.shape.requests * group.shape.queries
    used = int(step.lengths.sum())
    # Of several groups each takes its rows, also where these follow each other.
    same = len(groups) == 1 and base == tokens and bool((order[:used] == np.arange(used)).all())
    return None if same else order


def plan(step, layer, tokens, slots):
    """Returns the Plan of a Step for layers like @layer.

    tokens: those of the step with padding. slots: where those without padding are written to;
    padding goes to slot 0, in a page that no request has.
    """
    span = step.ends - first_keys(step.starts, layer) + layer.sinks
    sizes = {}
    for request, (length, keys) in enumerate(zip(step.lengths, span, strict=True)):
        sizes.setdefault((bucket(length), bucket(keys, STICK)), []).append(request)
    members = [sizes[size] for size in sorted(sizes)]
    groups = [
        _group(requests, *size, step, layer)
        for size, requests in zip(sorted(sizes), members, strict=True)
    ]
    padded = np.zeros(tokens, np.int64)
    padded[: len(slots)] = slots
    return Plan(groups, padded, order_of(groups, members, step, tokens))
