# SPDX-License-Identifier: MIT
"""Settings and requests that the platform does not serve, refused before anything is loaded.

Each text has the setting, the reason and the remedy.
"""

from vllm.exceptions import VLLMValidationError

#: dtypes of weights and activations: those that the card multiplies.
DTYPES = ("float16", "bfloat16", "float32")
#: Tokens of a page are a multiple of this: a stick of the card has 64 numbers of 16 bits.
PAGE = 64
#: Models whose layers with a state are all Mamba 2, beside attention.
HYBRID = ("GraniteMoeHybridForCausalLM",)

#: Models whose images an encoder on the card turns into embeddings.
VISION = ("Mistral3ForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration")

_PAGES = "a card has all pages of its heads"


def _parallel(config):
    parallel = config.parallel_config
    if parallel.data_parallel_size > 1:
        yield (
            f"data parallelism (--data-parallel-size {parallel.data_parallel_size})",
            "each rank of the engine drives one card and has no exchange with others",
            "start one server per card and put a load balancer in front",
        )
    for name, size, why in (
        ("pipeline", parallel.pipeline_parallel_size, "each worker runs all layers of a model"),
        ("decode-context", parallel.decode_context_parallel_size, _PAGES),
        ("prefill-context", parallel.prefill_context_parallel_size, _PAGES),
    ):
        if size > 1:
            yield (
                f"{name} parallelism (--{name}-parallel-size {size})",
                why,
                "leave it at 1; --tensor-parallel-size divides a model among cards",
            )
    if parallel.enable_expert_parallel:
        yield (
            "expert parallelism (--enable-expert-parallel)",
            "each card has a part of every expert, not some of the experts",
            "leave it out; --tensor-parallel-size divides experts among cards",
        )


def _features(config):
    if config.lora_config is not None:
        yield (
            "LoRA adapters (--enable-lora)",
            "there are no kernels that select an adapter per request",
            "merge the adapter into the weights (PEFT's merge_and_unload) and serve the result",
        )
    if config.speculative_config is not None:
        yield (
            f"speculative decoding ({config.speculative_config.method})",
            "a decode step has one token per request",
            "leave --speculative-config out",
        )
    if config.kv_transfer_config is not None:
        yield (
            "transfer of the KV cache (--kv-transfer-config)",
            "pages lie in device memory in sticks, which connectors do not know",
            "leave it out",
        )
    if config.ec_transfer_config is not None:
        yield (
            "encoders in another process (--ec-transfer-config)",
            "embeddings of images stay in the process of their encoder",
            "leave it out",
        )
    if config.cache_config.cache_dtype != "auto":
        yield (
            f"a KV cache of {config.cache_config.cache_dtype} (--kv-cache-dtype)",
            "pages have the dtype of the model",
            "leave it at auto",
        )
    model = config.model_config
    kinds = config.scheduler_config.disable_hybrid_kv_cache_manager is False
    if kinds and model is not None and not model.is_hybrid:
        yield (
            "pages of windows beside pages of all tokens (--no-disable-hybrid-kv-cache-manager)",
            "each layer's cache would hold the pages of both, beyond the memory given to them",
            "leave it out",
        )
    block = config.cache_config.block_size
    if config.cache_config.user_specified_block_size and block % PAGE:
        yield (
            f"pages of {block} tokens (--block-size)",
            f"a page is a multiple of the {PAGE} numbers of a stick",
            f"choose {-(-block // PAGE) * PAGE}",
        )


def _states(config):
    """Of a model with layers that have a state."""
    architecture = config.model_config.architecture
    if architecture not in HYBRID:
        yield (
            f"layers with a state (Mamba, linear attention) of {architecture}",
            f"the card has those of {', '.join(HYBRID)}, which are Mamba 2",
            "choose one of these, or a model with attention only",
        )
    if config.scheduler_config.disable_hybrid_kv_cache_manager:
        yield (
            "one kind of page for attention and states (--disable-hybrid-kv-cache-manager)",
            "a page holds the keys of some tokens, a state sums up all tokens of a request",
            "leave it out",
        )
    if config.cache_config.use_replayssm:
        yield (
            "states that are made again from their inputs (--use-replayssm)",
            "each step writes the state after its last token",
            "leave it out",
        )
    if config.mamba_config.enable_stochastic_rounding:
        yield (
            "states that are rounded at random (--enable-mamba-cache-stochastic-rounding)",
            "the card rounds to nearest",
            "leave it out; --mamba-ssm-cache-dtype float32 keeps more digits",
        )


