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
	for (uint32_t i = 0; i < symbols->num; i++)
		symbols->ranged[i] = true;
	return SPYRE_SUCCESS;
}

spyre_status symbols_add(struct symbols *symbols, const struct ir_sdsc *sdsc)
{
	for (uint32_t d = 0; d < sdsc->num_dims && sdsc->symbolic; d++) {
		struct bundle_symbol *symbol;
		int at;

		if (!sdsc->symbol[d][0])
			continue;
		at = symbols_find(symbols->symbol, symbols->num, sdsc->symbol[d]);
		if (at < 0 && symbols->num == BUNDLE_MAX_SYMBOLS)
			return spyre_error(SPYRE_ERROR_UNSUPPORTED,
					   "%s: symbol %s is one too many, a bundle has at most %u (docs/unsupported.md)",
					   sdsc->file, sdsc->symbol[d], BUNDLE_MAX_SYMBOLS);
		if (at < 0) {
			at = (int)symbols->num++;
			snprintf(symbols->symbol[at].name, sizeof(symbols->symbol[at].name), "%s",
				 sdsc->symbol[d]);
			symbols->symbol[at].min = 1;
			symbols->symbol[at].max = sdsc->size[d];
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
