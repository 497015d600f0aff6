// SPDX-License-Identifier: MIT
/* Sizes of dimensions as parameters: see size_params.h. */
#include "libspyre/sdsc/parse/size_params.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"

static struct ir_symbol *find(struct ir_stmt *stmt, int64_t id)
{
	for (uint32_t i = 0; i < stmt->num_symbols; i++)
		if (stmt->symbols[i].id == id)
			return &stmt->symbols[i];
	return NULL;
}

/* Gives the parameter and the dim the same name. */
static spyre_status name_dim(struct ir_bundle *bundle, const struct ir_stmt *stmt,
			     struct ir_sdsc *s, uint32_t dim, struct ir_size_param *param)
{
	if (!s->symbol[dim][0])
		memcpy(s->symbol[dim], param->name, sizeof(param->name));
	for (uint32_t i = 0; i < bundle->num_size_params; i++) {
		const struct ir_size_param *other = &bundle->size_param[i];

		if (other != param && !strcmp(other->name, s->symbol[dim]))
			return spyre_error(SPYRE_ERROR_PARSE,
					   "bundle.mlir:%u: symbol %s of %s is parameter %u of the sizes here and parameter %u elsewhere",
					   stmt->line, s->symbol[dim], s->file,
					   (uint32_t)(param - bundle->size_param), i);
	}
	if (param->named && strcmp(param->name, s->symbol[dim]))
		return spyre_error(SPYRE_ERROR_PARSE,
				   "bundle.mlir:%u: the parameter for symbol %s is symbol %s in %s",
				   stmt->line, param->name, s->symbol[dim], s->file);
	memcpy(param->name, s->symbol[dim], sizeof(param->name));
	param->named = true;
	return SPYRE_SUCCESS;
}

static spyre_status check_bounds(const struct ir_stmt *stmt, const struct ir_sdsc *s, uint32_t dim,
				 const struct ir_size_param *param)
{
	int64_t per_core = param->granularity / s->slices[dim];

	if (param->max != s->size[dim])
		return spyre_error(SPYRE_ERROR_PARSE,
				   "%s: N_ of %s is %" PRId64 ", in bundle.mlir:%u its maximum is %" PRId64,
				   s->file, s->dim[dim], s->size[dim], param->line, param->max);
	if (param->granularity % s->slices[dim])
		return spyre_error(SPYRE_ERROR_PARSE,
				   "%s: %s is divided by %" PRId64 ", its granularity in bundle.mlir:%u is %" PRId64 "; choose a multiple",
				   s->file, s->dim[dim], s->slices[dim], param->line,
				   param->granularity);
	if (s->granularity[dim] != per_core)
		return spyre_error(SPYRE_ERROR_PARSE,
				   "%s: granularity_ of %s is %" PRId64 ", expected %" PRId64 ": in bundle.mlir:%u it is %" PRId64 " for %" PRId64 " slices",
				   s->file, s->dim[dim], s->granularity[dim], per_core, param->line,
				   param->granularity, s->slices[dim]);
	return SPYRE_SUCCESS;
}

static spyre_status bind_dim(struct ir_bundle *bundle, struct ir_stmt *stmt, struct ir_sdsc *s,
			     uint32_t dim, uint32_t *used)
{
	const struct ir_symbol *symbol = find(stmt, s->size_id[dim]);
	const struct ir_value *v = symbol ? &symbol->value : NULL;

	if (!v || v->base != IR_BASE_SIZE || v->constant)
		return spyre_error(SPYRE_ERROR_PARSE,
				   "bundle.mlir:%u: %s needs the size of %s as symbol %" PRId64 ", which is %s",
				   stmt->line, s->file, s->dim[dim], s->size_id[dim],
				   v ? "another value" : "not among its symbol_ids");
	*used |= 1u << v->arg;
	TRY(check_bounds(stmt, s, dim, &bundle->size_param[v->arg]));
	return name_dim(bundle, stmt, s, dim, &bundle->size_param[v->arg]);
}

