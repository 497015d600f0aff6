# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The cross part of scripts/test: builds for other architectures, whose programs run under qemu-user.
# Sourced by bash after lib.sh, lib-tap.sh and lib-package.sh.

# Architectures as Debian names them; those of cross_archs are built.
cross_archs=${SPYRE_CROSS:-arm64 ppc64el}
declare -A cross_triplet=([arm64]=aarch64-linux-gnu [ppc64el]=powerpc64le-linux-gnu)
declare -A cross_qemu=([arm64]=aarch64 [ppc64el]=ppc64le)

# cross_root ARCH: the headers and libraries of an architecture, extracted once; sets $cross_root. No
# program of theirs runs, so that neither root nor an emulator is needed. Status 1: $cross_missing
# has the reason.
cross_root() {
	local arch=$1 triplet=${cross_triplet[$1]} late
	cross_root=${XDG_CACHE_HOME:-$HOME/.cache}/spyre/cross-$arch
	cross_missing=
	[ ! -e "$cross_root/complete" ] || return 0
	if [ -z "$(archives_of bookworm)" ]; then
		cross_missing="apt here has no Debian archive"
		return 1
	fi
	say "extracting the libraries of $arch into ${cross_root%/*}, once"
	late=$cross_root/late
	rm -rf "$cross_root"
	mkdir -p "$cross_root"
	# yyjson came to Debian with trixie, and needs nothing but libc6.
	if ! archives_of bookworm | quietly "cross-root-$arch" cross_extract "$arch" bookworm \
		"$cross_root/root" libc6-dev libgcc-12-dev libdrm-dev libxxhash-dev liburing-dev \
		libncurses-dev check libsubunit-dev ||
		! archives_of trixie | quietly "cross-root-$arch" cross_extract "$arch" trixie \
			"$late" libyyjson-dev; then
		cross_missing="mmdebstrap failed (build/log/cross-root-$arch.log)"
		return 1
	fi
	cp -a "$late/usr/include/yyjson.h" "$cross_root/root/usr/include/" &&
		cp -a "$late/usr/lib/$triplet/"libyyjson* "$cross_root/root/usr/lib/$triplet/" &&
		cp -a "$late/usr/lib/$triplet/pkgconfig/yyjson.pc" \
			"$cross_root/root/usr/lib/$triplet/pkgconfig/" &&
		rm -rf "$late" && touch "$cross_root/complete"
}

# cross_extract ARCH SUITE FOLDER PACKAGE...: takes lines of apt's sources from standard input.
cross_extract() {
	local arch=$1 suite=$2 folder=$3
	shift 3
	mmdebstrap --variant=extract --architectures="$arch" --include="$*" "$suite" "$folder" -
}

# cross_build ARCH: libspyre and the tools in build/cross-ARCH; sets $build.
cross_build() {
	local triplet=${cross_triplet[$1]} root=$cross_root/root
	local -x PKG_CONFIG_SYSROOT_DIR=$root
	local -x PKG_CONFIG_LIBDIR=$root/usr/lib/$triplet/pkgconfig:$root/usr/share/pkgconfig
	build_tree "cross-$1" --host="$triplet" --enable-werror \
		CC="$triplet-gcc --sysroot=$root" CXX="$triplet-g++ --sysroot=$root" &&
		quietly "cross-$1-build" make -C "$build" -j"$jobs"
}

# cross_runner ARCH: a script that runs one of its programs under qemu-user; sets $cross_run.
cross_runner() {
	cross_run=$build/run
	cat >"$cross_run" <<END
#!/bin/sh
exec qemu-${cross_qemu[$1]}-static -L $cross_root/root -E LD_LIBRARY_PATH=$build/libspyre/.libs "\$@"
END
	printf '#!/bin/sh\nexec %s/run %s/tools/spyre/.libs/spyre "$@"\n' "$build" "$build" >"$build/spyre"
	chmod +x "$cross_run" "$build/spyre"
}

# The line of examples/digits that depends on every bit of its results.
digits_sum() { sed -n 's/^output checksum *//p'; }

# cross_tests ARCH: the recorded bundles, with the bytes of this machine's scalar unit, and digits.
cross_tests() {
	local arch=$1 log sum
	say "running programs of $arch under qemu-user"
	log=$(log_file "cross-$arch-conformance")
	SPYRE_TIMEOUT_MS=600000 SPYRE_BACKEND=embedded SPYRE_EMBEDDED_THREADS=1 "$python" \
		"$top/tests/conformance/run.py" --spyre "$build/spyre" \
		--compare "$top/build/plain/recorded.json" >"$log" 2>&1
	tally_tap $? "cross-$arch-conformance"
	sum=$(SPYRE_BACKEND=embedded "$top/build/plain/examples/digits/digits" | digits_sum)
	step "digits on $arch has the checksum of this machine, $sum" "cross-$arch-digits" \
		test "$("$cross_run" "$build/examples/digits/.libs/digits" | digits_sum)" = \
		"${sum:-none}"
}

part_cross() {
	local arch
	if [ "$(uname -m)" != x86_64 ]; then
		skip "cross" "it compares with x86-64, and this machine is $(uname -m)"
		return
	fi
	deps cross >"$(log_file cross-deps)" 2>&1 ||
		{ skip "cross" "its packages cannot be installed (build/log/cross-deps.log)"; return; }
	need_plain || return
	find_python || { skip "cross" "no python3 with numpy"; return; }
	export PYTHONDONTWRITEBYTECODE=1
	step "the recorded bundles run here" cross-recorded env SPYRE_BACKEND=embedded \
		SPYRE_UNIT=scalar SPYRE_EMBEDDED_THREADS=1 "$python" "$top/tests/conformance/run.py" \
		--spyre "$build/tools/spyre/spyre" --hashes "$build/recorded.json" || return
	for arch in $cross_archs; do
		if [ -z "${cross_triplet[$arch]-}" ]; then
			not_ok "$arch is one of: ${!cross_triplet[*]}" ""
		elif ! cross_root "$arch"; then
			skip "cross for $arch" "$cross_missing"
		elif cross_build "$arch"; then
			ok "libspyre and the tools build for $arch without a warning"
			cross_runner "$arch"
			cross_tests "$arch"
		else
			not_ok "libspyre and the tools build for $arch without a warning" "cross-$arch-build"
		fi
	done
}
