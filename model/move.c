// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The load/store unit: raw moves between LPDDR5, LX and ring, and the
 * re-layout of tiles.
 */
#include "core.h"

/* Bytes moved between two looks at should_stop. */
#define MOVE_CHUNK (1u << 20)

bool spyre_core_move(struct spyre_core *core, const struct spyre_instr *in)
{
	u64 bytes = (u64)in->lanes * spyre_fmt_bytes(spyre_instr_views(in)->format);
	u64 stride[SPYRE_MAX_VIEWS], cost = core->unit->budget;
	struct spyre_walk walk;
	u64 i, n, count, done = 0;

	spyre_walk_start(&walk, core, in);
	for (i = 0; i < in->num_dims; i++)
		spyre_walk_add(&walk, in, i);
	count = spyre_walk_take_inner(&walk, stride);
	if (stride[0] == bytes && stride[1] == bytes && bytes * count <= MOVE_CHUNK) {
		bytes *= count;
		count = 1;
	}
	do {
		for (i = 0; i < count; i += n) {
			u64 end = spyre_min(count, i + 4096);

			for (n = 0; i + n < end; n++)
				memmove(walk.p[0] + (i + n) * stride[0],
					walk.p[1] + (i + n) * stride[1], bytes);
			done += n * bytes;
			if (done < MOVE_CHUNK)
				continue;
			done = 0;
			if (!spyre_section_enter(&core->section, cost))
				return false;
			spyre_section_leave(&core->section);
		}
	} while (spyre_walk_next(&walk));
	return true;
}

bool spyre_core_restick(struct spyre_core *core, const struct spyre_instr *in)
{
	const struct spyre_view *view = spyre_instr_views(in);
	struct spyre_walk walk;
	u32 d;

	spyre_walk_start(&walk, core, in);
	for (d = 0; d < 4; d++)
		spyre_walk_add(&walk, in, d);
	do {
		if (!spyre_section_enter(&core->section, 64 * 64 * 4))
			return false;
		core->unit->transpose(walk.p[0], view[0].stride[5], walk.p[1], view[1].stride[4]);
	} while (spyre_walk_next(&walk));
	return true;
}
