# SPDX-License-Identifier: MIT
"""Tensors sent to another process. The embedded card's memory is its process's own,
so there it is an exception that says so; on the kernel's card it works."""

from multiprocessing.reduction import ForkingPickler

import pytest
import torch
import torch.multiprocessing as multiprocessing
from support import DEVICE, assert_same, exact


def shareable():
    backend = str(torch.spyre.get_device_properties(0)["backend"])
    return backend != "embedded"


def send(queue, done, view):
    base = torch.arange(0.0, 1 << 18).to(DEVICE)
    torch.spyre.synchronize()
    queue.put({"whole": base, "offset": base[4096:], "strided": base[::2]}[view])
    done.wait(60)


def receive(queue, results, done):
    tensor = queue.get()
    results.put((tensor.device.type, tensor.stride(), tensor.cpu()[:8].tolist()))
    try:
        ForkingPickler.dumps(tensor)
        results.put("shared again")
    except RuntimeError as error:
        results.put(str(error))
    del tensor
    done.set()


class TestIpcWorkflow:
    @pytest.mark.parametrize(
        "view, stride, values",
        [
            ("whole", 1, [0, 1, 2, 3, 4, 5, 6, 7]),
            ("offset", 1, [4096 + i for i in range(8)]),
            ("strided", 2, [0, 2, 4, 6, 8, 10, 12, 14]),
        ],
    )
    def test_roundtrip(self, view, stride, values):
        if not shareable():
            pytest.skip("an embedded card's memory is its process's own")
        context = multiprocessing.get_context("spawn")
        queue, results, done = context.Queue(), context.Queue(), context.Event()
        producer = context.Process(target=send, args=(queue, done, view))
        consumer = context.Process(target=receive, args=(queue, results, done))
        producer.start(), consumer.start()
        device, strides, seen = results.get(timeout=120)
        again = results.get(timeout=120)
        producer.join(60), consumer.join(60)
        assert (device, strides, seen) == (DEVICE, (stride,), values)
        assert "received from another process" in again
        assert producer.exitcode == consumer.exitcode == 0

    def test_embedded_card_is_not_shared(self):
        if shareable():
            pytest.skip("this card's memory can be shared")
        x = exact(10).to(DEVICE)
        with pytest.raises(RuntimeError, match="(?i)only available on CPU|embedded"):
            ForkingPickler.dumps(x)
        assert_same(x, exact(10))

    def test_host_tensors_go_as_ever(self):
        tensor = exact(10).share_memory_()
        assert_same(tensor.to(DEVICE), exact(10))
