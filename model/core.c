// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A core: runs a stream of instructions, in order.
 */
#include "core.h"

bool spyre_stopped(const u32 *stop)
{
	return __atomic_load_n(stop, __ATOMIC_RELAXED);
}

void spyre_stop_cancel(u32 *stop)
{
	u32 running = SPYRE_STOP_NONE;

	__atomic_compare_exchange_n(stop, &running, SPYRE_STOP_CANCELLED, false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void section_close(struct spyre_section *s)
{
	if (s->open && s->host->fpu_end)
		s->host->fpu_end(s->host);
	s->open = false;
}

bool spyre_section_count(struct spyre_section *s, u64 cost)
{
	if (s->used + cost > s->host->unit->budget) {
		section_close(s);
		s->used = 0;
		if (s->host->relax)
			s->host->relax(s->host);
		if (s->host->should_stop && s->host->should_stop(s->host, s->job))
			spyre_stop_cancel(s->stop);
		if (spyre_stopped(s->stop))
			return false;
	}
	s->used += cost;
	return true;
}

bool spyre_section_enter(struct spyre_section *s, u64 cost)
{
	if (!spyre_section_count(s, cost))
		return false;
	if (!s->open && s->host->fpu_begin)
		s->host->fpu_begin(s->host);
	s->open = true;
	return true;
}

void spyre_section_leave(struct spyre_section *s)
{
	section_close(s);
}

u8 *spyre_core_base(const struct spyre_core *core, const struct spyre_view *view)
{
	u64 offset = view->offset;
	u32 i;

	for (i = 0; i < SPYRE_MAX_LOOPS; i++)
		offset += view->loop_stride[i] * core->iter[i];
	if (view->operand < SPYRE_MAX_OPERANDS)
		return core->x->operand[view->operand] + offset;
	if (view->operand == SPYRE_VIEW_LX)
		return core->lx + offset;
	return core->x->lx[view->operand ^ SPYRE_VIEW_RING] + offset;
}

void spyre_walk_start(struct spyre_walk *w, const struct spyre_core *core,
		      const struct spyre_instr *in)
{
	const struct spyre_view *view = spyre_instr_views(in);
	u32 i;

	memset(w, 0, sizeof(*w));
	w->num_views = in->num_views;
	for (i = 0; i < w->num_views; i++)
		w->p[i] = spyre_core_base(core, &view[i]);
	if (in->func == SPYRE_FUNC_MASKBYINDEX)
		w->coord = in->imm[1];
}

void spyre_walk_add(struct spyre_walk *w, const struct spyre_instr *in, u32 d)
{
	const struct spyre_view *view = spyre_instr_views(in);
	u64 coord = spyre_coord_stride(in, d);
	u32 count = in->count[d];
	u32 n = w->num_dims;
	bool merge;
	u32 i;

	if (count == 1)
		return;
	merge = n && w->coord_stride[n - 1] == coord * count;
	for (i = 0; merge && i < w->num_views; i++)
		merge = w->stride[n - 1][i] == view[i].stride[d] * count;
	if (merge && (u64)w->count[n - 1] * count <= 0x7fffffff) {
		n--;
		count *= w->count[n];
	}
	w->count[n] = count;
	for (i = 0; i < w->num_views; i++)
		w->stride[n][i] = view[i].stride[d];
	w->coord_stride[n] = coord;
	w->num_dims = n + 1;
}

u32 spyre_walk_take_inner(struct spyre_walk *w, u64 stride[SPYRE_MAX_VIEWS])
{
	memset(stride, 0, SPYRE_MAX_VIEWS * sizeof(*stride));
	if (!w->num_dims)
		return 1;
	w->num_dims--;
	memcpy(stride, w->stride[w->num_dims], SPYRE_MAX_VIEWS * sizeof(*stride));
	return w->count[w->num_dims];
}

bool spyre_walk_next(struct spyre_walk *w)
{
	u32 d = w->num_dims;
	u32 i;

	while (d--) {
		if (++w->at[d] < w->count[d]) {
			for (i = 0; i < w->num_views; i++)
				w->p[i] += w->stride[d][i];
			w->coord += w->coord_stride[d];
			return true;
		}
		w->at[d] = 0;
		for (i = 0; i < w->num_views; i++)
			w->p[i] -= w->stride[d][i] * (w->count[d] - 1);
		w->coord -= w->coord_stride[d] * (w->count[d] - 1);
	}
	return false;
}

static bool run_instr(struct spyre_core *core, const struct spyre_instr *in)
{
	switch (in->opcode) {
	case SPYRE_OP_MOVE:
		return spyre_core_move(core, in);
	case SPYRE_OP_GATHER:
	case SPYRE_OP_SCATTER:
		return spyre_core_indirect(core, in);
	case SPYRE_OP_SFU:
	case SPYRE_OP_INT:
		return spyre_core_sfu(core, in);
	case SPYRE_OP_REDUCE:
		return spyre_core_reduce(core, in);
	case SPYRE_OP_PT:
		return spyre_core_pt(core, in);
	case SPYRE_OP_TOPK:
		return spyre_core_topk(core, in);
	default:
		return spyre_core_restick(core, in);
	}
}

bool spyre_core_run(struct spyre_core *core, const struct spyre_prog_stream *stream)
{
	const struct spyre_instr *in = (const void *)(core->x->prog->instrs + stream->offset);
	bool go = true;
	u32 i;

	for (i = 0; go && i < stream->num_instrs; i++) {
		go = spyre_section_count(&core->section, spyre_cost_ns(core, SPYRE_CALL_NS)) &&
		     run_instr(core, in);
		in = spyre_instr_next(in);
	}
	spyre_section_leave(&core->section);
	return go;
}
