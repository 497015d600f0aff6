# SPDX-License-Identifier: MIT
"""Models of many architectures with random weights, two layers and a width of 128, in their
libraries' default settings: what test_architectures runs."""

import os
import sys
from dataclasses import dataclass
from typing import Callable

import torch
import transformers

VOCABULARY = 320
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 256,
    "max_position_embeddings": 128,
    "initializer_range": 0.2,
    "bos_token_id": 1,
    "eos_token_id": None,
    "pad_token_id": 0,
}
GROUPED = SIZES | {"num_key_value_heads": 2}
EXPERTS = GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 2}
HEADLESS = {name: SIZES[name] for name in SIZES if "attention" not in name}
#: Granite multiplies scores by it as it is: by default 1.0, which leaves those of heads of 32
#: so large that each token attends to one other.
SCALED = {"attention_multiplier": 32**-0.5}
#: Models whose head is their embedding say the token that they were given.
UNTIED = {"tie_word_embeddings": False}
GEMMA = GROUPED | {"head_dim": 32, "query_pre_attn_scalar": 32}
HYBRID = EXPERTS | {
    "shared_intermediate_size": 256,
    "layer_types": ["mamba", "attention"],
    "mamba_n_heads": 8,
    "mamba_d_head": 32,
    "mamba_d_state": 32,
}
MAMBA2 = HEADLESS | {"num_heads": 8, "head_dim": 32, "state_size": 32, "n_groups": 1}
T5 = {
    "vocab_size": VOCABULARY,
    "d_model": 128,
    "d_kv": 32,
    "d_ff": 256,
    "num_layers": 2,
    "num_heads": 4,
    "eos_token_id": None,
    "pad_token_id": 0,
    "decoder_start_token_id": 0,
}
CONVNEXT = {
    "hidden_sizes": [32, 64, 96, 128],
    "depths": [1, 1, 2, 1],
    "initializer_range": 0.2,
    "num_labels": 10,
}
BART = {
    "vocab_size": VOCABULARY,
    "d_model": 128,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 256,
    "decoder_ffn_dim": 256,
    "init_std": 0.2,
    "bos_token_id": 1,
    "eos_token_id": None,
    "forced_eos_token_id": None,
    "pad_token_id": 0,
    "decoder_start_token_id": 2,
}


@dataclass(frozen=True)
class Architecture:
    """How a model and its inputs are made; whether it generates tokens."""

    model: Callable
    inputs: Callable
    generates: bool = False


def random(seed):
    return torch.Generator().manual_seed(seed)


def prompt(seed, length=14, batch=2):
    ids = torch.randint(3, VOCABULARY - 4, (batch, length), generator=random(seed))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def pair(seed):
    """Returns the inputs of an encoder and its decoder."""
    return prompt(seed) | {"decoder_input_ids": prompt(seed + 100, 6)["input_ids"]}


def images(seed, size=64, batch=2):
    """Numbers that fp16 holds exactly."""
    shape = (batch, 3, size, size)
    return {"pixel_values": torch.randn(shape, generator=random(seed)).half().float()}


def tensor_of_images(seed):
    return (images(seed)["pixel_values"],)


def of_config(config, model_class):
    return getattr(transformers, model_class)(getattr(transformers, config[0])(**config[1]))


def causal(name, sizes=GROUPED, **options):
    """A language model by the prefix of its classes."""
    config = f"{name}Config", sizes | options
    return Architecture(lambda: of_config(config, f"{name}ForCausalLM"), prompt, True)


def model_of(model_class, config_class, inputs=prompt, generates=False, **options):
    config = config_class, options
    return Architecture(lambda: of_config(config, model_class), inputs, generates)


def encoder(name, **options):
    return model_of(f"{name}ForMaskedLM", f"{name}Config", **(SIZES | options))


