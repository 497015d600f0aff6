// SPDX-License-Identifier: MIT
/*
 * Reductions over stick and other dimensions, with masks and partial results.
 *
 * Input sticks are reduced or kept whole where the layouts allow it, else elements
 * are processed one by one. coordinateMasking_ cuts a core's share into boxes; the
 * results of several boxes go to tiles of fp32 or 32-bit integers in LX, are combined
 * there in order and stored once.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/lower/box.h"
#include "libspyre/sdsc/lower/nest.h"
#include "libspyre/sdsc/lower/partial.h"
#include "libspyre/sdsc/lower/rules.h"

#define MAX_POINTS 65280	/* of a dim in one instruction: whole sticks, at most 65535 */
#define MAX_BOXES 4096u	/* of a core's share */
#define FP32_ONE 0x3f800000u
#define FP32_127TH 0x3c010204u	/* of the largest SENINT8 */
#define FP32_448TH 0x3b124925u	/* of the largest SEN143_FP8 */
#define FP32_INF 0x7f800000u
#define FP32_MINUS_INF 0xff800000u
#define INT32_LOWEST 0x80000000u
#define INT32_HIGHEST 0x7fffffffu

static bool exx2(enum spyre_func func)
{
	return func == SPYRE_FUNC_EXX2 || func == SPYRE_FUNC_EXX2_ZEROMEAN;
}

static bool scaled(enum spyre_func func)
{
	return func == SPYRE_FUNC_MEAN || func == SPYRE_FUNC_QUANTSCALE || exx2(func);
}

struct reduction {
	const struct ir_tensor *out, *in;
	uint32_t out_index, in_index;
	enum spyre_func func;
	uint32_t dims;		/* bit per reduced dim */
	uint32_t kept;		/* bit per other dim */
	bool lanes;		/* reduces across the lanes of a stick */
	bool spread;		/* the result fills all lanes of its stick */
	uint32_t width;		/* elements at a time along in->stick */
	uint32_t scale_bits;	/* of a mean or exx2, fp32 */
	uint32_t absent;	/* cores whose whole share is masked */
	/* State of the current core: */
	uint32_t core;
	uint64_t valid;		/* visible elements of the stick dim, 0 if all are */
	struct cuts cuts;
};

/* A tensor with the address of a box. */
struct place {
	const struct ir_tensor *tensor;
	struct address at;
};

static uint32_t lanes_of(const struct reduction *r)
{
	const struct piece *p = &r->cuts.piece[r->in->stick][r->cuts.at[r->in->stick]];

	return p->size < r->width ? (uint32_t)p->size : r->width;
}

/* Sizes of the current box; 1 along the dims in @flat. */
static void box_sizes(const struct lower *l, const struct reduction *r, uint32_t flat,
		      int64_t *size)
{
	for (uint32_t d = 0; d < l->sdsc->num_dims; d++)
		size[d] = flat >> d & 1 ? 1 : r->cuts.piece[d][r->cuts.at[d]].size;
}

static struct place placed(const struct lower *l, const struct reduction *r,
			   const struct ir_tensor *t, const struct address *at)
{
	struct place p = { t, *at };

	p.at.offset += box_offset(l->sdsc, t, &r->cuts);
	return p;
}

/* Emits @nest over the current box without the dims in @flat. */
static spyre_status emit(struct lower *l, const struct reduction *r, struct nest *nest,
			 const struct place *place, uint32_t num, uint32_t flat, uint32_t reduce)
{
	const struct ir_tensor *tensor[SPYRE_MAX_VIEWS];
	int64_t size[IR_MAX_DIMS];

	for (uint32_t i = 0; i < num; i++) {
		uint8_t lanes = nest->view[i].lanes;

		tensor[i] = place[i].tensor;
		lower_view(&nest->view[i], tensor[i], &place[i].at);
		nest->view[i].lanes = lanes;
	}
	box_sizes(l, r, flat, size);
	if (nest->in.opcode == SPYRE_OP_REDUCE && !reduce &&
	    !(nest->in.flags & SPYRE_INSTR_REDUCE_LANES))
		nest->dim[nest->num_dims++] = (struct nest_dim){ .count = 1, .reduce = true };
	TRY(lower_dims(l, nest, tensor, num, r->in->stick, size, flat, reduce));
	return nest_emit(l, nest);
}

