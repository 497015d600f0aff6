#!/bin/sh
# SPDX-License-Identifier: MIT
#
# spyre analyze and spyre trace merge, also on files of any content.
set -u
spyre=${SPYRE_BUILDDIR:?}/tools/spyre/spyre
perf=${SPYRE_BUILDDIR:?}/tools/spyre-perf
. "${SPYRE_SRCDIR:?}/tests/tap.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99

says() { grep -qF -e "$1" "$work/out"; }

# refused NAME TEXT ARGUMENT...: spyre exits with 2 and this text on stderr, and prints nothing.
refused() {
	name=$1 text=$2
	shift 2
	"$spyre" "$@" >"$work/printed" 2>"$work/out"
	[ $? = 2 ] && says "$text" && ! [ -s "$work/printed" ]
	report $? "$name" "$work/out"
}

shapes='-i 64x128@fp16 -i 128x64@fp16'
# shellcheck disable=SC2086
"$spyre" build matmul $shapes mm >"$work/out" 2>&1 &&
	"$spyre" trace run --cores -o t.json -- "$spyre" launch $shapes -o 64x64@fp16 --json mm \
		>launched 2>"$work/out"
report $? "a trace with the time of cores" "$work/out"
cycles=$(sed -n 's/.*"cycles":{"min":\([0-9]*\).*/\1/p' launched)

"$spyre" analyze mm >"$work/out" 2>&1 && grep -q '^0_.* 1 .*[0-9]% ' "$work/out" &&
	grep -q '^1\. ' "$work/out"
report $? "a bundle, with advice" "$work/out"
"$spyre" analyze --format=json mm >"$work/out" 2>&1 && [ -n "$cycles" ] &&
	says "\"launches\":1,\"cycles\":$cycles,"
report $? "the cycles of a bundle are those of its launch" "$work/out"
"$spyre" analyze --format=json t.json >"$work/out" 2>&1 && says "\"cycles\":$cycles," &&
	# The shares of a kernel's time add up to it.
	tr ',{}' '\n\n\n' <"$work/out" | awk -F: -v want="$cycles" '
		/"bound_cycles"/ { on = 7; next }
		on && $2 != "" { sum += $2; on-- }
		END { exit !(sum == want) }'
report $? "the cycles of a trace, and their causes" "$work/out"

"$spyre" analyze --format=html t.json >page.html 2>"$work/out" && grep -q 'aria-label="roofline"' \
	page.html && grep -q 'aria-label="timeline"' page.html && grep -q '</html>' page.html &&
	! grep -qiE '<script|https?:|src=|url\(|@import' page.html
report $? "a page that needs nothing else" "$work/out"
evil='</title></svg><script>alert(1)</script><img src=x onerror=\\"alert(2)\\">\&\\u0001'
sed "s|\"0_[a-z_0-9]*\"|\"$evil\"|g" t.json >evil.json
"$spyre" analyze --format=html evil.json >page.html 2>"$work/out" &&
	grep -q '&lt;script&gt;alert(1)' page.html && ! grep -qE '<script|<img|"alert' page.html
report $? "names of a trace cannot bring markup into the page" "$work/out"
printf '\033]0;x\a' >escape
sed 's|"0_[a-z_0-9]*"|"\\u001b]0;x\\u0007\\u009b2J"|g' t.json >evil.json
"$spyre" analyze evil.json >"$work/out" 2>&1 && ! grep -q "$(printf '\033')" "$work/out" &&
	! grep -q "$(printf '\302\233')" "$work/out"
report $? "names of a trace cannot control the terminal" "$work/out"

