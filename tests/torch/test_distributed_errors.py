# SPDX-License-Identifier: MIT
"""Ranks that disagree, are missing or die: each of the others learns it by name and in time."""

import signal
import subprocess
import sys
import textwrap

import pytest
from forked import Forker

PRELUDE = """
import os, signal, sys, time
from datetime import timedelta
import torch, torch.distributed as dist
rank, size, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.spyre.set_device(rank)

def start(seconds=20, **options):
    dist.init_process_group("cpu:gloo,spyre:spyreccl", store=dist.FileStore(path, size), rank=rank,
                            world_size=size, timeout=timedelta(seconds=seconds), **options)
    return dist.group.WORLD._get_backend(torch.device("spyre"))

def says(call):
    try:
        call()
        torch.spyre.synchronize()
    except RuntimeError as error:
        print(type(error).__name__, error, flush=True)
        return str(error)
    print("no error", flush=True)
"""


@pytest.fixture(scope="module")
def forker():
    made = Forker()
    yield made
    made.close()


@pytest.fixture
def run(tmp_path, forker):
    """A function that runs a script on each rank and returns the processes' (status, output)."""

    def run(size, body, **environment):
        script = tmp_path / "rank.py"
        script.write_text(PRELUDE + textwrap.dedent(body))
        ranks = [[str(rank), str(size), str(tmp_path / "store")] for rank in range(size)]
        return forker.run(script, ranks, {"SPYRE_EMBEDDED_CARDS": str(size)} | environment)

    return run


class TestErrors:
    def test_shapes_that_differ(self, run):
        results = run(2, """
            start()
            x = torch.zeros(64 + 64 * rank, 64, device="spyre")
            text = says(lambda: dist.all_reduce(x))
            assert text and "all_reduce" in text
            os._exit(0)
        """)
        for status, output in results:
            assert status == 0, output
            assert "ARGUMENT_MISMATCH" in output or "bytes" in output, output

    def test_operations_that_differ(self, run):
        """The root of a broadcast that fits in the slots could end before it learns of this."""
        results = run(2, """
            start()
            x = torch.zeros(4096, 2048, device="spyre")
            says(lambda: dist.all_reduce(x) if rank else dist.broadcast(x, 0))
            text = says(lambda: dist.all_reduce(x))
            assert "all_reduce" in text and "broadcast" in text, text
            os._exit(0)
        """)
        for status, output in results:
            assert status == 0, output

    def test_a_rank_is_missing(self, run):
        results = run(2, """
            start(seconds=3)
            if rank:
                time.sleep(6)
            else:
                begun = time.time()
                text = says(lambda: dist.all_reduce(torch.zeros(64, device="spyre")))
                assert "1" in text and time.time() - begun < 6, text
            os._exit(0)
        """)
        for status, output in results:
            assert status == 0, output
        assert "DistBackendError" in results[0][1]

    def test_a_rank_does_not_call(self, run):
        results = run(2, """
            start(seconds=3)
            x = torch.zeros(64, device="spyre")
            dist.all_reduce(x)
            if rank:
                time.sleep(8)
            else:
                begun = time.time()
                text = says(lambda: dist.all_reduce(x))
                assert text and time.time() - begun < 8
            os._exit(0)
        """)
        for status, output in results:
            assert status == 0, output

    def test_a_rank_is_killed(self, run):
        results = run(3, """
            backend = start()
            x = torch.ones(64, device="spyre")
            dist.all_reduce(x)
            x.cpu()
            if rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            begun = time.time()
            text = says(lambda: dist.all_reduce(x))
            assert "rank 1" in text and time.time() - begun < 5, text
            os._exit(0)
        """)
        assert results[1][0] == -signal.SIGKILL
        for rank in 0, 2:
            status, output = results[rank]
            assert status == 0, output

    def test_shrink_goes_on_without_a_killed_rank(self, run):
        results = run(3, """
            from torch.distributed import distributed_c10d as c10d
            backend = start(device_id=torch.device("spyre", rank))
            x = torch.full((64,), 1.0 + rank, device="spyre")
            dist.all_reduce(x.clone())
            torch.spyre.synchronize()
            if rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            says(lambda: dist.all_reduce(x))
            torch.spyre.reset()
            x = torch.full((64,), 1.0 + rank).to("spyre")
            group = c10d.shrink_group([1])
            assert dist.get_world_size() == 2
            dist.all_reduce(x)
            assert torch.equal(x.cpu(), torch.full((64,), 4.0))
            print("went on", flush=True)
            os._exit(0)
        """)
        for rank in 0, 2:
            status, output = results[rank]
            assert status == 0 and "went on" in output, output

    def test_abort_ends_pending_work(self, run):
        results = run(2, """
            backend = start(seconds=60)
            x = torch.zeros(64, device="spyre")
            dist.all_reduce(x)
            if rank:
                time.sleep(5)
            else:
                work = dist.all_reduce(x, async_op=True)
                begun = time.time()
                backend.abort()
                text = says(work.wait)
                assert text and time.time() - begun < 5
            os._exit(0)
        """)
        for status, output in results:
            assert status == 0, output

    def test_wait_has_a_time_limit(self, run):
        results = run(2, """
            start(seconds=60)
            x = torch.zeros(64, device="spyre")
            dist.all_reduce(x)
            if rank:
                time.sleep(4)
            else:
                work = dist.all_reduce(x, async_op=True)
                begun = time.time()
                text = says(lambda: work.wait(timedelta(seconds=1)))
                assert "has not finished within 1000 ms" in text and time.time() - begun < 4
            os._exit(0)
        """)
        for status, output in results:
            assert status == 0, output

    def test_a_call_has_a_time_limit(self, run):
        """Its own instead of that of the group."""
        results = run(2, """
            start(seconds=60)
            x = torch.zeros(64, device="spyre")
            dist.all_reduce(x)
            options = dist.AllreduceOptions()
            options.timeout = timedelta(seconds=1)
            torch.spyre.synchronize()
            if rank == 0:
                text = says(lambda: dist.group.WORLD.allreduce([x], options).wait())
                assert "the limit of 1000 ms passed" in text, text
            else:
                time.sleep(4)
            os._exit(0)
        """)
        for status, output in results:
            assert status == 0, output

    @pytest.mark.parametrize("value, text", [
        ("invalid", "LOCAL_RANK is 'invalid'"), ("-1", "LOCAL_RANK -1 is out of range"),
        ("128", "LOCAL_RANK 128 is out of range"),
    ])
    def test_wrong_local_rank(self, run, value, text):
        ((status, output),) = run(1, "start()", LOCAL_RANK=value)
        assert status and text in output

    def test_split_group(self, run):
        results = run(2, """
            start(device_id=torch.device("spyre", rank))
            group = dist.split_group(split_ranks=[[0], [1]])
            x = torch.full((64,), 1.0 + rank, device="spyre")
            dist.all_reduce(x, group=group)
            assert torch.equal(x.cpu(), torch.full((64,), 1.0 + rank))
            group = dist.new_group([1])
            if rank:
                dist.all_reduce(x, group=group)
            dist.barrier()
            dist.destroy_process_group()
            print("done", flush=True)
        """)
        for status, output in results:
            assert status == 0 and "done" in output, output


