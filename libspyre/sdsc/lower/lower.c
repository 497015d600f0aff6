// SPDX-License-Identifier: MIT
/*
 * Lowering of an SDSC to phases: functions that all operations share. Addresses
 * are resolved per core; inside a core's share, coordinates start at 0.
 */
#include "libspyre/sdsc/lower/lower.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/lower/nest.h"

spyre_status lower_unsupported(const struct lower *l, const char *format, ...)
{
	char what[512];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return spyre_error(SPYRE_ERROR_UNSUPPORTED, "%s: %s: %s (docs/unsupported.md)",
			   l->sdsc->file, l->sdsc->op, what);
}

bool lower_has_constant(const struct lower *l, const char *name)
{
	for (uint32_t i = 0; i < l->sdsc->num_constants; i++)
		if (!strcmp(l->sdsc->constant[i].name, name))
			return true;
	return false;
}

static bool constant_bits(const struct ir_constant *c, uint32_t *bits)
{
	float number = (float)c->bits;

	switch (c->format) {
	case SPYRE_FMT_SEN169_FP16:
		*bits = spyre_dl16_to_fp32((uint16_t)c->bits);
		return true;
	case SPYRE_FMT_IEEE_FP16:
		*bits = spyre_fp16_to_fp32((uint16_t)c->bits);
		return true;
	case SPYRE_FMT_BFLOAT16:
		*bits = spyre_bf16_to_fp32((uint16_t)c->bits);
		return true;
	case SPYRE_FMT_IEEE_FP32:
		*bits = c->bits;
		return true;
	case SPYRE_FMT_IEEE_INT32:
		number = (float)(int32_t)c->bits;
		break;
	case SPYRE_FMT_SENUINT32:
		break;
	default:
		return false;
	}
	memcpy(bits, &number, sizeof(*bits));
	return true;
}

spyre_status lower_constant(struct lower *l, const char *name, uint32_t *bits)
{
	const struct ir_sdsc *s = l->sdsc;

	for (uint32_t i = 0; i < s->num_constants; i++) {
		const struct ir_constant *c = &s->constant[i];

		if (strcmp(c->name, name))
			continue;
		if (constant_bits(c, bits))
			return SPYRE_SUCCESS;
		return lower_unsupported(l, "constant %s is %s", name,
					 spyre_format_name((spyre_format)c->format));
	}
	return lower_unsupported(l, "constantInfo_ lacks %s", name);
}

spyre_status lower_integer_constant(struct lower *l, const char *name, uint32_t *bits)
{
	const struct ir_sdsc *s = l->sdsc;

	for (uint32_t i = 0; i < s->num_constants; i++) {
		const struct ir_constant *c = &s->constant[i];

		if (strcmp(c->name, name))
			continue;
		if (c->format != SPYRE_FMT_IEEE_INT32)
			return lower_unsupported(l, "constant %s is %s, it has to be IEEE_INT32",
						 name, spyre_format_name((spyre_format)c->format));
		*bits = c->bits;
		return SPYRE_SUCCESS;
	}
	return lower_unsupported(l, "constantInfo_ lacks %s", name);
}

bool lower_varies(const struct ir_tensor *t, uint32_t dim)
{
	return t->scale[dim] > 0;
}

spyre_status lower_unmasked(struct lower *l, uint32_t dims)
{
	const struct ir_sdsc *s = l->sdsc;

	for (uint32_t i = 0; i < s->num_masks; i++)
		if ((dims >> s->mask[i].dim & 1) && s->mask[i].length)
			return lower_unsupported(l, "coordinateMasking_ of %s, over which it runs; padding has to be zero there",
						 s->dim[s->mask[i].dim]);
	return SPYRE_SUCCESS;
}

void lower_view(struct spyre_view *view, const struct ir_tensor *t, const struct address *at)
{
	memset(view, 0, sizeof(*view));
	view->operand = at->operand;
	view->format = (uint8_t)t->format;
	view->offset = at->offset;
	memcpy(view->loop_stride, at->per_iter, sizeof(view->loop_stride));
}

bool lower_is_input(const struct ir_sdsc *s, uint32_t tensor)
{
	for (uint32_t i = 0; i < s->num_tensors; i++)
		if (s->tensor[i].indexed && s->tensor[i].index == tensor)
			return true;
	for (uint32_t i = 0; i < s->num_inputs; i++)
		if (s->input[i] == tensor && tensor != s->output)
			return true;
	return false;
}

