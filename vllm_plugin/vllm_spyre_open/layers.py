# SPDX-License-Identifier: MIT
"""Layers of vLLM in operations for which the card has a kernel each."""

import inspect
import weakref

import torch
import torch.nn.functional as F
from vllm import ir
from vllm.distributed import get_tp_group
from vllm.forward_context import get_forward_context
from vllm.model_executor.custom_op import op_registry_oot
from vllm.model_executor.layers import rotary_embedding
from vllm.model_executor.layers.fusion.mm_input_norm import FusedMMInputNorm
from vllm.model_executor.layers.rotary_embedding import mrope
from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding


def _plain(x, weight, epsilon, variance_size=None):
    return variance_size is None and (weight is None or weight.dtype == x.dtype)


@ir.ops.rms_norm.register_impl("spyre", supports_args=_plain)
def rms_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    epsilon: float,
    variance_size: int | None = None,
) -> torch.Tensor:
    return F.rms_norm(x, x.shape[-1:], weight, epsilon)


def _plain_sum(x, x_residual, weight, epsilon, variance_size=None):
    return _plain(x, weight, epsilon, variance_size)


@ir.ops.fused_add_rms_norm.register_impl("spyre", supports_args=_plain_sum)
def fused_add_rms_norm(
    x: torch.Tensor,
    x_residual: torch.Tensor,
    weight: torch.Tensor | None,
    epsilon: float,
    variance_size: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    total = x + x_residual
    return F.rms_norm(total, total.shape[-1:], weight, epsilon), total


class Rotation:
    """RoPE as products: x * cos + (x @ turn) * sin.

    The matrix exchanges the two numbers of each pair and negates one, which is exact. Halves of a
    head lie within a stick, where the card could only copy them. cos is 1 and sin 0 for numbers
    that are not rotated.
    """

    def step(self):
        """Returns the forward context whose angles are there, None before the first."""

    def tables(self, device, dtype):
        """Makes the tables of all positions, and the matrix, on the card."""
        cos, sin = self.cos_sin_cache.cpu().float().chunk(2, dim=-1)
        size, width = self.head_size, self.rotary_dim
        half = width // 2
        first, second = torch.arange(half), torch.arange(half) + half
        if not self.is_neox_style:
            first, second = torch.arange(half) * 2, torch.arange(half) * 2 + 1
        table = torch.zeros(2, len(cos), size)
        table[0] = 1
        for pair in first, second:
            table[0][:, pair], table[1][:, pair] = cos, sin
        turn = torch.zeros(size, size)
        turn[second, first], turn[first, second] = -1, 1
        self.cos_table, self.sin_table = table.to(dtype).to(device)
        self.turn = turn.to(dtype).to(device)

    def angles(self, positions):
        """Returns cos and sin of the step's positions, [tokens, 1, head size], which all layers
        share: the forward context is a new one for each step."""
        context = get_forward_context()
        if self.step() is not context:
            # The context has the step's plans, which must not live longer.
            self.step = weakref.ref(context)
            self.cos = self.rows(self.cos_table, positions).unsqueeze(1)
            self.sin = self.rows(self.sin_table, positions).unsqueeze(1)
        return self.cos, self.sin

    def rows(self, table, positions):
        """Returns the rows of a table, [tokens, head size]."""
        return table.index_select(0, positions.flatten())

    def rotated(self, x, cos, sin):
        heads = x.reshape(x.shape[0], -1, self.head_size)
        return torch.addcmul(heads * cos, heads @ self.turn, sin).reshape(x.shape)

    def forward_oot(self, positions, query, key=None):
        if not hasattr(self, "turn"):
            self.tables(query.device, query.dtype)
        cos, sin = self.angles(positions)
        query = self.rotated(query, cos, sin)
        return query, None if key is None else self.rotated(key, cos, sin)


class AxesRotation(Rotation):
    """RoPE of positions in three dimensions (M-RoPE): each number of a head follows one of them."""

    def tables(self, device, dtype):
        """Also makes a mask for each dimension; numbers that are not rotated are in the first."""
        super().tables(device, dtype)
        axes, axis = self.axes(), torch.zeros(self.head_size, dtype=torch.int64)
        axis[: self.rotary_dim] = axes.repeat(2) if self.is_neox_style else axes.repeat_interleave(2)
        self.masks = [(axis == one).to(dtype).to(device) for one in range(3)]

    def axes(self):
        """Returns the dimension of each frequency, [rotary dim / 2]."""
        every = torch.arange(3)[:, None].expand(3, self.rotary_dim // 2)
        if self.mrope_interleaved:
            return mrope.apply_interleaved_rope(every, self.mrope_section)
        parts = every.split(self.mrope_section, dim=-1)
        return torch.cat([part[one] for one, part in enumerate(parts)])

    def rows(self, table, positions):
        if positions.dim() == 1:
            return super().rows(table, positions)
        first, *others = (
            table.index_select(0, places) * mask
            for places, mask in zip(positions, self.masks, strict=True)
        )
        return sum(others, first)


class ImageNorm(FusedMMInputNorm):
    """Normalisation of the bytes of images, in fp32."""

    def forward_oot(self, pixel_values, visual_dtype):
        return self.forward_native(pixel_values.float(), visual_dtype)


class VocabularyPart(VocabParallelEmbedding):
    """An embedding of which the card has some of the rows.

    Rows are numbered in 32 bits: differences of int64, whose range the host does not know, would be
    computed there. A part has no rows for adapters, which are refused.
    """

    def forward(self, input_):
        if self.tp_size == 1:
            return super().forward(input_)
        part = self.shard_indices
        row = input_.int() - part.org_vocab_start_index
        held = (row >= 0) & (row < part.num_org_elements)
        # The sum over all ranks has the row of the only one that holds it.
        rows = self.quant_method.embedding(self, torch.where(held, row, 0))
        rows = rows.masked_fill(~held.unsqueeze(-1), 0)
        if not self.reduce_results:
            return rows
        return (self.parallel_group or get_tp_group()).all_reduce(rows)


def register():
    """Replaces vLLM's embeddings, of tokens and of positions, and its norm of images; once per
    process."""
    axes = mrope.MRotaryEmbedding
    for layer, ours in (
        (VocabParallelEmbedding, VocabularyPart),
        (FusedMMInputNorm, ImageNorm),
        (axes, type(f"Spyre{axes.__name__}", (AxesRotation, axes), {})),
    ):
        if layer.__name__ not in op_registry_oot:
            layer.register_oot(ours, name=layer.__name__)
    base = rotary_embedding.RotaryEmbedding
    for name, member in vars(rotary_embedding).items():
        if (
            inspect.isclass(member)
            and issubclass(member, base)
            and member.forward_native is base.forward_native
            and name not in op_registry_oot
        ):
            member.register_oot(type(f"Spyre{name}", (Rotation, member), {}), name=name)
