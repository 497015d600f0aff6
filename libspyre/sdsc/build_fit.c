// SPDX-License-Identifier: MIT
/*
 * Builder: operations whose operands may have to be brought into form first:
 * room for whole sticks, zeros in it, sticks along another dimension.
 */
#include <math.h>
#include <string.h>

#include "libspyre/layout/stick.h"
#include "libspyre/runtime/error.h"
#include "libspyre/sdsc/build.h"

static int64_t whole_sticks(int64_t size, int64_t lanes)
{
	return (size + lanes - 1) / lanes * lanes;
}

static int64_t lanes_of(const spyre_sdsc_operand *o)
{
	return spyre_stick_elements(o->layout.device_format);
}

bool build_has_room(const spyre_sdsc_operand *o, uint32_t dim, int64_t size)
{
	const spyre_layout *l = &o->layout;
	int64_t room = 1;

	for (uint32_t j = 0; j < l->device_rank; j++)
		if (l->dim_map[j] == (int)dim)
			room *= l->device_size[j];
	return room >= size;
}

static struct build_use use_of(const spyre_sdsc_graph *g, uint32_t tensor)
{
	struct build_use use = { .tensor = tensor };

	if (tensor != SPYRE_SDSC_NEW)
		use.view = *build_operand(g, tensor);
	return use;
}

/* One step of a plain operation on given views. */
static spyre_status step(spyre_sdsc_graph *g, const char *op, const struct build_use *in,
			 uint32_t num_inputs, struct build_use *out)
{
	struct build_call call = { .graph = g, .op = build_op_find(op), .num_inputs = num_inputs,
				   .out = &out->tensor };
	struct build_use uses[BUILD_MAX_INPUTS + 1];

	memcpy(uses, in, num_inputs * sizeof(*in));
	uses[num_inputs] = *out;
	BUILD_TRY(build_add_step(&call, uses));
	*out = uses[num_inputs];
	return SPYRE_SUCCESS;
}

spyre_status build_zero(spyre_sdsc_graph *g, spyre_format format, uint32_t *tensor)
{
	spyre_sdsc_operand scalar = { 0 };
	struct build_use use[2];

	build_layout(&scalar, format, -1, 0);
	BUILD_TRY(build_new_tensor(g, &scalar, tensor));
	use[0] = use[1] = use_of(g, *tensor);
	return step(g, "gt", use, 2, &(struct build_use){ *tensor, scalar });
}

spyre_status build_constant(spyre_sdsc_graph *g, spyre_format format, double value,
			    uint32_t *tensor)
{
	spyre_sdsc_attribute range[2] = { { "min", value }, { "max", value } };
	uint32_t zero;

	BUILD_TRY(build_zero(g, format, &zero));
	*tensor = SPYRE_SDSC_NEW;
	return build_add(g, "clip", range, 2, &zero, 1, tensor);
}

/*
 * A copy that has room for whole sticks along the dims in @pad (bits). With
 * @clean, the room holds zeros.
 */
static spyre_status pad_copy(spyre_sdsc_graph *g, struct build_use *use, uint32_t pad, bool clean)
{
	struct build_use copy = { .view = use->view }, all;

	build_layout(&copy.view, use->view.layout.device_format, build_stick_dim(&use->view), pad);
	BUILD_TRY(build_new_tensor(g, &copy.view, &copy.tensor));
	if (clean) {
		uint32_t zero;
		struct build_use value;

		BUILD_TRY(build_zero(g, use->view.layout.device_format, &zero));
		value = use_of(g, zero);
		all = copy;
		for (uint32_t d = 0; d < all.view.rank; d++)
			if (pad >> d & 1)
				all.view.size[d] = whole_sticks(all.view.size[d], lanes_of(&all.view));
		BUILD_TRY(step(g, "identity", &value, 1, &all));
	}
	BUILD_TRY(step(g, "identity", use, 1, &copy));
	*use = copy;
	return SPYRE_SUCCESS;
}

/* Brings @from into sticks along the stick dim of @to, which may be left open. */
static spyre_status restick(spyre_sdsc_graph *g, struct build_use from, int stick,
			    struct build_use *to)
{
	int64_t lanes = lanes_of(&from.view);
	int old = build_stick_dim(&from.view);
	struct build_use out = *to, padded;
	uint32_t both;

