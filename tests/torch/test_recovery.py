# SPDX-License-Identifier: MIT
"""Resets: surviving and lost objects, and threads that are unaware of the reset."""

from support import TIME_LIMIT, TOO_LONG, python_ok

#: A thread that works all the time and keeps its exceptions.
WORKERS = """
import threading, time
stop, errors = [], []
def work():
    while not stop:
        try:
            x = torch.ones(256, 256, device='spyre')
            (x @ x).relu().cpu()
        except RuntimeError as error:
            errors.append(str(error))
        except BaseException as error:
            errors.append('unexpected ' + repr(error))
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
def finish():
    stop.append(True)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), 'a thread hangs'
    assert not [e for e in errors if e.startswith('unexpected')], errors
    torch.spyre.reset()
    x = torch.ones(256, 256, device='spyre')
    assert (x + x).cpu().eq(2).all()
"""

#: A product that exceeds TIME_LIMIT.
FAULT = f"""
big = torch.ones({TOO_LONG}, {TOO_LONG}, dtype=torch.float16, device='spyre')
def fault():
    try:
        (big @ big).cpu()
    except torch.AcceleratorError as error:
        return str(error)
    raise SystemExit('no fault')
"""


def test_everything_survives_a_reset_of_the_context():
    """Tensors, kernels, streams, events, generators, pinned memory; statistics too."""
    python_ok(
        "small = torch.arange(64., device='spyre')\n"
        "view = small[3:9]\n"
        "pinned = torch.arange(64.).pin_memory()\n"
        "stream = torch.Stream(device='spyre')\n"
        "event = torch.Event(device='spyre', enable_timing=True)\n"
        "event.record(stream)\n"
        "stream.synchronize()\n"
        "(small + small).cpu()\n"
        "torch.spyre.manual_seed(5)\n"
        "state = torch.spyre.get_rng_state()\n"
        "drawn = torch.rand(4, device='spyre').cpu()\n"
        "torch.spyre.set_rng_state(state)\n"
        "kernels = torch_spyre._C.program_cache_stats()['kernels']\n"
        + FAULT
        + "allocated = torch.spyre.memory_allocated()\n"
        "text = fault()\n"
        "assert 'matmul' in text or 'mm' in text, text\n"
        "torch.spyre.reset()\n"
        "assert torch_spyre._C.program_cache_stats()['kernels'] >= kernels\n"
        "misses = torch_spyre._C.program_cache_stats()['misses']\n"
        "assert (small + small).cpu().eq(torch.arange(64.) * 2).all()\n"
        "assert torch_spyre._C.program_cache_stats()['misses'] == misses\n"
        "assert view.cpu().tolist() == [3, 4, 5, 6, 7, 8]\n"
        "assert pinned.is_pinned() and pinned.to('spyre', non_blocking=True).cpu().equal(pinned)\n"
        "with stream:\n"
        "    late = small * 3\n"
        "    event.record()\n"
        "event.synchronize()\n"
        "assert event.query() and late.cpu()[5] == 15\n"
        "assert torch.rand(4, device='spyre').cpu().equal(drawn)\n"
        "del late\n"
        "assert torch.spyre.memory_allocated() == allocated\n",
        **TIME_LIMIT,
    )


def test_models_go_on_after_a_fault():
    """A model that faults in its middle; the next one, and the same one with less."""
    python_ok(
        "model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(),\n"
        "                            torch.nn.Linear(64, 8)).half().to('spyre')\n"
        "x = torch.ones(4, 64, dtype=torch.float16, device='spyre')\n"
        "with torch.no_grad():\n"
        "    expected = model(x).cpu()\n" + FAULT + "    text = fault()\n"
        "    try:\n"
        "        model(x).cpu()\n"
        "        raise SystemExit('a faulted context takes work')\n"
        "    except torch.AcceleratorError as error:\n"
        "        assert 'reset' in str(error), error\n"
        "    torch.spyre.reset()\n"
        "    assert model(x).cpu().equal(expected)\n"
        "    fault()\n"
        "    torch.spyre.reset()\n"
        "    assert model(x).cpu().equal(expected)\n",
        **TIME_LIMIT,
    )


