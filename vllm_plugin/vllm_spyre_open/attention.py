# SPDX-License-Identifier: MIT
"""Attention with a KV cache in device memory.

Keys and values of a layer are two tensors [slots, kv heads * head size]; a page is a range of
slots. The tokens of a step are written by SCATTER (index_copy_), and those that it reads are
gathered (index_select), in groups of requests of similar length.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionImpl,
    AttentionMetadataBuilder,
    AttentionType,
    MultipleOf,
)

from . import batches, refusals

DEVICE = "spyre"


class SpyreAttentionBackend(AttentionBackend):
    """Names the parts of the backend, and the settings that they take."""

    supported_dtypes = [torch.float16, torch.bfloat16, torch.float32]
    supported_kv_cache_dtypes = ["auto"]

    @staticmethod
    def get_name():
        return "CUSTOM"

    @staticmethod
    def get_impl_cls():
        return SpyreAttentionImpl

    @staticmethod
    def get_builder_cls():
        return SpyreAttentionMetadataBuilder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec=None):
        return [MultipleOf(refusals.PAGE)]

    @classmethod
    def supports_sink(cls):
        return True

    @classmethod
    def supports_attn_type(cls, attn_type):
        return attn_type in (AttentionType.DECODER, AttentionType.ENCODER_ONLY)


@dataclass
class CardGroup:
    """A batches.Group on the card; mask is [requests, 1, queries, keys]."""

    shape: batches.Shape
    rows: torch.Tensor
    slots: torch.Tensor
    mask: torch.Tensor


@dataclass
class CardPlan:
    """A batches.Plan on the card."""

    groups: list
    slots: torch.Tensor
    order: torch.Tensor | None


def tensors_of(plan, dtype=None):
    """Returns the tensors of a batches.Plan on the host in the order in which card_plan() takes
    them. Sinks are added to masks, which are of @dtype then; others are bool."""

    def mask_of(group):
        mask = torch.from_numpy(group.mask).unsqueeze(1)
        if dtype is None:
            return mask
        return torch.zeros(mask.shape, dtype=dtype).masked_fill_(~mask, float("-inf"))

    tensors = [torch.from_numpy(plan.slots)]
    if plan.order is not None:
        tensors.append(torch.from_numpy(plan.order))
    for group in plan.groups:
        tensors += [torch.from_numpy(group.rows), torch.from_numpy(group.slots), mask_of(group)]
    return tensors


def card_plan(plan, tensors):
    """Returns a CardPlan of the next tensors of an iterator: those of tensors_of() on the card."""
    slots = next(tensors)
    order = None if plan.order is None else next(tensors)
    groups = [
        CardGroup(group.shape, next(tensors), next(tensors), next(tensors)) for group in plan.groups
    ]
    return CardPlan(groups, slots, order)


@dataclass
class SpyreAttentionMetadata:
    """A plan for each kind of layer in a group of the KV cache: those of the host, and on the
    card once the runner has copied them."""

    plans: dict
    dtype: torch.dtype
    on_card: dict | None = None

    @property
    def key(self):
        """What steps with the same programs have in common."""
        return tuple((layer, plan.key) for layer, plan in self.plans.items())

    @property
    def decodes(self):
        """True if every request has one token."""
        groups = (group for plan in self.plans.values() for group in plan.groups)
        return all(group.shape.queries == 1 for group in groups)

    def tensors(self):
        """Returns the tensors of all plans on the host."""
        return [
            tensor
            for layer, plan in self.plans.items()
            for tensor in tensors_of(plan, self.dtype if layer.sinks else None)
        ]

    def place(self, tensors):
        """Takes the same tensors on the card from an iterator."""
        self.on_card = {layer: card_plan(plan, tensors) for layer, plan in self.plans.items()}


class SpyreAttentionMetadataBuilder(AttentionMetadataBuilder):
    """Plans a step on the host, once for all layers of a kind."""

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        context = vllm_config.compilation_config.static_forward_context
        # Layers keep their order: plans of two steps have the same key.
        self.layers = list(dict.fromkeys(context[name].impl.layer for name in layer_names))
        self.dtype = vllm_config.model_config.dtype
        self.cache = vllm_config.cache_config

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        meta = common_attn_metadata
        offsets = meta.query_start_loc_cpu.numpy()
        lengths = np.diff(offsets).astype(np.int64)
        ends = meta.seq_lens.numpy().astype(np.int64)
        block = self.kv_cache_spec.block_size
        step = batches.Step(
            offsets[:-1], lengths, ends - lengths, ends, meta.block_table_tensor.numpy(),
            block, self.cache.num_gpu_blocks * block,
        )  # fmt: skip
        tokens = batches.bucket(meta.num_actual_tokens)
        slots = meta.slot_mapping[: meta.num_actual_tokens].numpy()
        plans = {layer: batches.plan(step, layer, tokens, slots) for layer in self.layers}
        return SpyreAttentionMetadata(plans, self.dtype)


class SpyreAttentionImpl(AttentionImpl):
    """Attention of one layer."""

    def __init__(
        self, num_heads, head_size, scale, num_kv_heads=None, alibi_slopes=None,
        sliding_window=None, kv_cache_dtype="auto", logits_soft_cap=None, attn_type="decoder",
        kv_sharing_target_layer_name=None, sinks=None,
    ):  # fmt: skip
        refusals.check_impl(alibi_slopes, logits_soft_cap, kv_sharing_target_layer_name)
        self.num_heads, self.head_size, self.scale = num_heads, head_size, float(scale)
        self.num_kv_heads = num_kv_heads or num_heads
        self.kv_cache_dtype = kv_cache_dtype
        self.sinks = sinks
        causal = attn_type == AttentionType.DECODER
        self.layer = batches.Layer(sliding_window or 0, sinks is not None, causal)
        self._sink_rows = {}

    def sink_row(self, keys):
        """Returns [heads, 1, keys] with a head's sink at the last key and zeros elsewhere."""
        if keys not in self._sink_rows:
            row = torch.zeros(self.num_heads, 1, keys, dtype=self.sinks.dtype)
            row[:, 0, -1] = self.sinks.detach().cpu()
            self._sink_rows[keys] = row.to(DEVICE)
        return self._sink_rows[keys]

    def mask_of(self, group):
        """Returns what is added to the scores of a group, or which of them count."""
        if self.sinks is None:
            return group.mask
        return group.mask + self.sink_row(group.shape.keys)

    def heads(self, cache, group):
        """Gathers the keys or values of a group: [requests, kv heads, keys, head size]."""
        shape = group.shape
        rows = cache.index_select(0, group.slots)
        return rows.view(shape.requests, shape.keys, self.num_kv_heads, -1).transpose(1, 2)

    def decode(self, query, group, key, value):
        """One query per request: heads that share a key are its rows, so that none is repeated."""
        count, shared = group.shape.requests, self.num_heads // self.num_kv_heads
        mask = self.mask_of(group)
        if mask.shape[1] > 1:
            mask = mask.view(count, self.num_kv_heads, shared, -1)
        result = F.scaled_dot_product_attention(
            query.view(count, self.num_kv_heads, shared, -1), key, value, mask, scale=self.scale
        )
        return result.reshape(count, -1)

    def prefill(self, query, group, key, value):
        """Several queries per request; the kernel shares keys among heads."""
        count, queries = group.shape.requests, group.shape.queries
        result = F.scaled_dot_product_attention(
            query.view(count, queries, self.num_heads, -1).transpose(1, 2), key, value,
            self.mask_of(group), scale=self.scale,
            enable_gqa=self.num_heads != self.num_kv_heads,
        )  # fmt: skip
        return result.transpose(1, 2).reshape(count * queries, -1)

    def forward(
        self, layer, query, key, value, kv_cache, attn_metadata, output,
        output_scale=None, output_block_scale=None,
    ):  # fmt: skip
        """Writes the step's keys and values to the cache, and the result to @output."""
        plan = attn_metadata.on_card[self.layer]
        tokens = query.shape[0]
        new = key.reshape(tokens, -1), value.reshape(tokens, -1)
        keys, values = kv_cache if self.layer.causal else new
        if self.layer.causal:
            keys.index_copy_(0, plan.slots, new[0])
            values.index_copy_(0, plan.slots, new[1])
        query = query.reshape(tokens, -1)
        results = []
        for group in plan.groups:
            part = query if plan.order is None else query.index_select(0, group.rows)
            attend = self.decode if group.shape.queries == 1 else self.prefill
            results.append(attend(part, group, self.heads(keys, group), self.heads(values, group)))
        result = results[0] if len(results) == 1 else torch.cat(results)
        if plan.order is not None:
            result = result.index_select(0, plan.order)
        output.view(tokens, -1).copy_(result)
        return output
