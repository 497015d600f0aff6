/* SPDX-License-Identifier: MIT */
/*
 * Checks the arbiter's guarantees from outside: no place is allocated twice, no
 * place idles while a claim could use it, contexts of a class get equal shares, and
 * the classes share 15 to 1.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arbiter_sim.h"

#define SLICE SPYRE_ARB_SLICE_NS
/* A context may catch up for free on a lag of this many time slices of a whole card. */
#define LAG (4 * SLICE)
/* The lead of a context that catches up: the logarithm of some seconds, in slices. */
#define CATCH_UP (8 * SLICE)
#define FAILURES_TOLD 10

static void fail(struct sim *sim, const char *what, u64 value, u64 limit)
{
	if (++sim->failed <= FAILURES_TOLD)
		printf("# slice %" PRIu64 ": %s: %" PRIu64 ", limit %" PRIu64
		       " (places %u, contexts %u, queues %u, step %" PRIu64 " ns%s%s%s)\n",
		       sim->slices, what, value, limit, sim->flavor.places, sim->num_contexts,
		       sim->num_queues, sim->flavor.step,
		       sim->flavor.both_classes ? ", both classes" : "",
		       sim->flavor.partitions ? ", partitions" : "",
		       sim->flavor.no_cores ? ", jobs without cores" : "");
}

static void hold(struct sim *sim, const char *what, u64 value, u64 limit, u32 *worst)
{
	if (value > limit)
		fail(sim, what, value, limit);
	*worst = max(*worst, (u32)(value * 1000 / limit));
}

/* Cost of whole time slices of a whole card, in the oracle's unit. */
static u64 cost_of(const struct sim *sim, u64 ns)
{
	return ns * SIM_CORES * sim->flavor.places;
}

/* The longest duration of a time slice that was asked to end. */
static u64 longest_slice(const struct sim *sim)
{
	return SLICE + sim->flavor.step;
}

static struct sim_account *account_of(struct sim *sim, const struct sim_queue *queue)
{
	return &sim->account[queue->context];
}

static u32 class_of(const struct sim *sim, u32 context)
{
	return sim->context[context].base.class;
}

void oracle_init(struct sim *sim)
{
	memset(sim->account, 0, sizeof(sim->account));
	memset(sim->class, 0, sizeof(sim->class));
	sim->held = 0;
	sim->pool = 0;
}

/* Runners that a waiting claim may use: its former one, any, or its context's. */
static u32 kind_of(const struct sim_queue *queue)
{
	if (queue->runner != SPYRE_RUNNER_NONE)
		return 0;
	return queue->own_only ? 2 : 1;
}

void oracle_waits(struct sim *sim, const struct sim_queue *queue)
{
	account_of(sim, queue)->waiting[kind_of(queue)]++;
}

void oracle_withdrawn(struct sim *sim, const struct sim_queue *queue)
{
	account_of(sim, queue)->waiting[kind_of(queue)]--;
}

static void take_runner(struct sim *sim, const struct sim_queue *queue)
{
	struct sim_account *account = account_of(sim, queue);

	if (queue->claim.runner == SPYRE_RUNNER_NONE)
		fail(sim, "jobs without a runner", 1, 0);
	if (queue->claim.runner == SPYRE_RUNNER_OWN && account->own++)
		fail(sim, "jobs on a context's own runner", account->own, 1);
	if (queue->claim.runner != SPYRE_RUNNER_POOL)
		return;
	if (queue->own_only)
		fail(sim, "jobs with scratchpads on the pool", 1, 0);
	account->pool++;
	if (++sim->pool > 2 * sim->flavor.places)
		fail(sim, "runners of the pool", sim->pool, 2 * sim->flavor.places);
	if (account->pool > sim->flavor.places)
		fail(sim, "runners of the pool for one context", account->pool,
		     sim->flavor.places);
}

void oracle_starts(struct sim *sim, const struct sim_queue *queue)
{
	struct sim_account *account = account_of(sim, queue);
	const u32 held = queue->claim.held;

	account->waiting[kind_of(queue)]--;
	account->active++;
	if (queue->runner == SPYRE_RUNNER_NONE)
		take_runner(sim, queue);
	else if (queue->claim.runner != queue->runner)
		fail(sim, "jobs that change their runner", 1, 0);
	if (sim->num_active > sim->flavor.places)
		fail(sim, "places taken", sim->num_active, sim->flavor.places);
	if (hweight32(held) != queue->cores || held & ~queue->claim.partition ||
	    held & sim->held)
		fail(sim, "cores not asked for, or another job's", held, 0);
	sim->held |= held;
}

