#!/bin/sh
# SPDX-License-Identifier: MIT
#
# spyre build: its explanations, and launches of composed operations.
set -u
spyre=${SPYRE_BUILDDIR:?}/tools/spyre/spyre
. "${SPYRE_SRCDIR:?}/tests/tap.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
export SPYRE_BACKEND=embedded
unset SENCORES LX_PLANNING DXP_LX_FRAC_AVAIL HBM_POOL_PLANNING

# STATUS TEXT ARGUMENT...: spyre build exits with STATUS and prints TEXT.
says() {
	want=$1 text=$2
	shift 2
	"$spyre" build "$@" >"$work/out" 2>&1
	got=$?
	good=1
	[ $got = "$want" ] && grep -qE -e "$text" "$work/out" && good=0
	echo "exit status $got" >>"$work/out"
	report $good "build $* says $text" "$work/out"
}

says 0 'softmax: 6 steps; LX 67584 of 1677696' softmax --shape 512x1024 --explain
says 0 '^ +2048 +34816  3 to 5  \.\.\.###$' softmax --shape 512x1024 --explain
says 0 'batchmatmul +32  mb 8, out 4, in 1' matmul -i 512x1024@fp16 -i 1024x256@fp16 --explain
says 0 'mb 4, out 1, in 2 .* asked for: mb 4, in 2' matmul -i 512x1024@fp16 -i 1024x256@fp16 \
	--divide -2=4 --divide K=2 --explain
says 2 "--divide takes DIM=SLICES.* not '0=4'" add --shape 4x64 --divide 0=4 --explain
says 2 "--divide takes DIM=SLICES.* not '-1'" add --shape 4x64 --divide -1 --explain
says 2 '3 slices do not divide dimension -1, of 16 sticks' add --shape 512x1024 --divide -1=3 --explain
says 0 'instead of +mb 16, out 2, in 1' matmul -i 512x1024@fp16 -i 1024x256@fp16 --explain
says 0 'add +32  mb 2, out 16' add --shape 512x1024 --explain
says 0 'add +32  mb 1, out 32' add --shape 512x1024@fp32 --explain
says 0 'add +8  mb 1, out 8' add --shape 512x1024 --cores 8 --explain
says 0 '"lx_bytes": 67584' softmax --shape 512x1024 --json
says 0 '"version": 1' fill --shape 64 -a value=2 --json
says 0 'sumnonstick' sum --shape 100x150 -a dim=0 --explain
says 2 "'dim': --attr takes NAME=VALUE" sum --shape 100x150 -a dim --explain
says 2 "'x' is not a number" sum --shape 100x150 -a dim=x --explain
says 2 'no attribute "axis"' sum --shape 100x150 -a axis=0 --explain
says 2 'operand 0 has 2 dimensions' sum --shape 100x150 -a dim=2 --explain
says 2 'cannot combine --shape with -i' sum --shape 4 -i 4@fp16 --explain
says 0 "relu: 1 step" relu --shape 4x64
says 2 "unexpected argument 'd2'" relu --shape 4x64 d1 d2
says 1 'SPYRE_ERROR_FILE' relu --shape 4x64 /proc/nowhere
says 0 'dl16tofp32' cast --shape 4x64 -a format=IEEE_FP32
says 2 "unknown format 'fp31'" cast --shape 4x64 -a format=fp31
says 2 '"format" is 77, which is not a device format' cast --shape 4x64 -a format=77
says 2 'eps is -1, expected' layer_norm --shape 4x64 -a eps=-1
says 2 'softmax: amax: dim 9 is out of range' softmax --shape 4x64 -a dim=9
says 2 'got 1 input$' add -i 4x64@fp16
says 2 "unknown option '-shape'; did you mean '--shape'" add -shape 4x64
says 2 'takes 2 inputs' add -i 4x64@fp16 --explain

# Layers, attributes and errors in them.
says 0 'conv2d +32 .* ki 1, ' conv2d -i 2x3x32x32@fp16 -i 16x3x3x3@fp16 -a padding=1 --explain
says 0 'maxpoolfwd ' max_pool2d --shape 4x64x8x8 -a kernel_size=2 --explain
says 0 'topkvalue +25 ' topk --shape 100x150 -a k=5 --explain
says 0 'topkindex ' argmax --shape 100x150 --explain
says 0 'mul: 3 steps' mul --shape 4x64 -a other=2 --explain
says 0 'batchnormfwd ' batch_norm -i 2x64x8x8@fp16 -i 64@fp16 -i 64@fp16 --explain
says 2 'needs the attribute "kernel_size"' max_pool2d --shape 4x64x8x8 --explain
says 2 'windows of 9 do not fit' max_pool2d --shape 4x64x8x8 -a kernel_size=9 --explain
says 2 'at most 1 is possible' max_pool2d --shape 4x64x8x8 -a kernel_size=2 -a padding=3 --explain
says 2 'with C = 3' conv2d -i 2x3x32x32@fp16 -i 16x4x3x3@fp16 --explain
says 2 'k is 65, there are 64' topk --shape 4x64 -a k=65 --explain
says 2 'needs the attribute "exponent"' pow --shape 4x64 --explain

# One element, many dims, and more than a core may address.
says 0 'relufwd +1 ' relu --shape 1x1x1x1 --explain
says 0 'add +21 ' add --shape 2x3x4x5x6x7x64 --explain
says 0 'mb 1, out 32' add --shape 8192x65536 --explain
says 0 'mb 2, out 4, in 4' matmul -i 8192x65536@fp16 -i 65536x8192@fp16 --explain
says 2 'SPAN_LIMIT.* the limit is 268435456; use smaller' softmax --shape 8192x65536 --explain

SENCORES=4 says 0 'relufwd +4 ' relu --shape 512x1024 --explain
LX_PLANNING=0 says 0 'softmax: 5 steps; LX 0 of' softmax --shape 512x1024 --explain
LX_PLANNING=0 says 0 '^pool$' softmax --shape 512x1024 --explain

if command -v python3 >/dev/null; then
	"$spyre" build attention --shape 2x100x64 --json >"$work/json" 2>&1 &&
		python3 -m json.tool "$work/json" >/dev/null 2>"$work/out"
	report $? "the plan is JSON" "$work/out"
fi

# Composed operations are ordinary bundles.
for op in softmax log_softmax rms_norm layer_norm swiglu; do
	{ "$spyre" build $op --shape 100x150 "$work/$op" &&
		case $op in
		swiglu) "$spyre" launch -i 100x150@fp16 -i 100x150@fp16 -o 100x150@fp16 "$work/$op" ;;
		*) "$spyre" launch -i 100x150@fp16 -o 100x150@fp16 "$work/$op" ;;
		esac
	} >"$work/out" 2>&1
	report $? "$op is built and launched" "$work/out"
done
echo "1..$number"
