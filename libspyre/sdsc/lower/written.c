// SPDX-License-Identifier: MIT
#define _GNU_SOURCE	/* tdestroy() */
/* Tensors that have been written, and the tables that they make up: see written.h. */
#include "libspyre/sdsc/lower/written.h"

#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/array.h"
#include "libspyre/base/error.h"
#include "libspyre/sdsc/lower/place.h"

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

struct written_output {
	uint64_t offset, end;		/* what it reaches, on all cores and in all iterations */
	uint64_t memory;		/* end of its memory, which has gaps behind that */
	uint16_t operand;
	bool replaced;			/* a later output begins at the same address */
	bool scattered;			/* rows have been stored to it at indices */
	uint32_t stmt, readers;		/* that wrote it; first one that may read it */
	uint32_t table;			/* last statement that read it as a part of a table */
	struct layout layout;
	uint32_t num_cores;
	struct sticks core[];
};

static int compare(const void *a, const void *b)
{
	const struct written_output *x = a, *y = b;

	if (x->operand != y->operand)
		return x->operand < y->operand ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
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
	struct written_output key = { .operand = at[0].operand, .offset = at[0].offset };
	struct written_output *const *found;

	for (uint32_t c = 1; c < l->sdsc->num_cores; c++)
		if (at[c].operand == key.operand && at[c].offset < key.offset)
			key.offset = at[c].offset;
	found = tfind(&key, &w->tree, compare);
	if (found)
		(*found)->scattered = true;
}

spyre_status written_note(struct written *w, const struct lower *l)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *t = &s->tensor[s->output];
	struct written_output *o, **found;

	/* Addresses are those of the last part of a symbolic SDSC. */
	if (!w->enabled || t->lx || s->symbolic)
		return SPYRE_SUCCESS;
	if (t->indexed) {
		note_rows(w, l);
		return SPYRE_SUCCESS;
	}
	if (!spyre_array_reserve(&w->list, &w->capacity, w->num + 1, sizeof(*w->list)))
		return no_memory();
	o = make_output(w, l);
	if (!o)
		return no_memory();
	w->list[w->num++] = o;
	found = tsearch(o, &w->tree, compare);
	if (!found)
		return no_memory();
	(*found)->replaced = *found != o;
	*found = o;
	return SPYRE_SUCCESS;
}

/* True if a value is in the memory of an output. */
static bool same_memory(const struct lower *l, const struct written_output *o,
			const struct ir_value *value)
{
	const struct spyre_bundle_operand *kind = &l->encoder->kind[o->operand];

	if (kind->kind == SPYRE_OPERAND_ARG)
		return value->base == IR_BASE_ARG && value->arg == kind->arg;
	return kind->arg ? value->base == IR_BASE_MEM && value->arg == kind->arg - 1 :
			   value->base == IR_BASE_POOL;
}

/* True if a statement reads the output, or a part of it, as a tensor that begins in it. */
static bool read_by(struct lower *l, const struct written_output *o, uint32_t stmt)
{
	const struct ir_sdsc *s = bundle_source_sdsc(l->written->source, stmt);

	for (uint32_t t = 0; t < s->num_tensors; t++) {
		struct place place;
		int64_t first, end;

		if (s->tensor[t].lx || !lower_is_input(s, t) ||
		    !place_range(l, stmt, s, &s->tensor[t], &place, &first, &end) ||
		    !same_memory(l, o, &place.value))
			continue;
		if (first >= (int64_t)o->offset && first < (int64_t)o->end)
			return true;
	}
	return false;
}

/* True if the output is a tensor of its own: a step reads it before another replaces it. */
static bool read_alone(struct lower *l, const struct written_output *o)
{
	for (uint32_t i = o->readers; i < l->bundle->num_stmts; i++) {
		const struct ir_sdsc *s;
		struct place place;

		if (l->bundle->stmts[i].kind != IR_STMT_EXECUTE || i == o->stmt)
			continue;
		if (read_by(l, o, i))
			return true;
		s = bundle_source_sdsc(l->written->source, i);
		if (i > o->stmt && !s->tensor[s->output].lx &&
		    place_of(l, i, &s->tensor[s->output], 0, &place) &&
		    same_memory(l, o, &place.value) && place.value.constant == (int64_t)o->offset)
			return false;
	}
	return false;
}

/* True if @o continues a table that begins with @base and ends at @end so far. */
static bool continues(struct lower *l, const struct written_output *base, uint64_t end,
		      const struct written_output *o)
{
	return o->operand == base->operand && !o->replaced && o->offset > base->offset &&
	       o->offset <= end && o->end > end &&
	       /* Memory that another table had before is free again. */
	       !(o->table && o->table < base->stmt) && !read_alone(l, o);
}

/*
 * Finds the end of the table: that of its first part, with its gaps if @scattered, and of the
 * parts that continue it.
 */
