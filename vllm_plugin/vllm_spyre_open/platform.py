# SPDX-License-Identifier: MIT
"""The platform: what vLLM asks about the device, and its defaults and limits.

It must not import torch_spyre: processes without a worker load it too.
"""

import os
import sys

import torch
from vllm.logger import init_logger
from vllm.platforms.interface import Platform, PlatformEnum

from . import refusals

logger = init_logger(__name__)

#: Requests that run at the same time, if the user does not say.
MAX_NUM_SEQS = 8
#: Tokens of a step, if the user does not say: the largest prompt chunk.
MAX_NUM_BATCHED_TOKENS = 512
#: Longest sequence, if the user does not say.
MAX_MODEL_LEN = 4096
#: Seconds that requests have to end after SIGTERM, if the user does not say.
SHUTDOWN_TIMEOUT = 30


def _default(parser, name, value):
    """Replaces the default of an option, if the parser has it."""
    if parser is not None and any(a.dest == name for a in parser._actions):
        parser.set_defaults(**{name: value})


def _is_open():
    """Returns True if this process uses a card."""
    return "torch_spyre" in sys.modules and torch.spyre.is_initialized()


def _read_query_scale(model):
    """Gives vLLM's Mistral layers the growth of queries with their position (Ministral 3).

    They take it from a setting of Mistral's own format; transformers has it in rope_parameters.
    """
    text = model and model.hf_text_config
    rope = getattr(text, "rope_parameters", None) or {}
    beta = rope.get("llama_4_scaling_beta")
    length = rope.get("original_max_position_embeddings")
    if beta and length and not getattr(text, "llama_4_scaling", None):
        text.llama_4_scaling = {"beta": beta, "original_max_position_embeddings": length}


def _without_video(model):
    """Limits videos to none, so that vLLM refuses requests with one; its default is any number."""
    if model is not None and model.is_multimodal_model:
        from vllm.config.multimodal import VideoDummyOptions

        model.multimodal_config.limit_per_prompt["video"] = VideoDummyOptions(count=0)


