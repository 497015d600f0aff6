// SPDX-License-Identifier: MIT
/*
 * Builder: convolutions and pooling on [N, C, H, W] or [C, H, W]. The card needs
 * sticks along channels; tensors with other sticks are restickified.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/attr.h"
#include "libspyre/sdsc/graph/fit.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/ops.h"
#include "libspyre/sdsc/graph/recipes.h"
#include "libspyre/sdsc/graph/shapes.h"
#include "libspyre/sdsc/graph/window.h"

#define NEW SPYRE_SDSC_NEW
#define CHANNELS 1		/* host dim of [N, C, H, W] */
#define ROWS 2

static const char *const axis_names[2] = { "i", "j" };
static const char *const tap_names[2] = { "ki", "kj" };

struct window {
	int64_t taps, stride, dilation, padding;
	int64_t in, out;	/* rows or columns */
};

static bool has_weight(const struct build_call *call)
{
	return !build_has_attr(call, "kernel_size") && strcmp(call->op->name, "max_pool2d") &&
	       strcmp(call->op->name, "avg_pool2d") && strcmp(call->op->name, "avgpoolnmap");
}

/* Reads an attribute that is given once for both axes, or once for each. */
static spyre_status whole_attr(const struct build_call *call, const char *name, uint32_t axis,
			       int64_t least, double fallback, int64_t *value)
{
	double v = build_attr_nth(call, name, axis);

	if (isnan(v))
		v = fallback;
	if (isnan(v))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s needs the attribute \"%s\", once or for rows and columns",
				   call->op->name, name);
	if (!(v == floor(v) && v >= (double)least && v <= SPYRE_MAX_COUNT))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: %s is %g, expected a whole number from %" PRId64 " to %u",
				   call->op->name, name, v, least, SPYRE_MAX_COUNT);
	*value = (int64_t)v;
	return SPYRE_SUCCESS;
}

static spyre_status one_axis(const struct build_call *call, const spyre_sdsc_operand *x,
			     const spyre_sdsc_operand *w, uint32_t axis, struct window *a)
{
	int64_t reach, slack;

	a->in = x->size[ROWS + axis];
	a->dilation = 1;
	if (w)
		a->taps = w->size[ROWS + axis];
	else
		TRY(whole_attr(call, "kernel_size", axis, 1, NAN, &a->taps));
	TRY(whole_attr(call, "stride", axis, 1, w ? 1 : (double)a->taps, &a->stride));
	TRY(whole_attr(call, "padding", axis, 0, 0, &a->padding));
	if (!isnan(build_attr(call, "dilation")))
		TRY(whole_attr(call, "dilation", axis, 1, 1, &a->dilation));
	reach = (a->taps - 1) * a->dilation;
	if (a->padding > reach)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s: a padding of %" PRId64 " along %s puts windows of %" PRId64 " wholly outside of the input; at most %" PRId64 " is possible (docs/unsupported.md)",
				   call->op->name, a->padding, axis_names[axis], reach + 1, reach);
	slack = a->in + 2 * a->padding - reach - 1;
	if (slack < 0)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: windows of %" PRId64 " do not fit in size[%u] = %" PRId64 " with a padding of %" PRId64,
				   call->op->name, reach + 1, ROWS + axis, a->in, a->padding);
	a->out = slack / a->stride + 1;
	/* ceil_mode adds a window that exceeds the padding if it starts in the input. */
	if (build_attr(call, "ceil_mode") > 0 && slack % a->stride &&
	    a->out * a->stride < a->in + a->padding)
		a->out++;
	return SPYRE_SUCCESS;
}

static spyre_status windows(const struct build_call *call, const struct build_use *use,
			    struct window *a)
{
	const spyre_sdsc_operand *x = &use[0].view, *w = has_weight(call) ? &use[1].view : NULL;
	bool depthwise = w && strcmp(call->op->name, "conv2d");

