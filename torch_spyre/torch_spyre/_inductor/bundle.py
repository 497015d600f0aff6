# SPDX-License-Identifier: MIT
"""Bundles on disk: written once, found again by what they hold.

A kernel's specification is text: the records of its program and how its
arguments lie. Its bundle is in Inductor's cache directory, in a folder named by
a hash of the records, the library and the settings that the planner reads.
"""

import functools
import hashlib
import json
import os
import pathlib
import shutil
import tempfile

from torch._inductor.runtime.cache_dir_utils import cache_dir

from .. import _C
from .emit import Program

#: What the planner reads from the environment (docs/planning.md).
SETTINGS = (
    "SENCORES",
    "LX_PLANNING",
    "HBM_POOL_PLANNING",
    "DXP_LX_FRAC_AVAIL",
    "SPYRE_CORE_ID_K_FAST_EMISSION",
)


@functools.cache
def library():
    """A hash of the library's file: another planner makes other bundles."""
    with open(_C._library_path(), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def settings():
    """What the planner is told now."""
    return [os.environ.get(name) for name in SETTINGS]


def key(records):
    """The name of the bundle of a program."""
    text = json.dumps([library(), settings(), records])
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def directory(records):
    name = key(records)
    return os.path.join(cache_dir(), "spyre", name[:2], name)


def identity():
    """What compiled graphs depend on: these sources, the library and its settings."""
    return _identity(tuple(settings()))


@functools.cache
def _identity(told):
    digest = hashlib.sha256(repr((library(), told)).encode())
    for file in sorted(pathlib.Path(__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def cached():
    return os.environ.get("SPYRE_INDUCTOR_SDSC_CACHE", "1") not in ("0", "false", "off")


def bundle(records, program=None):
    """The bundle's directory, with its compiled program; made if it is not there.

    Writers do not see each other: a folder is complete when it has its name.
    """
    target = directory(records)
    if cached() and os.path.exists(os.path.join(target, "bundle.mlir")):
        return target
    os.makedirs(os.path.dirname(target), exist_ok=True)
    made = tempfile.mkdtemp(prefix=".new-", dir=os.path.dirname(target))
    try:
        (program or Program(records)).graph.write(made)
        _C._compile_bundle(made)
        if os.path.exists(target):
            retired = tempfile.mkdtemp(prefix=".old-", dir=os.path.dirname(target))
            os.rename(target, os.path.join(retired, "bundle"))
            shutil.rmtree(retired, ignore_errors=True)
        os.rename(made, target)
    except OSError:
        if not os.path.exists(os.path.join(target, "bundle.mlir")):
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return target
