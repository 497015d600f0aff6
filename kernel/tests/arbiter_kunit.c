// SPDX-License-Identifier: GPL-2.0-only
/*
 * The arbiter with a simulated clock: shares, classes, partitions, and a random
 * load with a check of the accounts after every step.
 */
#include <kunit/test.h>
#include <linux/bitops.h>
#include <linux/prandom.h>

#include <drm/spyre_accel.h>

#include "../spyre_arbiter.h"

#define LOW DRM_SPYRE_PRIORITY_LOW
#define HIGH DRM_SPYRE_PRIORITY_HIGH
#define CORES 32u
#define MAX_CONTEXTS 24
#define MAX_QUEUES 272
#define US 1000ull
#define MS 1000000ull
/* Time between two tiles, after which a job checks for the end of its slice. */
#define TILE (100 * US)

/* A queue with jobs of one kind. */
struct sim_queue {
	struct spyre_claim claim;
	struct sim_context *context;
	/* of each job */
	u64 length;
	u32 cores;
	bool own_only;
	/* jobs to come; ~0: without end */
	u32 jobs;
	/* of the job that runs */
	u64 left;
	u64 requested;
	u32 done;
};

struct sim_context {
	struct spyre_arb_context base;
	/* core time and sum of time slices */
	u64 core_ns;
	u64 active_ns;
	u64 longest_wait;
};

struct sim {
	struct kunit *test;
	struct spyre_arbiter arb;
	struct sim_context context[MAX_CONTEXTS];
	struct sim_queue queue[MAX_QUEUES];
	u32 num_contexts;
	u32 num_queues;
	/* time that places stood free, summed over all of them */
	u64 idle_ns;
	u64 now;
};

static struct sim *sim_init(struct kunit *test, u32 max_active)
{
	struct sim *sim = kunit_kzalloc(test, sizeof(*sim), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sim);
	sim->test = test;
	sim->now = 1000 * MS;
	spyre_arbiter_init(&sim->arb, CORES, max_active, 2 * max_active);
	return sim;
}

static struct sim_context *sim_context(struct sim *sim, u32 class)
{
	struct sim_context *context = &sim->context[sim->num_contexts++];

	spyre_arb_context_init(&context->base, class);
	return context;
}

static void sim_ask(struct sim *sim, struct sim_queue *queue)
{
	if (queue->claim.state != SPYRE_CLAIM_IDLE || !queue->jobs)
		return;
	if (queue->jobs != U32_MAX)
		queue->jobs--;
	queue->left = queue->length;
	queue->requested = sim->now;
	spyre_arbiter_request(&sim->arb, &queue->claim, queue->cores, queue->own_only, sim->now);
}

static struct sim_queue *sim_queue(struct sim *sim, struct sim_context *context, u32 cores,
				   u64 length, u32 jobs)
{
	struct sim_queue *queue = &sim->queue[sim->num_queues++];

	queue->context = context;
	queue->cores = cores;
	queue->length = length;
	queue->jobs = jobs;
	spyre_claim_init(&sim->arb, &queue->claim, &context->base, 0, 0);
	return queue;
}

static bool sim_claim_is_right(const struct sim_queue *queue, u32 held)
{
	const struct spyre_claim *claim = &queue->claim;

	if (claim->state != SPYRE_CLAIM_ACTIVE)
		return !claim->held;
	return !(claim->held & held) && !(claim->held & ~claim->partition) &&
	       hweight32(claim->held) == queue->cores && claim->runner != SPYRE_RUNNER_NONE &&
	       (!queue->own_only || claim->runner == SPYRE_RUNNER_OWN);
}

