# SPDX-License-Identifier: MIT
"""Device memory, its statistics, running out of it; pinned host memory."""

import gc
import re

import pytest
import torch
from support import DEVICE, assert_same, exact, process_error, python_ok

MIB = 1 << 20


def in_use(index=0):
    gc.collect()
    return torch.accelerator.memory_allocated(index)


class TestDeviceAllocator:
    def test_basic_allocation(self):
        for size in [(100,), (10000,), (10, 20, 30), ()]:
            tensor = torch.empty(size, device=DEVICE)
            assert tensor.device.type == DEVICE and tensor.shape == torch.Size(size)

    def test_zero_size(self):
        before = in_use()
        tensor = torch.empty(3, 0, 5, device=DEVICE)
        assert tensor.data_ptr() == 0 and tensor.numel() == 0
        assert in_use() == before
        assert_same(tensor, torch.empty(3, 0, 5))

    @pytest.mark.parametrize("elements, bytes_used", [(1, 128), (64, 128), (65, 256)])
    def test_rounding_to_sticks(self, elements, bytes_used):
        before = in_use()
        tensor = torch.empty(elements, dtype=torch.float16, device=DEVICE)
        used = in_use() - before
        assert used >= bytes_used and used % 128 == 0
        assert tensor.data_ptr() % 128 == 0

    def test_memory_lifecycle(self):
        before = in_use()
        tensor = torch.empty(1 << 20, device=DEVICE)
        assert in_use() - before >= 4 * MIB
        del tensor
        assert in_use() == before

    def test_tensor_copy_operations(self):
        host = exact(100)
        device = host.to(DEVICE)
        assert_same(device, host)
        assert_same(device.clone(), host)

    def test_tensor_shallow_copy(self):
        """tensor.data = other takes its storage, within a device and between two."""
        a, b = torch.randn(4, 4), exact(4, 4, dtype=torch.float32).to(DEVICE)
        assert torch._has_compatible_shallow_copy_type(a, b)
        a.data = b
        assert a.device.type == DEVICE and a.data_ptr() == b.data_ptr()
        assert_same(a, b)

    def test_inplace_operations(self):
        x = torch.ones(100, device=DEVICE)
        address = x.data_ptr()
        x.add_(1).mul_(2)
        assert x.data_ptr() == address
        assert_same(x, torch.full((100,), 4.0))

    def test_view_operations(self):
        x = exact(100).to(DEVICE)
        y = x.view(10, 10)
        assert y.data_ptr() == x.data_ptr()
        assert x[10:20].untyped_storage().data_ptr() == x.untyped_storage().data_ptr()

    @pytest.mark.parametrize(
        "dtype",
        [torch.float16, torch.float32, torch.bfloat16, torch.int8, torch.uint8, torch.int16]
        + [torch.int32, torch.int64, torch.bool],
    )
    def test_different_dtypes(self, dtype):
        x = torch.empty(100, dtype=dtype, device=DEVICE)
        assert (x.dtype, x.numel(), x.device.type) == (dtype, 100, DEVICE)

    def test_tensor_resize(self):
        host = exact(100)
        x = host.to(DEVICE)
        assert_same(x.resize_(50), host[:50])
        assert x.resize_(200).shape == (200,)
        assert_same(x[:50], host[:50])

    def test_memory_format_allocation(self):
        """Only contiguous and preserve: others are an error that says so, or honoured."""
        assert torch.empty(2, 3, 4, device=DEVICE, memory_format=torch.contiguous_format).shape
        try:
            x = torch.empty(2, 3, 4, 4, device=DEVICE, memory_format=torch.channels_last)
        except RuntimeError as error:
            assert "memory" in str(error)
        else:
            assert x.is_contiguous(memory_format=torch.channels_last)
            host = exact(2, 3, 4, 4, dtype=torch.float32)
            assert_same(x.copy_(host), host)

    def test_new_memory_holds_no_secrets(self):
        """Old contents of memory do not reach the host through the padding of a new tensor."""
        torch.full((64, 64), 7.0, dtype=torch.float16, device=DEVICE)
        x = torch.empty(1000, dtype=torch.float16, device=DEVICE)
        assert_same(x.zero_(), torch.zeros(1000, dtype=torch.float16))

    def test_large_allocation(self):
        assert torch.empty(64 * MIB, dtype=torch.float16, device=DEVICE).numel() == 64 * MIB

    def test_allocation_with_requires_grad(self):
        assert torch.empty(100, device=DEVICE, requires_grad=True).requires_grad
        assert torch.randn(100, device=DEVICE, requires_grad=True).requires_grad

    def test_storage_operations(self):
        storage = torch.randn(100, device=DEVICE).storage()
        assert storage.device.type == DEVICE and storage.size() >= 100

    def test_views_share(self):
        x = exact(100).to(DEVICE)
        y = x.view_as(x)
        x.fill_(5.0)
        assert x.data_ptr() == y.data_ptr()
        assert_same(y, torch.full((100,), 5.0, dtype=torch.float16))

    def test_memory_freed_while_in_use(self):
        """The block of a dead tensor waits for the work that reads it."""
        host = exact(512, 512)
        expected = (host.to(DEVICE) @ host.to(DEVICE)).cpu()
        for _ in range(10):
            product = host.to(DEVICE) @ host.to(DEVICE)
            torch.zeros(512, 512, dtype=torch.float16, device=DEVICE)
            assert_same(product, expected)


