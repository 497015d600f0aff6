/* SPDX-License-Identifier: MIT */
/* The card model on one thread, for fuzzers. */
#ifndef SPYRE_FUZZ_CARD_H
#define SPYRE_FUZZ_CARD_H

#include "model/card.h"

#define FUZZ_MAX_UNITS 4

struct fuzz_card {
	struct spyre_host host;
	struct spyre_worker worker;
	/* The units that this machine can run. */
	const struct spyre_unit *unit[FUZZ_MAX_UNITS];
	unsigned int num_units;
	/* Polls left before should_stop() returns true. */
	unsigned int patience;
};

/* Returns the only card with its patience restored. */
struct fuzz_card *fuzz_card(void);

/* Allocates exactly @bytes of card memory; the caller frees it. */
uint8_t *fuzz_card_memory(uint64_t bytes);

#endif /* SPYRE_FUZZ_CARD_H */