/* Checks that claims hold disjoint cores, no more than requested, of their partition only. */
static void sim_check(struct sim *sim)
{
	struct kunit *test = sim->test;
	u32 held = 0, active = 0, waiting = 0, pool = 0, wrong = 0, i;

	for (i = 0; i < sim->num_queues; i++) {
		struct spyre_claim *claim = &sim->queue[i].claim;

		wrong += !sim_claim_is_right(&sim->queue[i], held);
		waiting += claim->state == SPYRE_CLAIM_WAITING;
		active += claim->state == SPYRE_CLAIM_ACTIVE;
		pool += claim->runner == SPYRE_RUNNER_POOL;
		held |= claim->held;
	}
	KUNIT_ASSERT_EQ(test, wrong, 0);
	KUNIT_ASSERT_EQ(test, sim->arb.free, ~held);
	KUNIT_ASSERT_EQ(test, sim->arb.num_active, active);
	KUNIT_ASSERT_LE(test, active, sim->arb.max_active);
	KUNIT_ASSERT_EQ(test, sim->arb.waiting, waiting);
	KUNIT_ASSERT_EQ(test, sim->arb.pool_taken, pool);
	KUNIT_ASSERT_LE(test, pool, sim->arb.pool);
}

static void sim_slices(struct sim *sim)
{
	struct spyre_claim *claim;

	while ((claim = spyre_arbiter_pick(&sim->arb, sim->now))) {
		struct sim_queue *queue = container_of(claim, struct sim_queue, claim);

		if (queue->left == queue->length)
			queue->context->longest_wait = max(queue->context->longest_wait,
							   sim->now - queue->requested);
	}
}

/* Lets one active job run for @ns. */
static void sim_work(struct sim *sim, struct sim_queue *queue, u64 ns)
{
	ns = min(ns, queue->left);
	queue->left -= ns;
	queue->context->active_ns += ns;
	queue->context->core_ns += ns * queue->cores;
	if (queue->left)
		return;
	queue->done++;
	spyre_arbiter_release(&sim->arb, &queue->claim, sim->now);
	sim_ask(sim, queue);
}

static void sim_run(struct sim *sim, u64 ns)
{
	const u64 end = sim->now + ns;
	u32 i;

	while (sim->now < end) {
		for (i = 0; i < sim->num_queues; i++)
			sim_ask(sim, &sim->queue[i]);
		sim_slices(sim);
		sim_check(sim);
		sim->idle_ns += (u64)(sim->arb.max_active - sim->arb.num_active) * TILE;
		sim->now += TILE;
		for (i = 0; i < sim->num_queues; i++)
			if (sim->queue[i].claim.state == SPYRE_CLAIM_ACTIVE)
				sim_work(sim, &sim->queue[i], TILE);
		/* A job that gets a slice here begins to work with the next tile. */
		for (i = 0; i < sim->num_queues; i++)
			if (spyre_arbiter_yields(&sim->arb, &sim->queue[i].claim, sim->now))
				sim_slices(sim);
	}
}

static u64 percent(u64 part, u64 other)
{
	return part + other ? part * 100 / (part + other) : 0;
}

static void expect_between(struct kunit *test, u64 value, u64 low, u64 high)
{
	KUNIT_EXPECT_GE(test, value, low);
	KUNIT_EXPECT_LE(test, value, high);
}

/* One queue against @queues of another context. */
static void one_against(struct kunit *test, u32 max_active, u32 queues, u64 length, u32 class)
{
	struct sim *sim = sim_init(test, max_active);
	struct sim_context *one = sim_context(sim, class), *many = sim_context(sim, class);
	u32 i;

	sim_queue(sim, one, CORES, 10000 * MS, U32_MAX);
	for (i = 0; i < queues; i++)
		sim_queue(sim, many, CORES, length, U32_MAX);
	sim_run(sim, 200 * MS);
	expect_between(test, percent(one->active_ns, many->active_ns), 45, 55);
}

static void test_contexts_share(struct kunit *test)
{
	u32 class;

	for (class = LOW; class <= HIGH; class++) {
		one_against(test, 1, 1, 10000 * MS, class);
		one_against(test, 1, 64, 10000 * MS, class);
		one_against(test, 4, 64, 10000 * MS, class);
		one_against(test, 4, 64, 100 * US, class);
	}
}

