# SPDX-License-Identifier: MIT
"""Counters of the cards that a server uses, for its /metrics, by spyre-smi --prometheus."""

import os
import shutil
import subprocess

import psutil
from prometheus_client import REGISTRY
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from vllm.logger import init_logger
from vllm.platforms import current_platform
from vllm.v1.metrics.loggers import StatLoggerBase

logger = init_logger(__name__)

#: Seconds that a reading may take; it needs a fifth of one.
PATIENCE = 5


def of_processes(families, pids):
    """Yields the families of metrics with the samples of the cards that processes @pids have open,
    and of those processes alone."""
    families, pids = list(families), {str(pid) for pid in pids}
    cards = {
        sample.labels["card"]
        for family in families
        for sample in family.samples
        if sample.labels.get("process") is not None and sample.labels.get("pid") in pids
    }
    for family in families:
        kept = Metric(family.name, family.documentation, family.type)
        kept.samples = [
            sample
            for sample in family.samples
            if sample.labels.get("card") in cards
            and ("process" not in sample.labels or sample.labels["pid"] in pids)
        ]
        if kept.samples:
            yield kept


class CardCollector:
    """Reads the cards of this process's children when a client asks for metrics."""

    def __init__(self):
        self.command = shutil.which("spyre-smi")
        if self.command is None:
            logger.warning(
                "/metrics has no counters of the card: spyre-smi is not in PATH; install "
                "spyre-tools, or add the folder that contains it"
            )

    def describe(self):
        """The registry shall not make a reading to learn the names."""
        return []

    def collect(self):
        if self.command is None:
            return
        pids = [os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))]
        try:
            done = subprocess.run(
                [self.command, "--prometheus"], stdin=subprocess.DEVNULL, capture_output=True,
                text=True, timeout=PATIENCE, check=True,
            )  # fmt: skip
            yield from of_processes(text_string_to_metric_families(done.stdout), pids)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            logger.warning("/metrics has no counters of the card this time: %s", error)


class CardMetrics(StatLoggerBase):
    """vLLM makes one in the process that answers /metrics."""

    collector = None

    def __init__(self, vllm_config, engine_index=0):
        if CardMetrics.collector is None and current_platform.device_name == "spyre":
            CardMetrics.collector = CardCollector()
            REGISTRY.register(CardMetrics.collector)

    def record(self, scheduler_stats, iteration_stats, mm_cache_stats=None, engine_idx=0):
        """Counters are read when they are asked for."""

    def log_engine_initialized(self):
        """There is nothing to say."""
