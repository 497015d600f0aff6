// SPDX-License-Identifier: MIT
/*
 * Stride, dilation and padding of convolutions and pooling. Their public form in
 * an SDSC is unknown; this one is the project's (docs/sdsc.md).
 */
#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/parse/json.h"
#include "libspyre/sdsc/parse/window_parse.h"

static const char *const axis_name[2] = { "i", "j" };
static const char *const tap_name[2] = { "ki", "kj" };

static bool has_window(const char *op)
{
	static const char *const ops[] = {
		"conv2d", "conv2dfp8", "conv2dint8", "conv2dint4", "depthwiseconv2dnative",
		"avgpoolfwd", "avgpoolnmapfwd", "maxpoolfwd",
	};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (!strcmp(op, ops[i]))
			return true;
	return false;
}

/* Reads {"i": 2, "j": 2}; a missing dim is 1. */
static spyre_status parse_factors(struct ir_sdsc *s, const struct json *dsc, const char *key,
				  bool dilation)
{
	struct json ops, op, attributes, table, at;
	size_t found = 0;

	json_find(dsc, "computeOp_", &ops);
	TRY(json_element(&ops, 0, JSON_OBJECT, &op));
	if (!json_find(&op, "attributes_", &attributes) ||
	    !json_find(&attributes, key, &table))
		return SPYRE_SUCCESS;
	TRY(json_expect(&table, JSON_OBJECT));
	for (uint32_t k = 0; k < 2; k++) {
		struct ir_axis *a = &s->axis[k];

		if (a->dim == IR_NO_DIM || !json_find(&table, axis_name[k], &at))
			continue;
		found++;
		TRY(json_integer(&at, 1, SPYRE_MAX_COUNT, dilation ? &a->dilation : &a->stride));
	}
	return found == json_length(&table) ? SPYRE_SUCCESS :
	       json_wrong(&table, "members i and j, if they are dimensions of N_");
}

/* Reads {"i": [before, after]}; a missing dim is 0. */
static spyre_status parse_padding(struct ir_sdsc *s, const struct json *dsc)
{
	struct json stage, zero, el, table, pair, at;
	size_t found = 0;

	TRY(json_member(dsc, "dataStageParam_", JSON_OBJECT, &stage));
	TRY(json_member(&stage, "0", JSON_OBJECT, &zero));
	TRY(json_member(&zero, "el_", JSON_OBJECT, &el));
	if (!json_find(&el, "paddingSizes_", &table))
		return SPYRE_SUCCESS;
	TRY(json_expect(&table, JSON_OBJECT));
	for (uint32_t k = 0; k < 2; k++) {
		struct ir_axis *a = &s->axis[k];
		int64_t most;

		if (a->dim == IR_NO_DIM || !json_find(&table, axis_name[k], &pair))
			continue;
		found++;
		TRY(json_expect(&pair, JSON_ARRAY));
		if (json_length(&pair) != 2)
			return json_wrong(&pair, "[before, after]");
		/* The padding is limited so that no window lies in padding only. */
		most = a->tap == IR_NO_DIM ? 0 : (s->size[a->tap] - 1) * a->dilation;
		TRY(json_element(&pair, 0, JSON_INTEGER, &at));
		TRY(json_integer(&at, 0, most, &a->before));
		TRY(json_element(&pair, 1, JSON_INTEGER, &at));
		TRY(json_integer(&at, 0, most, &a->after));
	}
	return found == json_length(&table) ? SPYRE_SUCCESS :
	       json_wrong(&table, "members i and j, if they are dimensions of N_");
}

static spyre_status find_axes(struct ir_sdsc *s, const struct json *dsc)
{
	struct json n;

	TRY(json_member(dsc, "N_", JSON_OBJECT, &n));
	for (uint32_t k = 0; k < 2; k++) {
		struct ir_axis *a = &s->axis[k];

		a->dim = ir_find_dim(s, axis_name[k]);
		a->tap = ir_find_dim(s, tap_name[k]);
		a->stride = 1;
		a->dilation = 1;
		if (a->dim == IR_NO_DIM && a->tap != IR_NO_DIM)
			return json_wrong(&n, "a dimension %s, along which the window %s moves",
					  axis_name[k], tap_name[k]);
	}
	return SPYRE_SUCCESS;
}

