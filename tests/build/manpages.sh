#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The manual pages read cleanly, their examples compile, and they name every option and
# every variable that there is.
set -u
src=${SPYRE_SRCDIR:?} build=${SPYRE_BUILDDIR:?}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
. "$src/tests/tap.sh"

# The options of a help text, without those that only a sentence mentions.
help_options() {
	sed -n 's/^ *\(-[^ ].*\)/\1/p' | sed 's/   .*//' | grep -oE -- '(^|[ ,(])--?[a-zA-Z][a-z-]*' |
		sed 's/^[ ,(]*//' | sort -u
}

# Those that a page explains; mdoc has -n as "Fl n", --name as "Fl -name".
page_options() {
	grep -h '^\.It Fl' "$@" | sed 's/ , \(Fl\|Ns\)/ \1/g' | grep -oE '(Fl|,) -?[a-zA-Z][a-z-]*' | sed 's/^[^ ]* /-/' | sort -u
}

# compare NAME PAGE...: prints the options that the help text on stdin lists and the pages do not
# name, and those that the pages list and the help text does not name.
compare() {
	program=$1
	shift
	cat >"$work/help"
	help_options <"$work/help" | while read -r option; do
		cat "$@" | grep -qE "Fl ${option#-}( |\$)" || echo "the manual page of $program lacks $option"
	done
	page_options "$@" | while read -r option; do
		grep -qE -- "(^|[^a-z-])$option([^a-z-]|\$)" "$work/help" ||
			echo "the help of $program lacks $option"
	done
}

options() {
	sed -n 's/^ *\(-[^ ].*\)/\1/p' | sed 's/   .*//' | grep -oE -- '(^|[ ,(])--?[a-zA-Z][a-z-]*' |
		sed 's/^[ ,(]*//' | sort -u
}

# Those that a page explains; mdoc has -n as "Fl n", --name as "Fl -name".
page_options() {
	grep -h '^\.It Fl' "$@" | sed 's/ , \(Fl\|Ns\)/ \1/g' | grep -oE '(Fl|,) -?[a-zA-Z][a-z-]*' | sed 's/^[^ ]* /-/' | sort -u
}

# differ NAME PAGE...: the help texts on stdin and the pages have the same options.
differ() {
	name=$1
	shift
	help_options >"$work/help"
	page_options "$@" >"$work/page"
	comm -3 "$work/help" "$work/page" |
		sed "s/^\t\(.*\)/the manual page of $name explains \1, its help does not/
			s/^-/the help of $name has -/"
}

options() {
	for command in launch build compile estimate explain info doctor coredump; do
		"$build/tools/spyre/spyre" help $command
	done | compare spyre "$src/docs/man/spyre.1" "$src/docs/man/spyre-launch.1"
	"$build/tools/spyre-smi" --help | compare spyre-smi "$src/docs/man/spyre-smi.1"
	"$build/tools/spyre-exporter" --help |
		compare spyre-exporter "$src/docs/man/spyre-exporter.1"
	"$build/tools/spyre-perf" --help | compare spyre-perf "$src/docs/man/spyre-perf.1"
}

variables() {
	find "$src/libspyre" "$src/model" -name '*.c' -exec cat {} + |
		grep -oE '(getenv|spyre_env_u64|flag)\("[A-Z_]+"' | sed 's/.*"\(.*\)"/\1/' | sort -u |
		while read -r name; do
			grep -q "Ev $name\\b" "$src/docs/man/spyre-environment.7" || echo "$name"
		done
}

# Pages refer to each other, which mandoc looks for among the installed ones.
lint() {
	mandoc -Tlint "$@" | grep -vE 'referenced manual not found|explicitly specified|longer than 80'
}

functions() { lint $(grep -L '^\.so ' "$build"/docs/man3/*.3); }

examples() {
	"${PYTHON:-python3}" -B "$src/scripts/mkman" --examples "$src/docs/man/libspyre.pages" \
		>"$work/all.c" && [ -s "$work/all.c" ] || { echo "mkman --examples failed"; return; }
	${CC:-cc} -std=c11 -Wall -Wextra -Wno-unused-parameter -Werror -fsyntax-only -I"$src/include" \
		"$work/all.c"
}

echo 1..5
none "spyre-environment(7) has every variable that the library reads" variables
none "help texts and manual pages have the same options" options
if command -v mandoc >/dev/null; then
	none "mandoc -Tlint has no warning for the commands" lint "$src"/docs/man/*.[17]
else
	skip "mandoc -Tlint has no warning for the commands" "no mandoc"
fi
if [ ! -e "$build/docs/man3/stamp" ]; then
	skip "mandoc -Tlint has no warning for the functions" "no manual pages: no python3 to make them with"
	skip "the examples of the manual pages compile" "no python3"
	exit 0
fi
if command -v mandoc >/dev/null; then
	none "mandoc -Tlint has no warning for the functions" functions
else
	skip "mandoc -Tlint has no warning for the functions" "no mandoc"
fi
none "the examples of the manual pages compile" examples
