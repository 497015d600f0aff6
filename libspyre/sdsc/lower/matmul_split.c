// SPDX-License-Identifier: MIT
/*
 * Products whose K is divided over cores, which then share a result.
 *
 * Floats: each core writes its sums to a tile in fp32; in a second phase the first
 * of them adds the tiles of the others over the ring, in core order.
 *
 * Integers: the SFU adds in fp32, so only the PT adds them exactly. The result is
 * cut into one part per core; in each phase a core fetches the partial sums of
 * another part from the previous core and adds its own products, until each part
 * has passed all cores.
 */
#include <string.h>

#include "libspyre/sdsc/lower/lower_matmul.h"
#include "libspyre/sdsc/lower/matmul_pt.h"
#include "libspyre/sdsc/lower/matmul_split.h"

/* The cores that share a result, by core index. */
struct group {
	uint32_t count, place;
	uint32_t core[SPYRE_MAX_CORES];
};

static void group_of(const struct matmul *m, const struct ir_sdsc *s, uint32_t core,
		     struct group *g)
{
	g->count = 0;
	g->place = 0;
	for (uint32_t c = 0; c < s->num_cores; c++) {
		if (m->leader[c] != m->leader[core])
			continue;
		if (c == core)
			g->place = g->count;
		g->core[g->count++] = c;
	}
}

/* Opens a phase, except for the first one, which the SDSC begins with. */
static spyre_status next_phase(struct lower *l, struct matmul *m)
{
	if (m->phase_used)
		return encoder_phase(l->encoder);
	m->phase_used = true;
	return SPYRE_SUCCESS;
}

static spyre_status begin_core(struct lower *l, struct matmul *m, uint32_t core)
{
	m->core = core;
	return encoder_stream(l->encoder, l->sdsc->core[core]);
}

/* Floats */

static uint64_t need_tile(struct lower *l, void *arg, const struct box *box)
{
	struct ir_tensor tile;

	return matmul_tile(l, arg, box, &tile);
}

/* Adds the tiles of the others to the leader's; the last sum is the result. */
static spyre_status add_tiles(struct lower *l, const struct matmul *m, const struct group *g,
			      const struct box *box, const struct ir_tensor *tile)
{
	struct stage stage = { .in = { .opcode = SPYRE_OP_SFU, .func = SPYRE_FUNC_ADD,
				       .num_views = 3 } };
	spyre_status status = SPYRE_SUCCESS;

	stage.operand[0] = stage.operand[1] = stage.operand[2] = tile_operand(l, tile, 0);
	for (uint32_t i = 1; i < g->count && !status; i++) {
		stage.operand[2].at.operand =
			(uint16_t)(SPYRE_VIEW_RING | l->sdsc->core[g->core[i]]);
		if (i == g->count - 1)
			stage.operand[0] = tensor_operand(l, m->index[MATMUL_C], m->core);
		status = stage_emit(l, &stage, box);
	}
	return status;
}

static spyre_status sum_floats(struct lower *l, void *arg, const struct box *box)
{
	struct matmul *m = arg;
	spyre_status status = next_phase(l, m);
	struct stage_operand to;
	struct ir_tensor tile;
	struct group g;

	matmul_tile(l, m, box, &tile);
	to = tile_operand(l, &tile, 0);
	for (uint32_t c = 0; c < l->sdsc->num_cores && !status; c++) {
		group_of(m, l->sdsc, c, &g);
		status = begin_core(l, m, c);
		if (!status)
			status = g.count == 1 ? matmul_alone(l, m, box) :
						matmul_emit(l, m, box, &to, false);
	}
	if (!status)
		status = next_phase(l, m);
	for (uint32_t c = 0; c < l->sdsc->num_cores && !status; c++) {
		group_of(m, l->sdsc, c, &g);
		if (g.count == 1 || g.place)
			continue;
		status = begin_core(l, m, c);
		if (!status)
			status = add_tiles(l, m, &g, box, &tile);
	}
	return status;
}

/* Integers */

