# SPDX-License-Identifier: MIT
"""Devices: counting, choosing, contexts, threads, other processes."""

import multiprocessing
import threading

import pytest
import torch
from support import DEVICE, exact, process_error, python_ok


def count():
    return torch.accelerator.device_count()


class TestDevice:
    def test_device_count(self):
        assert count() == torch.spyre.device_count() == 2

    def test_device_switch(self):
        for index in (1, 0):
            torch.accelerator.set_device_index(index)
            assert torch.accelerator.current_device_index() == index
            assert torch.spyre.current_device() == index

    def test_device_context(self):
        with torch.accelerator.device_index(None):
            assert torch.accelerator.current_device_index() == 0
        with torch.accelerator.device_index(1):
            assert torch.accelerator.current_device_index() == 1
        assert torch.accelerator.current_device_index() == 0

    def test_device_guard(self):
        with torch.spyre.device(1):
            assert torch.spyre.current_device() == 1
            assert torch.empty(3, device=DEVICE).device.index == 1
        assert torch.spyre.current_device() == 0

    @pytest.mark.parametrize("index", [2, 99])
    def test_invalid_device_index(self, index):
        with pytest.raises(RuntimeError, match=f"{index}.*2|2.*{index}"):
            torch.accelerator.set_device_index(index)
        assert torch.spyre.current_device() == 0

    def test_negative_device_index(self):
        """torch.accelerator documents that it changes nothing; torch.spyre names a card."""
        torch.accelerator.set_device_index(-2)
        with pytest.raises(RuntimeError, match="-1 is out of range"):
            torch.spyre.set_device(-1)
        assert torch.spyre.current_device() == 0
        with pytest.raises(RuntimeError, match="-2"):
            torch.device(f"spyre:{-2}")

    def test_tensor_on_a_card_that_is_not_there(self):
        with pytest.raises(RuntimeError, match="7"):
            torch.empty(3, device="spyre:7")

    def test_device_capability(self):
        dtypes = torch.accelerator.get_device_capability("spyre:0")["supported_dtypes"]
        assert {torch.float16, torch.float32, torch.bfloat16, torch.bool, torch.int8} <= dtypes
        assert not {torch.float64, torch.complex64, torch.complex128} & dtypes
        assert dtypes == torch.accelerator.get_device_capability("spyre:1")["supported_dtypes"]

    def test_tensor_device(self):
        assert torch.empty(2, 3, device=DEVICE).device == torch.device("spyre", 0)
        assert torch.empty(2, 3, device="spyre:1").device == torch.device("spyre", 1)

    def test_device_switch_persistence(self):
        torch.spyre.set_device(1)
        assert torch.empty(2, device=DEVICE).device.index == 1
        assert torch.zeros(2, device=DEVICE).device.index == 1

    def test_device_count_consistency(self):
        for index in range(count()):
            torch.accelerator.set_device_index(index)
            assert torch.accelerator.current_device_index() == index

    def test_device_properties(self):
        properties = torch.spyre.get_device_properties(0)
        assert properties["type"] == "dd2" and properties["index"] == 0
        assert properties["multi_processor_count"] == 32
        assert torch.spyre.get_device_properties(1)["index"] == 1
        free, total = torch.spyre.mem_get_info()
        assert 0 < free <= total

    def test_current_device_after_operations(self):
        torch.spyre.set_device(1)
        x = exact(5, 5).to(DEVICE)
        assert (x + x).device.index == 1
        assert (x @ x).sum().device.index == 1
        assert torch.spyre.current_device() == 1

    def test_an_operation_on_another_card(self):
        """The card is the operands' one, not the current one."""
        x = exact(8, 64).to("spyre:1")
        assert (x * x).device.index == 1
        assert torch.spyre.current_device() == 0

    def test_device_context_restoration(self):
        with pytest.raises(ValueError):
            with torch.accelerator.device_index(1):
                torch.empty(2, device=DEVICE)
                raise ValueError
        assert torch.accelerator.current_device_index() == 0
        with pytest.raises(RuntimeError):
            with torch.accelerator.device_index(1), torch.accelerator.device_index(0):
                raise RuntimeError
        assert torch.accelerator.current_device_index() == 0

    def test_concurrent_device_operations(self):
        errors = []
        barrier = threading.Barrier(4)
        a, b = exact(10, 10, seed=1), exact(10, 10, seed=2)
        expected = [((a.to(f"spyre:{i}") @ b.to(f"spyre:{i}"))).cpu() for i in range(2)]

        def work(thread):
            try:
                barrier.wait()
                for _ in range(25):
                    torch.accelerator.set_device_index(thread % 2)
                    product = a.to(DEVICE) @ b.to(DEVICE)
                    assert product.device.index == thread % 2
                    assert torch.equal(product.cpu(), expected[thread % 2])
                    assert torch.accelerator.current_device_index() == thread % 2
            except Exception as error:  # noqa: BLE001
                errors.append(f"thread {thread}: {error!r}")

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert torch.spyre.current_device() == 0

    def test_device_initialization_state(self):
        torch.spyre.init()
        assert torch.spyre.is_initialized()
        assert count() > 0

    def test_device_state_after_errors(self):
        with pytest.raises(RuntimeError, match="5"):
            torch.matmul(exact(5, 5).to(DEVICE), exact(3, 3).to(DEVICE))
        assert torch.accelerator.current_device_index() == 0
        z = exact(5, 5).to(DEVICE)
        torch.matmul(z, z)


