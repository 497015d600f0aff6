# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The lint part of scripts/test: checks of the sources that run nothing.

part_lint() {
	cd "$top" || return
	if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		skip "lint" "this is not a git checkout"
		return
	fi
	say "house rules, shell, Python, sparse, checkpatch"
	step "shell scripts parse" lint-shell lint_shell
	if command -v shellcheck >/dev/null; then
		step "ShellCheck has no warning" lint-shellcheck lint_shellcheck
	else
		skip "ShellCheck" "shellcheck is not installed (scripts/deps lint)"
	fi
	step "Python files compile" lint-python lint_python
	if find_ruff; then
		step "ruff has no warning" lint-ruff "$ruff" check --no-cache .
	else
		skip "ruff" "ruff is not installed, and pip cannot install it (build/log/lint-venv.log)"
	fi
	step "every source file names its licence (SPDX)" lint-spdx lint_spdx
	step "no source file is over 1,000 lines" lint-length lint_length
	step "no line of C is over 100 columns (texts aside), no space at line ends" lint-columns lint_columns
	step "no unfinished marker, no archive address" lint-markers lint_markers
	step "the README's figures and chart are those of docs/performance.md" lint-chart \
		scripts/chart --check
	step "includes of the plugin point from python/ to distributed/ to aten/ to runtime/" lint-layers lint_layers
	step "links between documents have targets" lint-links scripts/docs --check
	step "tests that docs/threat-model.md names exist" lint-threats lint_threats
	step "one version everywhere" lint-version lint_version
	if command -v sparse >/dev/null; then
		step "sparse on model/" lint-sparse lint_sparse
	else
		skip "sparse on model/" "sparse is not installed"
	fi
	lint_checkpatch
}

sources() { git ls-files -- "$@"; }

scripts_of() {
	git grep -lE "^#!.*\b($1)\b" -- . | while read -r file; do
		sed -n 1p "$file" | grep -qE "^#!.*\b($1)\b" && echo "$file"
	done
}

lint_layers() {
	! git grep -nE '^#include "(\.\./)?(aten|distributed|python)/' -- torch_spyre/csrc/runtime &&
		! git grep -nE '^#include "(\.\./)?(distributed|python)/' -- torch_spyre/csrc/aten &&
		! git grep -nE '^#include "(\.\./)?python/' -- torch_spyre/csrc/distributed
}

lint_shell() {
	local file bad=0
	for file in $(scripts_of bash) scripts/lib*.sh; do
		bash -n "$file" || bad=1
	done
	for file in $(scripts_of sh); do
		sh -n "$file" || bad=1
	done
	return $bad
}

lint_shellcheck() { shellcheck -f gcc -S warning $(scripts_of 'bash|sh') $(sources 'scripts/lib*.sh'); }

ruff_version=0.14.6

# Sets $ruff: the installed one, or that of build/lint-venv, since Debian 12 has no package of it.
find_ruff() {
	local venv=$top/build/lint-venv
	ruff=$(command -v ruff) && return 0
	ruff=$venv/bin/ruff
	[ "$("$ruff" --version 2>/dev/null)" != "ruff $ruff_version" ] || return 0
	find_venv_python || return 1
	{ "$venv_python" -m venv "$venv" &&
		"$venv/bin/pip" install "ruff==$ruff_version"; } >"$(log_file lint-venv)" 2>&1
}

lint_python() {
	local file bad=0
	for file in $(sources '*.py') $(scripts_of python3); do
		python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' \
			"$file" || bad=1
	done
	return $bad
}

lint_spdx() {
	local file bad=0
	for file in $(sources '*.c' '*.h' '*.py' '*.sh' '*.mk' 'Makefile.am' 'configure.ac') \
		$(scripts_of 'bash|sh|python3'); do
		head -n 5 "$file" | grep -q SPDX-License-Identifier || { echo "$file"; bad=1; }
	done
	return $bad
}

lint_length() {
	! sources '*.c' '*.h' '*.cpp' '*.py' '*.sh' 'scripts/*' | xargs wc -l |
		awk '$2 != "total" && $1 > 1000' | grep .
}

# A tab has eight columns; any other character has one, however many bytes it has.
# Texts may be longer, so that they can be searched for.
lint_columns() {
	local bad=0
	sources '*.c' '*.h' '*.cpp' | python3 -c '
import sys
bad = 0
for path in sys.stdin.read().split():
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        columns = len(line.rstrip("\n").expandtabs(8))
        if columns > 100 and "\"" not in line:
            print(f"{path}:{number}: {columns} columns")
            bad = 1
sys.exit(bad)' || bad=1
	git grep -nIE '[[:space:]]+$' -- '*.c' '*.h' '*.cpp' '*.py' '*.sh' '*.mk' scripts && bad=1
	return $bad
}

lint_markers() {
	! git grep -nIE '\b(TODO|FIXME)\b|https?://[a-z.-]*(debian|pypi|pythonhosted)[a-z.-]*/' \
		-- '*.c' '*.h' '*.cpp' '*.py' '*.sh' '*.mk' scripts .ci ':!scripts/lib-lint.sh'
}

# The names of tests in docs/threat-model.md: all of ABI tests and fuzzers, and those in the last
# column of its tables, whose rows have at least one. Words in parentheses are parts of a test.
threat_tests() {
	grep -oE '`(abi|fuzz)-[a-z0-9]+`' "$1" | tr -d '`'
	awk -F ' *[|] *' '/^[|] promise/ { table = 1 } !/^[|]/ { table = 0 }
		table && !/^[|] promise/ && !/^[|]-/ {
			gsub(/\([^)]*\)/, "", $(NF - 1))
			count = split($(NF - 1), word, "`")
			if (count < 3) print "none:" NR
			for (i = 2; i <= count; i += 2) print word[i]
		}' "$1"
}

