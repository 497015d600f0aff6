// SPDX-License-Identifier: MIT
/*
 * conv2d: one PT instruction per tap of the window adds its product to a tile of
 * fp32 or 32-bit integers in LX, taps in the order of ki, then kj; the SFU
 * converts the tile to the output. A tap's instruction covers the outputs for
 * which the tap lies inside the input.
 */
#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/lower/nest.h"
#include "libspyre/sdsc/lower/pack.h"
#include "libspyre/sdsc/lower/partial.h"
#include "libspyre/sdsc/lower/rules.h"
#include "libspyre/sdsc/lower/window.h"

#define TILE_BYTES (512u << 10)		/* enough rows to keep the PT busy */
#define MAX_BLOCKS 65536u		/* PT instructions of one core */
#define MAX_IDLE (1u << 20)		/* limit of taps of a bundle that lie in padding only */
#define MAX_BLOCK_COUNT 65472		/* of a dim: below the loop limit, whole sticks */
#define MAX_LOOPS 4u			/* dims that a PT instruction has for rows and batch */

enum { Y, X, W };

struct conv {
	const struct ir_tensor *tensor[3];
	uint32_t index[3];
	uint32_t in, out;		/* channels */
	uint32_t columns;		/* channels out in a stick of the weights */
	enum spyre_fmt sum;		/* IEEE_FP32, or IEEE_INT32 for integers */
	uint32_t num_loops, loop[IR_MAX_DIMS];	/* batch, then rows and columns of the output */
	uint32_t skip;			/* dims that the output lacks */
	bool direct;			/* one tap, which writes the output without a tile */
	struct ir_tensor tile;
	struct address tile_address;
	struct partial partial;
};

/* A box of a core's outputs that one tile holds; by dim. */
struct block {
	int64_t from[IR_MAX_DIMS], count[IR_MAX_DIMS];
};

static const struct ir_axis *axis_of(const struct ir_sdsc *s, uint32_t dim)
{
	for (uint32_t k = 0; k < 2; k++)
		if (s->axis[k].dim == dim)
			return &s->axis[k];
	return NULL;
}

static bool is_tap(const struct ir_sdsc *s, uint32_t dim)
{
	return dim == s->axis[0].tap || dim == s->axis[1].tap;
}

static spyre_status find_roles(struct lower *l, struct conv *c)
{
	const struct ir_sdsc *s = l->sdsc;

	c->index[Y] = s->output;
	c->index[X] = s->input[0];
	c->index[W] = s->input[1];
	for (uint32_t i = 0; i < 3; i++)
		c->tensor[i] = &s->tensor[c->index[i]];
	c->out = c->tensor[Y]->stick;
	c->in = c->tensor[X]->stick;
	if (c->in == c->out || lower_varies(c->tensor[Y], c->in) ||
	    lower_varies(c->tensor[X], c->out) || c->tensor[W]->stick != c->out ||
	    !lower_varies(c->tensor[W], c->in) || !lower_varies(c->tensor[W], c->out) ||
	    axis_of(s, c->out) || is_tap(s, c->in) || is_tap(s, c->out))
		return lower_unsupported(l, "the input must have its sticks along the channels in, weights and output along the channels out; they have them along %s, %s and %s",
					 s->dim[c->in], s->dim[c->tensor[W]->stick],
					 s->dim[c->out]);
	return SPYRE_SUCCESS;
}

/* Batch dims first, so that columns become the rows of the PT. */
static spyre_status find_loops(struct lower *l, struct conv *c)
{
	const struct ir_sdsc *s = l->sdsc;

	for (uint32_t d = 0; d < s->num_dims; d++) {
		if (d == c->in || d == c->out)
			continue;
		if (is_tap(s, d)) {
			c->skip |= 1u << d;
			if (lower_varies(c->tensor[Y], d))
				return lower_unsupported(l, "the output varies along %s, over which the window runs",
							 s->dim[d]);
			continue;
		}
		if (s->el[d] > 1 && !lower_varies(c->tensor[Y], d))
			return lower_unsupported(l, "the output does not vary along %s",
						 s->dim[d]);
		if (!axis_of(s, d) && s->el[d] > 1)
			c->loop[c->num_loops++] = d;
	}
	c->skip |= 1u << c->in;
	for (uint32_t k = 0; k < 2; k++)
		if (s->axis[k].dim != IR_NO_DIM)
			c->loop[c->num_loops++] = s->axis[k].dim;
	if (c->num_loops > MAX_LOOPS)
		return lower_unsupported(l, "%u dimensions of batch, rows and columns, the PT has %u",
					 c->num_loops, MAX_LOOPS);
	return lower_unmasked(l, c->skip);
}

