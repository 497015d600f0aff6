# SPDX-License-Identifier: MIT
"""The worker: opens a card, loads the model to it and sizes the KV cache."""

import gc
from contextlib import nullcontext

import torch
import torch_spyre  # noqa: F401  (registers the device where torch does not)
from vllm.logger import init_logger
from vllm.platforms import current_platform
from vllm.utils.math_utils import cdiv
from vllm.utils.torch_utils import set_random_seed
from vllm.v1.kv_cache_interface import MambaSpec
from vllm.v1.worker.gpu_worker import Worker, init_worker_distributed_environment
from vllm.v1.worker.worker_base import CompilationTimes

from . import experts, layers, mamba
from .platform import MAX_NUM_SEQS
from .runner import SpyreModelRunner

logger = init_logger(__name__)


class SpyreWorker(Worker):
    """A worker of vLLM whose buffers are on the host and whose model is on a card."""

    def init_device(self):
        self.device = torch.device("cpu")
        self.card = self.select_card()
        current_platform.check_if_supports_dtype(self.model_config.dtype)
        # A rank alone exchanges nothing.
        alone = self.parallel_config.world_size == 1
        init_worker_distributed_environment(
            self.vllm_config, self.rank, self.distributed_init_method, self.local_rank,
            "gloo" if alone else current_platform.dist_backend,
        )  # fmt: skip
        set_random_seed(self.model_config.seed)
        layers.register()
        experts.register()
        mamba.register()
        self._init_workspace_and_model_runner()

    def select_card(self):
        """Returns the card of this rank, which this process uses from now on."""
        count = torch.spyre.device_count()
        if self.local_rank >= count:
            ranks = self.parallel_config.tensor_parallel_size
            raise ValueError(
                f"cannot place rank {self.local_rank} of --tensor-parallel-size {ranks}: each rank "
                f"has a card of its own, and {count} can be seen; choose fewer ranks, or show more "
                "cards (SPYRE_DEVICES; SPYRE_EMBEDDED_CARDS for embedded ones)"
            )
        card = torch.device("spyre", self.local_rank)
        torch.spyre.set_device(card)
        return card

    def _make_model_runner(self):
        return SpyreModelRunner(self.vllm_config, self.device, self.card)

    def _maybe_get_memory_pool_context(self, tag):
        """The card's memory comes from torch_spyre's allocator alone."""
        return nullcontext()

    def needed_memory(self):
        """Returns the bytes of a KV cache in which requests have their longest sequence.

        They are no more than a server runs by default: LLM has 256, few of which are that long,
        and vLLM preempts requests where pages run out.
        """
        length = self.model_config.max_model_len
        requests = min(self.scheduler_config.max_num_seqs, MAX_NUM_SEQS)
        # Page 0 belongs to no request.
        return sum(
            spec.page_size_bytes * (requests * cdiv(length, spec.block_size) + 1)
            for spec in self.model_runner.get_kv_cache_spec().values()
        )

    def determine_available_memory(self):
        """Returns the bytes for the KV cache: what the requests can need, if the card has it."""
        if self.cache_config.kv_cache_memory_bytes:
            return self.cache_config.kv_cache_memory_bytes
        free, total = torch.spyre.mem_get_info(self.card)
        share = self.cache_config.gpu_memory_utilization
        most = int(free - total * (1 - share))
        if most <= 0:
            raise ValueError(
                f"cannot place a KV cache: {free} of {total} bytes are free beside the model, and "
                f"--gpu-memory-utilization {share} leaves {total - int(total * share)} to others; "
                "raise it, or choose a smaller model"
            )
        return min(self.memory_of_pages(most), self.needed_memory())

    def memory_of_pages(self, most):
        """Returns the part of @most bytes that vLLM may divide into pages.

        The rest is for state caches, which have a row for each running request. The number of
        pages limits these requests as well: each request needs at least one page in every layer.
        """
        specs = self.model_runner.get_kv_cache_spec().values()
        row = sum(one.state_content_size_bytes for one in specs if isinstance(one, MambaSpec))
        if not row:
            return most
        pages = sum(spec.page_size_bytes for spec in specs)
        by_requests = most - row * (self.scheduler_config.max_num_seqs + 1)
        by_pages = (most - row) * pages // (pages + row)
        return max(by_requests, by_pages)

    def compile_or_warm_up_model(self):
        """Programs are compiled at their first use and kept in torch_spyre's caches."""
        gc.collect()
        return CompilationTimes(language_model=0.0, encoder=0.0)

    def check_health(self):
        """Raises if work on the card has failed: a later step would raise as well."""
        torch.spyre.synchronize(self.card)
