// SPDX-License-Identifier: MIT
/* The bundles of a step of decoding, each at full size, and how often it is launched. */
#include <inttypes.h>
#include <string.h>

#include "decode_share.h"

/* A stick of fp16 for each of 32 cores. */
#define HEAD_COLUMNS (32 * SPYRE_STICK / 2)

const char *const part_names[PART_COUNT] = {
	[PART_EMBEDDING] = "embedding",
	[PART_NORMS] = "norms and sums",
	[PART_PROJECTIONS] = "qkv and o weights",
	[PART_ATTENTION] = "attention",
	[PART_MLP] = "MLP weights",
	[PART_EXPERTS] = "experts",
	[PART_MAMBA_PROJECTIONS] = "Mamba weights",
	[PART_MAMBA] = "Mamba state",
	[PART_HEAD] = "lm head",
	[PART_LINKS] = "between cards",
};

spyre_status share_finish(struct share *s, struct bundle *b, enum part part, int64_t launches)
{
	s->planned = part;
	return bundle_finish(b, launches, &s->decode->part[part]);
}

uint32_t share_linear(struct share *s, struct bundle *b, uint32_t x, int64_t rows,
		      int64_t columns, bool bias, bool fp8, uint32_t output)
{
	uint32_t in[5], count = 2;
	const char *op = "linear";

	in[0] = x;
	if (fp8) {
		/* scaled_mm takes the second operand as [rows, columns]. */
		op = "scaled_mm";
		x = bundle_op(b, "mul", INPUTS(x, bundle_tensor(b, 1, 1)));
		in[0] = bundle_op_with(b, "cast", INPUTS(x),
				       NUMBER("format", SPYRE_FORMAT_SEN143_FP8));
		in[1] = bundle_argument(b, SPYRE_FORMAT_SEN143_FP8, 2,
					SIZES(rows, columns));
		b->bytes.weights += (double)rows * columns;
		b->bytes.needed += (double)rows * columns;
		in[count++] = bundle_tensor(b, 1, 1);
		in[count++] = bundle_tensor(b, 1, 1);
	} else {
		in[1] = bundle_linear_weight(b, columns, rows);
	}
	if (bias)
		in[count++] = bundle_weight(b, columns);
	if (output == SPYRE_SDSC_NEW)
		return bundle_op(b, op, in, count);
	bundle_op_to(b, op, in, count, NO_ATTRIBUTE, output);
	return output;
}

spyre_status share_linear_alone(struct share *s, enum part part, int64_t rows, int64_t columns,
				bool bias, bool fp8, int64_t layers)
{
	struct bundle b;

	if (!layers || !columns)
		return SPYRE_SUCCESS;
	bundle_begin(&b);
	share_linear(s, &b, bundle_tensor(&b, s->batch, rows), rows, columns, bias, fp8,
		     bundle_tensor(&b, s->batch, columns));
	return share_finish(s, &b, part, layers);
}

/* The row of each token; a table lies on every card. */
static spyre_status embedding(struct share *s)
{
	const struct model *m = s->m;
	double row = 2.0 * m->hidden;
	uint32_t table, indices;
	struct bundle b;

	bundle_begin(&b);
	table = bundle_tensor(&b, m->vocabulary, m->hidden);
	indices = bundle_argument(&b, SPYRE_FORMAT_IEEE_INT32, 1, SIZES(s->batch));
	b.bytes.weights = m->vocabulary * row;
	b.bytes.needed = s->batch * row;
	bundle_op_to(&b, "embedding", INPUTS(table, indices), NO_ATTRIBUTE,
		     bundle_tensor(&b, s->batch, m->hidden));
	return share_finish(s, &b, PART_EMBEDDING, 1);
}

/* Each layer adds twice to the residual stream and normalises what the next product reads. */
static spyre_status norms(struct share *s)
{
	int64_t hidden = s->m->hidden;
	struct bundle b;
	uint32_t sum;

	bundle_begin(&b);
	sum = bundle_tensor(&b, s->batch, hidden);
	bundle_op_to(&b, "add", INPUTS(bundle_tensor(&b, s->batch, hidden),
				       bundle_tensor(&b, s->batch, hidden)), NO_ATTRIBUTE, sum);
	bundle_op_to(&b, "rms_norm", INPUTS(sum, bundle_weight(&b, hidden)), NO_ATTRIBUTE,
		     bundle_tensor(&b, s->batch, hidden));
	return share_finish(s, &b, PART_NORMS, 2 * s->m->layers + 1);
}