LANGUAGE = {
    "llama": causal("Llama"),
    "gpt2": model_of(
        "GPT2LMHeadModel", "GPT2Config", generates=True,
        vocab_size=VOCABULARY, n_positions=128, n_embd=128, n_layer=2, n_head=4,
        initializer_range=0.2, bos_token_id=1, eos_token_id=None, pad_token_id=0,
    ),
    "qwen2": causal("Qwen2"),
    "qwen3": causal("Qwen3", head_dim=32),
    "mistral": causal("Mistral"),
    "mixtral": causal("Mixtral", EXPERTS),
    "gemma2": causal("Gemma2", GEMMA),
    "gemma2_untied": causal("Gemma2", GEMMA, **UNTIED),
    "gemma3": model_of("Gemma3ForCausalLM", "Gemma3TextConfig", generates=True, **GEMMA),
    "gemma3_untied": model_of(
        "Gemma3ForCausalLM", "Gemma3TextConfig", generates=True, **GEMMA, **UNTIED
    ),
    "phi3": causal("Phi3"),
    "granite": causal("Granite"),
    "granite_scaled": causal("Granite", **SCALED),
    "granitemoe": causal("GraniteMoe", EXPERTS),
    "granitemoe_scaled": causal("GraniteMoe", EXPERTS, **SCALED),
    "granitehybrid": causal("GraniteMoeHybrid", HYBRID),
    "granitehybrid_chunks": causal("GraniteMoeHybrid", HYBRID, mamba_chunk_size=8, **SCALED),
    "gptneox": causal("GPTNeoX", SIZES),
    "opt": causal("OPT", SIZES, ffn_dim=256, word_embed_proj_dim=128, init_std=0.2),
    "bloom": causal("Bloom", SIZES, n_layer=2, n_head=4),
    "falcon": causal("Falcon", SIZES),
    "mamba": causal("Mamba", HEADLESS, state_size=16),
    "mamba2": causal("Mamba2", MAMBA2),
    "mamba2_chunks": causal("Mamba2", MAMBA2, chunk_size=8),
    "rwkv": causal("Rwkv", HEADLESS, context_length=128, attention_hidden_size=128),
    "olmo2": causal("Olmo2"),
    "gptoss": causal("GptOss", EXPERTS, head_dim=32),
    "t5": model_of("T5ForConditionalGeneration", "T5Config", pair, True, **T5),
    "t5_untied": model_of("T5ForConditionalGeneration", "T5Config", pair, True, **T5, **UNTIED),
    "bart": model_of(
        "BartForConditionalGeneration", "BartConfig", pair, True,
        **BART, max_position_embeddings=128,
    ),
}  # fmt: skip

ENCODERS = {
    "bert": encoder("Bert"),
    "roberta": encoder("Roberta"),
    "distilbert": encoder("DistilBert", dim=128, n_layers=2, n_heads=4, hidden_dim=256),
    "electra": encoder("Electra", embedding_size=128),
    "albert": encoder("Albert", embedding_size=64),
    "deberta": encoder(
        "DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=32,
        position_biased_input=False, share_att_key=True, norm_rel_ebd="layer_norm",
    ),
    "modernbert": encoder("ModernBert", local_attention=8),
    "xlnet": model_of(
        "XLNetLMHeadModel", "XLNetConfig",
        vocab_size=VOCABULARY, d_model=128, n_layer=2, n_head=4, d_inner=256, initializer_range=0.2,
    ),
    "longformer": encoder("Longformer", attention_window=8),
    "fnet": model_of(
        "FNetForMaskedLM", "FNetConfig",
        lambda seed: {"input_ids": prompt(seed)["input_ids"]}, **SIZES,
    ),
}  # fmt: skip


def text_and_images(seed):
    return prompt(seed) | images(seed)


def features(seed):
    """A spectrogram, and the tokens so far."""
    spectrogram = torch.randn(2, 80, 128, generator=random(seed)).half().float()
    tokens = prompt(seed, 6)["input_ids"]
    return {"input_features": spectrogram, "decoder_input_ids": tokens}


def sound(seed):
    return {"input_values": torch.randn(2, 3200, generator=random(seed)).half().float()}


def clip():
    # The pooled text is the state at the end of sequence, which has to be a number.
    text = transformers.CLIPTextConfig(**SIZES | {"eos_token_id": 2}, projection_dim=64)
    vision = transformers.CLIPVisionConfig(**SIZES, projection_dim=64, image_size=64, patch_size=16)
    return transformers.CLIPModel(
        transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=64)
    )


IMAGE, IMAGE_START = VOCABULARY - 1, VOCABULARY - 2


def qwen2_5_vl():
    vision = {"depth": 2, "hidden_size": 128, "intermediate_size": 256, "num_heads": 4}
    vision |= {"out_hidden_size": 128, "fullatt_block_indexes": [1], "initializer_range": 0.2}
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 6, 6]}
    return transformers.Qwen2_5_VLForConditionalGeneration(
        transformers.Qwen2_5_VLConfig(
            text_config=GROUPED | {"rope_parameters": rope}, vision_config=vision,
            image_token_id=IMAGE, vision_start_token_id=IMAGE_START,
            video_token_id=VOCABULARY - 3, vision_end_token_id=VOCABULARY - 4,
        )
    )  # fmt: skip


