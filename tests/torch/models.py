# SPDX-License-Identifier: MIT
"""The seven model families that come first, reduced: random weights and few layers, but with the
structure of the published models. Heads are grouped, their width is not that of the hidden state
divided among them, every kind of layer occurs, prompts exceed windows, chunks and the original
length of the positions, and experts outnumber those that a token takes."""

from dataclasses import dataclass
from typing import Callable

import torch
import transformers

VOCABULARY = 320
IMAGE, IMAGE_START, IMAGE_END = VOCABULARY - 1, VOCABULARY - 2, VOCABULARY - 3
#: Tokens of the three prompts, which are padded on the left to the length of the longest.
LENGTHS = (26, 21, 12)
SPECIAL = {"bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
TEXT = SPECIAL | {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 192,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.1,
}
#: 4 heads of 64 in a hidden state of 160, as 32 of 128 in one of 5120.
MISTRAL = TEXT | {"hidden_size": 160, "head_dim": 64}


@dataclass(frozen=True)
class Family:
    """How a model and its prompts are made; what its decoder layers are called."""

    make: Callable
    prompts: Callable
    layers: str = "model.layers"
    #: That of the prompts: one to which fewer logits come near a tie than to others.
    seed: int = 0

    def inputs(self):
        return self.prompts(self.seed)

    def model(self, seed=0):
        """Returns the model in fp32, with weights that fp16 and bf16 hold exactly."""
        torch.manual_seed(seed)
        model = self.make().eval()
        with torch.no_grad():
            for tensor in (*model.parameters(), *model.buffers()):
                if tensor.dtype == torch.float32:
                    tensor.copy_(tensor.bfloat16().half().float())
        return model


def random(seed):
    return torch.Generator().manual_seed(seed)


def prompts(seed):
    """Three prompts of unequal length, with padding on their left."""
    longest = max(LENGTHS)
    ids = torch.randint(3, VOCABULARY - 4, (len(LENGTHS), longest), generator=random(seed))
    mask = torch.arange(longest) >= longest - torch.tensor(LENGTHS)[:, None]
    return {"input_ids": ids * mask, "attention_mask": mask.long()}


def pixels(seed, *shape):
    """Numbers that fp16 and bf16 hold exactly."""
    return torch.randn(shape, generator=random(seed)).bfloat16().float()


def prompts_with_images(seed):
    """The first two prompts contain an image each, of 4 x 6 and of 4 x 4 patches: 6 and 4 tokens
    after every 2 x 2 patches have become one."""
    inputs = prompts(seed)
    inputs["input_ids"][0, 6:12] = IMAGE
    inputs["input_ids"][1, 12:16] = IMAGE
    values = pixels(seed, 2, 3, 4 * 14, 6 * 14)
    values[1, :, :, 4 * 14 :] = 0
    sizes = torch.tensor([[4 * 14, 6 * 14], [4 * 14, 4 * 14]])
    return inputs | {"pixel_values": values, "image_sizes": sizes}


def prompts_with_grids(seed):
    """As prompts_with_images(), in the form that Qwen 2.5 VL takes: patches that lie in a row."""
    inputs = prompts(seed)
    for row, first, last in (0, 6, 12), (1, 12, 16):
        inputs["input_ids"][row, first - 1] = IMAGE_START
        inputs["input_ids"][row, first:last] = IMAGE
    grid = torch.tensor([[1, 4, 6], [1, 4, 4]])
    return inputs | {
        "mm_token_type_ids": (inputs["input_ids"] == IMAGE).int(),
        "pixel_values": pixels(seed, int(grid.prod(1).sum()), 3 * 2 * 14 * 14),
        "image_grid_thw": grid,
    }


def gpt_oss():
    """Sinks, a window in every other layer, experts with clamped SwiGLU, yarn."""
    rope = {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "beta_fast": 32.0}
    rope |= {"beta_slow": 1.0, "truncate": False, "original_max_position_embeddings": 16}
    return transformers.GptOssForCausalLM(
        transformers.GptOssConfig(
            **TEXT | {"intermediate_size": 128}, head_dim=64, num_local_experts=4,
            num_experts_per_tok=2, sliding_window=8, rope_parameters=rope,
        )
    )  # fmt: skip


def granite_hybrid():
    """Mamba 2 in chunks of 16, attention without positions, shared and routed experts."""
    return transformers.GraniteMoeHybridForCausalLM(
        transformers.GraniteMoeHybridConfig(
            **TEXT | {"num_hidden_layers": 3}, layer_types=["mamba", "attention", "mamba"],
            mamba_n_heads=8, mamba_d_head=32, mamba_d_state=64, mamba_chunk_size=16,
            num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=128,
            embedding_multiplier=2.0, attention_multiplier=1 / 32, residual_multiplier=1.5,
            logits_scaling=0.5, tie_word_embeddings=True,
        )
    )  # fmt: skip


def with_pixtral(text):
    vision = transformers.PixtralVisionConfig(
        hidden_size=128, intermediate_size=192, num_hidden_layers=2, num_attention_heads=2,
        image_size=112, patch_size=14, initializer_range=0.1,
    )  # fmt: skip
    return transformers.Mistral3ForConditionalGeneration(
        transformers.Mistral3Config(
            text_config=text, vision_config=vision, image_token_index=IMAGE,
            tie_word_embeddings=False, **SPECIAL,
        )
    )  # fmt: skip


def mistral_small():
    return with_pixtral(transformers.MistralConfig(**MISTRAL, sliding_window=None))


def ministral3():
    """Queries grow with the logarithm of their position beyond the original length."""
    rope = {"rope_type": "yarn", "rope_theta": 1e9, "factor": 16.0, "beta_fast": 32.0}
    rope |= {"beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}
    rope |= {"original_max_position_embeddings": 16, "max_position_embeddings": 256}
    sizes = MISTRAL | {"max_position_embeddings": 256}
    return with_pixtral(transformers.Ministral3Config(**sizes, rope_parameters=rope))


def qwen2_5_vl():
    """Positions in three dimensions; one vision layer of windows of 4 x 4 patches, one without."""
    vision = {"depth": 2, "hidden_size": 128, "intermediate_size": 192, "num_heads": 4}
    vision |= {"out_hidden_size": 128, "window_size": 56, "fullatt_block_indexes": [1]}
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 6, 6]}
    return transformers.Qwen2_5_VLForConditionalGeneration(
        transformers.Qwen2_5_VLConfig(
            text_config=TEXT | {"rope_parameters": rope},
            vision_config=vision | {"initializer_range": 0.1},
            image_token_id=IMAGE, vision_start_token_id=IMAGE_START,
            vision_end_token_id=IMAGE_END, video_token_id=VOCABULARY - 4,
        )
    )  # fmt: skip


def llama3():
    rope = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0}
    rope |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 16}
    heads = {"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32}
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**TEXT | heads, rope_parameters=rope)
    )


def ministral():
    """One layer of full attention, then three with a window."""
    layers = ["full_attention"] + ["sliding_attention"] * 3
    return transformers.MinistralForCausalLM(
        transformers.MinistralConfig(
            **TEXT | {"num_hidden_layers": 4}, head_dim=64, sliding_window=8, layer_types=layers
        )
    )


TOWER = "model.language_model.layers"
FAMILIES = {
    "gpt_oss": Family(gpt_oss, prompts, seed=5),
    "granite_hybrid": Family(granite_hybrid, prompts),
    "mistral_small": Family(mistral_small, prompts_with_images, TOWER, seed=3),
    "qwen2_5_vl": Family(qwen2_5_vl, prompts_with_grids, TOWER),
    "llama3": Family(llama3, prompts),
    "ministral": Family(ministral, prompts, seed=2),
    "ministral3": Family(ministral3, prompts_with_images, TOWER),
}
