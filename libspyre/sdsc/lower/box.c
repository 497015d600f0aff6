// SPDX-License-Identifier: MIT
/* Masks, and the boxes of visible elements: see box.h. */
#include "libspyre/sdsc/lower/box.h"

#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"

uint32_t box_visible(const struct ir_sdsc *s, uint32_t core, uint32_t dim, struct piece *piece)
{
	/* Not s->el, which a symbol may have cut. */
	int64_t origin = (int64_t)s->slice[core][dim] * (s->size[dim] / s->slices[dim]);
	int64_t end = origin + s->el[dim];
	int64_t at = origin;
	uint32_t n = 0;

	while (at < end) {
		int64_t next = end;
		bool masked = false;

		for (uint32_t i = 0; i < s->num_masks; i++) {
			const struct ir_mask *m = &s->mask[i];
			int64_t stop = m->start + m->length;

			if (m->dim != dim || stop <= at)
				continue;
			if (m->start <= at && (!masked || stop > next)) {
				masked = true;
				next = stop;
			} else if (!masked && m->start < next) {
				next = m->start;
			}
		}
		if (next > end)
			next = end;
		if (n && piece[n - 1].masked == masked)
			piece[n - 1].size += next - at;
		else
			piece[n++] = (struct piece){ at - origin, next - at, masked };
		at = next;
	}
	return n;
}

static bool add(struct cuts *cuts, uint32_t dim, int64_t start, int64_t size, bool masked)
{
	if (!size)
		return true;
	if (cuts->num[dim] == BOX_MAX_PIECES)
		return false;
	cuts->piece[dim][cuts->num[dim]++] = (struct piece){ start, size, masked };
	return true;
}

/* Cuts a piece into narrow sticks up to a wide boundary, whole wide sticks, and the rest. */
static bool cut_piece(struct cuts *cuts, uint32_t dim, const struct piece *p, int64_t narrow,
		      int64_t wide)
{
	int64_t at = p->start, end = p->start + p->size;

	while (at < end) {
		int64_t size = narrow - at % narrow;

		if (!(at % wide) && end - at >= wide)
			size = (end - at) / wide * wide;
		if (size > end - at)
			size = end - at;
		if (!add(cuts, dim, at, size, p->masked))
			return false;
		at += size;
	}
	return true;
}

bool box_cut(const struct ir_sdsc *s, uint32_t core, const struct ir_tensor *const *tensor,
	     uint32_t num_tensors, uint32_t lane_dim, uint32_t lanes, struct cuts *cuts)
{
	memset(cuts->num, 0, sizeof(cuts->num));
	memset(cuts->at, 0, sizeof(cuts->at));
	for (uint32_t d = 0; d < s->num_dims; d++) {
		struct piece visible[2 * IR_MAX_MASKS + 1];
		uint32_t n = box_visible(s, core, d, visible);
		int64_t narrow = d == lane_dim ? lanes : 256, wide = d == lane_dim ? lanes : 1;

		for (uint32_t i = 0; i < num_tensors; i++) {
			int64_t unit = tensor[i]->lanes;

			if (!lower_varies(tensor[i], d) || tensor[i]->stick != d)
				continue;
			wide = unit > wide ? unit : wide;
			narrow = unit < narrow ? unit : narrow;
		}
		for (uint32_t i = 0; i < n; i++)
			if (!(wide == 1 ? add(cuts, d, visible[i].start, visible[i].size,
					      visible[i].masked) :
					  cut_piece(cuts, d, &visible[i], narrow, wide)))
				return false;
	}
	return true;
}

bool box_limit(struct cuts *cuts, uint32_t dim, int64_t max)
{
	struct piece whole[BOX_MAX_PIECES];
	uint32_t n = cuts->num[dim];

	memcpy(whole, cuts->piece[dim], n * sizeof(whole[0]));
	cuts->num[dim] = 0;
	for (uint32_t i = 0; i < n; i++)
		for (int64_t at = 0; at < whole[i].size; at += max) {
			int64_t left = whole[i].size - at;

			if (!add(cuts, dim, whole[i].start + at, left < max ? left : max,
				 whole[i].masked))
				return false;
		}
	return true;
}

