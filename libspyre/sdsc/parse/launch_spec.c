// SPDX-License-Identifier: MIT
/* launch_spec.json: see launch_spec.h. */
#include "libspyre/sdsc/parse/launch_spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/layout/sizes.h"
#include "libspyre/sdsc/parse/launch_layout.h"
#include "libspyre/sdsc/parse/symbol_kinds.h"
#include "libspyre/sdsc/parse/symbolic.h"
#include "libspyre/sdsc/parse/symbols.h"

#define FILE_NAME "launch_spec.json"
#define MAX_SIZE (INT64_C(1) << 40)
#define MAX_POOL (INT64_C(1) << IR_SEGMENT_SHIFT)

/* null counts as missing, because generators write it for unknown values. */
static bool find(const struct json *up, const char *key, struct json *out)
{
	return json_find(up, key, out) && !yyjson_is_null(out->val);
}

static spyre_status read_symbol(struct launch_spec *spec, const struct json *at)
{
	struct bundle_symbol *symbol = &spec->symbols[spec->num_symbols];
	const struct json name = { .file = at->file, .up = at->up, .key = at->key,
				   .val = at->val };

	if (spec->num_symbols == BUNDLE_MAX_SYMBOLS)
		return json_wrong(at->up, "at most %u symbols", BUNDLE_MAX_SYMBOLS);
	if (strlen(at->key) >= sizeof(symbol->name) || !*at->key)
		return json_wrong(&name, "a symbol's name of 1 to %zu bytes",
				  sizeof(symbol->name) - 1);
	if (symbols_find(spec->symbols, spec->num_symbols, at->key) >= 0)
		return json_wrong(&name, "each symbol once");
	TRY(json_expect(at, JSON_OBJECT));
	snprintf(symbol->name, sizeof(symbol->name), "%s", at->key);
	TRY(json_member_integer(at, "min", 1, MAX_SIZE, &symbol->min));
	TRY(json_member_integer(at, "max", symbol->min, MAX_SIZE, &symbol->max));
	spec->num_symbols++;
	return SPYRE_SUCCESS;
}

static spyre_status read_symbols(struct launch_spec *spec, const struct json *root)
{
	struct json table;
	yyjson_obj_iter it;
	yyjson_val *key;

	if (!find(root, "symbols", &table))
		return SPYRE_SUCCESS;
	TRY(json_expect(&table, JSON_OBJECT));
	yyjson_obj_iter_init(table.val, &it);
	while ((key = yyjson_obj_iter_next(&it))) {
		struct json at = { .file = table.file, .up = &table, .key = yyjson_get_str(key),
				   .val = yyjson_obj_iter_get_val(key) };

		TRY(read_symbol(spec, &at));
	}
	return SPYRE_SUCCESS;
}

/* Reads a shape such as [512, "s0"]. */
static spyre_status read_shape(const struct launch_spec *spec, const struct json *at,
			       struct bundle_arg_spec *out)
{
	char name[BUNDLE_SYMBOL_BYTES];
	struct json entry;

	TRY(json_expect(at, JSON_ARRAY));
	if (json_length(at) > SPYRE_MAX_RANK)
		return json_wrong(at, "at most %d dimensions", SPYRE_MAX_RANK);
	out->has_shape = true;
	out->rank = (uint32_t)json_length(at);
	for (uint32_t i = 0; i < out->rank; i++) {
		int symbol;

		entry = (struct json){ .file = at->file, .up = at, .index = i,
				       .val = yyjson_arr_get(at->val, i) };
		if (!yyjson_is_str(entry.val)) {
			TRY(json_integer(&entry, 0, MAX_SIZE, &out->shape[i]));
			continue;
		}
		TRY(json_text(&entry, name, sizeof(name)));
		symbol = symbols_find(spec->symbols, spec->num_symbols, name);
		if (symbol < 0)
			return json_wrong(&entry, "a size, or a member of $.symbols");
		out->shape[i] = -1 - symbol;
	}
	return SPYRE_SUCCESS;
}