def _media(model):
    """Of a model that takes more than text."""
    media = model.multimodal_config
    if media.mm_encoder_only:
        yield (
            "an encoder without its language model (--mm-encoder-only)",
            "the worker serves tokens",
            "leave it out",
        )
    if media.video_pruning_rate:
        yield (
            f"videos of which {media.video_pruning_rate} is left out (--video-pruning-rate)",
            "encoders on the card take images only",
            "leave it out",
        )
    if media.language_model_only:
        return
    if model.architecture not in VISION:
        yield (
            f"images, sound and video of {model.architecture}",
            f"the card has the encoders of {', '.join(VISION)}",
            "pass --language-model-only to serve its text, or choose one of these",
        )
    for kind, limit in media.limit_per_prompt.items():
        if kind != "image" and limit.count:
            yield (
                f"{limit.count} of kind {kind} per prompt (--limit-mm-per-prompt)",
                "encoders on the card take images only",
                f"leave {kind} out",
            )


def _model(config):
    model = config.model_config
    if model is None:
        return
    dtype = str(model.dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        yield (f"dtype {dtype}", "the card has no products in it", f"choose of {', '.join(DTYPES)}")
    if model.quantization:
        yield (
            f"weights quantised by {model.quantization}",
            "its layers call kernels of other devices",
            "serve the weights in float16 or bfloat16",
        )
    if model.use_mla:
        yield (
            "multi-head latent attention",
            "the attention backend keeps keys and values of each head",
            "choose a model with grouped heads",
        )
    if model.is_hybrid or model.is_attention_free:
        yield from _states(config)
    if model.is_multimodal_model:
        yield from _media(model)
    if model.is_encoder_decoder:
        yield (
            "models with encoder and decoder",
            "the attention backend has no cross attention",
            "choose a model with a decoder only",
        )


def check_config(config):
    """Raises ValueError for the first setting of a VllmConfig that the platform does not serve."""
    for part in (_parallel, _features, _model):
        for what, why, remedy in part(config):
            raise ValueError(f"cannot serve {what} on spyre: {why}; {remedy}")


def check_attention(selector):
    """Raises ValueError for a kind of attention that the backend does not compute."""
    if selector.attn_type not in ("decoder", "encoder_only"):
        raise ValueError(
            f"cannot compute attention of type {selector.attn_type} on spyre: the backend computes "
            "that of decoders and of encoders; choose a model with one of both"
        )
    if selector.use_mla or selector.use_sparse:
        kind = "latent" if selector.use_mla else "sparse"
        raise ValueError(
            f"cannot compute {kind} attention on spyre: the backend keeps keys and values of each "
            "head; choose a model with grouped heads"
        )


def check_impl(alibi_slopes, logits_soft_cap, kv_sharing_target):
    """Raises ValueError for a layer whose scores the backend does not compute."""
    for given, what in (
        (alibi_slopes is not None, "ALiBi slopes"),
        (bool(logits_soft_cap), f"a soft cap of {logits_soft_cap} on attention scores"),
        (kv_sharing_target is not None, f"a layer that reads the KV cache of {kv_sharing_target}"),
    ):
        if given:
            raise ValueError(
                f"cannot compute attention with {what} on spyre: the card's kernel has a scale, a "
                "mask and sinks only; choose another model"
            )


def check_request(params):
    """Raises VLLMValidationError, which is the client's error, for parameters of a request that
    the runner does not serve."""
    if getattr(params, "prompt_logprobs", None) is not None:
        raise VLLMValidationError(
            "cannot return prompt_logprobs on spyre: logits are computed for the last token of a "
            "prompt only; leave prompt_logprobs out",
            parameter="prompt_logprobs",
            value=params.prompt_logprobs,
        )