#define BIT(format) (1u << SPYRE_FMT_##format)
#define FLOATS (BIT(SEN169_FP16) | BIT(IEEE_FP16) | BIT(BFLOAT16) | BIT(IEEE_FP32))

/* Formats and packs are those that the PT supports for batchmatmul. */
static const struct family {
	const char *op;
	uint32_t from, to;
	struct pack_rule w;
} families[] = {
	{ "conv2d", FLOATS, FLOATS, { { 0 }, { 0 } } },
	{ "conv2dfp8", BIT(SEN143_FP8) | BIT(SEN152_FP8), FLOATS, { { 2, 64 }, { 0, 1 } } },
	{ "conv2dint8", BIT(SENINT8), FLOATS | BIT(IEEE_INT32), { { 2, 64 }, { 0, 1 } } },
};

static spyre_status check_formats(struct lower *l, struct conv *c)
{
	const struct family *f = families;

	while (strcmp(f->op, l->sdsc->op))
		f++;
	for (uint32_t i = 0; i < 3; i++) {
		const struct ir_tensor *t = c->tensor[i];
		char text[256];

		if (!((i == Y ? f->to : f->from) >> t->format & 1))
			return lower_unsupported(l, "Tensor%u is %s, for which the PT has no rule as %s of this operation",
						 c->index[i],
						 spyre_format_name((spyre_format)t->format),
						 i == Y ? "result" : "input");
		if (i == W && f->w.size[0] ? !pack_matches(t, &f->w) : t->num_parts != 1)
			return lower_unsupported(l, "Tensor%u is %s in sticks of %s, for which the PT has no rule (docs/sdsc.md lists the supported ones)",
						 c->index[i],
						 spyre_format_name((spyre_format)t->format),
						 pack_text(l->sdsc, t, text, sizeof(text)));
	}
	c->sum = c->tensor[X]->format == SPYRE_FMT_SENINT8 ? SPYRE_FMT_IEEE_INT32 :
		 SPYRE_FMT_IEEE_FP32;
	c->columns = (uint32_t)ir_unit(c->tensor[W], c->out);
	return SPYRE_SUCCESS;
}

static spyre_status check_channels(struct lower *l, const struct conv *c)
{
	const struct ir_sdsc *s = l->sdsc;

	if (s->el[c->in] % c->tensor[X]->lanes || s->el[c->out] % c->columns ||
	    s->el[c->out] % c->tensor[Y]->lanes || s->el[c->in] > SPYRE_MAX_COUNT)
		return lower_unsupported(l, "a core's share is %s %" PRId64 " and %s %" PRId64 "; both must be whole sticks, and %s at most %u",
					 s->dim[c->in], s->el[c->in], s->dim[c->out],
					 s->el[c->out], s->dim[c->in], SPYRE_MAX_COUNT);
	if (!c->partial.active)
		return SPYRE_SUCCESS;
	if (c->tensor[Y]->lanes != c->columns)
		return lower_unsupported(l, "cores share outputs in sticks of %u, the weights' are of %u",
					 c->tensor[Y]->lanes, c->columns);
	if (c->sum != SPYRE_FMT_IEEE_FP32)
		return lower_unsupported(l, "cores share sums of integers; divide other dimensions than %s and the window",
					 s->dim[c->in]);
	return SPYRE_SUCCESS;
}

/* True if one tap has input for all outputs, and the output has the sticks of the PT. */
static bool is_direct(const struct ir_sdsc *s, const struct conv *c)
{
	struct window_run run;

	if (c->tensor[Y]->lanes != c->columns)
		return false;
	for (uint32_t k = 0; k < 2; k++)
		for (uint32_t core = 0; core < s->num_cores; core++) {
			window_tap(s, &s->axis[k], core, 0, &run);
			if (window_taps(s, &s->axis[k]) > 1 ||
			    run.count < window_outputs(s, &s->axis[k]))
				return false;
		}
	return true;
}

