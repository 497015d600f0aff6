# SPDX-License-Identifier: MIT
"""The graph after passes that TORCH_SPYRE_DUMP_AFTER names, as files and in TORCH_TRACE."""

import itertools
import os

from torch._logging import trace_structured

from ..inductor import log

VARIABLE = "TORCH_SPYRE_DUMP_AFTER"
#: The directory of the files; without it they are in spyre_dump of the current directory.
FOLDER = "TORCH_SPYRE_DUMP_DIR"
#: The passes, in their order; the last three are steps of the one that inserts the kernels.
PASSES = ("constants", "placement", "waits", "foreach", "scalars", "unflatten", "keys", "heads",
          "names", "kernels", "views", "eager")  # fmt: skip

_graphs = itertools.count()


class DumpError(ValueError):
    """Raised for a pass that does not exist, and if a file cannot be written."""


def wanted():
    """Returns the names of the passes after which the graph is written; raises DumpError."""
    names = [n.strip() for n in os.environ.get(VARIABLE, "").split(",") if n.strip()]
    for name in names:
        if name not in PASSES:
            raise DumpError(
                f"{VARIABLE} names the unknown pass {name!r}; valid: {', '.join(PASSES)}"
            )
    return names


def folder():
    """Returns the directory of the files, which is made if it is missing."""
    path = os.environ.get(FOLDER) or "spyre_dump"
    os.makedirs(path, exist_ok=True)
    return path


class Dump:
    """Writes the graph of a module after passes of one run."""

    def __init__(self, gm):
        self.gm, self.names = gm, wanted()
        self.number = next(_graphs) if self.names else None

    def after(self, name):
        """Writes the graph if this pass is among the wanted ones; raises DumpError."""
        if name not in self.names:
            return
        text = self.gm.print_readable(print_output=False, include_stride=True, include_device=True)
        trace_structured(
            "artifact",
            metadata_fn=lambda: {"name": f"spyre_after_{name}", "encoding": "string"},
            payload_fn=lambda: text,
        )
        file = f"graph_{os.getpid()}_{self.number}_{PASSES.index(name):02}_{name}.txt"
        try:
            path = os.path.join(folder(), file)
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
        except OSError as error:
            raise DumpError(f"cannot write the graph after {name}: {error}; set {FOLDER} to a "
                            "directory that can be written") from None
        log.info("the graph after %s is in %s", name, path)
