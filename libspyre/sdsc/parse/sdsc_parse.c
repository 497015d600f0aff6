// SPDX-License-Identifier: MIT
/*
 * SDSC files of the generators of June and September 2026. Unknown keys are
 * ignored; keys that are used are checked.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/layout/stick.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/parse/division_parse.h"
#include "libspyre/sdsc/parse/indirect_parse.h"
#include "libspyre/sdsc/parse/json.h"
#include "libspyre/sdsc/parse/sdsc_parse.h"
#include "libspyre/sdsc/parse/symbolic.h"
#include "libspyre/sdsc/parse/window_parse.h"

#define MAX_SIZE (INT64_C(1) << 40)
#define MAX_NODES 1024		/* of scheduleTree_, searched once per tensor */

/* Reads the name of a dim. */
static spyre_status get_dim(const struct ir_sdsc *s, const struct json *at, uint32_t *out)
{
	char name[IR_NAME_BYTES];

	TRY(json_text(at, name, sizeof(name)));
	*out = ir_find_dim(s, name);
	return *out == IR_NO_DIM ? json_wrong(at, "a dimension of N_") : SPYRE_SUCCESS;
}

static spyre_status parse_dims(struct ir_sdsc *s, const struct json *dsc)
{
	struct json n, at;
	yyjson_obj_iter it;
	yyjson_val *key;

	TRY(json_member(dsc, "N_", JSON_OBJECT, &n));
	yyjson_obj_iter_init(n.val, &it);
	while ((key = yyjson_obj_iter_next(&it))) {
		const char *name = yyjson_get_str(key);
		size_t len = strlen(name);

		/* Later generators write empty objects next to the sizes. */
		if (!strcmp(name, "name_") || yyjson_is_ctn(yyjson_obj_iter_get_val(key)))
			continue;
		json_find(&n, name, &at);
		if (len < 2 || len > IR_NAME_BYTES || name[len - 1] != '_')
			return json_wrong(&at, "a key \"<dim>_\"");
		if (s->num_dims == IR_MAX_DIMS)
			return json_wrong(&n, "at most %u dimensions", IR_MAX_DIMS);
		memcpy(s->dim[s->num_dims], name, len - 1);
		if (ir_find_dim(s, s->dim[s->num_dims]) != IR_NO_DIM)
			return json_wrong(&at, "each dimension once");
		TRY(json_integer(&at, 1, MAX_SIZE, &s->size[s->num_dims]));
		s->num_dims++;
	}
	return s->num_dims ? SPYRE_SUCCESS : json_wrong(&n, "at least one dimension");
}

static spyre_status parse_sizes(struct ir_sdsc *s, const struct json *root,
				const struct json *dsc)
{
	struct json slices, stage, zero, el;
	int64_t product = 1;

	TRY(json_member(root, "numWkSlicesPerDim_", JSON_OBJECT, &slices));
	TRY(json_member(dsc, "dataStageParam_", JSON_OBJECT, &stage));
	TRY(json_member(&stage, "0", JSON_OBJECT, &zero));
	TRY(json_member(&zero, "el_", JSON_OBJECT, &el));
	for (uint32_t d = 0; d < s->num_dims; d++) {
		char key[IR_NAME_BYTES + 1];
		struct json at;

		snprintf(key, sizeof(key), "%s_", s->dim[d]);
		TRY(json_member_integer(&slices, s->dim[d], 1, SPYRE_MAX_CORES, &s->slices[d]));
		TRY(json_member_integer(&el, key, 1, MAX_SIZE, &s->el[d]));
		json_find(&el, key, &at);
		if (s->el[d] * s->slices[d] != s->size[d])
			return json_wrong(&at, "N_ %" PRId64 " / %" PRId64 " slices of %s",
					  s->size[d], s->slices[d], s->dim[d]);
		product *= s->slices[d];
	}
	if (product != (int64_t)s->num_cores)
		return json_wrong(&slices, "slices that multiply to numCoresUsed_ %u",
				  s->num_cores);
	return ir_parse_symbolic(s, root, dsc, &el);
}