/* Any number of contexts: each gets its share, and none waits long. */
static void test_many_contexts(struct kunit *test)
{
	struct sim *sim = sim_init(test, 2);
	u32 i;

	for (i = 0; i < 20; i++)
		sim_queue(sim, sim_context(sim, LOW), CORES, (i + 1) * 3 * MS, U32_MAX);
	sim_run(sim, 400 * MS);
	for (i = 0; i < 20; i++) {
		expect_between(test, sim->context[i].active_ns, 15 * MS, 25 * MS);
		KUNIT_EXPECT_LE(test, sim->context[i].longest_wait, 60 * MS);
	}
}

/* Both classes have more work than the card can do. */
static void test_low_is_not_starved(struct kunit *test)
{
	struct sim *sim = sim_init(test, 2);
	struct sim_context *high = sim_context(sim, HIGH), *low = sim_context(sim, LOW);
	u32 i;

	for (i = 0; i < 16; i++)
		sim_queue(sim, high, CORES, 10000 * MS, U32_MAX);
	sim_queue(sim, low, CORES, 10000 * MS, U32_MAX);
	sim_run(sim, 400 * MS);
	expect_between(test, percent(low->active_ns, high->active_ns), 5, 8);
}

/* A high job preempts a low one at its next tile, not at the end of its slice. */
static void test_high_comes_first(struct kunit *test)
{
	struct sim *sim = sim_init(test, 1);
	struct sim_context *low = sim_context(sim, LOW), *high = sim_context(sim, HIGH);
	struct sim_queue *queue;

	sim_queue(sim, low, CORES, 10000 * MS, U32_MAX);
	sim_run(sim, 10 * MS + 2 * TILE);
	queue = sim_queue(sim, high, CORES, TILE, 1);
	sim_run(sim, 3 * TILE);
	KUNIT_EXPECT_EQ(test, queue->done, 1);
	KUNIT_EXPECT_LE(test, high->longest_wait, 2 * TILE);
}

/* A context with @queues jobs for @cores each, all but @any of them for its own runner. */
struct crowd {
	u32 queues;
	u32 cores;
	u32 any;
};

/* It against one with so many queues of narrow jobs. */
static void crowd_against(struct kunit *test, u32 places, u32 queues, const struct crowd *kind)
{
	struct sim *sim = sim_init(test, places);
	struct sim_context *victim = sim_context(sim, LOW), *crowd = sim_context(sim, LOW);
	/* As many as have a runner at a time. */
	const u32 had = min(kind->any + (kind->any < kind->queues), places);
	const u32 due = min(queues, places - min(had, places / 2));
	const u32 idle = had + queues < places ? places - had - queues : 0;
	const u64 time = 200 * MS;
	u32 i;

	for (i = 0; i < queues; i++)
		sim_queue(sim, victim, 1, 10000 * MS, U32_MAX);
	for (i = 0; i < kind->queues; i++)
		sim_queue(sim, crowd, kind->cores, 10000 * MS, U32_MAX)->own_only = i >= kind->any;
	sim_run(sim, time);
	KUNIT_EXPECT_LE(test, victim->longest_wait, 20 * MS);
	if (kind->cores == 1) {
		/* Narrow jobs leave no place free. */
		KUNIT_EXPECT_GE(test, victim->active_ns + 10 * MS, time * due);
		KUNIT_EXPECT_EQ(test, sim->idle_ns, time * idle);
	} else {
		/* Wide ones do while they run; each context has its part of the time. */
		expect_between(test, victim->active_ns, time * min(queues, places) * 46 / 100,
			       time * places);
		KUNIT_EXPECT_GE(test, crowd->active_ns, time / (places + 1));
	}
	kunit_kfree(test, sim);
}

/* Claims that cannot run yet, however many, keep no other one from a place. */
static void test_blocked_claims_block_no_others(struct kunit *test)
{
	static const u32 queues[] = { 120, 127, 129, 200, 250 };
	u32 i, places, kind;

	for (i = 0; i < ARRAY_SIZE(queues); i++) {
		const struct crowd crowd[] = {
			{ queues[i], 1, queues[i] }, { queues[i], 1, 3 }, { queues[i], 1, 0 },
			{ queues[i], CORES, queues[i] }, { queues[i], CORES, 0 },
		};

		for (kind = 0; kind < ARRAY_SIZE(crowd); kind++) {
			for (places = 2; places <= 8; places += 6) {
				crowd_against(test, places, 1, &crowd[kind]);
				crowd_against(test, places, 16, &crowd[kind]);
			}
		}
	}
}

