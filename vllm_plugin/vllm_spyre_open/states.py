# SPDX-License-Identifier: MIT
"""Rows of state caches, and plans of the layers that have a state, as arrays of the host.

Requests of a step have different lengths, and some of them begin with it. As for attention, they
are sorted into groups, so that none is padded to the longest. numpy only: no card, no vLLM.
"""

from dataclasses import dataclass

import numpy as np

from . import batches


class Rows:
    """The row of each running request in the state caches; row 0 takes what padding writes.

    vLLM gives a request one page in each group of layers, for which a cache of pages would have as
    many rows as all keys have pages. Rows of requests are few, and the same in all layers.
    """

    def __init__(self, requests):
        self.free = list(range(requests, 0, -1))
        self.held = {}

    def release(self, request):
        """Takes the row back, if the request has one. Its numbers are not cleared."""
        if request in self.held:
            self.free.append(self.held.pop(request))

    def of(self, requests):
        """Returns the rows of requests, of which new ones take a free one."""
        for request in requests:
            if request not in self.held:
                self.held[request] = self.free.pop()
        return np.array([self.held[request] for request in requests], np.int64)


@dataclass(frozen=True)
class Shape:
    """Sizes of a group, which select its programs: requests and tokens of each. With @fresh some
    of the requests have no state yet."""

    requests: int
    queries: int
    fresh: bool


@dataclass
class Group:
    """Requests that one call computes.

    rows [requests * queries]: the token of the step that each query is. Those of padding repeat a
    token of the same request.
    states [requests]: rows of the caches.
    new [requests, 1]: True if the request begins with this step, whatever its rows have.
    valid [requests, queries, 1]: 0 for padding, which changes no state.
    last [requests * taps]: among the rows of all requests, each of which has those of its earlier
    state and then its queries, those that the next step's convolution begins with.
    """

    shape: Shape
    rows: np.ndarray
    states: np.ndarray
    new: np.ndarray
    valid: np.ndarray
    last: np.ndarray

    def arrays(self, ordered):
        """Returns what the programs of the group read: rows if results are @ordered."""
        found = [self.states]
        if ordered:
            found.append(self.rows)
        if self.shape.fresh:
            found.append(self.new)
        if self.shape.queries > 1:
            found += [self.valid, self.last]
        return found


@dataclass
class Plan:
    """Groups of a step, and Plan.order of batches."""

    groups: list
    tokens: int
    order: np.ndarray | None

    @property
    def key(self):
        """What plans with the same programs have in common."""
        return self.tokens, tuple(group.shape for group in self.groups), self.order is None


@dataclass
class Step:
    """Requests of a step: offsets, lengths and starts as in batches.Step; rows of their states."""

    offsets: np.ndarray
    lengths: np.ndarray
    starts: np.ndarray
    states: np.ndarray


def queries_of(length, chunk):
    """Returns the queries that a request of @length is padded to: a bucket, and chunks of those
    that have several."""
    size = batches.bucket(length)
    return size if size <= chunk else -(-size // chunk) * chunk


def _group(members, shape, step, taps):
    """Returns the Group of the requests @members of @step."""
    count, queries = shape.requests, shape.queries
    rows = np.zeros((count, queries), np.int64)
    states = np.zeros(count, np.int64)
    new = np.zeros((count, 1), bool)
    valid = np.zeros((count, queries, 1), np.float32)
    last = np.arange(count)[:, None] * (taps + queries) + np.arange(taps)
    for row, request in enumerate(members):
        length = step.lengths[request]
        rows[row] = step.offsets[request] + np.minimum(np.arange(queries), length - 1)
        states[row] = step.states[request]
        new[row] = step.starts[request] == 0
        valid[row, :length] = 1
        last[row] += length
    return Group(shape, rows.ravel(), states, new, valid, last.ravel())


def plan(step, tokens, taps, chunk):
    """Returns the Plan of a Step with @tokens tokens, padding included.

    taps: earlier inputs that a convolution reads. chunk: queries that a scan takes at once.
    """
    sizes = {}
    for request, length in enumerate(step.lengths):
        sizes.setdefault(queries_of(length, chunk), []).append(request)
    groups = []
    for queries, members in sorted(sizes.items()):
        fresh = bool((step.starts[members] == 0).any())
        shape = Shape(batches.bucket(len(members)), queries, fresh)
        groups.append(_group(members, shape, step, taps))
    order = batches.order_of(groups, [sizes[size] for size in sorted(sizes)], step, tokens)
    return Plan(groups, tokens, order)
