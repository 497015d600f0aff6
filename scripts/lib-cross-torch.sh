# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The PyTorch plugin for arm64: its wheel is built here and loaded by an arm64 Python under
# qemu-user. Sourced by bash after lib-torch.sh and lib-cross.sh, whose variables it takes.

# Packages of PyPI that torch imports and that the tests need. The other requirements of torch are
# libraries for NVIDIA's cards, of which loading torch calls only the last two.
cross_torch_needs="sympy mpmath networkx jinja2 markupsafe filelock fsspec typing-extensions pluggy
	iniconfig packaging pygments sortedcontainers
	nvidia-cuda-runtime==13.0.* nvidia-cuda-cupti==13.0.*"
cross_torch_pinned='numpy|pytest|expecttest|hypothesis|setuptools'
# Files of tests/torch that neither compile nor start a process, and take minutes under qemu-user.
cross_torch_files="test_core_copy.py test_core_layout.py test_eager_arithmetic.py test_storage.py"
# Seconds after which a program that has not ended is a failure.
cross_torch_limit=1200
# Packages of Debian that python3.11 runs with, and the headers of the plugin's build.
cross_python_debs="python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libpython3.11-dev
	libexpat1 zlib1g libffi8 libssl3 libbz2-1.0 liblzma5 libuuid1"

# cross_pip FOLDER ARGUMENT...: installs wheels of arm64 there, without their dependencies.
cross_pip() {
	local folder=$1 minor tags=()
	shift
	for minor in {28..17}; do
		tags+=(--platform "manylinux_2_${minor}_aarch64")
	done
	"$torch_python" -m pip install --target "$folder" --no-deps --only-binary=:all: \
		"${tags[@]}" --platform manylinux2014_aarch64 --platform linux_aarch64 \
		--python-version 3.11 --implementation cp --abi cp311 --abi abi3 --abi none "$@"
}

# cross_torch_root: arm64's Python and torch, extracted once for each list of packages; sets
# $cross_torch. Status 1: $cross_missing has the reason.
cross_torch_root() {
	local wanted pinned
	cross_torch=$cross_root/torch
	cross_missing=
	pinned=$(grep -E "^($cross_torch_pinned)==" "$top/torch_spyre/requirements-test.txt")
	wanted="torch==$torch_version $pinned $cross_torch_needs"
	[ "$(cat "$cross_torch/.packages" 2>/dev/null)" != "$wanted" ] || return 0
	say "extracting Python and torch of arm64 into $cross_torch, once"
	rm -rf "$cross_torch"
	mkdir -p "$cross_torch"
	# shellcheck disable=SC2086
	if ! archives_of bookworm | quietly cross-torch-python cross_download arm64 \
		"$cross_torch/python" $cross_python_debs; then
		cross_missing="apt-get failed (build/log/cross-torch-python.log)"
	elif ! quietly cross-torch-packages cross_pip "$cross_torch/packages" $wanted; then
		cross_missing="pip failed: $(grep -m 1 ERROR "$(log_file cross-torch-packages)")"
	else
		quietly cross-torch-none cross_torch_none && cross_torch_system &&
			printf '%s' "$wanted" >"$cross_torch/.packages" && return
		cross_missing="the libraries of torch are others (build/log/cross-torch-none.log)"
	fi
	return 1
}

# cross_symbols OPTION FILE...: names in the symbol tables of shared libraries.
cross_symbols() {
	aarch64-linux-gnu-nm -D "$@" 2>/dev/null | awk '{ sub("@.*", "", $NF); print $NF }' |
		sort -u
}

