// SPDX-License-Identifier: MIT
/* Tensors that have been written, and the tables that they make up: see written.h. */
#include "libspyre/sdsc/lower/written.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/array.h"
#include "libspyre/base/error.h"

#define CHUNK (1u << 18)		/* sticks of a table that are examined at once */
#define MAX_DIMS (IR_MAX_DIMS + 1 + SPYRE_MAX_LOOPS)

/* Sticks of one core: dims of its share and loops, from an offset on. */
struct sticks {
	uint64_t offset;
	uint32_t num_dims;
	struct {
		uint64_t stride, last;
	} dim[MAX_DIMS];
};

/* Steps along the sticks of a tensor, whose order in memory has to be that of a table. */
struct layout {
	uint32_t lanes, word;
	uint64_t tile;			/* bytes between two sticks of a row, 0 if it has one */
};

/* A table as it was found; it remains until something is written to its memory again. */
struct joined {
	uint64_t end;			/* 0: not found yet */
	size_t seen;			/* outputs of the list that are taken into account */
	bool scattered;			/* its end is that of the memory */
	bool whole;			/* each stick is written, in the layout of the first part */
	uint32_t stmt, tensor;		/* the last use whose rows have been checked */
};

struct written_output {
	uint64_t offset, end;		/* what it reaches, on all cores and in all iterations */
	uint64_t memory;		/* end of its memory, which has gaps behind that */
	uint16_t operand;
	bool scattered;			/* rows have been stored to it at indices */
	uint32_t stmt, readers;		/* that wrote it; first one that may read it */
	bool known;			/* the next two members are up to date */
	bool alone;			/* a step reads a tensor that begins in it */
	uint32_t used;			/* first later statement that reads bytes of it, or 0 */
	uint32_t table;			/* first statement that used it in a table, or 0 */
	struct joined joined;		/* of the table that begins with it */
	struct layout layout;
	uint32_t num_cores;
	struct sticks core[];
};

