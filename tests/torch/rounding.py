# SPDX-License-Identifier: MIT
"""The bounds of the tests of whole models: what rounding does to the CPU's own result, and tokens
that have to be equal wherever the CPU's choice does not depend on it."""

import copy
import warnings

import torch
import transformers
from support import dl16
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map


def in_dl16(tensor):
    """A number beyond DL16 stays as it is: only tensors that are of fp32 on the card, too, have
    one, such as the -1e38 with which RWKV's state begins."""
    rounded = dl16(tensor)
    return torch.where(rounded.isinf(), tensor, rounded)


def in_bf16(tensor):
    return tensor.bfloat16().float()


#: How the card keeps the numbers of a tensor.
STORED = {torch.float16: in_dl16, torch.bfloat16: in_bf16}


class Rounded(TorchDispatchMode):
    """Rounds every result of the CPU in fp32."""

    def __init__(self, stored):
        super().__init__()
        self.stored = stored

    def round(self, value):
        if not torch.is_tensor(value) or value.dtype != torch.float32 or not value.numel():
            return value
        return self.stored(value)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **kwargs or {})
        if all(r.alias_info is None for r in function._schema.returns):
            return tree_map(self.round, result)
        # A view stays one of its tensor, which may be written through it.
        if function._schema.is_mutable:
            tree_map(self.round_in_place, result)
        return result

    def round_in_place(self, value):
        rounded = self.round(value)
        if rounded is not value:
            value.copy_(rounded)


def rounded(stored, function, model, *arguments):
    """Returns the CPU's result, with weights and results rounded."""
    model = copy.deepcopy(model)
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.dtype == torch.float32:
            tensor.data = stored(tensor)
    with Rounded(stored):
        return function(model, *arguments)


class Follow(transformers.LogitsProcessor):
    """Leaves a model no choice but the tokens that another one took."""

    def __init__(self, tokens):
        self.left = list(tokens.unbind(1))

    def __call__(self, input_ids, scores):
        return torch.full_like(scores, -1e4).scatter(1, self.left.pop(0)[:, None], 0.0)


def generate(model, inputs, new, tokens=None, **options):
    """The new tokens, and the logits of each, in steps of [rows, vocabulary]."""
    inputs = {name: value for name, value in inputs.items() if name != "decoder_input_ids"}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = model.generate(
            **inputs,
            max_new_tokens=new,
            do_sample=False,
            use_cache=True,
            return_dict_in_generate=True,
            output_logits=True,
            logits_processor=[] if tokens is None else [Follow(tokens)],
            **options,
        )
    logits = torch.stack([step.float().cpu() for step in result.logits])
    return result.sequences[:, -new:].cpu(), logits


class Margin:
    """The tokens of a model beside those that the CPU takes when it is led along them.

    The CPU's first token is decided where it leads by more than what rounding on the CPU does to
    both: twice the largest error of a logit.
    """

    def __init__(self, tokens, expected, rounded):
        best = expected.topk(2, dim=-1)
        lead = best.values[..., 0] - best.values[..., 1]
        decided = lead > 2 * (rounded - expected).abs().amax(-1)
        other = best.indices[..., 0] != tokens.T
        self.wrong = int((other & decided).sum())
        self.tied = int((other & ~decided).sum())
        self.decided = decided.float().mean().item()

    def __str__(self):
        differ = self.wrong or self.tied
        return f"{self.wrong} wrong, {self.tied} tied" if differ else "equal"
