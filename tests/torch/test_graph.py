# SPDX-License-Identifier: MIT
"""torch.accelerator.Graph: each replay gives the bits of eager mode."""

import gc
import threading

import pytest
import torch
from support import DEVICE, exact

Graph = torch.accelerator.Graph


@pytest.fixture(autouse=True)
def streams():
    yield
    gc.collect()
    torch.accelerator.set_stream(torch.spyre.default_stream(0))
    torch.spyre.set_device(0)


def bits(tensor):
    return tensor.cpu().contiguous().view(torch.int16)


def same(a, b):
    torch.accelerator.synchronize()
    return torch.equal(bits(a), bits(b))


def randn(*size, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*size, generator=generator, dtype=torch.float16)


def value(tensor):
    torch.accelerator.synchronize()
    return tensor.flatten()[0].item()


class Block(torch.nn.Module):
    """A layer of attention and an MLP, with odd sizes: padding, masks, intermediates."""

    def __init__(self, width=96, heads=3):
        super().__init__()
        self.heads = heads
        self.norm = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + a.transpose(1, 2).reshape(n, t, c)
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


def make_block():
    torch.manual_seed(0)
    return Block().half().eval().requires_grad_(False).to(DEVICE)


def captured(function, *args, stream=None, **options):
    """The graph of a call and its result, after a call that compiles."""
    function(*args)
    graph = Graph(**options)
    with stream or torch.Stream(device=DEVICE), graph:
        result = function(*args)
    return graph, result


