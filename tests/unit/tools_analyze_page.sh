#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The page of spyre analyze in a browser: it has its plots, asks for nothing, and logs nothing.
set -u
spyre=${SPYRE_BUILDDIR:?}/tools/spyre/spyre
. "${SPYRE_SRCDIR:?}/tests/tap.sh"

browser=
for name in chromium chromium-browser google-chrome; do
	command -v $name >/dev/null && browser=$name && break
done
if [ -z "$browser" ] || ! command -v python3 >/dev/null; then
	echo "1..0 # SKIP no chromium, or no python3"
	exit 0
fi
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
export HOME="$work"

# browse NAME: NAME.dom is the page NAME.html after its scripts, NAME.log what the console printed,
# NAME.urls what the page asked for. The browser's own requests find no address, so that none
# leaves the machine; in the log of requests they have no page as their initiator.
browse() {
	$browser --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
		--disable-background-networking --disable-component-update --disable-sync \
		--host-resolver-rules='MAP * ~NOTFOUND, EXCLUDE 127.0.0.1' \
		--user-data-dir="$work/profile" --log-net-log="$work/$1.net" \
		--enable-logging=stderr --dump-dom "file://$work/$1.html" >"$1.dom" 2>"$1.log" &&
		python3 - "$1.net" >"$1.urls" <<'END'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as source:
    for event in json.load(source)["events"]:
        request = event.get("params", {})
        own = request.get("initiator", "not an origin") == "not an origin"
        if "url" in request and not own and not request["url"].startswith(("file:", "data:")):
            print(request["url"])
END
}
console() { grep -q 'CONSOLE' "$1.log"; }

# A page that does both shows that the checks see them.
cat >bad.html <<'END'
<html><body><img src="http://127.0.0.1:9/a.png"><script>console.error("an error")</script></body></html>
END
browse bad && console bad && grep -qxF 'http://127.0.0.1:9/a.png' bad.urls
report $? "requests and errors of a page are noticed" bad.log

"$spyre" build matmul -i 64x128@fp16 -i 128x64@fp16 mm >out 2>&1 &&
	"$spyre" trace run --cores -o t.json -- "$spyre" launch -i 64x128@fp16 -i 128x64@fp16 \
		-o 64x64@fp16 --json mm >out 2>&1 &&
	"$spyre" analyze --format=html t.json >page.html 2>out
report $? "a page is written" out
browse page && grep -q '</html>' page.dom && ! console page
report $? "the console stays empty" page.log
! [ -s page.urls ]
report $? "the page asks for nothing" page.urls

# The sizes that the browser gives to the plots; the page itself forbids scripts.
cat >script <<'END'
<script>document.title = "plots " + Array.from(document.querySelectorAll("svg"), plot =>
	plot.getAttribute("aria-label") + (plot.getBBox().width > 100 && plot.getBBox().height > 5 &&
	plot.getBoundingClientRect().width > 100 ? "=drawn" : "=empty")).join(" ");</script>
END
{ sed 's/<meta http-equiv="Content-Security-Policy"[^>]*>//' page.html && cat script; } >measured.html
browse measured && grep -o '<title>plots [^<]*' measured.dom >plots &&
	grep -q 'roofline=drawn' plots && grep -q 'timeline=drawn' plots && ! grep -q '=empty' plots
report $? "the browser draws the plots" plots
echo "1..$number"