	if (x->rank != 4)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: operand 0 has rank %u, expected [N, C, H, W] or [C, H, W]",
				   call->op->name, x->rank);
	if (w && (w->rank != 4 || w->size[CHANNELS] != (depthwise ? 1 : x->size[CHANNELS]) ||
		  (depthwise && w->size[0] != x->size[CHANNELS])))
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: the weights are [%" PRId64 ", %" PRId64 ", ..] of rank %u, expected %s with C = %" PRId64,
				   call->op->name, w->size[0], w->size[1], w->rank,
				   depthwise ? "[C, 1, H, W]" : "[out, C, H, W]",
				   x->size[CHANNELS]);
	for (uint32_t k = 0; k < 2; k++)
		TRY(one_axis(call, x, w, k, &a[k]));
	return SPYRE_SUCCESS;
}

static spyre_status restick(spyre_sdsc_graph *g, struct build_use *use, int stick)
{
	const spyre_layout *l = &use->view.layout;

	/* build_stick_dim() returns -1 for dims of size 1, so dim_map is compared. */
	if (l->dim_map[l->device_rank - 1] == stick)
		return SPYRE_SUCCESS;
	return build_restick_new(g, use, stick);
}

/* Products include the lanes and rows beyond the channels, so both must be zeros. */
static spyre_status clean_channels(spyre_sdsc_graph *g, struct build_use *x)
{
	return build_is_clean(x, CHANNELS) ? SPYRE_SUCCESS : build_clean_lanes(g, x, CHANNELS);
}

static spyre_status weights(const struct build_call *call, struct build_use *w)
{
	spyre_sdsc_graph *g = call->graph;
	int64_t rows = w->view.size[CHANNELS];

	if (strcmp(call->op->name, "conv2d")) {		/* [C, 1, H, W] is not summed over rows */
		TRY(restick(g, w, 0));
		return SPYRE_SUCCESS;
	}
	TRY(restick(g, w, 0));
	if (rows % build_lanes(&w->view) == 0)
		return SPYRE_SUCCESS;
	return build_pad_copy(g, w, 1u << CHANNELS, true);
}

static void output_shape(const struct build_call *call, const struct build_use *use,
			 const struct window *a, spyre_sdsc_operand *out)
{
	*out = use[0].view;
	if (!strcmp(call->op->name, "conv2d"))
		out->size[CHANNELS] = use[1].view.size[0];
	out->size[ROWS] = a[0].out;
	out->size[ROWS + 1] = a[1].out;
	build_layout(out, use[0].view.layout.device_format, CHANNELS, 0);
}

static spyre_status check_output(const struct build_call *call, const spyre_sdsc_operand *want,
				 const spyre_sdsc_operand *got)
{
	for (uint32_t d = 0; d < 4; d++)
		if (got->size[d] != want->size[d])
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "%s: the output is [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "], expected [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "]",
					   call->op->name, got->size[0], got->size[1],
					   got->size[2], got->size[3], want->size[0],
					   want->size[1], want->size[2], want->size[3]);
	return SPYRE_SUCCESS;
}

