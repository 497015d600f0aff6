# SPDX-License-Identifier: MIT
"""Ctrl-C while the card works, and memory that only Python's collector frees."""

from support import python_ok

# A shell's background jobs, and so their children, ignore it.
SIGINT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
"""

# A queue of seconds; the signal comes while the main thread waits for it.
QUEUE = SIGINT + """
import os, threading, time
x = torch.ones(512, 512, device="spyre")
side = torch.spyre.Stream()
torch.spyre.synchronize()
def fill(n=N):
    y = x
    for _ in range(n):
        y = y @ x / 512
    return y
def interrupted(wait):
    end = fill()
    torch.spyre.current_stream().record_event()
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        wait(end)
    except KeyboardInterrupt:
        # The wait is over before the work is.
        assert not torch.spyre.current_stream().query(), "the queue was done"
        return
    raise AssertionError("the wait went on to its end")
"""


def long_queue():
    """As many products as take a second and a half on this machine."""
    out = python_ok("""
import time
x = torch.ones(512, 512, device="spyre")
(x @ x / 512).cpu()
start = time.monotonic()
y = x
for _ in range(10):
    y = y @ x / 512
y.cpu()
print(max(20, int(10 * 1.5 / (time.monotonic() - start))))
""")
    return QUEUE.replace("N)", f"{int(out.split()[-1])})")


def test_ctrl_c_ends_waits_and_the_state_stays():
    python_ok(long_queue() + """
event = torch.spyre.Event()
def by_event(y):
    event.record(); event.synchronize()
for wait in (
    lambda y: torch.spyre.synchronize(),
    lambda y: torch.accelerator.synchronize(),
    lambda y: torch.spyre.current_stream().synchronize(),
    by_event,
    lambda y: y.cpu(),
    lambda y: y[3, 5].item(),
    lambda y: y.copy_(torch.zeros(512, 512)),
    lambda y: torch.spyre.empty_cache(),
):
    interrupted(wait)
    torch.spyre.reset()
# A copy that goes on, and the memory of one that is not waited for, do no harm.
interrupted(lambda y: y.cpu())
torch.spyre.synchronize()
assert (x @ x / 512)[0, 0].item() == 1
print("usable")
""", timeout=300)  # fmt: skip


def test_ctrl_c_ends_the_wait_for_memory():
    """An allocation that the card has no memory for waits for the work whose memory it may take."""
    python_ok(SIGINT + """
import os, threading, time
# Products that take the card longer than the host takes to queue them, for a second or more.
x = torch.ones(1024, 1024, device="spyre")
(x @ x / 512).cpu()
start = time.monotonic()
(x @ x / 512 @ x / 512).cpu()
y = x
for _ in range(min(100, max(20, int(3 / (time.monotonic() - start))))):
    y = y @ x / 512
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    torch.empty(300 << 20, dtype=torch.int8, device="spyre")
except KeyboardInterrupt:
    assert not torch.spyre.current_stream().query(), "the queue was done"
else:
    raise AssertionError("the card has no such memory")
torch.spyre.reset()
# The allocator has let go of its lock, and gives and takes memory.
torch.empty(100 << 20, dtype=torch.int8, device="spyre").fill_(3)
torch.spyre.empty_cache()
assert (x @ x / 512)[0, 0].item() == 2
""", timeout=300, SPYRE_EMBEDDED_LPDDR_MIB=256)  # fmt: skip


CYCLES = """
import gc
gc.disable()
class Cycle:
    def __init__(self, mib):
        self.self, self.tensor = self, torch.empty(mib << 20, dtype=torch.int8, device="spyre")
"""


def test_cycles_are_collected_before_memory_runs_out():
    python_ok(CYCLES + """
for _ in range(12):
    Cycle(48)
assert torch.spyre.memory_stats().get("num_ooms", 0) == 0
held = [Cycle(48) for _ in range(2)]
try:
    torch.empty(240 << 20, dtype=torch.int8, device="spyre")
except torch.OutOfMemoryError as error:
    assert "requested" in str(error), error
    print("refused")
else:
    raise AssertionError("the card has no such memory")
assert torch.spyre.memory_stats()["num_ooms"] == 1
""", SPYRE_EMBEDDED_LPDDR_MIB=256)  # fmt: skip
