# SPDX-License-Identifier: MIT
"""Streams: torch.Stream, torch.accelerator, torch.spyre.Stream."""

import threading

import pytest
import torch
from support import DEVICE, assert_same, exact


@pytest.fixture(autouse=True)
def default_streams():
    yield
    for index in (1, 0):
        torch.accelerator.set_stream(torch.spyre.default_stream(index))
    torch.spyre.set_device(0)


class TestStream:
    def test_stream_create(self):
        assert torch.Stream(device=DEVICE).device_index == torch.spyre.current_device()
        stream = torch.Stream(device="spyre:1")
        assert stream.device.type == DEVICE and stream.device_index == 1
        assert torch.Stream(1).device_index == 1
        same = torch.Stream(
            stream_id=stream.stream_id,
            device_type=stream.device_type,
            device_index=stream.device_index,
        )
        assert same == stream

    def test_stream_context(self):
        with torch.Stream(device="spyre:1") as stream:
            assert torch.accelerator.current_stream() == stream
        assert torch.accelerator.current_stream() == torch.spyre.default_stream()

    def test_stream_switch(self):
        for device in ("spyre:0", "spyre:1"):
            stream = torch.Stream(device=device)
            torch.accelerator.set_stream(stream)
            assert torch.accelerator.current_stream() == stream

    def test_stream_synchronize(self):
        stream = torch.Stream(device="spyre:1")
        assert stream.query()
        torch.Event().record(stream)
        stream.synchronize()
        assert stream.query()

    def test_stream_repr(self):
        assert "device_type=spyre, device_index=1" in repr(torch.Stream(device="spyre:1"))

    def test_stream_wait_stream(self):
        torch.Stream(device="spyre:0").wait_stream(torch.Stream(device="spyre:0"))

    def test_stream_wait_event(self):
        first, second = torch.Stream(device=DEVICE), torch.Stream(device=DEVICE)
        second.wait_event(first.record_event())
        second.synchronize()


class TestSpyreStream:
    def test_default_stream(self):
        assert torch.spyre.default_stream().stream_id == 0
        assert torch.spyre.current_stream() == torch.spyre.default_stream()

    def test_pools(self):
        """The pool hands out streams 1 to 32 of low and 33 to 64 of high priority in rotation."""
        low = {torch.spyre.Stream(priority=0).id for _ in range(32)}
        high = {torch.spyre.Stream(priority=-1).id for _ in range(32)}
        assert low == set(range(1, 33)) and high == set(range(33, 65))

    def test_surface(self):
        stream = torch.spyre.Stream()
        assert stream.device == torch.device("spyre", 0)
        with torch.spyre.stream(stream):
            assert torch.spyre.current_stream() == stream
            x = exact(64, 64).to(DEVICE) + 1
        stream.synchronize()
        assert stream.query()
        assert_same(x, exact(64, 64).to(DEVICE) + 1)

    def test_current_stream_is_a_threads_own(self):
        seen = []
        with torch.spyre.Stream():
            thread = threading.Thread(target=lambda: seen.append(torch.spyre.current_stream()))
            thread.start()
            thread.join()
        assert seen == [torch.spyre.default_stream()]

    def test_work_on_two_streams(self):
        a, b = exact(256, 256, seed=1).to(DEVICE), exact(256, 256, seed=2).to(DEVICE)
        expected = (a @ b).cpu()
        torch.spyre.synchronize()
        results = []
        for _ in range(8):
            with torch.spyre.stream(torch.spyre.Stream()):
                results.append(a @ b)
        torch.spyre.synchronize()
        for result in results:
            assert_same(result, expected)

    def test_order_by_event(self):
        """A stream that waits for an event reads the other stream's writes."""
        producer, consumer = torch.spyre.Stream(), torch.spyre.Stream()
        x = exact(512, 512).to(DEVICE)
        expected = ((x @ x) + 1).cpu()
        torch.spyre.synchronize()
        with torch.spyre.stream(producer):
            y = x @ x
            done = producer.record_event()
        with torch.spyre.stream(consumer):
            consumer.wait_event(done)
            z = y + 1
        y.record_stream(consumer)
        del y
        consumer.synchronize()
        assert_same(z, expected)

    def test_record_stream(self):
        """A block that another stream still reads is not reused."""
        side = torch.spyre.Stream()
        x = exact(1024, 1024).to(DEVICE)
        expected = (x @ x).cpu()
        for _ in range(4):
            y = x.clone()
            side.wait_stream(torch.spyre.current_stream())
            with torch.spyre.stream(side):
                product = y @ x
            y.record_stream(side)
            del y
            torch.zeros(1024, 1024, dtype=torch.float16, device=DEVICE)
            side.synchronize()
            assert_same(product, expected)

    def test_synchronize_waits(self):
        x = exact(1024, 1024).to(DEVICE)
        for _ in range(3):
            x @ x
        torch.spyre.synchronize()
        assert torch.spyre.current_stream().query()
        torch.accelerator.synchronize("spyre:1")
