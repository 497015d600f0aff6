# SPDX-License-Identifier: MIT
"""The computation of several cards on one card, with the same bits.

Each rank's part of a module computes in turn. Where ranks would add their results, these are
added in the order of the ranks in fp32 and rounded once, as the collectives do it.
"""

import copy

import torch
import transformers
from transformers.distributed import DistributedConfig


class Parts(torch.nn.Module):
    """The parts of a module that the ranks have."""

    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)


class Added(Parts):
    """Adds the results; a bias is added once, to the sum."""

    def __init__(self, parts, bias=None):
        super().__init__(parts)
        self.bias = bias

    def total(self, results):
        """Returns the sum of the ranks' results, rounded once."""
        total = results[0].float()
        for result in results[1:]:
            total = total + result.float()
        total = total.to(results[0].dtype)
        return total if self.bias is None else total + self.bias

    def forward(self, *args, **kwargs):
        """Returns the sum, and of several results the first one's sum and the others of rank 0."""
        results = [part(*args, **kwargs) for part in self.parts]
        if not isinstance(results[0], tuple):
            return self.total(results)
        return self.total([result[0] for result in results]), *results[0][1:]


class Experts(Added):
    """Ranks have some experts each, and compute all tokens with them."""

    def forward(self, hidden_states, indices, weights):
        """Returns the sum of the results; experts of other ranks have the weight 0."""
        results = []
        for rank, part in enumerate(self.parts):
            count = part.num_experts
            elsewhere = indices // count != rank
            local = torch.where(elsewhere, count, indices % count)
            results.append(part(hidden_states, local, weights.masked_fill(elsewhere, 0.0)))
        return self.total(results)


class Gathered(Parts):
    """Joins the results along the last dim."""

    def forward(self, x):
        """Returns the joined results."""
        return torch.cat([part(x) for part in self.parts], -1)


#: Styles of transformers and the dim along which they divide a parameter.
DIMS = {
    "colwise": lambda parameter: max(parameter.dim() - 2, 0),
    "colwise_gather_output": lambda parameter: max(parameter.dim() - 2, 0),
    "rowwise": lambda parameter: parameter.dim() - 1,
    "grouped_gemm": lambda parameter: 0,
}


def part_of(module, name, styles, rank, size):
    """Returns a copy of a module with a rank's part of its parameters."""
    part = copy.deepcopy(module)
    for key, parameter in list(part.named_parameters()):
        style = styles.get(f"{name}.{key}")
        if style is None:
            continue
        owner, _, leaf = key.rpartition(".")
        owner = part.get_submodule(owner)
        if style == "rowwise" and leaf == "bias":
            owner.bias = None
            continue
        mine = parameter.detach().chunk(size, DIMS[style](parameter))[rank].contiguous()
        setattr(owner, leaf, torch.nn.Parameter(mine, requires_grad=False))
    return part


def attention_layers(parts, layers):
    """Gives each rank's attention a cache of its own."""
    for rank, part in enumerate(parts):
        if hasattr(part, "layer_idx"):
            part.layer_idx += rank * layers


def divide(model, plan, size):
    """Replaces the modules of a model that a plan divides by their parts."""
    tensor, experts, _ = model._resolve_parallel_plans(DistributedConfig(**plan))
    styles = tensor | experts
    for name, style in styles.items():
        if style == "rowwise" and not name.endswith((".weight", ".bias")):
            name, _, last = name.rpartition(".")
        elif style not in ("colwise_gather_output", "ep_dispatch_experts") or name.endswith(
            (".weight", ".bias")
        ):
            continue
        module = model.get_submodule(name)
        parts = [part_of(module, name, styles, rank, size) for rank in range(size)]
        if style == "rowwise":
            attention_layers(parts, model.config.num_hidden_layers)
            new = Added(parts, getattr(module, last).bias)
        elif style == "ep_dispatch_experts":
            for part in parts:
                part.num_experts //= size
                part._is_expert_parallel = True
            new = Experts(parts)
        else:
            new = Gathered(parts)
        model.set_submodule(name, new)


def cache(config, size):
    """Returns a cache of keys and values with the layers of all ranks."""
    result = transformers.DynamicCache(config=config)
    result.layers = [copy.deepcopy(layer) for _ in range(size) for layer in result.layers]
    return result
