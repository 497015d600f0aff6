// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Finds the largest or smallest elements of a search, in order. The unit widens
 * elements to fp32; they are compared as integers with the order of the numbers. A
 * heap in the worker's scratch holds the ranked elements, with the worst of them at
 * its root.
 */
#include "core.h"

#define DECODE 1024u		/* elements widened at a time */
#define STEP_NS 4u		/* time to compare an element, or to move it by one level */
#define STEPS 1024u		/* accounted at a time */

struct scratch {
	u64 heap[SPYRE_MAX_RANKS];
	u32 fp32[DECODE];
};

static_assert(sizeof(struct scratch) <= SPYRE_SCRATCH_BYTES, "the heap fits the scratch");

struct search {
	struct spyre_core *core;
	u64 *heap;
	u32 size;
	u32 ranks;		/* capacity of the heap */
	u32 flip;		/* ~0: the smallest come first */
	u32 place;		/* of the next element */
	u32 steps;		/* not accounted yet */
};

/*
 * Larger keys come first: the number (a zero without its sign), then the place,
 * then the sign of a zero, which is never reached because places differ.
 */
static u64 key_of(const struct search *s, u32 bits)
{
	u32 magnitude = bits & 0x7fffffff, sign = bits >> 31;
	u32 order = sign ? ~bits : bits | 0x80000000;

	if (!magnitude)
		order = 0x80000000;
	else if (magnitude > 0x7f800000)
		order = ~0u;
	return (u64)(order ^ s->flip) << 32 | (u64)(SPYRE_MAX_PLACE - 1 - s->place) << 8 |
	       (magnitude ? 0 : sign);
}

static u32 value_of(const struct search *s, u64 key)
{
	u32 order = (u32)(key >> 32) ^ s->flip;

	if (order == ~0u)
		return 0x7fc00000;
	if (order == 0x80000000)
		return (u32)(key & 1) << 31;
	return order & 0x80000000 ? order ^ 0x80000000 : ~order;
}

/* Converts an integer below 2^24 to fp32. */
static u32 fp32_of(u32 x)
{
	u32 exponent = 127 + 23;

	if (!x)
		return 0;
	while (!(x & 0x800000)) {
		x <<= 1;
		exponent--;
	}
	return exponent << 23 | (x & 0x7fffff);
}

static u32 place_of(u64 key)
{
	return SPYRE_MAX_PLACE - 1 - ((u32)key >> 8);
}

/* Accounts the steps since the last call; returns false to stop. */
static bool settle(struct search *s)
{
	u64 cost = spyre_cost_ns(s->core, (u64)s->steps * STEP_NS);

	s->steps = 0;
	return spyre_section_count(&s->core->section, cost);
}

static void sink(struct search *s, u64 key)
{
	u32 at = 0, child;

	while ((child = 2 * at + 1) < s->size) {
		if (child + 1 < s->size && s->heap[child + 1] < s->heap[child])
			child++;
		if (key <= s->heap[child])
			break;
		s->heap[at] = s->heap[child];
		at = child;
		s->steps++;
	}
	s->heap[at] = key;
}

static void rise(struct search *s, u64 key)
{
	u32 at = s->size++, parent;

	while (at && key < s->heap[parent = (at - 1) / 2]) {
		s->heap[at] = s->heap[parent];
		at = parent;
		s->steps++;
	}
	s->heap[at] = key;
}

static bool take(struct search *s, const u32 *fp32, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++, s->place++) {
		u64 key = key_of(s, fp32[i]);

		s->steps++;
		if (s->size < s->ranks)
			rise(s, key);
		else if (key > s->heap[0])
			sink(s, key);
		if (s->steps >= STEPS && !settle(s))
			return false;
	}
	return settle(s);
}

/* Sorts the heap, best first. */
static bool sort(struct search *s)
{
	u32 size = s->size;

	while (s->size > 1) {
		u64 worst = s->heap[0], key = s->heap[--s->size];

		s->steps++;
		sink(s, key);
		s->heap[s->size] = worst;
		if (s->steps >= STEPS && !settle(s))
			return false;
	}
	s->size = size;
	return settle(s);
}

