# SPDX-License-Identifier: MIT
"""Mixtures of experts: vLLM's layer in operations that the card has kernels for.

A token's rows are sorted by their expert, and each expert's rows are one group of a product.
"""

import torch
import torch.nn.functional as F
from vllm.model_executor.layers.fused_moe.activation import MoEActivation
from vllm.model_executor.layers.fused_moe.unquantized_fused_moe_method import (
    UnquantizedFusedMoEMethod,
)

#: GPT-OSS's gate: its slope, and the limit of both halves.
ALPHA, LIMIT = 1.702, 7.0

#: Names of vLLM's kernels that choose experts; its build for an empty target has none.
_kernels = torch.library.Library("_moe_C", "FRAGMENT")
_ARGUMENTS = (
    "(Tensor(a!) topk_weights, Tensor(b!) topk_indices, Tensor(c!) token_expert_indices, "
    "Tensor gating_output, bool renormalize, Tensor? bias, Tensor? is_padding) -> ()"
)


def choose(scores, weights, ids, renormalize, bias):
    """Writes the experts with the highest scores, and their weights, to @ids and @weights.

    @bias takes part in the choice only.
    """
    index = (scores if bias is None else scores + bias).topk(ids.shape[-1])[1]
    value = scores.gather(-1, index)
    if renormalize:
        value = value / value.sum(-1, keepdim=True)
    weights.copy_(value)
    ids.copy_(index)


def topk_softmax(weights, ids, _rows, logits, renormalize, bias, _padding):
    choose(logits.float().softmax(-1), weights, ids, renormalize, bias)


def topk_sigmoid(weights, ids, _rows, logits, renormalize, bias, _padding):
    choose(logits.float().sigmoid(), weights, ids, renormalize, bias)


for _kernel in topk_softmax, topk_sigmoid:
    _kernels.define(_kernel.__name__ + _ARGUMENTS)
    _kernels.impl(_kernel.__name__, _kernel, "PrivateUse1")


def _clamped_swiglu(gate, up):
    gate, up = gate.clamp(max=LIMIT), up.clamp(-LIMIT, LIMIT)
    return (up + 1) * (gate * torch.sigmoid(gate * ALPHA))


#: What is made of the two halves of an expert's first product.
ACTIVATIONS = {
    MoEActivation.SILU: lambda gate, up: F.silu(gate) * up,
    MoEActivation.GELU: lambda gate, up: F.gelu(gate) * up,
    MoEActivation.GELU_TANH: lambda gate, up: F.gelu(gate, approximate="tanh") * up,
    MoEActivation.SWIGLUOAI: _clamped_swiglu,
}


class SpyreExperts(UnquantizedFusedMoEMethod):
    """Replaces vLLM's method for experts whose weights are not quantised."""

    #: The router chooses experts before forward_oot().
    is_monolithic = False

    def process_weights_after_loading(self, layer):
        """Puts the rows of gates, which GPT-OSS has in turn with the others, before these."""
        super().process_weights_after_loading(layer)
        if layer.activation not in ACTIVATIONS:
            raise ValueError(
                f"cannot serve experts with activation {layer.activation.value} on spyre: the "
                f"card has {', '.join(one.value for one in ACTIVATIONS)}; choose another model"
            )
        if layer.activation is MoEActivation.SWIGLUOAI:
            for tensor in (layer.w13_weight, getattr(layer, "w13_bias", None)):
                if tensor is not None:
                    tensor.data = torch.cat([tensor[:, ::2], tensor[:, 1::2]], 1)

    def forward_oot(
        self, layer, x, topk_weights, topk_ids, shared_experts=None, shared_experts_input=None
    ):
        """Returns the weighted sum of the results of each token's experts."""
        top, count = topk_ids.shape[-1], layer.w13_weight.shape[0]
        expert, order = topk_ids.flatten().sort()
        ends = torch.histc(expert.int(), bins=count, min=0, max=count - 1).cumsum(
            0, dtype=torch.int32
        )

        def product(rows, name):
            weight = getattr(layer, f"{name}_weight").transpose(1, 2)
            result = torch._grouped_mm(rows, weight, offs=ends)
            bias = getattr(layer, f"{name}_bias", None)
            return result if bias is None else result + bias.index_select(0, expert)

        rows = product(x.index_select(0, order // top), "w13")
        rows = product(ACTIVATIONS[layer.activation](*rows.chunk(2, -1)), "w2")
        places = torch.empty_like(order)
        places[order] = torch.arange(len(order), device=order.device)
        rows = rows.index_select(0, places).view(len(x), top, -1)
        return (rows * topk_weights.to(rows.dtype).unsqueeze(-1)).sum(1)


def register():
    """Replaces vLLM's layer; once per process."""
    from vllm.model_executor.custom_op import op_registry_oot

    name = UnquantizedFusedMoEMethod.__name__
    if name not in op_registry_oot:
        UnquantizedFusedMoEMethod.register_oot(SpyreExperts, name=name)
