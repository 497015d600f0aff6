/* SPDX-License-Identifier: MIT */
/*
 * Runs the driver's arbiter against random contexts: many or few queues, narrow and
 * wide jobs, jobs with scratchpads, jobs without cores, partitions of the card,
 * both classes, work that starts, ends, is killed or delayed until it could starve.
 * ARBITER_SIM_SLICES sets the number of time slices (100,000), ARBITER_SIM_SEED the
 * seed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arbiter_sim.h"

#define US 1000ull
#define MS 1000000ull
/* Duration of a light job. */
#define LIGHT (10 * US)
#define SLICES_PER_WORLD 4000
/* Far more steps than this many time slices take, so that a stalled card is detected. */
#define STEPS_PER_WORLD 400000

u32 sim_draw(struct sim *sim, u32 below)
{
	u64 x = sim->random += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (u32)((x >> 32) * below >> 32);
}

static bool sim_once_in(struct sim *sim, u32 times)
{
	return !sim_draw(sim, times);
}

static bool queue_enabled(const struct sim *sim, u32 index)
{
	const struct sim_context *context = &sim->context[sim->queue[index].context];

	return index - context->first_queue < context->enabled;
}

static void make_idle(struct sim *sim, u32 index)
{
	struct sim_queue *queue = &sim->queue[index];

	queue->idle_until = sim->now + (queue->pause ? sim_draw(sim, (u32)queue->pause) : 0);
	queue->idle_index = sim->num_idle;
	sim->idle[sim->num_idle++] = index;
}

static void not_idle(struct sim *sim, u32 index)
{
	const u32 last = sim->idle[--sim->num_idle], at = sim->queue[index].idle_index;

	sim->idle[at] = last;
	sim->queue[last].idle_index = at;
}

static void ask(struct sim *sim, u32 index)
{
	struct sim_queue *queue = &sim->queue[index];

	not_idle(sim, index);
	queue->left = 1 + sim_draw(sim, (u32)min(queue->length, 2000 * MS));
	spyre_arbiter_request(&sim->arb, &queue->claim, queue->cores, queue->own_only, sim->now);
	oracle_waits(sim, queue);
}

/* Starts the available time slices, as the engine does after each change. */
static void dispatch(struct sim *sim)
{
	struct spyre_claim *claim;
	struct sim_queue *queue;

	while ((claim = spyre_arbiter_pick(&sim->arb, sim->now))) {
		queue = container_of(claim, struct sim_queue, claim);
		queue->active_index = sim->num_active;
		sim->active[sim->num_active++] = (u32)(queue - sim->queue);
		oracle_starts(sim, queue);
		queue->runner = claim->runner;
		sim->slices++;
	}
	oracle_settled(sim);
}

static void not_active(struct sim *sim, const struct sim_queue *queue, u32 held)
{
	const u32 last = sim->active[--sim->num_active];

	sim->active[queue->active_index] = last;
	sim->queue[last].active_index = queue->active_index;
	oracle_stops(sim, queue, held);
}

/* Ends the job of @queue, which may have run or not. */
static void end(struct sim *sim, struct sim_queue *queue)
{
	spyre_arbiter_release(&sim->arb, &queue->claim, sim->now);
	oracle_ends(sim, queue, queue->runner);
	queue->runner = SPYRE_RUNNER_NONE;
	make_idle(sim, (u32)(queue - sim->queue));
}

/* Completes one step of @queue's work: its job ends, pauses or continues. */
static void advance(struct sim *sim, struct sim_queue *queue)
{
	const u32 held = queue->claim.held;

	oracle_spends(sim, queue, queue->cores, sim->flavor.step);
	queue->left -= min(sim->flavor.step, queue->left);
	if (!queue->left || sim_once_in(sim, 5000)) {
		not_active(sim, queue, held);
		end(sim, queue);
	} else if (spyre_arbiter_yields(&sim->arb, &queue->claim, sim->now)) {
		not_active(sim, queue, held);
		oracle_waits(sim, queue);
	}
	dispatch(sim);
}

/* Kills the job of a waiting queue, which ends without another time slice. */
static void kill_one(struct sim *sim)
{
	struct sim_queue *queue = &sim->queue[sim_draw(sim, sim->num_queues)];

	if (queue->claim.state != SPYRE_CLAIM_WAITING)
		return;
	oracle_withdrawn(sim, queue);
	spyre_arbiter_withdraw(&sim->arb, &queue->claim);
	end(sim, queue);
	dispatch(sim);
}

/* Runs a light job of an idle queue at once, if permitted. */
static void light_one(struct sim *sim)
{
	struct sim_queue *queue;

	if (!sim->num_idle)
		return;
	queue = &sim->queue[sim->idle[sim_draw(sim, sim->num_idle)]];
	if (!queue_enabled(sim, (u32)(queue - sim->queue)) ||
	    !spyre_arbiter_pick_light(&sim->arb, &queue->claim, queue->cores, sim->now))
		return;
	oracle_spends(sim, queue, queue->cores, LIGHT);
	spyre_arbiter_release(&sim->arb, &queue->claim, sim->now + LIGHT);
	dispatch(sim);
}

/* A context gets more work, or stops getting any. */
static void change_contexts(struct sim *sim)
{
	struct sim_context *context;
	u32 i;

	for (i = 0; i < sim->num_contexts; i++) {
		context = &sim->context[i];
		if (sim->now < context->change_at)
			continue;
		context->change_at = sim->now + MS + sim_draw(sim, 300 * MS);
		switch (sim_draw(sim, 4)) {
		case 0:
			context->enabled = 0;
			break;
		case 1:
			context->enabled = 1;
			break;
		default:
			context->enabled = context->num_queues;
		}
	}
}

