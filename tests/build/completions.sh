#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Completions have each option of the help texts: those of zsh and fish are made from
# them, that of bash is compared.
set -u
src=${SPYRE_SRCDIR:?} build=${SPYRE_BUILDDIR:?}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
. "$src/tests/tap.sh"

# The options of a help text, without those that only a sentence mentions.
options_of() {
	sed -n 's/^ *\(-[^ ].*\)/\1/p' | sed 's/   .*//' | grep -oE -- '(^|, )--?[a-zA-Z][a-z-]*' |
		sed 's/^, //' | sort -u
}

bash_has() {
	missing=0
	for command in launch build compile estimate explain info doctor coredump trace analyze; do
		"$build/tools/spyre/spyre" help $command
	done | options_of >"$work/spyre"
	for program in spyre-exporter spyre-perf spyre-smi; do
		"$build/tools/$program" --help | options_of >"$work/$program"
	done
	for program in spyre spyre-exporter spyre-perf spyre-smi; do
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
	skip "zsh and fish complete every option" "no python3"
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
		try "the completions of $shell parse" parses $shell "$@"
	else
		skip "the completions of $shell parse" "no $shell"
	fi
done
