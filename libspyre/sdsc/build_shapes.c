// SPDX-License-Identifier: MIT
/*
 * Builder: from operands to dims and tensors. Dims are named as the public
 * front-end names them; those of size 1 are left out, but for stick dims.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/layout/stick.h"
#include "libspyre/runtime/error.h"
#include "libspyre/sdsc/build.h"

#define TRY(call) do { spyre_status s_ = (call); if (s_ != SPYRE_SUCCESS) return s_; } while (0)

static const char *const names[] = { "mb", "x", "y", "i", "j", "ki", "kj" };

static int add_dim(struct ir_sdsc *s, const char *name, int64_t size)
{
	snprintf(s->dim[s->num_dims], sizeof(s->dim[0]), "%s", name);
	s->size[s->num_dims] = size;
	return (int)s->num_dims++;
}

static int64_t whole_sticks(int64_t size, int64_t lanes)
{
	return (size + lanes - 1) / lanes * lanes;
}

static spyre_status check_operands(const struct build_op *op, const spyre_sdsc_operand *o,
				   uint32_t num_operands)
{
	if (num_operands != op->inputs + 1)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s takes %u inputs and one output, got %u operands", op->name,
				   op->inputs, num_operands);
	for (uint32_t i = 0; i < num_operands; i++) {
		spyre_format format = o[i].layout.device_format;

		if (o[i].rank > SPYRE_MAX_RANK)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s: operand %u has rank %u, the limit is %d", op->name,
					   i, o[i].rank, SPYRE_MAX_RANK);
		for (uint32_t d = 0; d < o[i].rank; d++)
			if (o[i].size[d] < 1 || o[i].size[d] > INT64_C(1) << 40)
				return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
						   "%s: operand %u has size[%u] = %" PRId64 "; there is nothing to compute on empty tensors, and 2^40 is the limit",
						   op->name, i, d, o[i].size[d]);
		if (o[i].layout.device_rank < 1 ||
		    o[i].layout.device_rank > SPYRE_MAX_DEVICE_RANK)
			return spyre_error(SPYRE_ERROR_LAYOUT,
					   "%s: operand %u has no valid layout; use a spyre_layout_init function",
					   op->name, i);
		if (format != o[0].layout.device_format)
			return spyre_error(SPYRE_ERROR_FORMAT,
					   "%s: operand %u is %s on the device, operand 0 is %s; they must be the same",
					   op->name, i, spyre_format_name(format),
					   spyre_format_name(o[0].layout.device_format));
		if (format != SPYRE_FORMAT_SEN169_FP16 && format != SPYRE_FORMAT_BFLOAT16 &&
		    format != SPYRE_FORMAT_IEEE_FP16 &&
		    (format != SPYRE_FORMAT_IEEE_FP32 || op->kind == BUILD_MATMUL))
			return spyre_error(SPYRE_ERROR_FORMAT, "%s does not compute on %s",
					   op->name, spyre_format_name(format));
	}
	return SPYRE_SUCCESS;
}

/* A tensor of the dims in @dim[] (row-major, the last is the stick, -1 left out). */
static struct ir_tensor *add_tensor(struct ir_sdsc *s, spyre_format format, const int *dim,
				    uint32_t rank)
{
	struct ir_tensor *t = &s->tensor[s->num_tensors++];
	int kept[SPYRE_MAX_RANK + 1];
	uint32_t n = 0, first = rank > 1 && dim[0] >= 0;

	memset(t, 0, sizeof(*t));
	t->format = (enum spyre_fmt)format;
	t->lanes = (uint32_t)spyre_stick_elements(format);
	t->word = SPYRE_STICK_BYTES / t->lanes;
	for (uint32_t i = 0; i < rank; i++)
		if (dim[i] >= 0)
			kept[n++] = dim[i];
	t->stick = (uint32_t)kept[n - 1];
	/* Inside to outside: the first dim, the tile index, then the others backwards. */
	if (first)
		t->order[t->num_order++] = (uint32_t)kept[0];
	for (uint32_t i = n; i-- > first;)
		t->order[t->num_order++] = (uint32_t)kept[i];
	for (uint32_t i = 0; i < n; i++)
		t->scale[kept[i]] = 1;
	return t;
}