/*
 * A context that used little of the card while others used the rest has no
 * credit when it adds queues later.
 */
static void test_light_load_earns_no_credit(struct kunit *test)
{
	struct sim *sim = sim_init(test, 8);
	struct sim_context *little = sim_context(sim, LOW), *much = sim_context(sim, LOW);
	u64 before;
	u32 i;

	sim_queue(sim, little, 1, 10000 * MS, U32_MAX);
	for (i = 0; i < 8; i++)
		sim_queue(sim, much, 1, 10000 * MS, U32_MAX);
	sim_run(sim, 400 * MS);
	expect_between(test, little->active_ns, 390 * MS, 400 * MS);
	before = much->active_ns;
	for (i = 0; i < 8; i++)
		sim_queue(sim, little, 1, 10000 * MS, U32_MAX);
	sim_run(sim, 100 * MS);
	expect_between(test, much->active_ns - before, 100 * MS * 8 * 44 / 100,
		       100 * MS * 8 * 54 / 100);
}

static void test_partitions(struct kunit *test)
{
	struct sim *sim = sim_init(test, 4);
	struct sim_queue *lower = sim_queue(sim, sim_context(sim, LOW), 16, 100 * MS, U32_MAX);
	struct sim_queue *upper = sim_queue(sim, sim_context(sim, LOW), 16, 100 * MS, U32_MAX);
	struct sim_queue *also;

	spyre_claim_init(&sim->arb, &lower->claim, &lower->context->base, 0, 16);
	spyre_claim_init(&sim->arb, &upper->claim, &upper->context->base, 16, 16);
	sim_run(sim, 50 * MS);
	KUNIT_EXPECT_EQ(test, lower->claim.held, 0xffffu);
	KUNIT_EXPECT_EQ(test, upper->claim.held, 0xffff0000u);
	KUNIT_EXPECT_EQ(test, lower->context->active_ns, 50 * MS);
	KUNIT_EXPECT_EQ(test, upper->context->active_ns, 50 * MS);

	/* One more in the upper half alternates there and leaves the lower one alone. */
	also = sim_queue(sim, sim_context(sim, LOW), 16, 100 * MS, U32_MAX);
	spyre_claim_init(&sim->arb, &also->claim, &also->context->base, 16, 16);
	sim_run(sim, 100 * MS);
	KUNIT_EXPECT_EQ(test, lower->context->active_ns, 150 * MS);
	expect_between(test, also->context->active_ns, 45 * MS, 55 * MS);
}

/* Narrow jobs without end never leave all cores free by themselves. */
static void test_wide_and_narrow(struct kunit *test)
{
	struct sim *sim = sim_init(test, 4);
	struct sim_context *wide = sim_context(sim, LOW), *narrow = sim_context(sim, LOW);
	u32 i;

	sim_queue(sim, wide, CORES, 20 * MS, U32_MAX);
	for (i = 0; i < 16; i++)
		sim_queue(sim, narrow, 8, 300 * US + i * 100 * US, U32_MAX);
	sim_run(sim, 200 * MS);
	expect_between(test, percent(wide->core_ns, narrow->core_ns), 35, 65);
	KUNIT_EXPECT_LE(test, wide->longest_wait, 20 * MS);
}

static void test_no_context_earns_credit(struct kunit *test)
{
	struct sim *sim = sim_init(test, 1);
	struct sim_context *busy = sim_context(sim, LOW), *late = sim_context(sim, LOW);
	u64 before;

	sim_queue(sim, busy, CORES, 10000 * MS, U32_MAX);
	sim_run(sim, 200 * MS);
	before = busy->active_ns;
	sim_queue(sim, late, CORES, 10000 * MS, U32_MAX);
	sim_run(sim, 100 * MS);
	expect_between(test, percent(late->active_ns, busy->active_ns - before), 45, 55);
	/* And does not have to wait for its first slice until the other one is even. */
	KUNIT_EXPECT_LE(test, late->longest_wait, 2 * SPYRE_ARB_SLICE_NS);
}

