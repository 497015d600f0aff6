// SPDX-License-Identifier: MIT
#include "libspyre/backend/cpu.h"
#include "tests/fuzz/card.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE 256u	/* polls, after some 20 us each */

static void parallel(struct spyre_host *host, struct spyre_worker *self, u32 n, spyre_work_fn fn,
		     void *arg)
{
	for (u32 i = 0; i < n; i++)
		fn(arg, i, self);
}

static bool should_stop(struct spyre_host *host, void *job)
{
	struct fuzz_card *card = job;

	if (!card->patience)
		return true;
	card->patience--;
	return false;
}

static void make_card(struct fuzz_card *card)
{
	const struct spyre_unit *unit;
	u32 at = 0;

	card->host.parallel = parallel;
	card->host.should_stop = should_stop;
	card->host.tables = calloc(1, SPYRE_TABLES_BYTES);
	card->worker.scratch = aligned_alloc(64, SPYRE_SCRATCH_BYTES);
	while (card->num_units < FUZZ_MAX_UNITS && (unit = cpu_next_unit(&at)))
		card->unit[card->num_units++] = unit;
	if (!card->host.tables || !card->worker.scratch || !card->num_units)
		fuzz_fail("no memory, or no arithmetic unit");
}

struct fuzz_card *fuzz_card(void)
{
	static struct fuzz_card card;

	if (!card.num_units)
		make_card(&card);
	card.patience = PATIENCE;
	return &card;
}

uint8_t *fuzz_card_memory(uint64_t bytes)
{
	void *memory = NULL;

	if (posix_memalign(&memory, 128, bytes ? bytes : 1))
		fuzz_fail("no memory for %llu bytes", (unsigned long long)bytes);
	memset(memory, 0x3c, bytes);
	return memory;
}