/* Dims that a tensor lacks and is repeated along come outside all others. */
static void add_broadcast(struct ir_sdsc *s, struct ir_tensor *t)
{
	for (uint32_t d = 0; d < s->num_dims; d++)
		if (!t->scale[d]) {
			t->scale[d] = -1;
			t->order[t->num_order++] = d;
		}
}

/* Compares with the layout's device dims; those of one point say nothing. */
static spyre_status check_layout(const struct ir_sdsc *s, uint32_t index,
				 const spyre_sdsc_operand *o)
{
	const struct ir_tensor *t = &s->tensor[index];
	const spyre_layout *l = &o->layout;
	bool same = l->device_size[l->device_rank - 1] == t->lanes &&
		    l->arrangement == SPYRE_EA_STANDARD;
	char want[160], got[256];
	size_t used = 0;
	uint32_t j = 0;

	for (uint32_t k = t->num_order; k-- > 0;) {
		uint32_t d = t->order[k];
		int64_t size = t->scale[d] < 1 ? 1 : d == t->stick ? s->size[d] / t->lanes :
			       s->size[d];

		if (size == 1)
			continue;
		while (j + 1 < l->device_rank && l->device_size[j] == 1)
			j++;
		same = same && j + 1 < l->device_rank && l->device_size[j] == size;
		j++;
		used += (size_t)snprintf(want + used, sizeof(want) - used, "%" PRId64 ", ", size);
	}
	while (j + 1 < l->device_rank && l->device_size[j] == 1)
		j++;
	if (same && j + 1 >= l->device_rank)
		return SPYRE_SUCCESS;
	snprintf(want + used, sizeof(want) - used, "%u", t->lanes);
	spyre_layout_format_string(l, got, sizeof(got));
	return spyre_error(SPYRE_ERROR_LAYOUT,
			   "%s: operand %u needs device_size [%s] but for dimensions of 1, its layout is %s",
			   s->op, index, want, got);
}

static spyre_status mismatch(const struct build_op *op, uint32_t index, uint32_t dim,
			     int64_t got, int64_t want)
{
	return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
			   "%s: operand %u has size[%u] = %" PRId64 ", expected %" PRId64, op->name,
			   index, dim, got, want);
}

/* Names the dims of a row-major shape; @dim[] gets their indices. */
static void name_dims(struct ir_sdsc *s, const spyre_sdsc_operand *o, int64_t lanes, int *dim)
{
	for (uint32_t d = 0; d + 1 < o->rank; d++)
		dim[d] = o->size[d] > 1 ? add_dim(s, names[d], o->size[d]) : -1;
	dim[o->rank ? o->rank - 1 : 0] =
		add_dim(s, "out", whole_sticks(o->rank ? o->size[o->rank - 1] : 1, lanes));
}

/* Inputs broadcast to the output from the right. */
static spyre_status pointwise_input(const struct build_op *op, struct ir_sdsc *s, uint32_t index,
				    const spyre_sdsc_operand *in, const spyre_sdsc_operand *out,
				    const int *dim)
{
	int own[SPYRE_MAX_RANK + 1];
	struct ir_tensor *t;
	uint32_t n = 0, lead = out->rank - in->rank;

	if (in->rank > out->rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: operand %u has rank %u, the output %u", op->name, index,
				   in->rank, out->rank);
	for (uint32_t d = 0; d < in->rank; d++) {
		if (in->size[d] != 1 && in->size[d] != out->size[lead + d])
			return mismatch(op, index, d, in->size[d], out->size[lead + d]);
		if (d + 1 < in->rank)
			own[n++] = in->size[d] == out->size[lead + d] ? dim[lead + d] : -1;
	}
	own[n++] = dim[out->rank ? out->rank - 1 : 0];
	t = add_tensor(s, in->layout.device_format, own, n);
	/* One value for all columns sits in the first lane of a stick. */
	if (out->rank && out->size[out->rank - 1] > 1 &&
	    (!in->rank || in->size[in->rank - 1] == 1))
		t->scale[t->stick] = -2;
	return SPYRE_SUCCESS;
}