	if (old < 0 || old == stick) {
		if (out.tensor == SPYRE_SDSC_NEW) {
			out.view = from.view;
			build_layout(&out.view, from.view.layout.device_format, stick, 0);
			BUILD_TRY(build_new_tensor(g, &out.view, &out.tensor));
		}
		*to = out;
		return step(g, "identity", &from, 1, to);
	}
	both = 1u << old | 1u << stick;
	if (!build_has_room(&from.view, (uint32_t)stick, whole_sticks(from.view.size[stick], lanes)))
		BUILD_TRY(pad_copy(g, &from, both, true));
	padded = out;
	if (out.tensor == SPYRE_SDSC_NEW ||
	    !build_has_room(&out.view, (uint32_t)old, whole_sticks(out.view.size[old], lanes))) {
		padded.view = from.view;
		build_layout(&padded.view, from.view.layout.device_format, stick, both);
		BUILD_TRY(build_new_tensor(g, &padded.view, &padded.tensor));
	}
	{
		struct build_use a = from, b = padded;

		a.view.size[stick] = b.view.size[stick] = whole_sticks(a.view.size[stick], lanes);
		a.view.size[old] = b.view.size[old] = whole_sticks(a.view.size[old], lanes);
		BUILD_TRY(step(g, "restickify", &a, 1, &b));
	}
	if (out.tensor != SPYRE_SDSC_NEW && padded.tensor != out.tensor)
		return step(g, "identity", &padded, 1, to);
	*to = padded;
	return SPYRE_SUCCESS;
}

static spyre_status restick_new(spyre_sdsc_graph *g, struct build_use *use, int stick)
{
	struct build_use out = { .tensor = SPYRE_SDSC_NEW };

	BUILD_TRY(restick(g, *use, stick, &out));
	*use = out;
	return SPYRE_SUCCESS;
}

/* Inputs of pointwise operations that have their sticks along another dim than the output. */
spyre_status build_align(const struct build_call *call, struct build_use *uses)
{
	struct build_use *out = &uses[call->num_inputs];
	spyre_sdsc_operand shape = out->view;
	int stick;

	for (uint32_t i = 0; i < call->num_inputs; i++)
		BUILD_TRY(build_normalize(call->op->name, i, &uses[i].view));
	if (out->tensor == SPYRE_SDSC_NEW)
		BUILD_TRY(build_infer(call, uses, &shape));
	stick = build_stick_dim(&shape);
	for (uint32_t i = 0; i < call->num_inputs && stick >= 0; i++) {
		const spyre_sdsc_operand *in = &uses[i].view;
		int own = build_stick_dim(in), want = stick - (int)(shape.rank - in->rank);

		if (in->rank > shape.rank || own < 0 || want < 0 || own == want ||
		    in->size[want] == 1)
			continue;
		BUILD_TRY(restick_new(call->graph, &uses[i], want));
	}
	return SPYRE_SUCCESS;
}

static spyre_status attr_dim(const struct build_call *call, const char *name, double value,
			     uint32_t rank, uint32_t *dim)
{
	if (value != floor(value) || value < -(double)rank || value >= rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: %s %g is none of the %u dimensions of operand 0",
				   call->op->name, name, value, rank);
	*dim = (uint32_t)(value < 0 ? value + rank : value);
	return SPYRE_SUCCESS;
}

spyre_status build_transpose(const struct build_call *call)
{
	struct build_use in = use_of(call->graph, call->in[0]), out;
	double stick = build_attr(call, "stick");
	uint32_t d0, d1, dim;

	if (!in.view.rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: operand 0 has rank 0, there is nothing to exchange",
				   call->op->name);
	BUILD_TRY(attr_dim(call, "dim0", build_attr(call, "dim0"), in.view.rank, &d0));
	BUILD_TRY(attr_dim(call, "dim1", build_attr(call, "dim1"), in.view.rank, &d1));
	build_swap_dims(&in.view, d0, d1);
	out = use_of(call->graph, *call->out);
	if (out.tensor == SPYRE_SDSC_NEW) {
		BUILD_TRY(attr_dim(call, "stick", isnan(stick) ? -1 : stick, in.view.rank, &dim));
		BUILD_TRY(restick_new(call->graph, &in, in.view.size[dim] > 1 ? (int)dim : -1));
		*call->out = in.tensor;
		return SPYRE_SUCCESS;
	}
	if (out.view.rank != in.view.rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: the output has rank %u, the input %u", call->op->name,
				   out.view.rank, in.view.rank);
	for (uint32_t d = 0; d < in.view.rank; d++)
		if (out.view.size[d] != in.view.size[d])
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "%s: the output has size[%u] = %lld, expected %lld",
					   call->op->name, d, (long long)out.view.size[d],
					   (long long)in.view.size[d]);
	return restick(call->graph, in, build_stick_dim(&out.view), &out);
}

