// SPDX-License-Identifier: MIT
/*
 * Builder: makes the dims and tensors of a step from its operands. Dims are named
 * as in the public front-end; those of size 1 are left out unless they are stick
 * dims.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/layout/stick.h"
#include "libspyre/sdsc/graph/attr.h"
#include "libspyre/sdsc/graph/fit.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/index.h"
#include "libspyre/sdsc/graph/index_matmul.h"
#include "libspyre/sdsc/graph/integer.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/shapes.h"
#include "libspyre/sdsc/graph/topk.h"
#include "libspyre/sdsc/graph/window.h"

struct shaper {
	const struct build_call *call;
	const char *op;
	struct build_use *uses;		/* inputs, then the output */
	uint32_t inputs;
	struct build_step *step;
	struct ir_sdsc *s;
};

static const char *const names[] = { "mb", "x", "y", "i", "j", "ki", "kj" };

int build_add_dim(struct build_step *step, const char *name, int64_t size, int key)
{
	struct ir_sdsc *s = &step->sdsc;

	if (s->num_dims == IR_MAX_DIMS)
		return -1;
	snprintf(s->dim[s->num_dims], sizeof(s->dim[0]), "%s", name);
	s->size[s->num_dims] = size;
	step->key[s->num_dims] = (int8_t)key;
	return (int)s->num_dims++;
}

static int add_dim(struct shaper *b, const char *name, int64_t size, int key)
{
	return build_add_dim(b->step, name, size, key);
}

/* Adds a dim of lanes, for tensors that have one value per stick. */
static int add_lanes(struct shaper *b, int64_t lanes)
{
	static const char *const free_names[] = { "x", "y", "i", "j", "ki", "kj", "mb" };
	uint32_t n = 0;

	if (b->s->num_dims == IR_MAX_DIMS)
		return -1;
	for (uint32_t d = 0; d < b->s->num_dims; d++)
		if (n < 6 && !strcmp(b->s->dim[d], free_names[n])) {
			n++;
			d = UINT32_MAX;
		}
	return add_dim(b, b->s->num_dims ? free_names[n] : "out", lanes, BUILD_NO_KEY);
}

static int64_t most_lanes(const struct shaper *b)
{
	int64_t most = 1;

	for (uint32_t i = 0; i <= b->inputs; i++) {
		int64_t lanes = spyre_stick_elements(b->uses[i].view.layout.device_format);

		most = lanes > most ? lanes : most;
	}
	return most;
}

static spyre_status check_formats(const struct shaper *b)
{
	for (uint32_t i = 0; i <= b->inputs; i++) {
		spyre_format format = b->uses[i].view.layout.device_format;

		if (b->call->op->kind == BUILD_MATMUL && i == 2 && b->inputs == 3)
			continue;	/* indices, which their recipe checks */
		if (!(b->call->op->flags & BUILD_CONVERTS) &&
		    format != b->uses[0].view.layout.device_format)
			return spyre_error(SPYRE_ERROR_FORMAT,
					   "%s: operand %u is %s on the device, operand 0 is %s; they must be the same",
					   b->op, i, spyre_format_name(format),
					   spyre_format_name(b->uses[0].view.layout.device_format));
		/* The compiler checks the formats of conversions, copies and index searches. */
		if ((b->call->op->flags & BUILD_CONVERTS) && b->call->op->kind != BUILD_MATMUL)
			continue;
		if (!strcmp(b->call->op->func, "identity") || b->call->op->kind == BUILD_RESTICK)
			continue;
		if (b->call->op->flags & BUILD_INTEGER) {
			if (format != SPYRE_FORMAT_IEEE_INT32)
				return spyre_error(SPYRE_ERROR_FORMAT,
						   "%s does not compute on %s, only on IEEE_INT32",
						   b->op, spyre_format_name(format));
			continue;
		}
		if (format != SPYRE_FORMAT_SEN169_FP16 && format != SPYRE_FORMAT_BFLOAT16 &&
		    format != SPYRE_FORMAT_IEEE_FP16 && format != SPYRE_FORMAT_IEEE_FP32)
			return spyre_error(SPYRE_ERROR_FORMAT, "%s does not compute on %s", b->op,
					   spyre_format_name(format));
	}
	return SPYRE_SUCCESS;
}

