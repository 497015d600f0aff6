#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The spyre command without a bundle: help, bad usage, completion.
set -u
spyre=${SPYRE_BUILDDIR:?}/tools/spyre/spyre
src=${SPYRE_SRCDIR:?}
. "$src/tests/tap.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

# STATUS TEXT ARGUMENT...: exits with STATUS, prints TEXT on stderr and nothing on stdout.
refused() {
	want=$1 text=$2
	shift 2
	"$spyre" "$@" >"$work/out" 2>"$work/err"
	got=$?
	good=1
	[ $got = "$want" ] && [ ! -s "$work/out" ] && grep -qF -e "$text" "$work/err" && good=0
	echo "exit status $got" >>"$work/err"
	report $good "spyre $*" "$work/err"
}

# ARGUMENT...: exits 0 with something on stdout and nothing on stderr.
accepted() {
	"$spyre" "$@" >"$work/out" 2>"$work/err" && [ -s "$work/out" ] && [ ! -s "$work/err" ]
	report $? "spyre $*" "$work/err"
}

accepted --help
accepted help
accepted version
accepted --version
for command in launch build compile estimate explain info doctor coredump trace analyze; do
	accepted help $command
	accepted $command --help
done
accepted info
accepted info --json

# A number that no card has is reported, beside the cards that there are, as text and as JSON.
# Repeated numbers, bus ids and blanks are right.
info_reports() { # STATUS DEVICES CARDS TEXT [OPTION]
	SPYRE_BACKEND=embedded SPYRE_DEVICES=$2 "$spyre" info $5 >"$work/out" 2>"$work/err"
	got=$?
	[ $got = "$1" ] && grep -qF "$3" "$work/out" &&
		if [ -n "$4" ]; then
			grep -qF "$4" "$work/err" && [ "$(wc -l <"$work/err")" = 1 ]
		else
			[ ! -s "$work/err" ]
		fi
	good=$?
	echo "exit status $got" >>"$work/err"
	report $good "spyre info $5 with SPYRE_DEVICES=$2" "$work/err"
}
info_reports 2 7 'cards     0' 'cannot show card 7 of SPYRE_DEVICES="7"' ''
info_reports 2 7 '"cards":[]' 'cannot show card 7 of SPYRE_DEVICES="7"' --json
info_reports 2 '0, 9' 'cards     1' 'cannot show card 9 of SPYRE_DEVICES="0, 9"' ''
info_reports 0 ' 0 ,0,embedded.0' 'cards     1' '' ''

