# SPDX-License-Identifier: MIT
"""Plans of attention on the host: every token reads the keys that it sees, and no others."""

import numpy as np
import pytest
from vllm_spyre_open import batches

BLOCK = 64


def random_step(seed, requests=6, longest=300):
    """Requests with random page tables: some decode, some have a chunk of their prompt."""
    random = np.random.default_rng(seed)
    lengths = np.where(random.random(requests) < 0.5, 1, random.integers(1, 40, requests))
    starts = random.integers(0, longest, requests)
    ends = starts + lengths
    width = -(-int(ends.max()) // BLOCK)
    pages = random.permutation(np.arange(1, 1 + requests * width)).reshape(requests, width)
    offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    empty = (1 + requests * width) * BLOCK
    return batches.Step(offsets, lengths, starts, ends, pages, BLOCK, empty)


def written(step):
    return np.concatenate(
        [step.slots_of(i, np.arange(step.starts[i], step.ends[i])) for i in range(len(step.ends))]
    )


def seen_by(plan, token):
    """The slots whose keys a token of the step sees, found by way of its result."""
    row = token if plan.order is None else plan.order[token]
    for group in plan.groups:
        shape = group.shape
        if row >= shape.requests * shape.queries:
            row -= shape.requests * shape.queries
            continue
        if plan.order is not None:
            assert group.rows[row] == token
        request, query = divmod(int(row), shape.queries)
        slots = group.slots.reshape(shape.requests, shape.keys)[request]
        return slots[group.mask[request, query]].tolist()
    raise AssertionError(f"token {token} has no result")


@pytest.mark.parametrize("window", [0, 1, 8, 100])
@pytest.mark.parametrize("seed", range(8))
def test_every_token_sees_its_keys(seed, window):
    step = random_step(seed)
    used = int(step.lengths.sum())
    plan = batches.plan(step, batches.Layer(window), batches.bucket(used), written(step))
    token = 0
    for request, length in enumerate(step.lengths):
        for position in range(step.starts[request], step.starts[request] + length):
            first = max(0, position - window + 1) if window else 0
            expected = step.slots_of(request, np.arange(first, position + 1)).tolist()
            assert seen_by(plan, token) == expected
            token += 1
    assert plan.slots[:used].tolist() == written(step).tolist()
    assert not plan.slots[used:].any()


@pytest.mark.parametrize("window", [0, 5])
@pytest.mark.parametrize("seed", range(4))
def test_tokens_of_an_encoder_see_their_request(seed, window):
    """With a window, those on both sides."""
    step = random_step(seed)
    step.starts, step.ends = np.zeros_like(step.starts), step.lengths
    used = int(step.lengths.sum())
    layer = batches.Layer(window, causal=False)
    plan = batches.plan(step, layer, batches.bucket(used), np.zeros(used, np.int64))
    for offset, length in zip(step.offsets, step.lengths, strict=True):
        for token in range(offset, offset + length):
            first, last = offset, offset + length
            if window:
                first, last = max(first, token - window + 1), min(last, token + window)
            assert seen_by(plan, token) == list(range(first, last))


def test_groups_are_not_padded_to_the_longest_request():
    step = random_step(1)
    step.starts = np.array([0, 10, 100, 200, 290, 299])
    step.lengths = np.ones(6, np.int64)
    step.offsets, step.ends = np.arange(6), step.starts + 1
    plan = batches.plan(step, batches.Layer(), 8, written(step))
    shapes = [(g.shape.requests, g.shape.queries, g.shape.keys) for g in plan.groups]
    assert shapes == [(2, 1, 64), (1, 1, 128), (1, 1, 256), (2, 1, 384)]


def test_a_window_reads_only_its_keys():
    step = random_step(2)
    plan = batches.plan(step, batches.Layer(8), batches.bucket(int(step.lengths.sum())), [])
    assert max(group.shape.keys for group in plan.groups) == 64


def test_a_sink_has_a_key_that_no_position_takes():
    step = random_step(3)
    step.starts, step.lengths = np.full(6, 63), np.ones(6, np.int64)
    step.offsets, step.ends = np.arange(6), np.full(6, 64)
    plan = batches.plan(step, batches.Layer(sinks=True), 8, written(step))
    (group,) = plan.groups
    slots = group.slots.reshape(group.shape.requests, -1)
    assert group.shape.keys == 128
    assert (slots[:, -1] == step.empty).all() and group.mask[..., -1].all()


def test_a_uniform_decode_step_keeps_its_order():
    step = random_step(4, requests=4)
    step.starts, step.lengths = np.array([3, 7, 11, 5]), np.ones(4, np.int64)
    step.offsets, step.ends = np.arange(4), step.starts + 1
    plan = batches.plan(step, batches.Layer(), 4, written(step))
    assert plan.order is None and len(plan.groups) == 1


def test_groups_in_the_order_of_the_tokens_have_rows_of_their_own():
    """Two requests that decode, of which each is a group: none takes the tokens of both."""
    step = random_step(5, requests=2)
    step.starts, step.lengths = np.array([10, 100]), np.ones(2, np.int64)
    step.offsets, step.ends = np.arange(2), step.starts + 1
    plan = batches.plan(step, batches.Layer(), 2, written(step))
    assert [group.rows.tolist() for group in plan.groups] == [[0], [1]]
    assert plan.order.tolist() == [0, 1]


@pytest.mark.parametrize("least", [1, 64])
def test_buckets(least):
    sizes = sorted({batches.bucket(n, least) for n in range(1, 3000)})
    assert all(batches.bucket(size, least) == size for size in sizes)
    for number in range(1, 3000):
        size = batches.bucket(number, least)
        assert size % least == 0 and number <= size
        assert size == least or size < 2 * number
        assert number <= 4 * least or 2 * size <= 3 * number
