# SPDX-License-Identifier: MIT
"""The model runner: vLLM's, with buffers on the host and the model on a card."""

import torch
from vllm.forward_context import get_forward_context
from vllm.logger import init_logger
from vllm.model_executor.model_loader import get_model
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

from . import mamba, states, weights
from .model import CardModel

logger = init_logger(__name__)


class SpyreModelRunner(GPUModelRunner):
    """Prepares steps on the host, as vLLM does, and runs the model's forward on the card."""

    def __init__(self, vllm_config, device, card):
        super().__init__(vllm_config, device)
        self.use_cuda_graph = False
        self.card = card

    def load_model(self, load_dummy_weights=False, *, model=None):
        if load_dummy_weights:
            self.load_config.load_format = "dummy"
        model = model or get_model(vllm_config=self.vllm_config)
        weights.move(model, self.card)
        # Collectives between processes cannot be captured.
        graphs = not (
            self.model_config.enforce_eager
            or self.is_pooling_model
            or self.parallel_config.world_size > 1
        )
        self.model = CardModel(model, self.card, graphs)
        self.model_memory_usage = weights.size(model)
        logger.info("the model takes %.3f GiB on %s", self.model_memory_usage / 2**30, self.card)

    def get_model(self):
        return self.model.model

    def make_rows(self, kv_cache_config):
        """Returns the rows of state caches, and makes what gives them to requests.

        A request that runs has a page in each group, and page 0 belongs to none.
        """
        groups = max(1, len(kv_cache_config.kv_cache_groups))
        most = (kv_cache_config.num_blocks - 1) // groups
        requests = min(self.scheduler_config.max_num_seqs, most)
        self.rows = states.Rows(requests)
        return requests + 1

    def initialize_metadata_builders(self, kv_cache_config, kernel_block_sizes):
        super().initialize_metadata_builders(kv_cache_config, kernel_block_sizes)
        for group in self._attn_group_iterator():
            builder = group.get_metadata_builder()
            if isinstance(builder, mamba.SpyreStateMetadataBuilder):
                builder.rows = lambda: self.rows.of(self.input_batch.req_ids)

    def _update_states(self, scheduler_output):
        """Takes rows back before requests that are new take them."""
        preempted = scheduler_output.preempted_req_ids or ()
        for request in (*scheduler_output.finished_req_ids, *preempted):
            self.rows.release(request)
        return super()._update_states(scheduler_output)

    def _init_kv_zero_meta(self):
        """Pages are not cleared for a request: masks hide what it has not written, and states of
        new requests are zero."""

    def initialize_kv_cache_tensors(
        self, kv_cache_config, kernel_block_sizes, kv_cache_allocation_context=None
    ):
        """Makes the two tensors of each layer. The page after the last is never written: it has
        the keys of sinks and of padding."""
        caches = {}
        context = self.compilation_config.static_forward_context
        rows = self.make_rows(kv_cache_config)
        for group in kv_cache_config.kv_cache_groups:
            for name in group.layer_names:
                if isinstance(context[name], mamba.SpyreMixer):
                    caches[name] = context[name].kv_cache = context[name].caches(rows, self.card)
                    continue
                spec = context[name].get_kv_cache_spec(self.vllm_config)
                if spec is None:  # of an encoder
                    continue
                # The setting of the block size is by now the smallest of all groups.
                size = (kv_cache_config.num_blocks + 1) * group.kv_cache_spec.block_size
                width = spec.num_kv_heads * spec.head_size
                caches[name] = tuple(
                    torch.zeros(size, width, dtype=spec.dtype, device=self.card) for _ in "kv"
                )
                context[name].kv_cache = caches[name]
        self.kv_caches.extend(caches.values())
        return caches

    def _has_images(self, scheduler_output):
        """Returns True if tokens of the step are parts of an image."""
        for request, tokens in scheduler_output.num_scheduled_tokens.items():
            state = self.requests[request]
            first = state.num_computed_tokens
            for feature in state.mm_features:
                place = feature.mm_position
                if place.offset < first + tokens and first < place.offset + place.length:
                    return True
        return False

    def _preprocess(self, scheduler_output, num_input_tokens, intermediate_tensors=None):
        """Embeds tokens on the host for steps with images only: vLLM would do so for each step of
        a model that takes images, also for those that are replayed."""
        takes = self.supports_mm_inputs
        self.supports_mm_inputs = takes and self._has_images(scheduler_output)
        try:
            return super()._preprocess(scheduler_output, num_input_tokens, intermediate_tensors)
        finally:
            self.supports_mm_inputs = takes

    def _execute_mm_encoder(self, scheduler_output):
        """Places the encoder's inputs on the card, but for the sizes that vLLM keeps on the host."""
        host, self.device = self.device, self.card
        try:
            return super()._execute_mm_encoder(scheduler_output)
        finally:
            self.device = host

    def _model_forward(
        self, input_ids=None, positions=None, intermediate_tensors=None, inputs_embeds=None,
        **model_kwargs,
    ):  # fmt: skip
        metadata = get_forward_context().attn_metadata.values()
        parts = list({id(part): part for part in metadata}.values())
        given = input_ids if inputs_embeds is None else inputs_embeds
        hidden = self.model.forward_step(given, positions, parts)
        # Sums of rows of any number, and norms of them, are the host's.
        return hidden.cpu() if self.is_pooling_model else hidden

    def _sample(self, logits, spec_decode_metadata):
        """Samples; what is drawn for prompts with chunks to come is discarded, so that generators
        go back to where they were: a seed gives the same tokens however its prompt is divided."""
        rows = self.discard_request_mask.np[: self.input_batch.num_reqs].nonzero()[0]
        discarded = [self.input_batch.generators.get(int(row)) for row in rows]
        states = [(one, one.get_state()) for one in discarded if one is not None]
        try:
            return super()._sample(logits, spec_decode_metadata)
        finally:
            for generator, state in states:
                generator.set_state(state)

    def _bookkeeping_sync(self, *arguments):
        """Hides the generators, which vLLM would wind back by an offset: the host's have none."""
        generators, self.input_batch.generators = self.input_batch.generators, {}
        try:
            return super()._bookkeeping_sync(*arguments)
        finally:
            self.input_batch.generators = generators

    def _sync_device(self):
        torch.spyre.synchronize(self.card)

    def _to_list(self, sampled_token_ids):
        return sampled_token_ids.tolist()
