# SPDX-License-Identifier: MIT
# The vLLM plugin: built by pip, not by make. One file per line.
EXTRA_DIST += vllm_plugin/README.md
EXTRA_DIST += vllm_plugin/pyproject.toml
EXTRA_DIST += vllm_plugin/requirements-build.txt
EXTRA_DIST += vllm_plugin/requirements-test.txt
EXTRA_DIST += vllm_plugin/vllm_spyre_open/__init__.py
EXTRA_DIST += vllm_plugin/vllm_spyre_open/attention.py
EXTRA_DIST += vllm_plugin/vllm_spyre_open/batches.py
EXTRA_DIST += vllm_plugin/vllm_spyre_open/layers.py
EXTRA_DIST += vllm_plugin/vllm_spyre_open/model.py
EXTRA_DIST += vllm_plugin/vllm_spyre_open/platform.py
EXTRA_DIST += vllm_plugin/vllm_spyre_open/refusals.py
EXTRA_DIST += vllm_plugin/vllm_spyre_open/runner.py
EXTRA_DIST += vllm_plugin/vllm_spyre_open/slots.py
EXTRA_DIST += vllm_plugin/vllm_spyre_open/version.py
EXTRA_DIST += vllm_plugin/vllm_spyre_open/weights.py
EXTRA_DIST += vllm_plugin/vllm_spyre_open/worker.py
