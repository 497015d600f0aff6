#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Serves a checkpoint with vLLM, asks it a question over HTTP and ends the server. vllm must be in
# PATH, with vllm_plugin installed beside it; examples/serve/serve.sh makes that environment.
set -euo pipefail

usage() {
	echo "usage: answer.sh CHECKPOINT [QUESTION]"
}

die() {
	printf 'answer.sh: %s\n' "$*" >&2
	exit 1
}

# A port that is free now.
free_port() {
	python3 -c 'import socket
with socket.socket() as one:
    one.bind(("127.0.0.1", 0))
    print(one.getsockname()[1])'
}

# Waits until the server answers: it loads the weights first.
wait_for_server() {
	until curl -sf -o "$folder/health" "$address/health"; do
		kill -0 "$server" 2>/dev/null || die "the server has ended:
$(tail -n 20 "$log")"
		sleep 1
	done
}

# The body of the request; the question may contain anything.
body() {
	python3 -c 'import json, sys
print(json.dumps({
    "model": "model", "temperature": 0, "max_tokens": 64,
    "messages": [{"role": "user", "content": sys.argv[1]}],
}))' "$1"
}

# ask: sends the question, and prints the seconds until the answer was there.
ask() {
	curl -sS --fail-with-body -o "$folder/answer" -w '%{time_total}' \
		-H 'Content-Type: application/json' --data @"$folder/question" \
		"$address/v1/chat/completions" || die "the server refused the question: $(cat "$folder/answer")"
}

# speed SECONDS: says how fast the answer came.
speed() {
	python3 -c 'import json, sys
seconds, tokens = float(sys.argv[1]), json.load(open(sys.argv[2]))["usage"]["completion_tokens"]
print(f"{tokens} tokens in {seconds:.2f} s, {tokens / seconds:.1f} tokens/s")' "$1" "$folder/answer"
}

# Ends the server on every way out, and its folder with it.
end() {
	if [ -n "${server:-}" ]; then
		kill -TERM "$server" 2>/dev/null || :
		wait "$server" 2>/dev/null || :
	fi
	rm -rf "$folder"
}

case ${1-} in
-h | --help) usage; exit 0 ;;
"" | -*) usage >&2; exit 2 ;;
esac
[ $# -le 2 ] || { usage >&2; exit 2; }
checkpoint=$1 question=${2:-What is the capital of France?}
[ -f "$checkpoint/config.json" ] || die "cannot serve $checkpoint: it has no config.json;" \
	"name the folder that convert.py or transformers' save_pretrained() wrote"
for command in vllm curl python3; do
	[ -n "$(command -v $command)" ] || die "cannot find $command in PATH; see docs/vllm.md"
done

folder=$(mktemp -d)
trap end EXIT
trap 'exit 130' INT TERM
log=${SERVE_LOG:-$folder/server.log}
address=http://127.0.0.1:$(free_port)

vllm serve "$checkpoint" --served-model-name model --host 127.0.0.1 --port "${address##*:}" \
	--max-model-len 1024 --max-num-seqs 1 >"$log" 2>&1 &
server=$!
echo "vllm serves $checkpoint at $address"
wait_for_server

body "$question" >"$folder/question"
first=$(ask)
echo "question: $question"
python3 -c 'import json, sys
text = json.load(open(sys.argv[1]))["choices"][0]["message"]["content"]
print(f"answer: {text.strip()}")' "$folder/answer"
echo "first answer, whose programs are compiled: $(speed "$first")"
second=$(ask)
echo "the same again: $(speed "$second")"

kill -TERM "$server"
status=0
wait "$server" || status=$?
server=
[ $status = 0 ] || die "the server ended with status $status:
$(tail -n 20 "$log")"
echo "the server has ended"
