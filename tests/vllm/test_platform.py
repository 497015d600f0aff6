# SPDX-License-Identifier: MIT
"""The platform: how vLLM finds it, its defaults, and what it refuses by name."""

import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
import transformers
import vllm_spyre_open
from checkpoints import save_model, save_tokenizer
from vllm import SamplingParams
from vllm.config import MultiModalConfig
from vllm.engine.arg_utils import AsyncEngineArgs, EngineArgs
from vllm.exceptions import VLLMValidationError
from vllm.platforms import current_platform
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.v1.kv_cache_interface import MambaSpec
from vllm_spyre_open import refusals
from vllm_spyre_open.slots import slot_mapping
from vllm_spyre_open.worker import SpyreWorker


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("llama3")
    save_model("llama3", path)
    save_tokenizer(path)
    return str(path)


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory):
    path = tmp_path_factory.mktemp("granite")
    save_model("granite_hybrid", path)
    return str(path)


def config(checkpoint, **options):
    return EngineArgs(model=checkpoint, **options).create_engine_config()


class TestDetection:
    def test_vllm_takes_the_plugin(self):
        assert type(current_platform).__name__ == "SpyrePlatform"
        assert current_platform.is_out_of_tree() and not current_platform.is_cpu()

    def test_it_imports_neither_the_device_nor_vllm(self):
        code = (
            "import sys, vllm_spyre_open\n"
            "name = vllm_spyre_open.find_platform()\n"
            "assert name == 'vllm_spyre_open.platform.SpyrePlatform', name\n"
            "assert not {'torch', 'torch_spyre', 'vllm'} & set(sys.modules)\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_without_the_device_there_is_no_platform(self, monkeypatch):
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        assert vllm_spyre_open.find_platform() is None

    def test_a_configuration_opens_no_card(self, checkpoint):
        code = (
            "import sys, torch\n"
            "from vllm.engine.arg_utils import EngineArgs\n"
            "EngineArgs(model=sys.argv[1]).create_engine_config()\n"
            "assert not torch.spyre.is_initialized()\n"
        )
        subprocess.run([sys.executable, "-c", code, checkpoint], check=True)


class TestDefaults:
    def test_engine(self, checkpoint):
        result = config(checkpoint)
        assert result.cache_config.block_size == 64
        assert result.parallel_config.worker_cls == "vllm_spyre_open.worker.SpyreWorker"
        assert not result.scheduler_config.async_scheduling
        assert result.device_config.device_type == "cpu"
        assert result.shutdown_timeout == 30
        assert config(checkpoint, shutdown_timeout=5).shutdown_timeout == 5
        assert result.model_config.dtype == torch.float16

    def test_server(self):
        parser = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser())
        args = parser.parse_args([])
        assert (args.max_num_seqs, args.max_num_batched_tokens) == (8, 512)

    def test_length(self):
        assert current_platform.check_max_model_len(131072) == 4096
        assert current_platform.check_max_model_len(512) == 512

    def test_hybrid_models(self, hybrid):
        """Pages of two kinds, and no prefix caching, which needs more states than there are."""
        result = config(hybrid, skip_tokenizer_init=True, max_model_len=128)
        assert not result.scheduler_config.disable_hybrid_kv_cache_manager
        assert not result.cache_config.enable_prefix_caching
        assert result.cache_config.mamba_cache_mode == "none"
        assert result.cache_config.mamba_block_size == 128

    def test_windows_have_one_kind_of_page(self, checkpoint):
        result = config(checkpoint)
        assert result.scheduler_config.disable_hybrid_kv_cache_manager
        assert result.cache_config.enable_prefix_caching

    @pytest.mark.parametrize("dtype", refusals.DTYPES)
    def test_dtypes(self, checkpoint, dtype):
        dtype = getattr(torch, dtype)
        assert dtype in current_platform.supported_dtypes
        current_platform.check_if_supports_dtype(dtype)
        assert config(checkpoint, dtype=dtype).model_config.dtype == dtype


REFUSED = {
    "data parallelism": dict(data_parallel_size=2),
    "pipeline parallelism": dict(pipeline_parallel_size=2),
    "LoRA adapters": dict(enable_lora=True),
    "speculative decoding": dict(
        speculative_config={"method": "ngram", "num_speculative_tokens": 2, "prompt_lookup_max": 2}
    ),
    "a KV cache of fp8": dict(kv_cache_dtype="fp8"),
    "pages of 16 tokens": dict(block_size=16),
    "pages of windows": dict(disable_hybrid_kv_cache_manager=False),
}


