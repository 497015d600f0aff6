# SPDX-License-Identifier: MIT
# Shared by the scripts of this folder: messages, build folders, counts.
# Sourced by bash; sets $top (the source tree), $jobs and $python.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=${JOBS:-$(nproc)}

say() { printf '==> %s\n' "$*"; }
note() { printf '    %s\n' "$*"; }
die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# A python3 that has numpy: the first in PATH may be someone's own without it.
find_python() {
	local p
	for p in "${PYTHON:-python3}" /usr/bin/python3; do
		if "$p" -c 'import numpy' 2>/dev/null; then
			python=$(command -v "$p")
			return 0
		fi
	done
	python=
	return 1
}

# Version of the newest Debian 6.12 kernel whose headers and modules are here;
# nothing and false if there is none. KERNEL_VERSION overrides.
kernel_version() {
	local v best=
	if [ -n "${KERNEL_VERSION:-}" ]; then
		echo "$KERNEL_VERSION"
		return 0
	fi
	for v in $(ls /lib/modules 2>/dev/null | grep -E '^6\.12\..*-amd64$' | grep -v cloud | sort -V); do
		if [ -e "/lib/modules/$v/build/Makefile" ] && [ -d "/lib/modules/$v/kernel" ]; then
			best=$v
		fi
	done
	[ -n "$best" ] && echo "$best"
}

# build_tree NAME [configure flags]: configures build/NAME outside the source
# tree (again only if the flags changed) and sets $build.
build_tree() {
	local name=$1
	shift
	build=$top/build/$name
	if [ -e "$top/config.status" ]; then
		die "$top is configured in place, which rules out build folders;" \
			"run 'make distclean' there, or use a fresh clone"
	fi
	if [ ! -x "$top/configure" ] || [ "$top/configure.ac" -nt "$top/configure" ]; then
		say "autogen: making configure"
		(cd "$top" && ./autogen.sh) >"$(log_file autogen)" 2>&1 || show_log_and_die autogen
	fi
	mkdir -p "$build"
	if [ ! -e "$build/config.status" ] || [ "$(cat "$build/.flags" 2>/dev/null)" != "$*" ]; then
		say "configure $* in build/$name"
		(cd "$build" && ../../configure "$@") >"$(log_file "$name-configure")" 2>&1 ||
			show_log_and_die "$name-configure"
		printf '%s' "$*" >"$build/.flags"
	fi
}

# The full output of every quiet step is kept in build/log/STEP.log.
log_file() {
	mkdir -p "$top/build/log"
	echo "$top/build/log/$1.log"
}

show_log_and_die() {
	tail -n 40 "$(log_file "$1")" >&2
	die "$1 failed; the whole output is in build/log/$1.log"
}

# quietly STEP COMMAND...: its output goes to the log; shown only if it fails.
quietly() {
	local step=$1
	shift
	"$@" >"$(log_file "$step")" 2>&1 || show_log_and_die "$step"
}

# Builds spyre_vdev.ko for the kernel that the VM boots; sets $module.
build_module() {
	local version
	version=$(kernel_version) || die "no Debian 6.12 kernel with headers; run scripts/deps vm"
	say "building spyre_vdev.ko for $version"
	quietly module make -C "$build" module KERNEL="$version"
	module=$build/build/kernel/spyre_vdev.ko
	[ -e "$module" ] || die "'make module' left no $module"
}