def prompt_with_image(seed):
    """8 x 8 patches of an image become 16 of the tokens."""
    ids = prompt(seed, 30, 1)["input_ids"]
    ids[0, 3], ids[0, 4:20] = IMAGE_START, IMAGE
    patches = torch.randn(64, 3 * 2 * 14 * 14, generator=random(seed)).half().float()
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "mm_token_type_ids": (ids == IMAGE).int(),
        "pixel_values": patches,
        "image_grid_thw": torch.tensor([[1, 8, 8]]),
    }


SIGHT_AND_SOUND = {
    "whisper": model_of(
        "WhisperForConditionalGeneration", "WhisperConfig", features,
        **BART, max_source_positions=64, max_target_positions=64,
    ),
    "vit": model_of(
        "ViTForImageClassification", "ViTConfig", images,
        **SIZES, image_size=64, patch_size=16, num_labels=10,
    ),
    "swin": model_of(
        "SwinForImageClassification", "SwinConfig", images,
        image_size=64, embed_dim=64, depths=[2, 2], num_heads=[2, 4], window_size=4,
        initializer_range=0.2, num_labels=10,
    ),
    "convnext": model_of("ConvNextForImageClassification", "ConvNextConfig", images, **CONVNEXT),
    "convnext_scaled": model_of(
        "ConvNextForImageClassification", "ConvNextConfig", images,
        **CONVNEXT, layer_scale_init_value=0.5,
    ),
    "clip": Architecture(clip, text_and_images),
    "wav2vec2": model_of(
        "Wav2Vec2ForCTC", "Wav2Vec2Config", sound,
        **SIZES, conv_dim=[64] * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4,
    ),
    "segformer": model_of(
        "SegformerForSemanticSegmentation", "SegformerConfig", images,
        hidden_sizes=[32, 64, 96, 128], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 3, 4],
        decoder_hidden_size=64, initializer_range=0.2, num_labels=10,
    ),
    "qwen2_5_vl": Architecture(qwen2_5_vl, prompt_with_image, True),
}  # fmt: skip


def torchvision():
    """The package, which lib-torch.sh keeps apart: its wheel is for torch with CUDA, and
    transformers imports it wherever it is found. Models need none of its own operations, which
    such a wheel does not define here, but it names two of them as it is imported."""
    path = os.path.join(sys.prefix, "vision")
    if path not in sys.path:
        sys.path.append(path)
    try:
        import torchvision
    except RuntimeError:
        boxes = "(Tensor boxes, Tensor scores, float threshold) -> Tensor"
        for name in "nms", "qnms":
            torch.library.define(f"torchvision::{name}", boxes)
        import torchvision
    return torchvision


def with_statistics(model):
    """Batch norms that know the layers before them keep the numbers of ordinary size."""
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.train()
        norm.momentum = None
    if norms:
        with torch.no_grad():
            model(images(1, batch=16)["pixel_values"])
    return model.eval()


def convolutional(name, of="", layer_scale=None, **options):
    def make():
        model = getattr(torchvision().models, of) if of else torchvision().models
        model = getattr(model, name)(weights=None, num_classes=10, **options).eval()
        for module in model.modules():
            if layer_scale and hasattr(module, "layer_scale"):
                torch.nn.init.constant_(module.layer_scale, layer_scale)
            if isinstance(module, torch.nn.Linear):
                torch.nn.init.kaiming_normal_(module.weight)
        return with_statistics(model)

    return Architecture(make, tensor_of_images)


def torchvision_vit():
    model = torchvision().models.VisionTransformer(64, 16, 2, 4, 128, 256, num_classes=10)
    torch.nn.init.normal_(model.heads.head.weight, std=0.1)
    return model.eval()


TORCHVISION = {
    f"tv_{name}": convolutional(name)
    for name in (
        "resnet18", "mobilenet_v2", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5",
        "efficientnet_b0", "densenet121", "regnet_y_400mf", "convnext_tiny", "mnasnet0_5",
        "alexnet", "vgg11",
    )
} | {
    "tv_convnext_tiny_scaled": convolutional("convnext_tiny", layer_scale=0.5),
    "tv_googlenet": convolutional("googlenet", init_weights=True, aux_logits=False),
    "tv_vit": Architecture(torchvision_vit, tensor_of_images),
    "tv_lraspp_mobilenet_v3": convolutional(
        "lraspp_mobilenet_v3_large", "segmentation", weights_backbone=None
    ),
}  # fmt: skip

ALL = LANGUAGE | ENCODERS | SIGHT_AND_SOUND | TORCHVISION