static spyre_status parse_cores(struct ir_sdsc *s, const struct json *root,
				const struct json *dsc)
{
	struct json ids, at;
	int64_t n, core;

	TRY(json_member_integer(root, "numCoresUsed_", 1, SPYRE_MAX_CORES, &n));
	s->num_cores = (uint32_t)n;
	TRY(json_member(dsc, "coreIdsUsed_", JSON_ARRAY, &ids));
	if (json_length(&ids) != s->num_cores)
		return json_wrong(&ids, "numCoresUsed_ = %u cores", s->num_cores);
	for (uint32_t i = 0; i < s->num_cores; i++) {
		TRY(json_element(&ids, i, JSON_INTEGER, &at));
		TRY(json_integer(&at, i ? s->core[i - 1] + 1 : 0, SPYRE_MAX_CORES - 1, &core));
		s->core[i] = (uint32_t)core;
	}
	return SPYRE_SUCCESS;
}

/* Writes a core's number, below 100, between two texts; returns the length. */
static inline size_t core_key(char *key, const char *before, uint32_t core, const char *after)
{
	const size_t first = strlen(before), last = strlen(after);
	char *at = key + first;

	memcpy(key, before, first);
	if (core >= 10)
		*at++ = (char)('0' + core / 10);
	*at++ = (char)('0' + core % 10);
	memcpy(at, after, last + 1);
	return (size_t)(at + last - key);
}

static spyre_status parse_slices(struct ir_sdsc *s, const struct json *root)
{
	struct json table, entry;
	struct json_walk walk;
	int64_t slice;

	TRY(json_member(root, "coreIdToWkSlice_", JSON_OBJECT, &table));
	json_walk(&table, &walk);
	for (uint32_t i = 0; i < s->num_cores; i++) {
		char core[16];

		json_walk_find(&walk, core, core_key(core, "", s->core[i], ""), &entry);
		TRY(json_expect(&entry, JSON_OBJECT));
		for (uint32_t d = 0; d < s->num_dims; d++) {
			TRY(json_member_integer(&entry, s->dim[d], 0, s->slices[d] - 1, &slice));
			s->slice[i][d] = (uint32_t)slice;
		}
	}
	return SPYRE_SUCCESS;
}

static spyre_status parse_masks(struct ir_sdsc *s, const struct json *dsc)
{
	struct json masks, list, pair, at;
	int64_t number[2];

	TRY(json_member(dsc, "coordinateMasking_", JSON_OBJECT, &masks));
	for (uint32_t d = 0; d < s->num_dims; d++) {
		if (!json_find(&masks, s->dim[d], &list))
			continue;
		TRY(json_expect(&list, JSON_ARRAY));
		for (size_t i = 0; i < json_length(&list); i++) {
			TRY(json_element(&list, i, JSON_ARRAY, &pair));
			if (json_length(&pair) != 2 || s->num_masks == IR_MAX_MASKS)
				return json_wrong(&pair, "at most %u pairs [start, length]",
						  IR_MAX_MASKS);
			for (size_t k = 0; k < 2; k++) {
				TRY(json_element(&pair, k, JSON_INTEGER, &at));
				TRY(json_integer(&at, 0, s->size[d], &number[k]));
			}
			s->mask[s->num_masks++] = (struct ir_mask){ d, number[0], number[1] };
		}
	}
	return SPYRE_SUCCESS;
}

static spyre_status parse_format(const struct json *at, enum spyre_fmt *format)
{
	char name[IR_NAME_BYTES];

	TRY(json_text(at, name, sizeof(name)));
	*format = (enum spyre_fmt)spyre_format_from_name(name);
	return *format ? SPYRE_SUCCESS : json_wrong(at, "the name of a data format");
}

/* Reads the bits of a constant, a number or one in a string; all cores must have the same. */
static spyre_status parse_constant(struct ir_constant *c, const struct json *entry)
{
	struct json data, inner, list, at;
	int64_t bits;
	bool text;

	TRY(json_member_text(entry, "name_", c->name, sizeof(c->name)));
	json_find(entry, "dataFormat_", &at);
	TRY(parse_format(&at, &c->format));
	TRY(json_member(entry, "data_", JSON_OBJECT, &data));
	TRY(json_member(&data, "data_", JSON_OBJECT, &inner));
	TRY(json_member(&inner, "[0, 0, 0]", JSON_ARRAY, &list));
	text = yyjson_is_str(yyjson_arr_get_first(list.val));
	TRY(json_element(&list, 0, text ? JSON_STRING : JSON_INTEGER, &at));
	TRY(text ? json_decimal(&at, 0, UINT32_MAX, &bits) :
		   json_integer(&at, 0, UINT32_MAX, &bits));
	c->bits = (uint32_t)bits;
	return SPYRE_SUCCESS;
}