# Cards 0 to 3 and 4 to 7 share a switch each.
SPYRE_BACKEND=embedded SPYRE_EMBEDDED_CARDS=6 SPYRE_DEVICES=0,3,4,5 "$spyre" info >"$work/out" 2>&1 &&
	[ "$(grep '^  links' "$work/out")" = "  links           switch: 1; host: 2, 3
  links           switch: 0; host: 2, 3
  links           switch: 3; host: 0, 1
  links           switch: 2; host: 0, 1" ]
report $? "spyre info shows the links of each card" "$work/out"
SPYRE_BACKEND=embedded SPYRE_EMBEDDED_CARDS=5 SPYRE_DEVICES=0,1,4 "$spyre" info --json >"$work/out" 2>&1 &&
	grep -qF '"peers":[{"index":1,"link":"switch"},{"index":2,"link":"host"}]' "$work/out"
report $? "spyre info --json shows the links of each card" "$work/out"
SPYRE_BACKEND=embedded FLEX_HDMA_MODE_FULL=1 "$spyre" info >"$work/out" 2>&1 &&
	grep -qx '  FLEX_HDMA_MODE_FULL=1' "$work/out"
report $? "spyre info shows the variables of other runtimes" "$work/out"
info_reports 0 0 '  links           no other card' '' ''

refused 2 "no command given"
refused 2 "unknown command 'lunch'; did you mean 'launch'?" lunch
refused 2 "unknown command 'luanch'; did you mean 'launch'?" help luanch
refused 2 "unknown command 'verison'; did you mean 'version'?" verison
refused 2 "unknown command 'frobnicate'; valid: launch, build, compile, estimate, explain, info, doctor, coredump, trace, analyze, version, help" \
	frobnicate
! grep -q "did you mean" "$work/err"
report $? "no correction of a word that is far from every command" "$work/err"
refused 2 "Try 'spyre help'." lunch
refused 2 "unknown option '--nope'; valid: --input, --output, --case" launch --nope
refused 2 "unknown option '--sed'; did you mean '--seed'?" launch --sed 5
refused 2 "Try 'spyre help launch'." launch --sed 5
refused 2 "unknown option '--jsn'; did you mean '--json'?" info --jsn
refused 2 "unknown option '-x'; valid: --input" launch -x
refused 2 "ambiguous option '--in'; valid: --input, --inputs" launch --in 4x4@fp16
refused 2 "unexpected value '5': option '--json' takes none" info --json=5
refused 2 "option '-i' requires a value" launch -i
refused 2 "no operation given; the first argument of build is one" build
refused 2 "'4,64': expected 'x' or '@' at character 2, found ','" build add --shape 4,64
refused 2 "'4x64@fp17': unknown format 'fp17'" build add --shape 4x64@fp17
refused 2 "option '--seed' requires a value" launch --seed
refused 2 "no bundle directory" launch -i 4x4@fp16 -o 4x4@fp16
refused 2 "no output given" launch -i 4x4@fp16 "$work"
refused 2 "'4y4@fp16': expected 'x' or '@' at character 2" launch -i 4y4@fp16 -o 4@fp16 "$work"
refused 2 "unknown format 'fp17'" launch -i 4@fp17 -o 4@fp16 "$work"
refused 2 "only one bundle directory is allowed" launch -o 4@fp16 "$work" "$work"
refused 2 "for --repeat: expected a number" launch --repeat 0 -o 4@fp16 "$work"
refused 2 "for --device: expected a number" launch --device x -o 4@fp16 "$work"
refused 2 "for --stream: expected a number from 0 to 64" launch --stream 65 -o 4@fp16 "$work"
refused 2 "require --case" launch --inputs "$work" -o 4@fp16 "$work"
refused 2 "cannot combine --case with" launch --case x.json -o 4@fp16 "$work"
refused 2 "x.json: No such file" launch --case x.json
refused 2 "$work/no.npy: No such file" launch -i "$work/no.npy" -o 4@fp16 "$work"
! grep -q Try "$work/err"
report $? "the help is not proposed where a file is missing" "$work/err"
refused 2 "no operation given" build
refused 2 "unknown option '-json'; did you mean '--json'?" info -json
refused 2 "unknown option '-stats'; did you mean '--stats'?" launch -stats "$work"
refused 2 "SPYRE_ERROR_FILE" launch -i 4x64@fp16 -o 4x64@fp16 "$work/nothing"
printf garbage >"$work/bundle.mlir"
refused 2 "SPYRE_ERROR_PARSE" launch -i 4x64@fp16 -o 4x64@fp16 "$work"
rm "$work/bundle.mlir"
SENCORES=abc
export SENCORES
refused 2 "SPYRE_ERROR_CONFIGURATION" build add --shape 64x64
unset SENCORES
refused 2 "unknown operation 'madd'; did you mean 'add'?" build madd -o 4@fp16 "$work"
refused 2 "add -i for each input" build add -o 4x64@fp16 "$work/b"
refused 2 "an operation has one output" build add -o 4@fp16 -o 4@fp16 "$work/b"
refused 2 "not from files" build add -i a.npy -o 4@fp16 "$work/b"
refused 2 "for --cores: expected a number from 1 to 32" build add --cores 33 "$work/b"
refused 2 "no bundle directory" compile --bundle
refused 2 "only one bundle directory is allowed" compile -d "$work" "$work"
refused 2 "for --cores: expected a number from 1 to 32" compile --cores 0 "$work"
refused 2 "for --lx-kept: expected a multiple of 128" compile --lx-kept 100 "$work"
refused 2 "for --lx-kept: expected a multiple of 128" compile --lx-kept 2097280 "$work"
refused 2 "unknown option '--nope'" compile --nope "$work"
refused 2 "SPYRE_ERROR_FILE" compile --bundle -d "$work/nothing"
refused 2 "for --bind: expected SYMBOL=NUMBER" launch --bind s0 -o 4@fp16 "$work"
refused 2 "for --bind: expected SYMBOL=NUMBER" launch --bind s0=0 -o 4@fp16 "$work"
refused 2 "info takes no arguments" info x
refused 2 "unknown option '--nope'" doctor --nope
refused 2 "unknown option '--nope'" coredump --nope
refused 2 "requires a value" coredump --program
refused 2 "cannot combine --json with --ras" coredump --json --ras
refused 2 "only one file is allowed" coredump a b
refused 2 "/nowhere/file: No such file" coredump /nowhere/file
refused 2 "too few for a coredump" coredump /dev/null
refused 2 "requires a coredump in /sys" coredump --clear /dev/null
refused 1 "SPYRE_ERROR_NO_DEVICE" launch --device 900 -i 4x64@fp16 -o 4x64@fp16 "$work"

# Invalid files of a case.
bad_case() { # TEXT CONTENT
	printf '%s' "$2" >"$work/case.json"
	refused 2 "$1" launch --case "$work/case.json"
}
bad_case "inputs: expected an array" '{}'
bad_case "inputs: expected an array" '[1]'
bad_case "offset" '{"inputs": ['
bad_case "inputs[0]: expected an object" '{"inputs": [3], "outputs": []}'
bad_case "inputs[0].arg_index" '{"inputs": [{"arg_index": -1}], "outputs": []}'
bad_case "inputs[0].init" '{"inputs": [{"arg_index": 0, "init": "x"}], "outputs": []}'
bad_case "inputs[0].shape" '{"inputs": [{"arg_index": 0, "shape": "4"}], "outputs": []}'
bad_case "inputs[0].shape" '{"inputs": [{"arg_index": 0, "shape": [4.5]}], "outputs": []}'
bad_case "inputs[0].shape" \
	'{"inputs": [{"arg_index": 0, "shape": [18446744073709551615]}], "outputs": []}'
bad_case "inputs[0].dtype" '{"inputs": [{"arg_index": 0, "shape": [4]}], "outputs": []}'
operand='"shape": [64], "dtype": "fp16", "device_dtype": "SEN169_FP16", "device_size": [1, 64]'
bad_case "inputs[0].stride_map" \
	"{\"inputs\": [{\"arg_index\": 0, $operand, \"stride_map\": [1]}], \"outputs\": []}"
bad_case "inputs[0].device_bytes: 7, but device_size takes 128" \
	"{\"inputs\": [{\"arg_index\": 0, $operand, \"stride_map\": [64, 1],
	\"device_bytes\": 7}], \"outputs\": []}"
bad_case "arg_index 0 appears twice" \
	"{\"inputs\": [{\"arg_index\": 0, $operand, \"stride_map\": [64, 1]}],
	\"outputs\": [{\"arg_index\": 0, $operand, \"stride_map\": [64, 1]}]}"
bad_case "arg_index 9 is out of range for 1 operands" \
	"{\"inputs\": [{\"arg_index\": 9, $operand, \"stride_map\": [64, 1]}], \"outputs\": []}"
awk 'BEGIN { for (i = 0; i < 200000; i++) printf "["; }' >"$work/deep"
bad_case "offset" "$(cat "$work/deep")"

# Commands that the doctor proposes exist: the package of dkms, and no missing make target.
"$spyre" doctor >"$work/out" 2>&1
version=$(cat "$src/VERSION")
name=$(sed -n 's/^PACKAGE_NAME="\(.*\)"/\1/p' "$src/kernel/dkms.conf")
if grep -q 'dkms install ' "$work/out"; then
	! grep -q 'make -C' "$work/out" &&
		for told in $(grep -o 'dkms install [^;]*' "$work/out" | cut -d' ' -f3); do
			[ "$told" = "$name/$version" ] || break
		done && [ "$told" = "$name/$version" ]
	report $? "the doctor names existing packages" "$work/out"
else
	number=$((number + 1))
	echo "ok $number - the doctor names existing packages # SKIP it proposes none here"
fi
# Remedies that start with a command: it exists, or is a tool of udev, modules or accounts that
# this machine may lack. Others start with a word of the list, and are read by people.
grep '^ *fix: ' "$work/out" | sed 's/^ *fix: //; s/^for [^:]*: //; s/^run //' | cut -d' ' -f1 |
	sort -u >"$work/words"
: >"$work/wrong"
while read -r word; do
	case $word in
	apt | dnf | pacman | zypper | modprobe | usermod | udevadm | sysctl | chgrp | echo) ;;
	add | check | in | install | log | newgrp | raise | see | /dev/accel | unset | use) ;;
	*) PATH=$PATH:/usr/sbin:/sbin command -v "$word" >/dev/null || echo "no command: $word" ;;
	esac
