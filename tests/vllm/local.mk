# SPDX-License-Identifier: MIT
# Tests of the vLLM plugin; 'scripts/test vllm' runs them.
EXTRA_DIST += tests/vllm/checkpoints.py tests/vllm/conftest.py tests/vllm/engines.py
EXTRA_DIST += tests/vllm/servers.py tests/vllm/smoke.py
EXTRA_DIST += tests/vllm/faults/sitecustomize.py
EXTRA_DIST += tests/vllm/vision/sitecustomize.py
EXTRA_DIST += tests/vllm/test_attention.py
EXTRA_DIST += tests/vllm/test_batches.py
EXTRA_DIST += tests/vllm/test_engine.py
EXTRA_DIST += tests/vllm/test_hybrid.py
EXTRA_DIST += tests/vllm/test_layers.py
EXTRA_DIST += tests/vllm/test_load.py
EXTRA_DIST += tests/vllm/test_mamba.py
EXTRA_DIST += tests/vllm/test_metrics.py
EXTRA_DIST += tests/vllm/test_models.py
EXTRA_DIST += tests/vllm/test_parallel.py
EXTRA_DIST += tests/vllm/test_platform.py
EXTRA_DIST += tests/vllm/test_pooling.py
EXTRA_DIST += tests/vllm/test_server.py
EXTRA_DIST += tests/vllm/test_states.py
EXTRA_DIST += tests/vllm/test_trouble.py
EXTRA_DIST += tests/vllm/test_vision.py
