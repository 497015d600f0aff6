// SPDX-License-Identifier: MIT
/*
 * Builder: rows or single elements of a table at indices, read and written. The table is moved
 * as it lies in memory: its rows may be any dimension but that of its sticks, which only follow
 * each other if the table has no other dimension.
 */
#include "libspyre/sdsc/graph/index.h"

#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/attr.h"
#include "libspyre/sdsc/graph/cast.h"
#include "libspyre/sdsc/graph/fit.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/recipes.h"
#include "libspyre/sdsc/graph/shapes.h"

#define NEW SPYRE_SDSC_NEW
#define MOST_WRAPPED (1 << 24)	/* integers of fp32 are exact below */

/* The operands of an operation: views of the table, its indices and its selected part. */
struct parts {
	const struct build_call *call;
	const spyre_sdsc_operand *table, *index, *part;
	uint32_t dim;		/* of the table, which the indices replace */
	bool elements;		/* an index per element */
};

static bool takes_elements(const struct build_call *call)
{
	return !strcmp(call->op->name, "gather") || !strcmp(call->op->name, "scatter");
}

static bool writes(const struct build_call *call)
{
	return call->op->inputs == 3;
}

/* True if the elements of a table follow each other along its sticks. */
static bool is_line(const spyre_sdsc_operand *table, uint32_t dim)
{
	const spyre_layout *l = &table->layout;

	for (uint32_t d = 0; d < table->rank; d++)
		if (d != dim && table->size[d] > 1)
			return false;
	for (uint32_t j = 0; j + 1 < l->device_rank; j++)
		if (l->dim_map[j] != (int)dim && l->device_size[j] > 1)
			return false;
	return build_stick_dim(table) == (int)dim;
}

/* The dim of the selected part for dim @d of the table, which is not the indexed one. */
static int part_dim(const struct parts *p, int d)
{
	return p->elements || d < (int)p->dim ? d : d + (int)p->index->rank - 1;
}

/* The dim of the selected part for dim @d of the indices. */
static int index_dim(const struct parts *p, int d)
{
	return p->elements ? d : d + (int)p->dim;
}

/* The shape of the selected part; its sticks are those of the table if it has them. */
static void shape_part(const struct parts *p, spyre_sdsc_operand *part)
{
	int stick = build_stick_dim(p->table), last = -1;

	memset(part, 0, sizeof(*part));
	for (uint32_t d = 0; d < p->dim && !p->elements; d++)
		part->size[part->rank++] = p->table->size[d];
	for (uint32_t d = 0; d < p->index->rank; d++)
		part->size[part->rank++] = p->index->size[d];
	for (uint32_t d = p->dim + 1; d < p->table->rank && !p->elements; d++)
		part->size[part->rank++] = p->table->size[d];
	for (uint32_t d = 0; d < part->rank; d++)
		if (part->size[d] > 1)
			last = (int)d;
	if (stick >= 0 && stick != (int)p->dim)
		last = part->size[part_dim(p, stick)] > 1 ? part_dim(p, stick) : -1;
	else if (stick < 0 && !p->elements)
		last = -1;
	build_layout(part, p->table->layout.device_format, last, 0);
}

static spyre_status check_part(const struct parts *p, const spyre_sdsc_operand *got,
			       const char *what)
{
	spyre_sdsc_operand want;

	shape_part(p, &want);
	if (got->rank != want.rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: the %s has rank %u, expected %u", p->call->op->name, what,
				   got->rank, want.rank);
	for (uint32_t d = 0; d < got->rank; d++)
		if (got->size[d] != want.size[d])
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "%s: the %s has size[%u] = %" PRId64 ", expected %" PRId64,
					   p->call->op->name, what, d, got->size[d],
					   want.size[d]);
	if (got->layout.device_format != p->table->layout.device_format)
		return spyre_error(SPYRE_ERROR_FORMAT,
				   "%s: the %s is %s on the device, the table is %s; they must be the same",
				   p->call->op->name, what,
				   spyre_format_name(got->layout.device_format),
				   spyre_format_name(p->table->layout.device_format));
	return SPYRE_SUCCESS;
}