static spyre_status mismatch(const struct shaper *b, uint32_t index, uint32_t dim, int64_t want)
{
	return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
			   "%s: operand %u has size[%u] = %" PRId64 ", expected %" PRId64, b->op,
			   index, dim, b->uses[index].view.size[dim], want);
}

/* Dims that a tensor is broadcast along are its outermost dims. */
static void add_broadcast(struct ir_sdsc *s, struct ir_tensor *t)
{
	for (uint32_t d = 0; d < s->num_dims; d++)
		if (!t->scale[d]) {
			t->scale[d] = -1;
			t->order[t->num_order++] = d;
		}
}

void build_finish(struct build_step *step, const struct build_use *uses, uint32_t count,
		  const char *func)
{
	struct ir_sdsc *s = &step->sdsc;

	snprintf(s->op, sizeof(s->op), "%s", func);
	for (uint32_t i = 0; i + 1 < count; i++)
		s->input[s->num_inputs++] = i;
	s->output = count - 1;
	for (uint32_t i = 0; i < count; i++) {
		step->tensor[i] = uses[i].tensor;
		step->offset[i] = uses[i].offset;
	}
}

static void finish(struct shaper *b, const char *func)
{
	build_finish(b->step, b->uses, b->inputs + 1, func);
}

void build_add_constant(struct ir_sdsc *s, const char *name, float value)
{
	struct ir_constant *c = &s->constant[s->num_constants++];
	bool dl16 = s->tensor[0].format == SPYRE_FMT_SEN169_FP16;
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->format = dl16 ? SPYRE_FMT_SEN169_FP16 : SPYRE_FMT_IEEE_FP32;
	c->bits = dl16 ? spyre_fp32_to_dl16(bits) : bits;
}

/* A bound beyond 32 bits that is no bound for any integer becomes the last one. */
static spyre_status add_integer(struct shaper *b, const char *constant, double value)
{
	int32_t number;

	if (!strcmp(constant, "clipMin") && value < INT32_MIN)
		value = INT32_MIN;
	if (!strcmp(constant, "clipMax") && value > INT32_MAX)
		value = INT32_MAX;
	TRY(build_integer_number(b->op, value, &number));
	build_integer_constant(b->s, constant, number);
	return SPYRE_SUCCESS;
}

static spyre_status add_attributes(struct shaper *b)
{
	const struct build_op *op = b->call->op;

	for (uint32_t i = 0; i < BUILD_MAX_ATTRS && op->attr[i].constant; i++) {
		float value = (float)build_attr(b->call, op->attr[i].name);

		if (op->flags & BUILD_INTEGER) {
			TRY(add_integer(b, op->attr[i].constant,
					build_attr(b->call, op->attr[i].name)));
			continue;
		}
		if (isnan(value))
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s needs the attribute \"%s\"", op->name,
					   op->attr[i].name);
		build_add_constant(b->s, op->attr[i].constant, value);
	}
	return SPYRE_SUCCESS;
}

/* Adds the rows and the width of mask_by_index; @dim: the dims of the output @out. */
static spyre_status add_diagonal(struct shaper *b, const spyre_sdsc_operand *out, const int *dim)
{
	double rows = build_attr(b->call, "rows"), width = build_attr(b->call, "width");
	const struct ir_tensor *t = &b->s->tensor[b->s->output];
	uint32_t row;

	if (!(width >= 0 && width <= 1 << 24) || width != (uint32_t)width)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: the width is %g, expected an integer from 0 to %u", b->op,
				   width, 1u << 24);
	if (width > 0)
		build_integer_constant(b->s, "samv-width", (int32_t)width);
	if (isnan(rows))
		return SPYRE_SUCCESS;
	TRY(build_attr_dim(b->call, "rows", rows, out->rank, &row));
	for (uint32_t i = 0; i < t->num_order; i++)
		if (dim[row] == (int)t->order[i])
			build_integer_constant(b->s, "samv-rowdim", (int32_t)i);
	return SPYRE_SUCCESS;
}