static spyre_status parse_constants(struct ir_sdsc *s, const struct json *dsc)
{
	struct json table, entry;
	yyjson_obj_iter it;
	yyjson_val *key;

	json_find(dsc, "constantInfo_", &table);
	if (yyjson_equals_str(table.val, "{}"))
		return SPYRE_SUCCESS;
	if (!yyjson_is_obj(table.val))
		return json_wrong(&table, "an object or the string \"{}\"");
	yyjson_obj_iter_init(table.val, &it);
	while ((key = yyjson_obj_iter_next(&it))) {
		TRY(json_member(&table, yyjson_get_str(key), JSON_OBJECT, &entry));
		if (s->num_constants == IR_MAX_CONSTANTS)
			return json_wrong(&table, "at most %u constants", IR_MAX_CONSTANTS);
		TRY(parse_constant(&s->constant[s->num_constants++], &entry));
	}
	return SPYRE_SUCCESS;
}

/* Reads stickDimOrder_ and stickSize_, from the inside out, as parts of the stick. */
static spyre_status parse_stick(struct ir_sdsc *s, struct ir_tensor *t, const struct json *info)
{
	struct json sticks, sizes, at;
	uint32_t dim, product = 1;
	int64_t size;

	TRY(json_member(info, "stickDimOrder_", JSON_ARRAY, &sticks));
	TRY(json_member(info, "stickSize_", JSON_ARRAY, &sizes));
	if (!json_length(&sticks) || json_length(&sticks) > IR_MAX_PARTS)
		return json_wrong(&sticks, "1 to %u stick dimensions", IR_MAX_PARTS);
	if (json_length(&sizes) != json_length(&sticks))
		return json_wrong(&sizes, "one size per stick dimension");
	for (size_t i = 0; i < json_length(&sticks); i++) {
		struct ir_part *last = t->num_parts ? &t->part[t->num_parts - 1] : NULL;

		TRY(json_element(&sticks, i, JSON_STRING, &at));
		TRY(get_dim(s, &at, &dim));
		TRY(json_element(&sizes, i, JSON_INTEGER, &at));
		TRY(json_integer(&at, 1, t->lanes, &size));
		if (size & (size - 1))
			return json_wrong(&at, "a power of two");
		product *= (uint32_t)size;
		if (last && last->dim == dim)
			last->size *= (uint32_t)size;
		else if (size > 1 || json_length(&sticks) == 1)
			t->part[t->num_parts++] = (struct ir_part){ dim, (uint32_t)size };
	}
	if (product != t->lanes)
		return json_wrong(&sizes, "sizes that multiply to the %u elements of %s in a stick",
				  t->lanes, spyre_format_name((spyre_format)t->format));
	t->stick = t->part[0].dim;
	for (uint32_t i = 1; i < t->num_parts; i++)
		if (ir_unit(t, t->part[i].dim) > ir_unit(t, t->stick))
			t->stick = t->part[i].dim;
	return SPYRE_SUCCESS;
}

/* Reads scale_, which follows the order of the layout label, not that of the tensor. */
static spyre_status parse_scale(struct ir_sdsc *s, struct ir_tensor *t, const struct json *dsc,
				const struct json *lds)
{
	struct json infos, info, order, scale, at;
	char label[IR_NAME_BYTES];
	int64_t value;
	uint32_t dim;

	TRY(json_member_text(lds, "dsType_", label, sizeof(label)));
	TRY(json_member(dsc, "primaryDsInfo_", JSON_OBJECT, &infos));
	TRY(json_member(&infos, label, JSON_OBJECT, &info));
	TRY(json_member(&info, "layoutDimOrder_", JSON_ARRAY, &order));
	TRY(json_member(lds, "scale_", JSON_ARRAY, &scale));
	TRY(parse_stick(s, t, &info));
	if (json_length(&scale) != json_length(&order))
		return json_wrong(&scale, "one entry per layoutDimOrder_ of %s, that is %zu", label,
				  json_length(&order));
	for (size_t i = 0; i < json_length(&order); i++) {
		TRY(json_element(&order, i, JSON_STRING, &at));
		TRY(get_dim(s, &at, &dim));
		if (t->scale[dim])
			return json_wrong(&order, "each dimension once");
		TRY(json_element(&scale, i, JSON_INTEGER, &at));
		TRY(json_integer(&at, -2, 1, &value));
		if (!value || (value == -2 && ir_unit(t, dim) == 1))
			return json_wrong(&at, "1, -1, or -2 for the stick dimension");
		t->scale[dim] = (int8_t)value;
	}
	for (uint32_t i = 0; i < t->num_parts; i++)
		if (!t->scale[t->part[i].dim])
			return json_wrong(&order, "all stick dimensions; %s is missing",
					  s->dim[t->part[i].dim]);
	return SPYRE_SUCCESS;
}