class TestReplay:
    def test_counts(self):
        x = torch.zeros(33, 70, dtype=torch.float16, device=DEVICE)
        graph = Graph()
        with torch.Stream(device=DEVICE), graph:
            x += 1
        assert value(x) == 0
        for n in range(1, 6):
            graph.replay()
            assert value(x) == n

    def test_default_stream(self):
        x = torch.zeros(64, dtype=torch.float16, device=DEVICE)
        graph = Graph()
        with graph:
            x += 1
        graph.replay()
        assert value(x) == 1

    def test_new_inputs(self):
        block = make_block()
        x = randn(2, 19, 96).to(DEVICE)
        graph, y = captured(block, x)
        for seed in range(4):
            fresh = randn(2, 19, 96, seed=seed)
            x.copy_(fresh)
            graph.replay()
            assert same(y, block(fresh.to(DEVICE))), seed

    def test_static_input_written_by_kernels(self):
        """Eager mode does not see writes of replays, so it must drop its record of clean lanes."""
        x = randn(5, 70).to(DEVICE)
        graph = Graph()
        with torch.Stream(device=DEVICE), graph:
            x += 1
            total = x.sum(-1)
        for seed in range(3):
            fresh = randn(5, 70, seed=seed)
            x.copy_(fresh)
            graph.replay()
            torch.accelerator.synchronize()
            want = fresh.to(DEVICE) + 1
            assert same(x, want)
            assert same(total, want.sum(-1))
            assert same(x.sum(-1), want.sum(-1))
            assert same(x.exp().sum(-1), want.exp().sum(-1))
            x.add_(3)
            graph.replay()
            assert same(total, (want + 3 + 1).sum(-1))

    def test_views_and_copies_on_card(self):
        def f(x):
            t = x.t().contiguous()
            part = x[1:, 3:40].contiguous()
            t[2:5, 1:] = 7
            return t, part, x.clone()

        x = randn(9, 70).to(DEVICE)
        graph, results = captured(f, x)
        x.copy_(randn(9, 70, seed=5))
        graph.replay()
        torch.accelerator.synchronize()
        for got, want in zip(results, f(x)):
            assert same(got, want)

    def test_pinned_copies(self):
        source = exact(8, 64).pin_memory()
        target = torch.zeros(8, 64, dtype=torch.float16).pin_memory()
        graph = Graph()
        with torch.Stream(device=DEVICE), graph:
            y = source.to(DEVICE, non_blocking=True) * 2
            target.copy_(y, non_blocking=True)
        for seed in range(3):
            source.copy_(exact(8, 64, seed=seed))
            graph.replay()
            torch.accelerator.synchronize()
            assert torch.equal(target, exact(8, 64, seed=seed) * 2)

    def test_pinned_memory_stays(self):
        source = torch.full((8, 64), 3, dtype=torch.float16).pin_memory()
        graph = Graph()
        with torch.Stream(device=DEVICE), graph:
            y = source.to(DEVICE, non_blocking=True)
        del source
        others = [torch.zeros(8, 64, dtype=torch.float16).pin_memory() for _ in range(8)]
        graph.replay()
        assert value(y) == 3
        assert all(not other.any() for other in others)

    def test_compiled_function(self):
        f = torch.compile(lambda a, b: (a @ b).softmax(-1) + a)
        a, b = randn(64, 64).to(DEVICE), randn(64, 64, seed=1).to(DEVICE)
        graph, y = captured(f, a, b)
        a.copy_(randn(64, 64, seed=2))
        graph.replay()
        assert same(y, f(a, b))

    def test_compiles_during_capture(self):
        x = randn(3, 77).to(DEVICE)
        graph = Graph()
        with torch.Stream(device=DEVICE), graph:
            y = torch.tanh(x * 0.123) - 4.5
        graph.replay()
        assert same(y, torch.tanh(x * 0.123) - 4.5)

    def test_training_step(self):
        def make():
            torch.manual_seed(0)
            layers = torch.nn.Linear(40, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)
            model = torch.nn.Sequential(*layers).half().to(DEVICE)
            return model, torch.optim.SGD(model.parameters(), lr=0.125)

        def step(model, optimizer, x):
            optimizer.zero_grad(set_to_none=False)
            model(x).float().square().mean().backward()
            optimizer.step()

        x = randn(16, 40).to(DEVICE)
        model, optimizer = make()
        eager, eager_optimizer = make()
        stream = torch.Stream(device=DEVICE)
        with stream:
            step(model, optimizer, x)
        step(eager, eager_optimizer, x)
        graph = Graph()
        with stream, graph:
            step(model, optimizer, x)
        for seed in range(3):
            x.copy_(randn(16, 40, seed=seed))
            graph.replay()
            step(eager, eager_optimizer, x)
        for got, want in zip(model.parameters(), eager.parameters()):
            assert same(got, want)

    def test_two_streams(self):
        x = torch.zeros(64, 64, dtype=torch.float16, device=DEVICE)
        graph = Graph()
        first, second = torch.Stream(device=DEVICE), torch.Stream(device=DEVICE)
        with first, graph:
            for _ in range(10):
                x += 1
        for i in range(20):
            with first if i % 2 else second:
                graph.replay()
        assert value(x) == 200

    def test_fork_and_join(self):
        x = torch.ones(64, 64, dtype=torch.float16, device=DEVICE)
        main, side = torch.Stream(device=DEVICE), torch.Stream(device=DEVICE)
        graph = Graph()
        with main, graph:
            a = x * 2
            side.wait_stream(main)
            with side:
                b = a * 3
            a = a * 5
            main.wait_stream(side)
            y = a + b
        graph.replay()
        assert value(y) == 16
        side.synchronize()

    def test_second_card(self):
        torch.spyre.set_device(1)
        x = torch.zeros(64, dtype=torch.float16, device="spyre:1")
        graph = Graph()
        with torch.Stream(device="spyre:1"), graph:
            x += 1
        torch.spyre.set_device(0)
        graph.replay()
        torch.spyre.synchronize(1)
        assert x.cpu()[0] == 1

    def test_threads(self):
        xs = [torch.zeros(64, dtype=torch.float16, device=DEVICE) for _ in range(4)]
        errors = []

        def work(x):
            try:
                graph = Graph()
                with torch.Stream(device=DEVICE):
                    graph.capture_begin()
                    for _ in range(5):
                        y = x + 1
                        x.copy_(y)
                    graph.capture_end()
                    for _ in range(10):
                        graph.replay()
            except Exception as error:  # noqa: BLE001
                errors.append(error)

        threads = [threading.Thread(target=work, args=(x,)) for x in xs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert [value(x) for x in xs] == [50] * 4


class TestMemory:
    def test_is_private(self):
        x = randn(64, 64).to(DEVICE)
        graph, y = captured(lambda a: (a * 2 + 1) * 3, x)
        graph.replay()
        want = (x * 2 + 1) * 3
        torch.accelerator.synchronize()
        torch.accelerator.empty_cache()
        others = [torch.full((64, 64), 9, dtype=torch.float16, device=DEVICE) for _ in range(64)]
        graph.replay()
        assert same(y, want)
        assert all(value(other) == 9 for other in others)

    def test_goes_with_the_graph(self):
        def reserved():
            torch.accelerator.synchronize()
            torch.accelerator.empty_cache()
            return torch.accelerator.memory_reserved()

        gc.collect()
        before = reserved()
        graph = Graph()
        with torch.Stream(device=DEVICE), graph:
            y = torch.zeros(3 << 20, dtype=torch.float16, device=DEVICE) + 1
        assert reserved() > before
        graph.replay()
        graph.reset()
        assert value(y) == 1
        del y
        assert reserved() == before

    def test_shared_pool(self):
        x = randn(64, 64).to(DEVICE)
        first, y = captured(lambda a: a * 2, x)
        second, z = captured(lambda a: a + 1, y, pool=first.pool())
        assert second.pool() == first.pool()
        x.copy_(randn(64, 64, seed=3))
        first.replay()
        second.replay()
        assert same(z, x * 2 + 1)
        pool = first.pool()
        first.reset()
        second.replay()
        assert same(z, y + 1)
        third, _ = captured(lambda a: a - 1, x, pool=pool)
        assert third.pool() == pool
        other, _ = captured(lambda a: a - 1, x)
        assert other.pool() != pool

    def test_reuses_what_was_freed(self):
        def chain(a):
            for _ in range(50):
                a = a + 1
            return a

        x = torch.zeros(1 << 19, dtype=torch.float16, device=DEVICE)
        before = torch.accelerator.memory_reserved()
        graph, y = captured(chain, x)
        assert torch.accelerator.memory_reserved() - before < 48 << 20
        graph.replay()
        assert value(y) == 50


class TestLife:
    def test_states(self):
        x = torch.zeros(64, dtype=torch.float16, device=DEVICE)
        graph = Graph()
        with pytest.raises(RuntimeError, match="cannot use the graph"):
            graph.replay()
        with pytest.raises(RuntimeError, match="capture_begin"):
            graph.capture_end()
        with pytest.raises(RuntimeError, match="no memory"):
            graph.pool()
        graph.capture_begin()
        with pytest.raises(RuntimeError, match="being captured"):
            graph.capture_begin()
        with pytest.raises(RuntimeError, match="being captured"):
            graph.reset()
        x += 1
        graph.capture_end()
        with pytest.raises(RuntimeError, match="reset"):
            graph.capture_begin()
        with pytest.raises(RuntimeError, match="keep_graph"):
            graph.instantiate()
        graph.reset()
        with pytest.raises(RuntimeError, match="cannot use the graph"):
            graph.replay()
        graph.capture_begin()
        x += 2
        graph.capture_end()
        graph.replay()
        assert value(x) == 2

    @pytest.mark.parametrize("mode", ["default", "global", "thread_local", "relaxed"])
    def test_modes(self, mode):
        x = torch.zeros(64, dtype=torch.float16, device=DEVICE)
        graph = Graph(capture_error_mode=mode)
        with torch.Stream(device=DEVICE), graph:
            x += 1
        graph.replay()
        assert value(x) == 1

    def test_keep_graph(self, tmp_path):
        x = torch.zeros(64, dtype=torch.float16, device=DEVICE)
        graph = Graph(keep_graph=True)
        with torch.Stream(device=DEVICE), graph:
            x += 1
            x *= 2
        graph.instantiate()
        graph.instantiate()
        graph.replay()
        assert value(x) == 2
        graph.debug_dump(str(tmp_path / "graph.dot"))
        text = (tmp_path / "graph.dot").read_text()
        assert text.startswith("digraph") and "n0 -> n1" in text and "add" in text
        with pytest.raises(RuntimeError, match="cannot write"):
            graph.debug_dump(str(tmp_path / "none" / "graph.dot"))

    def test_debug_mode(self, tmp_path):
        x = torch.zeros(64, dtype=torch.float16, device=DEVICE)
        graph = Graph()
        with torch.Stream(device=DEVICE), graph:
            x += 1
        with pytest.warns(UserWarning, match="enable_debug_mode"):
            graph.debug_dump(str(tmp_path / "a.dot"))
        assert not (tmp_path / "a.dot").exists()
        graph.enable_debug_mode()
        graph.debug_dump(str(tmp_path / "a.dot"))
        assert (tmp_path / "a.dot").exists()

    def test_dropped_while_replays_run(self):
        x = torch.zeros(256, 256, dtype=torch.float16, device=DEVICE)
        graph = Graph()
        with torch.Stream(device=DEVICE), graph:
            for _ in range(100):
                x += 1
        for _ in range(5):
            graph.replay()
        del graph
        gc.collect()
        assert value(x) == 500

    def test_dropped_while_captured(self):
        x = torch.zeros(64, dtype=torch.float16, device=DEVICE)
        graph = Graph()
        graph.capture_begin()
        x += 1
        del graph
        gc.collect()
        x += 1
        assert value(x) == 1


def refused(function):
    """@function raises inside a capture; the stream is usable afterwards, the graph is not."""
    x = torch.zeros(64, dtype=torch.float16, device=DEVICE)
    graph = Graph()
    stream = torch.Stream(device=DEVICE)
    with pytest.raises(RuntimeError) as caught:
        with stream, graph:
            x += 1
            function(x)
    with pytest.raises(RuntimeError, match="its capture failed"):
        graph.replay()
    with stream:
        x += 1
    stream.synchronize()
    assert value(x) == 1
    graph.reset()
    with stream, graph:
        x += 1
    graph.replay()
    assert value(x) == 2
    return str(caught.value)


class TestRefusals:
    def test_item(self):
        assert "item()" in refused(lambda x: x[0].item())

    def test_to_the_cpu(self):
        assert "pinned memory" in refused(lambda x: x.cpu())

    def test_from_pageable_memory(self):
        text = refused(lambda x: x.copy_(torch.ones(64, dtype=torch.float16)))
        assert "non_blocking=True" in text

    def test_pinned_but_blocking(self):
        source = torch.ones(64, dtype=torch.float16).pin_memory()
        assert "non_blocking=True" in refused(lambda x: x.copy_(source))

    def test_print(self):
        refused(lambda x: str(x))

    def test_fallback(self):
        text = refused(lambda x: torch.atan(x))
        assert "aten::atan" in text and "CPU" in text

    def test_random_numbers(self):
        text = refused(lambda x: x.uniform_())
        assert "aten::uniform_" in text and "every replay" in text
        text = refused(lambda x: torch.nn.functional.dropout(x, 0.5))
        assert "aten::native_dropout" in text and "every replay" in text

    def test_synchronize(self):
        assert "captured" in refused(lambda x: torch.accelerator.synchronize())

    def test_event(self):
        event = torch.Event(device=DEVICE)

        def wait(x):
            event.record()
            event.synchronize()

        assert "captured" in refused(wait)

    def test_work_of_another_stream(self):
        other = torch.Stream(device=DEVICE)
        event = other.record_event()
        assert "outside the graph" in refused(
            lambda x: torch.accelerator.current_stream().wait_event(event)
        )

    def test_other_exceptions_keep_the_graph(self):
        x = torch.zeros(64, dtype=torch.float16, device=DEVICE)
        graph = Graph()
        with torch.Stream(device=DEVICE), graph:
            x += 1
            with pytest.raises(RuntimeError):
                x + torch.zeros(3, dtype=torch.float16, device=DEVICE)
        graph.replay()
        assert value(x) == 1


class TestReset:
    def test_soft(self):
        x = torch.zeros(64, dtype=torch.float16, device=DEVICE)
        graph = Graph()
        with torch.Stream(device=DEVICE), graph:
            x += 1
        torch.spyre.reset()
        graph.replay()
        assert value(x) == 1

    def test_soft_during_capture(self):
        x = torch.zeros(64, dtype=torch.float16, device=DEVICE)
        graph = Graph()
        graph.capture_begin()
        x += 1
        torch.spyre.reset()
        with pytest.raises(RuntimeError, match="reset"):
            graph.capture_end()
        with pytest.raises(RuntimeError, match="its capture failed"):
            graph.replay()
        x += 1
        assert value(x) == 1

    def test_hard(self):
        x = torch.zeros(64, dtype=torch.float16, device=DEVICE)
        graph = Graph()
        with torch.Stream(device=DEVICE), graph:
            x += 1
        torch.spyre.reset(hard=True)
        with pytest.raises(RuntimeError, match="capture it again"):
            graph.replay()
        graph.reset()
        x = torch.zeros(64, dtype=torch.float16, device=DEVICE)
        with torch.Stream(device=DEVICE), graph:
            x += 1
        graph.replay()
        assert value(x) == 1


def test_profiler():
    from torch.profiler import ProfilerActivity, profile

    x = torch.zeros(64, 64, dtype=torch.float16, device=DEVICE)
    graph = Graph()
    with torch.Stream(device=DEVICE), graph:
        for _ in range(3):
            x += 1
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as profiler:
        graph.replay()
        graph.replay()
        torch.accelerator.synchronize()
    events = profiler.events()
    card = torch.autograd.DeviceType.PrivateUse1
    kernels = [e for e in events if "add" in e.name and e.device_type == card]
    assert len(kernels) == 6
    assert any(e.name == "Graph.replay" for e in events)