void oracle_stops(struct sim *sim, const struct sim_queue *queue, u32 held)
{
	sim->held &= ~held;
	account_of(sim, queue)->active--;
}

void oracle_ends(struct sim *sim, const struct sim_queue *queue, u32 runner)
{
	struct sim_account *account = account_of(sim, queue);

	if (runner == SPYRE_RUNNER_OWN)
		account->own--;
	if (runner != SPYRE_RUNNER_POOL)
		return;
	account->pool--;
	sim->pool--;
}

void oracle_spends(struct sim *sim, const struct sim_queue *queue, u32 cores, u64 ns)
{
	const u64 cost = ns * max(cores * sim->flavor.places, SIM_CORES);

	account_of(sim, queue)->cost += cost;
	sim->class[class_of(sim, queue->context)].cost += cost;
}

/* Returns true if a claim of @account waits and has a thread to run on. */
static bool could_run(const struct sim *sim, const struct sim_account *account)
{
	const bool pool = sim->pool < 2 * sim->flavor.places &&
			  account->pool < sim->flavor.places;

	return account->waiting[0] || (account->waiting[1] && (pool || !account->own)) ||
	       (account->waiting[2] && !account->own);
}

/* Returns true if the claim of @queue waits and has a thread to run on. */
static bool queue_could_run(const struct sim *sim, const struct sim_queue *queue)
{
	const struct sim_account *account = &sim->account[queue->context];

	if (queue->claim.state != SPYRE_CLAIM_WAITING)
		return false;
	if (queue->runner != SPYRE_RUNNER_NONE || !account->own)
		return true;
	return !queue->own_only && sim->pool < 2 * sim->flavor.places &&
	       account->pool < sim->flavor.places;
}

/* Counts claims that could run and fit besides @kept; those that do not fit are added to it. */
static u32 count_fits(const struct sim *sim, u32 *kept)
{
	u32 more = *kept, fits = 0, i;

	for (i = 0; i < sim->num_queues; i++) {
		const struct sim_queue *queue = &sim->queue[i];
		const u32 cores = queue->claim.partition & ~sim->held & ~*kept;

		if (!queue_could_run(sim, queue))
			continue;
		if (hweight32(cores) >= queue->cores)
			fits++;
		else
			more |= queue->claim.partition;
	}
	*kept = more;
	return fits;
}

/*
 * If a place is free, no waiting claim could have it. A claim that cannot have its
 * cores may reserve those of its partition; the remaining cores are available to
 * any claim.
 */
static void check_idle(struct sim *sim)
{
	u32 kept = 0, before, fits;

	do {
		before = kept;
		fits = count_fits(sim, &kept);
	} while (kept != before);
	if (fits)
		fail(sim, "claims that wait although a place and cores are free", fits, 0);
}

/*
 * While a claim of @one waits that could run, no context of its class gets more
 * service, except for the permitted lag and lead. A job without cores may use
 * capacity that one with cores cannot.
 */
static void check_pairs(struct sim *sim, u32 one)
{
	const struct sim_account *account = &sim->account[one];
	const u64 had = account->cost - account->base[one];
	const u64 bound = cost_of(sim, LAG + CATCH_UP + 4 * longest_slice(sim));
	u64 other;
	u32 i;

	if (sim->flavor.partitions)
		return;
	for (i = 0; i < sim->num_contexts; i++) {
		if (class_of(sim, i) != class_of(sim, one) ||
		    (sim->context[i].no_cores && !sim->context[one].no_cores))
			continue;
		other = sim->account[i].cost - account->base[i];
		hold(sim, "cost by which another context of the class is ahead",
		     other > had ? other - had : 0, bound, &sim->worst_pair);
	}
}

/*
 * If there are cores for all places, it also gets its share of the card. A job that
 * waits for more cores than are free keeps places idle, which is charged to no
 * context.
 */
