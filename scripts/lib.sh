# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Shared by the scripts of this folder: messages, build folders, counts.
# Sourced by bash; sets $top (the source tree), $jobs and $python.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=${JOBS:-$(nproc)}

# ccache, if installed, ignores the folder, so that clones share objects.
if [ -x /usr/lib/ccache/gcc ]; then
	PATH=/usr/lib/ccache:$PATH
	export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$top} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}
fi

say() { printf '==> %s\n' "$*"; }
note() { printf '    %s\n' "$*"; }
die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# A python3 that has numpy: the first one in PATH may be a user's own, without it.
find_python() {
	local p
	# The system's comes first: the VM's plain user may be unable to read one in a home folder.
	for p in ${PYTHON:-/usr/bin/python3 python3}; do
		if "$p" -c 'import numpy' 2>/dev/null; then
			python=$(command -v "$p")
			return 0
		fi
	done
	python=
	return 1
}

# Prints the version of the newest Debian 6.12 kernel with headers and modules;
# prints nothing and fails without one. KERNEL_VERSION overrides.
kernel_version() {
	local v best=
	if [ -n "${KERNEL_VERSION:-}" ]; then
		echo "$KERNEL_VERSION"
		return 0
	fi
	for v in $(find /lib/modules -mindepth 1 -maxdepth 1 -name '6.12.*-amd64' ! -name '*cloud*' \
		-printf '%f\n' 2>/dev/null | sort -V); do
		if [ -e "/lib/modules/$v/build/Makefile" ] && [ -d "/lib/modules/$v/kernel" ]; then
			best=$v
		fi
	done
	[ -n "$best" ] && echo "$best"
}

# archive_of SUITE: its address in what apt on this machine uses; the scripts name no archive.
archive_of() {
	apt-get indextargets --format '$(REPO_URI) $(CODENAME)' "Created-By: Packages" |
		awk -v name="$1" '$2 == name && !found { found = $1 } END { print found }'
}

# deps GROUP...: installs their packages. Without a terminal as input, as in continuous
# integration, there is no user to ask, and running the script is consent.
deps() {
	local yes=
	[ -t 0 ] || yes=--yes
	"$top/scripts/deps" $yes "$@"
}

# complain MESSAGE...: prints it and fails, for 'complain … || return'.
complain() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	return 1
}

# Succeeds if a file that autogen.sh creates is missing or older than its sources.
autogen_is_due() {
	[ -x "$top/configure" ] && [ -e "$top/Makefile.in" ] || return 0
	[ -n "$(find "$top" -path "$top/build" -prune -o \( -name '*.mk' -o -name Makefile.am \
		-o -name configure.ac -o -name VERSION \) -newer "$top/Makefile.in" -print -quit)" ]
}

# build_tree NAME [configure flags]: configures build/NAME outside the source
# tree (again only if the flags changed) and sets $build. Prints the reason and
# fails if that is impossible.
build_tree() {
	local name=$1
	shift
	build=$top/build/$name
	if [ -e "$top/config.status" ]; then
		complain "$top is configured in place, which rules out build folders;" \
			"run 'make distclean' there, or use a fresh clone"
		return 1
	fi
	if autogen_is_due; then
		say "autogen: making configure"
		quietly autogen "$top/autogen.sh" || return 1
	fi
	mkdir -p "$build"
	if [ ! -e "$build/config.status" ] || [ "$(cat "$build/.flags" 2>/dev/null)" != "$*" ]; then
		say "configure $* in build/$name"
		quietly "$name-configure" env -C "$build" ../../configure "$@" || return 1
		printf '%s' "$*" >"$build/.flags"
	fi
}

# The full output of every quiet step is kept in build/log/STEP.log.
log_file() {
	mkdir -p "$top/build/log"
	echo "$top/build/log/$1.log"
}

# quietly STEP COMMAND...: writes its output to the log, and shows it only on failure.
quietly() {
	local step=$1
	shift
	"$@" >"$(log_file "$step")" 2>&1 && return 0
	tail -n 40 "$(log_file "$step")" >&2
	complain "$step failed; see build/log/$step.log for the whole output"
}

# build_module [C=1]: builds spyre_vdev.ko for the kernel that the VM boots; sets
# $module. C=1 also runs sparse.
build_module() {
	local version
	version=$(kernel_version) ||
		complain "cannot find a Debian 6.12 kernel with headers; run scripts/deps vm" || return 1
	say "building spyre_vdev.ko for $version"
	quietly module make -C "$build" module KDIR="/lib/modules/$version/build" W=1 "$@" ||
		return 1
	module=$build/build/kernel/spyre_vdev.ko
	[ -e "$module" ] || complain "'make module' did not create $module"
}
