// SPDX-License-Identifier: MIT
/* symbol_kinds: see symbol_kinds.h; docs/bundles.md has the form. */
#include "libspyre/sdsc/parse/symbol_kinds.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/parse/json.h"

#define MAX_KINDS (1u << 20)
#define MAX_ARG ((int64_t)SPYRE_MAX_OPERANDS - 1)
#define MAX_OFFSET (INT64_C(1) << IR_SEGMENT_SHIFT)

/* Reads an optional integer; @out keeps its value if it is missing. */
static spyre_status optional(const struct json *up, const char *key, int64_t max, int64_t *out,
			     bool *there)
{
	struct json at;

	*there = json_find(up, key, &at);
	return *there ? json_integer(&at, 0, max, out) : SPYRE_SUCCESS;
}

/* Reads kernel_derived and kernel_slice: an offset in an argument. */
static spyre_status read_derived(const struct json *at, const struct symbol_kinds *kinds,
				 struct symbol_kind *kind)
{
	int64_t base = 0, arg = 0, offset = 0;
	bool has_base, has_arg, there;

	TRY(optional(at, "offset", MAX_OFFSET, &offset, &there));
	TRY(optional(at, "arg_index", MAX_ARG, &arg, &has_arg));
	TRY(optional(at, "base_sym_idx", (int64_t)kinds->num - 1, &base, &has_base));
	kind->base = IR_BASE_ARG;
	kind->arg = (uint32_t)arg;
	kind->offset = offset;
	if (!has_base)
		return has_arg ? SPYRE_SUCCESS : json_wrong(at, "arg_index or base_sym_idx");
	if (kinds->list[base].base != IR_BASE_ARG ||
	    (has_arg && kinds->list[base].arg != kind->arg))
		return json_wrong(at, "a base_sym_idx that is a kernel symbol of arg_index");
	kind->arg = kinds->list[base].arg;
	kind->offset += kinds->list[base].offset;
	return SPYRE_SUCCESS;
}

static spyre_status read_kind(const struct json *at, const struct symbol_kinds *kinds,
			      struct symbol_kind *kind)
{
	char name[IR_NAME_BYTES];
	int64_t number = 0;
	struct json field;
	bool there;

	TRY(json_expect(at, JSON_OBJECT));
	TRY(json_member_text(at, "kind", name, sizeof(name)));
	if (!strcmp(name, "kernel")) {
		TRY(json_member_integer(at, "arg_index", 0, MAX_ARG, &number));
		kind->base = IR_BASE_ARG;
		kind->arg = (uint32_t)number;
		return SPYRE_SUCCESS;
	}
	if (!strcmp(name, "pool")) {
		kind->base = IR_BASE_POOL;
		return optional(at, "offset", MAX_OFFSET, &kind->offset, &there);
	}
	if (!strcmp(name, "kernel_derived") || !strcmp(name, "kernel_slice"))
		return read_derived(at, kinds, kind);
	json_find(at, "kind", &field);
	return json_wrong(&field, "\"kernel\", \"kernel_derived\", \"kernel_slice\" or \"pool\"");
}

/* Entry k is symbol -1 - k; the list is reversed at the end to ascend by id. */
spyre_status symbol_kinds_read(const struct json *at, struct symbol_kinds *kinds)
{
	spyre_status status = json_expect(at, JSON_ARRAY);
	yyjson_arr_iter it;
	yyjson_val *val;

	memset(kinds, 0, sizeof(*kinds));
	TRY(status);
	if (json_length(at) > MAX_KINDS)
		return json_wrong(at, "at most %u symbols", MAX_KINDS);
	kinds->list = calloc(json_length(at) + 1, sizeof(*kinds->list));
	if (!kinds->list)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "%s: no memory for %u symbols",
				   at->file, (unsigned int)json_length(at));
	yyjson_arr_iter_init(at->val, &it);
	while ((val = yyjson_arr_iter_next(&it)) && !status) {
		struct json entry = { .file = at->file, .up = at, .index = kinds->num, .val = val };

		kinds->list[kinds->num].id = -1 - (int64_t)kinds->num;
		status = read_kind(&entry, kinds, &kinds->list[kinds->num]);
		kinds->num++;
	}
	if (status) {
		symbol_kinds_fini(kinds);
		return status;
	}
	kinds->file = at->file;
	for (uint32_t i = 0; i < kinds->num / 2; i++) {
		struct symbol_kind swap = kinds->list[i];

		kinds->list[i] = kinds->list[kinds->num - 1 - i];
		kinds->list[kinds->num - 1 - i] = swap;
	}
	return SPYRE_SUCCESS;
}

