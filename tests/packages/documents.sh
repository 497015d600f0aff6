#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Runs inside a bare Debian: does literally what documents tell their reader, on a clone of
# /shared/spyre.git, and reports the exit code of each command. Arguments:
# DOCUMENT[:FROM-HEADING[:TO-HEADING]]... All commands of a document share one shell, as in a
# reader's terminal, which "script" provides: questions are answered with "y". Results are TAP
# on stdout.
set -u
work=/tmp
. /state/tap.sh

# Commands of another machine than a root of this one, with the reason.
impossible() {
	case $1 in
	*reboot*) reason="there is no machine to restart" ;;
	*mokutil*) reason="there is no firmware" ;;
	*modprobe*) reason="the kernel that runs is not the reader's" ;;
	*) return 1 ;;
	esac
}

# Commands that end with another code than 0, as the document says.
expected() {
	case $1 in
	"spyre launch"*first) grep -q '"addd"' first/sdsc_0.json && echo 2 || echo 0 ;;
	*) echo 0 ;;
	esac
}

# A reader runs the newest kernel that is installed.
reader_kernel() {
	cat >/usr/local/bin/uname <<-'END'
		#!/bin/sh
		[ "$*" = -r ] || exec /usr/bin/uname "$@"
		ls /lib/modules | sort -V | tail -n 1
	END
	chmod +x /usr/local/bin/uname
}

# The folder /ccache, if the test was given one, has what an earlier run compiled.
use_ccache() {
	apt-get -qq -y --no-install-recommends install ccache || return
	export PATH=/usr/lib/ccache:$PATH CCACHE_DIR=/ccache CCACHE_BASEDIR=$HOME CCACHE_NOHASHDIR=1
}

# Answers come at a typist's pace: "script" keeps in memory those that no command reads.
answers() { while sleep 2 && echo y; do :; done; }

terminal() {
	local command code
	cd ~/spyre || return
	while read -r -u 9 command; do
		if impossible "$command"; then
			echo "ok - $command # SKIP $reason" >>/state/tap
			continue
		fi
		printf '\n$ %s\n' "$command"
		eval "$command"
		code=$?
		[ $code = "$(expected "$command")" ] && result=ok || result="not ok"
		echo "$result - $command # exit code $code, $SECONDS s" >>/state/tap
		SECONDS=0
	done 9</state/commands
}

document() {
	local file from to wanted
	IFS=: read -r file from to <<<"$1"
	awk -v from="$from" -v to="$to" -f /state/commands.awk ~/spyre/"$file" >/state/commands
	wanted=$(grep -c . /state/commands)
	: >/state/tap
	echo "# $1"
	# As a substitution, the answers would be a child of "script", which waits for all of them.
	answers | script -qefc "$0 --terminal" "/state/terminal.$step" >/dev/null
	cat /state/tap
	try "$1: all $wanted commands were run" \
		[ "$wanted" -gt 0 -a "$(grep -c . /state/tap)" = "$wanted" ]
	if [ "$failed" = 1 ] || grep -q '^not ok' /state/tap; then
		tail -n 80 "/state/terminal.$step" | tr -d '\r' | sed 's/^/# /'
		failed=1
	fi
}

if [ "$1" = --terminal ]; then
	terminal
	exit
fi

# A busy machine's time limits, as scripts/test and its plugin tests have them.
export CK_TIMEOUT_MULTIPLIER=5 SPYRE_TIMEOUT_MS=60000
export USER=root SHELL=/bin/bash
step=0
reader_kernel
try "apt reads the archive" apt-get -qq update
[ ! -d /ccache ] || try "ccache installs" use_ccache
try "git clone" git clone -q /shared/spyre.git ~/spyre
for argument; do
	step=$((step + 1))
	document "$argument"
done
exit "$failed"
