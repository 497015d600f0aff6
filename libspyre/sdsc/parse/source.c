// SPDX-License-Identifier: MIT
/* Reads and parses a bundle directory: see source.h. */
#define _GNU_SOURCE	/* tdestroy() */
#include "libspyre/sdsc/parse/source.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/parse/bundle_file.h"
#include "libspyre/sdsc/parse/mlir.h"
#include "libspyre/sdsc/parse/sdsc_parse.h"
#include "libspyre/sdsc/parse/size_params.h"

struct reader {
	const char *directory;		/* NULL: the files are packed */
	const uint8_t *packed;
	size_t packed_bytes;
	struct bundle_source *out;
	void *by_name;			/* tree of units */
	struct symbol_kinds kinds;	/* from symbol_kinds.json, else from the launch spec */
};

static int compare_units(const void *a, const void *b)
{
	const struct bundle_unit *x = a, *y = b;

	return strcmp(x->file, y->file);
}

static spyre_status no_memory(void)
{
	return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory to read a bundle");
}

/* Reads a file of the bundle, as bundle_file_load() does. */
static spyre_status load(struct reader *r, const char *file, bool optional, char **text,
			 size_t *size)
{
	struct bundle_source *out = r->out;
	spyre_status status;

	if (!r->directory)
		return packed_files_load(r->packed, r->packed_bytes, file, optional, text, size);
	TRY(bundle_file_load(r->directory, file, optional, text, size));
	if (!out->keyed)
		return SPYRE_SUCCESS;
	code_key_add(&out->key, file, *text, *size);
	status = *text ? packed_files_add(&out->files, file, *text, *size) : SPYRE_SUCCESS;
	if (status) {
		free(*text);
		*text = NULL;
	}
	return status;
}

static spyre_status parse_unit(struct reader *r, uint32_t stmt)
{
	struct bundle_source *out = r->out;
	struct bundle_unit *unit = &out->units[out->num_units], *const *found;
	struct ir_sdsc parsed;
	spyre_status status;
	char *text;
	size_t size;

	unit->file = out->bundle.stmts[stmt].file;
	found = tsearch(unit, &r->by_name, compare_units);
	if (!found)
		return no_memory();
	out->unit_of[stmt] = (uint32_t)(*found - out->units);
	if (*found != unit)
		return SPYRE_SUCCESS;
	out->num_units++;
	TRY(load(r, unit->file, false, &text, &size));
	memset(&parsed, 0, sizeof(parsed));
	status = ir_parse_sdsc(unit->file, text, size, &parsed);
	free(text);
	TRY(status);
	unit->sdsc = ir_pack_sdsc(&out->bundle, &parsed);
	return unit->sdsc ? SPYRE_SUCCESS : no_memory();
}

static spyre_status parse_units(struct reader *r)
{
	struct bundle_source *out = r->out;
	spyre_status status = SPYRE_SUCCESS;
	uint32_t executes = 0;

	for (uint32_t i = 0; i < out->bundle.num_stmts; i++)
		executes += out->bundle.stmts[i].kind == IR_STMT_EXECUTE;
	out->units = calloc(executes, sizeof(*out->units));
	out->unit_of = calloc(out->bundle.num_stmts, sizeof(*out->unit_of));
	if (!out->units || !out->unit_of)
		return no_memory();
	for (uint32_t i = 0; i < out->bundle.num_stmts && !status; i++)
		if (out->bundle.stmts[i].kind == IR_STMT_EXECUTE)
			status = parse_unit(r, i);
	return status;
}

static spyre_status read_mlir(struct reader *r)
{
	spyre_status status;
	char *text;
	size_t size;

	TRY(load(r, "bundle.mlir", false, &text, &size));
	status = ir_parse_mlir("bundle.mlir", text, size, &r->out->bundle);
	free(text);
	return status;
}