static spyre_status parse_starts(struct ir_sdsc *s, struct ir_tensor *t, const struct json *node)
{
	struct json start, data, at;
	struct json_walk walk;

	TRY(json_member(node, "startAddressCoreCorelet_", JSON_OBJECT, &start));
	TRY(json_member(&start, "data_", JSON_OBJECT, &data));
	json_walk(&data, &walk);
	for (uint32_t i = 0; i < s->num_cores; i++) {
		char key[32];

		json_walk_find(&walk, key, core_key(key, "[", s->core[i], ", 0, 0]"), &at);
		TRY(json_expect(&at, JSON_STRING));
		TRY(json_decimal(&at, t->lx ? 0 : -(INT64_C(1) << 31), INT64_C(1) << 37,
				 &t->start[i]));
		if (t->start[i] % SPYRE_STICK_BYTES && t->start[i] > 0)
			return json_wrong(&at, "an address that is a multiple of %u bytes",
					  SPYRE_STICK_BYTES);
	}
	return SPYRE_SUCCESS;
}

/* Checks that a negative gap leaves at least one unit of the dim. */
static spyre_status check_gap(const struct ir_sdsc *s, const struct ir_tensor *t, uint32_t dim,
			      int64_t gap, const struct json *at)
{
	int64_t unit = (int64_t)ir_unit(t, dim), whole = t->lx ? s->el[dim] : s->size[dim];

	if (gap % unit)
		return json_wrong(at, "a gap of whole sticks of %" PRId64, unit);
	whole = t->scale[dim] > 0 ? (whole + unit - 1) / unit * unit : unit;
	if (gap <= -whole)
		return json_wrong(at, "a gap above -%" PRId64 ", the extent of %s", whole,
				  s->dim[dim]);
	return SPYRE_SUCCESS;
}

/* Records the dims with a size in maxDimSizes_, which is in memory order with -1 for unknown. */
static void note_stated(const struct ir_sdsc *s, struct ir_tensor *t, const struct json *node)
{
	struct json sizes;

	if (!json_find(node, "maxDimSizes_", &sizes))
		return;
	for (uint32_t k = 0; k < t->num_order; k++) {
		yyjson_val *val = yyjson_arr_get(sizes.val, k);
		uint32_t d = t->order[k];

		if (yyjson_is_int(val) && yyjson_get_sint(val) == s->size[d] + t->gap[d])
			t->stated |= 1u << d;
	}
}

/* Reads {dim: {"-1": gap}}, or one equal entry per core for LX. */
static spyre_status parse_gaps(struct ir_sdsc *s, struct ir_tensor *t, const struct json *node)
{
	struct json gaps, entry, at;
	yyjson_obj_iter it;
	yyjson_val *key;

	if (!json_find(node, "backGapCore_", &gaps))
		return SPYRE_SUCCESS;
	TRY(json_expect(&gaps, JSON_OBJECT));
	for (uint32_t d = 0; d < s->num_dims; d++) {
		bool first = true;
		int64_t gap;

		if (!json_find(&gaps, s->dim[d], &entry))
			continue;
		TRY(json_expect(&entry, JSON_OBJECT));
		yyjson_obj_iter_init(entry.val, &it);
		while ((key = yyjson_obj_iter_next(&it))) {
			/* Not looked up by name, which would take n^2 steps. */
			at = (struct json){ .file = entry.file, .up = &entry,
					    .key = yyjson_get_str(key),
					    .val = yyjson_obj_iter_get_val(key) };
			TRY(json_decimal(&at, -MAX_SIZE, MAX_SIZE, &gap));
			if (!first && gap != t->gap[d])
				return json_wrong(&at, "the same gap for all cores (%" PRId64 ")",
						  t->gap[d]);
			TRY(check_gap(s, t, d, gap, &at));
			t->gap[d] = gap;
			first = false;
		}
	}
	return SPYRE_SUCCESS;
}