static uint64_t join(struct written *w, struct lower *l, struct written_output *base,
		     bool scattered)
{
	uint32_t stmt = (uint32_t)(l->stmt - l->bundle->stmts);
	uint64_t end = scattered ? base->memory : base->end;

	base->table = stmt;
	for (size_t i = 0; i < w->num; i++) {
		if (!continues(l, base, end, w->list[i]))
			continue;
		w->list[i]->table = stmt;
		end = w->list[i]->end;
		i = (size_t)-1;		/* others may continue this one */
	}
	return end;
}

/* A part of a table, and the outputs that wrote its sticks last. */
struct check {
	struct lower *l;
	const struct written *w;
	uint32_t tensor;
	struct layout layout;
	uint16_t operand;
	uint64_t first, end;		/* of the part, in bytes */
	uint64_t steps;			/* left, before the bundle is refused */
	uint64_t left;			/* sticks without a writer */
	uint32_t *writer;		/* by stick: 1 + index in the list, 0: none */
	uint32_t now;			/* the writer, 0 while the table is read */
	uint64_t bad;			/* a stick that is not as it is read, in bytes */
};

static bool visit(struct check *c, uint64_t at)
{
	uint32_t *writer = &c->writer[(at - c->first) / SPYRE_STICK_BYTES];
	const struct layout *of;

	if (c->now) {
		c->left -= !*writer;
		*writer = *writer ?: c->now;
		return true;
	}
	c->bad = at;
	if (!*writer)
		return false;
	of = &c->w->list[*writer - 1]->layout;
	return of->lanes == c->layout.lanes && of->word == c->layout.word &&
	       (!of->tile || !c->layout.tile || of->tile == c->layout.tile);
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

/* Checks the sticks from c->first to c->end. */
static spyre_status check_part(struct check *c, uint64_t start, uint64_t end)
{
	const struct ir_sdsc *s = c->l->sdsc;
	struct sticks sticks;

	memset(c->writer, 0, CHUNK * sizeof(*c->writer));
	c->left = (c->end - c->first) / SPYRE_STICK_BYTES;
	for (size_t i = c->w->num; i-- && c->left;) {
		const struct written_output *o = c->w->list[i];

		c->now = (uint32_t)i + 1;
		for (uint32_t k = 0; k < o->num_cores && o->operand == c->operand; k++)
			visit_all(c, &o->core[k], 0, o->core[k].offset);
	}
	c->now = 0;
	c->bad = c->first;
	for (uint32_t k = 0; k < s->num_cores; k++) {
		if (c->l->address[c->tensor][k].operand != c->operand)
			continue;
		rows_of_core(c->l, c->tensor, k, end, &sticks);
		if (!visit_all(c, &sticks, 0, sticks.offset))
			return refuse(c, start);
	}
	return SPYRE_SUCCESS;
}

/* Refuses tables of which a row is not written, or has been written in another layout. */
static spyre_status check_rows(struct written *w, struct lower *l, uint32_t tensor,
			       uint16_t operand, uint64_t start, uint64_t end)
{
	struct check c = { .l = l, .w = w, .tensor = tensor, .operand = operand,
			   .steps = 64 * (uint64_t)CHUNK + (end - start) / 16,
			   .layout = layout_of(&l->sdsc->tensor[tensor]) };
	spyre_status status = SPYRE_SUCCESS;

	c.writer = malloc(CHUNK * sizeof(*c.writer));
	if (!c.writer)
		return no_memory();
	for (c.first = start; c.first < end && !status; c.first = c.end) {
		c.end = c.first + CHUNK * (uint64_t)SPYRE_STICK_BYTES;
		c.end = c.end < end ? c.end : end;
		status = check_part(&c, start, end);
	}
	free(c.writer);
	return status;
}

spyre_status written_table(struct written *w, struct lower *l, uint32_t tensor,
			   uint16_t operand, uint64_t start, uint64_t *end)
{
	const struct written_output key = { .operand = operand, .offset = start };
	uint32_t stmt = (uint32_t)(l->stmt - l->bundle->stmts);
	struct written_output *const *found = tfind(&key, &w->tree, compare);
	bool scattered;

	*end = 0;
	if (!found)
		return SPYRE_SUCCESS;
	if (!w->end || w->stmt != stmt || w->tensor != tensor || w->operand != operand ||
	    w->start != start) {
		/* Rows that are stored may be the first to be written. */
		scattered = (*found)->scattered || tensor == l->sdsc->output;
		w->end = 0;
		*end = join(w, l, *found, scattered);
		if (!scattered)
			TRY(check_rows(w, l, tensor, operand, start, *end));
		w->stmt = stmt;
		w->tensor = tensor;
		w->operand = operand;
		w->start = start;
		w->end = *end;
	}
	*end = w->end;
	return SPYRE_SUCCESS;
}

static void keep(void *output)
{
	(void)output;		/* the list owns it */
}

void written_fini(struct written *w)
{
	tdestroy(w->tree, keep);
	for (size_t i = 0; i < w->num; i++)
		free(w->list[i]);
	free(w->list);
	memset(w, 0, sizeof(*w));
}
