# SPDX-License-Identifier: MIT
"""Eight threads at once: each gets the bits that one thread alone gets."""

import copy
import threading
import time

import pytest
import torch
import torch_spyre
from support import DEVICE, assert_same, exact

THREADS, ROUNDS = 8, 20
CARDS = ("spyre:0", "spyre:1")


class Block(torch.nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x):
        hidden = torch.nn.functional.gelu(self.up(x))
        return self.norm(x + self.down(hidden)).softmax(-1)


def at_once(work, meanwhile=None, count=THREADS):
    """Runs work(i) in each thread; meanwhile() in this one, until all are done."""
    errors, barrier = [], threading.Barrier(count)

    def run(i):
        try:
            barrier.wait()
            work(i)
        except BaseException as error:
            errors.append(f"thread {i}: {error!r}")

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 120
    while meanwhile and any(thread.is_alive() for thread in threads):
        meanwhile()
        time.sleep(0.002)
        assert time.monotonic() < end, "the threads do not end"
    for thread in threads:
        thread.join(max(0, end - time.monotonic()))
        assert not thread.is_alive(), "a thread hangs"
    assert not errors, errors


@pytest.fixture(scope="module")
def battle():
    """Models on both cards, an input and its result for each thread."""
    torch.manual_seed(1)
    host = Block().half()
    models = {card: copy.deepcopy(host).to(card) for card in CARDS}
    inputs = [exact(8 + i, 64, seed=i) for i in range(THREADS)]
    with torch.no_grad():
        expected = [models[CARDS[0]](x.to(CARDS[0])).cpu() for x in inputs]
    return models, inputs, expected


def fight(battle, card_of, context_of, meanwhile=None):
    models, inputs, expected = battle

    def work(i):
        card = card_of(i)
        torch.spyre.set_device(card)
        with context_of(card), torch.no_grad():
            for _ in range(ROUNDS):
                assert torch.equal(models[card](inputs[i].to(card)).cpu(), expected[i])

    at_once(work, meanwhile)


def test_one_card(battle):
    fight(battle, lambda i: CARDS[0], torch.spyre.device)


def test_two_cards(battle):
    fight(battle, lambda i: CARDS[i % 2], torch.spyre.device)


def test_streams_of_their_own(battle):
    fight(battle, lambda i: CARDS[i % 2], lambda card: torch.Stream(device=card))


def test_programs_compiled_and_forgotten_meanwhile(battle):
    def forget():
        torch_spyre._C.program_cache_clear()
        torch.accelerator.empty_cache()

    fight(battle, lambda i: CARDS[i % 2], lambda card: torch.Stream(device=card), forget)


def test_all_compile_the_same_program():
    """One compiles, the others wait for it: as many programs as with one thread."""
    x = exact(7, 96).to(DEVICE)
    torch_spyre._C.program_cache_clear()
    before = torch_spyre._C.program_cache_stats()["misses"]
    results = [None] * THREADS

    def work(i):
        results[i] = (x * 3 + x).relu()

    at_once(work)
    assert torch_spyre._C.program_cache_stats()["misses"] - before <= 3
    for result in results:
        assert_same(result, results[0])


def test_memory_between_streams():
    """Memory with a recorded use by another stream is not reused meanwhile."""
    ones = torch.ones(256, 256, dtype=torch.float16, device=DEVICE)
    torch.spyre.synchronize()

    def work(i):
        side = torch.Stream(device=DEVICE)
        for k in range(ROUNDS):
            x = torch.full((256, 256), float(k), dtype=torch.float16, device=DEVICE)
            side.wait_stream(torch.spyre.current_stream())
            with side:
                y = x + ones
                z = y + ones
            x.record_stream(side)
            del x
            torch.full((256, 256), 77.0, dtype=torch.float16, device=DEVICE)
            side.synchronize()
            assert z.cpu().eq(k + 2).all()

    at_once(work)


def test_backward(battle):
    """Backward runs in threads of autograd's own, one for each card."""
    models, inputs, _ = battle
    single = copy.deepcopy(models[CARDS[0]]).float()
    single(inputs[0].float().to(CARDS[0])).square().sum().backward()
    expected = single.up.weight.grad.cpu()

    def work(i):
        card = CARDS[i % 2]
        model = copy.deepcopy(models[card]).float()
        model(inputs[0].float().to(card)).square().sum().backward()
        assert torch.equal(model.up.weight.grad.cpu(), expected)

    at_once(work)


def test_python_runs_while_a_thread_waits():
    """A thread that waits for the card releases the GIL."""
    x = torch.ones(1536, 1536, dtype=torch.float16, device=DEVICE)
    torch.spyre.synchronize()
    ticks, waits = [], {}

    def wait_by(i):
        ways = (
            torch.spyre.synchronize,
            lambda: torch.spyre.current_stream().synchronize(),
            lambda: (x @ x).cpu(),
            lambda: (x @ x)[0, 0].item(),
        )
        for _ in range(2):
            x @ x
            begin = time.monotonic()
            ways[i]()
            waits[i] = waits.get(i, 0) + time.monotonic() - begin

    at_once(wait_by, lambda: ticks.append(time.monotonic()), count=4)
    gaps = [b - a for a, b in zip(ticks, ticks[1:])]
    assert len(ticks) > 4 and max(gaps) < max(waits.values()) / 2 + 0.25, (max(gaps), waits)