/* Adds the step with sticks along channels, then the bias and, if needed, a restickify. */
static spyre_status window_steps(const struct build_call *call, struct build_use *use,
				 const struct build_use *bias, bool flat)
{
	const uint32_t inputs = call->num_inputs;
	struct build_use out = build_use_of(call->graph, *call->out), made = { .tensor = NEW };
	spyre_sdsc_graph *g = call->graph;
	struct build_call step = *call;
	struct window a[2];
	bool given = out.tensor != NEW, direct;
	int raw;

	TRY(windows(call, use, a));
	output_shape(call, use, a, &made.view);
	/* Checked first, because a view of full rank would overflow in build_unsqueeze(). */
	if (given && out.view.rank != 4u - flat)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: the output has rank %u, operand 0 has %u",
				   call->op->name, out.view.rank, 4u - flat);
	if (given && flat)
		build_unsqueeze(&out.view, 0);
	if (given)
		TRY(check_output(call, &made.view, &out.view));
	raw = out.view.layout.device_rank ?
	      out.view.layout.dim_map[out.view.layout.device_rank - 1] : -1;
	direct = given && raw == CHANNELS && !bias;
	if (direct)
		made = out;
	else
		TRY(build_new_tensor(g, &made.view, &made.tensor));
	use[inputs] = made;
	step.out = &made.tensor;
	TRY(build_add_step(&step, use));
	if (bias) {
		struct build_use sum[2] = { made, *bias };
		struct build_use to = given && raw == CHANNELS ? out :
				      (struct build_use){ .tensor = NEW, .view = made.view };

		if (to.tensor == NEW)
			TRY(build_new_tensor(g, &to.view, &to.tensor));
		TRY(build_emit(g, "bias_add", sum, 2, &to));
		made = to;
		direct = given && raw == CHANNELS;
	}
	if (given && !direct)
		return build_restick(g, made, build_stick_dim(&out.view), &out);
	if (!given && flat) {
		/* Removes dim 0 from the view, which leaves the memory as it is. */
		spyre_sdsc_operand *o = &g->tensor[made.tensor].operand;
		spyre_layout *l = &o->layout;

		memmove(&o->size[0], &o->size[1], 3 * sizeof(o->size[0]));
		o->rank = 3;
		for (uint32_t j = 0; j < l->device_rank; j++)
			l->dim_map[j] = (int8_t)(l->dim_map[j] > 0 ? l->dim_map[j] - 1 : -1);
	}
	*call->out = given ? *call->out : made.tensor;
	return SPYRE_SUCCESS;
}

spyre_status build_conv2d(const struct build_call *call)
{
	spyre_sdsc_graph *g = call->graph;
	struct build_use use[4] = { build_use_of(g, call->in[0]), build_use_of(g, call->in[1]) };
	struct build_use bias = { 0 };
	struct build_call conv = *call;
	bool flat = use[0].view.rank == 3;
	struct window a[2];

	if (flat)
		build_unsqueeze(&use[0].view, 0);
	TRY(windows(call, use, a));
	TRY(restick(g, &use[0], CHANNELS));
	if (!strcmp(call->op->name, "conv2d"))
		TRY(clean_channels(g, &use[0]));
	TRY(weights(call, &use[1]));
	conv.num_inputs = 2;
	if (call->num_inputs < 3)
		return window_steps(&conv, use, NULL, flat);
	bias = build_use_of(g, call->in[2]);
	if (bias.view.rank != 1 || bias.view.size[0] != use[1].view.size[0])
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: the bias has rank %u and size[0] = %" PRId64 ", expected [%" PRId64 "]",
				   call->op->name, bias.view.rank, bias.view.size[0],
				   use[1].view.size[0]);
	build_unsqueeze(&bias.view, 1);
	build_unsqueeze(&bias.view, 2);
	return window_steps(&conv, use, &bias, flat);
}

/* Computes 1 / the number of input elements of each window. */
static spyre_status counts(const struct build_call *call, const struct build_use *x,
			   struct build_use *map)
{
	spyre_sdsc_graph *g = call->graph;
	spyre_sdsc_attribute attr[BUILD_MAX_ATTRS * 2], one = { "value", 1 };
	spyre_sdsc_operand shape = x->view;
	uint32_t ones, sum = NEW, n = 0, inverse = NEW;

	shape.size[0] = 1;
	build_layout(&shape, x->view.layout.device_format, CHANNELS, 0);
	TRY(build_new_tensor(g, &shape, &ones));
	TRY(build_add(g, "fill", &one, 1, NULL, 0, &ones));
	for (uint32_t i = 0; i < call->num_attrs && n + 1 < BUILD_MAX_ATTRS * 2; i++)
		if (strcmp(call->attr[i].name, "count_include_pad"))
			attr[n++] = call->attr[i];
	attr[n++] = (spyre_sdsc_attribute){ "divisor_override", 1 };
	TRY(build_add(g, "avg_pool2d", attr, n, &ones, 1, &sum));
	TRY(build_add(g, "reciprocal", NULL, 0, &sum, 1, &inverse));
	*map = build_use_of(g, inverse);
	return SPYRE_SUCCESS;
}