/* The index of the first sorted output that begins at byte @offset or behind it. */
static size_t sorted_from(const struct written *w, uint16_t operand, uint64_t offset)
{
	size_t low = 0, high = w->num_sorted;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct written_output *o = w->sorted[middle];

		if (o->operand < operand || (o->operand == operand && o->offset < offset))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The last output that begins at byte @offset, or NULL. */
static struct written_output *last_output(const struct written *w, uint16_t operand,
					  uint64_t offset)
{
	size_t i = sorted_from(w, operand, offset);

	if (i == w->num_sorted || w->sorted[i]->operand != operand ||
	    w->sorted[i]->offset != offset)
		return NULL;
	return w->sorted[i];
}

static struct layout layout_of(const struct ir_tensor *t)
{
	struct layout layout = { .lanes = t->lanes, .word = t->word };

	if (t->num_parts > 1)
		layout.lanes = 0;
	else if (lower_varies(t, t->stick) && t->extent[t->stick] > 1)
		layout.tile = t->stride[t->stick];
	return layout;
}

/* Converts a box and the loops around it; returns the end of the last byte. */
static uint64_t sticks_of(const struct lower *l, const struct overlap_box *box,
			  struct sticks *sticks)
{
	const struct encoder *e = l->encoder;
	uint64_t end = box->at.offset + SPYRE_STICK_BYTES;

	sticks->offset = box->at.offset;
	sticks->num_dims = 0;
	for (uint32_t d = 0; d < box->num_dims + e->depth; d++) {
		bool loop = d >= box->num_dims;
		uint32_t i = loop ? d - box->num_dims : d;
		uint64_t stride = loop ? box->at.per_iter[i] : box->dim[i].stride;
		uint64_t last = loop ? e->iters[i] - 1 : box->dim[i].last;

		if (!stride || !last)
			continue;
		sticks->dim[sticks->num_dims].stride = stride;
		sticks->dim[sticks->num_dims++].last = last;
		end += stride * last;	/* the encoder has limited it */
	}
	return end;
}

static spyre_status no_memory(void)
{
	return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory to compile a bundle");
}

/* Bytes of a tensor's memory; its strides fit 63 bits (ir_place()). */
static uint64_t whole_bytes(const struct ir_tensor *t)
{
	uint64_t bytes = SPYRE_STICK_BYTES;

	for (uint32_t k = 0; k < t->num_order; k++)
		bytes *= t->extent[t->order[k]];
	return bytes;
}

static struct written_output *make_output(const struct written *w, const struct lower *l)
{
	const struct ir_sdsc *s = l->sdsc;
	struct written_output *o = calloc(1, sizeof(*o) + s->num_cores * sizeof(o->core[0]));

	if (!o)
		return NULL;
	o->operand = l->address[s->output][0].operand;
	o->offset = UINT64_MAX;
	o->stmt = (uint32_t)(l->stmt - l->bundle->stmts);
	o->readers = l->encoder->depth ? w->first_stmt : o->stmt + 1;
	o->layout = layout_of(&s->tensor[s->output]);
	for (uint32_t c = 0; c < s->num_cores; c++) {
		struct overlap_box box;
		uint64_t end;

		overlap_box(l, s->output, c, &box);
		if (box.at.operand != o->operand)
			continue;
		end = sticks_of(l, &box, &o->core[o->num_cores++]);
		if (end > o->end)
			o->end = end;
		if (box.at.offset < o->offset)
			o->offset = box.at.offset;
	}
	o->memory = o->offset + whole_bytes(&s->tensor[s->output]);
	if (o->memory < o->end)
		o->memory = o->end;
	return o;
}

/* Notes that rows are stored at indices, so that any row of the table may be written. */
static void note_rows(struct written *w, const struct lower *l)
{
	const struct address *at = l->address[l->sdsc->output];
	uint64_t offset = at[0].offset;
	struct written_output *found;

	for (uint32_t c = 1; c < l->sdsc->num_cores; c++)
		if (at[c].operand == at[0].operand && at[c].offset < offset)
			offset = at[c].offset;
	found = last_output(w, at[0].operand, offset);
	if (found)
		found->scattered = true;
}

/* Puts an output in its place among the sorted ones, instead of one that began there. */
static void sort_in(struct written *w, struct written_output *o)
{
	size_t i = sorted_from(w, o->operand, o->offset);

	if (!last_output(w, o->operand, o->offset)) {
		memmove(&w->sorted[i + 1], &w->sorted[i],
			(w->num_sorted - i) * sizeof(w->sorted[0]));
		w->num_sorted++;
	}
	w->sorted[i] = o;
}

spyre_status written_note(struct written *w, const struct lower *l)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *t = &s->tensor[s->output];
	struct written_output *o;

	/* Addresses are those of the last part of a symbolic SDSC. */
	if (!w->enabled || t->lx || s->symbolic)
		return SPYRE_SUCCESS;
	if (t->indexed) {
		note_rows(w, l);
		return SPYRE_SUCCESS;
	}
	if (!spyre_array_reserve(&w->list, &w->capacity, w->num + 1, sizeof(*w->list)) ||
	    !spyre_array_reserve(&w->sorted, &w->capacity_sorted, w->num_sorted + 1,
				 sizeof(*w->sorted)))
		return no_memory();
	o = make_output(w, l);
	if (!o)
		return no_memory();
	w->list[w->num++] = o;
	sort_in(w, o);
	return SPYRE_SUCCESS;
}

/* Finds once how the bundle reads an output; l->written has the uses. */
static void find_uses(struct lower *l, struct written_output *o)
{
	const struct spyre_bundle_operand *kind = &l->encoder->kind[o->operand];
	struct use_range range = { .stmt = o->stmt, .readers = o->readers,
				   .first = (int64_t)o->offset, .end = (int64_t)o->end };

	if (o->known)
		return;
	range.value.base = kind->kind == SPYRE_OPERAND_ARG ? IR_BASE_ARG :
			   kind->arg ? IR_BASE_MEM : IR_BASE_POOL;
	range.value.arg = kind->kind == SPYRE_OPERAND_ARG ? kind->arg :
			  kind->arg ? kind->arg - 1 : 0;
	uses_find(&l->written->uses, &range, &o->alone, &o->used);
	o->known = true;
}

/*
 * True if an output is older than the first part of a table and was read before that was
 * written: its memory is free again, and what is still in it belongs to no later table.
 */
static bool dead(struct lower *l, const struct written_output *base, struct written_output *o)
{
	if (o->stmt >= base->stmt)
		return false;
	if (o->table && o->table < base->stmt)
		return true;
	find_uses(l, o);
	return o->used && o->used < base->stmt;
}

/* True if @o continues a table that begins with @base and ends at @end so far. */
static bool continues(struct lower *l, const struct written_output *base, uint64_t end,
		      struct written_output *o)
{
	if (o->end <= end || dead(l, base, o))
		return false;
	find_uses(l, o);
	return !o->alone;
}

/*
 * Finds the end of the table: that of its first part, with its gaps if @scattered, and of the
 * parts that continue it. In the order of their addresses, none continues one behind it.
 */
