/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arbiter of a card: which of the jobs that could run do run.
 *
 * Pure policy: no threads, no locks, no clock.  The engine calls it under its
 * own lock, tells it the time and does what it says; so does its KUnit suite.
 */
#ifndef SPYRE_ARBITER_H
#define SPYRE_ARBITER_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>

/* A turn: a job that others wait for goes on for at least this long. */
#define SPYRE_ARB_SLICE_NS 1000000ull
#define SPYRE_ARB_CLASSES 2
/* What the high class leaves to a low class that waits: one part in so many. */
#define SPYRE_ARB_LOW_PART 16

/**
 * enum spyre_claim_state - what a claim is up to
 */
enum spyre_claim_state {
	/** @SPYRE_CLAIM_IDLE: has no job. */
	SPYRE_CLAIM_IDLE,
	/** @SPYRE_CLAIM_WAITING: for its turn, its first or a further one. */
	SPYRE_CLAIM_WAITING,
	/** @SPYRE_CLAIM_ACTIVE: has cores and one of the card's places. */
	SPYRE_CLAIM_ACTIVE,
	/** @SPYRE_CLAIM_LIGHT: runs beside the places, for microseconds. */
	SPYRE_CLAIM_LIGHT,
	/** @SPYRE_CLAIM_ENDING: withdrawn; has nothing but the thread it ends on. */
	SPYRE_CLAIM_ENDING,
};

/**
 * enum spyre_claim_runner - whose thread a job that has begun is on
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
 * enum spyre_arb_level - which claims a context has runners for
 *
 * Each level includes those before it.
 */
enum spyre_arb_level {
	/** @SPYRE_LEVEL_BEGUN: those that have begun and are on theirs. */
	SPYRE_LEVEL_BEGUN,
	/** @SPYRE_LEVEL_POOL: those for which any runner will do. */
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
	/** @vtime: what it has had, in ns of a whole card. */
	u64 vtime;
	/** @ahead: what its running claims' turns have yet to cost. */
	u64 ahead;
	/** @waiting: claims that wait, in the order of their turns. */
	struct rb_root_cached waiting;
	/** @offers: what they need, those that have a runner. */
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
	/** @context: whose share it uses. */
	struct spyre_arb_context *context;
	/** @node: in the arbiter's active claims. */
	struct list_head node;
	/** @wait: in the context's waiting claims. */
	struct rb_node wait;
	/** @below: what the claims below and at @wait need. */
	struct spyre_arb_needs below;
	/** @turn: number of its wait: the least is next. */
	u64 turn;
	/** @state: enum spyre_claim_state; threads that wait look at it without the lock. */
	u32 state;
	/** @runner: enum spyre_claim_runner. */
	u32 runner;
	/** @own_only: only its context's own runner will do. */
	bool own_only;
	/** @partition: cores that it may use. */
	u32 partition;
	/** @cores: how many of them its job needs. */
	u32 cores;
	/** @held: those that it has. */
	u32 held;
	/** @since: start of its turn. */
	u64 since;
	/** @paid: what of this turn is in the context's vtime. */
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
	/** @front: the greatest vtime at which a turn has begun: how far the class has come. */
	u64 front;
	/** @waiting: claims that wait. */
	u32 waiting;
	/** @claims: claims that wait or run. */
	u32 claims;
};

/**
 * struct spyre_arbiter - who has a card's cores and places
 */
struct spyre_arbiter {
	/** @num_cores: cores of the card. */
	u32 num_cores;
	/** @free: those that nobody has. */
	u32 free;
	/** @max_active: jobs that run beside each other: the card's share of the host. */
	u32 max_active;
	/** @num_active: jobs that do. */
	u32 num_active;
	/** @pool: runners for any context. */
	u32 pool;
	/** @pool_taken: how many of them have a job. */
	u32 pool_taken;
	/** @waiting: claims that wait; read without the lock. */
	u32 waiting;
	/** @turns: waits so far. */
	u64 turns;
	/** @active: claims with a place. */
	struct list_head active;
	/** @class: by DRM_SPYRE_PRIORITY_*. */
	struct spyre_arb_class class[SPYRE_ARB_CLASSES];
	/** @owed: what the low class has yet to get, in ns of a whole card. */
	s64 owed;
	/** @low_turn: it is getting it. */
	bool low_turn;
};

void spyre_arbiter_init(struct spyre_arbiter *arb, u32 num_cores, u32 max_active, u32 pool);
void spyre_arb_context_init(struct spyre_arb_context *context, u32 class);
/* @count 0: the whole card. */
void spyre_claim_init(struct spyre_arbiter *arb, struct spyre_claim *claim,
		      struct spyre_arb_context *context, u32 first, u32 count);

/* An idle claim has a job that needs so many cores. */
void spyre_arbiter_request(struct spyre_arbiter *arb, struct spyre_claim *claim, u32 cores,
			   bool own_only, u64 now);
/* The next waiting claim whose turn it is, now active; NULL if there is none. */
struct spyre_claim *spyre_arbiter_pick(struct spyre_arbiter *arb, u64 now);
/* An idle claim with a light job: whether it may run at once, beside the places. */
bool spyre_arbiter_pick_light(struct spyre_arbiter *arb, struct spyre_claim *claim, u32 cores,
			      u64 now);
/* At the end of a turn: whether others come first, who now have what @claim had. */
bool spyre_arbiter_yields(struct spyre_arbiter *arb, struct spyre_claim *claim, u64 now);
/* The job of a claim has ended: it is idle. */
void spyre_arbiter_release(struct spyre_arbiter *arb, struct spyre_claim *claim, u64 now);
/* The job of a waiting claim is to stop and needs no turn for that. */
void spyre_arbiter_withdraw(struct spyre_arbiter *arb, struct spyre_claim *claim);
/* Any waiting claim, or NULL. */
struct spyre_claim *spyre_arbiter_any_waiting(struct spyre_arbiter *arb);

#endif