class TestRefusals:
    @pytest.mark.parametrize("what", REFUSED)
    def test_settings(self, checkpoint, what):
        with pytest.raises(ValueError, match=rf"cannot serve {what}.* on spyre: .*; .*"):
            config(checkpoint, **REFUSED[what])

    def test_cross_attention(self):
        selector = SimpleNamespace(attn_type="encoder_decoder", use_mla=False, use_sparse=False)
        with pytest.raises(ValueError, match="attention of type encoder_decoder on spyre: .*; ch"):
            refusals.check_attention(selector)

    def test_quantised_weights(self, checkpoint):
        with pytest.raises(ValueError, match="cannot serve weights quantised by fp8.*; serve"):
            config(checkpoint, quantization="fp8")

    #: Of Mamba 1, of Mamba 2 without and with attention, and with a linear attention of its own.
    STATES = {
        "FalconMambaForCausalLM": transformers.FalconMambaConfig,
        "Mamba2ForCausalLM": transformers.Mamba2Config,
        "FalconH1ForCausalLM": transformers.FalconH1Config,
        "Qwen3NextForCausalLM": transformers.Qwen3NextConfig,
    }

    @pytest.mark.parametrize("name", STATES)
    def test_states(self, name, tmp_path):
        self.STATES[name](architectures=[name]).save_pretrained(tmp_path)
        with pytest.raises(ValueError, match=rf"cannot serve layers with a state .* of {name} on "):
            config(str(tmp_path), skip_tokenizer_init=True)

    #: Of a hybrid model, which has experts as well.
    HYBRID = {
        "expert parallelism": dict(enable_expert_parallel=True),
        "one kind of page": dict(disable_hybrid_kv_cache_manager=True),
        "states that are made again": dict(use_replayssm=True),
        "states that are rounded at random": dict(
            enable_mamba_cache_stochastic_rounding=True, mamba_ssm_cache_dtype="float16"
        ),
    }

    @pytest.mark.parametrize("what", HYBRID)
    def test_settings_of_hybrid_models(self, hybrid, what):
        with pytest.raises(ValueError, match=rf"cannot serve {what}.* on spyre: .*; leave it out"):
            config(hybrid, skip_tokenizer_init=True, **self.HYBRID[what])

    KINDS = {
        "is_multimodal_model": "images, sound and video of Other",
        "is_hybrid": "layers with a state .* of Other",
        "is_attention_free": "layers with a state .* of Other",
        "is_encoder_decoder": "models with encoder and decoder",
        "use_mla": "multi-head latent attention",
    }

    @pytest.mark.parametrize("kind", [None, *KINDS])
    def test_kinds_of_models(self, checkpoint, kind):
        """Of a configuration that differs in one property from one that is served."""
        served = config(checkpoint)
        model = SimpleNamespace(dtype=torch.float16, quantization=None, architecture="Other")
        model.multimodal_config = MultiModalConfig()
        for name in self.KINDS:
            setattr(model, name, name == kind)
        names = ("parallel", "lora", "speculative", "kv_transfer", "ec_transfer", "cache")
        names += ("scheduler", "mamba")
        parts = {f"{name}_config": getattr(served, f"{name}_config") for name in names}
        given = SimpleNamespace(model_config=model, **parts)
        if kind is None:
            refusals.check_config(given)
            return
        with pytest.raises(ValueError, match=f"cannot serve {self.KINDS[kind]}.* on spyre: .*; "):
            refusals.check_config(given)

    def test_media(self):
        """Text of any model, images of some, and video of none that is asked for."""
        model = SimpleNamespace(architecture=refusals.VISION[0])

        def refused(**options):
            model.multimodal_config = MultiModalConfig(**options)
            return [what for what, *_ in refusals._media(model)]

        assert not refused() and not refused(limit_per_prompt={"image": 2, "video": 0})
        assert refused(limit_per_prompt={"video": 1})
        assert refused(mm_encoder_only=True) and refused(video_pruning_rate=0.5)
        model.architecture = "Other"
        assert refused() and not refused(language_model_only=True)

    def test_dtype(self):
        with pytest.raises(ValueError, match="cannot serve dtype float64 on spyre.*; choose of"):
            current_platform.check_if_supports_dtype(torch.float64)

    @pytest.mark.parametrize(
        "given, what",
        [
            (([0.5], None, None), "ALiBi slopes"),
            ((None, 30.0, None), "a soft cap of 30.0"),
            ((None, None, "model.layers.0"), "reads the KV cache of model.layers.0"),
        ],
    )
    def test_scores(self, given, what):
        with pytest.raises(ValueError, match=f"cannot compute attention with .*{what}.* on spyre"):
            refusals.check_impl(*given)

    def test_request(self):
        with pytest.raises(VLLMValidationError, match="cannot return prompt_logprobs on spyre"):
            current_platform.validate_request({}, SamplingParams(prompt_logprobs=1))
        current_platform.validate_request({}, SamplingParams(logprobs=1))