static bool is_float(spyre_format format)
{
	return format == SPYRE_FORMAT_SEN169_FP16 || format == SPYRE_FORMAT_IEEE_FP32 ||
	       format == SPYRE_FORMAT_IEEE_FP16 || format == SPYRE_FORMAT_BFLOAT16;
}

/* The operation between two formats; NULL if there is none. */
static const char *cast_name(spyre_format from, spyre_format to)
{
	if (from == to)
		return "identity";
	if (from == SPYRE_FORMAT_SEN169_FP16 && to == SPYRE_FORMAT_IEEE_FP32)
		return "dl16tofp32";
	if (from == SPYRE_FORMAT_IEEE_FP32 && to == SPYRE_FORMAT_SEN169_FP16)
		return "fp32todl16";
	return is_float(from) && is_float(to) ? "cast" : NULL;
}

/* Given by the output, by its name or by an attribute. */
static spyre_status cast_output(const struct build_call *call, struct build_use *use)
{
	double format = build_attr(call, "format");

	if (use[1].tensor != SPYRE_SDSC_NEW)
		return SPYRE_SUCCESS;
	BUILD_TRY(build_infer(call, use, &use[1].view));
	if (!strcmp(call->op->name, "cast")) {
		if (!(format >= 0 && format < 256) ||
		    spyre_stick_elements((spyre_format)format) < 1)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "cast needs an output or the attribute \"format\"");
		build_layout(&use[1].view, (spyre_format)format, build_stick_dim(&use[1].view), 0);
	}
	BUILD_TRY(build_new_tensor(call->graph, &use[1].view, &use[1].tensor));
	*call->out = use[1].tensor;
	return SPYRE_SUCCESS;
}

/* fp32 sticks come in pairs; a tensor may have an odd number of them. */
spyre_status build_cast(const struct build_call *call)
{
	struct build_use use[2] = { use_of(call->graph, call->in[0]),
				    use_of(call->graph, *call->out) }, copy;
	const spyre_sdsc_operand *shape = &use[0].view;
	spyre_format from = shape->layout.device_format, to;
	int stick = build_stick_dim(shape);
	spyre_sdsc_operand *wide;
	const char *name;

	BUILD_TRY(cast_output(call, use));
	to = use[1].view.layout.device_format;
	name = cast_name(from, to);
	if (!name || (strcmp(call->op->name, "cast") && strcmp(call->op->name, name)))
		return spyre_error(SPYRE_ERROR_FORMAT, "%s does not make %s of %s",
				   call->op->name, spyre_format_name(to), spyre_format_name(from));
	wide = &use[to == SPYRE_FORMAT_IEEE_FP32].view;
	if (lanes_of(shape) == lanes_of(&use[1].view) || stick < 0 ||
	    build_stick_dim(wide) != stick ||
	    build_has_room(wide, (uint32_t)stick, whole_sticks(shape->size[stick], 64)))
		return step(call->graph, name, use, 1, &use[1]);
	copy.view = *shape;
	build_layout(&copy.view, SPYRE_FORMAT_IEEE_FP32, stick, 0);
	for (uint32_t j = 0; j + 1 < copy.view.layout.device_rank; j++)
		if (copy.view.layout.dim_map[j] == stick)
			copy.view.layout.device_size[j] = whole_sticks(shape->size[stick], 64) / 32;
	BUILD_TRY(build_new_tensor(call->graph, &copy.view, &copy.tensor));
	if (to == SPYRE_FORMAT_IEEE_FP32) {
		BUILD_TRY(step(call->graph, name, &use[0], 1, &copy));
		return step(call->graph, "identity", &copy, 1, &use[1]);
	}
	BUILD_TRY(step(call->graph, "identity", &use[0], 1, &copy));
	return step(call->graph, name, &copy, 1, &use[1]);
}