/* Widens a box of one lane to two with one valid, as EXX2 requires two. */
static spyre_status widen(struct lower *l, const struct reduction *r, struct spyre_instr *in)
{
	uint32_t stick = r->in->stick;
	int64_t others = 1, start = r->cuts.piece[stick][r->cuts.at[stick]].start;

	for (uint32_t d = 0; d < l->sdsc->num_dims; d++)
		if ((r->dims >> d & 1) && d != stick)
			others *= r->cuts.piece[d][r->cuts.at[d]].size;
	if (others > 1 || start % r->in->lanes + 2 > r->in->lanes)
		return lower_unsupported(l, "coordinateMasking_ leaves one element of a stick of %s alone",
					 l->sdsc->dim[stick]);
	in->lanes = 2;
	in->valid = 1;
	return SPYRE_SUCCESS;
}

/* target = func(current box of the input); @last if the result is final. */
static spyre_status emit_box(struct lower *l, const struct reduction *r, const struct place *target,
			     bool last)
{
	struct place place[2] = { *target, placed(l, r, r->in,
						  &l->address[r->in_index][r->core]) };
	struct nest nest = { .in = { .opcode = SPYRE_OP_REDUCE, .func = (uint16_t)r->func,
				     .num_views = 2, .lanes = lanes_of(r), .valid = r->valid } };
	uint32_t flat = 0;

	if (r->lanes)
		nest.in.flags = SPYRE_INSTR_REDUCE_LANES;
	if (r->func == SPYRE_FUNC_MEAN && !last)
		nest.in.func = SPYRE_FUNC_SUM;
	else if (r->func == SPYRE_FUNC_QUANTSCALE && !last)
		nest.in.func = SPYRE_FUNC_ABSMAX;
	else if (scaled(r->func))
		nest.in.imm[0] = last ? r->scale_bits : FP32_ONE;
	if (exx2(r->func) && nest.in.lanes == 1) {
		spyre_status status = widen(l, r, &nest.in);

		if (status)
			return status;
		flat = 1u << r->in->stick;
	}
	return emit(l, r, &nest, place, 2, flat, r->dims & ~flat);
}

static enum spyre_func combining(enum spyre_func func)
{
	switch (func) {
	case SPYRE_FUNC_INT_SUM:
		return SPYRE_FUNC_INT_ADD;
	case SPYRE_FUNC_INT_AMAX:
		return SPYRE_FUNC_INT_MAX;
	case SPYRE_FUNC_INT_AMIN:
		return SPYRE_FUNC_INT_MIN;
	case SPYRE_FUNC_AMAX:
	case SPYRE_FUNC_ABSMAX:
	case SPYRE_FUNC_QUANTSCALE:
		return SPYRE_FUNC_MAX;
	case SPYRE_FUNC_AMIN:
		return SPYRE_FUNC_MIN;
	default:
		return SPYRE_FUNC_ADD;
	}
}

/* Lanes of a stick that hold results. */
static uint32_t result_lanes(const struct reduction *r)
{
	if (!r->lanes)
		return lanes_of(r);
	return exx2(r->func) ? 2 : 1;
}

static uint16_t pointwise_opcode(const struct reduction *r)
{
	return spyre_func_integer(r->func) ? SPYRE_OP_INT : SPYRE_OP_SFU;
}

/* sum = sum <func> part, both tiles */
static spyre_status add_tile(struct lower *l, const struct reduction *r, const struct place *sum,
			     const struct place *part)
{
	struct place place[3] = { *sum, *sum, *part };
	struct nest nest = { .in = { .opcode = pointwise_opcode(r),
				     .func = (uint16_t)combining(r->func), .num_views = 3,
				     .lanes = result_lanes(r) } };

	return emit(l, r, &nest, place, 3, r->dims, 0);
}

