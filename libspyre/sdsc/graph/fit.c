// SPDX-License-Identifier: MIT
/*
 * Builder: steps that adapt operands: padding to whole sticks, zeros in the
 * padding, sticks along another dimension.
 */
#include <math.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/layout/stick.h"
#include "libspyre/sdsc/graph/cast.h"
#include "libspyre/sdsc/graph/fill.h"
#include "libspyre/sdsc/graph/fit.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/infer.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/ops.h"

int64_t build_whole_sticks(int64_t size, int64_t lanes)
{
	return (size + lanes - 1) / lanes * lanes;
}

int64_t build_lanes(const spyre_sdsc_operand *o)
{
	return spyre_stick_elements(o->layout.device_format);
}

/* Elements along @dim that belong to the tensor, with all lanes of its last stick. */
static int64_t own_size(const struct build_use *use, uint32_t dim)
{
	int64_t size = use->view.size[dim];

	return build_stick_dim(&use->view) == (int)dim ?
	       build_whole_sticks(size, build_lanes(&use->view)) : size;
}

bool build_may_read(const spyre_sdsc_graph *g, const struct build_use *use, uint32_t dim,
		    int64_t size)
{
	const struct build_tensor *t = &g->tensor[use->tensor];
	const spyre_layout *l = &use->view.layout;
	int64_t capacity = 1;

	if (t->argument && t->padding != SPYRE_SDSC_PADDING_ZERO)
		return size <= own_size(use, dim);
	for (uint32_t j = 0; j < l->device_rank; j++)
		if (l->dim_map[j] == (int)dim)
			capacity *= l->device_size[j];
	return capacity >= size;
}

bool build_may_write(const spyre_sdsc_graph *g, const struct build_use *use, uint32_t dim,
		     int64_t size)
{
	return g->tensor[use->tensor].argument ? size <= own_size(use, dim) :
						 build_may_read(g, use, dim, size);
}

bool build_is_clean(const struct build_use *use, uint32_t dim)
{
	return use->view.size[dim] % build_lanes(&use->view) == 0 || (use->clean >> dim & 1);
}

struct build_use build_use_of(const spyre_sdsc_graph *g, uint32_t tensor)
{
	struct build_use use = { .tensor = tensor };

	if (tensor == SPYRE_SDSC_NEW)
		return use;
	use.view = *build_operand(g, tensor);
	if (g->tensor[tensor].padding == SPYRE_SDSC_PADDING_ZERO)
		use.clean = UINT32_MAX;
	return use;
}

void build_cut(struct build_use *use, uint32_t dim, int64_t start, int64_t count)
{
	const spyre_layout *l = &use->view.layout;
	bool stick = l->dim_map[l->device_rank - 1] == (int)dim;
	uint64_t bytes = SPYRE_STICK_BYTES;

	if (!start && count == use->view.size[dim])
		return;
	for (uint32_t j = l->device_rank - 1; j-- > 0; bytes *= (uint64_t)l->device_size[j])
		if (l->dim_map[j] == (int)dim)
			use->offset += bytes * (uint64_t)(stick ? start / build_lanes(&use->view) :
							  start);
	use->view.size[dim] = count;
	use->clean &= ~(1u << dim);
}

static spyre_status clean_lanes(spyre_sdsc_graph *g, struct build_use *use, uint32_t k)
{
	int64_t size = use->view.size[k], whole = build_whole_sticks(size, build_lanes(&use->view));
	spyre_format format = use->view.layout.device_format;
	spyre_sdsc_attribute value = { "value", 0 };
	struct build_use out = { .view = use->view, .clean = use->clean | 1u << k };
	struct build_call call = { .graph = g, .op = build_op_find("mask_by_index"),
				   .attr = &value, .num_attrs = 1, .num_inputs = 2,
				   .out = &out.tensor };
	struct build_use uses[3];
	uint32_t index;

	/* Indices along a dim may exceed the integers that 16-bit floats hold exactly. */
	TRY(build_constant(g, SPYRE_FORMAT_IEEE_FP32, (double)size, &index));
	use->view.size[k] = out.view.size[k] = whole;
	build_layout(&out.view, format, (int)k, 0);
	TRY(build_new_tensor(g, &out.view, &out.tensor));
	uses[0] = *use;
	uses[1] = build_use_of(g, index);
	uses[2] = out;
	TRY(build_add_step(&call, uses));
	*use = out;
	use->view.size[k] = size;
	return SPYRE_SUCCESS;
}

spyre_status build_clean_lanes(spyre_sdsc_graph *g, struct build_use *use, uint32_t k)
{
	bool helping = g->helping;
	spyre_status status;

	g->helping = true;
	status = clean_lanes(g, use, k);
	g->helping = helping;
	return status;
}

