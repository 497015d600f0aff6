# SPDX-License-Identifier: MIT
"""Inductor's back end for the card: scheduling, and the lines of generated wrappers.

All nodes of the card are complete kernels of the partition or eager operations, so nothing is
fused and no loops are generated.
"""

import json

from torch._inductor.codegen.wrapper import PythonWrapperCodegen, SubgraphPythonWrapperCodegen
from torch._inductor.ir import FallbackKernel, Layout
from torch._inductor.scheduler import BaseScheduling
from torch.utils._ordered_set import OrderedSet

from .collectives import is_pending
from .provenance import document


class SpyreScheduling(BaseScheduling):
    """The scheduling of nodes on the card, which fuses nothing."""

    def get_backend_features(self, device):
        """Returns no features."""
        return OrderedSet()

    def group_fn(self, sizes):
        """Returns sizes as tuples."""
        return tuple(tuple(size) for size in sizes)

    def can_fuse_vertical(self, node1, node2):
        """Returns False."""
        return False

    def can_fuse_horizontal(self, node1, node2):
        """Returns False."""
        return False

    def codegen_node(self, node):
        """Raises NotImplementedError: a loop has reached the scheduler, which is a defect."""
        origins = sorted({str(o.target) for n in node.get_nodes() for o in n.node.origins})
        raise NotImplementedError(
            f"cannot compile {', '.join(origins) or node} for spyre: it has no kernel; "
            "run this part eagerly (torch.compiler.disable) and report it"
        )

    def codegen_sync(self):
        """Does nothing: the wrapper needs no synchronisation."""
        pass

    def ready_to_flush(self):
        """Returns False."""
        return False

    def flush(self):
        """Does nothing: no kernels are pending."""
        pass


class Lines:
    """The lines of wrappers for the card; the outermost wrapper holds the kernels."""

    def outermost(self):
        """Returns the wrapper that contains this one and is in no other."""
        wrapper = self
        while isinstance(wrapper, SubgraphPythonWrapperCodegen):
            wrapper = wrapper.parent_wrapper
        return wrapper

    def generate_group(self, node):
        """Writes one call of a group."""
        arguments = [tensor.codegen_reference() for tensor in node.inputs]
        arguments += [self.codegen_sizevar(size) for size in node.constant_args]
        kernel = self.outermost().kernel_of(node)
        node.codegen_comment(self, kernel)
        self.writeline(f"{node.get_name()} = {kernel}({', '.join(arguments)})")

    def codegen_multi_output(self, node):
        """Gives a result of an eager operation the strides that Inductor expects.

        A collective may return others than its meta function. Its result has to be the one that
        is waited for, and is given the strides by the wait, since a copy before that would have
        the numbers of a moment at which the collective runs.
        """
        eager = isinstance(node.inputs[0], FallbackKernel)
        if eager and is_pending(node.inputs[0].op_overload):
            node.skip_size_stride_alignment_checks = True
            super().codegen_multi_output(node)
            return
        super().codegen_multi_output(node)
        if not eager or not isinstance(node.layout, Layout):
            return
        if node.get_device().type == "spyre":
            name = node.get_name()
            self.outermost().needs("spyre_laid_out", "kernel", "laid_out")
            size = self.codegen_shape_tuple(node.get_size())
            stride = self.codegen_shape_tuple(node.get_stride())
            self.writeline(f"{name} = spyre_laid_out({name}, {size}, {stride})")


class SpyreSubgraphCodegen(Lines, SubgraphPythonWrapperCodegen):
    """The body of a control flow operation."""


class SpyreWrapperCodegen(Lines, PythonWrapperCodegen):
    """The Python wrapper, with a kernel for each group."""

    def __init__(self):
        super().__init__()
        self.groups, self.imported, self.origins = {}, set(), []

    @staticmethod
    def create(is_subgraph, subgraph_name, parent_wrapper, partition_signatures=None):
        """Makes a wrapper, or one for the body of a control flow operation."""
        if is_subgraph:
            return SpyreSubgraphCodegen(subgraph_name, parent_wrapper, partition_signatures)
        return SpyreWrapperCodegen()

    def needs(self, name, module, function):
        """Adds an import of @function as @name to the header, once."""
        if name not in self.imported:
            self.imported.add(name)
            path = f"torch_spyre._inductor.{module}"
            self.header.writeline(f"from {path} import {function} as {name}")

    def kernel_of(self, node):
        """Returns the name of a group's kernel, which is made when the wrapper is loaded."""
        target = node.target
        if target.specification not in self.groups:
            callee = ("dynamic", "DynamicGroup") if node.constant_args else ("kernel", "group")
            self.needs(f"spyre_{callee[0]}", *callee)
            name = f"{target.__name__}_{len(self.groups)}"
            self.groups[target.specification] = name
            if target.origin:
                self.origins.append((name, target.directory, target.origin))
            self.header.writeline(f"{name} = spyre_{callee[0]}({target.specification!r})")
        return self.groups[target.specification]

    def generate_end(self, result):
        """Writes the call that adds the graph's kernels to the side file of provenance."""
        super().generate_end(result)
        if self.origins:
            text = json.dumps(document(self.origins))
            result.writeline("from torch_spyre._inductor.provenance import publish")
            result.writeline(f"publish({text!r})")