/* out = tile, scaled */
static spyre_status finish(struct lower *l, const struct reduction *r, const struct place *out,
			   const struct place *tile)
{
	struct place place[2] = { *out, *tile };
	struct nest nest = { .in = { .opcode = SPYRE_OP_REDUCE, .func = SPYRE_FUNC_MEAN,
				     .num_views = 2, .lanes = result_lanes(r) } };

	nest.in.imm[0] = scaled(r->func) ? r->scale_bits : FP32_ONE;
	if (spyre_func_integer(r->func)) {
		nest.in.func = SPYRE_FUNC_INT_SUM;
		nest.in.imm[0] = 0;
	}
	if (r->spread) {
		nest.in.flags = SPYRE_INSTR_REDUCE_LANES;
		nest.in.lanes = r->out->lanes;
		nest.in.valid = 1;
	} else if (!scaled(r->func)) {
		nest.in.opcode = pointwise_opcode(r);
		nest.in.func = spyre_func_integer(r->func) ? SPYRE_FUNC_INT_IDENTITY :
							     SPYRE_FUNC_IDENTITY;
		nest.in.imm[0] = 0;
	}
	return emit(l, r, &nest, place, 2, r->dims, 0);
}

/* The same of integers: a clip to one value gives this value for any input. */
static spyre_status fill_integers(struct lower *l, const struct reduction *r,
				  const struct place *place, uint32_t lanes)
{
	uint32_t bits = r->func == SPYRE_FUNC_INT_AMAX ? INT32_LOWEST :
			r->func == SPYRE_FUNC_INT_AMIN ? INT32_HIGHEST : 0;
	struct nest clip = { .in = { .opcode = SPYRE_OP_INT, .func = SPYRE_FUNC_INT_CLIP,
				     .num_views = 2, .lanes = lanes, .imm = { bits, bits } } };

	clip.view[1].lanes = SPYRE_LANES_SPLAT;
	return emit(l, r, &clip, place, 2, r->dims, 0);
}

/* Sets the current box of the result to the value of an empty reduction. */
static spyre_status fill(struct lower *l, const struct reduction *r, const struct place *out)
{
	const struct place in = { r->in, l->address[r->in_index][r->core] };
	struct place place[3] = { *out, in, in };
	uint32_t lanes = r->spread ? r->out->lanes : result_lanes(r);
	uint32_t bits = r->func == SPYRE_FUNC_AMAX ? FP32_MINUS_INF :
			r->func == SPYRE_FUNC_AMIN ? FP32_INF : 0;
	/* x > x is 0 for all x. */
	struct nest zero = { .in = { .opcode = SPYRE_OP_SFU, .func = SPYRE_FUNC_GT,
				     .num_views = 3, .lanes = lanes } };
	struct nest clip = { .in = { .opcode = SPYRE_OP_SFU, .func = SPYRE_FUNC_CLIP,
				     .num_views = 2, .lanes = lanes, .imm = { bits, bits } } };
	struct ir_tensor one = *r->in;
	spyre_status status;

	for (uint32_t d = 0; d < IR_MAX_DIMS; d++)	/* all points read the first element */
		one.scale[d] = -1;
	place[1].tensor = place[2].tensor = &one;
	if (spyre_func_integer(r->func))
		return fill_integers(l, r, place, lanes);
	zero.view[1].lanes = zero.view[2].lanes = SPYRE_LANES_SPLAT;
	status = emit(l, r, &zero, place, 3, r->dims, 0);
	if (status || !bits)
		return status;
	place[1] = *out;
	return emit(l, r, &clip, place, 2, r->dims, 0);
}

/* Counts the unmasked boxes along the reduced dims and restarts at the first. */
static uint32_t count_visible(struct reduction *r)
{
	uint32_t n = 0;

	do
		n += !box_masked(&r->cuts, r->dims);
	while (box_next(&r->cuts, r->dims));
	return n;
}

/* Makes a dense tile for the current box at LX address @from; sets @end. */
static spyre_status make_tile(struct lower *l, const struct reduction *r, uint64_t from,
			      struct ir_tensor *tensor, struct place *place, uint64_t *end)
{
	const struct ir_sdsc *s = l->sdsc;
	int64_t size[IR_MAX_DIMS];

	box_sizes(l, r, r->dims, size);
	*end = from + partial_tile(s, r->lanes && r->in->lanes > r->out->lanes ? r->in->lanes :
				   r->out->lanes, size, tensor);
	if (*end > SPYRE_LX_BYTES || *end < from)
		return spyre_error(SPYRE_ERROR_LX_OVERFLOW,
				   "%s: the parts of a masked reduction need LX up to byte %" PRIu64 ", a core has %u; divide the work over more cores",
				   s->file, *end, SPYRE_LX_BYTES);
	tensor->format = partial_format(r->func);
	*place = (struct place){ tensor, { .operand = SPYRE_VIEW_LX, .offset = from } };
	return SPYRE_SUCCESS;
}

