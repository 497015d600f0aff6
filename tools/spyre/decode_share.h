/* SPDX-License-Identifier: MIT */
/* One card's share of a step of decoding, for the files that plan its parts. */
#ifndef SPYRE_TOOL_DECODE_SHARE_H
#define SPYRE_TOOL_DECODE_SHARE_H

#include "decode.h"

#define NO_ATTRIBUTE NUMBER(NULL, 0)

struct share {
	const struct model *m;
	const struct decode_options *o;
	int64_t cards, batch;
	/* Of this card. Heads of keys are at least one, so cards may have the same. */
	int64_t heads, kv_heads;
	struct decode *decode;
	/* The part that a message about a failed plan names. */
	enum part planned;
};

/* Adds @launches of the bundle to @part, all of which have their own weights and caches. */
spyre_status share_finish(struct share *s, struct bundle *b, enum part part, int64_t launches);

/*
 * Adds a linear layer. In fp8 the rows are scaled and rounded to fp8 first, and the
 * product has a scale for the rows and one for the columns. @output is an argument, or
 * SPYRE_SDSC_NEW.
 */
uint32_t share_linear(struct share *s, struct bundle *b, uint32_t x, int64_t rows,
		      int64_t columns, bool bias, bool fp8, uint32_t output);
/* A linear layer in a bundle of its own; none if it has no columns. */
spyre_status share_linear_alone(struct share *s, enum part part, int64_t rows, int64_t columns,
				bool bias, bool fp8, int64_t layers);

/* The parts of a layer; each is nothing for a model that has none. */
spyre_status decode_attention(struct share *s);
spyre_status decode_mlp(struct share *s);
spyre_status decode_experts(struct share *s);
spyre_status decode_mamba(struct share *s);

#endif /* SPYRE_TOOL_DECODE_SHARE_H */
