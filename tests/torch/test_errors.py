# SPDX-License-Identifier: MIT
"""Bad input and faults raise a Python exception with a remedy and never abort."""

import pytest
import torch
import torch_spyre
from support import (
    DEVICE,
    TIME_LIMIT,
    TOO_LONG,
    assert_same,
    exact,
    process_error,
    python_ok,
)


class TestBadInput:
    def test_mixed_devices(self):
        x, y = torch.ones(3, device=DEVICE), torch.ones(3)
        for use in (
            lambda: x + y,
            lambda: torch.mm(x.view(1, 3), y.view(3, 1)),
            lambda: torch.cat([x, y]),
            lambda: torch.where(x > 0, x, y),
            lambda: torch.nn.functional.linear(x, y.view(1, 3)),
        ):
            with pytest.raises(RuntimeError, match="(?s)(spyre.*cpu|cpu.*spyre)"):
                use()

    def test_mixed_cards(self):
        x, y = torch.ones(3, device="spyre:0"), torch.ones(3, device="spyre:1")
        with pytest.raises(RuntimeError, match="(?s)spyre:0.*spyre:1|spyre:1.*spyre:0"):
            x + y
        with pytest.raises(RuntimeError, match="(?s)spyre:0.*spyre:1|spyre:1.*spyre:0"):
            x.view(1, 3) @ y.view(3, 1)

    def test_numbers_of_the_host_are_no_mixture(self):
        x = torch.ones(3, device=DEVICE)
        assert_same(x + torch.tensor(2.0), torch.full((3,), 3.0))
        assert_same(torch.tensor(2.0) * x, torch.full((3,), 2.0))

    @pytest.mark.parametrize(
        "use",
        [
            lambda x: x(3, 4) + x(5, 4),
            lambda x: x(3, 4) @ x(3, 4),
            lambda x: torch.bmm(x(2, 3, 4), x(3, 4, 5)),
            lambda x: torch.addmm(x(7), x(3, 4), x(4, 5)),
            lambda x: torch.cat([x(3, 4), x(3, 5)]),
            lambda x: torch.nn.functional.layer_norm(x(3, 4), (5,)),
            lambda x: x(3, 4).view(5),
            lambda x: x(3, 4).expand(5, 4),
            lambda x: x(3, 4).sum(dim=2),
            lambda x: x(3, 4)[7],
            lambda x: x(3, 4).narrow(0, 2, 5),
        ],
    )
    def test_shape_mismatch(self, use):
        """The same exception as on the CPU, before anything runs."""
        with pytest.raises((RuntimeError, IndexError)) as cpu:
            use(lambda *size: torch.ones(size))
        with pytest.raises(type(cpu.value)):
            use(lambda *size: torch.ones(size, device=DEVICE))
        assert torch.ones(2, device=DEVICE).sum().item() == 2

    @pytest.mark.parametrize(
        "use",
        [
            lambda x, i: x @ i,
            lambda x, i: torch.nn.functional.linear(x, i),
            lambda x, i: x.add_(i.to(torch.float32)) if x.dtype == torch.float16 else i.add_(x),
            lambda x, i: i.sqrt_(),
            lambda x, i: torch.nn.functional.embedding(x, x),
        ],
    )
    def test_wrong_dtypes(self, use):
        """Dtypes that torch refuses on the CPU are refused on the card."""

        def outcome(device):
            x = torch.ones(4, 4, device=device)
            i = torch.ones(4, 4, dtype=torch.int32, device=device)
            try:
                return use(x, i).dtype
            except RuntimeError:
                return "RuntimeError"

        assert outcome(DEVICE) == outcome("cpu")

    def test_dtype_mismatch_of_matmul_names_both(self):
        x = torch.ones(4, 4, device=DEVICE)
        with pytest.raises(RuntimeError, match="(?i)dtype|half|float"):
            x @ x.half()

    def test_operation_that_is_not_there(self):
        """Neither on the card nor on the CPU: the dispatcher's own error."""
        library = torch.library.Library("spyre_test", "DEF")
        library.define("nothing(Tensor x) -> Tensor")
        with pytest.raises(NotImplementedError, match="spyre_test::nothing"):
            torch.ops.spyre_test.nothing(torch.ones(3, device=DEVICE))

    def test_rank_too_high(self):
        """libspyre has 7 dimensions; an 8th is right or a clear error."""
        host = exact(*[2] * 8)
        try:
            assert_same(host.to(DEVICE), host)
        except RuntimeError as error:
            assert "7" in str(error)

    @pytest.mark.parametrize("index", [2, 63, 64, 127, 200, 300, 1_000_000, -3])
    @pytest.mark.parametrize(
        "use",
        [
            torch.spyre.set_device,
            torch.spyre.synchronize,
            torch.spyre.reset,
            torch.spyre.get_device_properties,
            torch.spyre.mem_get_info,
            torch.spyre.memory_stats,
            torch.spyre.get_rng_state,
            torch.spyre.current_stream,
            torch.accelerator.set_device_index,
            torch_spyre._C.get_device_state,
            torch_spyre._C._spyre_get_allocator_stats,
            lambda index: torch.spyre.default_generators[index],
            lambda index: torch.ones(2, device=f"spyre:{index}"),
            lambda index: torch.ones(2).to(torch.device("spyre", index)),
            lambda index: torch.Stream(device=f"spyre:{index}"),
            lambda index: torch.Generator(device=f"spyre:{index}"),
        ],
    )
    def test_a_card_that_is_not_there(self, use, index):
        """A wrong number never selects another card; torch.accelerator ignores -1 and below."""
        if index < 0 and use is torch.accelerator.set_device_index:
            assert use(index) is None
            return
        with pytest.raises((RuntimeError, TypeError, ValueError, OverflowError, AssertionError)):
            use(index)
        assert torch.spyre.current_device() == 0

    @pytest.mark.parametrize(
        "use",
        [
            lambda L, x: L([-1], torch.float16),
            lambda L, x: L([1 << 40, 1 << 40], torch.float16),
            lambda L, x: L([4] * 50, torch.float16),
            lambda L, x: L([4], torch.float64),
            lambda L, x: L([1, 2], [1], torch_spyre.DataFormats.SEN169_FP16),
            lambda L, x: L([128], [1], torch_spyre.DataFormats.SEN169_FP16),
            lambda L, x: torch_spyre._C.set_spyre_tensor_layout(x, L([400, 4], torch.float32)),
            lambda L, x: torch_spyre._C.as_strided_with_layout(
                x, [900], [1], 0, L([900], torch.float32)
            ),
            lambda L, x: torch_spyre._C.reinterpret_tensor(x, [900], [1], 0),
            lambda L, x: torch_spyre._C.get_spyre_tensor_layout(x.cpu()),
            lambda L, x: torch_spyre._C.launch_kernel("/nonexistent", [x]),
            lambda L, x: torch_spyre._C.launch_kernel("/nonexistent", []),
            lambda L, x: torch_spyre._C.prepare_kernel("/nonexistent"),
            lambda L, x: torch_spyre._C._elapsed_time(0, 0),
            lambda L, x: x.cpu().to("cpu", device_layout=L([4, 4], torch.float32)),
            lambda L, x: x.to(device_layout=3),
        ],
    )
    def test_layouts_that_do_not_fit(self, use):
        x = exact(4, 4, dtype=torch.float32).to(DEVICE)
        with pytest.raises((RuntimeError, ValueError, TypeError)):
            use(torch_spyre.SpyreTensorLayout, x)
        assert_same(x, exact(4, 4, dtype=torch.float32))

    def test_configuration(self):
        for name, value in [("SPYRE_EMBEDDED_LPDDR_MIB", "much"), ("SPYRE_TIMEOUT_MS", "soon")]:
            error = process_error("torch.ones(3, device='spyre')", **{name: value})
            assert name in error and value in error

    def test_forced_driver_that_is_not_there(self):
        import os

        if os.path.exists("/dev/accel/accel0"):
            pytest.skip("this machine has an accel node")
        error = process_error("torch.ones(3, device='spyre')", SPYRE_BACKEND="drm")
        assert "Error" in error and "spyre" in error.lower()

    def test_span_limit(self):
        """More than 256 MiB for one core: right numbers, or an error that says so; issue 9.1."""
        python_ok(
            "x = torch.ones(150 << 20, dtype=torch.float16, device='spyre')\n"
            "try:\n"
            "    y = x + x\n"
            "    assert y[-1].item() == 2 and y[77 << 20].item() == 2\n"
            "except RuntimeError as error:\n"
            "    assert '268435456' in str(error) or '256 MiB' in str(error), error\n"
            "assert (x[:3] * 3).cpu().sum() == 9\n",
            SENCORES=1,
            SPYRE_EMBEDDED_LPDDR_MIB=2048,
        )


