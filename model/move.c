// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The load/store unit: raw moves between LPDDR5, LX and ring, also to and from
 * addresses that indices name, and transposes of tiles.
 */
#include "core.h"

/* bytes of one piece of a move, which takes some microseconds */
#define MOVE_CHUNK (64u << 10)

/* An index and the move to or from its address, both of which may miss all caches. */
#define INDEX_NS 150u

/* A tile of 16 bits whose rows lie in different pages. */
#define TILE_NS 2500u

/* Upper bound of the time of a move of @points and @bytes. */
static u64 move_ns(u64 points, u64 bytes)
{
	return points * 8 + bytes / 4 + SPYRE_CALL_NS;
}

/* Moves @bytes that are contiguous on both sides. */
static bool move_flat(struct spyre_core *core, u8 *to, const u8 *from, u64 bytes)
{
	u64 i, n;

	for (i = 0; i < bytes; i += n) {
		n = spyre_min(MOVE_CHUNK, bytes - i);
		if (!spyre_section_count(&core->section, spyre_cost_ns(core, move_ns(1, n))))
			return false;
		memmove(to + i, from + i, n);
	}
	return true;
}

/* Moves @count points of @bytes. */
static bool move_row(struct spyre_core *core, const struct spyre_walk *walk, const u64 *stride,
		     u64 bytes, u64 count)
{
	u64 chunk = MOVE_CHUNK / (bytes + 32);
	u64 i, n, end;

	for (i = 0; i < count; i = end) {
		end = spyre_min(count, i + chunk);
		if (!spyre_section_count(&core->section,
					 spyre_cost_ns(core, move_ns(end - i, (end - i) * bytes))))
			return false;
		for (n = i; n < end; n++)
			memmove(walk->p[0] + n * stride[0], walk->p[1] + n * stride[1], bytes);
	}
	return true;
}

/* Moves @count points for each of the walk's, whose inner dim the caller has taken. */
static bool move_walk(struct spyre_core *core, struct spyre_walk *walk, const u64 *stride,
		      u64 bytes, u64 count)
{
	bool go;

	do {
		if (stride[0] == bytes && stride[1] == bytes)
			go = move_flat(core, walk->p[0], walk->p[1], bytes * count);
		else
			go = move_row(core, walk, stride, bytes, count);
	} while (go && spyre_walk_next(walk));
	return go;
}

bool spyre_core_move(struct spyre_core *core, const struct spyre_instr *in)
{
	u64 bytes = spyre_view_bytes(in, spyre_instr_views(in), 0);
	u64 stride[SPYRE_MAX_VIEWS];
	struct spyre_walk walk;
	u64 count;
	u32 i;

	spyre_walk_start(&walk, core, in);
	for (i = 0; i < in->num_dims; i++)
		spyre_walk_add(&walk, in, i);
	count = spyre_walk_take_inner(&walk, stride);
	return move_walk(core, &walk, stride, bytes, count);
}

/* Number of outer dims that some index depends on, or replaces. */
static u32 indexed_dims(const struct spyre_instr *in)
{
	const struct spyre_view *view = spyre_instr_views(in);
	u32 n, i;

	for (n = in->num_dims; n; n--) {
		if (in->reduce_mask & 1u << (n - 1))
			break;
		for (i = 2; i < in->num_views; i++)
			if (view[i].stride[n - 1])
				return n;
	}
	return n;
}

/* Adds a dim along which the indirect view moves by its index alone. */
static void add_indirect(struct spyre_walk *w, const struct spyre_instr *in, u32 d)
{
	const struct spyre_view *view = spyre_instr_views(in);
	u32 i;

	if (in->count[d] == 1)
		return;
	w->count[w->num_dims] = in->count[d];
	for (i = 0; i < w->num_views; i++)
		w->stride[w->num_dims][i] = spyre_dim_indirect(in, i, d) ? 0 : view[i].stride[d];
	w->num_dims++;
}

/*
 * Adds the indices of a point, each times its stride, to *offset; stops the job if one
 * is not below its extent.
 */