done <"$work/words" >"$work/wrong"
if [ -s "$work/words" ]; then
	[ ! -s "$work/wrong" ]
	report $? "the doctor's remedies start with commands that exist" "$work/wrong"
else
	number=$((number + 1))
	echo "ok $number - the doctor's remedies start with commands that exist # SKIP it has none here"
fi

# Every operation of the builder is completed.
"$spyre" help build | sed -n '/^OP is one of/,$p' | tr -d ',.' | tr '\n' ' ' |
	sed 's/^OP is one of //; s/ *$/\n/' >"$work/help"
sed -n "s/.*words='\(add [^-']*\)'.*/\1/p" "$src/tools/completions/spyre" >"$work/completion"
[ -s "$work/help" ] && diff "$work/help" "$work/completion" >"$work/diff"
report $? "completion of operations" "$work/diff"

# The help and the completion have the same long options.
for command in launch build compile estimate explain info doctor coredump trace analyze; do
	"$spyre" help $command | grep -o -e '--[a-z]\+' | sort -u >"$work/help"
	sed -n "/^	$command)/,/;;/p; /^	[a-z]* | $command)/,/;;/p; /^	$command | [a-z]*)/,/;;/p" \
		"$src/tools/completions/spyre" | grep -o -e '--[a-z]\+' |
		grep -vx -e --help | sort -u >"$work/completion"
	grep -vx -e --help "$work/help" | diff - "$work/completion" >"$work/diff"
	report $? "completion of $command" "$work/diff"
done
echo "1..$number"