static spyre_status parse_order(struct ir_sdsc *s, struct ir_tensor *t, const struct json *node)
{
	struct json order, at;
	uint32_t seen = 0, want = 0;

	TRY(json_member(node, "layoutDimOrder_", JSON_ARRAY, &order));
	for (size_t i = 0; i < json_length(&order) && i <= IR_MAX_DIMS; i++) {
		uint32_t dim;

		TRY(json_element(&order, i, JSON_STRING, &at));
		TRY(get_dim(s, &at, &dim));
		if (seen >> dim & 1)
			return json_wrong(&at, "each dimension once");
		seen |= 1u << dim;
		t->order[t->num_order++] = dim;
	}
	for (uint32_t d = 0; d < s->num_dims; d++)
		want |= t->scale[d] ? 1u << d : 0;
	if (seen != want)
		return json_wrong(&order, "the dimensions of the tensor's primaryDsInfo_ entry");
	return SPYRE_SUCCESS;
}

static spyre_status parse_node(struct ir_sdsc *s, struct ir_tensor *t, const struct json *node)
{
	char text[IR_NAME_BYTES];
	struct json at;

	TRY(json_member_text(node, "component_", text, sizeof(text)));
	t->lx = !strcmp(text, "lx");
	json_find(node, "component_", &at);
	if (!t->lx && strcmp(text, "hbm"))
		return json_wrong(&at, "\"hbm\" or \"lx\"");
	TRY(parse_order(s, t, node));
	TRY(parse_starts(s, t, node));
	TRY(parse_gaps(s, t, node));
	note_stated(s, t, node);
	return ir_place(s, t) ? SPYRE_SUCCESS : json_wrong(node, "a tensor of less than 2^63 bytes");
}

/* Reads wordLength. For half a byte generators write 0, 0.5 or 1. */
static spyre_status parse_word(struct ir_tensor *t, const struct json *lds,
			       const struct json *format)
{
	struct json at;
	int64_t value;

	t->lanes = (uint32_t)spyre_stick_elements((spyre_format)t->format);
	if (t->format == SPYRE_FMT_SENINT4) {
		if (!json_find(lds, "wordLength", &at) || !yyjson_is_num(at.val) ||
		    yyjson_get_num(at.val) < 0 || yyjson_get_num(at.val) > 1)
			return json_wrong(&at, "0 to 1 for elements of 4 bits");
		return SPYRE_SUCCESS;
	}
	TRY(json_member_integer(lds, "wordLength", 1, 8, &value));
	t->word = (uint32_t)value;
	if (!t->lanes || t->lanes * t->word != SPYRE_STICK_BYTES ||
	    t->lanes * spyre_fmt_bits(t->format) != 8 * SPYRE_STICK_BYTES)
		return json_wrong(format, "a device format with elements of wordLength = %u bytes",
				  t->word);
	return SPYRE_SUCCESS;
}

static spyre_status parse_tensor(struct ir_sdsc *s, uint32_t index, const struct json *dsc,
				 const struct json *lds)
{
	struct ir_tensor *t = &s->tensor[index];
	struct json tree, node, at;
	int64_t value;

	TRY(json_member_integer(lds, "ldsIdx_", index, index, &value));
	json_find(lds, "dataFormat_", &at);
	TRY(parse_format(&at, &t->format));
	TRY(parse_word(t, lds, &at));
	TRY(parse_scale(s, t, dsc, lds));
	TRY(json_member(dsc, "scheduleTree_", JSON_ARRAY, &tree));
	if (json_length(&tree) > MAX_NODES)
		return json_wrong(&tree, "at most %d nodes", MAX_NODES);
	for (size_t i = 0; i < json_length(&tree); i++) {
		TRY(json_element(&tree, i, JSON_OBJECT, &node));
		TRY(json_member_integer(&node, "ldsIdx_", 0, IR_MAX_TENSORS - 1, &value));
		if (value == index)
			return parse_node(s, t, &node);
	}
	return json_wrong(&tree, "a node with ldsIdx_ %u", index);
}

static spyre_status parse_tensors(struct ir_sdsc *s, const struct json *dsc)
{
	struct json list, lds;

	TRY(json_member(dsc, "labeledDs_", JSON_ARRAY, &list));
	if (!json_length(&list) || json_length(&list) > IR_MAX_TENSORS)
		return json_wrong(&list, "1 to %u tensors", IR_MAX_TENSORS);
	s->num_tensors = (uint32_t)json_length(&list);
	for (uint32_t i = 0; i < s->num_tensors; i++) {
		TRY(json_element(&list, i, JSON_OBJECT, &lds));
		TRY(parse_tensor(s, i, dsc, &lds));
	}
	return SPYRE_SUCCESS;
}

