/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arbiter of a card: decides which of the jobs that are ready run.
 *
 * Pure policy: no threads, no locks, no clock.  The engine calls it under its
 * own lock, passes the time and carries out its decisions; so does its KUnit
 * suite.
 */
#ifndef SPYRE_ARBITER_H
#define SPYRE_ARBITER_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>

/* Time slice: a job that others wait for runs for at least this long. */
#define SPYRE_ARB_SLICE_NS 1000000ull
#define SPYRE_ARB_CLASSES 2
/* While the low class waits, it gets one in this many parts of the card. */
#define SPYRE_ARB_LOW_PART 16

/**
 * enum spyre_claim_state - state of a claim
 */
enum spyre_claim_state {
	/** @SPYRE_CLAIM_IDLE: has no job. */
	SPYRE_CLAIM_IDLE,
	/** @SPYRE_CLAIM_WAITING: for a time slice, its first or a further one. */
	SPYRE_CLAIM_WAITING,
	/** @SPYRE_CLAIM_ACTIVE: has cores and one of the card's places. */
	SPYRE_CLAIM_ACTIVE,
	/** @SPYRE_CLAIM_LIGHT: runs without a place, for microseconds. */
	SPYRE_CLAIM_LIGHT,
	/** @SPYRE_CLAIM_ENDING: withdrawn; holds only the thread on which it ends. */
	SPYRE_CLAIM_ENDING,
};

/**
 * enum spyre_claim_runner - kind of thread that a job which has begun is on
 */
enum spyre_claim_runner {
	/** @SPYRE_RUNNER_NONE: has not begun. */
	SPYRE_RUNNER_NONE,
	/** @SPYRE_RUNNER_OWN: its context's own. */
	SPYRE_RUNNER_OWN,
	/** @SPYRE_RUNNER_POOL: one of those for all contexts. */
	SPYRE_RUNNER_POOL,
};

/**
 * enum spyre_arb_level - the claims that a context has runners for
 *
 * Each level includes those before it.
 */
enum spyre_arb_level {
	/** @SPYRE_LEVEL_BEGUN: those that have begun and are on theirs. */
	SPYRE_LEVEL_BEGUN,
	/** @SPYRE_LEVEL_POOL: those that can use any runner. */
	SPYRE_LEVEL_POOL,
	/** @SPYRE_LEVEL_OWN: all. */
	SPYRE_LEVEL_OWN,
	/** @SPYRE_ARB_LEVELS: number of levels. */
	SPYRE_ARB_LEVELS,
};

/**
 * struct spyre_arb_needs - cores that some claims need, by level
 */
struct spyre_arb_needs {
	/** @of: by enum spyre_arb_level; cores as bits, one more bit for none. */
	u64 of[SPYRE_ARB_LEVELS];
};

/**
 * struct spyre_arb_offers - cores that claims of contexts need which have a runner
 */
struct spyre_arb_offers {
	/** @of: [1] while the pool has a runner left, [0] while it has none. */
	u64 of[2];
};

/**
 * struct spyre_arb_context - a context's share in one class
 */
struct spyre_arb_context {
	/** @node: in its class while it has claims that wait or run. */
	struct rb_node node;
	/** @class: DRM_SPYRE_PRIORITY_*. */
	u32 class;
	/** @claims: that wait or run. */
	u32 claims;
	/** @vtime: time that it has used, in ns of a whole card. */
	u64 vtime;
	/** @ahead: cost of its running claims' slices that is not in @vtime yet. */
	u64 ahead;
	/** @waiting: claims that wait, the first to be served first. */
	struct rb_root_cached waiting;
	/** @offers: cores needed by those of them that have a runner. */
	struct spyre_arb_offers offers;
	/** @below: the same of all contexts below and at @node. */
	struct spyre_arb_offers below;
	/** @own_taken: its own runner has a job. */
	bool own_taken;
	/** @pool_taken: runners of the pool that its jobs are on. */
	u32 pool_taken;
};

/**
 * struct spyre_claim - a queue, as the arbiter sees it: one job at a time
 */
