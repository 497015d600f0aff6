#!/bin/sh
# SPDX-License-Identifier: MIT
#
# spyre estimate: sums of its tables, configurations that are read, those that are refused.
set -u
spyre=${SPYRE_BUILDDIR:?}/tools/spyre/spyre
. "${SPYRE_SRCDIR:?}/tests/tap.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
unset SENCORES LX_PLANNING DXP_LX_FRAC_AVAIL HBM_POOL_PLANNING

# config NAME FIELDS: writes a small configuration with these fields as well.
config() {
	cat >"$work/$1.json" <<-EOF
	{ $2, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2,
	  "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 512 }
	EOF
}

# STATUS TEXT ARGUMENT...: spyre estimate exits with STATUS and prints TEXT.
says() {
	want=$1 text=$2
	shift 2
	(cd "$work" && "$spyre" estimate "$@") >"$work/out" 2>&1
	got=$?
	good=1
	[ $got = "$want" ] && grep -qE -e "$text" "$work/out" && good=0
	echo "exit status $got" >>"$work/out"
	report $good "estimate $* says $text" "$work/out"
}

# holds NAME EXPRESSION MODEL ARGUMENT...: EXPRESSION is true of the JSON object, o, with the
# estimate of one card, e, and its parts by name, p.
holds() {
	name=$1 expression=$2
	shift 2
	(cd "$work" && "$spyre" estimate --json "$@") >"$work/json" 2>"$work/out" &&
		python3 - "$work/json" "$expression" >>"$work/out" 2>&1 <<-EOF
		import json, sys
		o = json.load(open(sys.argv[1]))
		e = o["estimates"][0]
		p = {part["name"]: part for part in e["parts"]}
		if not eval(sys.argv[2]):
		    sys.exit(f"{sys.argv[2]}: {o}")
		EOF
	report $? "$name" "$work/out"
}

config llama '"model_type": "llama"'
config window '"model_type": "mistral", "sliding_window": 64'
config gpt '"model_type": "gpt_oss", "head_dim": 64, "num_local_experts": 8, "num_experts_per_tok": 2,
	"sliding_window": 64, "layer_types": ["sliding_attention", "full_attention"]'
config granite '"model_type": "granitemoehybrid", "layer_types": ["mamba", "attention"],
	"num_local_experts": 8, "num_experts_per_tok": 2, "shared_intermediate_size": 128,
	"mamba_n_heads": 4, "mamba_d_head": 64, "mamba_d_state": 64, "tie_word_embeddings": true'
cat >"$work/nested.json" <<EOF
{ "model_type": "mistral3", "text_config": $(sed 's/"llama"/"ministral3"/' "$work/llama.json") }
EOF

says 0 '^total .* 100.0% ' llama.json
says 0 '^ +8  4 attention heads are not divisible by 8 cards' llama.json
says 0 '^ +2 .*%' llama.json --cards 2
says 0 '63 GB/s, 1500 cycles' llama.json --cards 2
says 0 'ministral3' nested.json
says 0 '^experts ' gpt.json
says 0 '^Mamba state ' granite.json
says 0 'stay in dl16' llama.json --format fp8

if command -v python3 >/dev/null; then
	# Products of one row of the layers, and the head.
	layer='2 * 128 * 128 + 2 * 128 * 64 + 3 * 128 * 256'
	holds "weights are those of the model" \
		"e['weight_bytes'] == 2 * (2 * 512 * 128 + 2 * ($layer) + 5 * 128)" llama.json
	holds "the cache has a key and a value for each token" \
		"e['cache_bytes'] == 2 * 2 * 2 * 64 * 100" llama.json --context 100
	holds "parts add up to the whole" \
		"all(sum(q[k] for q in f['parts']) == f[k] for f in o['estimates'] for k in
		 ('cycles', 'bytes_read', 'bytes_written')) and len(o['estimates']) == 3" \
		granite.json --cards 1,2,4
	holds "shares add up to one" "abs(sum(q['share'] for q in p.values()) - 1) < 1e-9" gpt.json
	"$spyre" build linear -i 1x128@fp16 -i 512x128@fp16:1,0 --json >"$work/head" 2>&1
	holds "a part costs what build --explain says of it" \
		"p['lm head']['cycles'] == json.load(open('$work/head'))['cycles']" llama.json
	sed 's/"num_hidden_layers": 2/"num_hidden_layers": 6/' "$work/llama.json" >"$work/deep.json"
	"$spyre" estimate --json "$work/deep.json" >"$work/deep" 2>&1
	holds "three times the layers take three times the cycles" \
		"all(3 * p[q['name']]['cycles'] == q['cycles'] for q in
		 json.load(open('$work/deep'))['estimates'][0]['parts']
		 if q['name'] in ('attention', 'MLP weights', 'qkv and o weights'))" llama.json
	holds "two cards read half of the MLP's weights each" \
		"p['MLP weights']['bytes_needed'] == 2 * 2 * 3 * 128 * 128" llama.json --cards 2
	holds "links cost time only between cards" \
		"[f['parts'][-1]['name'] == 'between cards' for f in o['estimates']] == [False, True]" llama.json --cards 1,2
	holds "a window bounds the keys" "e['cache_bytes'] == 2 * 2 * 2 * 64 * 64" window.json
	holds "one layer of two has a window" "e['cache_bytes'] == 2 * 2 * 128 * (64 + 300)" \
		gpt.json --context 300
	holds "a token reads the experts that it takes" \
		"p['experts']['bytes_needed'] == 2 * 2 * (128 * 8 + 2 * 3 * 128 * 256)" \
		granite.json
	holds "fp8 halves the weights of linear layers" \
		"p['MLP weights']['bytes_needed'] == 2 * 3 * 128 * 256" llama.json --format fp8
	holds "rows of a batch have caches of their own" \
		"e['cache_bytes'] == 3 * 2 * 2 * 2 * 64 * 100" llama.json --context 100 --batch 3
	holds "a size that is not possible has a reason" \
		"'not divisible by 8' in o['estimates'][3]['error']" llama.json
	# Published numbers of parameters, in billions.
	while read -r model billions; do
		holds "$model has $billions billion parameters" \
			"abs(e['weight_bytes'] / 2e9 / $billions - 1) < 0.02" "$model" --cards 1
	done <<-EOF
	gpt-oss-20b 20.9
	granite-4.0-h-small 32.2
	granite-4.0-h-tiny 6.94
	llama-3.1-8b 8.03
	ministral-3-14b 13.5
	ministral-8b 8.02
	mistral-small-24b 23.6
	qwen2.5-vl-7b 7.62
	EOF