/* Checks that the first input has size[] rows and columns and does not vary along taps. */
static spyre_status check_input(struct ir_sdsc *s, struct ir_tensor *t)
{
	bool shared = s->output == s->input[0];

	for (uint32_t i = 1; i < s->num_inputs; i++)
		shared = shared || s->input[i] == s->input[0];
	if (shared)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s: %s: Tensor%u is the input that the window moves over and another operand, too; give each a tensor of its own (docs/unsupported.md)",
				   s->file, s->op, s->input[0]);
	for (uint32_t k = 0; k < 2; k++) {
		const struct ir_axis *a = &s->axis[k];

		if (a->dim == IR_NO_DIM)
			continue;
		if (t->gap[a->dim] < 0)
			return spyre_error(SPYRE_ERROR_UNSUPPORTED,
					   "%s: %s: backGapCore_ of %s is %" PRId64 " in the input that the window moves over; a gap of 0 or more (docs/unsupported.md)",
					   s->file, s->op, axis_name[k], t->gap[a->dim]);
		if (t->scale[a->dim] != 1 || (a->tap != IR_NO_DIM && t->scale[a->tap] > 0))
			return spyre_error(SPYRE_ERROR_PARSE,
					   "%s: %s: Tensor%u, the input, must vary along %s and not along %s",
					   s->file, s->op, s->input[0], axis_name[k], tap_name[k]);
		if (a->dim == t->stick)
			return spyre_error(SPYRE_ERROR_UNSUPPORTED,
					   "%s: %s: the input has its sticks along %s, along which the window moves; restickify it to a channel dimension (docs/unsupported.md)",
					   s->file, s->op, axis_name[k]);
		if (t->lx && (s->slices[a->dim] > 1 ||
			      (a->tap != IR_NO_DIM && s->slices[a->tap] > 1)))
			return spyre_error(SPYRE_ERROR_UNSUPPORTED,
					   "%s: %s: the input is in LX and %s is divided over cores, whose shares of it overlap; keep it in HBM or divide another dimension (docs/unsupported.md)",
					   s->file, s->op, axis_name[k]);
	}
	return SPYRE_SUCCESS;
}

spyre_status ir_parse_window(struct ir_sdsc *s, const struct json *dsc)
{
	struct ir_tensor *t;

	if (!has_window(s->op))
		return SPYRE_SUCCESS;
	if (!s->num_inputs)
		return spyre_error(SPYRE_ERROR_PARSE, "%s: %s has no input", s->file, s->op);
	TRY(find_axes(s, dsc));
	TRY(parse_factors(s, dsc, "strides_", false));
	TRY(parse_factors(s, dsc, "dilations_", true));
	TRY(parse_padding(s, dsc));
	for (uint32_t k = 0; k < 2; k++) {
		struct ir_axis *a = &s->axis[k];
		int64_t taps;

		if (a->dim == IR_NO_DIM)
			continue;
		taps = a->tap == IR_NO_DIM ? 1 : s->size[a->tap];
		a->size = (s->size[a->dim] - 1) * a->stride + (taps - 1) * a->dilation + 1 -
			  a->before - a->after;
		if (a->size < 1)
			return spyre_error(SPYRE_ERROR_PARSE,
					   "%s: %s: padding of %" PRId64 " and %" PRId64 " leaves no input along %s",
					   s->file, s->op, a->before, a->after, axis_name[k]);
	}
	t = &s->tensor[s->input[0]];
	TRY(check_input(s, t));
	s->has_window = true;
	t->windowed = true;
	if (!ir_place(s, t))
		return spyre_error(SPYRE_ERROR_PARSE, "%s: %s: Tensor%u has 2^63 bytes or more",
				   s->file, s->op, s->input[0]);
	return SPYRE_SUCCESS;
}