#: Takes the card's memory to the last granule.
FILL = """
keep = []
for size in (1 << 20, 1 << 16, 1 << 12, 128):
    try:
        while True:
            keep.append(torch.empty(size, device='spyre', dtype=torch.int8))
    except torch.OutOfMemoryError as error:
        text = str(error)
"""


class TestOutOfMemory:
    def test_no_memory_for_a_result_or_a_program(self):
        """Each operation raises; after memory was freed, each computes."""
        python_ok(
            "x = torch.ones(64, 1 << 10, dtype=torch.float16).to('spyre')\n"
            "uses = [lambda: x + x, lambda: x @ x.t(), lambda: x.softmax(-1), lambda: x.float(),\n"
            "        lambda: torch.nn.functional.layer_norm(x, (1 << 10,)), lambda: x.t() * 3,\n"
            "        lambda: torch.cat([x, x]), lambda: x.sum(), lambda: x[1:, 3:].contiguous()]\n"
            + FILL
            + "for word in ('requested', 'free', 'largest free block'):\n"
            "    assert word in text, text\n"
            "for use in uses:\n"
            "    try:\n"
            "        use()\n"
            "        raise SystemExit('the operation found memory')\n"
            "    except torch.OutOfMemoryError as error:\n"
            "        assert 'largest free block' in str(error), error\n"
            "try:\n"
            "    x.fill_(1)\n"
            "except torch.OutOfMemoryError as error:  # for its program\n"
            "    assert 'largest free block' in str(error), error\n"
            "assert x.cpu().eq(1).all()\n"
            "del keep\n"
            "for use in uses:\n"
            "    use().cpu()\n",
            SPYRE_EMBEDDED_LPDDR_MIB=64,
        )

    def test_a_pool_that_does_not_fit(self):
        """Memory for a compiled group's intermediates may be missing, too."""
        python_ok(
            FILL + "keep = keep[1:]\n"
            "x = torch.ones(256, 256, dtype=torch.float16).to('spyre')\n"
            "f = torch.compile(lambda a: ((a @ a) @ a).softmax(-1) @ a)\n"
            "try:\n"
            "    f(x).cpu()\n"
            "except torch.OutOfMemoryError:\n"
            "    pass\n"
            "del keep\n"
            "torch.spyre.empty_cache()\n"
            "assert f(x).cpu().shape == (256, 256)\n",
            SPYRE_EMBEDDED_LPDDR_MIB=64,
        )