static spyre_status wrong_sticks(const struct shaper *b, uint32_t index, int stick, int want)
{
	return spyre_error(SPYRE_ERROR_LAYOUT,
			   "%s: operand %u has its sticks along dimension %d, dimension %d is needed here; restickify it first",
			   b->op, index, stick, want);
}

/* Adds the dims of an output. Returns the dim along lanes, -1 if they are too many. */
static int box_dims(struct shaper *b, const spyre_sdsc_operand *out, int *dim)
{
	int stick = build_stick_dim(out), last = -1, lane = -1;

	for (uint32_t d = 0; d < out->rank; d++) {
		dim[d] = -1;
		if (out->size[d] > 1)
			last = (int)d;
	}
	if (stick >= 0)
		last = (int)out->rank - 1;
	for (uint32_t d = 0; d < out->rank; d++) {
		int64_t size = out->size[d];

		if (size == 1)
			continue;
		if ((int)d == stick)
			size = build_whole_sticks(size, most_lanes(b));
		dim[d] = add_dim(b, (int)d == last ? "out" : names[d], size,
				 (int)(out->rank - 1 - d));
		if (dim[d] < 0)
			return -1;
		if ((int)d == stick)
			lane = dim[d];
	}
	/* A sparse output has one element per stick, so a dim for the lanes is added. */
	if (stick < 0)
		lane = add_lanes(b, b->call->op->flags & BUILD_CONVERTS ? build_lanes(out) :
				    most_lanes(b));
	return lane;
}

static spyre_status too_many(const struct shaper *b)
{
	return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH, "%s: more than %u dimensions", b->op,
			   IR_MAX_DIMS);
}

/* Adds an input, which broadcasts to the output from the right. */
static spyre_status pointwise_input(struct shaper *b, uint32_t index, const int *dim, int lane)
{
	const spyre_sdsc_operand *in = &b->uses[index].view, *out = &b->uses[b->inputs].view;
	uint32_t lead = out->rank - in->rank;
	int own[SPYRE_MAX_RANK], stick = build_stick_dim(in);
	bool sparse = build_stick_dim(out) < 0;

	if (in->rank > out->rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: operand %u has rank %u, the output %u", b->op, index,
				   in->rank, out->rank);
	for (uint32_t d = 0; d < in->rank; d++) {
		if (in->size[d] != 1 && in->size[d] != out->size[lead + d])
			return mismatch(b, index, d, out->size[lead + d]);
		own[d] = in->size[d] == 1 ? -1 : dim[lead + d];
		if (own[d] == lane && (int)d != stick)
			return wrong_sticks(b, index, stick, (int)d);
	}
	if (stick >= 0 && own[stick] != lane)
		return wrong_sticks(b, index, stick, sparse ? -1 : build_stick_dim(out));
	sparse = sparse && !(b->call->op->flags & (BUILD_SPLAT | BUILD_CONVERTS));
	return build_place_tensor(b->s, b->op, in, own, (uint32_t)lane, stick >= 0 || sparse);
}

/*
 * Tensors of the same dims and stick are described in one order, that of the
 * output: a scalar or column is a tensor of all dims, not one that lacks some.
 */
