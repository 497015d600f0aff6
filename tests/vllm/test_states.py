# SPDX-License-Identifier: MIT
"""Rows of state caches, and plans of a step on the host: every token has its place, and padding
reads and changes nothing of another request."""

import numpy as np
import pytest
from vllm_spyre_open import batches, states

TAPS, CHUNK = 3, 16


def random_step(seed, requests=6):
    """Some requests decode, some have a chunk of their prompt, some of these are new."""
    random = np.random.default_rng(seed)
    lengths = np.where(random.random(requests) < 0.5, 1, random.integers(1, 70, requests))
    starts = np.where(random.random(requests) < 0.5, 0, random.integers(1, 99, requests))
    rows = random.permutation(np.arange(1, 20))[:requests]
    return states.Step(np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths, starts, rows)


def planned(step):
    return states.plan(step, batches.bucket(int(step.lengths.sum())), TAPS, CHUNK)


def request_of(step, token):
    return int(np.searchsorted(step.offsets, token, side="right")) - 1


def place(plan, token):
    """Returns the group of a token's result, the row of its request there, and its query."""
    row = token if plan.order is None else int(plan.order[token])
    for group in plan.groups:
        size = group.shape.requests * group.shape.queries
        if row < size:
            return group, *divmod(row, group.shape.queries)
        row -= size
    raise AssertionError(f"token {token} has no result")


@pytest.mark.parametrize("seed", range(10))
def test_every_token_has_the_state_of_its_request(seed):
    step = random_step(seed)
    plan = planned(step)
    for token in range(int(step.lengths.sum())):
        group, row, query = place(plan, token)
        request = request_of(step, token)
        assert group.rows.reshape(-1, group.shape.queries)[row, query] == token
        assert query == token - step.offsets[request] and group.valid[row, query] == 1
        assert group.states[row] == step.states[request]
        assert group.new[row] == (step.starts[request] == 0)
        assert group.shape.fresh or not group.new[row]


@pytest.mark.parametrize("seed", range(10))
def test_padding_is_of_the_same_request_and_counts_nothing(seed):
    step = random_step(seed)
    for group in planned(step).groups:
        shape = group.shape
        rows = group.rows.reshape(shape.requests, shape.queries)
        last = group.last.reshape(shape.requests, TAPS)
        for row in range(shape.requests):
            length = int(group.valid[row].sum())
            assert not group.valid[row, length:].any()
            first = row * (TAPS + shape.queries) + length
            assert last[row].tolist() == list(range(first, first + TAPS))
            if not length:
                assert group.states[row] == 0 and not group.new[row]
                continue
            assert len({request_of(step, token) for token in rows[row]}) == 1


def test_queries_are_buckets_or_chunks():
    sizes = {1: 1, 2: 2, 5: 6, 16: 16, 17: 32, 33: 48, 40: 48}
    assert {length: states.queries_of(length, 16) for length in sizes} == sizes
    assert states.queries_of(300, 256) == 512


def test_programs_of_new_requests_are_others():
    step = random_step(0, requests=2)
    step.lengths, step.offsets = np.ones(2, np.int64), np.arange(2)
    step.starts = np.array([5, 7])
    known = planned(step)
    step.starts = np.array([5, 0])
    assert known.key != planned(step).key
    assert known.order is None and len(known.groups[0].arrays(False)) == 1


def test_rows():
    rows = states.Rows(2)
    assert rows.of(["a", "b"]).tolist() == [1, 2] and rows.of(["b", "a"]).tolist() == [2, 1]
    rows.release("a")
    rows.release("never seen")
    assert rows.of(["c", "b"]).tolist() == [1, 2]
    with pytest.raises(IndexError):
        rows.of(["d"])