class TestProcesses:
    def test_end_without_destroying_the_group(self, run):
        results = run(2, """
            start()
            x = torch.ones(64, device="spyre")
            dist.all_reduce(x)
            work = dist.all_reduce(x, async_op=True)
            assert torch.equal(torch.ones(1, device="spyre").cpu(), torch.ones(1))
            print("ends", flush=True)
        """)
        for status, output in results:
            assert status == 0 and "ends" in output, output

    def test_debug_mode(self, run):
        """PyTorch's own checks name the ranks that differ, before anything is sent."""
        results = run(2, """
            start()
            x = torch.ones(64, device="spyre")
            dist.all_reduce(x)
            assert torch.equal(x.cpu(), torch.full((64,), 2.0))
            text = says(lambda: dist.all_reduce(torch.ones(64 + rank, device="spyre")))
            assert "mismatch" in text, text
            os._exit(0)
        """, TORCH_DISTRIBUTED_DEBUG="DETAIL")
        for status, output in results:
            assert status == 0, output

    def test_options(self, run):
        results = run(2, """
            from torch_spyre.distributed import process_group_class
            options = process_group_class().Options(is_high_priority_stream=True)
            backend = start(pg_options=options)
            assert backend.options.is_high_priority_stream
            x = torch.ones(64, device="spyre")
            dist.all_reduce(x, async_op=True).wait()
            assert torch.equal(x.cpu(), torch.full((64,), 2.0))
            dist.destroy_process_group()
            print("done", flush=True)
        """)
        for status, output in results:
            assert status == 0 and "done" in output, output

    def test_training_in_pipelines(self, run):
        """Stages of a pipeline send activations and gradients by PyTorch's schedules."""
        results = run(2, """
            from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
            start()
            torch.manual_seed(0)
            layers = [torch.nn.Linear(96, 96), torch.nn.Linear(96, 64)]
            x, y = torch.randn(8, 96), torch.randn(8, 64)
            device = torch.device("spyre", rank)
            stage = PipelineStage(layers[rank].to(device), rank, 2, device)
            schedule = ScheduleGPipe(stage, 4, torch.nn.functional.mse_loss)
            losses = []
            if rank:
                schedule.step(target=y.to(device), losses=losses)
            else:
                schedule.step(x.to(device))
            print("gradient", float(layers[rank].weight.grad.abs().sum()), flush=True)
            dist.destroy_process_group()
        """)
        for status, output in results:
            assert status == 0 and "gradient" in output, output

    def test_flight_record(self, run, tmp_path):
        """The record names each collective with its state, and torchfrtrace reads it."""
        results = run(2, """
            import pickle
            from torch_spyre.distributed import flight_record
            start()
            x, y = torch.ones(3, 64, device="spyre"), torch.zeros(6, 64, device="spyre")
            dist.all_reduce(x)
            dist.all_gather_into_tensor(y, x)
            dist.barrier(device_ids=[rank])
            record = flight_record()
            assert record["version"] == "2.10" and record["rank"] == rank
            entries = record["entries"]
            assert [e["profiling_name"] for e in entries] == [
                "spyreccl:all_reduce", "spyreccl:_all_gather_base", "spyreccl:barrier"]
            assert [e["collective_seq_id"] for e in entries] == [1, 2, 3]
            assert entries[1]["output_sizes"] == [[6, 64]] and entries[1]["input_dtypes"] == ["Float"]
            assert {e["state"] for e in entries} == {"completed"}, entries
            with open(os.path.join(os.path.dirname(path), f"fr_{rank}"), "wb") as file:
                pickle.dump(flight_record(for_fr_trace=True), file)
            dist.destroy_process_group()
        """, TORCH_FR_BUFFER_SIZE="16")
        for status, output in results:
            assert status == 0, output
        command = "from torch.distributed.flight_recorder.fr_trace import main; main()"
        read = subprocess.run(
            [sys.executable, "-c", command, str(tmp_path), "--prefix", "fr_"],
            capture_output=True, text=True,
        )
        assert read.returncode == 0, read.stderr