/* Computes one box of the result from its input boxes. */
static spyre_status emit_result(struct lower *l, struct reduction *r, const struct partial *p)
{
	bool tile = partial_core(p, l->sdsc, r->core), first = true;
	struct place out = placed(l, r, r->out, &l->address[r->out_index][r->core]);
	struct place sum = out, part;
	struct ir_tensor tensor[2];
	uint32_t boxes = count_visible(r);
	uint64_t end = l->scratch;
	/* A narrow box does not write all lanes of the result, so these take a tile. */
	bool direct = boxes == 1 && (!r->spread || (r->lanes && r->width == r->out->lanes &&
						    lanes_of(r) == r->width));
	spyre_status status = SPYRE_SUCCESS;

	if (tile) {
		sum = placed(l, r, &p->tile, &p->tile_address);
		end += p->tile_bytes;
	}
	if (!boxes || box_masked(&r->cuts, r->kept))
		return fill(l, r, &sum);
	if (!tile && !direct)
		status = make_tile(l, r, end, &tensor[0], &sum, &end);
	if (!status && boxes > 1)
		status = make_tile(l, r, end, &tensor[1], &part, &end);
	do {
		if (status || box_masked(&r->cuts, r->dims))
			continue;
		status = emit_box(l, r, first ? &sum : &part, direct && !tile);
		if (!status && !first)
			status = add_tile(l, r, &sum, &part);
		first = false;
	} while (box_next(&r->cuts, r->dims));	/* ends at the first box */
	if (status || tile || direct)
		return status;
	return finish(l, r, &out, &sum);
}

/* If the stick is the only reduced dim, a masked end only shortens the count of its elements. */
static void join_stick(const struct lower *l, struct reduction *r)
{
	const struct ir_sdsc *s = l->sdsc;
	struct piece visible[2 * IR_MAX_MASKS + 1];
	uint32_t stick = r->in->stick;
	int64_t whole;

	r->valid = 0;
	if (!r->lanes)
		return;
	for (uint32_t d = 0; d < s->num_dims; d++)
		if ((r->dims >> d & 1) && d != stick && s->el[d] > 1)
			return;
	if (box_visible(s, r->core, stick, visible) > 2 || visible[0].masked)
		return;
	whole = (visible[0].size + r->width - 1) / r->width * r->width;
	r->cuts.num[stick] = 1;
	r->cuts.piece[stick][0] = (struct piece){ 0, whole, false };
	r->valid = visible[0].size == whole ? 0 : (uint64_t)visible[0].size;
}

/* True if another core stores the result and this one does not contribute to it. */
static bool covered(const struct lower *l, const struct reduction *r, uint32_t core)
{
	const struct address *at = l->address[r->out_index];

	for (uint32_t c = 0; c < l->sdsc->num_cores; c++)
		if (c != core && (!(r->absent >> c & 1) || c < core) &&
		    !memcmp(&at[c], &at[core], sizeof(*at)))
			return true;
	return false;
}

/* Limits the boxes, whose number multiplies over dims and gives the instructions. */
static spyre_status check_boxes(struct lower *l, const struct reduction *r)
{
	uint64_t boxes = 1;

	for (uint32_t d = 0; d < l->sdsc->num_dims && boxes <= MAX_BOXES; d++)
		boxes *= r->cuts.num[d];
	if (boxes > MAX_BOXES)
		return lower_unsupported(l, "coordinateMasking_ cuts a core's share into more than %u boxes",
					 MAX_BOXES);
	return SPYRE_SUCCESS;
}