/*
 * Tensors of the same dims and stick are described in one order, that of the
 * first: a scalar or column is a tensor of all dims, not one that lacks some.
 */
static spyre_status pointwise_shapes(const struct build_op *op, const spyre_sdsc_operand *o,
				     struct ir_sdsc *s)
{
	const spyre_sdsc_operand *out = &o[op->inputs];
	int dim[SPYRE_MAX_RANK + 1];

	name_dims(s, out, spyre_stick_elements(out->layout.device_format), dim);
	for (uint32_t i = 0; i < op->inputs; i++)
		TRY(pointwise_input(op, s, i, &o[i], out, dim));
	add_tensor(s, out->layout.device_format, dim, out->rank ? out->rank : 1);
	for (uint32_t i = 0; i < op->inputs; i++) {
		struct ir_tensor *t = &s->tensor[i];

		if (t->scale[t->stick] == -2 && t->num_order == 1) {
			/* No own order: take that of the output. */
			memcpy(t->order, s->tensor[op->inputs].order, sizeof(t->order));
			t->num_order = s->num_dims;
			for (uint32_t d = 0; d < s->num_dims; d++)
				t->scale[d] = d == t->stick ? -2 : -1;
		} else {
			add_broadcast(s, t);
		}
		s->input[s->num_inputs++] = i;
	}
	s->output = op->inputs;
	return SPYRE_SUCCESS;
}

static void add_constant(struct ir_sdsc *s, const char *name, uint32_t bits)
{
	struct ir_constant *c = &s->constant[s->num_constants++];

	snprintf(c->name, sizeof(c->name), "%s", name);
	c->format = s->tensor[0].format;
	c->bits = bits;
}

static uint32_t encode(enum spyre_fmt format, float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	switch (format) {
	case SPYRE_FMT_SEN169_FP16:
		return spyre_fp32_to_dl16(bits);
	case SPYRE_FMT_IEEE_FP16:
		return spyre_fp32_to_fp16(bits);
	case SPYRE_FMT_BFLOAT16:
		return spyre_fp32_to_bf16(bits);
	default:
		return bits;
	}
}

/* Masks hide the padding of a partial last stick. */
static void add_mask(struct ir_sdsc *s, uint32_t stick, int64_t size)
{
	float identity = !strcmp(s->op, "max") ? -__builtin_inff() :
			 !strcmp(s->op, "min") ? __builtin_inff() : 0;

	if (size == s->size[stick])
		return;
	s->mask[s->num_masks++] = (struct ir_mask){ stick, size, s->size[stick] - size };
	add_constant(s, "samv-maskvalue", encode(s->tensor[0].format, identity));
}

/* The last dimension goes; the output may keep it with size 1. */
static spyre_status reduce_shapes(const struct build_op *op, const spyre_sdsc_operand *o,
				  struct ir_sdsc *s)
{
	uint32_t rank = o[0].rank;
	int dim[SPYRE_MAX_RANK + 1];
	struct ir_tensor *t;

	if (!rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: operand 0 has rank 0, there is no last dimension to reduce",
				   op->name);
	if (o[1].rank != rank - 1 && o[1].rank != rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: the output has rank %u, expected %u, or %u with a last size of 1",
				   op->name, o[1].rank, rank - 1, rank);
	for (uint32_t d = 0; d < o[1].rank; d++) {
		int64_t want = d + 1 < rank ? o[0].size[d] : 1;

		if (o[1].size[d] != want)
			return mismatch(op, 1, d, o[1].size[d], want);
	}
	name_dims(s, &o[0], spyre_stick_elements(o[0].layout.device_format), dim);
	add_tensor(s, o[0].layout.device_format, dim, rank);
	t = add_tensor(s, o[0].layout.device_format, dim, rank);
	t->scale[t->stick] = -2;
	if (!strcmp(s->op, "mean"))
		add_constant(s, "scaling_factor",
			     encode(t->format, 1.0f / (float)o[0].size[rank - 1]));
	add_mask(s, t->stick, o[0].size[rank - 1]);
	s->input[s->num_inputs++] = 0;
	s->input[s->num_inputs++] = 1;
	s->output = 1;
	return SPYRE_SUCCESS;
}