head -c 3000 t.json >truncated.json
refused "a truncated file" "is it truncated?" analyze truncated.json
: >empty.json
refused "an empty file" "it is not JSON" analyze empty.json
echo '{"a":1}' >foreign.json
refused "JSON that is no trace" "without the array" analyze foreign.json
echo '{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1}]}' >foreign.json
refused "a trace of another program" "not one of libspyre" analyze foreign.json
truncate -s 300M huge.json
refused "a huge file" "the limit is 268435456" analyze huge.json
refused "a device" "it is not a regular file" analyze /dev/zero
mkfifo fifo
timeout 60 "$spyre" analyze fifo >"$work/out" 2>&1
says "it is not a regular file"
report $? "a fifo without a writer is refused at once" "$work/out"
refused "a missing file" "No such file" analyze missing.json
head -c 1000000 /dev/zero | tr '\0' '[' >deep.json
refused "a deeply nested file" "it is not JSON" analyze deep.json
head -c 100000 /dev/urandom >random.json
refused "random bytes" "it is not JSON" analyze random.json
refused "no file" "expected one trace" analyze
refused "an unknown format" "unknown format 'pdf'; valid: text, json, html" analyze --format=pdf t.json

# hostile NAME TEXT EVENTS: a trace of libspyre with these events.
hostile() {
	printf '{"otherData":{"writer":"libspyre 0","clock_hz":1500000000},"traceEvents":[%s]}' \
		"$3" >hostile.json
	refused "$1" "$2" analyze hostile.json
}
kernel='"ph":"X","cat":"kernel","name":"k"'
launch='"ph":"X","cat":"launch","name":"k","ts":1,"dur":1'
hostile "an event that is no object" "event 0 is not an object" '7'
hostile "a time that is no number" "lacks a name or its times" "{$kernel,\"ts\":\"1\",\"dur\":1}"
hostile "a negative time" "lacks a name or its times" "{$kernel,\"ts\":-1,\"dur\":1}"
hostile "a launch without its kernel" "has no kernel of that name" "{$launch}"
hostile "a phase outside of a launch" "comes before" \
	'{"ph":"X","cat":"phase","name":"p","ts":1,"dur":1}'
sed 's/"clock_hz":[0-9]*/"clock_hz":0/' t.json >hostile.json
refused "a clock of 0" "is not between 1 MHz and 100 GHz" analyze hostile.json
big=18446744073709551615
printf '{"otherData":{"writer":"libspyre 0","clock_hz":1500000000},"traceEvents":[%s,%s,%s]}' \
	"{$kernel,\"ts\":1,\"dur\":1,\"args\":{\"cycles\":$big,\"macs\":$big,\"bytes_read\":$big}}" \
	"{$launch,\"args\":{\"cycles\":$big,\"card_cores\":$big,\"start_cycle\":$big}}" \
	"{\"ph\":\"X\",\"cat\":\"phase\",\"name\":\"p\",\"ts\":1,\"dur\":1,\"args\":{\"cores\":$big,
	\"cycles\":$big,\"core_cycles\":$big,\"lpddr_cycles\":$big,\"barrier_cycles\":$big}}" >big.json
for format in text json html; do
	"$spyre" analyze --format=$format big.json >"$work/out" 2>&1 && ! grep -qiE 'nan|inf"' "$work/out"
	report $? "the largest numbers, as $format" "$work/out"
done
# U+009B begins a control sequence of terminals, like an escape character and "[".
printf '{"otherData":{"writer":"libspyre 0","clock_hz":1500000000},"traceEvents":[%s]}' \
	'{"ph":"X","cat":"kernel","name":"k\u009b2J\u001b[2J","ts":1,"dur":1}' >control.json
for format in text json; do
	"$spyre" analyze --format=$format control.json >"$work/out" 2>&1 && says 2J &&
		! LC_ALL=C grep -q "$(printf '\302\233')" "$work/out" &&
		! grep -q "$(printf '\033')" "$work/out"
	report $? "control characters of a name, as $format" "$work/out"
done
# Sums of the largest numbers stay the largest ones, and parts of nothing are not infinite.
printf '{"otherData":{"writer":"libspyre 0","clock_hz":1500000000},"traceEvents":[' >sum.json
i=0
while [ $((i += 1)) -le 300 ]; do
	args="\"args\":{\"cycles\":$big,\"bytes_read\":$big,\"bytes_written\":$big}"
	printf '{"ph":"X","cat":"kernel","name":"k%s","ts":1,"dur":1,%s},' $i "$args"
	printf '{"ph":"X","cat":"copy","name":"k%s","ts":1,"dur":1,%s},' $i "$args"