static uint64_t join(struct written *w, struct lower *l, struct written_output *base,
		     bool scattered)
{
	uint32_t stmt = (uint32_t)(l->stmt - l->bundle->stmts);
	uint64_t end = scattered ? base->memory : base->end;

	for (size_t i = sorted_from(w, base->operand, base->offset); i < w->num_sorted; i++) {
		struct written_output *o = w->sorted[i];

		if (o->operand != base->operand || o->offset > end)
			break;
		if (o != base && continues(l, base, end, o))
			end = o->end;
		/* The table uses what lies in it; one that only follows it is not a part. */
		if (!o->table && o->offset < end)
			o->table = stmt;
	}
	return end;
}

/* True if the table that begins with @base is as it was when it was found. */
static bool is_joined(const struct written *w, struct written_output *base, bool scattered)
{
	struct joined *joined = &base->joined;

	if (!joined->end || joined->scattered != scattered)
		return false;
	for (; joined->seen < w->num; joined->seen++) {
		const struct written_output *o = w->list[joined->seen];

		if (o->operand == base->operand && o->offset <= joined->end &&
		    o->end > base->offset)
			return false;
	}
	return true;
}

/* A part of a table, and the outputs that wrote its sticks last. */
struct check {
	struct lower *l;
	const struct written *w;
	const struct written_output *base;
	uint32_t tensor;
	struct layout layout;
	uint64_t first, end;		/* of the part, in bytes */
	uint64_t steps;			/* left, before the bundle is refused */
	uint64_t left;			/* sticks without a writer */
	bool whole;			/* no stick so far lacks a writer with base's layout */
	uint32_t *writer;		/* by stick: 1 + index in the list, 0: none */
	uint32_t now;			/* the writer, 0 while the table is read */
	uint64_t bad;			/* a stick that is not as it is read, in bytes */
};

/* True if sticks that were written in one layout may be read in another. */
static bool layout_fits(const struct layout *of, const struct layout *layout)
{
	return of->lanes == layout->lanes && of->word == layout->word &&
	       (!of->tile || !layout->tile || of->tile == layout->tile);
}

static bool visit(struct check *c, uint64_t at)
{
	uint32_t *writer = &c->writer[(at - c->first) / SPYRE_STICK_BYTES];

	if (c->now) {
		c->left -= !*writer;
		*writer = *writer ?: c->now;
		return true;
	}
	c->bad = at;
	if (!*writer)
		return false;
	return layout_fits(&c->w->list[*writer - 1]->layout, &c->layout);
}

/* Visits the sticks in the part from dim @dim on; false ends the visit. */
static bool visit_all(struct check *c, const struct sticks *sticks, uint32_t dim, uint64_t at)
{
	uint64_t reach = SPYRE_STICK_BYTES;

	for (uint32_t d = dim; d < sticks->num_dims; d++)
		reach += sticks->dim[d].stride * sticks->dim[d].last;
	if (at >= c->end || at + reach <= c->first)
		return true;
	if (!c->steps)
		return false;
	c->steps--;
	if (dim == sticks->num_dims)
		return visit(c, at);
	for (uint64_t i = 0; i <= sticks->dim[dim].last; i++)
		if (!visit_all(c, sticks, dim + 1, at + i * sticks->dim[dim].stride))
			return false;
	return true;
}

static spyre_status refuse(const struct check *c, uint64_t start)
{
	const struct lower *l = c->l;
	const struct ir_tensor *t = &l->sdsc->tensor[c->tensor];
	uint32_t writer = c->writer[(c->bad - c->first) / SPYRE_STICK_BYTES];
	const struct written_output *o = writer ? c->w->list[writer - 1] : NULL;

	if (!c->steps)
		return lower_unsupported(l, "Tensor%u is a table that earlier SDSCs write in too many parts to tell whether all of its rows are written; write it with fewer",
					 c->tensor);
	if (!o)
		return lower_unsupported(l, "Tensor%u is a table with rows of %" PRIu64 " bytes, and no earlier SDSC writes the bytes from %" PRIu64 " on of row %" PRIu64 "; write its rows as a whole",
					 c->tensor, t->row, (c->bad - start) % t->row,
					 (c->bad - start) / t->row);
	return lower_unsupported(l, "Tensor%u is a table with %u elements in a stick and %" PRIu64 " bytes between the sticks of a row, and %s has written row %" PRIu64 " with %u and %" PRIu64 "; write it in the layout in which it is read",
				 c->tensor, c->layout.lanes, c->layout.tile,
				 l->bundle->stmts[o->stmt].file, (c->bad - start) / t->row,
				 o->layout.lanes, o->layout.tile);
}

/* The sticks that a core may read: its part of each row up to byte @end. */
static void rows_of_core(const struct lower *l, uint32_t tensor, uint32_t core, uint64_t end,
			 struct sticks *sticks)
{
	uint64_t row = l->sdsc->tensor[tensor].row, reach;
	struct overlap_box box;

