// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Finds phases that need no barriers between them: no core touches data that
 * another core wrote, or writes data that another one touched. A core then runs its
 * streams of all these phases in a row, while its data is still in the host's
 * caches.
 *
 * The proof uses intervals: the bytes of an operand from the first to the last that
 * a core reaches. It is repeated at each launch, since the caller may pass one
 * tensor for operands that are distinct in the program.
 */
#include "core.h"
#include "verify.h"

#define MIN_WORK 8192u		/* steps of a program below which the proof does not pay */
#define MAX_VIEWS 8192u		/* that the proof of a group inspects */

struct interval {
	u64 low, high;		/* high: the end; empty if not above low */
};

struct uses {
	struct interval all[SPYRE_MAX_OPERANDS][SPYRE_MAX_CORES];
	struct interval written[SPYRE_MAX_OPERANDS][SPYRE_MAX_CORES];
};

static_assert(sizeof(struct uses) <= SPYRE_SCRATCH_BYTES, "uses fit the scratch");

/* Returns true if two operands share memory that one of them writes. */
static bool operands_overlap(const struct spyre_exec *x)
{
	const struct spyre_prog_operand *o = x->prog->operands;
	u32 i, j;

	for (i = 0; i < x->prog->header->num_operands; i++)
		for (j = 0; j < i; j++)
			if ((o[i].flags | o[j].flags) & SPYRE_OPERAND_WRITE &&
			    x->operand[i] < x->operand[j] + o[j].extent &&
			    x->operand[j] < x->operand[i] + o[i].extent)
				return true;
	return false;
}

static struct interval view_interval(const struct spyre_instr *in, u32 index)
{
	const struct spyre_view *view = spyre_instr_views(in) + index;
	struct interval at = { view->offset, view->offset + spyre_view_bytes(in, view, index) };
	u32 d;

	for (d = 0; d < SPYRE_MAX_DIMS; d++)
		at.high += (u64)(spyre_view_count(in, view, index, d) - 1) * view->stride[d];
	return at;
}

static bool meets_others(const struct interval *of_core, u32 core, struct interval at)
{
	u32 c;

	for (c = 0; c < SPYRE_MAX_CORES; c++)
		if (c != core && at.low < of_core[c].high && of_core[c].low < at.high)
			return true;
	return false;
}

static void join(struct interval *to, struct interval at)
{
	if (to->low >= to->high) {
		*to = at;
		return;
	}
	to->low = spyre_min(to->low, at.low);
	to->high = to->high > at.high ? to->high : at.high;
}

enum visit { VISIT_CHECK, VISIT_JOIN };

/* Checks a stream against the uses of earlier phases, or adds it to them. */
static bool visit_stream(const struct spyre_exec *x, const struct spyre_prog_stream *stream,
			 struct uses *uses, enum visit visit, u32 *views)
{
	const struct spyre_instr *in = (const void *)(x->prog->instrs + stream->offset);
	u32 i, v;

	for (i = 0; i < stream->num_instrs; i++, in = spyre_instr_next(in)) {
		for (v = 0; v < in->num_views; v++) {
			u32 operand = spyre_instr_views(in)[v].operand;
			bool write = spyre_view_access(in, v) & SPYRE_OPERAND_WRITE;
			struct interval at;

			if (operand == SPYRE_VIEW_LX)
				continue;
			/* A core may read a peer's LX only after a barrier. */
			if (operand >= SPYRE_MAX_OPERANDS || ++*views > MAX_VIEWS)
				return false;
			at = view_interval(in, v);
			if (visit == VISIT_JOIN) {
				join(&uses->all[operand][stream->core], at);
				if (write)
					join(&uses->written[operand][stream->core], at);
			} else if (meets_others(write ? uses->all[operand] :
							uses->written[operand],
						stream->core, at)) {
				return false;
			}
		}
	}
	return true;
}

static bool visit_phase(const struct spyre_exec *x, const struct spyre_prog_step *step,
			struct uses *uses, enum visit visit, u32 *views)
{
	u32 i;

	for (i = 0; i < step->num_streams; i++)
		if (!visit_stream(x, &x->prog->streams[step->first_stream + i], uses, visit,
				  views))
			return false;
	return true;
}

u32 spyre_phase_group(const struct spyre_exec *x, u32 first, void *scratch)
{
	const struct spyre_prog_step *step = &x->prog->steps[first];
	u32 left = x->prog->header->num_steps - first;
	struct uses *uses = scratch;
	u32 n = 0, views = 0;

	if (left < 2 || step[1].kind != SPYRE_STEP_PHASE || x->prog->work < MIN_WORK ||
	    operands_overlap(x))
		return 1;
	memset(uses, 0, sizeof(*uses));
	while (n < left && step[n].kind == SPYRE_STEP_PHASE &&
	       visit_phase(x, &step[n], uses, VISIT_CHECK, &views) &&
	       visit_phase(x, &step[n], uses, VISIT_JOIN, &views))
		n++;
	return n ? n : 1;
}
