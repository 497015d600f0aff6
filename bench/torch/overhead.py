# SPDX-License-Identifier: MIT
"""torch.add, mm and copy_ on spyre tensors beside the same calls of libspyre."""

import ctypes
import functools
import time

import torch

SIZES = [1 << shift for shift in (10, 12, 14, 16, 18, 20, 22, 24)]
#: Seconds that a sample should take.
SAMPLE = 0.05


def load(path):
    library = ctypes.CDLL(path)
    library.peer_open.restype = ctypes.c_void_p
    library.peer_open.argtypes = [ctypes.c_char_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
    library.peer_run.restype = ctypes.c_double
    library.peer_run.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.peer_close.argtypes = [ctypes.c_void_p]
    return library


def shape(size):
    """Rows of 64 to 1024 elements, so many bytes in fp16."""
    columns = min(1024, max(64, size // 2 // 8))
    return size // 2 // columns, columns


def torch_timer(work):
    def run(count):
        start = time.perf_counter()
        for _ in range(count):
            work()
        torch.spyre.synchronize()
        return time.perf_counter() - start

    return run


def interleave(ours, peer, samples):
    """Seconds of one operation each, measured alternately."""
    for warm in (ours, peer):
        warm(3)
    count = 10
    while ours(count) < SAMPLE / 4 and count < 1 << 16:
        count *= 2
    pairs = [(ours(count) / count, peer(count) / count) for _ in range(samples)]
    return [list(side) for side in zip(*pairs)]


def operations(size):
    """name, operation of the peer, its sizes, what torch does, the host's memory of both."""
    rows, columns = shape(size)
    host = torch.ones(rows, columns, dtype=torch.float16)
    x, y, z = (host.to("spyre") for _ in range(3))
    pinned = host.pin_memory()
    sizes = (rows, columns, columns)
    yield "add", "add", sizes, lambda: torch.add(x, y), None
    yield "add out=", "add", sizes, lambda: torch.add(x, y, out=z), None
    yield "copy_ to the card", "h2d", sizes, lambda: x.copy_(host), host.data_ptr()
    copy_pinned = functools.partial(x.copy_, pinned, non_blocking=True)
    yield "copy_ to the card, pinned", "async", sizes, copy_pinned, None
    yield "copy_ from the card", "d2h", sizes, lambda: host.copy_(x), host.data_ptr()
    yield "copy_ on the card", "d2d", sizes, lambda: x.copy_(y), None
    yield "x[1].cpu()", "row", sizes, lambda: x[1].cpu(), None
    if size == SIZES[0]:
        one = x[:1, :1].contiguous()
        yield "item()", "d2h", (1, 1, 1), one.item, None
        yield "x[1, 2].item()", "d2h", (1, 1, 1), lambda: x[1, 2].item(), None
    if size <= 1 << 22:
        w = torch.ones(columns, columns, dtype=torch.float16).to("spyre")
        yield "mm", "mm", sizes, lambda: torch.mm(x, w), None


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def add_replay(report, samples, adds=1000, size=SIZES[0]):
    """Additions in a graph beside the same ones as eager operations."""
    x, y, z = (torch.ones(shape(size), dtype=torch.float16).to("spyre") for _ in range(3))

    def work():
        for _ in range(adds):
            torch.add(x, y, out=z)

    work()
    graph = torch.accelerator.Graph()
    with torch.Stream(device="spyre"), graph:
        work()
    times = interleave(torch_timer(graph.replay), torch_timer(work), samples)
    ours, eager = [[t / adds * 1e6 for t in side] for side in times]
    name = f"add out= in a graph of {adds}, {size_text(size)}"
    report.add(name, "us", ours, eager, "the same, eager")


def run(report, library, samples, sizes=SIZES):
    peers = load(library)
    for size in sizes:
        for name, op, sizes, work, memory in operations(size):
            peer = peers.peer_open(op.encode(), *sizes, memory)
            if not peer:
                raise RuntimeError(f"the peer of {name} could not be made")
            ours, theirs = interleave(torch_timer(work), lambda n: peers.peer_run(peer, n), samples)
            peers.peer_close(peer)
            aimed = name.startswith(("add", "copy_", "mm"))
            added = sorted(a - b for a, b in zip(ours, theirs))[samples // 2] * 1e6
            report.add(
                f"{name} {size_text(size)}",
                "us",
                [t * 1e6 for t in ours],
                [t * 1e6 for t in theirs],
                "libspyre",
                aim=1.05 if size >= 1 << 20 and aimed else None,
                note=f"{added:+.2f} us" + (" (aim 3)" if size == 1 << 10 and aimed else ""),
            )
    add_replay(report, samples)