/* [.., M, K] x [.., K, N] -> [.., M, N]; B may lack the batch. */
static spyre_status matmul_check(const struct build_op *op, const spyre_sdsc_operand *o)
{
	uint32_t rank = o[0].rank;

	if (rank < 2 || rank > 5 || o[2].rank != rank || (o[1].rank != rank && o[1].rank != 2))
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: ranks %u x %u -> %u; expected [.., M, K] x [.., K, N] -> [.., M, N] of rank 2 to 5, or a second one without batch",
				   op->name, o[0].rank, o[1].rank, o[2].rank);
	for (uint32_t d = 0; d + 2 < rank; d++) {
		if (o[2].size[d] != o[0].size[d])
			return mismatch(op, 2, d, o[2].size[d], o[0].size[d]);
		if (o[1].rank == rank && o[1].size[d] != o[0].size[d])
			return mismatch(op, 1, d, o[1].size[d], o[0].size[d]);
	}
	if (o[1].size[o[1].rank - 2] != o[0].size[rank - 1])
		return mismatch(op, 1, o[1].rank - 2, o[1].size[o[1].rank - 2],
				o[0].size[rank - 1]);
	if (o[2].size[rank - 2] != o[0].size[rank - 2])
		return mismatch(op, 2, rank - 2, o[2].size[rank - 2], o[0].size[rank - 2]);
	if (o[2].size[rank - 1] != o[1].size[o[1].rank - 1])
		return mismatch(op, 2, rank - 1, o[2].size[rank - 1], o[1].size[o[1].rank - 1]);
	return SPYRE_SUCCESS;
}

static spyre_status matmul_shapes(const struct build_op *op, const spyre_sdsc_operand *o,
				  struct ir_sdsc *s)
{
	static const char *const batch_names[] = { "x", "y", "i" };
	spyre_format format = o[0].layout.device_format;
	int a[SPYRE_MAX_RANK], b[SPYRE_MAX_RANK], c[SPYRE_MAX_RANK];
	uint32_t rank = o[0].rank;

	TRY(matmul_check(op, o));
	for (uint32_t d = 0; d + 2 < rank; d++) {
		a[d] = o[0].size[d] > 1 ? add_dim(s, batch_names[d], o[0].size[d]) : -1;
		b[d] = a[d];
		c[d] = a[d];
	}
	a[rank - 2] = o[0].size[rank - 2] > 1 ? add_dim(s, "mb", o[0].size[rank - 2]) : -1;
	c[rank - 2] = a[rank - 2];
	c[rank - 1] = add_dim(s, "out", whole_sticks(o[2].size[rank - 1], 64));
	a[rank - 1] = add_dim(s, "in", whole_sticks(o[0].size[rank - 1], 64));
	b[rank - 2] = a[rank - 1];
	b[rank - 1] = c[rank - 1];
	add_tensor(s, format, a, rank);
	add_tensor(s, format, b + (rank - o[1].rank), o[1].rank);
	add_tensor(s, format, c, rank);
	s->input[s->num_inputs++] = 0;
	s->input[s->num_inputs++] = 1;
	s->output = 2;
	return SPYRE_SUCCESS;
}

spyre_status build_shapes(const struct build_op *op, const spyre_sdsc_operand *operands,
			  uint32_t num_operands, struct ir_sdsc *s)
{
	TRY(check_operands(op, operands, num_operands));
	snprintf(s->op, sizeof(s->op), "%s", op->func);
	snprintf(s->root, sizeof(s->root), "0_%s", op->func);
	snprintf(s->file, sizeof(s->file), "sdsc_0.json");
	if (op->kind == BUILD_POINTWISE)
		TRY(pointwise_shapes(op, operands, s));
	else if (op->kind == BUILD_REDUCE)
		TRY(reduce_shapes(op, operands, s));
	else
		TRY(matmul_shapes(op, operands, s));
	for (uint32_t i = 0; i < num_operands; i++)
		TRY(check_layout(s, i, &operands[i]));
	return SPYRE_SUCCESS;
}
