# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The torch part of scripts/test and scripts/bench: a virtual environment with
# torch and the plugin. Sourced by bash after lib.sh and lib-tap.sh.

torch_version=2.13.0

# A python3 that can create virtual environments and build extensions.
find_venv_python() {
	local p
	for p in ${PYTHON:-/usr/bin/python3 python3}; do
		if "$p" -c 'import ensurepip, os, sys, sysconfig, venv
sys.exit(sys.version_info < (3, 10) or
         not os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"))' 2>/dev/null; then
			venv_python=$(command -v "$p")
			return 0
		fi
	done
	return 1
}

# torch_venv: makes build/torch-venv, once for each list of packages; sets
# $torch_python. Fails with the reason in $torch_missing if that is impossible.
torch_venv() {
	local venv=$top/build/torch-venv wanted log
	torch_python=$venv/bin/python
	torch_missing=
	if ! find_venv_python; then
		torch_missing="no python3 >= 3.10 with venv and headers (scripts/deps torch)"
		return 1
	fi
	wanted=$(echo "$venv_python torch==$torch_version" && cat "$top"/torch_spyre/requirements-*.txt)
	[ "$(cat "$venv/.packages" 2>/dev/null)" != "$wanted" ] || return 0
	say "pip install torch==$torch_version and the test packages, into build/torch-venv"
	log=$(log_file torch-venv)
	rm -rf "$venv"
	if ! { "$venv_python" -m venv "$venv" &&
		"$torch_python" -m pip install "torch==$torch_version" \
			-r "$top/torch_spyre/requirements-test.txt" &&
		"$torch_python" -m pip install --no-deps --target "$venv/vision" \
			-r "$top/torch_spyre/requirements-vision.txt" &&
		"$torch_python" -m pip install --no-deps --target "$venv/llm" \
			-r "$top/torch_spyre/requirements-llm.txt" &&
		"$torch_python" -m pip install --no-deps --target "$venv/trace" \
			-r "$top/torch_spyre/requirements-trace.txt"; } >"$log" 2>&1; then
		torch_missing="pip cannot have torch==$torch_version here: $(tail -n 1 "$log")"
		return 1
	fi
	printf '%s' "$wanted" >"$venv/.packages"
}

# torch_source: a copy of the plugin in build/torch-src, which keeps the source tree clean.
torch_source() {
	local copy=$top/build/torch-src
	mkdir -p "$copy"
	find "$copy" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
	(cd "$top/torch_spyre" && tar -c --exclude=build --exclude='*.so' --exclude=__pycache__ \
		--exclude='*.egg-info' .) | tar -x -C "$copy"
}

# torch_pip COMMAND...: pip of the virtual environment, building against build/plain, or against
# $torch_builddir for another architecture.
torch_pip() {
	SPYRE_BUILDDIR=${torch_builddir:-$top/build/plain} SPYRE_SRCDIR=$top MAX_JOBS=$jobs \
		CFLAGS="-O2 -g0 ${CFLAGS-}" \
		PATH=$top/build/torch-venv/bin:$PATH \
		"$torch_python" -m pip "$@"
}

# Builds the plugin against build/plain and installs it.
torch_plugin() {
	torch_source || return 1
	torch_pip install --no-build-isolation --no-deps --no-index \
		--force-reinstall "$top/build/torch-src"
}

# torch_run COMMAND...: runs it in the environment of the plugin's tests and benchmarks. A
# convolution on a busy machine can exceed the default time limit of 10 s.
torch_run() {
	env SPYRE_BACKEND=embedded SPYRE_TIMEOUT_MS="${SPYRE_TIMEOUT_MS:-60000}" \
		SPYRE_SRCDIR="$top" SPYRE_BUILDDIR="$top/build/plain" \
		TORCHINDUCTOR_CACHE_DIR="$top/build/torch-cache" HF_HUB_OFFLINE=1 \
		TRANSFORMERS_OFFLINE=1 PYTHONDONTWRITEBYTECODE=1 TOKENIZERS_PARALLELISM=false \
		PATH="$top/build/torch-venv/bin:$PATH" "$@"
}

# torch_tests NAME FILE...: some of tests/torch. Runs in a subshell as well: torch_tally counts.
torch_tests() {
	local name=torch-$1 start=$SECONDS
	shift
	: >"$(log_file "$name")"
	torch_run timeout -k 10 "${torch_limit:-3000}" "$torch_python" -m pytest -q --disable-warnings -p no:cacheprovider \
		--tap "$(log_file "$name")" "${@/#/$top/tests/torch/}" \
		>"$(log_file "$name-pytest")" 2>&1
	echo $? >"$(log_file "$name-status")"
	note "$name: $((SECONDS - start)) s"
}

# torch_tally NAME: counts the results of torch_tests NAME.
torch_tally() { tally_tap "$(cat "$(log_file "torch-$1-status")")" "torch-$1"; }

# Files of tests/torch that are in no other group.
torch_core_files() {
	local file
	for file in "$top"/tests/torch/test_*.py; do
		file=${file##*/}
		case $file in
		test_opinfo.py | test_compile*.py | test_hint.py | test_inductor*.py | \
			test_model_*.py | test_architectures.py | test_distributed_*.py) ;;
		*) echo "$file" ;;
		esac
	done
}

