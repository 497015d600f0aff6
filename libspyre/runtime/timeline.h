/* SPDX-License-Identifier: MIT */
/* Where the modelled cycles of a program go, by phase, core and engine. Internal. */
#ifndef SPYRE_RUNTIME_TIMELINE_H
#define SPYRE_RUNTIME_TIMELINE_H

#include <sys/queue.h>

#include "libspyre/sdsc/ir/bundle.h"
#include "model/cost.h"

struct timeline_phase {
	struct spyre_cost_phase cost;
	uint32_t first_core;		/* of its cores in the timeline's array */
	char label[BUNDLE_LABEL_BYTES];	/* name of the SDSC, "" if it is not known */
};

struct timeline {
	SLIST_ENTRY(timeline) link;
	uint32_t num_phases, num_cores;
	uint32_t card_cores;
	uint32_t lx_bytes;		/* of each core */
	struct timeline_phase *phases;
	struct spyre_cost_core *cores;
};

/*
 * Returns the timeline of a bundle's program for a card of @cores, from the model's own
 * computation of its cost. It lives as long as the process, since results of launches are read
 * after their programs are gone. NULL if the program does not verify or memory is short.
 */
const struct timeline *spyre_timeline_make(const struct spyre_bundle *bundle, uint32_t cores);

/* Cycles of all iterations of a phase. */
static inline uint64_t timeline_phase_cycles(const struct spyre_cost_phase *phase)
{
	const uint64_t longest = phase->core_cycles > phase->lpddr_cycles ?
				 phase->core_cycles : phase->lpddr_cycles;

	return (longest + phase->barrier_cycles) * phase->trips;
}

#endif /* SPYRE_RUNTIME_TIMELINE_H */
