/* SPDX-License-Identifier: MIT */
/* The card model on one thread, for fuzzers. */
#ifndef SPYRE_FUZZ_CARD_H
#define SPYRE_FUZZ_CARD_H

#include "model/card.h"

struct fuzz_card {
	struct spyre_host host;
	struct spyre_worker worker;
	/* The units that this machine can run. */
	const struct spyre_unit *unit[3];
	unsigned int num_units;
	/* Polls left before the work is told to stop. */
	unsigned int patience;
};

/* The one card; its patience is full again. */
struct fuzz_card *fuzz_card(void);

/* @bytes of card memory, not one more; free() it. */
uint8_t *fuzz_card_memory(uint64_t bytes);

#endif /* SPYRE_FUZZ_CARD_H */
