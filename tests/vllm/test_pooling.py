# SPDX-License-Identifier: MIT
"""Embeddings of a small BERT beside transformers' on the host in fp32."""

import gc

import models
import pytest
import torch
import torch.nn.functional as F
import torch_spyre  # noqa: F401
import transformers
from checkpoints import prompts, save_tokenizer
from vllm import LLM
from vllm.config import PoolerConfig


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model at model.path, in fp32."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=models.VOCABULARY, hidden_size=128, intermediate_size=192,
        num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=256,
        initializer_range=0.1,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("bert")
    transformers.BertModel(config).half().save_pretrained(path)
    model = transformers.BertModel.from_pretrained(path, dtype=torch.float32).eval()
    model.path = str(path)
    save_tokenizer(path)
    return model


def test_embeddings(model):
    """Of texts of unequal length, one longer than a group of attention."""
    requests = prompts((3, 100, 17, 64, 1, 30), seed=50)
    engine = LLM(
        model.path, runner="pooling", dtype=torch.float16, max_model_len=128, max_num_seqs=4,
        seed=0,
        pooler_config=PoolerConfig(seq_pooling_type="MEAN"),
    )  # fmt: skip
    before = dict(torch.spyre.fallbacks())
    given = [{"prompt_token_ids": ids} for ids in requests]
    have = [output.outputs.embedding for output in engine.embed(given, use_tqdm=False)]
    assert dict(torch.spyre.fallbacks()) == before
    for ids, vector in zip(requests, have, strict=True):
        with torch.no_grad():
            hidden = model(torch.tensor([ids])).last_hidden_state[0]
        cosine = F.cosine_similarity(torch.tensor(vector), hidden.mean(0), dim=0)
        assert cosine > 0.9995, (len(ids), cosine)
    engine.llm_engine.engine_core.shutdown()
    del engine
    gc.collect()
