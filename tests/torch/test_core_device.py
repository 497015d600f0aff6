# SPDX-License-Identifier: MIT
"""Cards, streams, events, randomness, memory: in this process and in others."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch
import torch_spyre  # noqa: F401


def run(code, **environment):
    """Runs Python code in a process of its own; its output."""
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        env={**os.environ, "SPYRE_BACKEND": "embedded", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_import_opens_no_card():
    out = run("""
        import torch, torch_spyre
        print(torch.spyre.device_count(), torch.spyre.is_available(), torch.spyre.is_initialized())
        torch.spyre.set_device(1)
        print(torch.spyre.get_device_properties(0).multi_processor_count,
              torch.spyre.current_device(), torch.spyre.is_initialized())
        torch.manual_seed(1)
        print(torch.spyre.is_initialized(), torch.zeros(2, device="spyre").device)
        print(torch.spyre.is_initialized())
        """, SPYRE_EMBEDDED_CARDS="2")
    assert out.split("\n") == [
        "2 True False",
        "32 1 False",
        "False spyre:1",
        "True",
        "",
    ]


def test_no_card():
    out = run("""
        import torch, torch_spyre
        print(torch.spyre.device_count(), torch.spyre.is_available())
        try:
            torch.zeros(1, device="spyre")
        except RuntimeError as error:
            print("0 cards" in str(error))
        """, SPYRE_EMBEDDED_CARDS="0")
    assert out == "0 False\nTrue\n"


def test_two_cards():
    out = run("""
        import torch, torch_spyre
        a = torch.arange(100.).to("spyre:0")
        b = a.to("spyre:1")
        assert torch.equal(a.cpu(), b.cpu()) and b.device.index == 1
        with torch.spyre.device(1):
            assert torch.zeros(1, device="spyre").device.index == 1
        assert torch.spyre.current_device() == 0
        stream = torch.spyre.Stream("spyre:1")
        event = torch.Event("spyre:0")
        event.record(torch.spyre.current_stream("spyre:0"))
        event.wait(stream)
        stream.synchronize()
        torch.spyre.manual_seed_all(5)
        x, y = torch.rand(4, device="spyre:0"), torch.rand(4, device="spyre:1")
        assert torch.equal(x.cpu(), y.cpu())
        try:
            torch.spyre.set_device(2)
        except RuntimeError as error:
            print(error)
        """, SPYRE_EMBEDDED_CARDS="2")
    assert "device index 2 is out of range: 2 cards are visible" in out


def test_fork():
    out = run("""
        import os, torch, torch_spyre

        def child(use):
            pid = os.fork()
            if not pid:
                try:
                    use()
                    os._exit(0)
                except RuntimeError as error:
                    os._exit(1 if "forked subprocess" in str(error) else 2)
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

        def use():
            torch.ones(3).to("spyre")

        torch.spyre.device_count(), torch.spyre.is_available()
        print(child(use))
        x = torch.ones(3).to("spyre")
        print(child(use), child(lambda: x.cpu()), child(lambda: torch.spyre.synchronize()))
        print(child(lambda: torch.spyre.is_available() and torch.manual_seed(1)))
        print(x.cpu().sum().item())
        """)
    assert out == "0\n1 1 1\n0\n3.0\n"


def test_streams():
    low, high = torch.spyre.Stream(), torch.spyre.Stream(priority=-1)
    assert low.priority == 0 and high.priority == -1
    assert 1 <= low.id <= 32 < high.id <= 64
    assert torch.spyre.current_stream() == torch.spyre.default_stream()
    x = torch.randn(500, 500).to("spyre")
    with torch.spyre.stream(low):
        assert torch.spyre.current_stream() == low
        y = x.clone()
    high.wait_stream(low)
    with high:
        z = y.clone()
    high.synchronize()
    assert low.query() and high.query()
    assert torch.equal(z.cpu(), x.cpu())
    assert isinstance(low.native_handle, int) and low.native_handle != high.native_handle


def test_events():
    start, end = (torch.spyre.Event(enable_timing=True) for _ in range(2))
    assert start.query()
    x = torch.randn(500, 500).to("spyre")
    start.record()
    for _ in range(20):
        x = x[:, 1:].contiguous()
    end.record()
    end.synchronize()
    assert 0 < start.elapsed_time(end) < 60000
    untimed = torch.spyre.Event()
    with pytest.raises((RuntimeError, ValueError), match="recorded"):
        start.elapsed_time(torch.spyre.Event(enable_timing=True))
    untimed.record()
    with pytest.raises((RuntimeError, ValueError), match="enable_timing"):
        untimed.elapsed_time(end)
    for _ in range(100):
        torch.spyre.Event().record()


def test_randomness():
    torch.manual_seed(3)
    host = torch.randn(5), torch.rand(5), torch.randint(0, 9, (5,))
    torch.spyre.manual_seed(3)
    card = (
        torch.randn(5, device="spyre"),
        torch.rand(5, device="spyre"),
        torch.randint(0, 9, (5,), device="spyre"),
    )
    for a, b in zip(host, card):
        assert torch.equal(a, b.cpu())
    state = torch.spyre.get_rng_state()
    a = torch.randn(5, device="spyre")
    torch.spyre.set_rng_state(state)
    assert torch.equal(a.cpu(), torch.randn(5, device="spyre").cpu())
    assert torch.spyre.initial_seed() == 3
    generator = torch.Generator("spyre").manual_seed(9)
    a = torch.empty(5, device="spyre").uniform_(generator=generator)
    torch.manual_seed(9)
    assert torch.equal(a.cpu(), torch.rand(5))
    with torch.random.fork_rng(device_type="spyre"):
        torch.spyre.manual_seed(1)
    assert torch.spyre.initial_seed() == 9


def test_memory_statistics():
    torch.accelerator.empty_cache()
    before = torch.accelerator.memory_allocated()
    x = torch.empty(1 << 20, device="spyre")
    assert torch.accelerator.memory_allocated() - before == 4 << 20
    free, total = torch.spyre.mem_get_info()
    assert 0 < free < total
    stats = torch.spyre.memory_stats()
    assert stats["allocation.all.current"] >= 1
    assert stats["requested_bytes.all.peak"] >= 4 << 20
    del x
    assert torch.accelerator.memory_allocated() == before
    reserved = torch.accelerator.memory_reserved()
    torch.accelerator.empty_cache()
    assert torch.accelerator.memory_reserved() < reserved
    assert torch.spyre.mem_get_info()[0] > free
    torch.spyre.reset_peak_memory_stats()
    assert torch.spyre.max_memory_allocated() == torch.spyre.memory_allocated()


def test_memory_is_reused_in_stream_order():
    torch.accelerator.empty_cache()
    x = torch.empty(1000, device="spyre")
    address = x.data_ptr()
    del x
    assert torch.empty(1000, device="spyre").data_ptr() == address
    other = torch.spyre.Stream()
    with other:
        assert torch.empty(1000, device="spyre").data_ptr() != address
    x = torch.empty(1000, device="spyre")
    x.record_stream(other)
    del x
    torch.spyre.synchronize()
    assert torch.empty(1000, device="spyre").data_ptr() == address


def test_out_of_memory():
    out = run("""
        import torch, torch_spyre
        kept = [torch.empty(1 << 20, device="spyre") for _ in range(8)]
        try:
            torch.empty(1 << 26, device="spyre")
        except torch.OutOfMemoryError as error:
            print(error)
        assert torch.equal(torch.ones(5).to("spyre").cpu(), torch.ones(5))
        del kept
        big = torch.empty(12 << 20, device="spyre")
        stats = torch.spyre.memory_stats()
        print(stats["num_ooms"], stats["num_alloc_retries"])
        """, SPYRE_EMBEDDED_LPDDR_MIB="64")
    assert "requested 268435456 bytes, free " in out and "largest free block" in out
    assert out.strip().split("\n")[-1] == "1 3"


def test_pinned_memory():
    pinned = torch.randn(100).pin_memory()
    assert pinned.is_pinned() and pinned[50:].is_pinned()
    assert not torch.randn(100).is_pinned()
    with pytest.raises(RuntimeError, match="pinned"):
        torch.empty(3, device="spyre", pin_memory=True)
    torch.accelerator.empty_host_cache()
    assert torch.equal(pinned.to("spyre").cpu(), pinned)


def test_fallbacks():
    torch.spyre.reset_fallbacks()
    x = torch.randn(3, 4).to("spyre")
    assert torch.equal(torch.linalg.norm(x, dim=1).cpu(), torch.linalg.norm(x.cpu(), dim=1))
    y = torch.atan(x)
    assert y.device.type == "spyre" and torch.equal(y.cpu(), torch.atan(x.cpu()))
    assert torch.spyre.fallbacks()["aten::atan.out"] == 1


def test_fallback_warns_once():
    out = run("""
        import torch, torch_spyre, warnings
        x = torch.randn(3, 4).to("spyre")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                torch.atan(x)
        print(len([w for w in caught if "atan" in str(w.message)]))
        """)
    assert out == "1\n"


def test_reset():
    x = torch.arange(10.0).to("spyre")
    torch.spyre.reset()
    assert torch.equal(x.cpu(), torch.arange(10.0))


def test_hard_reset():
    out = run("""
        import torch, torch_spyre
        x = torch.arange(10.0).to("spyre")
        pinned = torch.arange(10.0).pin_memory()
        torch.spyre.reset(hard=True)
        try:
            x.cpu()
        except RuntimeError as error:
            print(error)
        y = pinned.to("spyre")
        assert torch.equal(y.cpu(), torch.arange(10.0))
        del x
        print(torch.spyre.memory_allocated())
        """)
    assert "memory was lost when the device was reset" in out
    assert out.strip().split("\n")[-1] == "512"


def test_diagnostic_report():
    torch.ones(1, device="spyre")
    report = torch.spyre.get_diagnostic_report()
    assert report["cards"][0]["state"]["health"] == "ok"
    assert report["cards"][0]["memory"]["total"] > 0
    assert report["versions"]["torch"] == torch.__version__


def test_accelerator():
    assert torch.accelerator.current_accelerator().type == "spyre"
    assert torch.accelerator.device_count() == torch.spyre.device_count()
    assert torch.float64 not in torch.spyre.get_device_capability()["supported_dtypes"]
    torch.accelerator.synchronize()


def test_autocast():
    a, b = torch.randn(4, 4).to("spyre"), torch.randn(4, 4).to("spyre")
    with torch.autocast("spyre", dtype=torch.bfloat16):
        assert (a @ b).dtype == torch.bfloat16
        assert torch.softmax((a @ b), -1).dtype == torch.float32
    with torch.autocast("spyre"):
        assert (a @ b).dtype == torch.float16
    with pytest.warns(UserWarning, match="[Uu]nsupported|not supported"):
        with torch.autocast("spyre", dtype=torch.float32):
            assert (a @ b).dtype == torch.float32


def test_autograd():
    x = torch.randn(3, 4).to("spyre").requires_grad_()
    (x[1:].t() * 2).sum().backward()
    expected = torch.zeros(3, 4)
    expected[1:] = 2
    assert torch.equal(x.grad.cpu(), expected)


def test_wrong_devices():
    with pytest.raises(RuntimeError):
        torch.set_default_device("cpu") or torch.ones(3).to("spyre:9")
    with pytest.raises(ValueError, match="expected a spyre device"):
        torch.spyre.synchronize("cpu")