static spyre_status pointwise_shapes(struct shaper *b)
{
	const spyre_sdsc_operand *out = &b->uses[b->inputs].view;
	int dim[SPYRE_MAX_RANK], lane;
	struct ir_sdsc *s = b->s;

	lane = box_dims(b, out, dim);
	if (lane < 0)
		return too_many(b);
	for (uint32_t i = 0; i < b->inputs; i++)
		TRY(pointwise_input(b, i, dim, lane));
	TRY(build_place_tensor(s, b->op, out, dim, (uint32_t)lane, true));
	build_share_singles(s, 0);
	for (uint32_t i = 0; i < b->inputs; i++) {
		struct ir_tensor *t = &s->tensor[i];

		if (t->scale[t->stick] == -2 && t->num_order == 1) {
			/* A scalar has no order, so it takes that of the output. */
			memcpy(t->order, s->tensor[b->inputs].order, sizeof(t->order));
			t->num_order = s->num_dims;
			for (uint32_t d = 0; d < s->num_dims; d++)
				t->scale[d] = d == t->stick ? -2 : -1;
		} else {
			add_broadcast(s, t);
		}
	}
	finish(b, b->call->op->func);
	TRY(add_attributes(b));
	return !strcmp(s->op, "maskbyindex") ? add_diagonal(b, out, dim) : SPYRE_SUCCESS;
}

/* Adds a mask that hides the padding of a partial last stick. */
static void add_mask(struct ir_sdsc *s, uint32_t stick, int64_t size)
{
	float identity = !strcmp(s->op, "max") ? -INFINITY : !strcmp(s->op, "min") ? INFINITY : 0;

	if (size == s->size[stick])
		return;
	s->mask[s->num_masks++] = (struct ir_mask){ stick, size, s->size[stick] - size };
	if (!strncmp(s->op, "int", 3)) {
		build_integer_constant(s, "samv-maskvalue", !strcmp(s->op, "intmax") ? INT32_MIN :
				       !strcmp(s->op, "intmin") ? INT32_MAX : 0);
		return;
	}
	build_add_constant(s, "samv-maskvalue", identity);
}

static void reduce_constants(struct ir_sdsc *s, const char *func, int64_t size)
{
	if (!strcmp(func, "mean"))
		build_add_constant(s, "scaling_factor", 1.0f / (float)size);
	if (strncmp(func, "exx2", 4))
		return;
	build_add_constant(s, "exx2scale", 1.0f / (float)size);
	build_add_constant(s, "useZeroMean", strcmp(func, "exx2") != 0);
}

/* Adds the kept dims, then the reduced one, which has size 1 in the output. */
static int reduce_dims(struct shaper *b, uint32_t reduced, int stick, int *dim)
{
	const spyre_sdsc_operand *in = &b->uses[0].view;
	int64_t lanes = most_lanes(b);
	int lane = -1;
	uint32_t n = 0;

	for (uint32_t i = 0; i < in->rank; i++) {
		/* the reduced one comes last */
		uint32_t d = i + 1 == in->rank ? reduced : i + (i >= reduced);
		int64_t size = in->size[d];

		if ((int)d == stick)
			size = build_whole_sticks(size, lanes);
		dim[d] = -1;
		if (size > 1) {
			dim[d] = add_dim(b, d == reduced ? "out" : names[n], size,
					 (int)(in->rank - 1 - d));
			if (dim[d] < 0)
				return -1;
		}
		if ((int)d == stick)
			lane = dim[d];
		n++;
	}
	return lane >= 0 ? lane : add_lanes(b, lanes);
}