uint64_t lower_box_bytes(const struct ir_sdsc *s, const struct ir_tensor *t)
{
	uint64_t bytes = SPYRE_STICK_BYTES;

	for (uint32_t d = 0; d < s->num_dims; d++) {
		uint64_t steps, part;

		if (!lower_varies(t, d))
			continue;
		steps = (uint64_t)ir_share(s, t, d);
		steps = (steps + ir_unit(t, d) - 1) / ir_unit(t, d);
		if (__builtin_mul_overflow(steps - 1, t->stride[d], &part) ||
		    __builtin_add_overflow(bytes, part, &bytes))
			return UINT64_MAX;
	}
	return bytes;
}

static int by_id(const void *key, const void *element)
{
	int64_t id = *(const int64_t *)key;
	const struct ir_symbol *symbol = element;

	return id < symbol->id ? -1 : id > symbol->id;
}

spyre_status lower_value(struct lower *l, int64_t start, struct ir_value *value)
{
	const struct ir_symbol *symbol = NULL;

	memset(value, 0, sizeof(*value));
	if (start < 0) {
		/* Most lists of ids have no gaps, so that an id gives its index. */
		if (l->stmt->num_symbols && start >= l->stmt->symbols[0].id &&
		    start - l->stmt->symbols[0].id < l->stmt->num_symbols)
			symbol = &l->stmt->symbols[start - l->stmt->symbols[0].id];
		if (symbol && symbol->id != start)
			symbol = NULL;
		if (!symbol && l->stmt->num_symbols)
			symbol = bsearch(&start, l->stmt->symbols, l->stmt->num_symbols,
					 sizeof(*symbol), by_id);
		if (!symbol)
			return spyre_error(SPYRE_ERROR_PARSE,
					   "bundle.mlir:%u: %s uses symbol %" PRId64 ", which is not among its %u symbol_ids",
					   l->stmt->line, l->sdsc->file, start,
					   l->stmt->num_symbols);
		*value = symbol->value;
		start = 0;
	}
	if (value->base == IR_BASE_SIZE)
		return spyre_error(SPYRE_ERROR_PARSE,
				   "bundle.mlir:%u: %s uses the size of a dimension as an address",
				   l->stmt->line, l->sdsc->file);
	/* A plain number is an address in the segment of its argument. */
	if (value->base == IR_BASE_NONE) {
		int64_t address;
		uint32_t segment;

		if (__builtin_add_overflow(value->constant, start, &address) || address < 0)
			address = INT64_MAX;
		segment = (uint32_t)(address >> IR_SEGMENT_SHIFT);
		if (address >> IR_SEGMENT_SHIFT >= 7)
			return spyre_error(SPYRE_ERROR_PARSE,
					   "%s: address %" PRId64 " is in none of the segments 0 to 6",
					   l->sdsc->file, address);
		value->constant = address & ((INT64_C(1) << IR_SEGMENT_SHIFT) - 1);
		value->base = IR_BASE_ARG;
		value->arg = segment - l->baked_pool;
		if (l->baked_pool && !segment)
			value->base = IR_BASE_POOL;
	}
	return SPYRE_SUCCESS;
}

spyre_status lower_argument(struct lower *l, int64_t start, uint32_t *arg)
{
	struct ir_value value;
	spyre_status status = lower_value(l, start, &value);

	*arg = !status && value.base == IR_BASE_ARG ? value.arg :
	       SPYRE_MAX_OPERANDS;
	return status;
}

static spyre_status resolve_hbm(struct lower *l, uint32_t tensor, uint32_t core,
				struct address *at)
{
	const struct ir_sdsc *s = l->sdsc;
	struct ir_value value;

	TRY(lower_value(l, s->tensor[tensor].start[core], &value));
	value.constant -= (int64_t)s->tensor[tensor].back[core];
	if (value.constant < 0 || value.constant % SPYRE_STICK_BYTES)
		return spyre_error(SPYRE_ERROR_PARSE,
				   "%s: Tensor%u of core %u starts at byte %" PRId64 " of its argument; offsets are multiples of %u from 0 on",
				   s->file, tensor, s->core[core], value.constant,
				   SPYRE_STICK_BYTES);
	for (uint32_t i = 0; i < SPYRE_MAX_LOOPS; i++) {
		if (value.per_iter[i] < 0 || value.per_iter[i] % SPYRE_STICK_BYTES)
			return lower_unsupported(l, "Tensor%u moves %" PRId64 " bytes per loop iteration; only multiples of %u from 0 on",
						 tensor, value.per_iter[i], SPYRE_STICK_BYTES);
		at->per_iter[i] = (uint64_t)value.per_iter[i];
	}
	at->offset = (uint64_t)value.constant;
	if (value.base == IR_BASE_ARG)
		return encoder_operand(l->encoder, SPYRE_OPERAND_ARG, value.arg, &at->operand);
	return encoder_operand(l->encoder, SPYRE_OPERAND_POOL,
			       value.base == IR_BASE_MEM ? 1 + value.arg : 0, &at->operand);
}

