/* SPDX-License-Identifier: MIT */
/* Modelled cost of a step in which a language model decodes a token for each row of a batch. */
#ifndef SPYRE_TOOL_DECODE_H
#define SPYRE_TOOL_DECODE_H

#include "bundle.h"
#include "model.h"

/* The clock of the card, and the peak of its LPDDR5 in bytes per second (docs/timing.md). */
#define CLOCK_HZ 1.5e9
#define LPDDR5_PEAK 204.8e9
/*
 * Copies between cards: bytes per cycle of a PCIe Gen5 x16 link (63 GB/s), and cycles until
 * the first byte. The latter is an assumption: no public figure is known.
 */
#define LINK_BYTES 42
#define LINK_START 1500
/* Memory of a card. */
#define CARD_BYTES (128.0 * (1ull << 30))

enum part {
	PART_EMBEDDING,
	PART_NORMS,
	PART_PROJECTIONS,
	PART_ATTENTION,
	PART_MLP,
	PART_EXPERTS,
	PART_MAMBA_PROJECTIONS,
	PART_MAMBA,
	PART_HEAD,
	PART_LINKS,
	PART_COUNT
};

extern const char *const part_names[PART_COUNT];

struct decode_options {
	int64_t batch;
	/* Keys that each row attends to, the new one included. */
	int64_t context;
	/* Weights of linear layers in fp8. */
	bool fp8;
};

/* The cost of a step on each of @cards cards, and the sum over its parts. */
struct decode {
	int64_t cards;
	struct cost part[PART_COUNT];
	struct cost total;
};

/*
 * Plans the bundles of a step and adds up their cost. Returns 0, or -1 with @why, which
 * says what cannot be divided by the cards or planned.
 */
int decode_estimate(const struct model *model, const struct decode_options *options,
		    int64_t cards, struct decode *decode, struct text *why);

#endif /* SPYRE_TOOL_DECODE_H */
