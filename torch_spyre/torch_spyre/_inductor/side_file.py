# SPDX-License-Identifier: MIT
"""Reads, merges and replaces the side file of provenance.

Processes add to one file: each holds a lock while it reads the file and replaces it by a new one,
so that a reader always finds a complete file.
"""

import fcntl
import json
import os
import tempfile

VERSION = 1
EVENT_KEY = {
    "version": 1,
    "algorithm": "sha256-prefix-80-base32-lower",
    "width": 16,
    "stepAttribution": "bundle",
}
TABLES = "handles", "kernelIdentities", "kernelOccurrences", "upstreamProjections"
MAPS = "preToPost", "postToPre", "cppCodeToPost", "postToCppCode"


def union(old, new):
    """Returns the items of two lists, each once, in order."""
    found = []
    for item in [*old, *new]:
        if item not in found:
            found.append(item)
    return found


def merged_identity(old, new):
    """Returns a bundle's entry for all lines that it was compiled for."""
    bindings = union(old["specHandleBindings"], new["specHandleBindings"])
    bindings.sort(key=lambda binding: binding["specPath"])
    return {
        "directHandleIds": list(dict.fromkeys(binding["handleId"] for binding in bindings)),
        "specHandleBindings": bindings,
        "atenOps": sorted(union(old["atenOps"], new["atenOps"])),
        "eventNameBase": old["eventNameBase"],
    }


def merged_occurrence(old, new):
    """Returns a kernel's entry with the registrations of both compilations, in order."""
    both = union(old["registrations"], new["registrations"])
    return {**old, "registrations": sorted(both, key=lambda r: (r["ordinal"], r["alias"]))}


def merged_projection(old, new):
    """Returns the relations of equal lists of kernels; those that are known replace none."""
    if new["upstreamJoin"] != "ok" or old["upstreamJoin"] != "ok":
        return old if old["upstreamJoin"] == "ok" else new
    made = dict(old)
    for name in MAPS:
        keys = [*old[name], *(key for key in new[name] if key not in old[name])]
        made[name] = {key: union(old[name].get(key, []), new[name].get(key, [])) for key in keys}
    made["kernelStackTraces"] = dict(old["kernelStackTraces"])
    for alias, context in new["kernelStackTraces"].items():
        known = made["kernelStackTraces"].get(alias, {})
        made["kernelStackTraces"][alias] = {
            name: union(known.get(name, []), values) for name, values in context.items()
        }
    return made


MERGED = {
    "kernelIdentities": merged_identity,
    "kernelOccurrences": merged_occurrence,
    "upstreamProjections": merged_projection,
}


def merged(old, new):
    """Returns the tables of two documents in one."""
    made = {}
    for table in TABLES:
        made[table] = dict(old.get(table, {}))
        for key, entry in new[table].items():
            known = made[table].get(key)
            merge = MERGED.get(table)
            made[table][key] = merge(known, entry) if known and merge else entry
    return made


def read(path):
    """Returns the document of a side file, {} if there is none; ValueError for another file."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("schemaVersion") != VERSION:
        raise ValueError(f"it is not a side file of version {VERSION}; remove it or name another")
    if not all(isinstance(found.get(table), dict) for table in TABLES):
        raise ValueError(f"it lacks one of {', '.join(TABLES)}; remove it or name another file")
    return found


def replace(path, document):
    """Replaces a file by a document in one step."""
    folder, name = os.path.split(os.path.abspath(path))
    handle, made = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
        os.chmod(made, 0o644)
        os.replace(made, path)
    except BaseException:
        os.unlink(made)
        raise


def add(path, new):
    """Adds the tables of a document to a side file; raises OSError or ValueError."""
    with open(f"{path}.lock", "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        old = read(path)
        try:
            tables = merged(old, new)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"an entry is damaged ({error}); remove the file") from None
        if all(tables[table] == old.get(table) for table in TABLES):
            return
        joins = [p["upstreamJoin"] for p in tables["upstreamProjections"].values()]
        replace(path, {
            "schemaVersion": VERSION,
            "eventKey": EVENT_KEY,
            "mergeGeneration": old.get("mergeGeneration", 0) + 1,
            "status": "complete" if all(join == "ok" for join in joins) else "partial",
            "diagnostics": {},
            **tables,
        })  # fmt: skip