/* Searches a row of @count points, at most @left elements. */
static bool search_row(struct search *s, struct spyre_sfu_run *run, const u8 *from, u32 count,
		       u64 *left)
{
	struct spyre_core *core = s->core;
	u32 done, n;

	for (done = 0; done < count && *left; done += n) {
		n = spyre_min(DECODE / run->lanes, count - done);
		run->points = n;
		run->v[1].p = (u8 *)from + done * run->v[1].stride;
		if (!spyre_section_enter(&core->section,
					 (u64)n * spyre_tile_lanes(run->lanes) * 16 +
					 spyre_cost_ns(core, SPYRE_CALL_NS)))
			return false;
		core->unit->sfu(run);
		n = spyre_min(n, (*left + run->lanes - 1) / run->lanes);
		if (!take(s, (u32 *)run->v[0].p, spyre_min(*left, (u64)n * run->lanes)))
			return false;
		*left -= spyre_min(*left, (u64)n * run->lanes);
	}
	return true;
}

/* Writes the output point from the sorted heap. */
static bool store(struct search *s, const struct spyre_instr *in, u8 *out)
{
	struct spyre_core *core = s->core;
	u32 *fp32 = ((struct scratch *)core->worker->scratch)->fp32;
	struct spyre_sfu_run run = {
		.func = SPYRE_FUNC_IDENTITY,
		.lanes = in->lanes,
		.points = 1,
		.v[0] = { .p = out, .format = spyre_instr_views(in)->format },
		.v[1] = { .p = (u8 *)fp32, .format = SPYRE_FMT_SCRATCH_FP32 },
	};
	u32 i;

	for (i = 0; i < in->lanes; i++) {
		u32 rank = in->imm[0] + i;

		if (i >= in->imm[1] || rank >= s->size)
			fp32[i] = 0;
		else if (in->func == SPYRE_FUNC_TOPK_VALUE)
			fp32[i] = value_of(s, s->heap[rank]);
		else
			fp32[i] = fp32_of(place_of(s->heap[rank]) + in->imm[2]);
	}
	if (!spyre_section_enter(&core->section, in->lanes * 16 + spyre_cost_ns(core, 1000)))
		return false;
	core->unit->sfu(&run);
	return true;
}

/* Computes one point of the output; @inner walks its inputs. */
static bool search_point(struct search *s, const struct spyre_instr *in,
			 struct spyre_walk *inner, struct spyre_sfu_run *run, u32 count, u8 *out)
{
	u64 left = in->valid ? in->valid : SPYRE_MAX_PLACE;

	s->size = 0;
	s->place = 0;
	do {
		if (!search_row(s, run, inner->p[1], count, &left))
			return false;
	} while (left && spyre_walk_next(inner));
	memset(inner->at, 0, sizeof(inner->at));
	return sort(s) && store(s, in, out);
}

bool spyre_core_topk(struct spyre_core *core, const struct spyre_instr *in)
{
	const struct spyre_view *view = spyre_instr_views(in);
	struct scratch *scratch = core->worker->scratch;
	struct search s = {
		.core = core,
		.heap = scratch->heap,
		.ranks = in->imm[0] + in->imm[1],
		.flip = in->flags & SPYRE_INSTR_SMALLEST ? ~0u : 0,
	};
	struct spyre_sfu_run run = {
		.func = SPYRE_FUNC_IDENTITY,
		.lanes = in->lanes,
		.v[0] = {
			.p = (u8 *)scratch->fp32,
			.stride = in->lanes * 4,
			.format = SPYRE_FMT_SCRATCH_FP32,
		},
		.v[1].format = view[1].format,
	};
	struct spyre_walk outer, inner;
	u64 stride[SPYRE_MAX_VIEWS];
	u32 d, count;

	spyre_walk_start(&outer, core, in);
	inner = outer;
	for (d = 0; d < in->num_dims; d++)
		spyre_walk_add(in->reduce_mask & (1u << d) ? &inner : &outer, in, d);
	count = spyre_walk_take_inner(&inner, stride);
	run.v[1].stride = stride[1];
	do {
		memcpy(inner.p, outer.p, sizeof(inner.p));
		if (!search_point(&s, in, &inner, &run, count, outer.p[0]))
			return false;
	} while (spyre_walk_next(&outer));
	return true;
}