/* Reads a dtype: "fp16", "float16" or "torch.float16". */
static spyre_status read_dtype(const struct json *at, spyre_format *out)
{
	static const struct {
		const char *name;
		spyre_format format;
	} names[] = {
		{ "float16", SPYRE_FORMAT_IEEE_FP16 }, { "half", SPYRE_FORMAT_IEEE_FP16 },
		{ "float32", SPYRE_FORMAT_IEEE_FP32 }, { "float", SPYRE_FORMAT_IEEE_FP32 },
		{ "bfloat16", SPYRE_FORMAT_BFLOAT16 }, { "float64", SPYRE_FORMAT_FP64 },
		{ "float8_e4m3fn", SPYRE_FORMAT_SEN143_FP8 },
		{ "float8_e5m2fnuz", SPYRE_FORMAT_SEN152_FP8 },
	};
	char text[IR_NAME_BYTES];
	const char *name = text;

	TRY(json_text(at, text, sizeof(text)));
	if (!strncmp(name, "torch.", 6))
		name += 6;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i].name, name)) {
			*out = names[i].format;
			return SPYRE_SUCCESS;
		}
	*out = spyre_format_from_name(name);
	return *out ? SPYRE_SUCCESS : json_wrong(at, "the name of a host data type");
}

static spyre_status read_role(const struct json *at, spyre_arg_role *out)
{
	char name[IR_NAME_BYTES];

	TRY(json_text(at, name, sizeof(name)));
	if (!strcmp(name, "input"))
		*out = SPYRE_ARG_INPUT;
	else if (!strcmp(name, "output"))
		*out = SPYRE_ARG_OUTPUT;
	else if (!strcmp(name, "input_output"))
		*out = SPYRE_ARG_INPUT_OUTPUT;
	else
		return json_wrong(at, "\"input\", \"output\" or \"input_output\"");
	return SPYRE_SUCCESS;
}

static spyre_status read_arg(struct launch_spec *spec, const struct json *entry)
{
	struct launch_spec_arg *arg;
	struct json at;
	int64_t index;

	TRY(json_member_integer(entry, "arg_index", 0, (int64_t)spec->num_args - 1, &index));
	arg = &spec->args[index];
	json_find(entry, "arg_index", &at);
	if (arg->role)
		return json_wrong(&at, "each argument once");
	json_find(entry, "role", &at);
	TRY(read_role(&at, &arg->role));
	if (find(entry, "shape", &at))
		TRY(read_shape(spec, &at, &arg->spec));
	if (find(entry, "dtype", &at))
		TRY(read_dtype(&at, &arg->spec.dtype));
	if (find(entry, "layout", &at))
		TRY(launch_spec_layout(&at, arg));
	return SPYRE_SUCCESS;
}

static spyre_status read_args(struct launch_spec *spec, const struct json *root)
{
	struct json list, entry;

	if (!find(root, "args", &list))
		return SPYRE_SUCCESS;
	TRY(json_expect(&list, JSON_ARRAY));
	if (json_length(&list) > SPYRE_MAX_OPERANDS)
		return json_wrong(&list, "at most %u arguments", SPYRE_MAX_OPERANDS);
	spec->has_args = true;
	spec->num_args = (uint32_t)json_length(&list);
	for (uint32_t i = 0; i < spec->num_args; i++) {
		TRY(json_element(&list, i, JSON_OBJECT, &entry));
		TRY(read_arg(spec, &entry));
	}
	return SPYRE_SUCCESS;
}

/* Reads true, 1 or "1", the forms of the variable BUNDLE_SYMBOLIC_ARGS. */
static spyre_status read_switch(const struct json *at, bool *out)
{
	*out = yyjson_is_true(at->val) || yyjson_equals_str(at->val, "1") ||
	       (yyjson_is_uint(at->val) && yyjson_get_uint(at->val) == 1);
	if (*out || yyjson_is_false(at->val) || yyjson_equals_str(at->val, "0") ||
	    (yyjson_is_uint(at->val) && !yyjson_get_uint(at->val)))
		return SPYRE_SUCCESS;
	return json_wrong(at, "true or false");
}

