# SPDX-License-Identifier: MIT
"""The report on a graph for TORCH_LOGS="+torch_spyre.inductor"."""

import collections
import logging

import torch

from ..inductor import log
from .views import on_card, static, tensor_of, view_of


def names(nodes):
    """Returns the operations in the order of their first use, with their counts, as text."""
    count = collections.Counter(str(n.target) for n in nodes)
    return ", ".join(f"{name} x{n}" if n > 1 else name for name, n in count.items())


def divisions(plan):
    """Yields a line for each step of a plan: its operation and division over the cores."""
    for step in plan["steps"]:
        sizes = " ".join(f"{d}={n}" for d, n in zip(step["dims"], step["sizes"]))
        slices = " ".join(f"{d}/{n}" for d, n in zip(step["dims"], step["slices"]) if n > 1)
        asked = " ".join(f"{d}/{n}" for d, n in zip(step["dims"], step["asked"]) if n)
        yield (
            f"{step['op']}: {sizes}; cores {step['cores']}{', ' + slices if slices else ''}"
            f"{'; asked for ' + asked if asked else ''}"
        )


def describe(kernel):
    """Logs a kernel: its operations, plan, memory and copies of inputs."""
    plan = kernel.program.graph.plan()
    log.info(
        "%s: %d operations (%s), %d inputs, %d outputs, %d steps, LX %d of %d bytes, "
        "pool %d bytes, modelled %d cycles, bundle %s",
        kernel.name,
        len(kernel.group.nodes),
        names(kernel.group.nodes),
        len(kernel.inputs),
        len(kernel.outputs),
        len(plan["steps"]),
        plan["lx_bytes"],
        plan["lx_capacity"],
        plan["pool_bytes"],
        plan["cycles"],
        kernel.directory,
    )
    for line in divisions(plan):
        log.log(logging.INFO if "asked for" in line else logging.DEBUG, "%s: %s", kernel.name, line)
    for view in kernel.group.copies:
        log.info(
            "%s: copies its input %s, size %s stride %s offset %d: no stick layout describes it",
            kernel.name,
            view.base,
            list(view.size),
            list(view.stride),
            view.offset,
        )


def eager(graph, partition):
    """Logs the operations that run eagerly, with the reasons."""
    for node in graph.nodes:
        reason = partition.reasons.get(node)
        if reason is None or partition.grouped(node) or not node.users:
            continue
        if tensor_of(node) is not None and view_of(node).base is not node:
            continue
        log.info("eager %s (%s): %s", node.target, node, reason)


def symbols(graph):
    """Logs the inputs whose sizes are symbols, as each of their sizes needs its own bundles."""
    for node in graph.nodes:
        value = node.meta.get("val")
        if node.op != "placeholder" or not isinstance(value, torch.Tensor) or not on_card(node):
            continue
        dynamic = [d for d, s in enumerate(value.shape) if isinstance(s, torch.SymInt)]
        if dynamic:
            log.info(
                "%s: dims %s are dynamic, now of size %s; each size has its own "
                "bundles",
                node,
                dynamic,
                list(static(value.shape)),
            )


def first_use(name, values):
    """Logs the first call of a kernel with these sizes."""
    log.info("%s: first call with the sizes %s", name, list(values))


def report(graph, partition, kernels):
    """Logs the result of the pass over a graph, if the log is enabled."""
    if not log.isEnabledFor(logging.INFO):
        return
    symbols(graph)
    for kernel in kernels:
        describe(kernel)
    eager(graph, partition)
    log.info("%d kernels, %d eager operations", len(kernels), len(partition.reasons))
