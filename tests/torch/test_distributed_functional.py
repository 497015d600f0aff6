# SPDX-License-Identifier: MIT
"""Functional collectives on cards: the operations of torch.ops._c10d_functional.

Results are those that all ranks' numbers, which each rank can compute, make on the host.
"""

import gc
import re

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from ranks import DEVICE, RanksTest
from torch._inductor.utils import run_and_get_code
from torch.utils._pytree import tree_leaves

c10d = torch.ops._c10d_functional


class Numbers(RanksTest):
    """Numbers of ranks, and what collectives make of them."""

    @property
    def group(self):
        return dist.group.WORLD.group_name

    def of_all(self, *size, seed=0):
        """Returns the numbers of all ranks, on the host."""
        return [self.mine(*size, seed=seed, rank=r) for r in range(self.world_size)]

    def here(self, *size, seed=0):
        """Returns the numbers of this rank, on its card."""
        return self.mine(*size, seed=seed).to(DEVICE)

    def total(self, *size, seed=0):
        return torch.stack(self.of_all(*size, seed=seed)).sum(0)

    def equal(self, tensor, expected):
        assert tensor.device.type == DEVICE
        assert torch.equal(tensor.cpu(), expected), f"{tensor.cpu()} is not {expected}"


class TestEager(Numbers):
    """Operations of one call each, with the wait for their results."""

    def waited(self, result):
        """Waits for a result, or for each of a list; returns it."""
        for tensor in result if isinstance(result, list) else [result]:
            assert c10d.wait_tensor(tensor).data_ptr() == tensor.data_ptr()
        return result

    def test_all_reduce(self):
        for operator, function in {
            "sum": lambda t: t.sum(0),
            "avg": lambda t: t.mean(0),
            "max": lambda t: t.amax(0),
            "min": lambda t: t.amin(0),
            "product": lambda t: t.prod(0),
        }.items():
            x = self.here(5, 70)
            before = x.cpu()
            result = self.waited(c10d.all_reduce(x, operator, self.group))
            self.equal(result, function(torch.stack(self.of_all(5, 70))))
            self.equal(x, before)

    def test_all_reduce_in_place(self):
        x = self.here(5, 70)
        result = c10d.all_reduce_(x, "avg", self.group)
        assert result.data_ptr() == x.data_ptr()
        self.waited(result)
        self.equal(x, self.total(5, 70) / self.world_size)

    def test_all_reduce_coalesced(self):
        sizes = (3, 64), (7,), (2, 3, 40)
        inputs = [self.here(*size, seed=i) for i, size in enumerate(sizes)]
        before = [x.cpu() for x in inputs]
        results = self.waited(c10d.all_reduce_coalesced(inputs, "avg", self.group))
        for i, (size, x, result) in enumerate(zip(sizes, inputs, results)):
            self.equal(result, self.total(*size, seed=i) / self.world_size)
            self.equal(x, before[i])

    def test_all_reduce_coalesced_in_place(self):
        sizes = (3, 64), (7,), (2, 3, 40)
        inputs = [self.here(*size, seed=i) for i, size in enumerate(sizes)]
        results = c10d.all_reduce_coalesced_(inputs, "sum", self.group)
        assert [r.data_ptr() for r in results] == [x.data_ptr() for x in inputs]
        self.waited(results)
        for i, (size, x) in enumerate(zip(sizes, inputs)):
            self.equal(x, self.total(*size, seed=i))

    def test_all_gather_into_tensor(self):
        for size in (4, 70), (6,), (2, 3, 64):
            x = self.here(*size)
            result = c10d.all_gather_into_tensor(x, self.world_size, self.group)
            self.equal(self.waited(result), torch.cat(self.of_all(*size)))

    def test_all_gather_into_tensor_out(self):
        out = torch.zeros(4 * self.world_size, 70, device=DEVICE)
        result = c10d.all_gather_into_tensor_out(
            self.here(4, 70), self.world_size, self.group, out=out
        )
        assert result.data_ptr() == out.data_ptr()
        self.waited(result)
        self.equal(out, torch.cat(self.of_all(4, 70)))

    def test_all_gather_into_tensor_coalesced(self):
        sizes = (4, 70), (6,), (2, 3, 64)
        inputs = [self.here(*size, seed=i) for i, size in enumerate(sizes)]
        results = c10d.all_gather_into_tensor_coalesced(inputs, self.world_size, self.group)
        for i, (size, result) in enumerate(zip(sizes, self.waited(results))):
            self.equal(result, torch.cat(self.of_all(*size, seed=i)))

    def test_reduce_scatter_tensor(self):
        for operator, factor in ("sum", 1), ("avg", 1 / self.world_size):
            for size in (4, 70), (6,), (2, 3, 64):
                whole = size[0] * self.world_size, *size[1:]
                result = c10d.reduce_scatter_tensor(
                    self.here(*whole), operator, self.world_size, self.group
                )
                expected = self.total(*whole).chunk(self.world_size)[self.rank] * factor
                self.equal(self.waited(result), expected)

    def test_reduce_scatter_tensor_coalesced(self):
        sizes = (4, 70), (8,), (2, 3, 64)
        inputs = [self.here(*size, seed=i) for i, size in enumerate(sizes)]
        results = c10d.reduce_scatter_tensor_coalesced(inputs, "avg", self.world_size, self.group)
        for i, (size, result) in enumerate(zip(sizes, self.waited(results))):
            expected = self.total(*size, seed=i).chunk(self.world_size)[self.rank]
            self.equal(result, expected / self.world_size)

    def splits(self, rank):
        """Returns how many rows a rank sends to each one."""
        return [1 + (rank + other) % 3 for other in range(self.world_size)]

    def exchanged(self, seed=0):
        """Returns the rows that this rank receives in test_all_to_all_single()."""
        rows = []
        for rank in range(self.world_size):
            sent = self.splits(rank)
            x = self.mine(sum(sent), 70, seed=seed, rank=rank)
            rows.append(x.split(sent)[self.rank])
        return torch.cat(rows)

    def test_all_to_all_single(self):
        sent = self.splits(self.rank)
        received = [self.splits(rank)[self.rank] for rank in range(self.world_size)]
        x = self.here(sum(sent), 70)
        self.equal(
            self.waited(c10d.all_to_all_single(x, received, sent, self.group)), self.exchanged()
        )

    def test_broadcast(self):
        for source in range(self.world_size):
            x = self.here(5, 70)
            before = x.cpu()
            result = self.waited(c10d.broadcast(x, source, self.group))
            self.equal(result, self.of_all(5, 70)[source])
            self.equal(x, before)

    def test_broadcast_in_place(self):
        x = self.here(5, 70)
        result = c10d.broadcast_(x, 1, self.group)
        assert result.data_ptr() == x.data_ptr()
        self.waited(result)
        self.equal(x, self.of_all(5, 70)[1])

    def test_views(self):
        """Inputs that are no dense tensors."""
        x = self.here(6, 8, 10)
        whole = self.total(6, 8, 10)
        self.equal(self.waited(c10d.all_reduce(x[1:5, :, 3], "sum", self.group)), whole[1:5, :, 3])
        part = self.waited(c10d.all_reduce(x.transpose(0, 2), "sum", self.group))
        self.equal(part, whole.transpose(0, 2))

    def test_registered_works(self):
        """A work is kept from the call to the wait, and only then."""
        before = torch._C._distributed_c10d._get_work_registry_size()
        first = c10d.all_reduce(self.here(5, 70), "sum", self.group)
        second = c10d.all_gather_into_tensor(self.here(5, 70), self.world_size, self.group)
        assert torch._C._distributed_c10d._get_work_registry_size() == before + 2
        self.waited(first)
        assert torch._C._distributed_c10d._get_work_registry_size() == before + 1
        self.waited(second)
        assert torch._C._distributed_c10d._get_work_registry_size() == before
        c10d.wait_tensor(second)

    def test_results_without_a_wait(self):
        """They are freed, and later collectives are as before."""
        for seed in range(20):
            c10d.all_reduce(self.here(64, 64, seed=seed), "sum", self.group)
            gc.collect()
        self.equal(
            self.waited(c10d.all_reduce(self.here(5, 70), "sum", self.group)), self.total(5, 70)
        )

    def test_wait_on_another_stream(self):
        """The stream that waits is the one that is current at the wait."""
        result = c10d.all_reduce(self.here(64, 64), "sum", self.group)
        with torch.spyre.stream(torch.spyre.Stream()):
            doubled = self.waited(result) * 2
            self.equal(doubled, 2 * self.total(64, 64))

    def test_group_of_some_ranks(self):
        """Numbers of one rank, of a group of its own."""
        groups = [dist.new_group([rank]) for rank in range(self.world_size)]
        name = groups[self.rank].group_name
        result = self.waited(c10d.all_reduce(self.here(5, 70), "sum", name))
        self.equal(result, self.mine(5, 70))

    def test_unknown_group(self):
        with self.assertRaisesRegex(RuntimeError, "nowhere"):
            c10d.all_reduce(self.here(5, 70), "sum", "nowhere")

    def test_gradients(self):
        x = self.here(4, 70).requires_grad_()
        result = funcol.all_gather_tensor_autograd(x, 0, self.group)
        weight = self.here(4 * self.world_size, 70, seed=1)
        (result * weight).sum().backward()
        expected = self.total(4 * self.world_size, 70, seed=1)
        self.equal(x.grad, expected.chunk(self.world_size)[self.rank])


