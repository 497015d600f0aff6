// SPDX-License-Identifier: MIT
/* Symbolic dimensions, cut to bound values: see symbol_cut.h. */
#include "libspyre/sdsc/lower/symbol_cut.h"

#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/lower/operations.h"

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

/* Scales the factor of a mean from the symbol's maximum to its value. */
static spyre_status rescale(struct lower *l, struct ir_sdsc *s, double ratio)
{
	for (uint32_t i = 0; i < s->num_constants; i++) {
		struct ir_constant *c = &s->constant[i];
		uint32_t bits;
		float value;

		if (strcmp(c->name, "scaling_factor") && strcmp(c->name, "exx2scale"))
			continue;
		TRY(lower_constant(l, c->name, &bits));
		memcpy(&value, &bits, sizeof(value));
		value = (float)((double)value * ratio);
		memcpy(&c->bits, &value, sizeof(value));
		c->format = SPYRE_FMT_IEEE_FP32;
	}
	return SPYRE_SUCCESS;
}

static spyre_status bad_value(const struct lower *l, const struct symbol_cut *cut, uint32_t symbol,
			      uint32_t dim, int64_t multiple, const char *why)
{
	const struct bundle_symbol *s = &cut->symbols->symbol[symbol];

	return spyre_error(SPYRE_ERROR_UNSUPPORTED,
			   "%s: %s: symbol %s = %" PRId64 " (%" PRId64 " to %" PRId64 "): dimension %s is %s; bind a multiple of %" PRId64 " (docs/unsupported.md)",
			   l->sdsc->file, l->sdsc->op, s->name, cut->values[symbol], s->min, s->max,
			   l->sdsc->dim[dim], why, multiple);
}

