#!/bin/sh
# SPDX-License-Identifier: MIT
# Options of spyre-smi: help, completion and manual page list the same ones.
src=${SPYRE_SRCDIR:-.}
smi=${SPYRE_BUILDDIR:-.}/tools/spyre-smi
count=0

report() {
	count=$((count + 1))
	if [ "$1" = 0 ]; then
		echo "ok $count - $2"
	else
		echo "not ok $count - $2"
	fi
}

# The help's left column has the options.
help=$("$smi" --help | grep '^ *-' | cut -c1-31 | grep -o -- '--\?[A-Za-z][a-z-]*=\?' | sort -u)
[ "$(echo "$help" | wc -l)" -gt 15 ]
report $? "help lists options"

completion=$(sed -n "/local options=/,/'\$/p" "$src/tools/completions/spyre-smi" |
	grep -o -- '--\?[A-Za-z][a-z-]*=\?' | sort -u)
[ "$help" = "$completion" ]
report $? "completion offers the options of the help"

missing=
for option in $(echo "$help" | tr -d =); do
	name=$(echo "$option" | sed 's/^-//')
	grep -q -e "Fl $name\( \|\$\)" "$src/docs/man/spyre-smi.1" || missing="$missing $option"
done
[ -z "$missing" ]
report $? "manual page has all options$missing"

# TEXT ARGUMENT...: exits with status 2, and prints TEXT and where the help is on stderr.
refused() {
	text=$1
	shift
	errors=$("$smi" "$@" 2>&1 >/dev/null)
	[ $? = 2 ] && echo "$errors" | grep -qF -e "$text" &&
		echo "$errors" | grep -qxF "Try 'spyre-smi --help'."
	report $? "spyre-smi $* says $text"
}

refused "unknown option '--lop'; did you mean '--loop'?" --lop 1
refused "unknown option '--nope'; valid: --list-devices, --list-gpus" --nope
refused "unknown option '-z'; valid: --list-devices" -Lz
refused "option '--loop' requires a value" --loop
refused "option '-i' requires a value" -i
refused "ambiguous option '--help-query'; valid: --help-query-device, --help-query-gpu, --help-query-compute-apps" \
	--help-query
refused "unexpected value '3': option '--version' takes none" --version=3
refused "invalid value 'xml' for --format; valid: csv," -q --format=xml
refused "invalid interval '0': expected 0.001 to 86400 seconds" -l 0
refused "invalid interval 'x': expected 1 to 86400000 milliseconds" --loop-ms=x
refused "invalid count '0' for -c: expected a positive integer" -l 1 -c 0
refused "unknown field 'nam' for --query-device; did you mean 'name'?" --query-device=nam
refused "unknown field 'memory' for --query-device; --help-query-device lists all" --query-device=index,memory
refused "unknown section 'FOO' for -d; valid: DEVICE, MEMORY," -q -d FOO
refused "invalid value '4' for --level: expected 1 to 3" diag --level=4
refused "--level requires diag" -L --level=1
refused "cannot combine -l with diag" diag -l 1
refused "--format=csv requires --query-device, --query-compute-apps or -m" diag --format=csv
refused "unexpected argument 'resett': only options follow, or 'reset', 'topo', 'dmon', 'pmon', 'top', 'events' or 'diag' as the first word" resett
refused "cannot combine -l with -m: links do not change" topo -m -l 1
refused "invalid interval '0.001': expected 0.01 to 86400 seconds" dmon -d 0.001
refused "invalid groups 'px': expected one or more of the letters pucmtr" dmon -s px
refused "invalid groups 'p': expected one or more of the letters umtr" pmon -s p
refused "invalid time stamps 'X': expected one or more of the letters DT" dmon -o X
refused "--aiu requires dmon without -s" pmon --aiu
refused "-s and -o require dmon or pmon" -q -o D
refused "cannot combine --format with --prometheus" --prometheus --format=json
refused "cannot combine --format with dmon, pmon or top" top --format=json
refused "-s and -o require dmon or pmon" top -s p
refused "invalid interval '0': expected 0.01 to 86400 seconds" top -d 0
refused "cannot combine -L, -q, -m, -r," topo -q

if command -v bash >/dev/null; then
	words=$(PATH=$(dirname "$smi"):$PATH bash -c '
		. "$1"
		COMP_WORDS=(spyre-smi --query-device = name,memory.t)
		COMP_CWORD=3
		_spyre_smi
		echo "${COMPREPLY[*]}"
		COMP_WORDS=(spyre-smi --ver)
		COMP_CWORD=1
		_spyre_smi
		echo "${COMPREPLY[*]}"
		COMP_WORDS=(spyre-smi topo)
		_spyre_smi
		echo "${COMPREPLY[*]}"' bash "$src/tools/completions/spyre-smi")
	[ "$words" = "name,memory.total
--version
topo" ]
	report $? "completion completes lists, options and the first word"
else
	count=$((count + 1))
	echo "ok $count - completion completes lists, options and the first word # SKIP no bash"
fi
echo "1..$count"
