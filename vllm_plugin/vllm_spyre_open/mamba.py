# SPDX-License-Identifier: MIT
"""Mamba 2 with states in device memory.

A layer has two caches with a row for each running request: the inputs that the next step's
convolution reads, and the state of the scan. The rows of a step's requests are gathered
(index_select, GATHER), and written back in place (index_copy_, SCATTER), by indices that the host
makes. Everything between the projections is computed in fp32.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from vllm.forward_context import get_forward_context
from vllm.model_executor.layers.mamba.mamba_mixer2 import MambaMixer2
from vllm.v1.attention.backend import AttentionBackend, AttentionMetadataBuilder

from . import batches, states


class SpyreStateBackend(AttentionBackend):
    """Names the builder of the plans to vLLM."""

    @staticmethod
    def get_name():
        return "SPYRE_STATE"

    @staticmethod
    def get_builder_cls():
        return SpyreStateMetadataBuilder

    @classmethod
    def is_ssm(cls):
        return True


@dataclass
class CardGroup:
    """A states.Group on the card; what its programs do not read is None."""

    shape: states.Shape
    states: torch.Tensor
    rows: torch.Tensor | None = None
    new: torch.Tensor | None = None
    valid: torch.Tensor | None = None
    last: torch.Tensor | None = None


def card_group(group, ordered, tensors):
    """Returns a CardGroup of the next tensors of an iterator: those of states.Group.arrays()."""
    found = CardGroup(group.shape, next(tensors))
    if ordered:
        found.rows = next(tensors)
    if group.shape.fresh:
        found.new = next(tensors)
    if group.shape.queries > 1:
        found.valid, found.last = next(tensors), next(tensors)
    return found


@dataclass
class SpyreStateMetadata:
    """The plan of all layers with a state: that of the host, and on the card once the runner has
    copied it."""

    plan: states.Plan
    groups: list | None = None
    order: torch.Tensor | None = None

    @property
    def key(self):
        """What steps with the same programs have in common."""
        return self.plan.key

    @property
    def decodes(self):
        """True if every request has one token."""
        return all(group.shape.queries == 1 for group in self.plan.groups)

    @property
    def ordered(self):
        return self.plan.order is not None

    def tensors(self):
        """Returns the tensors of the plan on the host."""
        arrays = [self.plan.order] if self.ordered else []
        for group in self.plan.groups:
            arrays += group.arrays(self.ordered)
        return [torch.from_numpy(array) for array in arrays]

    def place(self, tensors):
        """Takes the same tensors on the card from an iterator."""
        self.order = next(tensors) if self.ordered else None
        self.groups = [card_group(group, self.ordered, tensors) for group in self.plan.groups]


class SpyreStateMetadataBuilder(AttentionMetadataBuilder):
    """Plans a step on the host, once for all groups of layers with a state."""

    supports_update_block_table = True

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        layer = vllm_config.compilation_config.static_forward_context[layer_names[0]]
        self.taps = layer.conv_kernel_size - 1
        self.chunk = vllm_config.model_config.get_mamba_chunk_size()
        #: Returns the rows of the step's requests; the runner's.
        self.rows = None

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        meta = common_attn_metadata
        offsets = meta.query_start_loc_cpu.numpy().astype("int64")
        lengths = offsets[1:] - offsets[:-1]
        starts = meta.seq_lens.numpy().astype("int64") - lengths
        step = states.Step(offsets[:-1], lengths, starts, self.rows())
        tokens = batches.bucket(meta.num_actual_tokens)
        return SpyreStateMetadata(states.plan(step, tokens, self.taps, self.chunk))

    def update_block_table(self, metadata, blk_table, slot_mapping):
        """Returns the same plan for another group of layers: it has no pages."""
        return metadata


class SpyreMixer(MambaMixer2):
    """Replaces vLLM's layer: its weights and projections, and a scan of its own.

    Requests of a group are computed together: x is [requests, queries, heads * size], the steps of
    time [requests, queries, heads], B and C [requests, queries, groups, state size], and the state
    [requests, heads * size, state size].
    """

    def get_attn_backend(self):
        return SpyreStateBackend

    def caches(self, rows, device):
        """Returns new caches with @rows rows, in the dtypes that the settings of vLLM give."""
        dtypes = self.get_state_dtype()
        sizes = (
            (self.conv_kernel_size - 1) * self.tped_conv_size,
            self.tped_intermediate_size * self.ssm_state_size,
        )
        return tuple(
            torch.zeros(rows, size, dtype=dtype, device=device)
            for size, dtype in zip(sizes, dtypes, strict=True)
        )

    def tables(self, device):
        """Makes the weights that are no products' in fp32, once."""
        weight = self.conv1d.weight.detach().cpu().float()
        self.taps = weight.view(len(weight), -1).T.contiguous().to(device)
        bias = self.conv1d.bias
        self.conv_bias = None if bias is None else bias.float()
        self.rate, self.skip = self.A.float(), self.D.float()
        self.time_bias = self.dt_bias.float()
        self.triangles = {}

    def triangle(self, size, device):
        """Returns [size, size], True above the diagonal."""
        if size not in self.triangles:
            above = torch.ones(size, size, dtype=torch.bool).triu(1)
            self.triangles[size] = above.to(device)
        return self.triangles[size]

    def forward(self, hidden_states, mup_vector=None):
        if not hasattr(self, "taps"):
            self.tables(hidden_states.device)
        projected, _ = self.in_proj(hidden_states)
        if mup_vector is not None:
            projected = projected * mup_vector
        inner = self.tped_intermediate_size
        scanned = self.scanned(projected[:, inner:]).to(projected.dtype)
        result, _ = self.out_proj(self.norm(scanned, projected[:, :inner]))
        return result

    def scanned(self, inputs):
        """Returns the results of all groups in the order of the tokens."""
        metadata = get_forward_context().attn_metadata[self.prefix]
        results = []
        for group in metadata.groups:
            part = inputs if group.rows is None else inputs.index_select(0, group.rows)
            results.append(self.scan(part, group))
        result = results[0] if len(results) == 1 else torch.cat(results)
        return result if metadata.order is None else result.index_select(0, metadata.order)

    def scan(self, inputs, group):
        """Returns the results of a group, one row per query, and writes its states."""
        count, queries = group.shape.requests, group.shape.queries
        inputs = inputs.view(count, queries, -1)
        mixed = self.convolved(inputs[..., : self.tped_conv_size], group)
        time = F.softplus(inputs[..., self.tped_conv_size :].float() + self.time_bias)
        if group.valid is not None:
            time = time * group.valid
        x, b, c = self.split_hidden_states_B_C_fn(mixed)
        b, c = (part.view(count, queries, -1, self.ssm_state_size) for part in (b, c))
        cache = self.kv_cache[1]
        state = self.state_of(cache, group).float().view(count, -1, self.ssm_state_size)
        steps = self.step if queries == 1 else self.chunks
        result, state = steps(x, time, b, c, state)
        cache.index_copy_(0, group.states, state.reshape(count, -1).to(cache.dtype))
        result = result + x.view(result.shape) * self.skip.unsqueeze(-1)
        return result.reshape(count * queries, -1)

    def state_of(self, cache, group):
        """Gathers the rows of a group; those of new requests are zero, and not what the last
        request of the row has left."""
        rows = cache.index_select(0, group.states)
        return rows if group.new is None else rows.masked_fill(group.new, 0)

    def convolved(self, inputs, group):
        """Returns the causal convolution of each channel and its activation, in fp32."""
        count, queries = group.shape.requests, group.shape.queries
        taps, cache = self.conv_kernel_size - 1, self.kv_cache[0]
        earlier = self.state_of(cache, group).view(count, taps, -1).to(inputs.dtype)
        both = torch.cat([earlier, inputs], 1)
        if queries == 1:
            left = both[:, 1:]
        else:
            left = both.view(count * (taps + queries), -1).index_select(0, group.last)
        cache.index_copy_(0, group.states, left.reshape(count, -1).to(cache.dtype))
        both = both.float()
        if queries == 1:
            result = (both * self.taps).sum(1, keepdim=True)
        else:
            result = both[:, :queries] * self.taps[0]
            for tap in range(1, taps + 1):
                result = torch.addcmul(result, both[:, tap:][:, :queries], self.taps[tap])
        if self.conv_bias is not None:
            result = result + self.conv_bias
        return F.silu(result)

    def heads(self, x):
        """Returns [..., heads, size] of [..., heads * size]."""
        return x.view(*x.shape[:-1], -1, self.head_dim)

    def step(self, x, time, b, c, state):
        """One query: returns [requests, 1, heads, size] and the next state."""
        count, groups = x.shape[0], b.shape[2]
        decay = (time * self.rate).exp()
        given = (self.heads(x) * time.unsqueeze(-1)).view(count, groups, -1, 1)
        given = given * b.view(count, groups, 1, -1)
        state = self.scaled(state, decay.view(count, -1)) + given.view(state.shape)
        read = state.view(count, groups, -1, self.ssm_state_size) @ c.view(count, groups, -1, 1)
        return read.view(count, 1, -1, self.head_dim), state

    def scaled(self, state, factor):
        """Multiplies the states of a request's heads by [requests, heads]."""
        split = state.view(*factor.shape, self.head_dim, -1)
        return (split * factor[..., None, None]).view(state.shape)

    def chunks(self, x, time, b, c, state):
        """Several queries: returns [requests, queries, heads, size] and the state after them."""
        size = min(x.shape[1], self.model_config.get_mamba_chunk_size())
        results = []
        for first in range(0, x.shape[1], size):
            part = (tensor[:, first : first + size] for tensor in (x, time, b, c))
            result, state = self.chunk(*part, state)
            results.append(result)
        return results[0] if len(results) == 1 else torch.cat(results, 1), state

    def chunk(self, x, time, b, c, state):
        """Attends to the queries of a chunk, with weights that decay, and to the state before it.

        A query's weight is what is left of a key after the steps of time between both.
        """
        count, size, groups = x.shape[0], x.shape[1], b.shape[2]
        given = (self.heads(x) * time.unsqueeze(-1)).transpose(1, 2)
        passed = (time * self.rate).transpose(1, 2).cumsum(-1)
        between = passed.unsqueeze(-1) - passed.unsqueeze(-2)
        decay = between.masked_fill(self.triangle(size, x.device), float("-inf")).exp()
        b, c = b.transpose(1, 2), c.transpose(1, 2)
        weight = (c @ b.transpose(-1, -2)).unsqueeze(2) * decay.view(count, groups, -1, size, size)
        inner = weight.view(count, -1, size, size) @ given
        before = c @ state.view(count, groups, -1, self.ssm_state_size).transpose(-1, -2)
        before = self.heads(before).transpose(2, 3).reshape(inner.shape)
        result = inner + before * passed.exp().unsqueeze(-1)

        end = passed[..., -1:]
        kept = given * (end - passed).exp().unsqueeze(-1)
        kept = kept.transpose(-1, -2).reshape(count, groups, -1, size) @ b
        state = self.scaled(state, end.squeeze(-1).exp()) + kept.view(state.shape)
        return result.transpose(1, 2), state


def register():
    """Replaces vLLM's layer; once per process."""
    from vllm.model_executor.custom_op import op_registry_oot

    if MambaMixer2.__name__ not in op_registry_oot:
        MambaMixer2.register_oot(SpyreMixer, name=MambaMixer2.__name__)