torch_compile_files() {
	(cd "$top/tests/torch" && ls test_compile*.py test_hint.py test_inductor*.py 2>/dev/null)
}

# These start processes, which they cannot where others have used a card before.
torch_distributed_files() {
	(cd "$top/tests/torch" && ls test_distributed_*.py)
}

torch_model_files() {
	(cd "$top/tests/torch" && ls test_model_*.py test_architectures.py)
}

# True if the plain user of the virtual machine can read a file.
open_to_others() {
	[ "$(id -u)" != 0 ] ||
		setpriv --reuid=1000 --regid=1000 --clear-groups -- test -r "$1"
}

smoke_hashes=$top/build/torch-smoke.json

# A small set of operations on the embedded card.
torch_smoke() {
	local status
	torch_run "$torch_python" "$top/tests/torch/smoke.py" --hashes "$smoke_hashes" \
		>"$(log_file torch-smoke)" 2>&1
	status=$?
	tally_tap $status torch-smoke
	return $status
}

# The same set on both cards: results are correct and bit-identical.
part_torch_vm() {
	local log user=--user
	torch_smoke || return
	if ! kernel_version >/dev/null || ! command -v qemu-system-x86_64 >/dev/null; then
		skip "torch on the kernel's card" "no QEMU or no Debian 6.12 kernel (scripts/deps vm)"
		return
	fi
	build_module || { not_ok "the module builds" module; return; }
	if ! open_to_others "$top/tests/torch/smoke.py" || ! open_to_others "$torch_python"; then
		skip "torch as a plain user" "$top is closed to other users"
		user=
	fi
	say "booting QEMU: a subset on /dev/accel/accel0"
	log=$(log_file torch-vm)
	# Some AVX2 instructions of the emulated processor are wrong: torch and numpy do not use it.
	"$top/scripts/vm" $user --module "$module" --log "$(log_file torch-vm-kernel)" \
		--timeout 900 --env SPYRE_BACKEND=drm --env PYTHONDONTWRITEBYTECODE=1 \
		--env ATEN_CPU_CAPABILITY=default --env NPY_DISABLE_CPU_FEATURES="AVX2 FMA3" \
		-- "$torch_python" "$top/tests/torch/smoke.py" --compare "$smoke_hashes" >"$log" 2>&1
	tally_tap $? torch-vm
}

# Most of a test is Python of one thread, so two processors run two groups at a time.
torch_all_tests() {
	local name core
	rm -f "$(log_file torch-core-status)" "$(log_file torch-opinfo-status)" \
		"$(log_file torch-compile-status)" "$(log_file torch-models-status)" \
		"$(log_file torch-distributed-status)"
	torch_tests core $(torch_core_files) &
	core=$!
	torch_tests opinfo test_opinfo.py
	torch_tests compile $(torch_compile_files)
	torch_tests models $(torch_model_files)
	torch_limit=900 torch_tests distributed $(torch_distributed_files)
	wait $core
	for name in core opinfo compile models distributed; do
		torch_tally $name
	done
}

part_torch() {
	need_plain || return
	if ! torch_venv; then
		skip "torch" "$torch_missing"
		return
	fi
	step "the plugin builds and installs" torch-plugin torch_plugin || return
	say "tests/torch on the embedded card"
	rm -rf "$top/build/torch-cache"
	torch_all_tests
	part_torch_vm
}