spyre_status build_fill(const struct build_call *call)
{
	double value = build_attr(call, "value");
	uint32_t in = call->in[0];

	if (*call->out == SPYRE_SDSC_NEW && call->num_inputs)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "fill from a tensor needs an output whose shape is known");
	if (call->num_inputs && build_has_attr(call, "value"))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "fill takes a value as an input or as an attribute, not both");
	if (!call->num_inputs && !isfinite(value))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "fill: value %g is not finite",
				   value);
	if (*call->out == SPYRE_SDSC_NEW)
		return build_constant(call->graph, SPYRE_FORMAT_SEN169_FP16, value, call->out);
	if (!call->num_inputs)
		BUILD_TRY(build_constant(call->graph,
					 build_operand(call->graph, *call->out)->layout.device_format,
					 value, &in));
	return build_add(call->graph, "identity", NULL, 0, &in, 1, call->out);
}

/* Which dims go, as bits; those that a caller names, or the last. */
static spyre_status reduced_dims(const struct build_call *call, uint32_t rank, uint32_t *mask)
{
	uint32_t dim;

	*mask = 0;
	if (!rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: operand 0 has rank 0, there is no last dimension to reduce",
				   call->op->name);
	for (uint32_t i = 0; i < call->num_attrs; i++) {
		if (strcmp(call->attr[i].name, "dim"))
			continue;
		BUILD_TRY(attr_dim(call, "dim", call->attr[i].value, rank, &dim));
		if (*mask >> dim & 1)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s: dimension %u is named twice", call->op->name, dim);
		*mask |= 1u << dim;
	}
	if (!*mask)
		*mask = 1u << (rank - 1);
	return SPYRE_SUCCESS;
}

/* The output with the reduced dims as dims of size 1. */
static spyre_status reduced_output(const struct build_call *call, const spyre_sdsc_operand *in,
				   uint32_t mask, struct build_use *out)
{
	uint32_t count = (uint32_t)__builtin_popcount(mask);
	bool keep = build_attr(call, "keepdim") != 0;
	int stick = build_stick_dim(in);

	if (*call->out == SPYRE_SDSC_NEW) {
		out->view = (spyre_sdsc_operand){ 0 };
		for (uint32_t d = 0; d < in->rank; d++) {
			if ((int)d == build_stick_dim(in))
				stick = mask >> d & 1 ? -1 : (int)out->view.rank;
			if (keep || !(mask >> d & 1))
				out->view.size[out->view.rank++] = mask >> d & 1 ? 1 : in->size[d];
		}
		build_layout(&out->view, in->layout.device_format, stick, 0);
		BUILD_TRY(build_new_tensor(call->graph, &out->view, call->out));
	}
	*out = use_of(call->graph, *call->out);
	if (out->view.rank == in->rank)
		return SPYRE_SUCCESS;
	if (out->view.rank != in->rank - count || keep)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: the output has rank %u, expected %u, or %u with sizes of 1",
				   call->op->name, out->view.rank, in->rank - count, in->rank);
	for (uint32_t d = 0; d < in->rank; d++)
		if (mask >> d & 1)
			build_unsqueeze(&out->view, d);
	return SPYRE_SUCCESS;
}

/* One dim after the other, the last into the output. */
spyre_status build_reduce(const struct build_call *call)
{
	struct build_use use[2] = { use_of(call->graph, call->in[0]) }, out;
	uint32_t mask;

	BUILD_TRY(reduced_dims(call, use[0].view.rank, &mask));
	BUILD_TRY(reduced_output(call, &use[0].view, mask, &out));
	if ((mask & (mask - 1)) && !strcmp(call->op->name, "exx2"))
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "exx2 reduces one dimension, the one along sticks");
	for (uint32_t d = use[0].view.rank; d-- > 0;) {
		const spyre_layout *l = &use[0].view.layout;
		spyre_sdsc_attribute attr = { "dim", d };
		struct build_call one = *call;
		uint32_t result;

		if (!(mask >> d & 1))
			continue;
		mask &= ~(1u << d);
		use[1] = mask ? (struct build_use){ .tensor = SPYRE_SDSC_NEW } : out;
		result = use[1].tensor;
		one.attr = &attr;
		one.num_attrs = 1;
		one.out = &result;
		if (use[0].view.size[d] == 1 && l->dim_map[l->device_rank - 1] != (int)d &&
		    strcmp(call->op->name, "exx2"))
			one.op = build_op_find(strcmp(call->op->name, "absmax") ? "identity" :
					       "abs");
		BUILD_TRY(build_add_step(&one, use));
		use[0] = use[1];
	}
	return SPYRE_SUCCESS;
}

