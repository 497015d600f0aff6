// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The card: runs the steps of a verified program. Phases are barriers; the streams
 * of a phase run on whatever threads the host has. Phases whose cores are
 * independent run as a group: core by core instead of phase by phase.
 */
#include "core.h"

#define LX_CHUNK (128u << 10)	/* of LX, cleared between two polls */
#define QUIET_STEPS 64u		/* between two polls; streams also poll by themselves */

struct run {
	const struct spyre_exec *x;
	u32 iter[SPYRE_MAX_LOOPS];
	u32 begin[SPYRE_MAX_LOOPS];	/* step index of each open loop */
	u32 depth;
	const struct spyre_prog_step *phase;	/* the first running phase */
	u32 phases;
	bool borrow;			/* cores borrow scratchpads one after the other */
	u32 borrowed;			/* bit mask of the borrowed scratchpads */
	u32 quiet;			/* steps since the last poll */
	u32 stop;			/* enum spyre_stop, of all threads */
};

/* Yields and polls for a stop; called between sections. */
static void poll(struct run *run)
{
	struct spyre_host *host = run->x->host;

	if (host->relax)
		host->relax(host);
	if (host->should_stop && host->should_stop(host, run->x->job))
		spyre_stop_cancel(&run->stop);
}

static void run_stream(struct run *run, const struct spyre_prog_stream *stream, u8 *lx,
		       struct spyre_worker *worker)
{
	const struct spyre_exec *x = run->x;
	struct spyre_core core = {
		.x = x,
		.worker = worker,
		.unit = x->host->unit,
		.index = stream->core,
		.lx = lx,
		.iter = run->iter,
		.section = { .host = x->host, .job = x->job, .stop = &run->stop },
	};

	if (!spyre_stopped(&run->stop))
		spyre_core_run(&core, stream);
}

static void clear(struct run *run, u8 *lx)
{
	u32 bytes = run->x->prog->header->lx_bytes;
	u32 i, n;

	for (i = run->x->prog->header->lx_kept; i < bytes && !spyre_stopped(&run->stop); i += n) {
		n = spyre_min(bytes - i, LX_CHUNK);
		memset(lx + i, 0, n);
		poll(run);
	}
}

/*
 * Clears the LX, so that results cannot depend on what an earlier program left there,
 * except for the part that the program keeps.
 */
static void clear_lx(void *arg, u32 index, struct spyre_worker *worker)
{
	struct run *run = arg;

	clear(run, run->x->lx[index]);
}

static u8 *lx_of(const struct spyre_exec *x, u32 core)
{
	return x->prog->header->lx_bytes ? x->lx[core] : NULL;
}

static void run_phase_stream(void *arg, u32 index, struct spyre_worker *worker)
{
	struct run *run = arg;
	const struct spyre_prog_stream *stream =
		&run->x->prog->streams[run->phase->first_stream + index];

	run_stream(run, stream, lx_of(run->x, stream->core), worker);
}

/* Takes the lowest free scratchpad, which is likely to be warm in a cache. */
static u32 borrow_lx(struct run *run)
{
	u32 used = __atomic_load_n(&run->borrowed, __ATOMIC_RELAXED);
	u32 slot;

	do {
		slot = __builtin_ctz(~used);
	} while (!__atomic_compare_exchange_n(&run->borrowed, &used, used | 1u << slot, false,
					      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	return slot;
}

/* Runs everything that core @index does in a group of phases. */
static void run_core(void *arg, u32 index, struct spyre_worker *worker)
{
	struct run *run = arg;
	const struct spyre_program *prog = run->x->prog;
	u8 *lx = lx_of(run->x, index);
	u32 p, i, slot = 0;

	if (run->borrow) {
		slot = borrow_lx(run);
		lx = run->x->lx[slot];
		clear(run, lx);
	}
	for (p = 0; p < run->phases; p++) {
		const struct spyre_prog_step *step = &run->phase[p];
		const struct spyre_prog_stream *stream = &prog->streams[step->first_stream];

		for (i = 0; i < step->num_streams && stream[i].core < index; i++)
			;
		if (i < step->num_streams && stream[i].core == index)
			run_stream(run, &stream[i], lx, worker);
	}
	if (run->borrow)
		__atomic_fetch_and(&run->borrowed, ~(1u << slot), __ATOMIC_RELEASE);
}

/* Runs a phase, or a group that starts with it; returns the number of phases. */
static u32 run_phases(struct run *run, u32 index, u32 phases, struct spyre_worker *self)
{
	const struct spyre_exec *x = run->x;
	struct spyre_host *host = x->host;

	run->phase = &x->prog->steps[index];
	run->phases = phases;
	if (phases > 1)
		host->parallel(host, self, x->prog->header->num_cores, run_core, run);
	else if (run->phase->num_streams == 1)
		run_phase_stream(run, 0, self);
	else
		host->parallel(host, self, run->phase->num_streams, run_phase_stream, run);
	if (host->should_stop && host->should_stop(host, x->job))
		spyre_stop_cancel(&run->stop);
	return phases;
}

/* Returns the number of phases that form a group from step @index on. */
static u32 group_at(const struct run *run, u32 index, struct spyre_worker *self)
{
	return run->depth ? 1 : spyre_phase_group(run->x, index, self->scratch);
}

/* Returns the index of the next step. */
static u32 end_loop(struct run *run, u32 step)
{
	u32 level = run->depth - 1;
	u32 begin = run->begin[level];

	if (++run->iter[level] < run->x->prog->steps[begin].count)
		return begin + 1;
	run->iter[level] = 0;
	run->depth--;
	return step + 1;
}

enum spyre_stop spyre_card_exec(struct spyre_exec *x, struct spyre_worker *self)
{
	const struct spyre_prog_header *h = x->prog->header;
	struct run run = { .x = x };
	u32 i = 0, phases = 0;

	if (h->num_steps && x->prog->steps[0].kind == SPYRE_STEP_PHASE)
		phases = group_at(&run, 0, self);
	/*
	 * If one group is the whole program, no scratchpad has to keep data between groups;
	 * but data between programs stays with its core.
	 */
	run.borrow = h->lx_bytes && !h->lx_kept && phases > 1 && phases == h->num_steps;
	if (h->lx_bytes && !run.borrow)
		x->host->parallel(x->host, self, h->num_cores, clear_lx, &run);
	while (i < h->num_steps && !spyre_stopped(&run.stop)) {
		const struct spyre_prog_step *step = &x->prog->steps[i];

		switch (step->kind) {
		case SPYRE_STEP_PHASE:
			if (i)
				phases = group_at(&run, i, self);
			i += run_phases(&run, i, phases, self);
			break;
		case SPYRE_STEP_LOOP:
			run.begin[run.depth] = i++;
			run.iter[run.depth++] = 0;
			break;
		default:
			i = end_loop(&run, i);
		}
		/* Empty loops and empty phases must also poll. */
		if (++run.quiet == QUIET_STEPS) {
			run.quiet = 0;
			poll(&run);
		}
	}
	return run.stop;
}