/* Reads the optional files of a bundle. */
static spyre_status read_optional(struct reader *r)
{
	struct symbol_kinds of_spec = { 0 };
	spyre_status status;
	char *text;
	size_t size;

	TRY(load(r, "launch_spec.json", true, &text, &size));
	status = text ? launch_spec_parse(text, size, &r->out->spec, &of_spec) : SPYRE_SUCCESS;
	free(text);
	if (!status)
		status = load(r, "symbol_kinds.json", true, &text, &size);
	if (status) {
		symbol_kinds_fini(&of_spec);
		return status;
	}
	if (!text) {
		r->kinds = of_spec;
		return SPYRE_SUCCESS;
	}
	symbol_kinds_fini(&of_spec);
	status = symbol_kinds_parse(text, size, &r->kinds);
	free(text);
	return status;
}

static spyre_status bind_kinds(struct reader *r)
{
	struct bundle_source *out = r->out;
	spyre_status status = SPYRE_SUCCESS;

	for (uint32_t i = 0; i < out->bundle.num_stmts && !status; i++)
		if (out->bundle.stmts[i].kind == IR_STMT_EXECUTE)
			status = symbol_kinds_bind(&r->kinds, &out->bundle, &out->bundle.stmts[i],
						   bundle_source_sdsc(out, i));
	for (uint32_t i = 0; i < out->bundle.num_stmts && !status; i++)
		if (out->bundle.stmts[i].kind == IR_STMT_EXECUTE)
			status = size_params_bind(&out->bundle, &out->bundle.stmts[i],
						  out->units[out->unit_of[i]].sdsc);
	out->symbolic_args = out->bundle.num_args > 0;
	for (uint32_t i = 0; i < out->bundle.num_stmts; i++)
		out->symbolic_args |= out->bundle.stmts[i].num_symbols > 0;
	return status;
}

static spyre_status collect_symbols(struct bundle_source *out)
{
	spyre_status status = symbols_from_spec(&out->symbols, &out->spec);

	for (uint32_t i = 0; i < out->bundle.num_size_params && !status; i++)
		status = symbols_add_param(&out->symbols, &out->bundle.size_param[i]);
	for (uint32_t i = 0; i < out->num_units && !status; i++)
		status = symbols_add(&out->symbols, out->units[i].sdsc);
	symbols_number(&out->symbols, &out->bundle);
	return status;
}

static void keep(void *unused)
{
}

static spyre_status read_all(struct reader *r)
{
	spyre_status status = read_mlir(r);

	if (!status)
		status = read_optional(r);
	if (!status)
		status = parse_units(r);
	if (!status)
		status = bind_kinds(r);
	if (!status)
		status = collect_symbols(r->out);
	/* Only a bundle with symbols is compiled again. */
	if (!r->out->symbols.num)
		packed_files_fini(&r->out->files);
	tdestroy(r->by_name, keep);
	symbol_kinds_fini(&r->kinds);
	if (status)
		bundle_source_close(r->out);
	return status;
}

spyre_status bundle_source_open(const char *directory, bool keyed, struct bundle_source *source)
{
	struct reader r = { .directory = directory, .out = source };
	spyre_status status;

	memset(source, 0, sizeof(*source));
	if (!directory)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "the bundle's directory is NULL");
	source->keyed = keyed;
	if (keyed)
		code_key_begin(&source->key);
	status = read_all(&r);
	return status ? spyre_error_prefix(status, "bundle %s", directory) : status;
}

spyre_status bundle_source_open_packed(const uint8_t *data, size_t bytes,
				       struct bundle_source *source)
{
	struct reader r = { .packed = data, .packed_bytes = bytes, .out = source };

	memset(source, 0, sizeof(*source));
	return read_all(&r);
}

void bundle_source_close(struct bundle_source *source)
{
	ir_bundle_fini(&source->bundle);
	free(source->units);
	free(source->unit_of);
	packed_files_fini(&source->files);
	memset(source, 0, sizeof(*source));
}

const struct ir_sdsc *bundle_source_sdsc(const struct bundle_source *source, uint32_t stmt)
{
	return source->units[source->unit_of[stmt]].sdsc;
}