/* Adds one step of an operation without a recipe, on given views. */
spyre_status build_emit(spyre_sdsc_graph *g, const char *op, const struct build_use *in,
			 uint32_t num_inputs, struct build_use *out)
{
	struct build_call call = { .graph = g, .op = build_op_find(op), .num_inputs = num_inputs,
				   .out = &out->tensor };
	struct build_use uses[BUILD_MAX_INPUTS + 1];

	memcpy(uses, in, num_inputs * sizeof(*in));
	uses[num_inputs] = *out;
	TRY(build_add_step(&call, uses));
	*out = uses[num_inputs];
	return SPYRE_SUCCESS;
}

static spyre_status pad_copy(spyre_sdsc_graph *g, struct build_use *use, uint32_t pad, bool clean)
{
	struct build_use copy = { .view = use->view }, all;
	const spyre_layout *l = &use->view.layout;
	/* Includes dims of size 1, which build_stick_dim() leaves out. */
	int stick = l->dim_map[l->device_rank - 1];
	uint32_t lanes = stick < 0 ? 0 : 1u << stick;

	build_layout(&copy.view, use->view.layout.device_format, stick, pad);
	TRY(build_new_tensor(g, &copy.view, &copy.tensor));
	/* Sticks are copied whole, so lanes stay clean as they were. */
	copy.clean = (use->clean & lanes) | (clean ? pad & ~lanes : 0);
	if (clean) {
		uint32_t zero;
		struct build_use value;

		TRY(build_zero(g, use->view.layout.device_format, &zero));
		value = build_use_of(g, zero);
		all = copy;
		for (uint32_t d = 0; d < all.view.rank; d++)
			if (pad >> d & 1)
				all.view.size[d] = build_whole_sticks(all.view.size[d],
								      build_lanes(&all.view));
		TRY(build_emit(g, "identity", &value, 1, &all));
	}
	TRY(build_emit(g, "identity", use, 1, &copy));
	*use = copy;
	return SPYRE_SUCCESS;
}

spyre_status build_pad_copy(spyre_sdsc_graph *g, struct build_use *use, uint32_t pad, bool clean)
{
	bool helping = g->helping;
	spyre_status status;

	g->helping = true;
	status = pad_copy(g, use, pad, clean);
	g->helping = helping;
	return status;
}

/*
 * Finds the dim of size 1 that the sticks of @sparse are along. If there is none,
 * both operands get such a dim after their last.
 */
static spyre_status name_single(struct build_use *sparse, struct build_use *other, int *dim)
{
	spyre_layout *l = &sparse->view.layout;

	*dim = l->dim_map[l->device_rank - 1];
	if (*dim >= 0)
		return SPYRE_SUCCESS;
	*dim = (int)sparse->view.rank;
	if (*dim == SPYRE_MAX_RANK)
		return spyre_error(SPYRE_ERROR_LAYOUT,
				   "a tensor of %d dimensions with one element per stick cannot be restickified; give it sticks along a dimension",
				   SPYRE_MAX_RANK);
	build_unsqueeze(&sparse->view, (uint32_t)*dim);
	if (other)
		build_unsqueeze(&other->view, (uint32_t)*dim);
	l->dim_map[l->device_rank - 1] = (int8_t)*dim;
	return SPYRE_SUCCESS;
}

/* Removes the dim that name_single() has added to operands of @rank dims. */
static void drop_single(struct build_use *use, uint32_t rank)
{
	if (use->view.rank == rank)
		return;
	use->view.rank = rank;
	use->clean &= ~(1u << rank);
	for (uint32_t j = 0; j < use->view.layout.device_rank; j++)
		if (use->view.layout.dim_map[j] == (int)rank)
			use->view.layout.dim_map[j] = -1;
}

/* Copies elements that lie along sticks to one stick per element. */
static spyre_status into_singles(spyre_sdsc_graph *g, struct build_use from, struct build_use *to)
{
	uint32_t rank = from.view.rank, old = (uint32_t)build_stick_dim(&from.view);
	struct build_use out = *to;
	int dim;

	if (out.tensor == SPYRE_SDSC_NEW) {
		out.view = from.view;
		build_layout(&out.view, from.view.layout.device_format, -1, 1u << old);
		TRY(build_new_tensor(g, &out.view, &out.tensor));
	}
	TRY(name_single(&out, &from, &dim));
	TRY(build_restick(g, from, dim, &out));
	drop_single(&out, rank);
	*to = out;
	return SPYRE_SUCCESS;
}

/* The reverse: copies whole sticks, and drops all but their first elements by a view. */
static spyre_status out_of_singles(spyre_sdsc_graph *g, struct build_use from, int stick,
				   struct build_use *to)
{
	struct build_use dense = { .tensor = SPYRE_SDSC_NEW };
	uint32_t rank = from.view.rank;
	int dim;

	TRY(name_single(&from, NULL, &dim));
	from.view.size[dim] = build_lanes(&from.view);
	TRY(build_restick(g, from, stick, &dense));
	dense.view.size[dim] = 1;
	dense.clean &= ~(1u << dim);
	drop_single(&dense, rank);
	if (to->tensor != SPYRE_SDSC_NEW)
		return build_emit(g, "identity", &dense, 1, to);
	*to = dense;
	return SPYRE_SUCCESS;
}

