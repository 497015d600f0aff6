#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The manual pages read cleanly, their examples compile, and they name every option and
# every variable that there is.
set -u
src=${SPYRE_SRCDIR:?} build=${SPYRE_BUILDDIR:?}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
number=0

# none NAME COMMAND...: it prints what is wrong.
none() {
	number=$((number + 1))
	name=$1
	shift
	"$@" >"$work/found" 2>&1
	if [ -s "$work/found" ]; then
		echo "not ok $number - $name"
		head -n 20 "$work/found" | sed 's/^/# /'
	else
		echo "ok $number - $name"
	fi
}

skip() {
	number=$((number + 1))
	echo "ok $number - $1 # SKIP $2"
}

# Prints the options of a help text that a page lacks; mdoc has -n as "Fl n", --name as "Fl -name".
missing_options() {
	sed -n 's/^ *\(-[^ ].*\)/\1/p' | sed 's/   .*//' | grep -oE -- '(^|[ ,(])--?[a-zA-Z][a-z-]*' |
		sed 's/^[ ,(]*//' | sort -u |
		while read -r option; do
			grep -qE "Fl ${option#-}( |\$)" "$2" || echo "$1: ${2##*/} lacks $option"
		done
}

options() {
	for command in launch build compile info doctor coredump; do
		page=$src/docs/man/spyre.1
		[ $command != launch ] || page=$src/docs/man/spyre-launch.1
		"$build/tools/spyre/spyre" help $command | missing_options "spyre $command" "$page"
	done
	"$build/tools/spyre-smi" --help | missing_options spyre-smi "$src/docs/man/spyre-smi.1"
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
none "every option of a help text is in its manual page" options
if command -v mandoc >/dev/null; then
	none "mandoc -Tlint has nothing to say on the commands" lint "$src"/docs/man/*.[17]
else
	skip "mandoc -Tlint on the commands" "no mandoc"
fi
if [ ! -e "$build/docs/man3/stamp" ]; then
	skip "mandoc -Tlint on the functions" "no manual pages: no python3 to make them with"
	skip "the examples compile" "no python3"
	exit 0
fi
if command -v mandoc >/dev/null; then
	none "mandoc -Tlint has nothing to say on the functions" functions
else
	skip "mandoc -Tlint on the functions" "no mandoc"
fi
none "the examples of the manual pages compile" examples