bool box_masked(const struct cuts *cuts, uint32_t dims)
{
	for (uint32_t d = 0; d < IR_MAX_DIMS; d++)
		if ((dims >> d & 1) && cuts->piece[d][cuts->at[d]].masked)
			return true;
	return false;
}

bool box_next(struct cuts *cuts, uint32_t dims)
{
	for (uint32_t d = 0; d < IR_MAX_DIMS; d++) {
		if (!(dims >> d & 1))
			continue;
		if (++cuts->at[d] < cuts->num[d])
			return true;
		cuts->at[d] = 0;
	}
	return false;
}

uint64_t box_bytes(const struct ir_tensor *t, uint32_t dim, int64_t x)
{
	uint64_t at = (uint64_t)x;

	if (!lower_varies(t, dim))
		return 0;
	if (dim != t->stick)
		return at * t->stride[dim];
	return at / t->lanes * t->stride[dim] + at % t->lanes * t->word;
}

uint64_t box_offset(const struct ir_sdsc *s, const struct ir_tensor *t, const struct cuts *cuts)
{
	uint64_t bytes = 0;

	for (uint32_t d = 0; d < s->num_dims; d++)
		bytes += box_bytes(t, d, cuts->piece[d][cuts->at[d]].start);
	return bytes;
}

void box_share(const struct ir_sdsc *s, struct box *box)
{
	memset(box, 0, sizeof(*box));
	memcpy(box->len, s->el, sizeof(box->len));
}

spyre_status box_blocks(struct lower *l, const struct blocks *b, const struct box *box)
{
	uint64_t need = b->need(l, b->arg, box), capacity = SPYRE_LX_BYTES - l->scratch;
	struct box part = *box;
	uint32_t dim = 0;
	int64_t most = 1;
	spyre_status status;

	if (need <= capacity)
		return b->emit(l, b->arg, box);
	for (uint32_t d = 0; d < l->sdsc->num_dims; d++) {
		int64_t parts = b->align[d] ? (box->len[d] + b->align[d] - 1) / b->align[d] : 1;

		if (parts > most) {
			most = parts;
			dim = d;
		}
	}
	if (most == 1)
		return spyre_error(SPYRE_ERROR_LX_OVERFLOW,
				   "%s: %s needs %" PRIu64 " bytes of LX for intermediate results from byte %u on, a core has %u; plan less into LX",
				   l->sdsc->file, l->sdsc->op, need, l->scratch, SPYRE_LX_BYTES);
	part.len[dim] = most / 2 * b->align[dim];
	status = box_blocks(l, b, &part);
	part.start[dim] += part.len[dim];
	part.len[dim] = box->len[dim] - part.len[dim];
	return status ? status : box_blocks(l, b, &part);
}

void box_align(const struct ir_sdsc *s, int64_t *align)
{
	const struct ir_tensor *out = &s->tensor[s->output];

	for (uint32_t d = 0; d < s->num_dims; d++)
		if (lower_varies(out, d) || (out->indexed >> d & 1))
			align[d] = ir_longest_stick(s, d);
	for (uint32_t i = 0; i < s->num_masks; i++)
		align[s->mask[i].dim] = 0;
}

void box_narrow(const struct lower *l, const struct box *box, struct lower *inner,
		struct ir_sdsc *part)
{
	const struct ir_sdsc *s = l->sdsc;

	*inner = *l;
	ir_copy_sdsc(part, s);
	memcpy(part->el, box->len, sizeof(part->el));
	for (uint32_t t = 0; t < s->num_tensors; t++) {
		uint64_t bytes = 0;

		for (uint32_t d = 0; d < s->num_dims; d++)
			bytes += ir_bits(&s->tensor[t], d, (uint64_t)box->start[d]) / 8;
		for (uint32_t c = 0; c < s->num_cores; c++)
			inner->address[t][c].offset += bytes;
	}
	inner->sdsc = part;
}