spyre_status symbol_kinds_parse(char *text, size_t size, struct symbol_kinds *kinds)
{
	struct json root = { .file = "symbol_kinds.json" }, list;
	yyjson_doc *doc;
	spyre_status status;

	memset(kinds, 0, sizeof(*kinds));
	status = json_open(&root, text, size, &doc);
	if (status)
		return status;
	if (json_find(&root, "symbol_kinds", &list))
		status = symbol_kinds_read(&list, kinds);
	else
		status = symbol_kinds_read(&root, kinds);
	yyjson_doc_free(doc);
	return status;
}

void symbol_kinds_fini(struct symbol_kinds *kinds)
{
	free(kinds->list);
	memset(kinds, 0, sizeof(*kinds));
}

static const struct symbol_kind *find(const struct symbol_kinds *kinds, int64_t id)
{
	/* Ids of the list are -num to -1. */
	if (id >= 0 || id < -(int64_t)kinds->num)
		return NULL;
	return &kinds->list[id + (int64_t)kinds->num];
}

static const char *base_name(enum ir_base base)
{
	return base == IR_BASE_ARG ? "argument" : base == IR_BASE_POOL ? "the pool, place" :
	       base == IR_BASE_MEM ? "allocation" :
	       base == IR_BASE_SIZE ? "the size of a dimension, parameter" : "the fixed address";
}

static spyre_status check(const struct symbol_kinds *kinds, const struct ir_stmt *stmt,
			  const struct ir_symbol *symbol)
{
	const struct symbol_kind *kind = find(kinds, symbol->id);
	const struct ir_value *v = &symbol->value;

	if (!kind)
		return spyre_error(SPYRE_ERROR_PARSE,
				   "%s: has %u symbols, bundle.mlir:%u binds symbol %" PRId64,
				   kinds->file, kinds->num, stmt->line, symbol->id);
	if ((kind->base == v->base || (kind->base == IR_BASE_POOL && v->base == IR_BASE_MEM)) &&
	    (kind->base == IR_BASE_POOL || kind->arg == v->arg) &&
	    (v->base == IR_BASE_MEM || kind->offset == v->constant))
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_PARSE,
			   "%s: symbol %" PRId64 " is %s %u + %" PRId64 ", in bundle.mlir:%u it is %s %u + %" PRId64,
			   kinds->file, symbol->id, base_name(kind->base), kind->arg, kind->offset,
			   stmt->line, base_name(v->base), v->arg, v->constant);
}

/* Collects the ids that a file uses, each once, ascending. */
static uint32_t used_ids(const struct ir_sdsc *s, int64_t *ids)
{
	uint32_t n = 0;

	for (uint32_t t = 0; t < s->num_tensors; t++)
		for (uint32_t c = 0; c < s->num_cores; c++) {
			int64_t id = s->tensor[t].start[c];
			uint32_t at = n;

			if (id >= 0)
				continue;
			while (at && ids[at - 1] > id)
				at--;
			if (at && ids[at - 1] == id)
				continue;
			memmove(&ids[at + 1], &ids[at], (n - at) * sizeof(*ids));
			ids[at] = id;
			n++;
		}
	return n;
}

/* Makes operands from the kinds; missing ids are reported when they are looked up. */
static spyre_status make(const struct symbol_kinds *kinds, struct ir_bundle *bundle,
			 struct ir_stmt *stmt, const struct ir_sdsc *sdsc)
{
	int64_t ids[IR_MAX_TENSORS * SPYRE_MAX_CORES + 1];
	uint32_t n = used_ids(sdsc, ids);

	if (!n)
		return SPYRE_SUCCESS;
	stmt->symbols = spyre_region_alloc(&bundle->memory, n * sizeof(*stmt->symbols));
	if (!stmt->symbols)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "%s: no memory for %u symbols of a statement", kinds->file, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct symbol_kind *kind = find(kinds, ids[i]);
		struct ir_symbol *symbol = &stmt->symbols[stmt->num_symbols];

		if (!kind)
			continue;
		*symbol = (struct ir_symbol){
			kind->id, { .base = kind->base, .arg = kind->arg, .constant = kind->offset }
		};
		bundle->has_pool |= kind->base == IR_BASE_POOL;
		stmt->num_symbols++;
	}
	return SPYRE_SUCCESS;
}

spyre_status symbol_kinds_bind(const struct symbol_kinds *kinds, struct ir_bundle *bundle,
			       struct ir_stmt *stmt, const struct ir_sdsc *sdsc)
{
	if (!kinds->file)
		return SPYRE_SUCCESS;
	if (!stmt->num_symbols)
		return make(kinds, bundle, stmt, sdsc);
	for (uint32_t i = 0; i < stmt->num_symbols; i++)
		TRY(check(kinds, stmt, &stmt->symbols[i]));
	return SPYRE_SUCCESS;
}
