# SPDX-License-Identifier: MIT
"""Bundles on disk, in a cache that is addressed by content.

A kernel's specification is text: the records of its program and the layouts of its arguments.
Its bundle is in Inductor's cache directory, in a folder named by a hash of the records, the
library and the settings that the planner reads.
"""

import base64
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

#: Variables of the environment that the planner reads (docs/planning.md).
SETTINGS = _C._planner_settings


@functools.cache
def library():
    """Returns a hash of the library's file, because another planner makes other bundles."""
    with open(_C._library_path(), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def settings():
    """Returns the present values of SETTINGS, None for variables that are not set."""
    return [os.environ.get(name) for name in SETTINGS]


def key(records):
    """Returns the name of the bundle of a program's records."""
    text = json.dumps([library(), settings(), records])
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def directory(records):
    """Returns the path of the bundle of a program's records."""
    name = key(records)
    return os.path.join(cache_dir(), "spyre", name[:2], name)


def event_key(path):
    """Returns the key of a bundle in names of events: the first 80 bits of its hash, in base32."""
    return base64.b32encode(bytes.fromhex(os.path.basename(path)[:20])).decode().lower()


def identity():
    """Returns a hash of all that compiled graphs depend on: these sources, library and settings."""
    return _identity(tuple(settings()))


@functools.cache
def _identity(told):
    """Returns a hash of libspyre, of this package, its extension and @told.

    The extension is a part of it because rules derive from its table of operations.
    """
    digest = hashlib.sha256(repr((library(), told)).encode())
    sources = sorted(pathlib.Path(__file__).parent.rglob("*.py"))
    for file in (pathlib.Path(_C.__file__), *sources):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def cached():
    """Returns False if SPYRE_INDUCTOR_SDSC_CACHE disables the reuse of bundles."""
    return os.environ.get("SPYRE_INDUCTOR_SDSC_CACHE", "1") not in ("0", "false", "off")


def bundle(records, program=None):
    """Returns the directory of a bundle with its compiled program; makes it if it is missing.

    A bundle is written to a temporary folder and then renamed, so that concurrent writers and
    readers see complete folders only.
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
