// SPDX-License-Identifier: MIT
/*
 * Keeps a helper off the processor of the worker that it helps. Schedulers that pack
 * waking threads, to let other processors sleep, put both on one processor for some
 * milliseconds, which is longer than most sections last. The helper then excludes that
 * processor from its own mask, once, and every later wake finds it elsewhere.
 *
 * Only one processor is excluded, the mask never grows beyond the one that the thread
 * began with, and a mask that was set from outside, as by taskset, is left alone.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>

#include "libspyre/backend/embedded.h"

int embedded_processor(void)
{
	return sched_getcpu();
}

static bool read_mask(cpu_set_t *mask)
{
	return !pthread_getaffinity_np(pthread_self(), sizeof(*mask), mask);
}

/* Machines with more processors than a cpu_set_t holds are left to their scheduler. */
void embedded_placement_init(struct embedded_placement *placement)
{
	placement->free = read_mask(&placement->allowed) && CPU_COUNT(&placement->allowed) > 1;
	placement->mask = placement->allowed;
}

void embedded_keep_off(struct embedded_placement *placement, int processor)
{
	cpu_set_t now, mask = placement->allowed;

	if (!placement->free || processor < 0 || processor != sched_getcpu())
		return;
	placement->free = read_mask(&now) && CPU_EQUAL(&now, &placement->mask);
	if (!placement->free)
		return;
	CPU_CLR(processor, &mask);
	placement->free = !pthread_setaffinity_np(pthread_self(), sizeof(mask), &mask);
	placement->mask = mask;
}