class TestCompiled(Numbers):
    """Each operation in a compiled function: in place where nothing else reads its operand."""

    def compiled(self, function, *inputs):
        """Returns the wrapper's code; results equal the eager ones, without a fallback."""
        torch._dynamo.reset()
        kept = [x.cpu() for x in inputs]
        expected = function(*inputs)
        before = dict(torch.spyre.fallbacks())
        result, (code, *_) = run_and_get_code(torch.compile(function, fullgraph=True), *inputs)
        assert dict(torch.spyre.fallbacks()) == before
        for x, same in zip(inputs, kept):
            self.equal(x, same)
        for mine, other in zip(tree_leaves(result), tree_leaves(expected), strict=True):
            self.equal(mine, other.cpu())
        return code

    def calls(self, code):
        """Returns the names of the collectives in a wrapper's code, in order."""
        return re.findall(r"_c10d_functional\.(\w+)\.default\(", code)

    def waited(self, results):
        return [c10d.wait_tensor(r) for r in results]

    def test_all_reduce_of_an_intermediate_result(self):
        for operator in "sum", "avg":
            code = self.compiled(
                lambda x: c10d.wait_tensor(c10d.all_reduce(x + 1, operator, self.group)) * 2,
                self.here(5, 70),
            )
            assert self.calls(code) == ["all_reduce_", "wait_tensor"]

    def test_all_reduce_of_an_input(self):
        code = self.compiled(
            lambda x: c10d.wait_tensor(c10d.all_reduce(x, "sum", self.group)) * 2,
            self.here(5, 70),
        )
        assert self.calls(code) == ["all_reduce", "wait_tensor"]

    def test_transposed_inputs(self):
        """Meta functions may keep the strides of an operand, where a collective returns others."""

        def waited(collective, *args):
            return lambda x: c10d.wait_tensor(collective(x.t(), *args, self.group)) * 2

        for function in (
            waited(c10d.broadcast, 0),
            waited(c10d.broadcast, self.world_size - 1),
            waited(c10d.all_reduce, "sum"),
            waited(c10d.all_gather_into_tensor, self.world_size),
            waited(c10d.reduce_scatter_tensor, "sum", self.world_size),
            lambda x: c10d.wait_tensor(c10d.broadcast(x.t(), 0, self.group)),
        ):
            self.compiled(function, self.here(5, 16 * self.world_size))

    def test_all_reduce_of_what_is_read_again(self):
        def function(x):
            y = x + 1
            return c10d.wait_tensor(c10d.all_reduce(y, "sum", self.group)) * y

        assert self.calls(self.compiled(function, self.here(5, 70)))[0] == "all_reduce"

    def test_all_reduce_of_a_result(self):
        def function(x):
            y = x + 1
            return c10d.wait_tensor(c10d.all_reduce(y, "sum", self.group)), y

        assert self.calls(self.compiled(function, self.here(5, 70)))[0] == "all_reduce"

    def test_all_reduce_of_a_view(self):
        """Another part of the same memory is read later."""

        def function(x):
            y = x + 1
            return c10d.wait_tensor(c10d.all_reduce(y[:2], "sum", self.group)) * y[2:4]

        assert self.calls(self.compiled(function, self.here(5, 70)))[0] == "all_reduce"

    def test_two_in_a_row(self):
        def function(x):
            y = c10d.wait_tensor(c10d.all_reduce(x + 1, "sum", self.group))
            return c10d.wait_tensor(c10d.all_reduce(y * 2, "avg", self.group)) - 1

        code = self.compiled(function, self.here(5, 70))
        assert self.calls(code) == ["all_reduce_", "wait_tensor"] * 2

    def test_all_reduce_coalesced(self):
        def function(x, y):
            return [
                t * 2
                for t in self.waited(c10d.all_reduce_coalesced([x + 1, y * 3], "avg", self.group))
            ]

        code = self.compiled(function, self.here(5, 70), self.here(2, 3, 64, seed=1))
        assert self.calls(code) == ["all_reduce_coalesced_", "wait_tensor", "wait_tensor"]

    def test_all_reduce_coalesced_of_an_input(self):
        def function(x, y):
            return self.waited(c10d.all_reduce_coalesced([x + 1, y], "sum", self.group))

        code = self.compiled(function, self.here(5, 70), self.here(2, 3, 64, seed=1))
        assert self.calls(code)[0] == "all_reduce_coalesced"

    def test_broadcast(self):
        code = self.compiled(
            lambda x: c10d.wait_tensor(c10d.broadcast(x + 1, 1, self.group)) * 2, self.here(5, 70)
        )
        assert self.calls(code) == ["broadcast_", "wait_tensor"]

    def test_all_gather_into_tensor(self):
        code = self.compiled(
            lambda x: (
                c10d.wait_tensor(c10d.all_gather_into_tensor(x + 1, self.world_size, self.group))
                * 2
            ),
            self.here(4, 70),
        )
        assert self.calls(code) == ["all_gather_into_tensor", "wait_tensor"]

    def test_all_gather_into_tensor_coalesced(self):
        def function(x, y):
            return self.waited(
                c10d.all_gather_into_tensor_coalesced([x + 1, y], self.world_size, self.group)
            )

        code = self.compiled(function, self.here(4, 70), self.here(2, 64, seed=1))
        assert self.calls(code)[0] == "all_gather_into_tensor_coalesced"

    def test_reduce_scatter_tensor(self):
        for operator in "sum", "avg":
            code = self.compiled(
                lambda x: (
                    c10d.wait_tensor(
                        c10d.reduce_scatter_tensor(x + 1, operator, self.world_size, self.group)
                    )
                    * 2
                ),
                self.here(4, 70),
            )
            assert self.calls(code) == ["reduce_scatter_tensor", "wait_tensor"]

    def test_reduce_scatter_tensor_coalesced(self):
        def function(x, y):
            return self.waited(
                c10d.reduce_scatter_tensor_coalesced([x + 1, y], "sum", self.world_size, self.group)
            )

        code = self.compiled(function, self.here(4, 70), self.here(8, 64, seed=1))
        assert self.calls(code)[0] == "reduce_scatter_tensor_coalesced"

    def test_all_to_all_single(self):
        sizes = [3, 3]
        code = self.compiled(
            lambda x: c10d.wait_tensor(c10d.all_to_all_single(x + 1, sizes, sizes, self.group)) * 2,
            self.here(6, 70),
        )
        assert self.calls(code) == ["all_to_all_single", "wait_tensor"]

    def test_in_place_collectives_of_the_program(self):
        """PyTorch compiles those of torch.distributed, and refuses c10d.all_reduce_() itself."""

        def function(x):
            y = x + 1
            dist.all_reduce(y)
            return y * 2

        code = self.compiled(function, self.here(5, 70))
        assert self.calls(code)[0] == "all_reduce_"

    def test_ranks_with_other_numbers_afterwards(self):
        """A second call of the same compiled function, whose buffers are new ones."""
        function = torch.compile(
            lambda x: c10d.wait_tensor(c10d.all_reduce(x + 1, "sum", self.group)) * 2
        )
        first = function(self.here(5, 70))
        second = function(self.here(5, 70, seed=1))
        for seed, result in (0, first), (1, second):
            self.equal(result, 2 * (self.total(5, 70, seed=seed) + self.world_size))