/* Cuts part @i of @count from a box, along its longest dim; false if it is empty. */
static bool part_of(const struct lower *l, const struct matmul *m, const struct box *box,
		    uint32_t i, uint32_t count, struct box *part)
{
	int64_t units = 0, unit = 1, first, last;
	uint32_t dim = m->n;

	for (uint32_t d = 0; d < l->sdsc->num_dims; d++) {
		int64_t u = d == m->n ? 64 : m->paired && d == m->rows ? 2 : 1;

		if (d != m->k && (box->len[d] + u - 1) / u > units) {
			units = (box->len[d] + u - 1) / u;
			unit = u;
			dim = d;
		}
	}
	first = units * i / count * unit;
	last = units * (i + 1) / count * unit;
	*part = *box;
	part->start[dim] += first;
	part->len[dim] = (last < box->len[dim] ? last : box->len[dim]) - first;
	return part->len[dim] > 0;
}

/* Bytes of the largest part's tile. Two alternate: one is read while one is written. */
static uint64_t part_bytes(struct lower *l, const struct matmul *m, const struct box *box)
{
	uint64_t most = 0;
	struct group g;

	for (uint32_t c = 0; c < l->sdsc->num_cores; c++) {
		group_of(m, l->sdsc, c, &g);
		for (uint32_t i = 0; i < g.count; i++) {
			struct ir_tensor tile;
			struct box part;
			uint64_t bytes = 0;

			if (part_of(l, m, box, i, g.count, &part))
				bytes = matmul_tile(l, m, &part, &tile);
			most = bytes > most ? bytes : most;
		}
	}
	return most;
}

static uint64_t need_parts(struct lower *l, void *arg, const struct box *box)
{
	return 2 * part_bytes(l, arg, box);
}

/* Emits the work of a core in phase @phase. */
static spyre_status emit_ring_phase(struct lower *l, const struct matmul *m, const struct group *g,
			     const struct box *part, uint32_t phase, uint64_t bytes)
{
	struct stage fetch = { .in = { .opcode = SPYRE_OP_MOVE, .num_views = 2 } };
	uint32_t before = g->core[(g->place + g->count - 1) % g->count];
	struct stage_operand to;
	struct ir_tensor tile;
	struct box even = *part;
	spyre_status status = SPYRE_SUCCESS;

	matmul_tile(l, m, part, &tile);
	to = tile_operand(l, &tile, phase % 2 * bytes);
	if (phase) {
		if (m->paired)		/* the odd row's pair is summed, too */
			even.len[m->rows] += even.len[m->rows] & 1;
		fetch.operand[0] = to;
		fetch.operand[1] = tile_operand(l, &tile, (phase + 1) % 2 * bytes);
		fetch.operand[1].at.operand = (uint16_t)(SPYRE_VIEW_RING | l->sdsc->core[before]);
		status = stage_emit(l, &fetch, &even);
	}
	if (!status)
		status = matmul_emit(l, m, part, &to, phase > 0);
	if (!status && phase == g->count - 1)
		status = matmul_store(l, m, part, &to);
	return status;
}

static spyre_status sum_integers(struct lower *l, void *arg, const struct box *box)
{
	struct matmul *m = arg;
	uint64_t bytes = part_bytes(l, m, box);
	spyre_status status = SPYRE_SUCCESS;
	uint32_t phases = 1;
	struct group g;

	for (uint32_t phase = 0; phase < phases && !status; phase++) {
		status = next_phase(l, m);
		for (uint32_t c = 0; c < l->sdsc->num_cores && !status; c++) {
			struct box part;

			group_of(m, l->sdsc, c, &g);
			phases = g.count > phases ? g.count : phases;
			if (phase >= g.count || !part_of(l, m, box, (g.place + g.count - phase) %
							g.count, g.count, &part))
				continue;
			status = begin_core(l, m, c);
			if (!status)
				status = g.count == 1 ? matmul_alone(l, m, box) :
					 emit_ring_phase(l, m, &g, &part, phase, bytes);
		}
	}
	return status;
}

spyre_status matmul_split(struct lower *l, struct matmul *m)
{
	bool whole = m->sum == SPYRE_FMT_IEEE_INT32;
	struct blocks blocks = { .need = whole ? need_parts : need_tile,
				 .emit = whole ? sum_integers : sum_floats, .arg = m };
	struct box box;

	box_share(l->sdsc, &box);
	for (uint32_t d = 0; d < l->sdsc->num_dims; d++)
		blocks.align[d] = d == m->k ? 0 : d == m->n ? 64 :
				  m->paired && d == m->rows ? 2 : 1;
	return box_blocks(l, &blocks, &box);
}
