// SPDX-License-Identifier: MIT
/* Symbolic dimensions: see symbols.h. */
#include "libspyre/sdsc/parse/symbols.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/parse/launch_spec.h"

int symbols_find(const struct bundle_symbol *symbols, uint32_t num, const char *name)
{
	for (uint32_t i = 0; i < num; i++)
		if (!strcmp(symbols[i].name, name))
			return (int)i;
	return -1;
}

spyre_status symbols_from_spec(struct symbols *symbols, const struct launch_spec *spec)
{
	symbols->num = spec->num_symbols;
	memcpy(symbols->symbol, spec->symbols, sizeof(symbols->symbol));
	for (uint32_t i = 0; i < symbols->num; i++) {
		symbols->symbol[i].granularity = 1;
		symbols->ranged[i] = true;
	}
	return SPYRE_SUCCESS;
}

/* Adds a symbol, whose range the caller sets. */
static spyre_status append(struct symbols *symbols, const char *name, const char *file,
			   struct bundle_symbol **out)
{
	if (symbols->num == BUNDLE_MAX_SYMBOLS)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s: symbol %s is one too many, a bundle has at most %u (docs/unsupported.md)",
				   file, name, BUNDLE_MAX_SYMBOLS);
	*out = &symbols->symbol[symbols->num++];
	snprintf((*out)->name, sizeof((*out)->name), "%s", name);
	(*out)->granularity = 1;
	return SPYRE_SUCCESS;
}

spyre_status symbols_add_param(struct symbols *symbols, const struct ir_size_param *param)
{
	int at = symbols_find(symbols->symbol, symbols->num, param->name);
	struct bundle_symbol *symbol = NULL;

	if (at < 0) {
		at = (int)symbols->num;
		TRY(append(symbols, param->name, "bundle.mlir", &symbol));
		symbol->min = param->granularity;
		symbol->max = param->max;
		symbols->ranged[at] = true;
	}
	symbol = &symbols->symbol[at];
	symbol->granularity = param->granularity;
	if (symbol->max <= param->max && symbol->max >= param->granularity)
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_PARSE,
			   "launch_spec.json: symbol %s is at most %" PRId64 ", in bundle.mlir:%u it is a multiple of %" PRId64 " up to %" PRId64,
			   symbol->name, symbol->max, param->line, param->granularity, param->max);
}

void symbols_number(struct symbols *symbols, const struct ir_bundle *bundle)
{
	uint32_t next = bundle->num_size_params;

	for (uint32_t i = 0; i < symbols->num; i++) {
		struct bundle_symbol *symbol = &symbols->symbol[i];

		symbol->input = UINT32_MAX;
		for (uint32_t k = 0; k < bundle->num_size_params; k++)
			if (!strcmp(bundle->size_param[k].name, symbol->name))
				symbol->input = k;
		if (symbol->input == UINT32_MAX)
			symbol->input = next++;
	}
}

spyre_status symbols_add(struct symbols *symbols, const struct ir_sdsc *sdsc)
{
	for (uint32_t d = 0; d < sdsc->num_dims && sdsc->symbolic; d++) {
		struct bundle_symbol *symbol = NULL;
		int at;

		if (!sdsc->symbol[d][0])
			continue;
		at = symbols_find(symbols->symbol, symbols->num, sdsc->symbol[d]);
		if (at < 0) {
			at = (int)symbols->num;
			TRY(append(symbols, sdsc->symbol[d], sdsc->file, &symbol));
			symbol->min = 1;
			symbol->max = sdsc->size[d];
		}
		symbol = &symbols->symbol[at];
		if (!symbols->ranged[at] && sdsc->size[d] < symbol->max)
			symbol->max = sdsc->size[d];
		if (symbol->max > sdsc->size[d])
			return spyre_error(SPYRE_ERROR_PARSE,
					   "%s: dimension %s is symbol %s with a maximum of %" PRId64 ", but N_ is %" PRId64,
					   sdsc->file, sdsc->dim[d], symbol->name, symbol->max,
					   sdsc->size[d]);
	}
	return SPYRE_SUCCESS;
}