static spyre_status check_index(const struct parts *p)
{
	const char *name = p->call->op->name;
	spyre_format format = p->index->layout.device_format;

	if (format != SPYRE_FORMAT_IEEE_INT32 && format != SPYRE_FORMAT_SENUINT32)
		return spyre_error(SPYRE_ERROR_FORMAT,
				   "%s: the indices are %s on the device; use IEEE_INT32 or SENUINT32",
				   name, spyre_format_name(format));
	if (!p->table->rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: the table has rank 0, there is nothing to index", name);
	if (p->table->size[p->dim] > SPYRE_MAX_INDEX)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: the table has size[%u] = %" PRId64 ", the limit is %u",
				   name, p->dim, p->table->size[p->dim], SPYRE_MAX_INDEX);
	if (p->table->rank + p->index->rank - 1 > SPYRE_MAX_RANK && !p->elements)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: a table of rank %u at indices of rank %u makes more than %d dimensions",
				   name, p->table->rank, p->index->rank, SPYRE_MAX_RANK);
	if (p->elements && p->index->rank != p->table->rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: the indices have rank %u, the table %u", name,
				   p->index->rank, p->table->rank);
	for (uint32_t d = 0; d < p->table->rank && p->elements; d++)
		if (d != p->dim && p->index->size[d] > p->table->size[d])
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "%s: the indices have size[%u] = %" PRId64 ", the table %" PRId64,
					   name, d, p->index->size[d], p->table->size[d]);
	return SPYRE_SUCCESS;
}

/* Steps */

/* The dims of a step: of the selected part, and of size 1 for what has no other. */
struct dims {
	int part[SPYRE_MAX_RANK];
	int first;		/* of the indices */
	int lane;		/* of tensors with one element per stick */
	uint32_t indexed;	/* bits */
};

/* Adds the dims; sticks that table and part have in common are moved whole. */
static spyre_status add_dims(const struct parts *p, struct build_step *step, struct dims *dims)
{
	static const char *const names[] = { "mb", "x", "y", "i", "j", "ki", "kj", "k" };
	int stick = build_stick_dim(p->part);
	bool whole = !p->elements && !is_line(p->table, p->dim);

	for (uint32_t d = 0; d < p->part->rank; d++) {
		int64_t size = p->part->size[d];

		if (whole && (int)d == stick)
			size = build_whole_sticks(size, build_lanes(p->part));
		dims->part[d] = p->part->size[d] == 1 ? -1 :
				build_add_dim(step, (int)d == stick ? "out" : names[d], size,
					      (int)(p->part->rank - 1 - d));
	}
	dims->first = -1;
	for (uint32_t d = 0; d < p->index->rank; d++) {
		int dim = dims->part[index_dim(p, (int)d)];

		if (dim < 0 || (p->elements && d != p->dim))
			continue;
		dims->first = dims->first < 0 ? dim : dims->first;
		dims->indexed |= 1u << dim;
	}
	if (dims->first < 0) {
		dims->first = build_add_dim(step, "one", 1, BUILD_NO_KEY);
		dims->indexed = 1u << dims->first;
	}
	dims->lane = build_add_dim(step, "lane", 1, BUILD_NO_KEY);
	return SPYRE_SUCCESS;
}

/* Adds a tensor; one whose sticks are along a dim that the step lacks has its lane 0 moved. */
static spyre_status place(const struct parts *p, struct build_step *step,
			  const spyre_sdsc_operand *o, const int *dim, int lane)
{
	int stick = build_stick_dim(o), own[SPYRE_MAX_RANK];

	memcpy(own, dim, o->rank * sizeof(*own));
	if (stick >= 0 && own[stick] < 0)
		own[stick] = lane;
	return build_place_tensor(&step->sdsc, p->call->op->name, o, own,
				  (uint32_t)(stick < 0 ? lane : own[stick]), true);
}

void build_index_table(struct ir_sdsc *s, uint32_t first, uint32_t indexed, int64_t rows)
{
	struct ir_tensor *t = &s->tensor[s->num_tensors - 1];
	int64_t unit = first == t->stick ? t->lanes : 1;

	t->gap[first] += ((rows + unit - 1) / unit - 1) * unit;
	t->rows = (uint64_t)rows;
	t->indexed = indexed;
	for (uint32_t d = 0; d < s->num_dims; d++) {
		if (!(indexed >> d & 1))
			continue;
		if (!t->scale[d])
			t->order[t->num_order++] = d;
		t->scale[d] = d == t->stick ? -2 : -1;
	}
}