class TestStatistics:
    def test_memory_stats(self):
        torch.accelerator.reset_peak_memory_stats()
        before = torch.accelerator.memory_stats()
        x = torch.empty(MIB, device=DEVICE)
        during = torch.accelerator.memory_stats()
        assert during["allocated_bytes.all.current"] - before["allocated_bytes.all.current"] >= (
            x.nbytes
        )
        assert during["allocation.all.current"] == before["allocation.all.current"] + 1
        del x
        after = torch.accelerator.memory_stats()
        assert after["allocated_bytes.all.current"] == before["allocated_bytes.all.current"]
        assert after["allocated_bytes.all.peak"] >= during["allocated_bytes.all.current"]
        assert after["allocation.all.freed"] > before["allocation.all.freed"]

    def test_peak(self):
        torch.accelerator.reset_peak_memory_stats()
        base = torch.accelerator.max_memory_allocated()
        torch.empty(4 * MIB, device=DEVICE)
        assert torch.accelerator.max_memory_allocated() >= base + 16 * MIB
        torch.accelerator.reset_peak_memory_stats()
        assert torch.accelerator.max_memory_allocated() == torch.accelerator.memory_allocated()

    def test_accumulated(self):
        torch.empty(MIB, device=DEVICE)
        torch.accelerator.reset_accumulated_memory_stats()
        stats = torch.accelerator.memory_stats()
        assert stats["allocated_bytes.all.allocated"] == 0
        assert stats["allocated_bytes.all.freed"] == 0

    def test_statistics_per_device(self):
        zero, one = in_use(0), in_use(1)
        x = torch.empty(MIB, device="spyre:1")
        assert in_use(0) == zero and in_use(1) - one >= x.nbytes

    def test_mem_get_info(self):
        free, total = torch.spyre.mem_get_info()
        assert 0 < free <= total
        assert torch.accelerator.get_memory_info() == (free, total)

    def test_empty_cache_operation(self):
        """empty_cache() gives memory back to the card."""
        torch.accelerator.empty_cache()
        before, _ = torch.spyre.mem_get_info()
        x = torch.empty(16 * MIB, device=DEVICE)
        assert torch.spyre.mem_get_info()[0] <= before - x.nbytes
        del x
        assert torch.accelerator.memory_reserved() >= 64 * MIB
        torch.accelerator.empty_cache()
        assert torch.spyre.mem_get_info()[0] == before
        assert torch.accelerator.memory_reserved() < 64 * MIB

    def test_cache_is_reused(self):
        x = torch.empty(MIB, device=DEVICE)
        address = x.data_ptr()
        del x
        assert torch.empty(MIB, device=DEVICE).data_ptr() == address

    def test_memory_module(self):
        assert torch.spyre.memory.memory_allocated() == torch.accelerator.memory_allocated()
        assert torch.spyre.memory.max_memory_allocated() >= torch.spyre.memory.memory_allocated()
        assert torch.spyre.memory.memory_reserved() >= torch.spyre.memory.memory_allocated()


