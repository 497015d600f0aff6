# SPDX-License-Identifier: MIT
"""accelerate and Trainer choose a card; device maps of transformers put models on cards."""

import models
import pytest
import torch
import transformers
from support import DEVICE, python_ok

CHOICE = "import accelerate; print(accelerate.Accelerator({}).device)"
ARGUMENTS = "import transformers; print(transformers.TrainingArguments('x', {}).device)"


@pytest.mark.parametrize(
    "code, environment, device",
    [
        (CHOICE.format(""), {}, "spyre:0"),
        ("torch.spyre.set_device(1);" + CHOICE.format(""), {}, "spyre:1"),
        (CHOICE.format("cpu=True"), {}, "cpu"),
        (CHOICE.format(""), {"ACCELERATE_TORCH_DEVICE": "cpu"}, "cpu"),
        (CHOICE.format(""), {"SPYRE_EMBEDDED_CARDS": 0}, "cpu"),
        (ARGUMENTS.format(""), {}, "spyre:0"),
        (ARGUMENTS.format("use_cpu=True"), {}, "cpu"),
        (ARGUMENTS.format(""), {"ACCELERATE_TORCH_DEVICE": "cpu"}, "cpu"),
    ],
)
def test_choice(code, environment, device):
    assert python_ok(code, **environment).split()[-1] == device


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    models.FAMILIES["llama3"].model().half().save_pretrained(path)
    return path


def generate(model, device=DEVICE):
    ids = models.FAMILIES["llama3"].inputs()["input_ids"][:1].to(device)
    return model.generate(ids, max_new_tokens=6, do_sample=False).cpu()


@pytest.mark.parametrize("device_map", ["spyre", "spyre:1", {"": 0}, "auto", "sequential"], ids=str)
def test_device_map(saved, device_map):
    load = transformers.AutoModelForCausalLM.from_pretrained
    model = load(saved, device_map=device_map, dtype=torch.float16)
    devices = {str(tensor.device) for tensor in (*model.parameters(), *model.buffers())}
    if device_map == "auto":
        assert devices == {"spyre:0", "spyre:1"}, "a map that balances uses all cards"
    else:
        assert devices == {"spyre:1" if device_map == "spyre:1" else "spyre:0"}
    reference = models.FAMILIES["llama3"].model().half().to(DEVICE)
    assert torch.equal(generate(model, model.device), generate(reference))


def test_trainer(tmp_path):
    """Two steps on the card change the weights, and the loss is a number."""
    model = models.FAMILIES["llama3"].model()
    before = model.lm_head.weight.clone()
    rows = [{"input_ids": ids, "labels": ids} for ids in torch.arange(3, 83).view(8, 10)]
    arguments = transformers.TrainingArguments(
        str(tmp_path), max_steps=2, per_device_train_batch_size=4, report_to=[],
        save_strategy="no", disable_tqdm=True, learning_rate=1e-2,
    )  # fmt: skip
    result = transformers.Trainer(model, arguments, train_dataset=rows).train()
    assert model.device.type == DEVICE
    assert 0 < result.training_loss < 20
    assert (model.lm_head.weight.cpu() - before).abs().max() > 1e-3