static spyre_status reduce_shapes(struct shaper *b)
{
	const spyre_sdsc_operand *in = &b->uses[0].view, *out = &b->uses[1].view;
	uint32_t reduced = (uint32_t)build_attr(b->call, "dim");
	int raw = in->layout.dim_map[in->layout.device_rank - 1];
	int stick = raw == (int)reduced ? raw : build_stick_dim(in), lane;
	bool lanes = stick == (int)reduced;
	int dim[SPYRE_MAX_RANK];
	char func[IR_NAME_BYTES];

	for (uint32_t d = 0; d < in->rank; d++)
		if (out->size[d] != (d == reduced ? 1 : in->size[d]))
			return mismatch(b, 1, d, d == reduced ? 1 : in->size[d]);
	if (!lanes && !strncmp(b->op, "exx2", 4))
		return wrong_sticks(b, 0, stick, (int)reduced);
	lane = reduce_dims(b, reduced, stick, dim);
	if (lane < 0)
		return too_many(b);
	TRY(build_place_tensor(b->s, b->op, in, dim, (uint32_t)lane, true));
	if (!lanes)
		b->step->reduced = 1u << dim[reduced];
	else
		b->step->whole = 1u << lane;
	dim[reduced] = -1;
	if (!lanes && build_stick_dim(out) != stick)
		return wrong_sticks(b, 1, build_stick_dim(out), stick);
	TRY(build_place_tensor(b->s, b->op, out, dim, (uint32_t)lane, !lanes));
	build_share_singles(b->s, 0);
	add_broadcast(b->s, &b->s->tensor[1]);
	snprintf(func, sizeof(func), "%s%s", b->call->op->func,
		 lanes || !strncmp(b->call->op->func, "quant", 5) ? "" : "nonstick");
	finish(b, func);
	b->s->input[b->s->num_inputs++] = 1;
	reduce_constants(b->s, b->call->op->func, in->size[reduced]);
	if (lanes)
		add_mask(b->s, (uint32_t)lane, in->size[reduced]);
	return SPYRE_SUCCESS;
}

/* Checks [.., M, K] x [.., K, N] -> [.., M, N]; batches broadcast from the right. */
static spyre_status matmul_check(const struct shaper *b)
{
	const spyre_sdsc_operand *o[3] = { &b->uses[0].view, &b->uses[1].view, &b->uses[2].view };
	uint32_t rank = o[2]->rank, most = o[0]->rank > o[1]->rank ? o[0]->rank : o[1]->rank;

	if (o[0]->rank < 2 || o[1]->rank < 2 || rank != most || rank > 5)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: ranks %u x %u -> %u; expected [.., M, K] x [.., K, N] -> [.., M, N] of rank 2 to 5",
				   b->op, o[0]->rank, o[1]->rank, rank);
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t d = 0; d + 2 < o[i]->rank; d++)
			if (o[i]->size[d] != 1 &&
			    o[i]->size[d] != o[2]->size[rank - o[i]->rank + d])
				return mismatch(b, i, d, o[2]->size[rank - o[i]->rank + d]);
	if (o[1]->size[o[1]->rank - 2] != o[0]->size[o[0]->rank - 1])
		return mismatch(b, 1, o[1]->rank - 2, o[0]->size[o[0]->rank - 1]);
	if (o[2]->size[rank - 2] != o[0]->size[o[0]->rank - 2])
		return mismatch(b, 2, rank - 2, o[0]->size[o[0]->rank - 2]);
	if (o[2]->size[rank - 1] != o[1]->size[o[1]->rank - 1])
		return mismatch(b, 2, rank - 1, o[1]->size[o[1]->rank - 1]);
	return SPYRE_SUCCESS;
}

static spyre_status matmul_place(struct shaper *b, uint32_t index, const int *batch, int rows,
				 int columns, int lane)
{
	const spyre_sdsc_operand *o = &b->uses[index].view;
	uint32_t lead = b->uses[2].view.rank - o->rank;
	int dim[SPYRE_MAX_RANK], stick = o->layout.dim_map[o->layout.device_rank - 1];

	for (uint32_t d = 0; d + 2 < o->rank; d++)
		dim[d] = o->size[d] > 1 ? batch[lead + d] : -1;
	dim[o->rank - 2] = rows;
	dim[o->rank - 1] = columns;
	if (stick != (int)o->rank - 1 && o->size[o->rank - 1] > 1)
		return wrong_sticks(b, index, stick, (int)o->rank - 1);
	return build_place_tensor(b->s, b->op, o, dim, (uint32_t)lane, true);
}