/*
 * Every card has some columns; the cards then gather the logits. A number of sticks that
 * cores cannot divide, such as twice a prime, is padded if the span of a core requires it.
 */
static spyre_status head(struct share *s)
{
	const struct model *m = s->m;
	int64_t columns = m->vocabulary / s->cards;
	spyre_status status;

	status = share_linear_alone(s, PART_HEAD, m->hidden, columns, false, false, 1);
	if (status == SPYRE_ERROR_SPAN_LIMIT) {
		columns = (columns + HEAD_COLUMNS - 1) / HEAD_COLUMNS * HEAD_COLUMNS;
		status = share_linear_alone(s, PART_HEAD, m->hidden, columns, false, false, 1);
	}
	/* A tied head is the embedding's table, which lies on every card. */
	if (!status && m->tied)
		s->decode->part[PART_HEAD].weights = 0;
	return status;
}

/*
 * The sum of the cards' vectors of @bytes: each reads all the others', or each adds up a
 * part and reads the other parts, as is faster. The additions are in fp32, in one launch.
 */
static spyre_status all_reduce(struct share *s, int64_t times)
{
	struct cost *links = &s->decode->part[PART_LINKS];
	uint64_t peers = s->cards - 1, bytes = 2 * s->batch * s->m->hidden;
	uint64_t whole = LINK_START + peers * bytes / LINK_BYTES;
	uint64_t parts = 2 * (LINK_START + peers * bytes / s->cards / LINK_BYTES);
	uint32_t sum = 0, x;
	struct bundle b;

	links->cycles += times * (whole < parts ? whole : parts);
	bundle_begin(&b);
	for (int64_t i = 0; i < s->cards; i++) {
		x = bundle_tensor(&b, s->batch, s->m->hidden);
		x = bundle_op(&b, "dl16tofp32", INPUTS(x));
		sum = i ? bundle_op(&b, "add", INPUTS(sum, x)) : x;
	}
	bundle_op_to(&b, "fp32todl16", INPUTS(sum), NO_ATTRIBUTE,
		     bundle_tensor(&b, s->batch, s->m->hidden));
	return share_finish(s, &b, PART_LINKS, times);
}

/* A layer has two sums, behind the o weights and behind the MLP and the experts. */
static spyre_status links(struct share *s)
{
	uint64_t peers = s->cards - 1, logits = 2 * s->batch * s->m->vocabulary / s->cards;

	if (s->cards == 1)
		return SPYRE_SUCCESS;
	s->decode->part[PART_LINKS].cycles += LINK_START + peers * logits / LINK_BYTES;
	return all_reduce(s, 2 * s->m->layers);
}

static void add_up(struct decode *d)
{
	for (int i = 0; i < PART_COUNT; i++) {
		const struct cost *c = &d->part[i];

		d->total.cycles += c->cycles;
		d->total.bytes_read += c->bytes_read;
		d->total.bytes_written += c->bytes_written;
		d->total.needed += c->needed;
		d->total.weights += c->weights;
		d->total.cache += c->cache;
	}
}

static int complain_memory(const struct decode *d, struct text *why)
{
	return explain(why, "weights of %.1f GiB and caches of %.1f GiB exceed the %.0f GiB of a card; "
		       "use more cards, or a smaller --batch or --context",
		       d->total.weights / (1 << 30), d->total.cache / (1 << 30),
		       CARD_BYTES / (1 << 30));
}

int decode_estimate(const struct model *model, const struct decode_options *options, int64_t cards,
		    struct decode *decode, struct text *why)
{
	spyre_status (*const parts[])(struct share *) = {
		embedding, norms, decode_attention, decode_mlp, decode_experts, decode_mamba, head,
		links,
	};
	struct share share = { .m = model, .o = options, .cards = cards, .decode = decode };

	memset(decode, 0, sizeof(*decode));
	decode->cards = cards;
	if (model_divisible(model, cards, why))
		return -1;
	share.batch = options->batch;
	share.heads = model->heads / cards;
	share.kv_heads = model->kv_heads > cards ? model->kv_heads / cards : 1;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		spyre_status status = parts[i](&share);

		if (status)
			return explain(why, "cannot plan %s for %" PRId64 " card%s: %s: %s",
				       part_names[share.planned], cards, cards == 1 ? "" : "s",
				       spyre_status_name(status), spyre_last_error());
	}
	add_up(decode);
	if (decode->total.weights + decode->total.cache > CARD_BYTES)
		return complain_memory(decode, why);
	return 0;
}
