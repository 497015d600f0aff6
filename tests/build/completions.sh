#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Completions have each option of the help texts: those of zsh and fish are made from
# them, that of bash is compared.
set -u
src=${SPYRE_SRCDIR:?} build=${SPYRE_BUILDDIR:?}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
number=0

try() {
	number=$((number + 1))
	name=$1
	shift
	if "$@" >"$work/out" 2>&1; then
		echo "ok $number - $name"
	else
		echo "not ok $number - $name"
		sed 's/^/# /' "$work/out" | head -n 20
	fi
}

# The options of a help text, without those that only a sentence mentions.
options_of() {
	sed -n 's/^ *\(-[^ ].*\)/\1/p' | sed 's/   .*//' | grep -oE -- '(^|, )--?[a-zA-Z][a-z-]*' |
		sed 's/^, //' | sort -u
}

bash_has() {
	missing=0
	for command in launch build compile info doctor coredump; do
		"$build/tools/spyre/spyre" help $command
	done | options_of >"$work/spyre"
	"$build/tools/spyre-smi" --help | options_of >"$work/spyre-smi"
	for program in spyre spyre-smi; do
		while read -r option; do
			grep -qE -- "(^|[^a-z-])$option([^a-z-]|\$)" "$src/tools/completions/$program" ||
				{ echo "tools/completions/$program lacks $option"; missing=1; }
		done <"$work/$program"
		[ -s "$work/$program" ] || missing=1
	done
	return $missing
}

parses() {
	shell=$1
	shift
	for file; do
		"$shell" -n "$file" || return
	done
}

echo 1..4
try "bash completes every option" bash_has
if ! command -v python3 >/dev/null; then
	number=$((number + 1))
	echo "ok $number - zsh and fish complete every option # SKIP no python3"
else
	try "zsh and fish complete every option" \
		python3 -B "$src/scripts/mkcompletions" --check "$build"
fi
for shell in zsh fish; do
	if command -v $shell >/dev/null; then
		case $shell in
		fish) set -- "$src"/tools/completions/*.fish ;;
		zsh) set -- "$src"/tools/completions/_* ;;
		esac
		try "$shell reads its completions" parses $shell "$@"
	else
		number=$((number + 1))
		echo "ok $number - $shell reads its completions # SKIP no $shell"
	fi
done