spyre_status build_restick(spyre_sdsc_graph *g, struct build_use from, int stick,
			    struct build_use *to)
{
	int64_t lanes = build_lanes(&from.view);
	int old = build_stick_dim(&from.view);
	struct build_use out = *to, padded, whole;
	int64_t rows, columns;
	uint32_t both;

	if (old < 0 && stick >= 0 && from.view.size[stick] > 1)
		return out_of_singles(g, from, stick, to);
	if (old >= 0 && stick < 0)
		return into_singles(g, from, to);
	if (old < 0 || old == stick) {
		if (out.tensor == SPYRE_SDSC_NEW) {
			out.view = from.view;
			build_layout(&out.view, from.view.layout.device_format, stick, 0);
			TRY(build_new_tensor(g, &out.view, &out.tensor));
		}
		*to = out;
		return build_emit(g, "identity", &from, 1, to);
	}
	both = 1u << old | 1u << stick;
	rows = build_whole_sticks(from.view.size[stick], lanes);
	columns = build_whole_sticks(from.view.size[old], lanes);
	/* Products, which need zeros in the padding, have operands of floats. */
	if (!build_may_read(g, &from, (uint32_t)stick, rows))
		TRY(build_pad_copy(g, &from, both,
				   build_is_float(from.view.layout.device_format)));
	padded = out;
	if (out.tensor == SPYRE_SDSC_NEW ||
	    !build_may_write(g, &out, (uint32_t)old, columns)) {
		padded.view = from.view;
		padded.offset = 0;
		build_layout(&padded.view, from.view.layout.device_format, stick, both);
		TRY(build_new_tensor(g, &padded.view, &padded.tensor));
	}
	padded.clean = 0;
	for (uint32_t i = 0; i < 2; i++)
		if (build_is_clean(&from, (uint32_t)(i ? old : stick)))
			padded.clean |= 1u << (i ? old : stick);
	whole = padded;
	from.view.size[stick] = whole.view.size[stick] = rows;
	from.view.size[old] = whole.view.size[old] = columns;
	TRY(build_emit(g, "restickify", &from, 1, &whole));
	if (out.tensor != SPYRE_SDSC_NEW && padded.tensor != out.tensor)
		return build_emit(g, "identity", &padded, 1, to);
	*to = padded;
	return SPYRE_SUCCESS;
}

spyre_status build_restick_new(spyre_sdsc_graph *g, struct build_use *use, int stick)
{
	struct build_use out = { .tensor = SPYRE_SDSC_NEW };
	bool helping = g->helping;
	spyre_status status;

	g->helping = true;
	status = build_restick(g, *use, stick, &out);
	g->helping = helping;
	if (!status)
		*use = out;
	return status;
}

/*
 * Restickifies along an additional dim, so that each element is the first of its
 * own stick. The other lanes of the stick are never read.
 */
spyre_status build_sparse(spyre_sdsc_graph *g, struct build_use *use)
{
	uint32_t extra = use->view.rank;

	if (extra == SPYRE_MAX_RANK)
		return spyre_error(SPYRE_ERROR_LAYOUT,
				   "a column of %u dimensions stored densely cannot be repeated along sticks",
				   extra);
	build_unsqueeze(&use->view, extra);
	TRY(build_restick_new(g, use, (int)extra));
	use->view.rank = extra;
	for (uint32_t j = 0; j < use->view.layout.device_rank; j++)
		if (use->view.layout.dim_map[j] == (int)extra)
			use->view.layout.dim_map[j] = -1;
	return SPYRE_SUCCESS;
}

/* Restickifies inputs whose sticks are along another dim than those of the output. */
spyre_status build_align(const struct build_call *call, struct build_use *uses)
{
	struct build_use *out = &uses[call->num_inputs];
	spyre_sdsc_operand shape = out->view;
	int stick;

	for (uint32_t i = 0; i < call->num_inputs; i++)
		TRY(build_normalize(call->op->name, i, &uses[i].view));
	if (out->tensor == SPYRE_SDSC_NEW)
		TRY(build_infer(call, uses, &shape));
	stick = build_stick_dim(&shape);
	for (uint32_t i = 0; i < call->num_inputs && stick >= 0; i++) {
		const spyre_sdsc_operand *in = &uses[i].view;
		int own = build_stick_dim(in), want = stick - (int)(shape.rank - in->rank);

		if (in->rank > shape.rank || own < 0 || own == want)
			continue;
		if (want < 0 || in->size[want] == 1) {
			TRY(build_sparse(call->graph, &uses[i]));
			continue;
		}
		TRY(build_restick_new(call->graph, &uses[i], want));
	}
	return SPYRE_SUCCESS;
}
