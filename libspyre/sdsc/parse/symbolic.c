// SPDX-License-Identifier: MIT
/*
 * symbolicDimInfo_ has two forms. The project's is {"<dim>": "<symbol>"}, with
 * maxSymbolicVolume_ {"<dim>": size}. The public one is {"<dim>": {"maxSize_": size,
 * "granularity_": size}}, both of one core; dimToSymbolMapping_ {"<dim>": [id]} names the
 * operand of sdsc_execute that is the size, and inputSymbolsAndTags_ {"<id>": "<symbol>"}
 * its symbol. docs/bundles.md has the rules.
 */
#include "libspyre/sdsc/parse/symbolic.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"

spyre_status ir_symbol_name(const struct json *at, char *out)
{
	TRY(json_text(at, out, IR_SYMBOL_BYTES));
	if (!isalpha((unsigned char)out[0]) && out[0] != '_')
		return json_wrong(at, "a symbol's name, as s0");
	for (const char *c = out; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_')
			return json_wrong(at, "a symbol's name, as s0");
	return SPYRE_SUCCESS;
}

/* Calls a function for each member of the object @key of @up, which may be missing. */
static spyre_status each(struct ir_sdsc *s, const struct json *up, const char *key,
			 spyre_status (*take)(struct ir_sdsc *s, uint32_t dim,
					      const struct json *at))
{
	struct json info;
	yyjson_obj_iter it;
	yyjson_val *name;

	if (!json_find(up, key, &info))
		return SPYRE_SUCCESS;
	TRY(json_expect(&info, JSON_OBJECT));
	if (json_length(&info) > s->num_dims)
		return json_wrong(&info, "at most the %u dimensions of N_", s->num_dims);
	yyjson_obj_iter_init(info.val, &it);
	while ((name = yyjson_obj_iter_next(&it))) {
		struct json at = { .file = info.file, .up = &info, .key = yyjson_get_str(name),
				   .val = yyjson_obj_iter_get_val(name) };
		uint32_t dim = ir_find_dim(s, at.key);

		if (dim == IR_NO_DIM)
			return json_wrong(&at, "a dimension of N_");
		TRY(take(s, dim, &at));
	}
	return SPYRE_SUCCESS;
}

/* Takes the operand whose value is the size of a dim. */
static spyre_status take_mapping(struct ir_sdsc *s, uint32_t dim, const struct json *at)
{
	struct json id;

	if (s->size_id[dim])
		return json_wrong(at, "each dimension once");
	TRY(json_expect(at, JSON_ARRAY));
	if (json_length(at) != 1)
		return json_wrong(at, "one symbol id");
	TRY(json_element(at, 0, JSON_INTEGER, &id));
	s->symbolic = true;
	return json_integer(&id, INT32_MIN, -1, &s->size_id[dim]);
}

/* Takes the bounds of a dim's size in one core. */
static spyre_status take_bounds(struct ir_sdsc *s, uint32_t dim, const struct json *at)
{
	int64_t max;

	if (!s->size_id[dim])
		return json_wrong(at, "a dimension of dimToSymbolMapping_");
	if (s->granularity[dim])
		return json_wrong(at, "each dimension once");
	TRY(json_member_integer(at, "maxSize_", s->el[dim], s->el[dim], &max));
	return json_member_integer(at, "granularity_", 1, s->el[dim], &s->granularity[dim]);
}

/* Reads the name of a dim's symbol, which may be an expression such as 2*s0. */
static spyre_status take_tag(struct ir_sdsc *s, uint32_t dim, const struct json *tags)
{
	struct json at;
	char id[24];

	snprintf(id, sizeof(id), "%" PRId64, s->size_id[dim]);
	if (!json_find(tags, id, &at))
		return SPYRE_SUCCESS;
	TRY(json_text(&at, s->symbol[dim], IR_SYMBOL_BYTES));
	for (const char *c = s->symbol[dim]; *c; c++)
		if (!isgraph((unsigned char)*c) || *c == '=')
			return json_wrong(&at, "a symbol's name, as s0");
	return s->symbol[dim][0] ? SPYRE_SUCCESS : json_wrong(&at, "a symbol's name, as s0");
}

static spyre_status take_tags(struct ir_sdsc *s, const struct json *root)
{
	struct json tags, definitions;

	if (json_find(root, "symbolDefinitions_", &definitions) && json_length(&definitions))
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s: %s: symbolDefinitions_ has %zu symbols, only those of bundle.mlir are supported (docs/unsupported.md)",
				   s->file, s->root, json_length(&definitions));
	if (!json_find(root, "inputSymbolsAndTags_", &tags))
		return SPYRE_SUCCESS;
	TRY(json_expect(&tags, JSON_OBJECT));
	for (uint32_t d = 0; d < s->num_dims; d++)
		if (s->size_id[d])
			TRY(take_tag(s, d, &tags));
	return SPYRE_SUCCESS;
}

static spyre_status take_symbol(struct ir_sdsc *s, uint32_t dim, const struct json *at)
{
	if (yyjson_is_obj(at->val))
		return take_bounds(s, dim, at);
	if (s->symbol[dim][0])
		return json_wrong(at, "each dimension once");
	if (s->size_id[dim])
		return json_wrong(at, "an object with maxSize_ and granularity_");
	s->symbolic = true;
	return ir_symbol_name(at, s->symbol[dim]);
}

static spyre_status take_volume(struct ir_sdsc *s, uint32_t dim, const struct json *at)
{
	int64_t volume;

	if (!s->symbol[dim][0])
		return json_wrong(at, "a dimension of symbolicDimInfo_");
	return json_integer(at, s->size[dim], s->size[dim], &volume);
}

spyre_status ir_parse_symbolic(struct ir_sdsc *s, const struct json *root, const struct json *dsc,
			       const struct json *el)
{
	TRY(each(s, dsc, "dimToSymbolMapping_", take_mapping));
	TRY(each(s, el, "symbolicDimInfo_", take_symbol));
	for (uint32_t d = 0; d < s->num_dims; d++)
		if (s->size_id[d] && !s->granularity[d])
			return spyre_error(SPYRE_ERROR_PARSE,
					   "%s: %s: dimToSymbolMapping_ has dimension %s, symbolicDimInfo_ of el_ does not",
					   s->file, s->root, s->dim[d]);
	TRY(take_tags(s, root));
	return each(s, el, "maxSymbolicVolume_", take_volume);
}