class TestMemory:
    """The KV cache of a model with one layer, pages of 64 tokens and 10 bytes."""

    @pytest.fixture
    def worker(self, monkeypatch):
        spec = SimpleNamespace(page_size_bytes=10, block_size=64)
        worker = SpyreWorker.__new__(SpyreWorker)
        worker.card = torch.device("spyre", 0)
        worker.model_config = SimpleNamespace(max_model_len=100)
        worker.scheduler_config = SimpleNamespace(max_num_seqs=3)
        worker.cache_config = SimpleNamespace(
            kv_cache_memory_bytes=None, gpu_memory_utilization=0.75
        )
        worker.model_runner = SimpleNamespace(get_kv_cache_spec=lambda: {"layer": spec})
        monkeypatch.setattr(torch.spyre, "mem_get_info", lambda card: (self.free, 1000))
        return worker

    free = 800

    def test_what_the_requests_need(self, worker):
        assert worker.determine_available_memory() == 10 * (3 * 2 + 1)
        worker.scheduler_config.max_num_seqs = 256
        assert worker.determine_available_memory() == 10 * (8 * 2 + 1)

    def test_what_the_user_says(self, worker):
        worker.cache_config.kv_cache_memory_bytes = 12345
        assert worker.determine_available_memory() == 12345

    def test_what_is_free(self, worker, monkeypatch):
        monkeypatch.setattr(TestMemory, "free", 290)
        assert worker.determine_available_memory() == 40
        monkeypatch.setattr(TestMemory, "free", 200)
        with pytest.raises(ValueError, match="200 of 1000 bytes are free.* leaves 250 to others"):
            worker.determine_available_memory()

    STATE = 60

    def test_states_have_a_part_of_what_is_free(self, worker, monkeypatch):
        """Rows are as many as the pages let requests run, or as requests may run at all."""
        page = SimpleNamespace(page_size_bytes=100, block_size=64)
        state = MambaSpec(block_size=64, shapes=((self.STATE,),), dtypes=(torch.int8,))
        state = replace(state, page_size_padded=100)
        worker.model_runner.get_kv_cache_spec = lambda: {"a": page, "b": state, "c": state}
        for requests, free in (3, 1000), (3, 10000), (100, 5000), (100, 40000):
            worker.scheduler_config.max_num_seqs = requests
            pages = worker.memory_of_pages(free)
            # Two layers with states and one of attention: a group each.
            rows = min(requests, pages // 100 // 3) + 1
            used = pages + rows * 2 * self.STATE
            assert free - 2 * self.STATE - 3 * 100 <= used <= free


class TestSlots:
    def call(self, cp_size=1):
        table = torch.tensor([[3, 5, 0], [7, 1, 2]], dtype=torch.int32)
        slots = torch.full((8,), 99)
        slot_mapping(
            4, 8, torch.tensor([0, 1, 4], dtype=torch.int32),
            torch.tensor([64, 126, 127, 128]), table, 3, slots, 64, cp_size, 0, 1, -1, 1024,
        )  # fmt: skip
        return slots.tolist()

    def test_slots(self):
        assert self.call() == [5 * 64, 64 + 62, 64 + 63, 2 * 64, -1, -1, -1, -1]

    def test_context_parallelism(self):
        with pytest.raises(ValueError, match="2 ranks of context parallelism"):
            self.call(cp_size=2)
