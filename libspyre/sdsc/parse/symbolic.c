// SPDX-License-Identifier: MIT
/*
 * symbolicDimInfo_ {"<dim>": "<symbol>"} and maxSymbolicVolume_ {"<dim>": size}.
 * The generator's form is not public; this one is the project's (docs/bundles.md).
 */
#include "libspyre/sdsc/parse/symbolic.h"

#include <ctype.h>
#include <inttypes.h>
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

/* Calls a function for each member of el_'s object @key, which may be missing. */
static spyre_status each(struct ir_sdsc *s, const struct json *el, const char *key,
			 spyre_status (*take)(struct ir_sdsc *s, uint32_t dim,
					      const struct json *at))
{
	struct json info;
	yyjson_obj_iter it;
	yyjson_val *name;

	if (!json_find(el, key, &info))
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

static spyre_status take_symbol(struct ir_sdsc *s, uint32_t dim, const struct json *at)
{
	if (s->symbol[dim][0])
		return json_wrong(at, "each dimension once");
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

spyre_status ir_parse_symbolic(struct ir_sdsc *s, const struct json *el)
{
	TRY(each(s, el, "symbolicDimInfo_", take_symbol));
	return each(s, el, "maxSymbolicVolume_", take_volume);
}
