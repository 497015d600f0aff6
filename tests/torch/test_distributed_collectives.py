# SPDX-License-Identifier: MIT
"""Each collective of spyreccl, compared with Gloo on CPU tensors."""

import json
import os
import shutil
import tempfile

import pytest
import torch
import torch.distributed as dist
import torch_spyre
from ranks import DEVICE, RanksTest

Op = dist.ReduceOp

#: Of one stick, of several, with padding, in three dimensions, of parts of sticks, without any.
SHAPES = (64,), (4, 128), (3, 100), (2, 3, 70), (5,), ()
DTYPES = torch.float16, torch.bfloat16, torch.float32, torch.int32, torch.int64


class TestCollectives(RanksTest):
    world_size = 3

    def test_group(self):
        group = dist.group.WORLD
        backend = group._get_backend(torch.device(DEVICE))
        assert backend.name() == "spyreccl" and backend.size() == 3
        assert group.name() == "custom" and not group._has_hooks()
        assert backend.options.backend == "spyreccl"

    def test_all_reduce(self):
        for shape in SHAPES:
            for dtype in DTYPES:
                self.same_as_gloo(dist.all_reduce, self.mine(*shape, dtype=dtype))

    def test_all_reduce_operators(self):
        for op in Op.SUM, Op.PRODUCT, Op.MIN, Op.MAX:
            for dtype in torch.float32, torch.int32:
                self.same_as_gloo(lambda x, op=op: dist.all_reduce(x, op),
                                  self.mine(3, 100, dtype=dtype))
        for op in Op.BAND, Op.BOR, Op.BXOR:
            for dtype in torch.int32, torch.int64:
                self.same_as_gloo(lambda x, op=op: dist.all_reduce(x, op),
                                  self.mine(3, 100, dtype=dtype))

    def test_average(self):
        x = torch.full((4, 64), 3.0 * self.rank).to(DEVICE)
        dist.all_reduce(x, Op.AVG)
        assert torch.equal(x.cpu(), torch.full((4, 64), 3.0))

    def test_premultiplied_sum(self):
        x = torch.full((4, 64), 1.0 + self.rank).to(DEVICE)
        dist.all_reduce(x, dist._make_nccl_premul_sum(0.5))
        assert torch.equal(x.cpu(), torch.full((4, 64), 3.0))

    def test_bools(self):
        parts = [torch.arange(8) % 4 == r for r in range(3)]
        for op, expected in (
            (Op.SUM, parts[0] | parts[1] | parts[2]),
            (Op.MAX, parts[0] | parts[1] | parts[2]),
            (Op.PRODUCT, parts[0] & parts[1] & parts[2]),
            (Op.MIN, parts[0] & parts[1] & parts[2]),
        ):
            x = parts[self.rank].to(DEVICE)
            dist.all_reduce(x, op)
            assert torch.equal(x.cpu(), expected)

    def test_small_integers_wrap(self):
        for dtype, values in (
            (torch.uint8, (200, 100, 3)), (torch.int8, (100, 100, 3)), (torch.int8, (-100, -100, 3)),
            (torch.int16, (30000, 30000, 3)),
        ):
            x = torch.full((70,), values[self.rank], dtype=dtype).to(DEVICE)
            dist.all_reduce(x)
            expected = sum(torch.full((70,), v, dtype=dtype) for v in values)
            assert torch.equal(x.cpu(), expected.to(dtype)), (dtype, values)

    def test_sums_of_int64_are_exact(self):
        for values in (2**30, 2**30, -(2**31)), (-(2**31), 2**31 - 1, 1), (-1, -1, -1):
            x = torch.full((70,), values[self.rank]).to(DEVICE)
            dist.all_reduce(x)
            assert torch.equal(x.cpu(), torch.full((70,), sum(values)))

    def test_refused_operators(self):
        for dtype, op in (
            (torch.float32, Op.BAND), (torch.int32, Op.AVG), (torch.int64, Op.PRODUCT),
            (torch.bool, Op.BXOR), (torch.float8_e4m3fn, Op.SUM),
        ):
            x = torch.zeros(64, device=DEVICE).to(dtype)
            with pytest.raises(RuntimeError, match=f"spyreccl: cannot use ReduceOp.{op!s:.0}"):
                dist.all_reduce(x, op)

    def test_broadcast(self):
        for dtype in (*DTYPES, torch.bool, torch.uint8, torch.int8):
            for shape in SHAPES:
                self.same_as_gloo(lambda x: dist.broadcast(x, 1), self.mine(*shape, dtype=dtype))

    def test_broadcast_of_float8(self):
        x = self.mine(4, 64).to(torch.float8_e4m3fn).to(DEVICE)
        dist.broadcast(x, 2)
        expected = self.mine(4, 64, rank=2)
        assert torch.equal(x.cpu().float(), expected)

    def test_reduce(self):
        for shape in SHAPES:
            for dtype in torch.float32, torch.int64:
                x = self.mine(*shape, dtype=dtype)
                host, card = x.clone(), x.to(DEVICE)
                dist.reduce(host, 1)
                dist.reduce(card, 1)
                assert torch.equal(card.cpu(), host if self.rank == 1 else x)

    def test_all_gather(self):
        for shape in SHAPES:
            x = self.mine(*shape)
            outputs = [torch.zeros(shape) for _ in range(3)]
            self.same_as_gloo(lambda x, *out: dist.all_gather(list(out), x), x, *outputs)

    def test_all_gather_into_tensor(self):
        for shape in (64,), (4, 128), (3, 100), (2, 3, 70), (5,):
            expected = torch.stack([self.mine(*shape, rank=r) for r in range(3)])
            for out in (3 * shape[0], *shape[1:]), (3, *shape):
                y = torch.zeros(out, device=DEVICE)
                dist.all_gather_into_tensor(y, self.mine(*shape).to(DEVICE))
                assert torch.equal(y.cpu(), expected.view(out)), (shape, out)

    def test_gather(self):
        for shape in SHAPES:
            x = self.mine(*shape)
            outputs = [torch.zeros(shape) for _ in range(3)]
            self.same_as_gloo(
                lambda x, *out: dist.gather(x, list(out) if self.rank == 2 else None, 2),
                x, *outputs)

    def test_scatter(self):
        for shape in SHAPES:
            inputs = [self.mine(*shape, seed=i) for i in range(3)]
            self.same_as_gloo(
                lambda y, *x: dist.scatter(y, list(x) if self.rank == 1 else None, 1),
                torch.zeros(shape), *inputs)

    def test_reduce_scatter(self):
        for dtype in torch.float32, torch.int64:
            for shape in SHAPES:
                inputs = [self.mine(*shape, dtype=dtype, seed=i) for i in range(3)]
                total = [x.clone() for x in inputs]
                for x in total:
                    dist.all_reduce(x)
                y = torch.zeros(shape, dtype=dtype, device=DEVICE)
                dist.reduce_scatter(y, [x.to(DEVICE) for x in inputs])
                assert torch.equal(y.cpu(), total[self.rank])

    def test_reduce_scatter_tensor(self):
        for dtype in torch.float32, torch.int64:
            for shape in (192,), (12, 128), (9, 100), (6, 3, 70), (15,), (3, 5), (3, 64):
                x = self.mine(*shape, dtype=dtype)
                total = x.clone()
                dist.all_reduce(total)
                expected = total.chunk(3)[self.rank]
                y = torch.zeros_like(expected, device=DEVICE)
                dist.reduce_scatter_tensor(y, x.to(DEVICE))
                assert torch.equal(y.cpu(), expected)

    def test_all_to_all(self):
        for shape in SHAPES:
            inputs = [self.mine(*shape, seed=i) for i in range(3)]
            outputs = [torch.zeros(shape, device=DEVICE) for _ in range(3)]
            dist.all_to_all(outputs, [x.to(DEVICE) for x in inputs])
            for r, y in enumerate(outputs):
                expected = self.mine(*shape, seed=self.rank, rank=r)
                assert torch.equal(y.cpu(), expected)

    def test_all_to_all_single(self):
        for shape in (192,), (6, 100), (3, 5, 70), (15,):
            self.same_as_gloo(lambda x, y: dist.all_to_all_single(y, x),
                              self.mine(*shape), torch.zeros(shape))

    def test_all_to_all_single_of_different_sizes(self):
        rows = [[1, 0, 3], [2, 2, 0], [0, 4, 1]]
        sent, received = rows[self.rank], [row[self.rank] for row in rows]
        for tail in (100,), (3, 64), ():
            self.same_as_gloo(
                lambda x, y: dist.all_to_all_single(y, x, received, sent),
                self.mine(sum(sent), *tail), torch.zeros(sum(received), *tail))

    def test_views(self):
        """Tensors that are parts of others, permuted, or have another layout."""
        for view in (
            lambda x: x[1:3], lambda x: x[:, 5:70], lambda x: x.t(), lambda x: x[::2], lambda x: x[2],
        ):
            host, card = self.mine(6, 130), self.mine(6, 130).to(DEVICE)
            a, b = view(host).contiguous(), view(card)
            dist.all_reduce(a)
            dist.all_reduce(b)
            view(host).copy_(a)
            assert torch.equal(card.cpu(), host)

    def test_coalesced(self):
        inputs = [self.mine(3, 100, seed=i).to(DEVICE) for i in range(3)]
        expected = [x.cpu() for x in inputs]
        for x in expected:
            dist.all_reduce(x)
        with dist._coalescing_manager():
            for x in inputs:
                dist.all_reduce(x)
        assert all(torch.equal(x.cpu(), y) for x, y in zip(inputs, expected))

        outputs = [torch.zeros(9, 100, device=DEVICE) for _ in inputs]
        with dist._coalescing_manager(device=torch.device(DEVICE, self.rank), async_ops=True) as cm:
            for x, y in zip(inputs, outputs):
                dist.all_gather_into_tensor(y, x)
        cm.wait()
        assert all(torch.equal(y.cpu(), torch.cat([x.cpu()] * 3)) for x, y in zip(inputs, outputs))

    def test_sub_groups(self):
        pair = dist.new_group([0, 2])
        x = self.mine(4, 64).to(DEVICE)
        if self.rank != 1:
            dist.all_reduce(x, group=pair)
            both = [self.mine(4, 64, rank=r) for r in (0, 2)]
            assert torch.equal(x.cpu(), sum(both))
        dist.barrier(device_ids=[self.rank])

    def test_barrier(self):
        dist.barrier()
        dist.barrier(device_ids=[self.rank])
        dist.barrier(device_ids=[self.rank], async_op=True).wait()

    def test_objects(self):
        objects = [None] * 3
        dist.all_gather_object(objects, {"rank": self.rank, "text": "x" * self.rank * 100})
        assert [o["rank"] for o in objects] == [0, 1, 2]
        assert [len(o["text"]) for o in objects] == [0, 100, 200]
        objects = ["a", self.rank]
        dist.broadcast_object_list(objects, src=1, device=torch.device(DEVICE, self.rank))
        assert objects == ["a", 1]

    def test_numbers_of_collectives(self):
        backend = dist.group.WORLD._get_backend(torch.device(DEVICE))
        before = backend._get_sequence_number_for_group()
        dist.all_reduce(torch.zeros(64, device=DEVICE))
        assert backend._get_sequence_number_for_group() == before + 1


