# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Counting of test results: TAP streams, Automake's .trs files, single steps.
# Sourced by scripts/test after lib.sh.

passed=0 failed=0 skipped=0
failures=()

ok() { passed=$((passed + 1)); note "ok: $1"; }

# not_ok WHAT STEP: STEP names the log, or is empty.
not_ok() {
	failed=$((failed + 1))
	failures+=("$1${2:+ (build/log/$2.log)}")
	note "FAILED: $1"
	if [ -n "$2" ]; then
		tail -n 15 "$(log_file "$2")" | sed 's/^/    | /'
	fi
}

skip() { skipped=$((skipped + 1)); note "skipped: $1: $2"; }

# step WHAT STEP COMMAND...: one test; its output is the log.
step() {
	local what=$1 name=$2
	shift 2
	# The command may read the log of the same step.
	if "$@" >"$(log_file "$name").new" 2>&1; then
		mv "$(log_file "$name").new" "$(log_file "$name")"
		ok "$what"
		return 0
	fi
	mv "$(log_file "$name").new" "$(log_file "$name")"
	not_ok "$what" "$name"
	return 1
}

add_counts() {
	local name=$1 p=$2 f=$3 s=$4
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	note "$p passed, $f failed, $s skipped"
	[ "$f" = 0 ] || failures+=("$f of $name")
}

# tally_trs FOLDER STEP: counts the results of 'make check'. No result at all is a
# failure: the tests did not build.
tally_trs() {
	local results p f s
	results=$(find "$1" -name '*.trs' -not -path '*/spyre-[0-9]*' -exec \
		grep -h '^:test-result:' {} +)
	if [ -z "$results" ]; then
		not_ok "make check ran no test" "$2"
		return
	fi
	p=$(grep -c '^:test-result: \(PASS\|XFAIL\)' <<<"$results")
	s=$(grep -c '^:test-result: SKIP' <<<"$results")
	f=$(grep -c '^:test-result: \(FAIL\|XPASS\|ERROR\)' <<<"$results")
	# The logs in the same folder have the names.
	find "$1" -name '*.trs' -not -path '*/spyre-[0-9]*' | sed 's/trs$/log/' |
		xargs -r grep -hE '^(FAIL|XPASS|ERROR|SKIP): ' | sed 's/^/    /' | head -n 40
	add_counts "$2" "$p" "$f" "$s"
}

# tally_tap STATUS STEP: counts the TAP stream in a step's log, with plan lines or
# without. A non-zero status, or fewer results than a single plan announces, is a
# failure as well.
tally_tap() {
	local status=$1 name=$2 log p f s planned
	log=$(log_file "$name")
	s=$(grep -ciE '^ok\b.*# *skip' "$log")
	p=$(($(grep -cE '^ok\b' "$log") - s))
	f=$(grep -cE '^(not ok\b|Bail out!)' "$log")
	grep -E -A6 '^(not ok\b|Bail out!)' "$log" | head -n 60 | sed 's/^/    /'
	grep -iE '^ok\b.*# *skip' "$log" | sed 's/^/    /' | head -n 20
	planned=$(grep -E '^1\.\.[0-9]+' "$log")
	if [ "$(grep -c . <<<"$planned")" = 1 ]; then
		planned=${planned#1..}
		planned=${planned%%[!0-9]*}
		if [ "$planned" -gt $((p + f + s)) ]; then
			f=$((f + planned - p - f - s))
			note "the log is truncated: $planned results were planned"
		fi
	fi
	if [ "$status" != 0 ] && [ "$f" = 0 ]; then
		f=1
		note "exit status $status; the end of build/log/$name.log:"
		tail -n 15 "$log" | sed 's/^/    | /'
	fi
	add_counts "$name" "$p" "$f" "$s"
}

print_failures() {
	[ ${#failures[@]} -gt 0 ] || return 0
	say "failures"
	printf '    %s\n' "${failures[@]}"
}