/* The lanes beyond K of an intermediate hold anything; products need zeros there. */
static spyre_status clean_lanes(spyre_sdsc_graph *g, struct build_use *a)
{
	uint32_t k = a->view.rank - 1, m = k - 1;
	int64_t rows = a->view.size[m];

	if (build_stick_dim(&a->view) != (int)k || a->view.size[k] % lanes_of(&a->view) == 0)
		return SPYRE_SUCCESS;
	if (!build_has_room(&a->view, m, whole_sticks(rows, 64)))
		BUILD_TRY(pad_copy(g, a, 1u << m, true));
	a->view.size[m] = whole_sticks(rows, 64);
	BUILD_TRY(restick_new(g, a, (int)m));
	BUILD_TRY(pad_copy(g, a, 1u << k, true));
	BUILD_TRY(restick_new(g, a, (int)k));
	a->view.size[m] = rows;
	return SPYRE_SUCCESS;
}

/* Products with one element to sum over, or with a vector, are plain ones. */
static spyre_status small_matmul(const struct build_call *call, struct build_use *use, bool *done)
{
	const spyre_sdsc_operand *b = &use[1].view;

	*done = true;
	if (b->rank == 1) {
		spyre_sdsc_attribute last = { "dim", -1 };
		uint32_t product = SPYRE_SDSC_NEW;

		BUILD_TRY(build_add(call->graph, "mul", NULL, 0, call->in, 2, &product));
		return build_add(call->graph, "sum", &last, 1, &product, 1, call->out);
	}
	if (use[0].view.rank >= 2 && b->rank >= 2 && b->size[b->rank - 2] == 1 &&
	    use[0].view.size[use[0].view.rank - 1] == 1) {
		struct build_call mul = *call;

		mul.op = build_op_find("mul");
		return build_add_step(&mul, use);
	}
	*done = false;
	return SPYRE_SUCCESS;
}

spyre_status build_matmul(const struct build_call *call)
{
	spyre_sdsc_graph *g = call->graph;
	struct build_use use[3] = { use_of(g, call->in[0]), use_of(g, call->in[1]),
				    use_of(g, *call->out) };
	spyre_sdsc_operand *a = &use[0].view, *b = &use[1].view;
	bool done;

	if (!a->rank || !b->rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: ranks %u x %u; both have to be 1 or more", call->op->name,
				   a->rank, b->rank);
	if (build_attr(call, "transpose_b") != 0 && b->rank > 1)
		build_swap_dims(b, b->rank - 2, b->rank - 1);
	BUILD_TRY(small_matmul(call, use, &done));
	if (done)
		return SPYRE_SUCCESS;
	if (a->rank == 1) {
		build_unsqueeze(a, 0);
		if (use[2].tensor == SPYRE_SDSC_NEW)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s: a vector times a matrix needs an output that is given",
					   call->op->name);
		build_unsqueeze(&use[2].view, use[2].view.rank ? use[2].view.rank - 1 : 0);
	}
	if (a->rank < 2)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH, "%s: no matrix", call->op->name);
	if (a->size[a->rank - 1] != b->size[b->rank - 2])
		return build_add_step(call, use);	/* says what is wrong */
	if (build_stick_dim(a) == (int)a->rank - 2)
		BUILD_TRY(restick_new(g, &use[0], (int)a->rank - 1));
	if (!g->tensor[use[0].tensor].argument)
		BUILD_TRY(clean_lanes(g, &use[0]));
	if (build_stick_dim(b) == (int)b->rank - 2 && b->size[b->rank - 1] > 1)
		BUILD_TRY(restick_new(g, &use[1], (int)b->rank - 1));
	if (b->size[b->rank - 2] % 64)
		if (!build_has_room(b, b->rank - 2, whole_sticks(b->size[b->rank - 2], 64)) ||
		    !g->tensor[use[1].tensor].argument)
			BUILD_TRY(pad_copy(g, &use[1], 1u << (b->rank - 2), true));
	return build_add_step(call, use);
}