done >>sum.json
printf '{}]}' >>sum.json
"$spyre" analyze --format=json sum.json >"$work/out" 2>&1 && says "\"cycles\":$big,\"kernels\"" &&
	says "\"cycles\":$big,\"bytes\":$big}"
report $? "sums of the largest numbers" "$work/out"
hostile_phases="{$kernel,\"ts\":1,\"dur\":1},{$launch,\"args\":{\"card_cores\":32}},{\"ph\":\"X\",
	\"cat\":\"phase\",\"name\":\"p\",\"ts\":1,\"dur\":1,\"args\":{\"core_cycles\":9}}"
printf '{"otherData":{"writer":"libspyre 0","clock_hz":1500000000},"traceEvents":[%s]}' \
	"$hostile_phases" >none.json
for format in text json html; do
	"$spyre" analyze --format=$format none.json >"$work/out" 2>&1 && ! grep -qiE 'nan|inf ' "$work/out"
	report $? "phases of kernels without time, as $format" "$work/out"
done

# Two ranks of one machine, then the second one of another machine whose clock is 7 s ahead.
SPYRE_TRACE=rank%p.json "$perf" -n 2 -b 4K -e 4K all_reduce >"$work/out" 2>&1
set -- rank*.json
[ $# = 2 ] && "$spyre" trace merge "$@" -o all.json >"$work/out" 2>&1 &&
	[ "$(grep -c 'moved by 0.000 us (the same clock)' "$work/out")" = 2 ] &&
	"$spyre" analyze all.json >"$work/out" 2>&1
report $? "merge of two ranks of a machine" "$work/out"
[ "$(grep -o '"cat":"collective"' all.json | wc -l)" = \
	"$(cat "$@" | grep -o '"cat":"collective"' | wc -l)" ] &&
	[ "$(grep -o '"name":"card 0[^"]*"\|rank 0: card[^"]*"' all.json | wc -l)" -ge 1 ]
report $? "all events are in it" "$work/out"
sed 's/"boot_id":"[^"]*"/"boot_id":"other"/' "$2" | awk '{
	if (match($0, /"ts":[0-9.]*/)) {
		ts = substr($0, RSTART + 5, RLENGTH - 5) + 7000000
		$0 = substr($0, 1, RSTART + 4) sprintf("%.3f", ts) substr($0, RSTART + RLENGTH)
	}
	print }' >ahead.json
"$spyre" trace merge "$1" ahead.json -o all.json >"$work/out" 2>&1 &&
	awk '/ahead.json.*collectives/ { found = $6 < -6900000 && $6 > -7100000 } END { exit !found }' \
		"$work/out"
report $? "clocks of two machines are aligned by collectives" "$work/out"
sed 's/"sequence":[0-9]*/"other":1/' ahead.json >alone.json
"$spyre" trace merge "$1" alone.json -o all.json >"$work/out" 2>&1 &&
	grep -q "alone.json.*(the system's time)" "$work/out"
report $? "without collectives, by the system's time" "$work/out"

refused "merge without an output" "no output file given" trace merge t.json
refused "merge of nothing" "no traces to merge" trace merge -o x.json
"$spyre" trace merge t.json truncated.json -o x.json >"$work/out" 2>&1
[ $? = 2 ] && says "is it truncated?" && ! ls x.json* >/dev/null 2>&1
report $? "merge of a truncated file, which leaves no file" "$work/out"
sed 's/"rank":0/"rank":-1/' t.json >hostile.json
refused "a negative rank" "its rank (otherData.rank) is not a natural number" \
	trace merge hostile.json -o x.json
sed 's/"ts":[0-9.]*/"ts":1e300/;s/"cat":"[^"]*"/"cat":"x"/' t.json >hostile.json
refused "a time beyond all numbers" "is not a number from 0 to 1e+16" \
	trace merge hostile.json -o x.json
sed 's/"pid":10000000/"pid":99999999999/' t.json >hostile.json
refused "a process beyond all numbers" 'has a "pid" that is not a number below' \
	trace merge hostile.json -o x.json
echo "1..$number"