static spyre_status emit_core(struct lower *l, struct reduction *r, const struct partial *p)
{
	const struct ir_tensor *tensor[2] = { r->in, r->out };
	spyre_status status;

	if ((r->absent >> r->core & 1) && !r->out->lx && covered(l, r, r->core))
		return SPYRE_SUCCESS;
	if (!box_cut(l->sdsc, r->core, tensor, 2, r->in->stick, r->width, &r->cuts))
		return lower_unsupported(l, "coordinateMasking_ cuts a dimension into more than %u parts",
					 BOX_MAX_PIECES);
	join_stick(l, r);
	for (uint32_t d = 0; d < l->sdsc->num_dims; d++)
		if ((r->dims >> d & 1) && !(r->valid && d == r->in->stick) &&
		    !box_limit(&r->cuts, d, MAX_POINTS * (d == r->in->stick ? r->width : 1)))
			return lower_unsupported(l, "a reduction over %" PRId64 " elements of %s",
						 l->sdsc->el[d], l->sdsc->dim[d]);
	status = check_boxes(l, r);
	if (!status)
		status = encoder_stream(l->encoder, l->sdsc->core[r->core]);
	while (!status) {
		status = emit_result(l, r, p);
		if (!box_next(&r->cuts, r->kept))
			break;
	}
	return status;
}

/* Makes exx2 with useZeroMean the same as exx2_zeromean. */
static spyre_status set_zero_mean(struct lower *l, enum spyre_func *func)
{
	uint32_t bits = 0;
	spyre_status status;

	if (*func != SPYRE_FUNC_EXX2 || !lower_has_constant(l, "useZeroMean"))
		return SPYRE_SUCCESS;
	status = lower_constant(l, "useZeroMean", &bits);
	if (bits << 1)
		*func = SPYRE_FUNC_EXX2_ZEROMEAN;
	return status;
}

static spyre_status set_scale(struct lower *l, struct reduction *r)
{
	if (r->func == SPYRE_FUNC_MEAN)
		return lower_constant(l, "scaling_factor", &r->scale_bits);
	if (r->func == SPYRE_FUNC_QUANTSCALE && lower_has_constant(l, "mulConst"))
		return lower_constant(l, "mulConst", &r->scale_bits);
	if (r->func == SPYRE_FUNC_QUANTSCALE)
		r->scale_bits = strstr(l->sdsc->op, "fp8") ? FP32_448TH : FP32_127TH;
	if (!exx2(r->func))
		return SPYRE_SUCCESS;
	if (!r->lanes || !r->spread)
		return lower_unsupported(l, "the stick dimension %s is not reduced to a stick per point",
					 l->sdsc->dim[r->in->stick]);
	return lower_constant(l, "exx2scale", &r->scale_bits);
}

/* Determines the width in which the input's lanes are walked. */
static void set_lanes(struct reduction *r)
{
	bool varies = lower_varies(r->in, r->in->stick);
	bool sparse = !lower_varies(r->out, r->out->stick);

	r->width = 1;
	if (varies && sparse && (r->dims >> r->in->stick & 1)) {
		r->lanes = true;
		r->width = r->in->lanes;
	} else if (varies && !sparse && r->in->stick == r->out->stick) {
		r->width = r->in->lanes < r->out->lanes ? r->in->lanes : r->out->lanes;
	}
	r->spread = sparse;
}

static bool all_masked(const struct ir_sdsc *s, uint32_t core, uint32_t dims)
{
	struct piece visible[2 * IR_MAX_MASKS + 1];

	for (uint32_t d = 0; d < s->num_dims; d++)
		if ((dims >> d & 1) && box_visible(s, core, d, visible) == 1 && visible[0].masked)
			return true;
	return false;
}

/* Combines the tiles of cores that share an output, on the first of them. */
static spyre_status combine_all(struct lower *l, const struct reduction *r, struct partial *p)
{
	enum spyre_func func = r->func;

	if (func == SPYRE_FUNC_ABSMAX)
		func = SPYRE_FUNC_AMAX;
	if (exx2(func)) {	/* sums in two lanes */
		func = SPYRE_FUNC_MEAN;
		p->lanes = 2;
	} else if (r->spread) {
		p->lanes = 1;
	}
	return partial_combine(l, p, func, r->scale_bits);
}

static spyre_status reduce_all(struct lower *l, struct reduction *r)
{
	const struct ir_sdsc *s = l->sdsc;
	struct partial partial;
	spyre_status status = set_zero_mean(l, &r->func);

	if (!status)
		status = set_scale(l, r);
	for (uint32_t c = 0; c < s->num_cores; c++)
		r->absent |= all_masked(s, c, r->dims) ? 1u << c : 0;
	if (!status)
		status = partial_plan_lanes(l, r->absent, r->lanes ? r->in->lanes : 0, &partial);
	partial.tile.format = partial_format(r->func);
	for (r->core = 0; r->core < s->num_cores && !status; r->core++)
		status = emit_core(l, r, &partial);
	if (status || !partial.active)
		return status;
	return combine_all(l, r, &partial);
}