/* Many short jobs are charged exactly the time that they took. */
static void test_short_jobs_pay(struct kunit *test)
{
	struct sim *sim = sim_init(test, 1);
	struct sim_context *brief = sim_context(sim, LOW), *lengthy = sim_context(sim, LOW);

	sim_queue(sim, brief, CORES, TILE, U32_MAX);
	sim_queue(sim, lengthy, CORES, 10000 * MS, U32_MAX);
	sim_run(sim, 200 * MS);
	expect_between(test, percent(brief->active_ns, lengthy->active_ns), 40, 60);
}

static void test_own_runner(struct kunit *test)
{
	struct sim *sim = sim_init(test, 4);
	struct sim_context *context = sim_context(sim, LOW), *other = sim_context(sim, LOW);
	u32 i, began = 0;

	for (i = 0; i < 4; i++)
		sim_queue(sim, context, 1, 10000 * MS, 1)->own_only = true;
	sim_run(sim, 20 * MS);
	for (i = 0; i < 4; i++)
		began += sim->queue[i].claim.runner != SPYRE_RUNNER_NONE;
	KUNIT_EXPECT_EQ_MSG(test, began, 1, "they share one runner");

	/* Jobs in progress of one context do not prevent another one from starting a job. */
	for (i = 0; i < 32; i++)
		sim_queue(sim, context, 1, 10000 * MS, 1);
	sim_run(sim, 50 * MS);
	KUNIT_EXPECT_LE(test, context->base.pool_taken, sim->arb.pool / 2);
	sim_queue(sim, other, 1, 10000 * MS, 1);
	sim_run(sim, 5 * MS);
	KUNIT_EXPECT_GT(test, other->active_ns, 0);
}

static void test_withdraw(struct kunit *test)
{
	struct sim *sim = sim_init(test, 1);
	struct sim_context *context = sim_context(sim, LOW);
	struct sim_queue *first = sim_queue(sim, context, CORES, 10000 * MS, 1);
	struct sim_queue *second = sim_queue(sim, context, CORES, 10000 * MS, 1);
	struct spyre_claim *waits;
	u32 i;

	sim_run(sim, 20 * MS);
	/* Both have begun, one waits for its next slice. */
	KUNIT_EXPECT_NE(test, first->claim.runner, SPYRE_RUNNER_NONE);
	KUNIT_EXPECT_NE(test, second->claim.runner, SPYRE_RUNNER_NONE);
	for (i = 0; i < 2; i++) {
		waits = spyre_arbiter_any_waiting(&sim->arb);
		if (!waits)
			break;
		spyre_arbiter_withdraw(&sim->arb, waits);
		KUNIT_EXPECT_EQ(test, waits->state, SPYRE_CLAIM_ENDING);
		spyre_arbiter_release(&sim->arb, waits, sim->now);
	}
	KUNIT_EXPECT_EQ(test, i, 1);
	waits = first->claim.state == SPYRE_CLAIM_ACTIVE ? &first->claim : &second->claim;
	spyre_arbiter_release(&sim->arb, waits, sim->now);
	sim_check(sim);
	KUNIT_EXPECT_EQ(test, sim->arb.free, ~0u);
	KUNIT_EXPECT_EQ(test, sim->arb.pool_taken, 0);
	KUNIT_EXPECT_EQ(test, context->base.claims, 0);
	KUNIT_EXPECT_EQ(test, context->base.ahead, 0);
}