static bool add_indices(struct spyre_core *core, const struct spyre_instr *in,
			const struct spyre_walk *walk, u64 *offset)
{
	const struct spyre_view *base = spyre_instr_views(in) + spyre_indirect_view(in);
	u32 d, k = 0;

	for (d = 0; d < in->num_dims; d++) {
		u64 index, below;

		if (!(in->reduce_mask & 1u << d))
			continue;
		/* Loaded once: the index may change between its check and its use. */
		index = spyre_le32(__atomic_load_n((const u32 *)walk->p[2 + k], __ATOMIC_RELAXED));
		if (index >= in->imm[k]) {
			__atomic_store_n(core->section.stop, SPYRE_STOP_INDEX, __ATOMIC_RELAXED);
			return false;
		}
		/*
		 * A processor may run ahead of the check with an index that fails it, so the
		 * index is masked by arithmetic that the compiler cannot see through.
		 */
		below = index - in->imm[k];
		__asm__ volatile("" : "+r"(below));
		*offset += (index & (u64)((s64)below >> 63)) * base->stride[d];
		k++;
	}
	return true;
}

bool spyre_core_indirect(struct spyre_core *core, const struct spyre_instr *in)
{
	u64 bytes = spyre_view_bytes(in, spyre_instr_views(in), 0);
	u32 base = spyre_indirect_view(in), outer = indexed_dims(in), d;
	struct spyre_walk walk, piece;
	u64 stride[SPYRE_MAX_VIEWS], count;

	spyre_walk_start(&walk, core, in);
	for (d = 0; d < outer; d++) {
		if (in->reduce_mask & 1u << d)
			add_indirect(&walk, in, d);
		else
			spyre_walk_add(&walk, in, d);
	}
	spyre_walk_start(&piece, core, in);
	piece.num_views = 2;
	for (; d < in->num_dims; d++)
		spyre_walk_add(&piece, in, d);
	count = spyre_walk_take_inner(&piece, stride);
	do {
		u64 offset = 0;

		if (!spyre_section_count(&core->section,
					 spyre_cost_ns(core, INDEX_NS * (in->num_views - 2))) ||
		    !add_indices(core, in, &walk, &offset))
			return false;
		piece.p[0] = walk.p[0];
		piece.p[1] = walk.p[1];
		piece.p[base] += offset;
		if (!move_walk(core, &piece, stride, bytes, count))
			return false;
	} while (spyre_walk_next(&walk));
	return true;
}

/* Transposes tiles of 1- and 4-byte elements one by one; the unit does 16 bits. */
static void transpose_bytes(u8 *out, u64 out_stride, const u8 *in, u64 in_stride, u32 rows)
{
	u32 i, j;

	for (i = 0; i < 128; i++)
		for (j = 0; j < rows; j++)
			out[j * out_stride + i] = in[i * in_stride + j];
}

static void transpose_words(u8 *out, u64 out_stride, const u8 *in, u64 in_stride)
{
	u32 i, j;

	for (i = 0; i < 32; i++)
		for (j = 0; j < 32; j++)
			memcpy(out + j * out_stride + i * 4, in + i * in_stride + j * 4, 4);
}

static bool transpose_tile(struct spyre_core *core, u32 bytes, const struct spyre_walk *walk,
			   u64 out_stride, u64 in_stride)
{
	u32 j;

	switch (bytes) {
	case 1:
		/* Works in strips, which take some microseconds each. */
		for (j = 0; j < 128; j += 32) {
			if (!spyre_section_count(&core->section, spyre_cost_ns(core, 8000)))
				return false;
			transpose_bytes(walk->p[0] + j * out_stride, out_stride, walk->p[1] + j,
					in_stride, 32);
		}
		return true;
	case 2:
		if (!spyre_section_enter(&core->section, spyre_cost_ns(core, TILE_NS)))
			return false;
		core->unit->transpose(walk->p[0], out_stride, walk->p[1], in_stride);
		return true;
	default:
		if (!spyre_section_count(&core->section, spyre_cost_ns(core, 2000)))
			return false;
		transpose_words(walk->p[0], out_stride, walk->p[1], in_stride);
		return true;
	}
}

bool spyre_core_restick(struct spyre_core *core, const struct spyre_instr *in)
{
	const struct spyre_view *view = spyre_instr_views(in);
	u32 bytes = spyre_fmt_bytes(view->format);
	struct spyre_walk walk;
	u32 d;

	spyre_walk_start(&walk, core, in);
	for (d = 0; d < 4; d++)
		spyre_walk_add(&walk, in, d);
	do {
		if (!transpose_tile(core, bytes, &walk, view[0].stride[5], view[1].stride[4]))
			return false;
	} while (spyre_walk_next(&walk));
	return true;
}