static spyre_status check_formats(struct lower *l, const struct reduction *r)
{
	const struct ir_tensor *t = r->in->format == SPYRE_FMT_IEEE_INT32 ? r->out : r->in;

	if (!spyre_func_integer(r->func) || t->format == SPYRE_FMT_IEEE_INT32)
		return SPYRE_SUCCESS;
	return lower_unsupported(l, "Tensor%u is %s, integers are reduced in IEEE_INT32",
				 t == r->in ? r->in_index : r->out_index,
				 spyre_format_name((spyre_format)t->format));
}

static spyre_status reduce(struct lower *l, enum spyre_func func)
{
	const struct ir_sdsc *s = l->sdsc;
	struct reduction *r = calloc(1, sizeof(*r));
	spyre_status status;

	if (!r)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "%s: no memory to compile it",
				   s->file);
	r->func = func;
	r->out_index = s->output;
	r->in_index = s->input[0];
	r->out = &s->tensor[r->out_index];
	r->in = &s->tensor[r->in_index];
	for (uint32_t d = 0; d < s->num_dims; d++) {
		r->dims |= lower_varies(r->out, d) ? 0 : 1u << d;
		r->kept |= lower_varies(r->out, d) ? 1u << d : 0;
	}
	set_lanes(r);
	status = check_formats(l, r);
	if (!status)
		status = reduce_all(l, r);
	free(r);
	return status;
}

/* A reduction of which cores make partial results, in parts of the output. */
struct parts {
	enum spyre_func func;
	bool begun;
	struct lower inner;
	struct ir_sdsc part;
};

/* Bytes of the partial results of a box, twice if several boxes of the input make one. */
static uint64_t need(struct lower *l, void *arg, const struct box *box)
{
	const struct ir_sdsc *s = l->sdsc;
	const uint32_t in = s->tensor[s->input[0]].lanes, out = s->tensor[s->output].lanes;
	struct ir_tensor tile;
	uint64_t bytes = partial_tile(s, in > out ? in : out, box->len, &tile);
	bool several = s->num_masks > 0;

	for (uint32_t d = 0; d < s->num_dims; d++)
		several |= s->el[d] > MAX_POINTS;
	return bytes << several;
}

/* Tiles of one part are read before those of the next are made. */
static spyre_status reduce_part(struct lower *l, void *arg, const struct box *box)
{
	struct parts *x = arg;

	if (x->begun)
		TRY(encoder_phase(l->encoder));
	x->begun = true;
	box_narrow(l, box, &x->inner, &x->part);
	return reduce(&x->inner, x->func);
}

spyre_status lower_reduce(struct lower *l, enum spyre_func func)
{
	struct parts x = { .func = func };
	struct blocks blocks = { .need = need, .emit = reduce_part, .arg = &x };
	uint32_t leader[SPYRE_MAX_CORES];
	struct box box;

	box_share(l->sdsc, &box);
	if (!partial_leaders(l, 0, leader) || need(l, &x, &box) <= SPYRE_LX_BYTES - l->scratch)
		return reduce(l, func);
	box_align(l->sdsc, blocks.align);
	return box_blocks(l, &blocks, &box);
}

bool lower_reduce_stores_last(struct lower *l)
{
	const struct ir_sdsc *s = l->sdsc;
	uint32_t leader[SPYRE_MAX_CORES];
	struct box box;

	/* A core whose share is masked makes no partial result, so another may store at once. */
	if (s->num_masks || !partial_leaders(l, 0, leader))
		return false;
	for (uint32_t c = 0; c < s->num_cores; c++) {
		uint32_t sharing = 0;

		for (uint32_t i = 0; i < s->num_cores; i++)
			sharing += leader[i] == leader[c];
		if (sharing < 2)
			return false;
	}
	box_share(s, &box);
	return need(l, NULL, &box) <= SPYRE_LX_BYTES - l->scratch;
}