static spyre_status matmul_shapes(struct shaper *b)
{
	static const char *const batch_names[] = { "x", "y", "i" };
	const spyre_sdsc_operand *a = &b->uses[0].view, *c = &b->uses[2].view;
	int batch[SPYRE_MAX_RANK], m = -1, n, k;
	uint32_t rank = c->rank;

	TRY(matmul_check(b));
	for (uint32_t d = 0; d + 2 < rank; d++)
		batch[d] = c->size[d] > 1 ? add_dim(b, batch_names[d], c->size[d],
						    (int)(rank - 1 - d)) : -1;
	if (c->size[rank - 2] > 1)
		m = add_dim(b, "mb", c->size[rank - 2], 1);
	n = add_dim(b, "out", build_whole_sticks(c->size[rank - 1], most_lanes(b)), 0);
	k = add_dim(b, "in", build_whole_sticks(a->size[a->rank - 1], build_lanes(a)),
		    BUILD_NO_KEY);
	TRY(matmul_place(b, 0, batch, m, k, k));
	TRY(matmul_place(b, 1, batch, k, n, n));
	TRY(matmul_place(b, 2, batch, m, n, n));
	build_share_singles(b->s, 0);
	finish(b, b->call->op->func);
	return SPYRE_SUCCESS;
}

/* Input and output have different stick dims; both are padded to whole sticks. */
static spyre_status restick_shapes(struct shaper *b)
{
	const spyre_sdsc_operand *in = &b->uses[0].view, *out = &b->uses[1].view;
	int from = build_stick_dim(in), to = build_stick_dim(out), dim[SPYRE_MAX_RANK], lane;

	for (uint32_t d = 0; d < out->rank; d++)
		if (in->rank != out->rank || in->size[d] != out->size[d])
			return mismatch(b, 0, d, out->size[d]);
	if (from < 0 || to < 0)
		return wrong_sticks(b, from < 0 ? 0 : 1, -1, from < 0 ? to : from);
	lane = box_dims(b, out, dim);
	if (lane < 0)
		return too_many(b);
	b->s->size[dim[from]] = build_whole_sticks(b->s->size[dim[from]], most_lanes(b));
	TRY(build_place_tensor(b->s, b->op, in, dim, (uint32_t)dim[from], true));
	TRY(build_place_tensor(b->s, b->op, out, dim, (uint32_t)dim[to], true));
	build_share_singles(b->s, 0);
	finish(b, b->call->op->func);
	return SPYRE_SUCCESS;
}

spyre_status build_shapes(const struct build_call *call, struct build_use *uses,
			  struct build_step *step)
{
	struct shaper b = { .call = call, .op = call->op->name, .uses = uses,
			    .inputs = call->num_inputs, .step = step, .s = &step->sdsc };

	memset(step, 0, sizeof(*step));
	step->op = call->op;
	memset(step->key, BUILD_NO_KEY, sizeof(step->key));
	for (uint32_t d = 0; d < IR_MAX_DIMS; d++)
		step->sdsc.slices[d] = 1;
	for (uint32_t i = 0; i <= b.inputs; i++)
		TRY(build_normalize(b.op, i, &uses[i].view));
	TRY(check_formats(&b));
	switch (call->op->kind) {
	case BUILD_REDUCE:
		return reduce_shapes(&b);
	case BUILD_MATMUL:
		return b.inputs == 3 ? build_index_matmul_shapes(call, uses, step) :
		       matmul_shapes(&b);
	case BUILD_RESTICK:
		return restick_shapes(&b);
	case BUILD_WINDOW:
		return build_window_shapes(call, uses, step);
	case BUILD_TOPK:
		return build_topk_shapes(call, uses, step);
	case BUILD_INDEX:
		return build_index_shapes(call, uses, step);
	default:
		return pointwise_shapes(&b);
	}
}
