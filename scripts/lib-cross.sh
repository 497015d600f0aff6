# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The cross part of scripts/test: builds for other architectures, whose programs run under qemu-user.
# Sourced by bash after lib.sh, lib-tap.sh and lib-package.sh.

# Architectures as Debian names them; those of cross_archs are built.
cross_archs=${SPYRE_CROSS:-arm64 ppc64el s390x}
declare -A cross_triplet=([arm64]=aarch64-linux-gnu [ppc64el]=powerpc64le-linux-gnu
	[s390x]=s390x-linux-gnu)
declare -A cross_qemu=([arm64]=aarch64 [ppc64el]=ppc64le [s390x]=s390x)
# The first bytes of an ELF program of 64 bits, little and big endian, and the bits of them that count:
# without those of the ABI's version, and of the type, which is an executable or a shared object.
cross_elf='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00'
cross_elf_big='\x7fELF\x02\x02\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02'
declare -A cross_magic=([arm64]="$cross_elf\\xb7\\x00" [ppc64el]="$cross_elf\\x15\\x00"
	[s390x]="$cross_elf_big\\x00\\x16")
cross_ones='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff'
declare -A cross_mask=([arm64]="$cross_ones\\xfe\\xff\\xff\\xff" [ppc64el]="$cross_ones\\xfe\\xff\\xff\\xff"
	[s390x]="$cross_ones\\xff\\xfe\\xff\\xff")
# Fuzzers that compare results or look for crashes: of the bundle parser, images, the verifier and DMA.
cross_fuzzers="fuzz-bundle fuzz-code fuzz-coredump fuzz-dma fuzz-generated fuzz-isa fuzz-program"

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
	# The first line of an archive is that of the release: these libraries serve tests only, which
	# need no security updates, and mirrors have those of the rarer architectures late.
	if ! archives_of bookworm | sed -n 1p | quietly "cross-root-$arch" cross_extract "$arch" bookworm \
		"$cross_root/root" libc6-dev libc-bin libgcc-12-dev libdrm-dev libxxhash-dev \
		liburing-dev libncurses-dev check libsubunit-dev; then
		cross_missing="mmdebstrap failed (build/log/cross-root-$arch.log)"
		return 1
	fi
	# yyjson came to Debian with trixie, and needs nothing but libc6, which is the one from above.
	if ! archives_of trixie | sed -n 1p | quietly "cross-late-$arch" cross_download "$arch" \
		"$late" libyyjson0 libyyjson-dev; then
		cross_missing="apt-get failed (build/log/cross-late-$arch.log)"
		return 1
	fi
	cross_relative "$cross_root/root" &&
		cp -a "$late/usr/include/yyjson.h" "$cross_root/root/usr/include/" &&
		cp -a "$late/usr/lib/$triplet/"libyyjson* "$cross_root/root/usr/lib/$triplet/" &&
		cp -a "$late/usr/lib/$triplet/pkgconfig/yyjson.pc" \
			"$cross_root/root/usr/lib/$triplet/pkgconfig/" &&
		rm -rf "$late" && cross_only_libraries "$cross_root/root" && touch "$cross_root/complete"
}