/*
 * Places the table with its own size along the indexed dim, where it then does not vary: its
 * coordinate is an index. If several dims have indices, the first has the rows.
 */
static spyre_status place_table(const struct parts *p, struct build_step *step,
				const struct dims *dims)
{
	struct ir_sdsc *s = &step->sdsc;
	uint32_t first = (uint32_t)dims->first;
	int64_t size = s->size[first];
	int own[SPYRE_MAX_RANK];
	spyre_status status;

	for (uint32_t d = 0; d < p->table->rank; d++)
		own[d] = d != p->dim ? dims->part[part_dim(p, (int)d)] :
			 p->table->size[d] > 1 ? dims->first : -1;
	s->size[first] = p->table->size[p->dim];
	status = place(p, step, p->table, own, dims->lane);
	s->size[first] = size;
	TRY(status);
	build_index_table(s, first, dims->indexed, p->table->size[p->dim]);
	return SPYRE_SUCCESS;
}

/* A dim whose end is within a stick of a tensor is not divided; cores write rows of their own. */
static uint32_t undivided(const struct ir_sdsc *s, const struct dims *dims, bool write)
{
	uint32_t whole = write ? dims->indexed : 0;

	for (uint32_t d = 0; d < s->num_dims; d++)
		for (uint32_t i = 0; i < s->num_tensors; i++)
			if (s->tensor[i].stick == d && s->size[d] % s->tensor[i].lanes)
				whole |= 1u << d;
	return whole;
}

spyre_status build_index_shapes(const struct build_call *call, struct build_use *uses,
				struct build_step *step)
{
	bool write = writes(call);
	struct parts p = { .call = call, .index = &uses[0].view, .elements = takes_elements(call),
			   .table = &uses[write ? 2 : 1].view, .part = &uses[write ? 1 : 2].view };
	int index[SPYRE_MAX_RANK];
	struct ir_sdsc *s = &step->sdsc;
	struct dims dims = { 0 };

	TRY(build_attr_dim(call, "dim", build_attr(call, "dim"), p.table->rank, &p.dim));
	TRY(check_index(&p));
	TRY(check_part(&p, p.part, write ? "source" : "output"));
	TRY(add_dims(&p, step, &dims));
	for (uint32_t d = 0; d < p.index->rank; d++)
		index[d] = dims.part[index_dim(&p, (int)d)];
	TRY(place(&p, step, p.index, index, dims.lane));
	if (write)
		TRY(place(&p, step, p.part, dims.part, dims.lane));
	TRY(place_table(&p, step, &dims));
	if (!write)
		TRY(place(&p, step, p.part, dims.part, dims.lane));
	build_share_singles(s, 0);
	build_finish(step, uses, 3, call->op->func);
	s->num_inputs = 1;
	s->input[0] = 1;
	s->indirect = true;
	step->whole = undivided(s, &dims, write);
	return SPYRE_SUCCESS;
}

/* Operations */

/* Adds the rows of the table to negative indices. */
static spyre_status wrap(const struct build_call *call, const struct parts *p, uint32_t *index)
{
	spyre_sdsc_graph *g = call->graph;
	int64_t rows = p->table->size[p->dim];
	spyre_sdsc_attribute wide = { "format", SPYRE_FORMAT_IEEE_FP32 },
			     narrow = { "format", SPYRE_FORMAT_IEEE_INT32 },
			     zero = { "other", 0 }, all = { "other", (double)rows };
	uint32_t number = NEW, negative = NEW, in[2], whole = NEW;

	if (rows >= MOST_WRAPPED)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s: cannot wrap indices of %" PRId64 " rows: they are computed in fp32, which is exact below %d; pass indices from 0 on",
				   call->op->name, rows, MOST_WRAPPED);
	TRY(build_add(g, "cast", &wide, 1, index, 1, &number));
	TRY(build_add(g, "lt", &zero, 1, &number, 1, &negative));
	in[0] = negative;
	negative = NEW;
	TRY(build_add(g, "mul", &all, 1, in, 1, &negative));
	in[0] = number;
	in[1] = negative;
	number = NEW;
	TRY(build_add(g, "add", NULL, 0, in, 2, &number));
	TRY(build_add(g, "cast", &narrow, 1, &number, 1, &whole));
	*index = whole;
	return SPYRE_SUCCESS;
}