#: A model whose matrix product exceeds the time limit, and later calls.
FAULT = f"""
import torch_spyre
x = torch.ones({TOO_LONG}, {TOO_LONG}, dtype=torch.float16).to('spyre')
small = torch.ones(64, 64, dtype=torch.float16, device='spyre')
small.cpu()
try:
    small = small + 0
    z = x @ x
    w = z.relu() + 1
    w.cpu()
    raise SystemExit('no fault')
except RuntimeError as error:
    text = str(error)
"""


class TestFaults:
    """A fault on the embedded card, provoked by a time limit that a product cannot keep."""

    def test_names_the_operation(self):
        printed = python_ok(FAULT + "print(text)", **TIME_LIMIT)
        assert "time limit" in printed or "TIMEOUT" in printed
        assert "mm" in printed or "matmul" in printed, printed
        assert "reset" in printed, printed

    def test_later_call_names_the_first_failure(self):
        """An allocation that comes once the product has failed is only cancelled."""
        printed = python_ok(
            "import time\n"
            "import torch_spyre\n"
            f"x = torch.ones({TOO_LONG}, {TOO_LONG}, dtype=torch.float16).to('spyre')\n"
            "z = x @ x\n"
            "while not torch_spyre._C.has_stream_error():\n"
            "    time.sleep(0.01)\n"
            "try:\n"
            "    torch.ones(1 << 20, dtype=torch.float16, device='spyre')\n"
            "except RuntimeError as error:\n"
            "    print(error)\n",
            **TIME_LIMIT,
        )
        assert "CANCELLED" in printed and "TIMEOUT" in printed, printed
        assert "mm" in printed or "matmul" in printed, printed

    def test_state_and_reset(self):
        """After a reset the same process goes on, with the memory that it had."""
        python_ok(
            FAULT + "assert torch_spyre._C.has_stream_error()\n"
            "try:\n"
            "    small + small\n"
            "    torch.spyre.synchronize()\n"
            "    raise SystemExit('a faulted context takes work')\n"
            "except RuntimeError as error:\n"
            "    assert 'reset' in str(error), error\n"
            "torch.spyre.reset()\n"
            "assert not torch_spyre._C.has_stream_error()\n"
            "assert small.cpu().eq(1).all()\n"
            "assert (small @ small).cpu().eq(64).all()\n"
            "fresh = torch.nn.Linear(64, 8).half().to('spyre')\n"
            "fresh(small).cpu()\n",
            **TIME_LIMIT,
        )

    def test_other_card_goes_on(self):
        python_ok(
            "other = torch.ones(8, 64, dtype=torch.float16, device='spyre:1')\n"
            + FAULT
            + "assert (other + other).cpu().eq(2).all()\n",
            **TIME_LIMIT,
        )

    def test_process_ends_cleanly_after_a_fault(self):
        python_ok(FAULT, **TIME_LIMIT)

    def test_reset_in_good_health(self):
        python_ok(
            "x = torch.ones(64, 64, device='spyre')\n"
            "y = x + x\n"
            "torch.spyre.synchronize()\n"
            "torch.spyre.reset()\n"
            "assert y.cpu().eq(2).all() and (y + y).cpu().eq(4).all()\n"
        )

    def test_exit_with_work_in_flight(self):
        python_ok("x = torch.ones(1024, 1024, device='spyre')\nfor _ in range(5): y = x @ x\n")

    def test_exit_by_exception_with_live_tensors(self):
        error = process_error("x = torch.ones(1024, device='spyre')\nraise KeyError('mine')\n")
        assert error.rstrip().endswith("KeyError: 'mine'")

    @pytest.mark.parametrize(
        "code",
        [
            "import sys\nx = torch.ones(2048, 2048, device='spyre')\ny = x @ x\nsys.exit(0)\n",
            "import atexit\nx = torch.ones(3, device='spyre')\n"
            "atexit.register(lambda: print((x + x).sum().item()))\n",
            "import builtins\n"
            "class Late:\n"
            "    def __del__(self):\n"
            "        self.tensor.add_(1).cpu()\n"
            "builtins.late = late = Late()\n"
            "late.tensor = torch.ones(3, device='spyre')\n",
            "import builtins\n"
            "builtins.kept = [torch.Stream(device='spyre'), torch.Event(device='spyre'),\n"
            "                 torch.ones(9, device='spyre'), torch.ones(9).pin_memory()]\n"
            "builtins.kept[1].record(builtins.kept[0])\n",
            "import threading\n"
            "def work():\n"
            "    import torch\n"
            "    assert torch.ones(3, device='spyre').sum().item() == 3\n"
            "thread = threading.Thread(target=work)\n"
            "thread.start()\n"
            "thread.join()\n",
            "import os, signal, threading\n"
            "x = torch.ones(2048, 2048, device='spyre')\n"
            "torch.spyre.synchronize()\n"
            "threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
            "try:\n"
            "    while True:\n"
            "        (x @ x).cpu()\n"
            "except KeyboardInterrupt:\n"
            "    pass\n"
            "assert x[0, 0].item() == 1\n",
        ],
        ids=["sys.exit", "atexit", "__del__", "globals", "thread", "ctrl-c"],
    )
    def test_ends(self, code):
        python_ok(code)

    def test_no_prints(self):
        printed = python_ok(
            "x = torch.ones(64, 64, device='spyre')\nx @ x\nx.cpu()\ntorch.spyre.synchronize()\n"
        )
        assert printed == ""
