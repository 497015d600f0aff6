#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Bundles written and run by the spyre command.
set -u
spyre=${SPYRE_BUILDDIR:?}/tools/spyre/spyre
. "${SPYRE_SRCDIR:?}/tests/tap.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

# NAME EXPECTED OP OPERAND...: builds and launches with inputs of ones; the whole first
# printed row is EXPECTED.
computes() {
	name=$1 expected=$2 op=$3
	shift 3
	{ "$spyre" build "$op" "$@" "$work/$name" && "$spyre" launch "$@" "$work/$name"; } \
		>"$work/out" 2>&1 &&
		awk -v want="$expected" '
			found && !rows++ { for (i = 1; i <= NF; i++) if ($i != "…") {
				n++; if ($i != want) bad++ } }
			/^output/ { found = 1 }
			END { exit !(n && !bad) }' "$work/out"
	report $? "$name of ones is $expected" "$work/out"
}

computes add 2 add -i 96x320@fp16 -i 96x320@fp16 -o 96x320@fp16
computes add_fp32 2 add -i 64x128@fp32 -i 64x128@fp32 -o 64x128@fp32
computes add_bias 2 add -i 64x128@fp16 -i 128@fp16 -o 64x128@fp16
computes mul 1 mul -i 96x320@fp16 -i 96x320@fp16 -o 96x320@fp16
computes relu 1 relu -i 100x150@fp16 -o 100x150@fp16
computes sum 256 sum -i 64x256@fp16 -o 64@fp16
computes matmul 1024 matmul -i 512x1024@fp16 -i 1024x256@fp16 -o 512x256@fp16
computes matmul_narrow 64 matmul -i 32x64@fp16 -i 64x10@fp16 -o 32x10@fp16

computes matmul_padded 150 matmul -i 100x150@fp16 -i 150x70@fp16 -o 100x70@fp16
computes bmm 256 matmul -i 8x128x256@fp16 -i 8x256x128@fp16 -o 8x128x128@fp16

# A file in, a file out, and in again: 1 + 1 = 2, 2 + 2 = 4.
"$spyre" launch -i 96x320@fp16 -i 96x320@fp16 -o 96x320@fp16="$work/two.npy" "$work/add" \
	>"$work/out" 2>&1 &&
	"$spyre" launch -i "$work/two.npy" -i "$work/two.npy@fp16" -o 96x320@fp16 "$work/add" \
		>"$work/out" 2>&1 && grep -q '^ *4 *4 *4 ' "$work/out"
report $? "files in and out" "$work/out"

# A file whose shape the kernel does not take.
"$spyre" launch -i "$work/two.npy" -i 96x64@fp16 -o 96x320@fp16 "$work/add" \
	>"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -qF '96x64@fp16 has device size [1, 96, 64], the bundle takes [5, 96, 64]' "$work/err"
report $? "a wrong shape is refused" "$work/err"
# It is refused before allocations and copies: the card has less memory than this needs.
SPYRE_EMBEDDED_LPDDR_MIB=64 "$spyre" launch -i 1000000x64@fp32 -i 96x320@fp16 -o 96x320@fp16 \
	"$work/add" >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -qF 'the bundle takes [5, 96, 64]' "$work/err"
report $? "a wrong shape is refused before memory is allocated" "$work/err"
"$spyre" launch -i "$work/two.npy" -o 96x320@fp16 "$work/add" >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q 'takes 3 operands, but 1 inputs and 1 outputs were given' "$work/err"
report $? "a missing argument is refused" "$work/err"
"$spyre" launch -i 96x320@fp16 -o 96x320@fp16 "$work/none" >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q SPYRE_ERROR_FILE "$work/err"
report $? "a missing bundle is refused" "$work/err"
"$spyre" launch -i 96x320@fp16 -i 96x320@fp16 -o 96x320@fp16=/dev/full "$work/add" \
	>"$work/out" 2>"$work/err"
[ $? = 1 ] && grep -q "/dev/full" "$work/err"
report $? "an output that cannot be written is an error" "$work/err"
"$spyre" launch -i 96x320@fp16 -i 96x320@fp16 -o 96x320@fp16 "$work/add" >/dev/full \
	2>"$work/err"
[ $? = 1 ] && grep -q "standard output" "$work/err"
report $? "lost text is an error" "$work/err"

# The remedy of a failure is the user's: the limit's variable and another run, no call of the
# library. The product takes far longer than the limit, the least there is.
"$spyre" build matmul -i 2048x2048@fp16 -i 2048x2048@fp16 -o 2048x2048@fp16 "$work/long" \
	>"$work/out" 2>&1
SPYRE_TIMEOUT_MS=1 SPYRE_EMBEDDED_THREADS=1 "$spyre" launch -i 2048x2048@fp16 \
	-i 2048x2048@fp16 -o 2048x2048@fp16 "$work/long" >"$work/out" 2>"$work/err"
