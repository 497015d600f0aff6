# SPDX-License-Identifier: MIT
"""Events, with times and without."""

import pytest
import torch
from support import DEVICE, assert_same, exact


class TestEvent:
    def test_event_create(self):
        for event in (torch.Event(device=DEVICE), torch.Event(device="spyre:1"), torch.Event()):
            assert event.device.type == DEVICE and event.event_id == 0
        event = torch.Stream(device="spyre:1").record_event()
        assert event.device == torch.device("spyre", 1) and event.event_id != 0

    def test_event_query(self):
        assert torch.Event().query()
        event = torch.Stream(device="spyre:1").record_event()
        event.synchronize()
        assert event.query()

    def test_event_record(self):
        stream = torch.Stream(device="spyre:1")
        assert stream.record_event().event_id != 0
        first, second = stream.record_event(), stream.record_event()
        assert first.event_id != second.event_id

    def test_event_elapsed_time(self):
        stream = torch.Stream(device="spyre:1")
        first, second = (torch.Event(device="spyre:1", enable_timing=True) for _ in range(2))
        x = exact(512, 512).to("spyre:1")
        with stream:
            first.record(stream)
            x @ x
            second.record(stream)
        stream.synchronize()
        assert first.query() and second.query()
        assert 0 < first.elapsed_time(second) < 60000
        assert first.elapsed_time(second) == -second.elapsed_time(first)

    def test_spyre_event_elapsed_time(self):
        first, second = (torch.spyre.Event(enable_timing=True) for _ in range(2))
        first.record()
        second.record()
        torch.spyre.synchronize()
        assert first.elapsed_time(second) >= 0

    def test_event_synchronize(self):
        event = torch.Event(device=DEVICE)
        event.record(torch.Stream(device=DEVICE))
        event.synchronize()
        assert event.query()

    def test_event_different_devices(self):
        events = [torch.Event(device=f"spyre:{index}") for index in (0, 1)]
        for index, event in enumerate(events):
            event.record(torch.Stream(device=f"spyre:{index}"))
            assert event.device.index == index

    def test_event_timing_disabled(self):
        stream = torch.Stream(device="spyre:1")
        first, second = (torch.Event(device="spyre:1", enable_timing=False) for _ in range(2))
        first.record(stream)
        second.record(stream)
        stream.synchronize()
        with pytest.raises(ValueError, match="enable_timing=True"):
            first.elapsed_time(second)

    def test_event_wait_event(self):
        first, second = torch.Stream(device=DEVICE), torch.Stream(device=DEVICE)
        event = first.record_event()
        second.wait_event(event)
        second.synchronize()
        assert event.query()

    def test_interleaved_stream_operations(self):
        stream = torch.Stream(device="spyre:0")
        x, y = exact(50, 50).to(DEVICE), exact(50, 50, seed=1).to(DEVICE)
        events = [stream.record_event()]
        product = x @ y
        events.append(stream.record_event())
        product @ x
        stream.synchronize()
        assert all(event.query() for event in events)

    def test_multiple_streams_wait_same_event(self):
        streams = [torch.Stream(device="spyre:0") for _ in range(3)]
        assert len({stream.stream_id for stream in streams}) == 3
        x, y = exact(30, 30).to(DEVICE), exact(30, 30, seed=1).to(DEVICE)
        torch.spyre.synchronize()
        event = streams[0].record_event()
        products = []
        for stream in streams[1:]:
            stream.wait_event(event)
            with stream:
                products.append(x @ y)
        torch.accelerator.synchronize()
        assert_same(*products)

    def test_event_lifecycle(self):
        stream = torch.Stream(device="spyre:0")
        event = torch.Event(device="spyre:0")
        for _ in range(2):
            event.record(stream)
            stream.synchronize()
            assert event.query()

    def test_destroyed_while_pending(self):
        x = exact(512, 512).to(DEVICE)
        for _ in range(10):
            x @ x
            torch.spyre.current_stream().record_event()
        torch.spyre.synchronize()

    def test_generic_stream_event(self):
        first, second = (torch.Event(DEVICE, enable_timing=True) for _ in range(2))
        first.record(torch.Stream(DEVICE))
        first.synchronize()
        second.record()
        second.synchronize()
        assert first.elapsed_time(second) > 0

    def test_event_before_the_card_is_open(self):
        from support import python_ok

        python_ok(
            "event = torch.Event(device='spyre')\n"
            "assert event.query() and not torch.spyre.is_initialized()\n"
            "event.synchronize()\n"
        )
