# SPDX-License-Identifier: MIT
"""Tensors sent to another process: copies, by the host's shared memory."""

import copy
import pickle
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
import torch.multiprocessing as multiprocessing
import torch_spyre
from support import DEVICE, assert_same, exact, process_error

VIEWS = {
    "whole": lambda x: x,
    "offset": lambda x: x[16:],
    "strided": lambda x: x[:, ::2],
    "transposed": lambda x: x.t(),
    "expanded": lambda x: x[:1].expand(5, -1),
    "scalar": lambda x: x[3, 4],
    "empty": lambda x: x[:0],
}


def base(dtype=torch.float16):
    return exact(64, 70, dtype=dtype)


def there_and_back(tensor):
    """A tensor after a round trip through ForkingPickler in this process."""
    return pickle.loads(ForkingPickler.dumps(tensor))


def serve(requests, replies):
    """A worker: twice of what comes, on the card; None ends it."""
    while (item := requests.get()) is not None:
        replies.put((item + item, item.sum().item(), str(item.device)))
        item.zero_()


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x))


def model_worker(model, x, replies, done):
    tied = model.first.weight is model.second.weight
    kinds = {parameter.device.type for parameter in model.parameters()}
    replies.put((kinds, tied, model(x).detach()))
    done.wait(60)


class TestReduction:
    @pytest.mark.parametrize("view", VIEWS)
    def test_views(self, view):
        host = VIEWS[view](base())
        received = there_and_back(VIEWS[view](base().to(DEVICE)))
        assert received.device == torch.device(DEVICE, 0)
        assert_same(received, host)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.bool])
    def test_dtypes(self, dtype):
        assert_same(there_and_back(base(dtype).to(DEVICE)), base(dtype))

    def test_it_is_a_copy(self):
        sent = base().to(DEVICE)
        received = there_and_back(sent)
        sent.zero_()
        assert_same(received, base())

    def test_the_card_is_kept(self):
        assert there_and_back(base().to("spyre:1")).device == torch.device("spyre:1")

    def test_layout(self):
        layout = torch_spyre.SpyreTensorLayout([64, 70], [70, 1], torch.float16, [1, 0])
        sent = base().to(DEVICE).to(device_layout=layout)
        received = there_and_back(sent)
        assert received.device_tensor_layout() == layout
        assert_same(received, base())

    def test_parameters_and_leaves(self):
        parameter = torch.nn.Parameter(base().float().to(DEVICE))
        received = there_and_back(parameter)
        assert type(received) is torch.nn.Parameter and received.requires_grad
        assert there_and_back(parameter.detach().requires_grad_()).requires_grad
        assert not there_and_back(parameter.detach()).requires_grad

    def test_history_is_refused(self):
        x = torch.ones(3, device=DEVICE, requires_grad=True) * 2
        with pytest.raises(RuntimeError, match="detach"):
            ForkingPickler.dumps(x)

    def test_storages_are_refused(self):
        storage = torch.ones(3, device=DEVICE).untyped_storage()
        with pytest.raises(RuntimeError, match="send a tensor"):
            ForkingPickler.dumps(storage)

    def test_events_are_refused(self):
        with pytest.raises(RuntimeError, match="between processes"):
            torch.spyre.Event(interprocess=True)

    def test_plain_pickle_and_deepcopy(self):
        sent = base().to(DEVICE)
        assert_same(pickle.loads(pickle.dumps(sent)), base())
        assert_same(copy.deepcopy(sent), base())

    def test_host_tensors_go_as_ever(self):
        tensor = base()
        received = there_and_back(tensor)
        tensor.zero_()
        assert_same(received, tensor)

    def test_share_memory_is_no_error(self):
        """As with CUDA: a model on the card is left as it is."""
        model = torch.nn.Linear(3, 3).to(DEVICE)
        assert model.share_memory().weight.device.type == DEVICE


class TestProcesses:
    def test_queue(self):
        context = multiprocessing.get_context("spawn")
        requests, replies = context.Queue(), context.Queue()
        worker = context.Process(target=serve, args=(requests, replies))
        worker.start()
        sent = base().to(DEVICE)
        for view in (sent, sent[16:], sent.t()):
            requests.put(view)
            doubled, total, device = replies.get(timeout=120)
            assert device == "spyre:0" and total == view.sum().item()
            assert_same(doubled, view + view)
            assert_same(sent, base())
        requests.put(None)
        worker.join(60)
        assert worker.exitcode == 0

    def test_model(self):
        context = multiprocessing.get_context("spawn")
        replies, done = context.Queue(), context.Event()
        model, x = Tied().half().to(DEVICE), exact(4, 8).to(DEVICE)
        worker = context.Process(target=model_worker, args=(model, x, replies, done))
        worker.start()
        kinds, tied, y = replies.get(timeout=120)
        done.set()
        worker.join(60)
        assert (kinds, tied, worker.exitcode) == ({DEVICE}, True, 0)
        assert_same(y, model(x))

    def test_a_forked_worker_says_what_to_do(self):
        error = process_error(
            "import torch.multiprocessing as mp\n"
            "x = torch.ones(3, device='spyre')\n"
            "context = mp.get_context('fork')\n"
            "def work(x):\n"
            "    x + x\n"
            "process = context.Process(target=work, args=(x,))\n"
            "process.start()\n"
            "process.join(60)\n"
            "raise RuntimeError(f'exit code {process.exitcode}')\n"
        )
        assert "spawn" in error and "exit code 1" in error