/* Limits a block of outputs to a tile of @bytes, in the order batch, rows, columns, channels. */
static void cut_block(const struct ir_sdsc *s, const struct conv *c, uint64_t bytes,
		      struct block *b)
{
	uint64_t capacity = bytes / (4 * c->columns);
	uint32_t order[IR_MAX_DIMS], n = 0;

	for (uint32_t i = 0; i < c->num_loops; i++)
		order[n++] = c->loop[i];
	order[n++] = c->out;
	/* From the inside out, each dim gets the capacity that the inner ones leave. */
	for (uint32_t i = n; i-- > 0;) {
		uint32_t d = order[i], unit = d == c->out ? c->columns : 1;
		int64_t most = capacity > MAX_BLOCK_COUNT ? MAX_BLOCK_COUNT : (int64_t)capacity;

		most = most < 1 ? unit : most * unit;
		b->count[d] = s->el[d] < most ? s->el[d] : most;
		capacity /= (uint64_t)(b->count[d] / unit);
	}
}

/* Makes the tile of sums of a block: columns innermost, channels outermost. */
static void make_tile(const struct ir_sdsc *s, struct conv *c, const struct block *b)
{
	struct ir_tensor *t = &c->tile;
	uint64_t step;

	memset(t, 0, sizeof(*t));
	t->format = c->sum;
	t->word = 4;
	t->lanes = c->columns;
	t->lx = true;
	t->stick = c->out;
	t->num_parts = 1;
	t->part[0] = (struct ir_part){ c->out, t->lanes };
	step = (uint64_t)t->word * t->lanes;
	for (uint32_t d = 0; d < s->num_dims; d++)
		t->scale[d] = c->skip >> d & 1 ? -1 : 1;
	for (uint32_t i = c->num_loops; i-- > 0;) {
		t->stride[c->loop[i]] = step;
		step *= (uint64_t)b->count[c->loop[i]];
	}
	t->stride[c->out] = step;
}

static spyre_status plan_tile(struct lower *l, struct conv *c, struct block *b)
{
	const struct ir_sdsc *s = l->sdsc;
	uint32_t left = SPYRE_LX_BYTES - l->scratch, row = 4 * c->columns;

	for (uint32_t d = 0; d < s->num_dims; d++)
		b->count[d] = 1;
	c->direct = is_direct(s, c) && !c->partial.active;
	if (c->partial.active || c->direct) {
		cut_block(s, c, UINT64_MAX, b);
		return SPYRE_SUCCESS;
	}
	if (left < row)
		return spyre_error(SPYRE_ERROR_LX_OVERFLOW,
				   "%s: %s needs %u bytes of LX for sums, the tensors in LX leave %u; plan smaller ones",
				   s->file, s->op, row, left);
	cut_block(s, c, left < TILE_BYTES ? left : TILE_BYTES, b);
	make_tile(s, c, b);
	c->tile_address = (struct address){ .operand = SPYRE_VIEW_LX, .offset = l->scratch };
	return SPYRE_SUCCESS;
}

/* Destination of the sums: the output, the tile of partial results, or the block's tile. */
static const struct ir_tensor *sums(struct lower *l, const struct conv *c, uint32_t core,
				    const struct block *b, struct spyre_view *view)
{
	const struct ir_tensor *t = c->direct ? c->tensor[Y] :
				    c->partial.active ? &c->partial.tile : &c->tile;
	const struct ir_sdsc *s = l->sdsc;

	lower_view(view, t, c->direct ? &l->address[c->index[Y]][core] :
		   c->partial.active ? &c->partial.tile_address : &c->tile_address);
	for (uint32_t d = 0; d < s->num_dims && (c->direct || c->partial.active); d++)
		if (lower_varies(t, d))
			view->offset += (uint64_t)b->from[d] / (d == c->out ? t->lanes : 1) *
					t->stride[d];
	return t;
}