class TestMemoryLeaks:
    """The memory in use does not grow with the number of rounds."""

    def check(self, work, rounds=100):
        work()
        before = in_use()
        for _ in range(rounds):
            work()
        assert in_use() == before

    def test_no_leak_simple_allocations(self):
        self.check(lambda: torch.empty(1000, device=DEVICE), 1000)

    def test_no_leak_varying_sizes(self):
        def work():
            for size in [100, 500, 1000, 5000, 10000]:
                torch.empty(size, device=DEVICE)

        self.check(work)

    def test_no_leak_with_copies(self):
        host = exact(500)
        self.check(lambda: host.to(DEVICE).clone().cpu().to(DEVICE))

    def test_no_leak_with_views(self):
        def work():
            x = torch.empty(1000, device=DEVICE)
            return x.view(10, 100), x[100:200], x.reshape(20, 50).t()

        self.check(work)

    def test_no_leak_inplace_operations(self):
        self.check(lambda: torch.ones(1000, device=DEVICE).add_(1).mul_(2).div_(2).sub_(1))

    def test_no_leak_with_gradients(self):
        def work():
            x = torch.ones(100, device=DEVICE, requires_grad=True)
            (x * x).sum().backward()

        self.check(work, 50)

    def test_no_leak_after_errors(self):
        x = torch.ones(4, 4, device=DEVICE)

        def work():
            with pytest.raises(RuntimeError):
                x @ torch.ones(3, 3, device=DEVICE)

        self.check(work, 20)

    def test_no_leak_repeated_large_allocations(self):
        self.check(lambda: torch.empty(12 * MIB, device=DEVICE), 20)

    def test_fragmentation(self):
        """Freed neighbours become one again: random sizes in random order, many times."""
        generator = torch.Generator().manual_seed(3)
        before = in_use()
        for _ in range(5):
            sizes = torch.randint(1, 1 << 16, (100,), generator=generator).tolist()
            live = [torch.empty(size, device=DEVICE) for size in sizes]
            for index in torch.randperm(100, generator=generator).tolist():
                live[index] = None
        assert in_use() == before


class TestMultiDeviceAllocation:
    def test_allocation_on_device_1(self):
        torch.spyre.set_device(1)
        assert torch.empty(100, device="spyre:1").device.index == 1

    def test_memory_isolation_between_devices(self):
        zero = [torch.full((1000,), 1.0, device="spyre:0") for _ in range(10)]
        one = [torch.full((1000,), 2.0, device="spyre:1") for _ in range(10)]
        assert all(x.cpu().eq(1).all() for x in zero) and all(x.cpu().eq(2).all() for x in one)

    def test_copy_between_devices(self):
        host = exact(40, 60)
        there = host.to("spyre:0").to("spyre:1")
        assert there.device.index == 1
        assert_same(there.to("spyre:0"), host)