spyre_status lower_resolve(struct lower *l, uint32_t tensor)
{
	const struct ir_sdsc *s = l->sdsc;
	const struct ir_tensor *t = &s->tensor[tensor];
	uint64_t box = lower_box_bytes(s, t);
	spyre_status status = SPYRE_SUCCESS;

	if (!t->lx && box > SPAN_LIMIT)
		return spyre_error(SPYRE_ERROR_SPAN_LIMIT,
				   "%s: Tensor%u: one core reaches over %" PRIu64 " bytes, the limit is %llu; divide the work over more cores or tile the tensor",
				   s->file, tensor, box, SPAN_LIMIT);
	for (uint32_t c = 0; c < s->num_cores && !status; c++) {
		struct address *at = &l->address[tensor][c];

		memset(at, 0, sizeof(*at));
		if (!t->lx) {
			status = resolve_hbm(l, tensor, c, at);
			continue;
		}
		at->operand = SPYRE_VIEW_LX;
		at->offset = (uint64_t)t->start[c];
		if (box > SPYRE_LX_BYTES || at->offset > SPYRE_LX_BYTES - box)
			return spyre_error(SPYRE_ERROR_LX_OVERFLOW,
					   "%s: Tensor%u takes LX bytes %" PRIu64 " to %" PRIu64 ", a core has %u; plan smaller tiles",
					   s->file, tensor, at->offset, at->offset + box,
					   SPYRE_LX_BYTES);
	}
	return status;
}

/* Lists the units of a dim in descending order: sticks and parts of the tensors, then @last. */
static uint32_t units_of(const struct ir_tensor *const *tensor, uint32_t num_tensors,
			 uint32_t dim, uint64_t el, uint64_t last, uint64_t *unit)
{
	uint32_t n = 0;

	for (uint64_t u = 256; u > last; u /= 2)
		for (uint32_t i = 0; i < num_tensors; i++)
			if (u < el && ir_breaks(tensor[i], dim, u)) {
				unit[n++] = u;
				break;
			}
	unit[n++] = last;
	return n;
}

static spyre_status single_elements(struct lower *l, const struct ir_tensor *t, uint32_t dim)
{
	return lower_unsupported(l, "single elements of %s along %s; views hold whole bytes",
				 spyre_format_name((spyre_format)t->format), l->sdsc->dim[dim]);
}

spyre_status lower_dims(struct lower *l, struct nest *nest, const struct ir_tensor *const *tensor,
			uint32_t num_tensors, uint32_t lane_dim, const int64_t *el, uint32_t skip,
			uint32_t reduce)
{
	for (uint32_t d = 0; d < l->sdsc->num_dims; d++) {
		uint64_t unit[10], left = (uint64_t)el[d];
		uint32_t n;

		if (skip >> d & 1)
			continue;
		n = units_of(tensor, num_tensors, d, left, d == lane_dim ? nest->in.lanes : 1,
			     unit);
		for (uint32_t i = 0; i < n; i++) {
			struct nest_dim *dim = &nest->dim[nest->num_dims];

			if (nest->num_dims++ == NEST_MAX_DIMS)
				return lower_unsupported(l, "dimensions and sticks that make more than %u loops",
							 NEST_MAX_DIMS);
			if (left % unit[i])
				return lower_unsupported(l, "a core's share of %s is %" PRIu64 " elements, which is not a multiple of %" PRIu64,
							 l->sdsc->dim[d], left, unit[i]);
			*dim = (struct nest_dim){ .count = left / unit[i],
						  .reduce = reduce >> d & 1 };
			for (uint32_t t = 0; t < num_tensors; t++) {
				uint64_t bits = ir_bits(tensor[t], d, unit[i]);

				if (bits % 8)
					return single_elements(l, tensor[t], d);
				dim->stride[t] = bits / 8;
			}
			left = unit[i];
		}
	}
	return SPYRE_SUCCESS;
}
