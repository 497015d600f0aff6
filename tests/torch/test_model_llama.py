# SPDX-License-Identifier: MIT
"""A small Llama with random weights decodes greedily, with a KV cache, the same tokens
as on the CPU, where every result in half precision is rounded to DL16."""

import warnings

import pytest
import torch
from support import DEVICE, dl16
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten
from transformers import LlamaConfig, LlamaForCausalLM

NEW = 24


class RoundedToDL16(TorchDispatchMode):
    """Rounds results in fp16 to nine bits of fraction."""

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        result = function(*arguments, **(options or {}))
        if not function.is_view:
            for tensor in tree_flatten(result)[0]:
                if torch.is_tensor(tensor) and tensor.dtype == torch.float16:
                    rounded = dl16(tensor).to(torch.float16)
                    tensor.copy_(torch.where(rounded.isfinite(), rounded, tensor))
        return result


def make():
    torch.manual_seed(11)
    config = LlamaConfig(
        vocab_size=320,
        hidden_size=128,
        intermediate_size=320,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        initializer_range=0.2,
        bos_token_id=1,
        eos_token_id=None,
        pad_token_id=0,
    )
    model = LlamaForCausalLM(config).half().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(dl16(parameter).half())
    return model


def decode(model, device, prompt):
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = model.generate(
            prompt.to(device),
            attention_mask=torch.ones_like(prompt).to(device),
            max_new_tokens=NEW,
            do_sample=False,
            use_cache=True,
            return_dict_in_generate=True,
            output_logits=True,
        )
    assert result.sequences.device.type == device
    return result.sequences.cpu(), torch.stack([step.float().cpu() for step in result.logits])


def tokens_of(seed, length):
    return torch.randint(3, 320, (1, length), generator=torch.Generator().manual_seed(seed))


# Prompts after which no two tokens come near a tie: in fp32 the first leads by 0.12 or
# more at every step, where the rounded reference itself is up to 0.13 off the logits.
PROMPTS = {"one prompt": ((5, 7),), "three prompts": ((80, 12), (76, 12), (4, 12))}


@pytest.fixture(scope="module", params=PROMPTS.values(), ids=PROMPTS)
def reference(request):
    prompt = torch.cat([tokens_of(*one) for one in request.param])
    with RoundedToDL16():
        return prompt, *decode(make(), "cpu", prompt)


class TestLlama:
    def test_the_reference_says_something(self, reference):
        """Random weights that repeat one token would prove nothing."""
        prompt, tokens, _ = reference
        assert tokens.shape == (prompt.shape[0], prompt.shape[1] + NEW)
        assert all(len(set(row[prompt.shape[1] :].tolist())) > NEW // 3 for row in tokens)

    def test_greedy_decoding_eager(self, reference):
        prompt, tokens, logits = reference
        have, scores = decode(make().to(DEVICE), DEVICE, prompt)
        assert have.tolist() == tokens.tolist()
        assert torch.nn.functional.cosine_similarity(scores, logits, dim=-1).min() > 0.999

    def test_greedy_decoding_compiled(self, reference):
        prompt, tokens, _ = reference
        torch._dynamo.reset()
        model = make().to(DEVICE)
        model.forward = torch.compile(model.forward, dynamic=False)
        have, _ = decode(model, DEVICE, prompt[:, :7])
        eager, _ = decode(make().to(DEVICE), DEVICE, prompt[:, :7])
        assert have.tolist() == eager.tolist()

    def test_cache_changes_nothing(self, reference):
        """Step by step with the cache: the same tokens as all at once without."""
        prompt, tokens, _ = reference
        model = make().to(DEVICE)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = model(tokens.to(DEVICE), use_cache=False).logits.float().cpu()
        predicted = whole[:, prompt.shape[1] - 1 : -1].argmax(-1)
        assert (predicted == tokens[:, prompt.shape[1] :]).float().mean() > 0.95
