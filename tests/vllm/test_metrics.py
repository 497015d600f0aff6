# SPDX-License-Identifier: MIT
"""Counters of cards at /metrics: those of the server's own processes; trouble with spyre-smi."""

import os

from vllm_spyre_open.metrics import CardCollector

#: Two cards, of which this process has the second one open together with another.
TEXT = """\
# HELP spyre_cards Number of cards found.
# TYPE spyre_cards gauge
spyre_cards 2
# HELP spyre_jobs_total Jobs.
# TYPE spyre_jobs_total counter
spyre_jobs_total{card="0",uuid="a"} 5
spyre_jobs_total{card="1",uuid="b"} 7
# HELP spyre_process_jobs_total Jobs of a process.
# TYPE spyre_process_jobs_total counter
spyre_process_jobs_total{card="0",uuid="a",pid="1",process="init"} 5
spyre_process_jobs_total{card="1",uuid="b",pid="1",process="init"} 3
spyre_process_jobs_total{card="1",uuid="b",pid="PID",process="python"} 4
"""


def collect(folder, monkeypatch, script):
    """Returns the samples by name that a collector reads from a spyre-smi of this text."""
    command = folder / "spyre-smi"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return [
        (sample.name, sample.labels, sample.value)
        for family in CardCollector().collect()
        for sample in family.samples
    ]


def test_own_card_and_process(tmp_path, monkeypatch):
    text = TEXT.replace("PID", str(os.getpid()))
    (tmp_path / "text").write_text(text)
    samples = collect(tmp_path, monkeypatch, f"cat {tmp_path}/text")
    assert [(name, value) for name, _, value in samples] == [
        ("spyre_jobs_total", 7),
        ("spyre_process_jobs_total", 4),
    ]
    assert samples[0][1] == {"card": "1", "uuid": "b"}


def test_a_failed_reading_has_no_samples(tmp_path, monkeypatch):
    assert collect(tmp_path, monkeypatch, "exit 1") == []
    assert collect(tmp_path, monkeypatch, "echo '{'") == []


def test_without_the_command_there_are_no_samples(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert list(CardCollector().collect()) == []
