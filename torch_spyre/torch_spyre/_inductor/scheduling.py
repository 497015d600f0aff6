# SPDX-License-Identifier: MIT
"""Inductor's back end for the card: what it schedules, and the lines that it writes.

All nodes of the card are kernels that came whole from the partition, or eager
operations, so there is nothing to fuse and no loop to write.
"""

from torch._inductor.codegen.wrapper import PythonWrapperCodegen, SubgraphPythonWrapperCodegen
from torch._inductor.scheduler import BaseScheduling
from torch.utils._ordered_set import OrderedSet


class SpyreScheduling(BaseScheduling):
    def get_backend_features(self, device):
        return OrderedSet()

    def group_fn(self, sizes):
        return tuple(tuple(size) for size in sizes)

    def can_fuse_vertical(self, node1, node2):
        return False

    def can_fuse_horizontal(self, node1, node2):
        return False

    def codegen_node(self, node):
        origins = sorted({str(o.target) for n in node.get_nodes() for o in n.node.origins})
        raise NotImplementedError(
            f"torch.compile for spyre has no kernel for {', '.join(origins) or node}; "
            "run this part eagerly (torch.compiler.disable) and report it"
        )

    def codegen_sync(self):
        pass

    def ready_to_flush(self):
        return False

    def flush(self):
        pass


class SpyreWrapperCodegen(PythonWrapperCodegen):
    """The wrapper in Python, with a kernel for each group."""

    def __init__(self):
        super().__init__()
        self.groups = {}

    @staticmethod
    def create(is_subgraph, subgraph_name, parent_wrapper, partition_signatures=None):
        if is_subgraph:
            return SubgraphPythonWrapperCodegen(
                subgraph_name, parent_wrapper, partition_signatures
            )
        return SpyreWrapperCodegen()

    def generate_group(self, node):
        """One call of a group; its kernel is made when the wrapper is loaded."""
        if not self.groups:
            self.header.writeline("from torch_spyre._inductor.kernel import group as spyre_group")
        if node.specification not in self.groups:
            name = f"{node.kernel_name}_{len(self.groups)}"
            self.groups[node.specification] = name
            self.header.writeline(f"{name} = spyre_group({node.specification!r})")
        arguments = [tensor.codegen_reference() for tensor in node.inputs]
        arguments += [self.codegen_sizevar(size) for size in node.constant_args]
        self.writeline(
            f"{node.get_name()} = {self.groups[node.specification]}({', '.join(arguments)})"
        )
