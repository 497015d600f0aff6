# SPDX-License-Identifier: MIT
"""Bad input and faults: a Python exception that says what to do, never an abort."""

import pytest
import torch
from support import DEVICE, assert_same, exact, process_error, python_ok


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
        """Noticed before anything runs, by the same exception as on the CPU."""
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
        """What torch refuses on the CPU it refuses on the card."""

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


#: Enough for everything but the product, which takes some seconds, on a busy machine too.
TIMEOUT_MS = 500

#: A model whose matrix product takes longer than the time limit, and what comes after.
FAULT = """
import torch_spyre
x = torch.ones(4096, 4096, dtype=torch.float16).to('spyre')
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
        printed = python_ok(FAULT + "print(text)", SPYRE_TIMEOUT_MS=TIMEOUT_MS)
        assert "time limit" in printed or "TIMEOUT" in printed
        assert "mm" in printed or "matmul" in printed, printed
        assert "reset" in printed, printed

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
            SPYRE_TIMEOUT_MS=TIMEOUT_MS,
        )

    def test_other_card_goes_on(self):
        python_ok(
            "other = torch.ones(8, 64, dtype=torch.float16, device='spyre:1')\n"
            + FAULT
            + "assert (other + other).cpu().eq(2).all()\n",
            SPYRE_TIMEOUT_MS=TIMEOUT_MS,
        )

    def test_process_ends_cleanly_after_a_fault(self):
        python_ok(FAULT, SPYRE_TIMEOUT_MS=TIMEOUT_MS)

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

    def test_no_prints(self):
        printed = python_ok(
            "x = torch.ones(64, 64, device='spyre')\nx @ x\nx.cpu()\ntorch.spyre.synchronize()\n"
        )
        assert printed == ""
