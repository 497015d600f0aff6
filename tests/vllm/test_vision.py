# SPDX-License-Identifier: MIT
"""Models that take images: text alone, and images among it, with transformers' tokens.

scripts/test vllm gives these tests a torchvision, which vLLM and transformers import to read the
models' configuration and to prepare images (vision/sitecustomize.py).
"""

import pytest
import torch
from checkpoints import prompts, save_processor
from engines import GREEDY, Engine
from models import IMAGE, IMAGE_END, IMAGE_START
from PIL import Image

pytest.importorskip("torchvision", reason="torchvision is not installed (scripts/test vllm)")

FAMILIES = ("qwen2_5_vl", "mistral_small", "ministral3")


@pytest.fixture
def start(tmp_path):
    """Starts the test's engine, which ends with it, with the processor of its images."""
    engines = []

    def make(name, dtype=torch.float16, **options):
        processor = save_processor(name, tmp_path)
        engines.append(Engine(name, tmp_path, dtype, skip_tokenizer_init=False, **options))
        engines[0].processor = processor
        return engines[0]

    yield make
    for engine in engines:
        engine.close()


def picture(seed, height, width):
    """An image of random colours."""
    generator = torch.Generator().manual_seed(seed)
    colours = torch.randint(0, 256, (height, width, 3), generator=generator, dtype=torch.uint8)
    return Image.fromarray(colours.numpy())


def with_images(ids, *images):
    """A request whose images follow the first tokens of its prompt."""
    places = [token for _ in images for token in (IMAGE_START, IMAGE, IMAGE_END)]
    return {
        "prompt_token_ids": ids[:5] + places + ids[5:],
        "multi_modal_data": {"image": list(images)},
    }


def inputs(engine, ids, images):
    """What transformers' model takes beside the ids that vLLM has made of a prompt."""
    if not images:
        return {}
    given = dict(engine.processor.image_processor(images, return_tensors="pt"))
    if "image_grid_thw" in given:
        given["mm_token_type_ids"] = (torch.tensor([ids]) == IMAGE).int()
    return given


def check(engine, requests):
    """Serves requests at once; returns their outputs after a comparison."""
    outputs = engine.llm.generate(requests, GREEDY, use_tqdm=False)
    ids = [output.prompt_token_ids for output in outputs]
    images = [request.get("multi_modal_data", {}).get("image", []) for request in requests]
    engine.check(
        ids,
        [output.outputs[0].token_ids for output in outputs],
        images=[inputs(engine, *pair) for pair in zip(ids, images, strict=True)],
    )
    return outputs


@pytest.mark.parametrize("name", FAMILIES)
def test_text(start, name):
    """Without images no encoder is loaded, and nothing falls back."""
    engine = start(name, language_model_only=True)
    requests = prompts((90, 21, 12), seed=14)
    torch.spyre.reset_fallbacks()
    engine.check(requests, engine.tokens(requests))
    assert not torch.spyre.fallbacks()


@pytest.mark.parametrize("name", FAMILIES)
def test_images(start, name):
    """Requests with two images, one and none run at the same time, in chunks of their prompts."""
    engine = start(name)
    first, second, third = prompts((90, 21, 12), seed=15)
    requests = [
        with_images(first, picture(1, 56, 84), picture(2, 84, 56)),
        with_images(second, picture(3, 112, 56)),
        {"prompt_token_ids": third},
    ]
    torch.spyre.reset_fallbacks()
    check(engine, requests)
    assert not torch.spyre.fallbacks()


def test_bfloat16(start):
    engine = start("qwen2_5_vl", torch.bfloat16)
    (ids,) = prompts((40,), seed=17)
    check(engine, [with_images(ids, picture(4, 56, 84))])


def test_an_image_again(start):
    """The encoder runs once for an image of two prompts, and pages of a prompt are reused."""
    engine = start("qwen2_5_vl")
    first, second = prompts((70, 30), seed=18)
    image = picture(5, 84, 84)
    runner = engine.llm.llm_engine.model_executor.driver_worker.model_runner
    calls = []
    embed = runner.model.embed_multimodal
    runner.model.embed_multimodal = lambda **inputs: calls.append(1) or embed(**inputs)
    for ids in first, second, first:
        outputs = check(engine, [with_images(ids, image)])
    assert len(calls) == 1
    assert outputs[0].num_cached_tokens == 64


def test_steps_of_text_are_replayed(start):
    """Decode steps behind an image replay graphs, as those of other models do."""
    engine = start("qwen2_5_vl")
    (ids,) = prompts((20,), seed=19)
    model = engine.llm.llm_engine.model_executor.driver_worker.model_runner.model
    check(engine, [with_images(ids, picture(6, 56, 56))])
    assert model.replayed > 8


def test_sizes_leave_nothing_on_the_card(start):
    """Each size has programs and angles of its own, which the host keeps."""
    engine = start("qwen2_5_vl")
    (ids,) = prompts((20,), seed=22)
    used = []
    for width in 56, 84, 112:
        requests = [with_images(ids, picture(width, height, width)) for height in (56, 84, 112)]
        for request in requests:
            engine.llm.generate([request], GREEDY, use_tqdm=False)
        used.append(torch.spyre.memory_allocated())
    assert max(used) - min(used) < 64 << 10


def test_video_is_refused(start):
    engine = start("qwen2_5_vl")
    frames = torch.zeros(2, 56, 56, 3, dtype=torch.uint8).numpy()
    request = {"prompt_token_ids": [5, 316, 6], "multi_modal_data": {"video": [frames]}}
    with pytest.raises(ValueError, match="video"):
        engine.llm.generate([request], GREEDY, use_tqdm=False)