struct spyre_claim {
	/** @context: the context that is charged. */
	struct spyre_arb_context *context;
	/** @node: in the arbiter's active claims. */
	struct list_head node;
	/** @wait: in the context's waiting claims. */
	struct rb_node wait;
	/** @below: cores needed by the claims below and at @wait. */
	struct spyre_arb_needs below;
	/** @order: number of its wait; the least is served first. */
	u64 order;
	/** @state: enum spyre_claim_state; threads that wait look at it without the lock. */
	u32 state;
	/** @runner: enum spyre_claim_runner. */
	u32 runner;
	/** @own_only: it can use its context's own runner only. */
	bool own_only;
	/** @partition: cores that it may use. */
	u32 partition;
	/** @cores: number of these that its job needs. */
	u32 cores;
	/** @held: those that it has. */
	u32 held;
	/** @since: start of its time slice. */
	u64 since;
	/** @paid: part of this slice that is in the context's vtime. */
	u64 paid;
	/** @ahead: its part of the context's. */
	u64 ahead;
	/** @slice_end: when to ask spyre_arbiter_yields(); read without the lock. */
	u64 slice_end;
};

/**
 * struct spyre_arb_class - the contexts of one class that have something to do
 */
struct spyre_arb_class {
	/** @contexts: by vtime + ahead, the least first. */
	struct rb_root_cached contexts;
	/** @front: progress of the class: the greatest vtime at which a slice has begun. */
	u64 front;
	/** @waiting: claims that wait. */
	u32 waiting;
	/** @claims: claims that wait or run. */
	u32 claims;
};

/**
 * struct spyre_arbiter - owners of a card's cores and places
 */
struct spyre_arbiter {
	/** @num_cores: cores of the card. */
	u32 num_cores;
	/** @free: cores without an owner. */
	u32 free;
	/** @max_active: number of places: the card's share of the host's processors. */
	u32 max_active;
	/** @num_active: number of places in use. */
	u32 num_active;
	/** @pool: runners for any context. */
	u32 pool;
	/** @pool_taken: number of them that have a job. */
	u32 pool_taken;
	/** @waiting: claims that wait; read without the lock. */
	u32 waiting;
	/** @waits: number of waits so far. */
	u64 waits;
	/** @active: claims with a place. */
	struct list_head active;
	/** @class: by DRM_SPYRE_PRIORITY_*. */
	struct spyre_arb_class class[SPYRE_ARB_CLASSES];
	/** @owed: time that the low class is owed, in ns of a whole card. */
	s64 owed;
	/** @low_first: the low class takes precedence, until it has been served. */
	bool low_first;
};

void spyre_arbiter_init(struct spyre_arbiter *arb, u32 num_cores, u32 max_active, u32 pool);
void spyre_arb_context_init(struct spyre_arb_context *context, u32 class);
/* Initialises a claim whose partition is @count cores from @first on; 0 is the whole card. */
void spyre_claim_init(struct spyre_arbiter *arb, struct spyre_claim *claim,
		      struct spyre_arb_context *context, u32 first, u32 count);

/* Makes an idle claim wait for a time slice of a job that needs @cores. */
void spyre_arbiter_request(struct spyre_arbiter *arb, struct spyre_claim *claim, u32 cores,
			   bool own_only, u64 now);
/* Activates and returns the first waiting claim that can run; NULL if there is none. */
struct spyre_claim *spyre_arbiter_pick(struct spyre_arbiter *arb, u64 now);
/* Returns true if the light job of an idle claim may run at once, without a place. */
bool spyre_arbiter_pick_light(struct spyre_arbiter *arb, struct spyre_claim *claim, u32 cores,
			      u64 now);
/* Called at the end of a slice.  Returns true if others precede @claim, which then waits. */
bool spyre_arbiter_yields(struct spyre_arbiter *arb, struct spyre_claim *claim, u64 now);
/* Makes a claim idle whose job has ended. */
void spyre_arbiter_release(struct spyre_arbiter *arb, struct spyre_claim *claim, u64 now);
/* Withdraws a waiting claim whose job has to stop, which needs no time slice. */
void spyre_arbiter_withdraw(struct spyre_arbiter *arb, struct spyre_claim *claim);
/* Returns any waiting claim, or NULL. */
struct spyre_claim *spyre_arbiter_any_waiting(struct spyre_arbiter *arb);

#endif