# cross_only_libraries ROOT: programs under qemu-user find files there first, and are to have this
# machine's devices and settings.
cross_only_libraries() {
	find "$1" -mindepth 1 -maxdepth 1 ! -name usr ! -name 'lib*' -exec rm -rf {} +
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
	local arch=$1 suite=$2 folder=$3 mode=root
	shift 3
	# As a user, mmdebstrap would look for subordinate ids, which extracting does not need.
	[ "$(id -u)" = 0 ] || mode=chrootless
	mmdebstrap --mode=$mode --variant=extract --architectures="$arch" --include="$*" "$suite" "$folder" -
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

# cross_recorded ARCH UNIT...: the recorded bundles on each unit, with the bytes of this machine's scalar
# unit.
cross_recorded() {
	local arch=$1 unit
	shift
	[ $# -gt 0 ] || not_ok "spyre doctor on $arch names the arithmetic units" ""
	for unit; do
		cross_conformance "$arch" "recorded-$unit" "$unit" "$top/build/plain/recorded.json"
	done
}

# cross_conformance ARCH NAME UNIT HASHES [run.py options]: results have the bytes of HASHES.
cross_conformance() {
	local name=cross-$1-$2 unit=$3 hashes=$4
	shift 4
	SPYRE_TIMEOUT_MS=600000 SPYRE_BACKEND=embedded SPYRE_UNIT=$unit SPYRE_EMBEDDED_THREADS=1 \
		"$python" "$top/tests/conformance/run.py" --spyre "$build/spyre" --compare "$hashes" "$@" \
		>"$(log_file "$name")" 2>&1
	tally_tap $? "$name"
}

# cross_generated ARCH UNIT: as well the fixed set of generated bundles.
cross_generated() {
	step "serve of $1 compiles without a warning" "cross-$1-serve" \
		make -C "$build" -j"$jobs" tests/conformance/serve || return
	printf '#!/bin/sh\nexec %s/run %s\n' "$build" "$(cross_program tests/conformance/serve)" >"$build/serve"
	chmod +x "$build/serve"
	say "the generated bundles on $1, unit $2"
	cross_conformance "$1" generated "$2" "$top/build/plain/conformance.json" \
		--generated "$top/build/plain/generated" --serve "$build/serve"
}

# cross_digits ARCH: a whole model, whose checksum depends on every bit of its results.
cross_digits() {
	local sum
	sum=$(SPYRE_BACKEND=embedded "$top/build/plain/examples/digits/digits" | digits_sum)
	step "digits on $1 has the checksum of this machine, $sum" "cross-$1-digits" \
		test "$("$cross_run" "$(cross_program examples/digits/digits)" | digits_sum)" = "${sum:-none}"
}

# cross_emulated WHAT ARCH: false, with a skip of WHAT, where the kernel cannot run the
# architecture's programs by their names, as programs that start others need.
cross_emulated() {
	local log
	log=$(log_file "cross-$2-emulate")
	"$top/scripts/emulate" "$2" true >"$log" 2>&1 && return 0
	skip "$1 on $2" "$(tail -n 1 "$log")"
	return 1
}

# cross_check ARCH: the whole of make check. An emulated processor is twenty to a hundred times slower
# than the machine, and limits of time are meant for hangs.
cross_check() {
	local arch=$1 log
	cross_emulated "make check" "$arch" || return 0
	say "make check of $arch under qemu-user"
	step "test programs of $arch compile without a warning" "cross-$arch-programs" \
		make -C "$build" -j"$jobs" check TESTS= || return
	find "$build" -name '*.trs' -delete
	CK_TIMEOUT_MULTIPLIER=50 SPYRE_TIMEOUT_MS=600000 "$top/scripts/emulate" "$arch" \
		make -C "$build" -j"$jobs" check >"$(log_file "cross-$arch-check")" 2>&1
	tally_trs "$build" "cross-$arch-check"
}

# cross_program PATH: prints where a program of the build folder is; the name of one that is linked to
# the library in the tree is that of libtool's script.
cross_program() {
	local program=$build/${1%/*}/.libs/${1##*/}
	[ -x "$program" ] || program=$build/$1
	echo "$program"
}

# cross_fuzz ARCH: the fuzzers that compare results or look for crashes, each for a bounded time.
cross_fuzz() {
	local arch=$1 name
	step "fuzzers of $arch compile without a warning" "cross-$arch-fuzz-build" \
		make -C "$build" -j"$jobs" fuzzers || return
	for name in $cross_fuzzers; do
		if [ "$arch $name" = "ppc64el fuzz-dma" ] && cross_rounds_twice; then
			skip "$name on $arch" "this qemu rounds int64 to fp32 by way of fp64"
			continue
		fi
		step "$name on $arch" "cross-$arch-$name" env SPYRE_SRCDIR="$top" \
			SPYRE_TIMEOUT_MS=600000 "$cross_run" "$(cross_program "tests/fuzz/$name")" \
			--seconds "${FUZZ_SECONDS:-60}"
	done
}

# cross_rounds_twice: true if the emulated xscvsxdsp, which rounds once on a processor, gives 2^62 for
# 2^62 + 2^38 + 1, as that of qemu 7.2 does.
cross_rounds_twice() {
	local source=$build/xscvsxdsp.c
	cat >"$source" <<-'END'
		int main(void)
		{
			volatile long number = 0x4000004000000001;
			double in, out;

			__builtin_memcpy(&in, (void *)&number, 8);
			__asm__("xscvsxdsp %x0,%x1" : "=wa"(out) : "wa"(in));
			return out != 0x1p62;
		}
	END
	"${cross_triplet[ppc64el]}-gcc" --sysroot="$cross_root/root" -O1 "$source" -o "$build/xscvsxdsp" &&
		"$cross_run" "$build/xscvsxdsp"
}

# cross_package ARCH: Debian's packages, built and used in a bare Debian 12. Packages of several
# architectures must have one version, and mirrors have security updates of the rarer ones late.
cross_package() {
	local bare_release=1
	if ! bare_root bookworm; then
		skip "packages of $1" "$root_missing"
		return
	fi
	step "the source package is made" cross-source package_dsc || return
	step_in_root "building the packages for $1 in a bare Debian 12" "cross-$1-packages" "$root" "" \
		cross.sh "$top"/build/package/dsc/spyre_* -- "$1" "qemu-${cross_qemu[$1]}"
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

# cross_ready: what this machine's own programs compute, for comparison. False after a skip.
cross_ready() {
	if [ "$(uname -m)" != x86_64 ]; then
		skip "cross" "it compares with x86-64, and this machine is $(uname -m)"
		return 1
	fi
	deps cross >"$(log_file cross-deps)" 2>&1 ||
		{ skip "cross" "its packages cannot be installed (build/log/cross-deps.log)"; return 1; }
	need_plain || return
	find_python || { skip "cross" "no python3 with numpy"; return 1; }
	export PYTHONDONTWRITEBYTECODE=1
	step "the recorded bundles run here" cross-recorded env SPYRE_BACKEND=embedded \
		SPYRE_UNIT=scalar SPYRE_EMBEDDED_THREADS=1 "$python" "$top/tests/conformance/run.py" \
		--spyre "$build/tools/spyre/spyre" --hashes "$build/recorded.json"
}

# cross_begin ARCH: the library and the tools; sets $build, $cross_run and $cross_units.
cross_begin() {
	local arch=$1
	if [ -z "${cross_triplet[$arch]-}" ]; then
		not_ok "$arch is one of: ${!cross_triplet[*]}" ""
	elif ! cross_root "$arch"; then
		skip "cross for $arch" "$cross_missing"
	elif ! cross_build "$arch"; then
		not_ok "libspyre and the tools build for $arch without a warning" "cross-$arch-build"
	else
		ok "libspyre and the tools build for $arch without a warning"
		cross_runner "$arch"
		cross_units=$(units "$build/spyre")
		say "running programs of $arch under qemu-user"
		return 0
	fi
	return 1
}

# The architectures that differ most from this machine, on their fastest unit, in five minutes.
part_cross_smoke() {
	local arch
	cross_ready || return
	for arch in arm64 s390x; do
		cross_begin "$arch" || continue
		cross_recorded "$arch" "$(tail -n 1 <<<"$cross_units")"
		cross_digits "$arch"
	done
}

part_cross() {
	local arch images
	cross_ready || return
	conformance_baseline
	for arch in $cross_archs; do
		cross_begin "$arch" || continue
		# shellcheck disable=SC2086
		cross_recorded "$arch" $cross_units
		cross_digits "$arch"
		images=$(mktemp -d)
		step "compiled bundles of $arch have the bytes of this machine's" \
			"cross-$arch-images" cross_images "$images"
		rm -rf "$images"
		cross_generated "$arch" "$(tail -n 1 <<<"$cross_units")"
		cross_fuzz "$arch"
		cross_check "$arch"
		cross_package "$arch"
		[ "$arch" != arm64 ] || { cross_torch; cross_kernel; }
	done
}