/* Emits a pointwise instruction on the sums: zeros, or the conversion to the output. */
static spyre_status emit_pointwise(struct lower *l, const struct conv *c, uint32_t core,
				   const struct block *b, bool convert)
{
	const struct ir_sdsc *s = l->sdsc;
	struct nest nest = { .in = { .opcode = SPYRE_OP_SFU } };
	const struct ir_tensor *tensor[3], *out = c->tensor[Y];

	tensor[0] = tensor[1] = tensor[2] = sums(l, c, core, b, &nest.view[0]);
	nest.view[1] = nest.view[2] = nest.view[0];
	nest.in.lanes = tensor[0]->lanes;
	/* x < x is 0 for every x, even for a NaN that earlier work left in LX. */
	nest.in.func = convert ? SPYRE_FUNC_IDENTITY : SPYRE_FUNC_LT;
	nest.in.num_views = convert ? 2 : 3;
	if (convert) {
		tensor[0] = out;
		if (out->lanes < nest.in.lanes)
			nest.in.lanes = out->lanes;
		if (out->format == c->sum) {	/* the SFU would round integers above 2^24 */
			nest.in.opcode = SPYRE_OP_MOVE;
			nest.in.func = SPYRE_FUNC_NONE;
		}
		lower_view(&nest.view[0], out, &l->address[c->index[Y]][core]);
		for (uint32_t d = 0; d < s->num_dims; d++)
			if (lower_varies(out, d))
				nest.view[0].offset += (uint64_t)b->from[d] /
						       (d == c->out ? out->lanes : 1) *
						       out->stride[d];
	}
	TRY(lower_dims(l, &nest, tensor, nest.in.num_views, c->out, b->count, c->skip, 0));
	return nest_emit(l, &nest);
}

struct pt {
	struct spyre_instr in;
	struct spyre_view view[3];
};

/* Sets loop @slot to the part of dim @d of the block for which the tap has input. */
static bool set_loop(const struct ir_sdsc *s, const struct conv *c, const struct ir_tensor *sum,
		     const struct block *b, uint32_t d, const struct window_run *run,
		     uint32_t slot, struct pt *pt)
{
	const struct ir_tensor *const tensor[3] = { sum, c->tensor[X], c->tensor[W] };
	const struct ir_axis *a = axis_of(s, d);
	int64_t from = b->from[d], end = from + b->count[d];

	if (a) {
		from = run->first > from ? run->first : from;
		end = run->first + run->count < end ? run->first + run->count : end;
		if (from >= end)
			return false;
	}
	pt->in.count[slot] = (uint32_t)(end - from);
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t stride = lower_varies(tensor[i], d) ? tensor[i]->stride[d] : 0;
		int64_t skip = i == Y ? from - b->from[d] : from;

		if (i == X && a)
			skip = run->at + (from - run->first) * a->stride;
		pt->view[i].offset += stride * (uint64_t)skip;
		if (i == X && a)
			stride *= (uint64_t)a->stride;
		pt->view[i].stride[slot] = end - from > 1 ? stride : 0;
	}
	return true;
}

/* True if a tap has input for all outputs of a block. */
static bool covers(const struct ir_sdsc *s, const struct block *b, uint32_t core,
		   const int64_t *tap)
{
	for (uint32_t k = 0; k < 2; k++) {
		const struct ir_axis *a = &s->axis[k];
		struct window_run run;

		if (a->dim == IR_NO_DIM)
			continue;
		window_tap(s, a, core, tap[k], &run);
		if (run.first > b->from[a->dim] ||
		    run.first + run.count < b->from[a->dim] + b->count[a->dim])
			return false;
	}
	return true;
}

static spyre_status count_idle_tap(struct lower *l)
{
	if (l->idle++ == MAX_IDLE)
		return lower_unsupported(l, "taps that cover only padding more than %u times in the bundle; divide it",
					 MAX_IDLE);
	return SPYRE_SUCCESS;
}

static spyre_status emit_tap(struct lower *l, const struct conv *c, uint32_t core,
			     const struct block *b, const int64_t *tap, bool accumulate)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *x = c->tensor[X], *w = c->tensor[W], *sum;
	struct pt pt = { .in = { .opcode = SPYRE_OP_PT, .num_dims = 6, .num_views = 3,
				 .lanes = c->columns, .count = { 1, 1, 1, 1, 1, 1 } } };
	struct window_run run[2];

	pt.in.flags = accumulate ? SPYRE_INSTR_ACCUMULATE : 0;
	sum = sums(l, c, core, b, &pt.view[Y]);
	lower_view(&pt.view[X], x, &l->address[c->index[X]][core]);
	lower_view(&pt.view[W], w, &l->address[c->index[W]][core]);
	pt.view[W].offset += (uint64_t)b->from[c->out] / c->columns * w->stride[c->out];
	for (uint32_t k = 0; k < 2; k++) {
		window_tap(s, &s->axis[k], core, tap[k], &run[k]);
		if (s->axis[k].tap != IR_NO_DIM && lower_varies(w, s->axis[k].tap))
			pt.view[W].offset += (uint64_t)tap[k] * w->stride[s->axis[k].tap];
	}
	for (uint32_t i = 0; i < c->num_loops; i++)
		if (!set_loop(s, c, sum, b, c->loop[i], &run[c->loop[i] == s->axis[1].dim],
			      MAX_LOOPS - c->num_loops + i, &pt))
			return count_idle_tap(l);
	pt.in.count[4] = (uint32_t)(b->count[c->out] / c->columns);
	pt.in.count[5] = (uint32_t)s->el[c->in];
	pt.view[Y].stride[4] = sum->stride[c->out];
	pt.view[W].stride[4] = w->stride[c->out];
	pt.view[X].stride[5] = x->stride[c->in];
	pt.view[W].stride[5] = w->stride[c->in];
	return encoder_instr(l->encoder, &pt.in, pt.view);
}