/* K of a matmul has no mask: the value must be whole sticks, or whole shares if divided. */
static spyre_status cut_contraction(struct lower *l, struct symbol_cut *cut, uint32_t symbol,
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

/* Masks what a reduction would read beyond the value. */
static spyre_status add_mask(struct lower *l, struct symbol_cut *cut, uint32_t dim, int64_t value)
{
	if (cut->part.num_masks == IR_MAX_MASKS)
		return lower_unsupported(l, "more than %u masks", IR_MAX_MASKS);
	cut->part.mask[cut->part.num_masks++] =
		(struct ir_mask){ dim, value, l->sdsc->size[dim] - value };
	return SPYRE_SUCCESS;
}

/* Refuses values of which the cores cannot process equal shares. */
static spyre_status check_even(struct lower *l, const struct symbol_cut *cut, uint32_t symbol,
			       uint32_t dim, bool contracted)
{
	const struct ir_sdsc *s = l->sdsc;
	int64_t value = cut->values[symbol], slices = s->slices[dim];
	int64_t granularity = s->granularity[dim] * slices;
	uint32_t stick = stick_of(s, dim);

	if (value < granularity || value % granularity)
		return bad_value(l, cut, symbol, dim, granularity, "of that granularity");
	if (slices > 1 && value / slices % stick)
		return bad_value(l, cut, symbol, dim, slices * stick,
				 "divided over cores in whole sticks");
	if (contracted && value % stick)
		return bad_value(l, cut, symbol, dim, stick, "contracted in whole sticks");
	for (uint32_t i = 0; i < s->num_masks; i++)
		if (slices > 1 && s->mask[i].dim == dim && s->mask[i].length)
			return lower_unsupported(l, "coordinateMasking_ of %s, whose size is a parameter and divided over cores",
						 s->dim[dim]);
	return SPYRE_SUCCESS;
}

/* Cuts a dim whose size is a parameter: each core gets the same share of the value. */
static spyre_status cut_evenly(struct lower *l, struct symbol_cut *cut, lower_rule_fn *rule,
			       uint32_t symbol, uint32_t dim, double *ratio)
{
	const struct ir_sdsc *s = l->sdsc;
	bool reduced = !lower_varies(&s->tensor[s->output], dim);
	int64_t value = cut->values[symbol], share = value / s->slices[dim];
	uint32_t stick = stick_of(s, dim);

	if (reduced && rule != lower_reduce && rule != lower_matmul)
		return lower_unsupported(l, "symbolic dimension %s, which the output lacks",
					 s->dim[dim]);
	TRY(check_even(l, cut, symbol, dim, reduced && rule == lower_matmul));
	cut->even[dim] = (share + stick - 1) / stick * stick;
	if (cut->even[dim] > s->el[dim])
		cut->even[dim] = s->el[dim];
	if (!reduced || rule != lower_reduce)
		return SPYRE_SUCCESS;
	*ratio *= (double)cut->symbols->symbol[symbol].max / (double)value;
	return cut->even[dim] > share ? add_mask(l, cut, dim, value) : SPYRE_SUCCESS;
}

static spyre_status cut_dim(struct lower *l, struct symbol_cut *cut, lower_rule_fn *rule,
			    uint32_t symbol, uint32_t dim, double *ratio)
{
	const struct ir_sdsc *s = l->sdsc;
	int64_t value = cut->values[symbol];

	if (value >= s->size[dim])
		return SPYRE_SUCCESS;
	if (s->granularity[dim])
		return cut_evenly(l, cut, rule, symbol, dim, ratio);
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
	*ratio *= (double)cut->symbols->symbol[symbol].max / (double)value;
	return add_mask(l, cut, dim, value);
}

/* Elements of a core's share below the value, rounded up to whole sticks. */
static int64_t share(const struct symbol_cut *cut, const struct ir_sdsc *s, uint32_t core,
		     uint32_t dim)
{
	int64_t el = s->el[dim], left;

	if (cut->even[dim])
		return cut->even[dim];
	if (!cut->clip[dim])
		return el;
	left = cut->clip[dim] - (int64_t)s->slice[core][dim] * el;
	if (left <= 0)
		return 0;
	left = (left + cut->granule[dim] - 1) / cut->granule[dim] * cut->granule[dim];
	return left < el ? left : el;
}

/* Bytes by which even shares move the start of a core to the front. */
static uint64_t back_of(const struct symbol_cut *cut, const struct ir_tensor *t, uint32_t core)
{
	const struct ir_sdsc *s = cut->whole;
	uint64_t bits = 0;

	for (uint32_t d = 0; d < s->num_dims; d++) {
		uint64_t slice = s->slice[core][d];

		if (cut->even[d])
			bits += ir_bits(t, d, slice * (uint64_t)s->el[d]) -
				ir_bits(t, d, slice * (uint64_t)cut->even[d]);
	}
	return bits / 8;
}

/* Restricts cut->part to the cores from @first on whose share equals that of @first. */
static bool take_group(struct symbol_cut *cut, uint32_t first)
{
	const struct ir_sdsc *s = cut->whole;
	struct ir_sdsc *part = &cut->part;

	part->num_cores = 0;
	for (uint32_t d = 0; d < s->num_dims; d++)
		part->el[d] = share(cut, s, first, d);
	for (uint32_t c = first; c < s->num_cores; c++) {
		bool same = !(cut->done >> c & 1);

		for (uint32_t d = 0; d < s->num_dims && same; d++)
			same = share(cut, s, c, d) == part->el[d];
		if (!same)
			continue;
		cut->done |= 1u << c;
		part->core[part->num_cores] = s->core[c];
		memcpy(part->slice[part->num_cores], s->slice[c], sizeof(s->slice[c]));
		for (uint32_t t = 0; t < s->num_tensors; t++) {
			part->tensor[t].start[part->num_cores] = s->tensor[t].start[c];
			part->tensor[t].back[part->num_cores] = back_of(cut, &s->tensor[t], c);
		}
		part->num_cores++;
	}
	for (uint32_t d = 0; d < s->num_dims; d++)
		if (!part->el[d])
			return false;
	return true;
}

spyre_status symbol_cut_begin(struct lower *l, const struct symbols *symbols,
			      const int64_t *values, struct symbol_cut *cut)
{
	const struct ir_sdsc *s = l->sdsc;
	lower_rule_fn *rule = lower_rule(s->op);
	double ratio = 1;

	memset(cut, 0, sizeof(*cut));
	cut->symbols = symbols;
	for (uint32_t i = 0; i < symbols->num; i++)
		cut->values[i] = values ? values[i] : symbols->symbol[i].max;
	if (!lower_takes_share(rule) || !strcmp(s->op, "maskbyindex"))
		return lower_unsupported(l, "symbolic dimensions");
	if (s->indirect)
		return lower_unsupported(l, "symbolic dimensions with indirect access");
	cut->whole = s;
	ir_copy_sdsc(&cut->part, s);
	for (uint32_t d = 0; d < s->num_dims; d++) {
		int symbol = symbols_find(symbols->symbol, symbols->num, s->symbol[d]);

		if (s->symbol[d][0] && symbol >= 0)
			TRY(cut_dim(l, cut, rule, (uint32_t)symbol, d, &ratio));
	}
	return ratio != 1 ? rescale(l, &cut->part, ratio) : SPYRE_SUCCESS;
}

bool symbol_cut_next(struct symbol_cut *cut)
{
	for (uint32_t c = 0; c < cut->whole->num_cores; c++)
		if (!(cut->done >> c & 1) && take_group(cut, c))
			return true;
	return false;
}