# cross_torch_none: replaces CUDA's libraries that torch needs to be loaded, but does not call
# without a card of NVIDIA's. libnone.so has their symbols, each of which is an invalid
# instruction. The loader refuses symbols without a version in a library of the expected name, so
# those are empty.
cross_torch_none() {
	local lib=$cross_torch/packages/torch/lib none=$cross_torch/none name
	mkdir -p "$none"
	comm -23 <(cross_symbols --undefined-only "$lib"/*.so*) <(cross_symbols --defined-only \
		"$lib"/*.so* "$cross_torch"/packages/nvidia/*/lib/*.so* \
		"$cross_root"/root/lib/*/*.so*) |
		sed -nE 's/^(cu|nv|nccl).*/.globl &\n.type &, %function\n&:/p' >"$none/none.s"
	[ -s "$none/none.s" ] && echo ".inst 0" >>"$none/none.s" &&
		aarch64-linux-gnu-gcc -shared -nostdlib -Wl,-soname,libnone.so \
			-o "$none/libnone.so" "$none/none.s" || return
	for name in $(aarch64-linux-gnu-readelf -dW "$lib"/*.so* |
		sed -nE 's/.*NEEDED.*\[(lib(cu|nv|nccl).*)\]/\1/p' | sort -u); do
		[ -z "$(find "$lib" "$cross_torch"/packages/nvidia -name "$name")" ] || continue
		aarch64-linux-gnu-gcc -shared -nostdlib -Wl,-soname,"$name" -Wl,--no-as-needed \
			-o "$none/$name" -L"$none" -lnone || return
	done
}

# cross_torch_system: the folder in which qemu-user looks up paths first. torch crashes if
# /proc/cpuinfo, which would be this machine's, has no processor of arm64.
cross_torch_system() {
	local system=$cross_torch/system cpu
	mkdir -p "$system/proc"
	ln -s "$cross_root/root/lib" "$cross_root/root/usr" "$system/"
	for cpu in $(seq 0 $(($(nproc --all) - 1))); do
		printf 'processor\t: %s\n' "$cpu"
		printf 'Features\t: fp asimd crc32 atomics fphp asimdhp cpuid asimdrdm\n'
		printf 'CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\n'
		printf 'CPU part\t: 0xd0c\nCPU revision\t: 1\n\n'
		mkdir -p "$system/sys/devices/system/cpu/cpu$cpu/regs/identification"
		echo 0x00000000413fd0c1 \
			>"$system/sys/devices/system/cpu/cpu$cpu/regs/identification/midr_el1"
	done >"$system/proc/cpuinfo"
}

# cross_wheel: builds the wheel in build/cross-arm64/wheel and unpacks it in site. The environment's
# torch runs setup.py, by the settings of arm64's Python and with the headers of arm64's torch.
cross_wheel() {
	local triplet=aarch64-linux-gnu root=$cross_root/root torch_builddir=$build settings
	settings=_sysconfigdata__$triplet
	torch_source && rm -rf "$build/wheel" "$build/site" "$build/settings" || return
	mkdir "$build/settings"
	cp "$cross_torch/python/usr/lib/python3.11/$settings.py" "$build/settings" || return
	SPYRE_BUNDLE=1 SPYRE_TORCH=$cross_torch/packages/torch TORCH_DONT_CHECK_COMPILER_ABI=1 \
		CC=$triplet-gcc CXX=$triplet-g++ LDFLAGS=--sysroot=$root \
		CFLAGS="--sysroot=$root -I$cross_torch/python/usr/include" \
		OBJDUMP=$triplet-objdump STRIP=$triplet-strip LDD="$(cross_ldd)" \
		PYTHONPATH=$build/settings _PYTHON_SYSCONFIGDATA_NAME=$settings \
		_PYTHON_HOST_PLATFORM=linux-aarch64 torch_pip wheel --no-build-isolation --no-deps \
		--no-index -w "$build/wheel" "$top/build/torch-src" || return
	cross_pip "$build/site" --no-index "$build"/wheel/*.whl
}

# The loader of arm64 under qemu-user, which prints where a library finds those that it needs.
cross_ldd() {
	local root=$cross_root/root
	echo "qemu-aarch64-static -L $root" \
		"-E LD_LIBRARY_PATH=$root/lib/aarch64-linux-gnu:$root/usr/lib/aarch64-linux-gnu" \
		"$root/lib/ld-linux-aarch64.so.1 --list"
}

# cross_python: a script that runs arm64's Python with torch and the plugin; sets $cross_python.
cross_python() {
	local python=$cross_torch/python path
	path=$python/lib/aarch64-linux-gnu:$python/usr/lib/aarch64-linux-gnu:$cross_torch/none
	cross_python=$build/python
	cat >"$cross_python" <<END
#!/bin/sh
exec qemu-aarch64-static -L $cross_torch/system -E LD_LIBRARY_PATH=$path \\
	-E PYTHONHOME=$python/usr -E PYTHONPATH=$build/site:$cross_torch/packages \\
	$python/usr/bin/python3.11 "\$@"
END
	chmod +x "$cross_python"
}

# cross_torch_run STEP ARGUMENT...: arm64's Python in the environment of the plugin's tests, for a
# bounded time; the output is the step's log.
cross_torch_run() {
	local log
	log=$(log_file "$1")
	shift
	SPYRE_TIMEOUT_MS=600000 torch_run timeout "$cross_torch_limit" "$cross_python" "$@" >"$log" 2>&1
}

# part_cross calls this for arm64, of which PyPI has torch.
cross_torch() {
	if [ "$tier" != nightly ] && [ -z "${SPYRE_CROSS_WHEEL-}" ]; then
		skip "the PyTorch plugin on arm64" \
			"only in tier nightly, or with SPYRE_CROSS_WHEEL=1"
		return
	fi
	torch_venv || { skip "the PyTorch plugin on arm64" "$torch_missing"; return; }
	# The wheel's tag and the headers are those of the Python that runs setup.py.
	if ! "$torch_python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then
		skip "the PyTorch plugin on arm64" "python3 here is not 3.11, as arm64's is"
		return
	fi
	cross_torch_root || { skip "the PyTorch plugin on arm64" "$cross_missing"; return; }
	step "the plugin's wheel builds for arm64" cross-torch-wheel cross_wheel || return
	cross_python
	step "the plugin builds here" cross-torch-plugin torch_plugin && torch_smoke || return
	say "running the plugin of arm64 under qemu-user"
	cross_torch_run cross-torch-smoke "$top/tests/torch/smoke.py" --compare "$smoke_hashes"
	tally_tap $? cross-torch-smoke
	# shellcheck disable=SC2086
	cross_torch_run cross-torch-pytest -m pytest -q --disable-warnings -p no:cacheprovider \
		--tap "$(log_file cross-torch-tests)" \
		$(printf "$top/tests/torch/%s " $cross_torch_files)
	tally_tap $? cross-torch-tests
}