fi

says 2 "4 attention heads are not divisible by 3 cards; choose another" llama.json --cards 1,3
says 2 "invalid value '9' for --cards" llama.json --cards 1,9
says 2 "invalid value '0' for --batch: expected a number from 1" llama.json --batch 0
says 2 "invalid value 'x' for --context" llama.json --context x
says 2 "invalid value 'int4' for --format: expected dl16 or fp8" llama.json --format int4
says 2 "unknown option '--card'|did you mean '--cards'" llama.json --crads 2
says 2 "did you mean 'llama-3.1-8b'" llama-3.1-8
says 2 "unknown model 'opt'; valid: gpt-oss-20b, .*or the path of a config.json" opt
says 2 "no model given"
says 2 "unexpected argument 'b'" llama.json b
says 2 "cannot read 'none.json': No such file" none.json
printf '{ "model_type": ' >"$work/broken.json"
says 2 "cannot read 'broken.json': .* at byte 16" broken.json
config type '"architectures": []'
says 2 'the field "model_type" is missing; pass' type.json
config opt '"model_type": "opt"'
says 2 'unknown architecture \(model_type\) "opt"; valid: llama, mistral, ' opt.json
sed '/hidden_size/s/"hidden_size": 128, //' "$work/llama.json" >"$work/hidden.json"
says 2 'hidden.json: the field "hidden_size" is missing' hidden.json
config size '"model_type": "llama", "head_dim": -1'
says 2 '"head_dim" is not a number from 1 to 1048576' size.json
config keys '"model_type": "llama", "head_dim": 33'
says 2 '4 heads of 33 columns cannot share 2 heads' keys.json
config layers '"model_type": "ministral", "layer_types": ["full_attention"]'
says 2 '"layer_types" has 1 entries, "num_hidden_layers" is 2' layers.json
config kind '"model_type": "ministral", "layer_types": ["full_attention", "chunked"]'
says 2 'unknown kind of layer "chunked"; valid: full_attention, ' kind.json
config none '"model_type": "ministral", "layer_types": ["full_attention", "sliding_attention"]'
says 2 'the field "sliding_window" is missing' none.json
config list '"model_type": "gpt_oss"'
says 2 'the field "layer_types" is missing' list.json
config taken '"model_type": "gpt_oss", "num_local_experts": 2, "num_experts_per_tok": 3,
	"layer_types": ["full_attention", "full_attention"]'
says 2 '"num_experts_per_tok" is 3, there are 2 experts' taken.json
says 2 'exceed the 128 GiB of a card; use more cards' llama-3.1-8b --batch 32 --context 32768 --cards 1
echo "1..$number"