spyre_status build_pool2d(const struct build_call *call)
{
	spyre_sdsc_graph *g = call->graph;
	struct build_use use[3] = { build_use_of(g, call->in[0]) };
	bool flat = use[0].view.rank == 3, average = strcmp(call->op->name, "max_pool2d");
	struct build_call pool = *call;
	struct window a[2];

	if (flat)
		build_unsqueeze(&use[0].view, 0);
	TRY(windows(call, use, a));
	if (average && build_attr(call, "ceil_mode") > 0)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s: ceil_mode is for max_pool2d only: windows that hang over would count differently from padding (docs/unsupported.md)",
				   call->op->name);
	TRY(restick(g, &use[0], CHANNELS));
	if (call->num_inputs > 1) {
		use[1] = build_use_of(g, call->in[1]);
		if (use[1].view.rank == 3)
			build_unsqueeze(&use[1].view, 0);
		if (use[1].view.rank != 4)
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "%s: operand 1 has rank %u, expected 3 or 4",
					   call->op->name, use[1].view.rank);
		TRY(restick(g, &use[1], CHANNELS));
	} else if (average && build_attr(call, "count_include_pad") == 0 &&
		   isnan(build_attr(call, "divisor_override")) &&
		   (a[0].padding || a[1].padding)) {
		TRY(counts(call, &use[0], &use[1]));
		pool.op = build_op_find("avgpoolnmap");
		pool.num_inputs = 2;
	}
	return window_steps(&pool, use, NULL, flat);
}

struct shaper {
	const struct build_call *call;
	struct build_step *step;
	struct ir_sdsc *s;
	int batch, out, in;	/* dims */
	int axis[2], tap[2];
};

static void add_dims(struct shaper *b, const struct build_use *use, const struct window *a)
{
	const spyre_sdsc_operand *x = &use[0].view, *y = &use[b->call->num_inputs].view;
	bool sums = !strcmp(b->call->op->name, "conv2d");
	int64_t lanes = build_lanes(x);

	b->batch = x->size[0] > 1 ? build_add_dim(b->step, "mb", x->size[0], BUILD_NO_KEY) : -1;
	b->out = build_add_dim(b->step, "out", build_whole_sticks(y->size[CHANNELS], lanes),
			       BUILD_NO_KEY);
	b->in = sums ? build_add_dim(b->step, "in", build_whole_sticks(x->size[CHANNELS], lanes),
				     BUILD_NO_KEY) : -1;
	for (uint32_t k = 0; k < 2; k++) {
		b->axis[k] = build_add_dim(b->step, axis_names[k], a[k].out, BUILD_NO_KEY);
		b->tap[k] = build_add_dim(b->step, tap_names[k], a[k].taps, BUILD_NO_KEY);
		b->step->whole |= 1u << b->tap[k];
	}
	if (sums)
		b->step->whole |= 1u << b->in;
}

static void set_axes(struct shaper *b, const struct window *a)
{
	for (uint32_t k = 0; k < 2; k++) {
		struct ir_axis *x = &b->s->axis[k];
		int64_t reach = (a[k].out - 1) * a[k].stride + (a[k].taps - 1) * a[k].dilation + 1;
		int64_t after = reach - a[k].padding - a[k].in;

		*x = (struct ir_axis){ .dim = (uint32_t)b->axis[k], .tap = (uint32_t)b->tap[k],
				       .stride = a[k].stride, .dilation = a[k].dilation,
				       .before = a[k].padding, .after = after > 0 ? after : 0 };
		x->size = reach - x->before - x->after;
	}
	b->s->has_window = true;
}