	overlap_box(l, tensor, core, &box);
	reach = sticks_of(l, &box, sticks);
	if (!row || reach + row > end)
		return;
	sticks->dim[sticks->num_dims].stride = row;
	sticks->dim[sticks->num_dims++].last = (end - reach) / row;
}

static bool same_layout(const struct layout *a, const struct layout *b)
{
	return a->lanes == b->lanes && a->word == b->word && a->tile == b->tile;
}

/* Finds the outputs that wrote the sticks from c->first to c->end last. */
static void find_writers(struct check *c)
{
	c->left = (c->end - c->first) / SPYRE_STICK_BYTES;
	memset(c->writer, 0, c->left * sizeof(*c->writer));
	for (size_t i = c->w->num; i-- && c->left;) {
		struct written_output *o = c->w->list[i];
		uint64_t left = c->left;

		if (o->operand != c->base->operand || o->offset >= c->end || o->end <= c->first ||
		    dead(c->l, c->base, o))
			continue;
		c->now = (uint32_t)i + 1;
		for (uint32_t k = 0; k < o->num_cores; k++)
			visit_all(c, &o->core[k], 0, o->core[k].offset);
		if (c->left < left && !same_layout(&o->layout, &c->base->layout))
			c->whole = false;
	}
	c->now = 0;
	if (c->left)
		c->whole = false;
}

/* Checks the sticks from c->first to c->end. */
static spyre_status check_part(struct check *c, uint64_t start, uint64_t end)
{
	const struct ir_sdsc *s = c->l->sdsc;
	struct sticks sticks;

	find_writers(c);
	c->bad = c->first;
	for (uint32_t k = 0; k < s->num_cores; k++) {
		if (c->l->address[c->tensor][k].operand != c->base->operand)
			continue;
		rows_of_core(c->l, c->tensor, k, end, &sticks);
		if (!visit_all(c, &sticks, 0, sticks.offset))
			return refuse(c, start);
	}
	return SPYRE_SUCCESS;
}

/* Refuses tables of which a row is not written, or has been written in another layout. */
static spyre_status check_rows(struct written *w, struct lower *l, uint32_t tensor,
			       struct written_output *base)
{
	uint64_t start = base->offset, end = base->joined.end;
	struct check c = { .l = l, .w = w, .base = base, .tensor = tensor, .whole = true,
			   .steps = 64 * (uint64_t)CHUNK + (end - start) / 16,
			   .layout = layout_of(&l->sdsc->tensor[tensor]) };
	uint64_t sticks = (end - start) / SPYRE_STICK_BYTES;
	spyre_status status = SPYRE_SUCCESS;

	/* No core can read a stick that is missing. */
	if (base->joined.whole && layout_fits(&base->layout, &c.layout))
		return SPYRE_SUCCESS;
	c.writer = malloc((sticks < CHUNK ? sticks : CHUNK) * sizeof(*c.writer));
	if (!c.writer)
		return no_memory();
	for (c.first = start; c.first < end && !status; c.first = c.end) {
		c.end = c.first + CHUNK * (uint64_t)SPYRE_STICK_BYTES;
		c.end = c.end < end ? c.end : end;
		status = check_part(&c, start, end);
	}
	free(c.writer);
	base->joined.whole = c.whole;
	return status;
}

spyre_status written_table(struct written *w, struct lower *l, uint32_t tensor,
			   uint16_t operand, uint64_t start, uint64_t *end)
{
	uint32_t stmt = (uint32_t)(l->stmt - l->bundle->stmts);
	struct written_output *base = last_output(w, operand, start);
	bool scattered;

	*end = 0;
	if (!base)
		return SPYRE_SUCCESS;
	if (!uses_collect(&w->uses, l))
		return no_memory();
	/* Rows that are stored may be the first to be written. */
	scattered = base->scattered || tensor == l->sdsc->output;
	if (!is_joined(w, base, scattered))
		base->joined = (struct joined){ .end = join(w, l, base, scattered),
						.seen = w->num, .scattered = scattered };
	/* Each core asks; the rows are those of all cores. */
	if (!scattered && (base->joined.stmt != stmt || base->joined.tensor != tensor)) {
		TRY(check_rows(w, l, tensor, base));
		base->joined.stmt = stmt;
		base->joined.tensor = tensor;
	}
	*end = base->joined.end;
	return SPYRE_SUCCESS;
}

void written_fini(struct written *w)
{
	for (size_t i = 0; i < w->num; i++)
		free(w->list[i]);
	free(w->list);
	free(w->sorted);
	free(w->uses.list);
	memset(w, 0, sizeof(*w));
}