static spyre_status emit_block(struct lower *l, const struct conv *c, uint32_t core,
			       const struct block *b, uint32_t *budget)
{
	const struct ir_sdsc *s = l->sdsc;
	int64_t tap[2] = { 0, 0 };
	bool start = covers(s, b, core, tap);	/* the first tap writes the sums, no zeros needed */
	spyre_status status = SPYRE_SUCCESS;

	if (!start)
		status = emit_pointwise(l, c, core, b, false);
	for (; tap[0] < window_taps(s, &s->axis[0]); tap[0]++)
		for (tap[1] = 0; tap[1] < window_taps(s, &s->axis[1]); tap[1]++) {
			if (!status && !(*budget)--)
				status = lower_unsupported(l, "a core's share needs more than %u products; divide it over more cores",
							   MAX_BLOCKS);
			if (!status)
				status = emit_tap(l, c, core, b, tap, !start);
			if (status)
				return status;
			start = false;
		}
	return c->direct || c->partial.active ? SPYRE_SUCCESS :
	       emit_pointwise(l, c, core, b, true);
}

/* Advances to the next block of @size in a core's share; false after the last. */
static bool next_block(const struct ir_sdsc *s, const struct conv *c, const struct block *size,
		       struct block *b)
{
	bool more = false;

	for (uint32_t i = 0; i <= c->num_loops; i++) {
		uint32_t d = i ? c->loop[c->num_loops - i] : c->out;

		if (!more) {
			b->from[d] += b->count[d];
			more = b->from[d] < s->el[d];
			if (!more)
				b->from[d] = 0;
		}
		b->count[d] = s->el[d] - b->from[d];
		if (b->count[d] > size->count[d])
			b->count[d] = size->count[d];
	}
	return more;
}

static spyre_status emit_core(struct lower *l, const struct conv *c, uint32_t core,
			      const struct block *size)
{
	spyre_status status = encoder_stream(l->encoder, l->sdsc->core[core]);
	uint32_t budget = MAX_BLOCKS;
	struct block b = *size;

	do {
		if (!status)
			status = emit_block(l, c, core, &b, &budget);
	} while (!status && next_block(l->sdsc, c, size, &b));
	return status;
}

/* If cores share outputs all of them must: an unshared core's tile would not be stored. */
static spyre_status check_sharing(struct lower *l, const struct conv *c)
{
	for (uint32_t core = 0; core < l->sdsc->num_cores && c->partial.active; core++)
		if (!partial_core(&c->partial, l->sdsc, core))
			return lower_unsupported(l, "core %u has an output of its own, others share theirs",
						 l->sdsc->core[core]);
	return SPYRE_SUCCESS;
}

spyre_status lower_conv(struct lower *l, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	struct block size = { { 0 }, { 0 } };
	struct conv c = { 0 };
	spyre_status status;

	status = find_roles(l, &c);
	if (!status)
		status = find_loops(l, &c);
	if (!status)
		status = check_formats(l, &c);
	if (!status)
		status = partial_plan(l, 0, &c.partial);
	if (!status)
		status = check_sharing(l, &c);
	if (!status)
		status = check_channels(l, &c);
	if (!status)
		status = plan_tile(l, &c, &size);
	for (uint32_t core = 0; core < s->num_cores && !status; core++)
		status = emit_core(l, &c, core, &size);
	if (status || !c.partial.active)
		return status;
	return partial_combine(l, &c.partial, SPYRE_FUNC_SUM, func);
}