spyre_status ir_parse_label(const struct ir_sdsc *s, const struct json *at, uint32_t *out)
{
	char name[IR_NAME_BYTES];
	const char *idx;
	char *end;
	long n;

	TRY(json_text(at, name, sizeof(name)));
	idx = strstr(name, "-idx");
	if (!idx || idx[4] < '0' || idx[4] > '9')
		return json_wrong(at, "\"<name>-idx<number>\"");
	n = strtol(idx + 4, &end, 10);
	if (*end || n < 0 || n >= (long)s->num_tensors)
		return json_wrong(at, "an index below %u", s->num_tensors);
	*out = (uint32_t)n;
	return SPYRE_SUCCESS;
}

static spyre_status parse_compute(struct ir_sdsc *s, const struct json *dsc)
{
	struct json ops, op, list, at;

	TRY(json_member(dsc, "computeOp_", JSON_ARRAY, &ops));
	if (json_length(&ops) != 1)
		return json_wrong(&ops, "one operation");
	TRY(json_element(&ops, 0, JSON_OBJECT, &op));
	TRY(json_member_text(&op, "opFuncName", s->op, sizeof(s->op)));
	TRY(json_member(&op, "inputLabeledDs", JSON_ARRAY, &list));
	if (json_length(&list) > IR_MAX_TENSORS)
		return json_wrong(&list, "at most %u inputs", IR_MAX_TENSORS);
	s->num_inputs = (uint32_t)json_length(&list);
	for (uint32_t i = 0; i < s->num_inputs; i++) {
		TRY(json_element(&list, i, JSON_STRING, &at));
		TRY(ir_parse_label(s, &at, &s->input[i]));
	}
	TRY(json_member(&op, "outputLabeledDs", JSON_ARRAY, &list));
	if (json_length(&list) != 1)
		return json_wrong(&list, "one output");
	TRY(json_element(&list, 0, JSON_STRING, &at));
	TRY(ir_parse_label(s, &at, &s->output));
	return ir_parse_indirect(s, dsc, &op);
}

/* Gets the only member of an object: a file has one root and one operation. */
static spyre_status only_member(const struct json *up, struct json *out)
{
	yyjson_obj_iter it;

	if (json_length(up) != 1)
		return json_wrong(up, "an object of one member");
	yyjson_obj_iter_init(up->val, &it);
	return json_member(up, yyjson_get_str(yyjson_obj_iter_next(&it)), JSON_OBJECT, out);
}

static spyre_status parse_root(struct ir_sdsc *s, const struct json *doc)
{
	struct json root, list, first, dsc;

	TRY(json_expect(doc, JSON_OBJECT));
	TRY(only_member(doc, &root));
	snprintf(s->root, sizeof(s->root), "%s", root.key);
	if (!json_find(&root, "dscs_", &list) && json_find(&root, "dataOpdscs_", &list))
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s: %s: data movement descriptors (dataOpdscs_) are not supported (docs/unsupported.md)",
				   s->file, s->root);
	TRY(json_member(&root, "dscs_", JSON_ARRAY, &list));
	if (json_length(&list) != 1)
		return json_wrong(&list, "one compute descriptor");
	TRY(json_element(&list, 0, JSON_OBJECT, &first));
	TRY(only_member(&first, &dsc));
	TRY(parse_dims(s, &dsc));
	TRY(parse_cores(s, &root, &dsc));
	TRY(parse_sizes(s, &root, &dsc));
	TRY(parse_slices(s, &root));
	TRY(parse_masks(s, &dsc));
	TRY(parse_constants(s, &dsc));
	TRY(parse_tensors(s, &dsc));
	TRY(parse_compute(s, &dsc));
	ir_negate_gaps(s);
	TRY(ir_parse_divisions(s, &dsc));
	return ir_parse_window(s, &dsc);
}

spyre_status ir_parse_sdsc(const char *file, char *text, size_t size, struct ir_sdsc *sdsc)
{
	struct json root = { .file = file };
	yyjson_doc *doc;
	spyre_status status;

	snprintf(sdsc->file, sizeof(sdsc->file), "%s", file);
	status = json_open(&root, text, size, &doc);
	if (status)
		return status;
	status = parse_root(sdsc, &root);
	yyjson_doc_free(doc);
	return status;
}