[ $? = 1 ] && grep -q SPYRE_ERROR_TIMEOUT "$work/err" && grep -q SPYRE_TIMEOUT_MS "$work/err" &&
	grep -q 'run the command again' "$work/err" && ! grep -q 'spyre_[a-z_]*()' "$work/err"
report $? "past the time limit, the advice is for users of the command" "$work/err"
rm -r "$work/long"

# Seeds: the same one gives the same bytes, on any stream; another one does not.
sum() {
	"$spyre" launch "$@" -i 96x320@fp16 -i 96x320@fp16 -o 96x320@fp16 "$work/add" |
		sed -n 's/.*checksum \([0-9a-f]*\).*/\1/p'
}
one=$(sum --seed 1) again=$(sum --seed 1 --stream 40 --repeat 3 --stats) two=$(sum --seed 2)
echo "$one $again $two" >"$work/out"
[ -n "$one" ] && [ "$one" = "$again" ] && [ "$one" != "$two" ]
report $? "seeds" "$work/out"

# Statistics: modelled cycles are printed, and JSON has the same.
"$spyre" launch --repeat 5 --stats -i 96x320@fp16 -i 96x320@fp16 -o 96x320@fp16 "$work/add" \
	>"$work/out" 2>&1
cycles=$(awk '/^modelled cycles/ { print $3 }' "$work/out")
"$spyre" launch --repeat 5 --json -i 96x320@fp16 -i 96x320@fp16 -o 96x320@fp16 "$work/add" \
	>"$work/json" 2>&1
[ "${cycles:-0}" -gt 0 ] && grep -q '^launches  *5$' "$work/out" &&
	grep -q "\"cycles\":{\"min\":$cycles,\"median\":$cycles}" "$work/json"
report $? "statistics" "$work/out"

# A case: random inputs are saved, and read again give the same output.
cat >"$work/add/case.json" <<END
{ "inputs": [
  { "arg_index": 0, "shape": [96, 320], "dtype": "fp16", "device_dtype": "SEN169_FP16",
    "device_size": [5, 96, 64], "stride_map": [64, 320, 1], "pad": "poison", "init": "randn" },
  { "arg_index": 1, "shape": [96, 320], "dtype": "bf16", "device_dtype": "SEN169_FP16",
    "device_size": [5, 96, 64], "stride_map": [64, 320, 1], "init": "ints" } ],
  "outputs": [
  { "arg_index": 2, "shape": [96, 320], "dtype": "fp32", "device_dtype": "SEN169_FP16",
    "device_size": [5, 96, 64], "stride_map": [64, 320, 1], "device_bytes": 61440 } ],
  "reference": "in0+in1", "symbolic": true }
END
"$spyre" launch --case "$work/add/case.json" --seed 5 --outputs "$work/a" >"$work/out" 2>&1 &&
	[ -s "$work/a/in0.npy" ] && [ -s "$work/a/in1.npy" ] &&
	"$spyre" launch --case "$work/add/case.json" --inputs "$work/a" --outputs "$work/b" \
		"$work/add" >>"$work/out" 2>&1 && cmp "$work/a/out0.npy" "$work/b/out0.npy" &&
	[ ! -e "$work/b/in0.npy" ]
report $? "a case, with generated and with read inputs" "$work/out"
"$spyre" launch --case "$work/add/case.json" --inputs "$work" >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q "$work/in0.npy: No such file" "$work/err"
report $? "a case without its inputs" "$work/err"
cp "$work/two.npy" "$work/in0.npy"
"$spyre" launch -i 96x320@fp16 -i 96x320@fp16 -o 96x320@fp16 "$work/add" >/dev/null
cp "$work/b/out0.npy" "$work/in1.npy"
"$spyre" launch --case "$work/add/case.json" --inputs "$work" >"$work/out" 2>&1
report $? "fp32 files for a bf16 input are converted" "$work/out"
# Ahead of time, also under the compiler's public name and command line.
# (libtool's wrapper does not support other names, so this runs the program itself.)
real=$SPYRE_BUILDDIR/tools/spyre/.libs/spyre
[ -x "$real" ] || real=$spyre
ln -s "$real" "$work/dxp_standalone"
LD_LIBRARY_PATH=$SPYRE_BUILDDIR/libspyre/.libs "$work/dxp_standalone" --bundle -d "$work/add" >"$work/out" 2>"$work/err" &&
	[ -s "$work/add/spyreCodeDir/spyrecode.json" ] &&
	[ -s "$work/add/spyreCodeDir/init_binary.bin" ] && [ ! -s "$work/err" ]
report $? "dxp_standalone --bundle -d DIR" "$work/err"
# Front-ends name no kind of bundle, and show their users what the compiler prints.
LD_LIBRARY_PATH=$SPYRE_BUILDDIR/libspyre/.libs "$work/dxp_standalone" -d "$work/add" >"$work/out" 2>&1 &&
	[ ! -s "$work/out" ]