class TestProcesses:
    def test_import_opens_no_device(self):
        python_ok(
            "import os\n"
            "assert torch.spyre.is_available() and torch.spyre.device_count() == 2\n"
            "assert torch.accelerator.current_accelerator().type == 'spyre'\n"
            "assert torch.accelerator.device_count() == 2\n"
            "assert not torch.spyre.is_initialized()\n"
            "assert len(os.listdir('/proc/self/task')) <= 1 + torch.get_num_threads()\n"
        )

    def test_no_card_is_no_error(self):
        python_ok(
            "assert torch.spyre.device_count() == 0 and not torch.spyre.is_available()\n"
            "assert not torch.accelerator.is_available()\n",
            SPYRE_EMBEDDED_CARDS=0,
        )

    def test_plugin_imported_before_torch(self):
        """torch loads its plugins while this one is still being imported."""
        import subprocess
        import sys

        code = "import torch_spyre, torch; assert torch.ones(2, device='spyre').sum() == 2"
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_autoload_can_be_switched_off(self):
        import subprocess
        import sys

        code = "import torch; assert not hasattr(torch, 'spyre'); torch.ones(3)"
        import os

        environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)

    @pytest.mark.parametrize(
        "variables, visible",
        [
            ({}, 4),
            ({"AIU_WORLD_SIZE": 2}, 2),
            ({"AIU_WORLD_SIZE": 9}, 4),
            ({"SPYRE_DEVICES": "0"}, 1),
            ({"SPYRE_DEVICES": "0,1"}, 2),
            ({"SPYRE_DEVICES": "0,1,1"}, 2),
            ({"SPYRE_DEVICES": "1,0"}, 2),
            ({"SPYRE_DEVICES": "0, 5"}, 1),
            ({"SPYRE_DEVICES": "0", "AIU_WORLD_SIZE": 2}, 1),
            ({"SPYRE_DEVICES": "0,1", "AIU_WORLD_SIZE": 2}, 2),
        ],
        ids=lambda value: str(value),
    )
    def test_device_enum(self, variables, visible):
        """Upstream's rules of SPYRE_DEVICES and AIU_WORLD_SIZE."""
        printed = python_ok(
            "print(torch.spyre.device_count(), torch.spyre.is_initialized())",
            SPYRE_EMBEDDED_CARDS=4,
            **variables,
        )
        assert printed.split() == [str(visible), "False"]

    def test_device_poison_fork(self):
        """Once a card is open, a forked child gets an exception that names the remedy."""
        error = process_error(
            "import os, sys, traceback\n"
            "x = torch.ones(3, device='spyre')\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    try:\n"
            "        torch.ones(3, device='spyre')\n"
            "    except RuntimeError:\n"
            "        traceback.print_exc()\n"
            "        sys.stderr.flush()\n"
            "        os._exit(1)\n"
            "    os._exit(0)\n"
            "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        )
        assert "fork" in error and "spawn" in error

    @pytest.mark.parametrize(
        "use",
        [
            "x.cpu()",
            "x + x",
            "x.fill_(1)",
            "x.to('spyre', copy=True)",
            "torch.spyre.synchronize()",
            "torch.Stream(device='spyre').synchronize()",
        ],
    )
    def test_use_after_fork(self, use):
        """Also of what the parent made; the parent goes on."""
        python_ok(
            "import os, sys\n"
            "x = torch.ones(64, device='spyre', dtype=torch.float16)\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    try:\n"
            f"        {use}\n"
            "    except RuntimeError as error:\n"
            "        os._exit(0 if 'fork' in str(error) else 3)\n"
            "    os._exit(4)\n"
            "status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
            "assert status == 0, status\n"
            "assert (x + x).cpu().eq(2).all()\n"
        )

    def test_fork_before_first_use(self):
        """Counting does not poison a child."""
        python_ok(
            "import os\n"
            "assert torch.spyre.is_available() and torch.accelerator.device_count()\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    os._exit(0 if torch.ones(3, device='spyre').cpu().sum() == 3 else 3)\n"
            "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0\n"
            "assert torch.ones(3, device='spyre').cpu().sum() == 3\n"
        )

    def test_child_that_does_not_use_the_card_ends_cleanly(self):
        python_ok(
            "import os, sys\n"
            "x = torch.ones(1000, device='spyre')\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    del x\n"
            "    sys.exit(0)\n"
            "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0\n"
            "assert x.cpu().sum() == 1000\n"
        )

    def test_device_multiprocessing_spawn(self):
        context = multiprocessing.get_context("spawn")
        results = context.Queue()
        child = context.Process(target=product_on, args=(0, results))
        child.start()
        status, value = results.get(timeout=120)
        child.join()
        assert (status, value) == ("success", 640.0) and child.exitcode == 0


def product_on(index, results):
    try:
        torch.accelerator.set_device_index(index)
        x = torch.ones(8, 10, device=DEVICE)
        results.put(("success", (x @ x.t()).sum().item()))
    except Exception as error:  # noqa: BLE001
        results.put(("error", repr(error)))