/* The address of a start, with a baked one as a number. */
static spyre_status start_of(struct ir_stmt *stmt, const struct ir_sdsc *s, int64_t start,
			     struct ir_value *value, struct ir_symbol **symbol)
{
	*symbol = NULL;
	*value = (struct ir_value){ .constant = start };
	if (start >= 0)
		return SPYRE_SUCCESS;
	*symbol = find(stmt, start);
	if (!*symbol)
		return spyre_error(SPYRE_ERROR_PARSE,
				   "bundle.mlir:%u: %s uses symbol %" PRId64 ", which is not among its %u symbol_ids",
				   stmt->line, s->file, start, stmt->num_symbols);
	*value = (*symbol)->value;
	return SPYRE_SUCCESS;
}

/* Bytes from the start of a tensor to that of a core's share, for the maxima. */
static int64_t offset_of(const struct ir_sdsc *s, const struct ir_tensor *t, uint32_t core)
{
	uint64_t bits = 0;

	for (uint32_t d = 0; d < s->num_dims; d++)
		bits += ir_bits(t, d, (uint64_t)(s->slice[core][d] * s->el[d]));
	return (int64_t)(bits / 8);
}

static spyre_status bad_start(const struct ir_stmt *stmt, const struct ir_sdsc *s, uint32_t tensor,
			      uint32_t core, const struct ir_value *v, int64_t expected)
{
	return spyre_error(SPYRE_ERROR_PARSE,
			   "bundle.mlir:%u: Tensor%u of core %u in %s starts at %" PRId64 ", expected %" PRId64 ", for the layout of the maximum; compile it with tensors of the maximal size",
			   stmt->line, tensor, s->core[core], s->file, v->constant, expected);
}

/*
 * Checks that the cores' starts are those of one tensor with the layout of the maximum. A
 * number instead of an address is that of the argument plus the offset.
 */
static spyre_status check_starts(struct ir_stmt *stmt, const struct ir_sdsc *s, uint32_t tensor)
{
	const struct ir_tensor *t = &s->tensor[tensor];
	struct ir_value first, v;
	struct ir_symbol *symbol;

	TRY(start_of(stmt, s, t->start[0], &first, &symbol));
	first.constant -= offset_of(s, t, 0);
	for (uint32_t c = 1; c < s->num_cores; c++) {
		int64_t expected = first.constant + offset_of(s, t, c);

		TRY(start_of(stmt, s, t->start[c], &v, &symbol));
		if (symbol && v.base == IR_BASE_NONE && first.base == IR_BASE_ARG) {
			if (v.constant != expected + first.arg)
				return bad_start(stmt, s, tensor, c, &v, expected + first.arg);
			v.base = IR_BASE_ARG;
			v.arg = first.arg;
			v.constant = expected;
			symbol->value = v;
		}
		if (v.base != first.base || v.arg != first.arg ||
		    memcmp(v.per_iter, first.per_iter, sizeof(v.per_iter)))
			return spyre_error(SPYRE_ERROR_PARSE,
					   "bundle.mlir:%u: Tensor%u of core %u in %s is not in the memory of that of core %u",
					   stmt->line, tensor, s->core[c], s->file, s->core[0]);
		if (v.constant != expected)
			return bad_start(stmt, s, tensor, c, &v, expected);
	}
	return SPYRE_SUCCESS;
}

/* True for a tensor in HBM that varies along a dim whose size is a parameter. */
static bool has_size(const struct ir_sdsc *s, const struct ir_tensor *t)
{
	for (uint32_t d = 0; d < s->num_dims; d++)
		if (!t->lx && t->scale[d] > 0 && s->size_id[d])
			return true;
	return false;
}

spyre_status size_params_bind(struct ir_bundle *bundle, struct ir_stmt *stmt, struct ir_sdsc *s)
{
	uint32_t used = 0;

	for (uint32_t d = 0; d < s->num_dims; d++)
		if (s->size_id[d])
			TRY(bind_dim(bundle, stmt, s, d, &used));
	for (uint32_t i = 0; i < stmt->num_symbols; i++) {
		const struct ir_value *v = &stmt->symbols[i].value;

		if (v->base == IR_BASE_SIZE && !(used >> v->arg & 1))
			return spyre_error(SPYRE_ERROR_PARSE,
					   "bundle.mlir:%u: symbol %" PRId64 " is the size of a dimension, %s has none for it in dimToSymbolMapping_",
					   stmt->line, stmt->symbols[i].id, s->file);
	}
	for (uint32_t t = 0; t < s->num_tensors; t++)
		if (has_size(s, &s->tensor[t]))
			TRY(check_starts(stmt, s, t));
	return SPYRE_SUCCESS;
}
