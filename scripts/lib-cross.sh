# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The cross part of scripts/test: builds for other architectures, whose programs run under qemu-user.
# Sourced by bash after lib.sh, lib-tap.sh and lib-package.sh.

# Architectures as Debian names them; those of cross_archs are built.
cross_archs=${SPYRE_CROSS:-arm64 ppc64el s390x}
declare -A cross_triplet=([arm64]=aarch64-linux-gnu [ppc64el]=powerpc64le-linux-gnu
	[s390x]=s390x-linux-gnu)
declare -A cross_qemu=([arm64]=aarch64 [ppc64el]=ppc64le [s390x]=s390x)
# Programs of tests/unit that are run for arm64, whose bytes have the order of x86's, and for s390x.
cross_units="model_boxes model_codecs model_dma model_exec model_format model_functions model_indirect
	model_integers model_products model_programs model_tables model_units model_verify
	sdsc_conv sdsc_integers sdsc_matmul sdsc_places sdsc_quant sdsc_topk
	bundle_cache bundle_image format_numbers runtime_copy tools_coredump tools_npy tools_tensor"
# Seconds after which a program that has not ended is a failure.
cross_limit=1200

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
		libncurses-dev check libsubunit-dev; then
		cross_missing="mmdebstrap failed (build/log/cross-root-$arch.log)"
		return 1
	fi
	# The first line of an archive is that of the release; libc6 is the one from above.
	if ! archives_of trixie | head -n 1 | quietly "cross-late-$arch" cross_download "$arch" \
		"$late" libyyjson0 libyyjson-dev; then
		cross_missing="apt-get failed (build/log/cross-late-$arch.log)"
		return 1
	fi
	cross_relative "$cross_root/root" &&
		cp -a "$late/usr/include/yyjson.h" "$cross_root/root/usr/include/" &&
		cp -a "$late/usr/lib/$triplet/"libyyjson* "$cross_root/root/usr/lib/$triplet/" &&
		cp -a "$late/usr/lib/$triplet/pkgconfig/yyjson.pc" \
			"$cross_root/root/usr/lib/$triplet/pkgconfig/" &&
		rm -rf "$late" && touch "$cross_root/complete"
}

# cross_relative ROOT: absolute links lead out of the root, such as that of libm.so, and the linker
# would take the static library in its place; the loader of ppc64el is one as well.
cross_relative() {
	local link
	find "$1/usr/lib" "$1"/lib* -type l -lname '/*' | while read -r link; do
		ln -sfnr "$1$(readlink "$link")" "$link" || return
	done
}

# cross_extract ARCH SUITE FOLDER PACKAGE...: takes lines of apt's sources from standard input.
cross_extract() {
	local arch=$1 suite=$2 folder=$3
	shift 3
	mmdebstrap --variant=extract --architectures="$arch" --include="$*" "$suite" "$folder" -
}

# cross_download ARCH FOLDER PACKAGE...: takes lines of apt's sources from standard input, and
# extracts these packages alone. An apt of its own, in FOLDER, has that architecture only.
cross_download() {
	local arch=$1 folder=$2 apt keyring=/usr/share/keyrings/debian-archive-keyring.gpg options file
	shift 2
	apt=$folder/apt
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	: >"$apt/status"
	if [ -e "$keyring" ]; then
		sed "s|^deb |deb [signed-by=$keyring] |"
	else
		cat
	fi >"$apt/sources.list"
	options=(-o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status"
		-o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root
		-o APT::Architecture="$arch" -o APT::Architectures="$arch")
	apt-get "${options[@]}" update &&
		env -C "$apt" apt-get "${options[@]}" download "$@" || return
	for file in "$apt"/*.deb; do
		dpkg-deb -x "$file" "$folder" || return
	done
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

# cross_tests ARCH: the recorded bundles on each unit, with the bytes of this machine's scalar unit,
# and digits.
cross_tests() {
	local arch=$1 log sum unit have
	say "running programs of $arch under qemu-user"
	have=$(units "$build/spyre")
	[ -n "$have" ] || not_ok "spyre doctor on $arch names the arithmetic units" ""
	for unit in $have; do
		log=$(log_file "cross-$arch-conformance-$unit")
		SPYRE_TIMEOUT_MS=600000 SPYRE_BACKEND=embedded SPYRE_UNIT=$unit \
			SPYRE_EMBEDDED_THREADS=1 "$python" "$top/tests/conformance/run.py" \
			--spyre "$build/spyre" --compare "$top/build/plain/recorded.json" \
			>"$log" 2>&1
		tally_tap $? "cross-$arch-conformance-$unit"
	done
	sum=$(SPYRE_BACKEND=embedded "$top/build/plain/examples/digits/digits" | digits_sum)
	step "digits on $arch has the checksum of this machine, $sum" "cross-$arch-digits" \
		test "$("$cross_run" "$build/examples/digits/.libs/digits" | digits_sum)" = \
		"${sum:-none}"
}

# cross_programs ARCH: unit tests under qemu-user, each for a bounded time.
cross_programs() {
	local arch=$1 name program programs=() log status=0
	for name in $cross_units; do
		programs+=("tests/unit/$name")
	done
	say "running ${#programs[@]} programs of unit tests of $arch under qemu-user"
	step "unit tests of $arch compile without a warning" "cross-$arch-programs" \
		make -C "$build" -j"$jobs" "${programs[@]}" || return
	log=$(log_file "cross-$arch-units")
	: >"$log"
	for program in "${programs[@]}"; do
		# Where a program links to the library in the tree, the name is that of libtool's script.
		name=$build/${program%/*}/.libs/${program##*/}
		[ -x "$name" ] || name=$build/$program
		env -C "$build" CK_TAP_LOG_FILE_NAME=- CK_VERBOSITY=silent CK_TIMEOUT_MULTIPLIER=20 \
			SPYRE_TIMEOUT_MS=600000 srcdir="$top" SPYRE_BACKEND=embedded \
			timeout "$cross_limit" "$cross_run" "$name" >>"$log" 2>&1 && continue
		status=$?
		echo "not ok - ${program##*/} ended with status $status" >>"$log"
	done
	tally_tap "$status" "cross-$arch-units"
}

# cross_image SPYRE BUNDLE FOLDER: compiles a bundle to FOLDER, and blanks the key of its image, which
# depends on the build of the library, and the sum.
cross_image() {
	SPYRE_BACKEND=embedded "$1" compile "$2" -o "$3" &&
		dd if=/dev/zero of="$3/init_binary.bin" bs=1 seek=16 count=32 conv=notrunc
}

# cross_images FOLDER: bundles compiled there have the same bytes as those compiled here.
cross_images() {
	local name bundle
	for name in mm layernorm softmax_pool gather; do
		bundle=$top/tests/conformance/bundles/$name
		cross_image "$top/build/plain/tools/spyre/spyre" "$bundle" "$1/$name.here" &&
			cross_image "$build/spyre" "$bundle" "$1/$name.there" &&
			cmp "$1/$name.here/init_binary.bin" "$1/$name.there/init_binary.bin" || return
	done
}

part_cross() {
	local arch images
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
			images=$(mktemp -d)
			step "compiled bundles of $arch have the bytes of this machine's" \
				"cross-$arch-images" cross_images "$images"
			rm -rf "$images"
			[ "$arch" = ppc64el ] || cross_programs "$arch"
		else
			not_ok "libspyre and the tools build for $arch without a warning" "cross-$arch-build"
		fi
	done
}