/* Moves the sticks of a table away from the indexed dim, unless its elements follow each other. */
static spyre_status free_dim(const struct build_call *call, struct build_use *table, uint32_t dim)
{
	int other = -1;

	if (build_stick_dim(&table->view) != (int)dim || is_line(&table->view, dim))
		return SPYRE_SUCCESS;
	for (uint32_t d = 0; d < table->view.rank; d++)
		if (d != dim && table->view.size[d] > 1)
			other = (int)d;
	/* A part of a larger tensor is copied to a table without what surrounds it. */
	return build_restick_new(call->graph, table, other < 0 ? (int)dim : other);
}

/* Adds the step that moves @uses: indices, source, destination. */
static spyre_status add_move(const struct build_call *call, struct build_use *uses)
{
	struct build_call step = *call;

	step.num_inputs = 2;
	step.out = &uses[2].tensor;
	return build_add_step(&step, uses);
}

static spyre_status take(const struct build_call *call, struct parts *p, struct build_use *table,
			 const struct build_use *index)
{
	struct build_use out = build_use_of(call->graph, *call->out), made = { .tensor = NEW };
	struct build_use uses[3];
	bool given = out.tensor != NEW, direct;

	if (given)
		TRY(check_part(p, &out.view, "output"));
	TRY(free_dim(call, table, p->dim));
	p->table = &table->view;
	shape_part(p, &made.view);
	direct = given && (p->elements || is_line(p->table, p->dim) ||
			   build_stick_dim(&made.view) == build_stick_dim(&out.view));
	if (direct)
		made = out;
	else
		TRY(build_new_tensor(call->graph, &made.view, &made.tensor));
	uses[0] = *index;
	uses[1] = *table;
	uses[2] = made;
	TRY(add_move(call, uses));
	*call->out = made.tensor;
	if (direct || !given)
		return SPYRE_SUCCESS;
	*call->out = out.tensor;
	return build_restick(call->graph, made, build_stick_dim(&out.view), &out);
}

/* Rows are moved in the table's sticks, single elements in any. */
static spyre_status fit_source(const struct parts *p, struct build_use *source)
{
	spyre_sdsc_operand want;

	shape_part(p, &want);
	if (p->elements || is_line(p->table, p->dim) ||
	    build_stick_dim(&want) == build_stick_dim(&source->view))
		return SPYRE_SUCCESS;
	return build_restick_new(p->call->graph, source, build_stick_dim(&want));
}

/* Writes to the table itself if it is the output, otherwise to a copy of it. */
static spyre_status put(const struct build_call *call, struct parts *p,
			const struct build_use *index)
{
	struct build_use source = build_use_of(call->graph, call->in[2]), table, moved, uses[3];

	TRY(check_part(p, &source.view, "source"));
	if (*call->out != call->in[0])
		TRY(build_add(call->graph, "identity", NULL, 0, call->in, 1, call->out));
	table = moved = build_use_of(call->graph, *call->out);
	TRY(free_dim(call, &moved, p->dim));
	p->table = &moved.view;
	TRY(fit_source(p, &source));
	uses[0] = *index;
	uses[1] = source;
	uses[2] = moved;
	TRY(add_move(call, uses));
	if (moved.tensor == table.tensor)
		return SPYRE_SUCCESS;
	return build_restick(call->graph, moved, build_stick_dim(&table.view), &table);
}

spyre_status build_index(const struct build_call *call)
{
	struct build_use table = build_use_of(call->graph, call->in[0]), index;
	struct parts p = { .call = call, .table = &table.view, .elements = takes_elements(call) };
	uint32_t tensor = call->in[1];

	if (table.view.rank)
		TRY(build_attr_dim(call, "dim", build_attr(call, "dim"), table.view.rank, &p.dim));
	index = build_use_of(call->graph, tensor);
	p.index = &index.view;
	TRY(check_index(&p));
	if (build_attr(call, "wrap") != 0)
		TRY(wrap(call, &p, &tensor));
	index = build_use_of(call->graph, tensor);
	return writes(call) ? put(call, &p, &index) : take(call, &p, &table, &index);
}
