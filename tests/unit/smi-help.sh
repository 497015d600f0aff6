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
		echo "${COMPREPLY[*]}"' bash "$src/tools/completions/spyre-smi")
	[ "$words" = "name,memory.total
--version" ]
	report $? "completion completes lists and options"
else
	count=$((count + 1))
	echo "ok $count - completion completes lists and options # SKIP no bash"
fi
echo "1..$count"
