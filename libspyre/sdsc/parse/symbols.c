// SPDX-License-Identifier: MIT
/* Symbolic dimensions: see symbols.h. */
#include "libspyre/sdsc/parse/symbols.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/lower/lower.h"
#include "libspyre/sdsc/parse/launch_spec.h"

/* How an SDSC is cut down to the bound values. */
struct cut {
	const struct symbols *symbols;
	const int64_t *values;
	/* Of each dim: 0 is not cut, else the value. */
	int64_t clip[IR_MAX_DIMS];
	uint32_t granule[IR_MAX_DIMS];	/* a core's share is rounded up to these */
	struct ir_sdsc part;		/* of the cores with the same share */
};

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
					   "%s: dimension %s is symbol %s with a maximum of %" PRId64 ", but N_ has room for %" PRId64,
					   sdsc->file, sdsc->dim[d], symbol->name, symbol->max,
					   sdsc->size[d]);
	}
	return SPYRE_SUCCESS;
}

/* Elements of the longest stick along a dim, 1 if no tensor has its sticks there. */
static uint32_t stick_of(const struct ir_sdsc *s, uint32_t dim)
{
	uint32_t lanes = 1;

	for (uint32_t t = 0; t < s->num_tensors; t++)
		if (s->tensor[t].stick == dim && lower_varies(&s->tensor[t], dim) &&
		    s->tensor[t].lanes > lanes)
			lanes = s->tensor[t].lanes;
	return lanes;
}

/* A mean over the maximum becomes one over the value. */
static spyre_status rescale(struct lower *l, struct ir_sdsc *s, double ratio)
{
	for (uint32_t i = 0; i < s->num_constants; i++) {
		struct ir_constant *c = &s->constant[i];
		spyre_status status;
		uint32_t bits;
		float value;

		if (strcmp(c->name, "scaling_factor") && strcmp(c->name, "exx2scale"))
			continue;
		status = lower_constant(l, c->name, &bits);
		if (status)
			return status;
		memcpy(&value, &bits, sizeof(value));
		value = (float)((double)value * ratio);
		memcpy(&c->bits, &value, sizeof(value));
		c->format = SPYRE_FMT_IEEE_FP32;
	}
	return SPYRE_SUCCESS;
}

static spyre_status bad_value(const struct lower *l, const struct cut *cut, uint32_t symbol,
			      uint32_t dim, int64_t multiple, const char *why)
{
	const struct bundle_symbol *s = &cut->symbols->symbol[symbol];

	return spyre_error(SPYRE_ERROR_UNSUPPORTED,
			   "%s: %s: symbol %s = %" PRId64 " (%" PRId64 " to %" PRId64 "): dimension %s is %s; bind a multiple of %" PRId64 " (docs/unsupported.md)",
			   l->sdsc->file, l->sdsc->op, s->name, cut->values[symbol], s->min, s->max,
			   l->sdsc->dim[dim], why, multiple);
}

/* A matmul's K has no mask: whole sticks, and whole shares if cores divide it. */
static spyre_status cut_contraction(struct lower *l, struct cut *cut, uint32_t symbol,
				    uint32_t dim)
{
	const struct ir_sdsc *s = l->sdsc;
	int64_t value = cut->values[symbol];
	uint32_t stick = stick_of(s, dim);

	if (s->slices[dim] > 1 && value % s->el[dim])
		return bad_value(l, cut, symbol, dim, s->el[dim],
				 "contracted and divided over cores");
	if (value % stick)
		return bad_value(l, cut, symbol, dim, stick, "contracted in whole sticks");
	cut->clip[dim] = value;
	return SPYRE_SUCCESS;
}

static spyre_status cut_dim(struct lower *l, struct cut *cut, lower_rule_fn *rule,
			    uint32_t symbol, uint32_t dim, double *ratio)
{
	const struct ir_sdsc *s = l->sdsc;
	int64_t value = cut->values[symbol];

	if (value >= s->size[dim])
		return SPYRE_SUCCESS;
	cut->granule[dim] = stick_of(s, dim);
	if (lower_varies(&s->tensor[s->output], dim)) {
		cut->clip[dim] = value;
		return SPYRE_SUCCESS;
	}
	if (rule == lower_matmul)
		return cut_contraction(l, cut, symbol, dim);
	if (rule != lower_reduce)
		return lower_unsupported(l, "symbolic dimension %s, which the output lacks",
					 s->dim[dim]);
	if (cut->part.num_masks == IR_MAX_MASKS)
		return lower_unsupported(l, "more than %u masks", IR_MAX_MASKS);
	cut->part.mask[cut->part.num_masks++] =
		(struct ir_mask){ dim, value, s->size[dim] - value };
	*ratio *= (double)cut->symbols->symbol[symbol].max / (double)value;
	return SPYRE_SUCCESS;
}