def test_a_compiled_model_survives_a_reset_of_the_card(tmp_path):
    """Its kernels were the old context's; they are loaded again."""
    python_ok(
        "f = torch.compile(lambda a: (a * 2 + 1).relu().softmax(-1))\n"
        "x = torch.randn(64, 64).half()\n"
        "expected = f(x.to('spyre')).cpu()\n"
        "for _ in range(3):\n"
        "    torch.spyre.reset(hard=True)\n"
        "    assert f(x.to('spyre')).cpu().equal(expected)\n",
        TORCHINDUCTOR_CACHE_DIR=tmp_path,
    )


def test_memory_does_not_leak_by_resets():
    python_ok(
        "x = torch.ones(1 << 20, device='spyre')\n"
        "for hard in (False, True) * 4:\n"
        "    torch.spyre.reset(hard=hard)\n"
        "    x = torch.ones(1 << 20, device='spyre')\n"
        "assert torch.spyre.memory_allocated() == 1 << 22\n"
        "del x\n"
        "torch.spyre.empty_cache()\n"
        "free, total = torch.spyre.mem_get_info()\n"
        "assert total - free < 8 << 20, (free, total)\n"
    )


def test_reset_under_other_threads():
    python_ok(
        WORKERS + "for _ in range(20):\n"
        "    torch.spyre.reset()\n"
        "    time.sleep(0.02)\n"
        "finish()\n"
    )


def test_reset_of_the_card_under_other_threads():
    """They get exceptions, never memory of a context that is gone."""
    python_ok(
        WORKERS + "for _ in range(20):\n"
        "    torch.spyre.reset(hard=True)\n"
        "    time.sleep(0.02)\n"
        "finish()\n"
        "free, total = torch.spyre.mem_get_info()\n"
        "assert total - free < 64 << 20, (free, total)\n"
    )


def test_free_runtime_under_other_threads():
    python_ok(
        WORKERS + "for _ in range(20):\n"
        "    torch_spyre._C.free_runtime()\n"
        "    time.sleep(0.02)\n"
        "finish()\n"
    )


def test_a_card_is_reset_and_the_other_works_on():
    python_ok(
        "other = torch.ones(64, 64, device='spyre:1')\n"
        "event = torch.Event(device='spyre:0')\n"
        "x = torch.ones(64, 64, device='spyre:0')\n"
        "event.record(torch.spyre.current_stream(0))\n"
        "torch.spyre.current_stream(1).wait_event(event)\n"
        "torch.spyre.reset(0, hard=True)\n"
        "assert (other + other).cpu().eq(2).all()\n"
        "try:\n"
        "    x.cpu()\n"
        "    raise SystemExit('lost memory is read')\n"
        "except RuntimeError as error:\n"
        "    assert 'lost' in str(error), error\n",
        SPYRE_EMBEDDED_CARDS=2,
    )


def test_a_thread_resets_what_another_waits_for():
    """A wait that a reset of another thread ends raises; it does not hang."""
    python_ok(
        "import threading, time\n"
        "x = torch.ones(4096, 4096, dtype=torch.float16, device='spyre')\n"
        "torch.spyre.synchronize()\n"
        "seen = []\n"
        "def wait():\n"
        "    try:\n"
        "        for _ in range(4):\n"
        "            y = x @ x\n"
        "        y.cpu()\n"
        "        seen.append('finished')\n"
        "    except torch.AcceleratorError as error:\n"
        "        seen.append(str(error))\n"
        "thread = threading.Thread(target=wait)\n"
        "thread.start()\n"
        "time.sleep(0.5)\n"
        "torch.spyre.reset()\n"
        # A reset that comes before the products are queued leaves all of them to compute.
        "thread.join(280)\n"
        "assert seen and (seen == ['finished'] or 'CANCELLED' in seen[0]), seen\n"
        "torch.spyre.reset()\n"
        "assert x[:4, :4].cpu().eq(1).all()\n",
        timeout=300,
        SPYRE_TIMEOUT_MS=60000,
    )