lint_threats() {
	local name file bad=0 page=docs/threat-model.md
	[ "$(threat_tests $page | wc -l)" -ge 50 ] || { echo "$page: its tables cannot be read"; return 1; }
	for name in $(threat_tests $page | sort -u); do
		case $name in
		none:*) echo "$page:${name#none:}: the promise has no test"; bad=1; continue ;;
		abi-*) file=tests/abi/$name.c ;;
		fuzz-*) git grep -qwE "tests/fuzz/$name" -- tests/fuzz/fuzz.mk && continue
			file="tests/fuzz/$name of tests/fuzz/fuzz.mk" ;;
		*) [ ! -e "kernel/tests/$name.c" ] || continue
			file=tests/unit/$name.c ;;
		esac
		[ -e "$file" ] || { echo "$page names the test $name, but there is no $file"; bad=1; }
	done
	return $bad
}

# version_in FILE PATTERN: the part of a line between \( and \), which the file must contain.
version_in() {
	local found
	found=$(sed -n "s/$2/\1/p" "$1" | head -n 1)
	if [ "$found" = "$version" ]; then
		return 0
	fi
	echo "$1: version '$found', but VERSION says '$version'; set both (docs/versioning.md)"
	return 1
}

# Files that configure substitutes (libspyre.pc, dkms.conf) take the version from VERSION.
lint_version() {
	local version part value bad=0
	version=$(cat VERSION)
	value=
	for part in MAJOR MINOR PATCH; do
		value+=.$(sed -n "s/^#define SPYRE_VERSION_$part \([0-9]*\)$/\1/p" include/spyre/types.h)
	done
	[ "${value#.}" = "$version" ] ||
		{ echo "include/spyre/types.h: version '${value#.}', but VERSION says '$version'"; bad=1; }
	version_in torch_spyre/torch_spyre/__init__.py '^__version__ = "\(.*\)"' || bad=1
	version_in vllm_plugin/vllm_spyre_open/version.py '^__version__ = "\(.*\)"' || bad=1
	version_in kernel/spyre_drv.c '^MODULE_VERSION("\(.*\)");' || bad=1
	version_in CHANGELOG.md '^## \([0-9.]*\).*' || bad=1
	version_in debian/changelog '^spyre (\(.*\)) .*' || bad=1
	version_in packaging/spyre.spec '^Version: *\(.*\)' || bad=1
	grep -q 'AC_INIT(\[spyre\], \[m4_esyscmd_s(\[cat VERSION\])\])' configure.ac ||
		{ echo "configure.ac: AC_INIT does not take its version from VERSION"; bad=1; }
	grep -q '^PACKAGE_VERSION="@VERSION@"' kernel/dkms.conf ||
		{ echo "kernel/dkms.conf: PACKAGE_VERSION is not @VERSION@"; bad=1; }
	# Documents name it in commands.
	! git grep -nE 'spyre-vdev[/-][0-9]+\.[0-9.]+' -- '*.md' | grep -vE "spyre-vdev[/-]$version\b" || bad=1
	lint_interface || bad=1
	return $bad
}

# The kernel interface has a separate version, in the driver, its reference and the library.
lint_interface() {
	local driver bad=0
	driver=$(sed -n 's/^\t\.major = \([0-9]*\),$/\1/p; s/^\t\.minor = \([0-9]*\),$/.\1/p' \
		kernel/spyre_drv.c | tr -d '\n')
	grep -q "^| kernel interface (uAPI) .* | $driver | " docs/versioning.md ||
		{ echo "docs/versioning.md: the kernel interface is not $driver, the driver's"; bad=1; }
	grep -qx "#define DRIVER_MAJOR ${driver%.*}" libspyre/backend/drm_card.c ||
		{ echo "libspyre/backend/drm_card.c: DRIVER_MAJOR is not ${driver%.*}"; bad=1; }
	grep -oE 'Since [0-9]+\.[0-9]+' include/uapi/drm/spyre_accel.h | sort -uV | tail -n 1 |
		grep -qx "Since $driver" ||
		{ echo "include/uapi/drm/spyre_accel.h: the newest 'Since' is not $driver"; bad=1; }
	return $bad
}

# The model is freestanding C; sparse checks it with the options of the kernel's build.
lint_sparse() {
	local file bad=0
	for file in $(sources 'model/*.c'); do
		sparse -std=gnu11 -I. -Iinclude -Wno-decl "$file" || bad=1
	done 2>&1 | grep . && bad=1
	return $bad
}

lint_checkpatch() {
	local checkpatch=${CHECKPATCH:-}
	if [ -z "$checkpatch" ]; then
		checkpatch=$(ls /usr/src/linux*/scripts/checkpatch.pl \
			/lib/modules/*/build/scripts/checkpatch.pl 2>/dev/null | head -n 1)
	fi
	if [ -z "$checkpatch" ]; then
		skip "checkpatch --strict on kernel/" \
			"no checkpatch.pl here; Debian has it in linux-source-6.12, or set CHECKPATCH"
		return 0
	fi
	# Tracepoint macros are formatted differently in every driver.
	step "checkpatch --strict on kernel/" lint-checkpatch "$checkpatch" --no-tree --strict \
		--terse --show-types --max-line-length=100 \
		-f $(sources 'kernel/*.c' 'kernel/*.h' | grep -v /spyre_trace.h)
}