/* Elements of a core's share that are below the value, in whole sticks. */
static int64_t share(const struct cut *cut, const struct ir_sdsc *s, uint32_t core, uint32_t dim)
{
	int64_t el = s->el[dim], left;

	if (!cut->clip[dim])
		return el;
	left = cut->clip[dim] - (int64_t)s->slice[core][dim] * el;
	if (left <= 0)
		return 0;
	left = (left + cut->granule[dim] - 1) / cut->granule[dim] * cut->granule[dim];
	return left < el ? left : el;
}

/* Makes cut->part the cores from @first on that have the same share as it. */
static bool take_group(struct cut *cut, const struct ir_sdsc *s, uint32_t first, uint32_t *done)
{
	struct ir_sdsc *part = &cut->part;

	part->num_cores = 0;
	for (uint32_t d = 0; d < s->num_dims; d++)
		part->el[d] = share(cut, s, first, d);
	for (uint32_t c = first; c < s->num_cores; c++) {
		bool same = !(*done >> c & 1);

		for (uint32_t d = 0; d < s->num_dims && same; d++)
			same = share(cut, s, c, d) == part->el[d];
		if (!same)
			continue;
		*done |= 1u << c;
		part->core[part->num_cores] = s->core[c];
		memcpy(part->slice[part->num_cores], s->slice[c], sizeof(s->slice[c]));
		for (uint32_t t = 0; t < s->num_tensors; t++)
			part->tensor[t].start[part->num_cores] = s->tensor[t].start[c];
		part->num_cores++;
	}
	for (uint32_t d = 0; d < s->num_dims; d++)
		if (!part->el[d])
			return false;
	return true;
}

/* Cores with different shares work in different phases. */
static spyre_status lower_cut(struct lower *l, struct cut *cut)
{
	const struct ir_sdsc *s = l->sdsc;
	spyre_status status = SPYRE_SUCCESS;
	uint32_t done = 0;

	for (uint32_t c = 0; c < s->num_cores && !status; c++) {
		if (done >> c & 1 || !take_group(cut, s, c, &done))
			continue;
		l->sdsc = &cut->part;
		status = lower_sdsc(l);
		l->sdsc = s;
	}
	return status;
}

spyre_status symbols_lower(struct lower *l, const struct symbols *symbols, const int64_t *values)
{
	const struct ir_sdsc *s = l->sdsc;
	int64_t maxima[BUNDLE_MAX_SYMBOLS];
	struct cut cut = { .symbols = symbols, .values = values };
	lower_rule_fn *rule;
	double ratio = 1;

	if (!s->symbolic)
		return lower_sdsc(l);
	for (uint32_t i = 0; i < symbols->num; i++)
		maxima[i] = symbols->symbol[i].max;
	if (!values)
		cut.values = maxima;
	/* These have a rule for a share of less than a core's whole. */
	rule = lower_rule(s->op);
	if ((rule != lower_pointwise && rule != lower_reduce && rule != lower_matmul &&
	     rule != lower_convert && rule != lower_restickify) ||
	    !strcmp(s->op, "maskbyindex"))
		return lower_unsupported(l, "symbolic dimensions");
	cut.part = *s;
	for (uint32_t d = 0; d < s->num_dims; d++) {
		int symbol = symbols_find(symbols->symbol, symbols->num, s->symbol[d]);

		if (!s->symbol[d][0] || symbol < 0)
			continue;
		TRY(cut_dim(l, &cut, rule, (uint32_t)symbol, d, &ratio));
	}
	TRY(ratio != 1 ? rescale(l, &cut.part, ratio) : SPYRE_SUCCESS);
	return lower_cut(l, &cut);
}
