# SPDX-License-Identifier: MIT
"""What the generated wrapper calls."""

import json

from .. import _C
from .bundle import bundle
from .dynamic import DynamicGroup


def group(specification):
    """The kernel of a specification, ready to be called with its tensors."""
    spec = json.loads(specification)
    if "nodes" in spec:
        return DynamicGroup(spec)
    records = [tuple(record) for record in spec["records"]]
    return _C._CompiledKernel(
        spec["name"], bundle(records), spec["inputs"], spec["outputs"]
    )
