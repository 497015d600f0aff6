# SPDX-License-Identifier: MIT
"""Imports between the modules of the compiler."""

import ast
import graphlib
import importlib.util
import pathlib

import torch_spyre

ROOT = pathlib.Path(torch_spyre.__file__).parent / "_inductor"
PACKAGE = "torch_spyre._inductor"


def name_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join((PACKAGE, *(part for part in parts if part != "__init__")))


#: Modules by name. The package itself has nothing that its modules import.
MODULES = {name_of(path): path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py"}


def imported(module):
    """The modules that a module imports, at its top or in a function."""
    path, found = MODULES[module], set()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            name = importlib.util.resolve_name(name, package)
            given = {f"{name}.{alias.name}" for alias in node.names} & set(MODULES)
            found |= given or {name} & set(MODULES)
    return found


def test_no_module_imports_itself():
    """Not by a path of others either, even if an import is in a function."""
    graph = {module: imported(module) for module in MODULES}
    assert f"{PACKAGE}.views" in graph[f"{PACKAGE}.placement"]
    order = list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError
    assert set(order) == set(MODULES)