class TestOutOfMemory:
    def test_oom(self):
        """The error names the requested, free and largest sizes; the card works afterwards."""
        python_ok(
            "import re\n"
            "x = torch.ones(1024, device='spyre')\n"
            "free, total = torch.spyre.mem_get_info()\n"
            "try:\n"
            "    torch.empty(1 << 30, device='spyre')\n"
            "except torch.OutOfMemoryError as error:\n"
            "    text = str(error)\n"
            "else:\n"
            "    raise SystemExit('no error')\n"
            "assert '4294967296' in text or '4.00 GiB' in text or '4096' in text, text\n"
            "assert 'free' in text and 'largest' in text, text\n"
            "assert len(re.findall('[0-9]+', text)) >= 3, text\n"
            "y = torch.ones(1 << 22, device='spyre')\n"
            "assert (x + x).cpu().sum() == 2048 and y.cpu().sum() == 1 << 22\n",
            SPYRE_EMBEDDED_LPDDR_MIB=96,
        )

    def test_oom_is_a_runtime_error_too(self):
        error = process_error("torch.empty(1 << 31, device='spyre')", SPYRE_EMBEDDED_LPDDR_MIB=64)
        assert "OutOfMemoryError" in error
        assert re.search(r"free", error)

    def test_oom_empties_the_cache_first(self):
        """Cached blocks of other sizes are freed first."""
        python_ok(
            "for size in range(1, 9):\n"
            "    torch.empty(size << 20, device='spyre', dtype=torch.float16)\n"
            "x = torch.empty(40 << 20, device='spyre', dtype=torch.float16)\n",
            SPYRE_EMBEDDED_LPDDR_MIB=96,
        )

    def test_oom_in_the_middle_of_an_expression(self):
        python_ok(
            "x = torch.ones(8 << 20, device='spyre', dtype=torch.float16)\n"
            "kept = []\n"
            "try:\n"
            "    while True:\n"
            "        kept.append(x + len(kept))\n"
            "except torch.OutOfMemoryError:\n"
            "    pass\n"
            "assert len(kept) >= 2\n"
            "assert all(k[0].item() == 1 + i for i, k in enumerate(kept))\n"
            "kept.clear()\n"
            "assert (x + x)[-1].item() == 2\n",
            SPYRE_EMBEDDED_LPDDR_MIB=128,
        )

    def test_a_size_that_no_card_has(self):
        with pytest.raises(torch.OutOfMemoryError, match="free"):
            torch.empty(1 << 45, dtype=torch.int8, device=DEVICE)


class TestPinMemory:
    def test_pin_memory(self):
        tensor = torch.randn(10)
        assert not tensor.is_pinned()
        pinned = tensor.pin_memory()
        assert pinned.is_pinned() and pinned[2:5].is_pinned()
        assert_same(pinned, tensor)
        assert not tensor.is_pinned()

    def test_pinned_storage(self):
        storage = torch.randn(10).untyped_storage()
        assert not storage.is_pinned(DEVICE)
        assert storage.pin_memory(DEVICE).is_pinned(DEVICE)

    def test_pinned_factories(self):
        x = torch.zeros(5, 5, pin_memory=True)
        assert x.is_pinned() and x.device.type == "cpu"

    @pytest.mark.parametrize("pinned", [False, True])
    def test_non_blocking_source_may_die(self, pinned):
        """The memory of a deleted source is not reused before the copy has read it."""
        for seed in range(20):
            expected = exact(1 << 16, seed=seed)
            source = expected.clone().pin_memory() if pinned else expected.clone()
            device = source.to(DEVICE, non_blocking=True)
            del source
            torch.full((1 << 16,), 3.0, dtype=torch.float16, pin_memory=pinned)
            assert_same(device, expected)

    def test_non_blocking_to_pinned(self):
        device = exact(1 << 16).to(DEVICE)
        target = torch.empty(1 << 16, dtype=torch.float16, pin_memory=True)
        target.copy_(device, non_blocking=True)
        torch.spyre.synchronize()
        assert_same(target, exact(1 << 16))

    def test_non_blocking_to_pageable(self):
        """Pageable memory cannot be waited for: it is there when the call is back."""
        device = exact(1 << 18).to(DEVICE)
        target = torch.empty(1 << 18, dtype=torch.float16)
        target.copy_(device, non_blocking=True)
        assert_same(target, exact(1 << 18))

    def test_non_blocking_to_the_cpu_is_pinned(self):
        """PyTorch pins what to("cpu", non_blocking=True) returns: it is there after a wait."""
        result = exact(1 << 18).to(DEVICE).to("cpu", non_blocking=True)
        assert result.is_pinned()
        torch.spyre.synchronize()
        assert_same(result, exact(1 << 18))

    def test_data_loader_pins(self):
        loader = torch.utils.data.DataLoader(list(range(8)), batch_size=4, pin_memory=True)
        batches = list(loader)
        assert all(batch.is_pinned() for batch in batches)
        assert_same(batches[0].to(DEVICE, non_blocking=True), torch.arange(4))
