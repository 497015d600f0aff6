/* SPDX-License-Identifier: MIT */
/*
 * A card without real work and with a simulated clock: contexts and queues that
 * request time slices from the driver's arbiter, and an oracle that checks its
 * guarantees. The oracle keeps its own accounts and does not know how the arbiter
 * decides.
 */
#ifndef TESTS_UNIT_ARBITER_SIM_H
#define TESTS_UNIT_ARBITER_SIM_H

#include "kernel/shim.h"

#include <drm/spyre_accel.h>

#include "kernel/spyre_arbiter.h"

#define SIM_CORES 32u
#define SIM_CONTEXTS 160
#define SIM_QUEUES 2048
#define SIM_PLACES 8
#define SIM_QUEUES_PER_CONTEXT 256
#define SIM_LOW DRM_SPYRE_PRIORITY_LOW
#define SIM_HIGH DRM_SPYRE_PRIORITY_HIGH

/* The properties of a world, drawn for each one. */
struct sim_flavor {
	u32 places;
	/* Time between two checks of a job for the end of its time slice. */
	u64 step;
	/* No job needs more cores than one place has. */
	bool narrow;
	/* Contexts of both classes; jobs on parts of the card; jobs without cores. */
	bool both_classes, partitions, no_cores;
};

struct sim_queue {
	struct spyre_claim claim;
	u32 context;
	u32 cores;
	bool own_only;
	/* Longest job, and longest pause between two. */
	u64 length, pause;
	u64 left, idle_until;
	/* The runner of its job in the last time slice. */
	u32 runner;
	/* Positions in the world's lists of idle and active queues. */
	u32 idle_index, active_index;
};

struct sim_context {
	struct spyre_arb_context base;
	u32 first_queue, num_queues;
	/* This many of its queues get work; the others only finish theirs. */
	u32 enabled;
	/* Its jobs need no cores. */
	bool no_cores;
	u64 change_at;
};

/* The oracle's view of a context. */
struct sim_account {
	/* Cost so far, in ns of a card with 32 * places parts. */
	u64 cost;
	/* Waiting claims: begun, for any runner, for the context's own. */
	u32 waiting[3];
	u32 active;
	/* Its runners with a job. */
	u32 own, pool;
	/* A claim with a runner has been waiting continuously since then. */
	bool hungry;
	u64 hungry_since, served;
	/* The cost of all contexts then. */
	u64 base[SIM_CONTEXTS];
};

struct sim_class_account {
	u64 cost;
	bool hungry;
	/* The cost of both classes when it became hungry. */
	u64 base[2];
};

struct sim {
	struct spyre_arbiter arb;
	struct sim_flavor flavor;
	u64 now;
	u64 random;
	u64 slices;
	u64 steps;
	struct sim_context context[SIM_CONTEXTS];
	struct sim_queue queue[SIM_QUEUES];
	u32 num_contexts, num_queues;
	u32 idle[SIM_QUEUES], num_idle;
	u32 active[SIM_PLACES], num_active;

	/* Owned by the oracle. */
	struct sim_account account[SIM_CONTEXTS];
	struct sim_class_account class[2];
	u32 held, pool;
	u64 failed;
	/* Largest fractions of the bounds that were reached, in per mille. */
	u32 worst_pair, worst_share, worst_low, worst_high, worst_wait;
};

u32 sim_draw(struct sim *sim, u32 below);

/* The oracle is notified of each change, and checks the whole state after each step. */
void oracle_init(struct sim *sim);
void oracle_waits(struct sim *sim, const struct sim_queue *queue);
/* A waiting claim starts a time slice or is withdrawn. */
void oracle_starts(struct sim *sim, const struct sim_queue *queue);
void oracle_withdrawn(struct sim *sim, const struct sim_queue *queue);
/* A time slice with the cores @held ends. */
void oracle_stops(struct sim *sim, const struct sim_queue *queue, u32 held);
/* Its job, which was on @runner, has ended. */
void oracle_ends(struct sim *sim, const struct sim_queue *queue, u32 runner);
void oracle_spends(struct sim *sim, const struct sim_queue *queue, u32 cores, u64 ns);
/* All available time slices have been started. */
void oracle_settled(struct sim *sim);
void oracle_step(struct sim *sim);

#endif