static void step(struct sim *sim)
{
	u32 active[SIM_PLACES], num_active, i;

	for (i = 0; i < sim->num_idle;) {
		const u32 index = sim->idle[i];

		/* Replaces the entry by the last of the list. */
		if (queue_enabled(sim, index) && sim->queue[index].idle_until <= sim->now)
			ask(sim, index);
		else
			i++;
	}
	dispatch(sim);
	if (sim_once_in(sim, 50))
		kill_one(sim);
	if (sim_once_in(sim, 20))
		light_one(sim);
	oracle_step(sim);
	sim->now += sim->flavor.step;
	sim->steps++;
	num_active = sim->num_active;
	memcpy(active, sim->active, sizeof(active));
	for (i = 0; i < num_active; i++)
		advance(sim, &sim->queue[active[i]]);
	if (sim->steps % 16 == 0)
		change_contexts(sim);
}

static void add_queue(struct sim *sim, u32 index, u32 widest, u32 own_only)
{
	static const u64 lengths[] = { 50 * US, 300 * US, 5 * MS, 2000 * MS };
	struct sim_context *context = &sim->context[index];
	struct sim_queue *queue = &sim->queue[sim->num_queues];
	u32 first = 0, count = 0;

	*queue = (struct sim_queue){ .context = index, .own_only = sim_draw(sim, 4) < own_only };
	if (sim->flavor.partitions && sim_draw(sim, 2)) {
		first = sim_draw(sim, SIM_CORES);
		count = 1 + sim_draw(sim, SIM_CORES - first);
		widest = min(widest, count);
	}
	queue->cores = context->no_cores ? 0 : 1 + sim_draw(sim, widest);
	queue->length = lengths[sim_draw(sim, 4)];
	queue->pause = sim_once_in(sim, 3) ? 2 * MS : 0;
	spyre_claim_init(&sim->arb, &queue->claim, &context->base, first, count);
	make_idle(sim, sim->num_queues++);
	context->num_queues++;
}

static void add_context(struct sim *sim, u32 queues)
{
	static const u32 widths[] = { 1, 1, 4, SIM_CORES };
	const u32 widest = widths[sim_draw(sim, sim->flavor.narrow ? 3 : 4)];
	const u32 index = sim->num_contexts++;
	const u32 own_only = sim_draw(sim, 5);
	struct sim_context *context = &sim->context[index];

	*context = (struct sim_context){
		.first_queue = sim->num_queues,
		.no_cores = sim->flavor.no_cores && sim_once_in(sim, 4),
		.change_at = sim->now + sim_draw(sim, 500 * MS),
	};
	spyre_arb_context_init(&context->base, sim->flavor.both_classes && sim_once_in(sim, 3) ?
			       SIM_HIGH : SIM_LOW);
	while (queues--)
		add_queue(sim, index, widest, own_only);
	context->enabled = sim_once_in(sim, 4) ? 1 : context->num_queues;
}

/* Creates a new card and its users: a few, some, or many contexts. */
static void new_world(struct sim *sim)
{
	static const u32 crowds[] = { 2, 4, 12, SIM_CONTEXTS };
	const u32 contexts = 2 + sim_draw(sim, crowds[sim_draw(sim, 4)] - 1);
	u32 queues, available;

	sim->flavor = (struct sim_flavor){
		.places = 1 + sim_draw(sim, SIM_PLACES),
		.step = 20 * US + sim_draw(sim, sim_once_in(sim, 8) ? 3 * MS : 200 * US),
		.narrow = sim_once_in(sim, 2),
		.both_classes = sim_once_in(sim, 3),
		.partitions = sim_once_in(sim, 4),
		.no_cores = sim_once_in(sim, 3),
	};
	spyre_arbiter_init(&sim->arb, SIM_CORES, sim->flavor.places, 2 * sim->flavor.places);
	sim->num_contexts = 0;
	sim->num_queues = 0;
	sim->num_idle = 0;
	sim->num_active = 0;
	sim->flavor.narrow &= !sim->flavor.partitions;
	oracle_init(sim);
	while (sim->num_contexts < contexts) {
		queues = sim_once_in(sim, 3) ? SIM_QUEUES_PER_CONTEXT : 1 + sim_draw(sim, 8);
		available = SIM_QUEUES - sim->num_queues - (contexts - sim->num_contexts - 1);
		add_context(sim, min(queues, available));
	}
}

static u64 setting(const char *name, u64 otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

int main(void)
{
	const u64 slices = setting("ARBITER_SIM_SLICES", 100000);
	const u64 seed = setting("ARBITER_SIM_SEED", 1);
	struct sim *sim = calloc(1, sizeof(*sim));
	u64 until, last;
	u32 worlds = 0;

	if (!sim)
		return 99;
	sim->random = seed;
	sim->now = 1000 * MS;
	while (sim->slices < slices && !sim->failed) {
		new_world(sim);
		until = min(sim->slices + SLICES_PER_WORLD, slices);
		last = sim->steps + STEPS_PER_WORLD;
		while (sim->slices < until && sim->steps < last)
			step(sim);
		worlds++;
	}
	printf("# %" PRIu64 " slices in %u worlds, seed %" PRIu64 "; used of the bounds, in 1/1000: "
	       "pairs %u, share %u, low class %u, high class %u, wait %u\n", sim->slices, worlds,
	       seed, sim->worst_pair, sim->worst_share, sim->worst_low, sim->worst_high,
	       sim->worst_wait);
	printf("%s 1 the arbiter keeps its promises (%" PRIu64 " failures)\n1..1\n",
	       sim->failed ? "not ok" : "ok", sim->failed);
	last = sim->failed;
	free(sim);
	return last ? 1 : 0;
}
