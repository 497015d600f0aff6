#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs inside a bare Debian: does what packaging/Containerfile says, on the tree in
# /state/context, as podman would, whose image has the same packages. Knows no more of the
# format than that file uses. Results are TAP on stdout.
set -u
work=/tmp
. /state/tap.sh
. /state/tools.sh

release() { [ "$1" = "debian:$(. /etc/os-release && echo "$VERSION_ID")" ]; }
folder() { mkdir -p "$1" && cd "$1" || return; }

# copy SOURCE... TARGET: of the context, into the working folder.
copy() (
	target=$PWD
	while [ $# -gt 1 ]; do
		sources="${sources-} $1"
		shift
	done
	target=$target/$1
	mkdir -p "$target"
	cd /state/context && cp -a $sources "$target"
)

while read -r instruction arguments <&3; do
	name="$instruction $arguments"
	case $instruction in
	'' | '#'*) ;;
	FROM) try "$name" release "$arguments" ;;
	WORKDIR) try "$name" folder "$arguments" ;;
	COPY) try "$name" copy $arguments ;;
	RUN) try "$name" sh -c "$arguments" ;;
	# README names the accuracy.
	CMD) try "$name" says 'accuracy          0.9800' $(echo "$arguments" | tr -d '[],"') ;;
	*) try "$name is an instruction that this test knows" false ;;
	esac
done 3</state/context/packaging/Containerfile
exit "$failed"
