# SPDX-License-Identifier: MIT
"""The exclusion file excludes exactly the tests that it lists."""

import os
import subprocess
import sys

import exclusions
import pytest


@pytest.fixture(scope="module")
def names():
    """The ids of all tests of this folder."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
        + ["--no-exclusions", os.path.dirname(exclusions.PATH)],
        capture_output=True,
        text=True,
    )
    found = [exclusions.name_of(line) for line in done.stdout.splitlines() if "::" in line]
    assert done.returncode == 0 and len(found) > 100, done.stdout[-2000:] + done.stderr[-2000:]
    return found


def test_every_line_excludes_a_test(names):
    idle = [
        f"exclusions.txt:{line.number}: {line.pattern}"
        for line in exclusions.read()
        if not any(line.matches(name) for name in names)
    ]
    assert not idle, "these lines exclude nothing:\n" + "\n".join(idle)


def test_no_line_is_there_twice():
    patterns = [line.pattern for line in exclusions.read()]
    assert len(patterns) == len(set(patterns))


def test_a_line_without_a_reason_is_refused():
    with pytest.raises(ValueError, match="exclusions.txt:2"):
        exclusions.parse("skip a  # there is none\nskip b\n")
    with pytest.raises(ValueError, match="exclusions.txt:1"):
        exclusions.parse("maybe a  # why not\n")


def test_brackets_are_plain_characters():
    (line,) = exclusions.parse("skip test_x.py::test_a[1-*]  # why\n")
    assert line.matches("test_x.py::test_a[1-fp16]")
    assert not line.matches("test_x.py::test_a1")
