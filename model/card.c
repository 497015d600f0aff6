// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The card: runs the steps of a verified program.  Phases are barriers; the
 * streams of a phase go to whatever threads the host has.
 */
#include "core.h"

#define LX_CHUNK (128u << 10)	/* of LX, cleared between two polls */
#define QUIET_STEPS 64u		/* between two polls; streams poll for themselves */

struct run {
	const struct spyre_exec *x;
	u32 turn[SPYRE_MAX_LOOPS];
	u32 begin[SPYRE_MAX_LOOPS];	/* step index of each open loop */
	u32 depth;
	u32 first_stream;		/* of the phase that is running */
	u32 quiet;			/* steps since the last poll */
	u32 stop;
};

/* Between sections: lets others run, and asks whether to stop. */
static void poll(struct run *run)
{
	struct spyre_host *host = run->x->host;

	if (host->relax)
		host->relax(host);
	if (host->should_stop && host->should_stop(host, run->x->job))
		__atomic_store_n(&run->stop, 1, __ATOMIC_RELAXED);
}

static void run_stream(void *arg, u32 index, struct spyre_worker *worker)
{
	struct run *run = arg;
	const struct spyre_exec *x = run->x;
	const struct spyre_prog_stream *stream = &x->prog->streams[run->first_stream + index];
	struct spyre_core core = {
		.x = x,
		.worker = worker,
		.unit = x->host->unit,
		.index = stream->core,
		.turn = run->turn,
		.section = { .host = x->host, .job = x->job, .stop = &run->stop },
	};

	if (!spyre_stopped(&run->stop))
		spyre_core_run(&core, stream);
}

/* Results must not depend on what an earlier program left in the LX. */
static void clear_lx(void *arg, u32 index, struct spyre_worker *worker)
{
	struct run *run = arg;
	u32 bytes = run->x->prog->header->lx_bytes;
	u32 i, n;

	for (i = 0; i < bytes && !spyre_stopped(&run->stop); i += n) {
		n = spyre_min(bytes - i, LX_CHUNK);
		memset(run->x->lx[index] + i, 0, n);
		poll(run);
	}
}

static void run_phase(struct run *run, const struct spyre_prog_step *step,
		      struct spyre_worker *self)
{
	struct spyre_host *host = run->x->host;

	run->first_stream = step->first_stream;
	if (step->num_streams == 1)
		run_stream(run, 0, self);
	else
		host->parallel(host, self, step->num_streams, run_stream, run);
	if (host->should_stop && host->should_stop(host, run->x->job))
		__atomic_store_n(&run->stop, 1, __ATOMIC_RELAXED);
}

/* Returns the index of the next step. */
static u32 end_loop(struct run *run, u32 step)
{
	u32 level = run->depth - 1;
	u32 begin = run->begin[level];

	if (++run->turn[level] < run->x->prog->steps[begin].count)
		return begin + 1;
	run->turn[level] = 0;
	run->depth--;
	return step + 1;
}

enum spyre_stop spyre_card_exec(struct spyre_exec *x, struct spyre_worker *self)
{
	const struct spyre_prog_header *h = x->prog->header;
	struct run run = { .x = x };
	u32 i = 0;

	if (h->lx_bytes)
		x->host->parallel(x->host, self, h->num_cores, clear_lx, &run);
	while (i < h->num_steps && !spyre_stopped(&run.stop)) {
		const struct spyre_prog_step *step = &x->prog->steps[i];

		switch (step->kind) {
		case SPYRE_STEP_PHASE:
			run_phase(&run, step, self);
			i++;
			break;
		case SPYRE_STEP_LOOP:
			run.begin[run.depth] = i++;
			run.turn[run.depth++] = 0;
			break;
		default:
			i = end_loop(&run, i);
		}
		/* Loops around nothing, and phases of nothing, turn too. */
		if (++run.quiet == QUIET_STEPS) {
			run.quiet = 0;
			poll(&run);
		}
	}
	return spyre_stopped(&run.stop) ? SPYRE_STOP_CANCELLED : SPYRE_STOP_NONE;
}