class TestWork(RanksTest):
    def test_wait_orders_the_current_stream(self):
        x = self.mine(64, 64).to(DEVICE)
        expected = x.cpu()
        dist.all_reduce(expected)
        for _ in range(3):
            y = x.clone()
            work = dist.all_reduce(y, async_op=True)
            assert work is not None and work.wait()
            assert torch.equal((y + 1).cpu(), expected + 1)

    def test_another_stream_waits(self):
        x = self.mine(64, 64).to(DEVICE)
        expected = x.cpu()
        dist.all_reduce(expected)
        work = dist.all_reduce(x, async_op=True)
        with torch.spyre.Stream():
            work.wait()
            assert torch.equal((x * 2).cpu(), expected * 2)

    def test_without_asynchrony_there_is_no_work(self):
        assert dist.all_reduce(torch.zeros(64, device=DEVICE)) is None

    def test_tensors_live_until_the_end(self):
        work = dist.all_reduce(torch.ones(1 << 16, device=DEVICE), async_op=True)
        other = torch.zeros(1 << 16, device=DEVICE)
        (result,) = work.result()
        work.wait()
        assert bool((result == 2).all()) and not bool(other.any())

    def test_future(self):
        x = torch.ones(64, device=DEVICE)
        future = dist.all_reduce(x, async_op=True).get_future()
        doubled = future.then(lambda f: f.value()[0] * 2)
        assert torch.equal(doubled.wait().cpu(), torch.full((64,), 4.0))

    def test_state(self):
        work = dist.all_reduce(torch.ones(64, device=DEVICE), async_op=True)
        work.wait()
        torch.spyre.synchronize()
        assert work.is_completed() and work.is_success() and work.exception() is None

    def test_send_and_receive(self):
        for shape in (64,), (5,), (3, 100), (1 << 20,):
            x, y = self.mine(*shape).to(DEVICE), torch.zeros(shape, device=DEVICE)
            if self.rank == 0:
                dist.send(x, 1)
                dist.recv(y, 1)
            else:
                dist.recv(y, 0)
                dist.send(x, 0)
            other = self.mine(*shape, rank=1 - self.rank)
            assert torch.equal(y.cpu(), other)

    def test_both_send_first(self):
        x = self.mine(1 << 20).to(DEVICE)
        y = torch.zeros(1 << 20, device=DEVICE)
        sent, received = dist.isend(x, 1 - self.rank), dist.irecv(y, 1 - self.rank)
        sent.wait()
        received.wait()
        assert torch.equal(y.cpu(), self.mine(1 << 20, rank=1 - self.rank))

    def test_batch(self):
        x, y = self.mine(3, 100).to(DEVICE), torch.zeros(3, 100, device=DEVICE)
        ops = [dist.P2POp(dist.isend, x, 1 - self.rank), dist.P2POp(dist.irecv, y, 1 - self.rank)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        assert torch.equal(y.cpu(), self.mine(3, 100, rank=1 - self.rank))

    def test_receive_from_any_is_refused(self):
        with pytest.raises(RuntimeError, match="cannot receive from any rank"):
            dist.recv(torch.zeros(64, device=DEVICE))

    def test_wrong_arguments(self):
        x = torch.zeros(64, device=DEVICE)
        with pytest.raises(RuntimeError, match="takes a list of 2 tensors"):
            dist.all_gather([x], x)
        with pytest.raises(RuntimeError, match="2 times as many elements"):
            dist.all_gather_into_tensor(torch.zeros(64, device=DEVICE), x)
        with pytest.raises(RuntimeError, match="move it to spyre"):
            dist.group.WORLD._get_backend(torch.device(DEVICE)).allreduce([x.cpu()])

    def test_own_part_of_another_size(self):
        """Memory behind the smaller one stays as it is, and the group goes on."""
        memory = torch.full((2, 64), 7.0, device=DEVICE)
        outputs = [torch.zeros(2, 64, device=DEVICE) for _ in range(2)]
        outputs[self.rank] = memory[:1]
        inputs = [torch.ones(2, 64, device=DEVICE) for _ in range(2)]
        with pytest.raises(RuntimeError, match="parts of its own"):
            dist.all_to_all(outputs, inputs)
        assert torch.equal(memory.cpu(), torch.full((2, 64), 7.0))
        dist.all_reduce(memory)
        assert torch.equal(memory.cpu(), torch.full((2, 64), 14.0))


class TestFault(RanksTest):
    def test_sum_of_int64_beyond_32_bits_is_an_error(self):
        x = torch.full((70,), 2**31 - 1).to(DEVICE)
        with pytest.raises(RuntimeError, match="failed"):
            dist.all_reduce(x)
            x.cpu()
        assert torch_spyre._C._state(self.rank)["health"] == "faulted"
        torch.spyre.reset()


class TestTraces(RanksTest):
    def test_annotations(self):
        """Tools for collectives read these events of a trace."""
        x = torch.ones(4, 64, device=DEVICE)
        with torch.profiler.profile(record_shapes=True) as profile:
            dist.all_reduce(x, async_op=True).wait()
            y = torch.zeros(8, 64, device=DEVICE)
            dist.all_gather_into_tensor(y, x)
        path = os.path.join(tempfile.mkdtemp(), "trace.json")
        profile.export_chrome_trace(path)
        with open(path) as file:
            events = json.load(file)["traceEvents"]
        shutil.rmtree(os.path.dirname(path))
        named = {event.get("name") for event in events}
        assert {"spyreccl:all_reduce", "spyreccl:_all_gather_base"} <= named
        found = [e["args"] for e in events if e.get("name") == "record_param_comms"]
        assert [e["Collective name"] for e in found] == ["allreduce", "_allgather_base"]
        assert found[0]["In msg nelems"] == 256 and found[1]["Out msg nelems"] == 512
        assert found[0]["Group size"] == 2 and found[0]["dtype"] == "Float"


class TestOfSpyre(RanksTest):
    """The operations of torch.ops.spyre."""

    def test_all_reduce(self):
        x, other = self.mine(4, 64), self.mine(4, 64, rank=1 - self.rank)
        card = x.to(DEVICE)
        assert torch.equal(torch.ops.spyre.all_reduce_async(card).cpu(), x + other)
        assert torch.equal(card.cpu(), x + other)

    def test_all_gather_and_broadcast(self):
        both = [self.mine(4, 64, rank=r) for r in range(2)]
        x = both[self.rank].to(DEVICE)
        assert torch.equal(torch.ops.spyre.all_gather_async(x, 2).cpu(), torch.cat(both))
        assert torch.equal(torch.ops.spyre.broadcast_async(x, 1, "default").cpu(), both[1])


class TestGraph(RanksTest):
    def test_replays(self):
        """A collective is captured, and each replay of all ranks executes it."""
        x = torch.zeros(4, 64, device=DEVICE)
        dist.all_reduce(x.clone())
        graph = torch.accelerator.Graph()
        with torch.Stream(device=DEVICE), graph:
            y = x * 2
            dist.all_reduce(y)
            z = y + 1
        for seed in range(3):
            x.copy_(self.mine(4, 64, seed=seed))
            graph.replay()
            both = self.mine(4, 64, seed=seed, rank=0) + self.mine(4, 64, seed=seed, rank=1)
            assert torch.equal(z.cpu(), 2 * both + 1)
        graph.reset()