static void check_share(struct sim *sim, u32 one)
{
	const struct sim_account *account = &sim->account[one];
	const u64 had = account->cost - account->base[one];
	const u64 due = cost_of(sim, sim->now - account->hungry_since) / sim->num_contexts;

	if (sim->flavor.narrow && !sim->flavor.both_classes)
		hold(sim, "cost that a context lacks of its share", due > had ? due - had : 0,
		     cost_of(sim, LAG + CATCH_UP + 4 * longest_slice(sim)), &sim->worst_share);
}

/* A context that no longer waits must have received its share up to now. */
void oracle_settled(struct sim *sim)
{
	bool hungry[2] = { false, false };
	u32 i;

	for (i = 0; i < sim->num_contexts; i++) {
		if (!sim->account[i].hungry)
			continue;
		if (could_run(sim, &sim->account[i])) {
			hungry[class_of(sim, i)] = true;
			continue;
		}
		check_pairs(sim, i);
		check_share(sim, i);
		sim->account[i].hungry = false;
	}
	sim->class[SIM_LOW].hungry &= hungry[SIM_LOW];
	sim->class[SIM_HIGH].hungry &= hungry[SIM_HIGH];
}

static void check_context(struct sim *sim, u32 one)
{
	struct sim_account *account = &sim->account[one];
	u64 wait;
	u32 i;

	if (!could_run(sim, account))
		return;
	if (!account->hungry) {
		account->hungry = true;
		account->hungry_since = sim->now;
		account->served = sim->now;
		for (i = 0; i < sim->num_contexts; i++)
			account->base[i] = sim->account[i].cost;
	} else if (sim->steps % 64 == one % 64) {
		check_pairs(sim, one);
		check_share(sim, one);
	}
	if (account->active)
		account->served = sim->now;
	wait = (LAG + 4 * longest_slice(sim)) * sim->flavor.places * sim->num_contexts;
	if (sim->flavor.both_classes)
		wait *= SPYRE_ARB_LOW_PART;
	hold(sim, "ns without a time slice", sim->now - account->served, wait, &sim->worst_wait);
}

/* The low class gets 1/16 of the card while it waits, the high class the remainder. */
static void check_classes(struct sim *sim)
{
	const u64 bound = cost_of(sim, 4 * SLICE + 4 * longest_slice(sim));
	u64 had[2];
	u32 class, i;
	bool hungry[2] = { false, false };

	for (i = 0; i < sim->num_contexts; i++)
		hungry[class_of(sim, i)] |= sim->account[i].hungry;
	for (class = 0; class < 2; class++) {
		struct sim_class_account *account = &sim->class[class];

		if (hungry[class] && !account->hungry)
			for (i = 0; i < 2; i++)
				account->base[i] = sim->class[i].cost;
		account->hungry = hungry[class];
		if (!hungry[class])
			continue;
		for (i = 0; i < 2; i++)
			had[i] = (sim->class[i].cost - account->base[i]) /
				 (i == SIM_HIGH ? SPYRE_ARB_LOW_PART - 1 : 1);
		if (class == SIM_LOW)
			hold(sim, "cost that the low class lacks",
			     had[SIM_HIGH] > had[SIM_LOW] ? had[SIM_HIGH] - had[SIM_LOW] : 0,
			     bound, &sim->worst_low);
		else if (!sim->flavor.no_cores && !sim->flavor.partitions)
			hold(sim, "cost of the low class while the high one waits",
			     had[SIM_LOW] > had[SIM_HIGH] ? had[SIM_LOW] - had[SIM_HIGH] : 0,
			     bound, &sim->worst_high);
	}
}

void oracle_step(struct sim *sim)
{
	u32 i;

	if (sim->arb.free != ~sim->held)
		fail(sim, "cores that the arbiter takes for free", sim->arb.free, ~sim->held);
	if (sim->arb.num_active != sim->num_active)
		fail(sim, "active jobs", sim->arb.num_active, sim->num_active);
	for (i = 0; i < sim->num_contexts; i++)
		check_context(sim, i);
	if (sim->flavor.both_classes)
		check_classes(sim);
	if (sim->num_active < sim->flavor.places && sim->arb.waiting && sim->steps % 4 == 0)
		check_idle(sim);
}