class SpyrePlatform(Platform):
    """Spyre cards. Buffers of the scheduler and the sampler stay on the host, as device_type says;
    weights, activations and the KV cache are on the card."""

    _enum = PlatformEnum.OOT
    device_name = "spyre"
    device_type = "cpu"
    dispatch_key = "PrivateUse1"
    dist_backend = "spyreccl"
    device_control_env_var = "SPYRE_DEVICES"
    simple_compile_backend = "eager"

    @property
    def supported_dtypes(self):
        return [getattr(torch, name) for name in refusals.DTYPES]

    @classmethod
    def check_if_supports_dtype(cls, dtype):
        name = str(dtype).removeprefix("torch.")
        if name not in refusals.DTYPES:
            raise ValueError(
                f"cannot serve dtype {name} on spyre: the card has no products in it; choose of "
                f"{', '.join(refusals.DTYPES)}"
            )

    @classmethod
    def get_device_name(cls, device_id=0):
        return "spyre"

    @classmethod
    def get_device_total_memory(cls, device_id=0):
        """Returns the bytes of the card's memory in a process that has opened it.

        vLLM asks in the process of the server as well, to choose its defaults, and takes an error
        as an answer. A card opened there would be one that no child may use.
        """
        if not _is_open():
            raise RuntimeError(
                "cannot tell the memory of a card in this process: the worker alone opens it"
            )
        return torch.spyre.mem_get_info(device_id)[1]

    @classmethod
    def get_current_memory_usage(cls, device=None):
        return float(torch.spyre.memory_allocated()) if _is_open() else 0.0

    @classmethod
    def set_device(cls, device):
        """Buffers are on the host; the worker selects its card."""

    @classmethod
    def manual_seed_all(cls, seed):
        """Sampling draws its numbers on the host."""
        torch.manual_seed(seed)

    @classmethod
    def inference_mode(cls):
        return torch.no_grad()

    @classmethod
    def is_pin_memory_available(cls):
        """Buffers of the host are as large as a step and copied once."""
        return False

    @classmethod
    def import_kernels(cls):
        """There are no C kernels: vLLM is built for an empty target."""

    @classmethod
    def import_ir_kernels(cls):
        from . import layers  # noqa: F401

    @classmethod
    def get_default_ir_op_priority(cls, vllm_config):
        from vllm.config.kernel import IrOpPriorityConfig

        norms = {name: ["spyre", "native"] for name in ("rms_norm", "fused_add_rms_norm")}
        return IrOpPriorityConfig.with_default(["native"], **norms)

    @classmethod
    def register_triton_kernel_overrides(cls):
        from vllm.triton_utils.dispatcher import register_kernels

        from .slots import slot_mapping

        register_kernels(
            {"vllm.v1.worker.block_table.ComputeSlotMappingKernel.kernel": slot_mapping}
        )

    @classmethod
    def pre_register_and_update(cls, parser=None):
        _default(parser, "max_num_seqs", MAX_NUM_SEQS)
        _default(parser, "max_num_batched_tokens", MAX_NUM_BATCHED_TOKENS)

    @classmethod
    def apply_config_platform_defaults(cls, vllm_config):
        from vllm.config import CompilationMode, CUDAGraphMode

        compilation = vllm_config.compilation_config
        compilation.mode = CompilationMode.NONE
        compilation.cudagraph_mode = CUDAGraphMode.NONE
        if not {"all", "none"} & set(compilation.custom_ops):
            compilation.custom_ops.append("all")

    @classmethod
    def check_and_update_config(cls, vllm_config):
        refusals.check_config(vllm_config)
        _read_query_scale(vllm_config.model_config)
        _without_video(vllm_config.model_config)
        parallel = vllm_config.parallel_config
        if parallel.worker_cls == "auto":
            parallel.worker_cls = "vllm_spyre_open.worker.SpyreWorker"
        parallel.disable_custom_all_reduce = True
        cache = vllm_config.cache_config
        if not cache.user_specified_block_size:
            cache.block_size = refusals.PAGE
        scheduler = vllm_config.scheduler_config
        hybrid = vllm_config.model_config is not None and vllm_config.model_config.is_hybrid
        if hybrid:
            cls._without_prefix_caching(vllm_config)
        if scheduler.disable_hybrid_kv_cache_manager is None:
            # Layers with a window keep the pages of those without one: each layer has a cache of
            # its own, which would have to hold the pages of both kinds.
            scheduler.disable_hybrid_kv_cache_manager = not hybrid
        scheduler.async_scheduling = False
        vllm_config.compilation_config.cudagraph_capture_sizes = []
        # Without a timeout vLLM kills the engine at once, and its server then waits for the streams
        # that the engine had no time to end.
        vllm_config.shutdown_timeout = vllm_config.shutdown_timeout or SHUTDOWN_TIMEOUT
        # A card must not be used in a forked child of a process that has opened it.
        os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "spawn"

    @classmethod
    def _without_prefix_caching(cls, vllm_config):
        """Turns off prefix caching, which is vLLM's default: it would need the states at the ends
        of pages, of which the card keeps the last one only."""
        cache = vllm_config.cache_config
        if cache.enable_prefix_caching:
            logger.warning(
                "prefix caching is off: the card keeps one state of each request, that of its "
                "last token; pass --no-enable-prefix-caching to be silent"
            )
        cache.enable_prefix_caching = False
        cache.mamba_cache_mode = "none"
        cache.mamba_block_size = vllm_config.model_config.max_model_len

    @classmethod
    def check_max_model_len(cls, max_model_len):
        """Limits the length that a model's configuration gives if the user gave none."""
        if max_model_len > MAX_MODEL_LEN:
            logger.info(
                "sequences are limited to %d tokens of %d; pass --max-model-len for more",
                MAX_MODEL_LEN, max_model_len,
            )  # fmt: skip
        return min(max_model_len, MAX_MODEL_LEN)

    @classmethod
    def get_attn_backend_cls(cls, selected_backend, attn_selector_config, num_heads=None):
        refusals.check_attention(attn_selector_config)
        return "vllm_spyre_open.attention.SpyreAttentionBackend"

    @classmethod
    def support_hybrid_kv_cache(cls):
        """Returns True: attention and layers with a state have pages of their own."""
        return True

    @classmethod
    def opaque_attention_op(cls):
        return False

    @classmethod
    def validate_request(cls, processed_inputs, params):
        refusals.check_request(params)