static spyre_status read_root(struct launch_spec *spec, struct symbol_kinds *kinds,
			      const struct json *root)
{
	struct json at;
	int64_t size;

	TRY(json_expect(root, JSON_OBJECT));
	if (find(root, "kernel_name", &at))
		TRY(json_text(&at, spec->kernel_name, sizeof(spec->kernel_name)));
	if (find(root, "pool_size", &at)) {
		TRY(json_integer(&at, 0, MAX_POOL, &size));
		if (size % SPYRE_STICK_BYTES)
			return json_wrong(&at, "a multiple of %u bytes", SPYRE_STICK_BYTES);
		spec->pool_size = (uint64_t)size;
		spec->has_pool_size = true;
	}
	if (find(root, "bundle_symbolic_args", &at)) {
		TRY(read_switch(&at, &spec->symbolic_args));
		spec->has_symbolic_args = true;
	}
	TRY(read_symbols(spec, root));
	TRY(read_args(spec, root));
	return find(root, "symbol_kinds", &at) ? symbol_kinds_read(&at, kinds) : SPYRE_SUCCESS;
}

spyre_status launch_spec_parse(char *text, size_t size, struct launch_spec *spec,
			       struct symbol_kinds *kinds)
{
	struct json root = { .file = FILE_NAME };
	spyre_status status;
	yyjson_doc *doc;

	TRY(json_open(&root, text, size, &doc));
	spec->present = true;
	status = read_root(spec, kinds, &root);
	yyjson_doc_free(doc);
	return status;
}

static const char *role_name(spyre_arg_role role)
{
	return role == SPYRE_ARG_INPUT ? "input" : role == SPYRE_ARG_OUTPUT ? "output" :
	       "input_output";
}

/*
 * Checks an argument. A role only contradicts whether the SDSCs write it, because
 * a bundle may also read an output that it wrote.
 */
static spyre_status check_arg(const struct launch_spec_arg *want, const spyre_arg_info *info,
			      uint32_t index)
{
	bool writes = info->role != SPYRE_ARG_INPUT;
	bool untouched = !info->bytes;

	if (!untouched && writes != (want->role != SPYRE_ARG_INPUT))
		return spyre_error(SPYRE_ERROR_PARSE,
				   FILE_NAME ": argument %u is \"%s\", the SDSCs use it as \"%s\"",
				   index, role_name(want->role), role_name(info->role));
	if (untouched || !want->spec.has_layout || !info->device_rank)
		return SPYRE_SUCCESS;
	if (want->device_format != info->format)
		return spyre_error(SPYRE_ERROR_PARSE,
				   FILE_NAME ": argument %u has a layout of %s, the SDSCs use %s",
				   index, spyre_format_name(want->device_format),
				   spyre_format_name(info->format));
	if (!bundle_same_sizes(want->device_size, want->device_rank, info->device_size,
			info->device_rank))
		return spyre_error(SPYRE_ERROR_PARSE,
				   FILE_NAME ": argument %u has a layout of other device sizes than the SDSCs imply",
				   index);
	return SPYRE_SUCCESS;
}

static spyre_status check_counts(const struct launch_spec *spec, const struct spyre_bundle *bundle)
{
	if (spec->has_args && spec->num_args != bundle->num_args)
		return spyre_error(SPYRE_ERROR_PARSE,
				   FILE_NAME ": lists %u arguments, the bundle takes %u",
				   spec->num_args, bundle->num_args);
	if (spec->has_symbolic_args && spec->symbolic_args != bundle->named_args)
		return spyre_error(SPYRE_ERROR_PARSE,
				   FILE_NAME ": bundle_symbolic_args is %s, but the addresses are %s",
				   spec->symbolic_args ? "true" : "false",
				   bundle->named_args ? "symbols" : "baked into the SDSCs");
	return SPYRE_SUCCESS;
}

spyre_status launch_spec_apply(const struct launch_spec *spec, const struct symbols *symbols,
			       struct spyre_bundle *bundle)
{
	bundle->num_symbols = symbols->num;
	memcpy(bundle->symbols, symbols->symbol, sizeof(bundle->symbols));
	if (!spec->present)
		return SPYRE_SUCCESS;
	TRY(check_counts(spec, bundle));
	if (spec->kernel_name[0])
		memcpy(bundle->name, spec->kernel_name, sizeof(bundle->name));
	for (uint32_t i = 0; i < bundle->num_args && spec->has_args; i++) {
		TRY(check_arg(&spec->args[i], &bundle->args[i], i));
		bundle->args[i].role = spec->args[i].role;
		bundle->specs[i] = spec->args[i].spec;
	}
	return SPYRE_SUCCESS;
}