/* Adds a tensor [N, C, H, W] whose rows and columns walk the dims @along. */
static spyre_status place(struct shaper *b, const spyre_sdsc_operand *o, int batch, int channels,
			  const int *along)
{
	int dim[4] = { o->size[0] > 1 ? batch : -1, channels, o->size[ROWS] > 1 ? along[0] : -1,
		       o->size[ROWS + 1] > 1 ? along[1] : -1 };
	struct ir_tensor *t;

	if (o->layout.dim_map[o->layout.device_rank - 1] != CHANNELS)
		return spyre_error(SPYRE_ERROR_LAYOUT,
				   "%s: operand %u has its sticks along dimension %d, they have to be along channels",
				   b->call->op->name, b->s->num_tensors,
				   o->layout.dim_map[o->layout.device_rank - 1]);
	TRY(build_place_tensor(b->s, b->call->op->name, o, dim, (uint32_t)channels, true));
	t = &b->s->tensor[b->s->num_tensors - 1];
	for (uint32_t k = 0; k < 2; k++)
		if (!t->scale[along[k]]) {
			t->scale[along[k]] = 1;
			t->order[t->num_order++] = (uint32_t)along[k];
		}
	return SPYRE_SUCCESS;
}

/* Adds the first input, whose rows and columns are no iteration dims. */
static spyre_status place_input(struct shaper *b, const spyre_sdsc_operand *x)
{
	int64_t own[2];
	spyre_status status;

	for (uint32_t k = 0; k < 2; k++) {
		own[k] = b->s->size[b->axis[k]];
		b->s->size[b->axis[k]] = b->s->axis[k].size;
	}
	status = place(b, x, b->batch, b->in >= 0 ? b->in : b->out, b->axis);
	for (uint32_t k = 0; k < 2; k++)
		b->s->size[b->axis[k]] = own[k];
	b->s->tensor[0].windowed = true;
	return status;
}

/* Adds weights [out, in, H, W] with sticks along out; in is 1 if depthwise. */
static spyre_status place_weights(struct shaper *b, const spyre_sdsc_operand *w)
{
	int dim[4] = { b->out, w->size[1] > 1 || b->in >= 0 ? b->in : -1,
		       w->size[2] > 1 ? b->tap[0] : -1, w->size[3] > 1 ? b->tap[1] : -1 };

	return build_place_tensor(b->s, b->call->op->name, w, dim, (uint32_t)b->out, true);
}

static void add_constants(struct shaper *b, const struct window *a)
{
	double divisor = build_attr(b->call, "divisor_override");

	if (strcmp(b->call->op->name, "avg_pool2d"))
		return;
	if (isnan(divisor))
		divisor = (double)a[0].taps * (double)a[1].taps;
	build_add_constant(b->s, "nmap", (float)(1 / divisor));
}

spyre_status build_window_shapes(const struct build_call *call, struct build_use *uses,
				 struct build_step *step)
{
	struct shaper b = { .call = call, .step = step, .s = &step->sdsc };
	struct window a[2];
	uint32_t named;

	if (build_attr(call, "divisor_override") == 0)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: divisor_override is 0", call->op->name);
	TRY(windows(call, uses, a));
	add_dims(&b, uses, a);
	named = b.s->num_dims;
	set_axes(&b, a);
	TRY(place_input(&b, &uses[0].view));
	if (has_weight(call))
		TRY(place_weights(&b, &uses[1].view));
	else if (call->num_inputs > 1)
		TRY(place(&b, &uses[1].view, b.batch, b.out, b.axis));
	TRY(place(&b, &uses[call->num_inputs].view, b.batch, b.out, b.axis));
	build_share_singles(b.s, named);
	build_finish(step, uses, call->num_inputs + 1, call->op->func);
	add_constants(&b, a);
	return SPYRE_SUCCESS;
}