report $? "dxp_standalone -d DIR prints nothing" "$work/out"
LD_LIBRARY_PATH=$SPYRE_BUILDDIR/libspyre/.libs "$work/dxp_standalone" --bundle \
	-d "$work/nothing" >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q SPYRE_ERROR_FILE "$work/err" && ! grep -v '^dxp_standalone: ' "$work/err"
report $? "dxp_standalone signs its errors with its own name" "$work/err"
# Errors of its command line name its own help.
LD_LIBRARY_PATH=$SPYRE_BUILDDIR/libspyre/.libs "$work/dxp_standalone" --bundel -d "$work/add" \
	>"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -qxF "dxp_standalone: unknown option '--bundel'; did you mean '--bundle'?" "$work/err" &&
	grep -qxF "Try 'dxp_standalone --help'." "$work/err"
report $? "dxp_standalone names the option that a mistyped one resembles" "$work/err"
# It keeps the LX that front-ends plan, so that kernels can hand tensors over there.
cp -r "$SPYRE_SRCDIR/tests/conformance/bundles/fma" "$work/half"
sed -i '/sdsc_0.json/d' "$work/half/bundle.mlir"
dxp() { LD_LIBRARY_PATH=$SPYRE_BUILDDIR/libspyre/.libs "$work/dxp_standalone" "$@"; }
"$spyre" compile -o "$work/kept" "$work/half" >"$work/out" 2>&1
[ $? = 2 ] && grep -q 'LX is cleared between kernels' "$work/out" &&
	dxp -d "$work/half" -o "$work/kept" --json >"$work/out" 2>&1 &&
	grep -q '"lx_kept":32768' "$work/out"
report $? "dxp_standalone keeps LX" "$work/out"
"$spyre" compile -o "$work/other" --lx-kept 32768 "$work/half" >"$work/out" 2>&1 &&
	cmp "$work/kept/init_binary.bin" "$work/other/init_binary.bin"
report $? "compile --lx-kept BYTES gives the same" "$work/out"
# 2 MiB - 64 KiB, less this fraction, are planned: 32,768 bytes, then a stick less.
DXP_LX_FRAC_AVAIL=0.9838 dxp -d "$work/half" -o "$work/kept" --json >"$work/out" 2>&1 &&
	grep -q '"lx_kept":32768' "$work/out" &&
	! DXP_LX_FRAC_AVAIL=0.98394 dxp -d "$work/half" -o "$work/kept" >"$work/out" 2>&1 &&
	grep -q 'only the first 32640 bytes are kept' "$work/out"
report $? "DXP_LX_FRAC_AVAIL says how much" "$work/out"
DXP_LX_FRAC_AVAIL=1.5 dxp -d "$work/half" -o "$work/kept" >"$work/out" 2>&1
[ $? = 2 ] && grep -q "invalid value '1.5' of DXP_LX_FRAC_AVAIL" "$work/out"
report $? "DXP_LX_FRAC_AVAIL=1.5 is an error" "$work/out"
"$spyre" compile -o "$work/compiled" --cores 32 --json "$work/add" >"$work/out" 2>&1 &&
	cmp "$work/add/spyreCodeDir/init_binary.bin" "$work/compiled/init_binary.bin" &&
	grep -q '"args":3' "$work/out"
report $? "compile -o DIR gives the same" "$work/out"
SPYRE_KERNEL_CACHE=1 SPYRE_LOG=info "$spyre" launch -i 96x320@fp16 -i 96x320@fp16 -o 96x320@fp16 \
	"$work/add" >"$work/out" 2>"$work/err" && ! grep -q compiling "$work/err" &&
	grep -q '^ *2 *2 *2 ' "$work/out"
report $? "a launch uses the compiled bundle" "$work/err"
rm -r "$work/add/spyreCodeDir"

# A symbolic dimension: 40 rows of 96.
sed -i 's/"el_": *{/"el_": {"symbolicDimInfo_": {"mb": "s0"},/' "$work/add/sdsc_0.json"
"$spyre" launch -i 96x320@fp16 -i 96x320@fp16 -o 96x320@fp16 "$work/add" >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q 'symbol s0 (1 to 96) is not bound' "$work/err"
report $? "a symbol without a value is an error" "$work/err"
"$spyre" launch --bind s0=40 -i 40x320@fp16 -i 40x320@fp16 -o 40x320@fp16 "$work/add" \
	>"$work/out" 2>&1 && grep -q '^ *2 *2 *2 ' "$work/out"
report $? "--bind s0=40" "$work/out"
"$spyre" launch --bind s0=97 -i 96x320@fp16 -i 96x320@fp16 -o 96x320@fp16 "$work/add" \
	>"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q 's0 = 97, it takes 1 to 96' "$work/err"
report $? "--bind out of range" "$work/err"
echo "1..$number"
