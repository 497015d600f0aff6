// SPDX-License-Identifier: MIT
/*
 * Stride, dilation and padding of convolutions and pooling: the public form, in which
 * paddingSizes_ has an object per dimension, and the project's (docs/sdsc.md).
 */
#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/parse/json.h"
#include "libspyre/sdsc/parse/window_parse.h"

#define MAX_ROWS (INT64_C(1) << 40)

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

/* The padding is limited so that no window lies in padding only. */
static int64_t most_padding(const struct ir_sdsc *s, const struct ir_axis *a)
{
	return a->tap == IR_NO_DIM ? 0 : (s->size[a->tap] - 1) * a->dilation;
}

/* Reads an optional number of 0 or more. */
static spyre_status optional(const struct json *up, const char *key, int64_t *out)
{
	struct json at;

	*out = 0;
	return json_find(up, key, &at) ? json_integer(&at, 0, MAX_ROWS, out) : SPYRE_SUCCESS;
}

/*
 * Reads {"padFront_": 1, "padBack_": 1, "totalSize_": 10, "stride_": 2, "dilation_": 1,
 * "windowDim_": "ki"}. Rows in memory are totalSize_ without any padding, needed or not.
 */
static spyre_status parse_public(struct ir_sdsc *s, struct ir_axis *a, const struct json *of,
				 int64_t *rows)
{
	int64_t total, front, back;
	struct json at;
	char name[IR_NAME_BYTES];

	TRY(json_member_integer(of, "stride_", 1, SPYRE_MAX_COUNT, &a->stride));
	TRY(json_member_integer(of, "dilation_", 1, SPYRE_MAX_COUNT, &a->dilation));
	TRY(json_member_text(of, "windowDim_", name, sizeof(name)));
	json_find(of, "windowDim_", &at);
	if (a->tap != IR_NO_DIM && strcmp(name, s->dim[a->tap]))
		return json_wrong(&at, "\"%s\", the taps along %s", s->dim[a->tap],
				  s->dim[a->dim]);
	TRY(json_member_integer(of, "padFront_", 0, most_padding(s, a), &a->before));
	TRY(json_member_integer(of, "padBack_", 0, most_padding(s, a), &a->after));
	TRY(json_member_integer(of, "totalSize_", 1, MAX_ROWS, &total));
	TRY(optional(of, "unneededPadFront_", &front));
	TRY(optional(of, "unneededPadBack_", &back));
	json_find(of, "totalSize_", &at);
	*rows = total - a->before - a->after - front - back;
	return *rows > 0 ? SPYRE_SUCCESS : json_wrong(&at, "more than the padding");
}

static spyre_status parse_pair(struct ir_sdsc *s, struct ir_axis *a, const struct json *pair)
{
	struct json at;

	TRY(json_expect(pair, JSON_ARRAY));
	if (json_length(pair) != 2)
		return json_wrong(pair, "[before, after]");
	TRY(json_element(pair, 0, JSON_INTEGER, &at));
	TRY(json_integer(&at, 0, most_padding(s, a), &a->before));
	TRY(json_element(pair, 1, JSON_INTEGER, &at));
	return json_integer(&at, 0, most_padding(s, a), &a->after);
}

/* Reads {"i": [before, after]} or objects; a missing dim is 0. @rows: in memory, 0 if unknown. */
static spyre_status parse_padding(struct ir_sdsc *s, const struct json *dsc, int64_t *rows)
{
	struct json n, stage, zero, el, table, entry;
	size_t count = 0;

	TRY(json_member(dsc, "N_", JSON_OBJECT, &n));
	TRY(json_member(dsc, "dataStageParam_", JSON_OBJECT, &stage));
	TRY(json_member(&stage, "0", JSON_OBJECT, &zero));
	TRY(json_member(&zero, "el_", JSON_OBJECT, &el));
	/* That of N_ is for the whole tensor, that of el_ may be for a core's share. */
	if (!json_find(&n, "paddingSizes_", &table) && !json_find(&el, "paddingSizes_", &table))
		return SPYRE_SUCCESS;
	TRY(json_expect(&table, JSON_OBJECT));
	for (uint32_t k = 0; k < 2; k++) {
		struct ir_axis *a = &s->axis[k];

		if (!json_find(&table, axis_name[k], &entry))
			continue;
		count += a->dim != IR_NO_DIM || ir_find_dim(s, tap_name[k]) != IR_NO_DIM;
		if (a->dim == IR_NO_DIM)
			continue;
		if (yyjson_is_obj(entry.val))
			TRY(parse_public(s, a, &entry, &rows[k]));
		else
			TRY(parse_pair(s, a, &entry));
	}
	return count == json_length(&table) ? SPYRE_SUCCESS :
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
		/* The public front-end drops an axis of one output, but not its single tap. */
		if (a->dim == IR_NO_DIM && a->tap != IR_NO_DIM && s->size[a->tap] > 1)
			return json_wrong(&n, "a dimension %s, along which the window %s moves",
					  axis_name[k], tap_name[k]);
		if (a->dim == IR_NO_DIM)
			a->tap = IR_NO_DIM;
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

/*
 * Takes the rows in memory that the public form states: those of totalSize_, or N_ and the
 * gap, which does not count from the window's reach there as it does in the other form.
 */
static spyre_status take_rows(struct ir_sdsc *s, struct ir_axis *a, int64_t rows)
{
	struct ir_tensor *t = &s->tensor[s->input[0]];

	if (!rows)
		return SPYRE_SUCCESS;
	if (t->gap[a->dim])
		rows = s->size[a->dim] + t->gap[a->dim];
	if (rows < a->size || (rows > a->size && a->after))
		return spyre_error(SPYRE_ERROR_PARSE,
				   "%s: %s: the windows reach %" PRId64 " elements of the input along %s and %" PRId64 " of padding behind; it has %" PRId64,
				   s->file, s->op, a->size, s->dim[a->dim], a->after, rows);
	/* No file that is public tells where a share starts of which the first rows are padding. */
	if (s->slices[a->dim] > 1 && a->before)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s: %s: %s is divided over cores with padding of %" PRId64 " in front; divide another dimension (docs/unsupported.md)",
				   s->file, s->op, s->dim[a->dim], a->before);
	a->stated = true;
	t->gap[a->dim] = rows - a->size;
	return SPYRE_SUCCESS;
}

spyre_status ir_parse_window(struct ir_sdsc *s, const struct json *dsc)
{
	int64_t rows[2] = { 0, 0 };
	struct ir_tensor *t;

	if (!has_window(s->op))
		return SPYRE_SUCCESS;
	if (!s->num_inputs)
		return spyre_error(SPYRE_ERROR_PARSE, "%s: %s has no input", s->file, s->op);
	TRY(find_axes(s, dsc));
	TRY(parse_factors(s, dsc, "strides_", false));
	TRY(parse_factors(s, dsc, "dilations_", true));
	TRY(parse_padding(s, dsc, rows));
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
		TRY(take_rows(s, a, rows[k]));
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