static void test_light(struct kunit *test)
{
	struct sim *sim = sim_init(test, 1);
	struct sim_context *busy = sim_context(sim, LOW), *other = sim_context(sim, LOW);
	struct sim_queue *light = sim_queue(sim, other, 0, 10 * US, 0);

	sim_queue(sim, busy, CORES, 10000 * MS, 1);
	sim_run(sim, 10 * MS);
	KUNIT_EXPECT_TRUE_MSG(test, spyre_arbiter_pick_light(&sim->arb, &light->claim, 0, sim->now),
			      "it needs no cores and none waits");
	spyre_arbiter_release(&sim->arb, &light->claim, sim->now + 10 * US);
	KUNIT_EXPECT_FALSE_MSG(test,
			       spyre_arbiter_pick_light(&sim->arb, &light->claim, 1, sim->now),
			       "no core is free");
	KUNIT_EXPECT_GT_MSG(test, other->base.vtime + SPYRE_ARB_SLICE_NS, busy->base.vtime,
			    "it has paid");
	sim_queue(sim, sim_context(sim, HIGH), CORES, 10000 * MS, 1);
	sim_queue(sim, sim_context(sim, HIGH), CORES, 10000 * MS, 1);
	sim_run(sim, 10 * MS);
	KUNIT_EXPECT_FALSE_MSG(test,
			       spyre_arbiter_pick_light(&sim->arb, &light->claim, 0, sim->now),
			       "the high class waits");
}

static void random_queue(struct sim *sim, struct rnd_state *rnd, struct sim_context *context)
{
	u32 first = prandom_u32_state(rnd) % CORES;
	u32 count = 1 + prandom_u32_state(rnd) % (CORES - first);
	struct sim_queue *queue = sim_queue(sim, context, prandom_u32_state(rnd) % (count + 1),
					    (1 + prandom_u32_state(rnd) % 100) * TILE,
					    1 + prandom_u32_state(rnd) % 20);

	spyre_claim_init(&sim->arb, &queue->claim, &context->base, first, count);
	queue->own_only = prandom_u32_state(rnd) % 4 == 0;
}

/* Random load: the accounts are right at every step, and all work ends. */
static void test_random(struct kunit *test)
{
	struct rnd_state rnd;
	struct sim *sim;
	u32 round, i, left;

	prandom_seed_state(&rnd, 4);
	for (round = 0; round < 5; round++) {
		sim = sim_init(test, 1 + round % 5);
		for (i = 0; i < 12; i++)
			sim_context(sim, i % 3 ? LOW : HIGH);
		for (i = 0; i < 60; i++)
			random_queue(sim, &rnd,
				     &sim->context[prandom_u32_state(&rnd) % sim->num_contexts]);
		for (i = 0, left = 1; i < 200 && left; i++) {
			sim_run(sim, 20 * MS);
			left = sim->arb.waiting + sim->arb.num_active;
		}
		KUNIT_EXPECT_EQ(test, left, 0);
		KUNIT_EXPECT_EQ(test, sim->arb.free, ~0u);
		for (i = 0; i < sim->num_contexts; i++) {
			KUNIT_EXPECT_EQ(test, sim->context[i].base.claims, 0);
			KUNIT_EXPECT_EQ(test, sim->context[i].base.ahead, 0);
		}
		kunit_kfree(test, sim);
	}
}

static struct kunit_case arbiter_cases[] = {
	KUNIT_CASE(test_contexts_share),
	KUNIT_CASE(test_many_contexts),
	KUNIT_CASE(test_low_is_not_starved),
	KUNIT_CASE(test_high_comes_first),
	KUNIT_CASE(test_blocked_claims_block_no_others),
	KUNIT_CASE(test_light_load_earns_no_credit),
	KUNIT_CASE(test_partitions),
	KUNIT_CASE(test_wide_and_narrow),
	KUNIT_CASE(test_no_context_earns_credit),
	KUNIT_CASE(test_short_jobs_pay),
	KUNIT_CASE(test_own_runner),
	KUNIT_CASE(test_withdraw),
	KUNIT_CASE(test_light),
	KUNIT_CASE(test_random),
	{}
};

static struct kunit_suite arbiter_suite = {
	.name = "spyre_arbiter",
	.test_cases = arbiter_cases,
};

kunit_test_suite(arbiter_suite);
