# SPDX-License-Identifier: MIT
"""exclusions.txt: the excluded tests, with reasons.

A line is "KIND PATTERN  # REASON". PATTERN is matched (fnmatch) against a test's
id, "test_ops.py::TestOps::test_expand". KIND is

    skip    not run: it needs something that does not exist here
    fails   run, and fails; should it pass one day, that is a failure of the line
"""

import fnmatch
import os
from typing import NamedTuple

import pytest

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exclusions.txt")


class Line(NamedTuple):
    number: int
    kind: str
    pattern: str
    reason: str

    def matches(self, name):
        return fnmatch.fnmatchcase(name, self.pattern.replace("[", "[[]"))


def parse(text):
    lines = []
    for number, text_line in enumerate(text.splitlines(), 1):
        rule, _, reason = text_line.partition("  # ")
        if not rule.strip() or rule.startswith("#"):
            continue
        kind, _, pattern = rule.strip().partition(" ")
        if kind not in ("skip", "fails") or not pattern.strip() or not reason.strip():
            raise ValueError(
                f"exclusions.txt:{number}: not 'skip|fails PATTERN  # REASON': {text_line}"
            )
        lines.append(Line(number, kind, pattern.strip(), reason.strip()))
    return lines


def read():
    with open(PATH, encoding="utf-8") as file:
        return parse(file.read())


def name_of(nodeid):
    """A test's id without the folders before its file."""
    path, separator, rest = nodeid.partition("::")
    return os.path.basename(path) + separator + rest


def apply(items):
    lines = read()
    for item in items:
        for line in lines:
            if not line.matches(name_of(item.nodeid)):
                continue
            if line.kind == "skip":
                item.add_marker(pytest.mark.skip(reason=line.reason))
            else:
                item.add_marker(pytest.mark.xfail(reason=line.reason, strict=True))
            break
