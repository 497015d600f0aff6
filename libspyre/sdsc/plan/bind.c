// SPDX-License-Identifier: MIT
/* Applies the plan: shares and slices of the cores, addresses and their symbols. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/lower/lower.h"
#include "libspyre/sdsc/plan/bind.h"
#include "libspyre/sdsc/plan/plan.h"

/* Orders the dims by how fast the core number counts through them, fastest first. */
static void radix(const struct plan *p, uint32_t index, uint32_t *order)
{
	const struct build_step *step = &p->step[index];
	const struct ir_sdsc *s = &step->sdsc;
	uint32_t k = s->tensor[0].stick;
	bool alone = true;

	for (uint32_t d = 0; d < s->num_dims; d++)
		order[d] = d;
	for (uint32_t i = 0; i < p->num_steps; i++)
		alone = alone && (i == index || p->step[i].group != step->group);
	if (step->op->kind == BUILD_MATMUL && alone) {
		/* K is fastest, so that adjacent cores of the ring add up their parts. */
		if (p->k_fastest && s->slices[k] > 1) {
			order[0] = k;
			for (uint32_t d = 0, n = 1; d < s->num_dims; d++)
				if (d != k)
					order[n++] = d;
		}
		return;
	}
	/* Members of a group may order their dims differently, but must assign cores alike. */
	for (uint32_t i = 1; i < s->num_dims && !alone; i++)
		for (uint32_t d = i; d && step->key[order[d - 1]] < step->key[order[d]]; d--) {
			uint32_t swap = order[d];

			order[d] = order[d - 1];
			order[d - 1] = swap;
		}
}

static void set_slices(const struct plan *p, uint32_t index)
{
	struct ir_sdsc *s = &p->step[index].sdsc;
	uint32_t order[IR_MAX_DIMS];

	radix(p, index, order);
	s->num_cores = 1;
	for (uint32_t d = 0; d < s->num_dims; d++) {
		s->el[d] = s->size[d] / s->slices[d];
		s->num_cores *= (uint32_t)s->slices[d];
	}
	for (uint32_t c = 0; c < s->num_cores; c++) {
		uint32_t rest = c;

		s->core[c] = c;
		for (uint32_t i = 0; i < s->num_dims; i++) {
			uint32_t n = (uint32_t)s->slices[order[i]];

			s->slice[c][order[i]] = rest % n;
			rest /= n;
		}
	}
}

/* First coordinate of a core's share; of a window, the first one inside the input. */
static uint64_t first_of(const struct ir_sdsc *s, const struct ir_tensor *t, uint32_t core,
			 uint32_t d)
{
	int64_t at = (int64_t)s->slice[core][d] * s->el[d];

	for (uint32_t k = 0; k < 2 && t->windowed; k++) {
		const struct ir_axis *a = &s->axis[k];

		if (a->dim != d)
			continue;
		at = at * a->stride - a->before;
		at = at < 0 ? 0 : at < a->size ? at : a->size - 1;
	}
	return (uint64_t)at;
}

/* Byte offset of a core's share within a tensor. */
static uint64_t offset_of(const struct ir_sdsc *s, const struct ir_tensor *t, uint32_t core)
{
	uint64_t offset = 0;

	for (uint32_t d = 0; d < s->num_dims; d++)
		if (t->scale[d] > 0)
			offset += first_of(s, t, core, d) / (d == t->stick ? t->lanes : 1) *
				  t->stride[d];
	return offset;
}

/* Symbol of an address, added if the step does not have it. */
static int64_t symbol_of(struct build_step *step, const struct ir_value *value, int64_t *next)
{
	for (uint32_t i = 0; i < step->num_symbols; i++) {
		const struct ir_value *v = &step->symbols[i].value;

		if (v->base == value->base && v->arg == value->arg &&
		    v->constant == value->constant)
			return step->symbols[i].id;
	}
	step->symbols[step->num_symbols] = (struct ir_symbol){ .id = (*next)--, .value = *value };
	return step->symbols[step->num_symbols++].id;
}

static spyre_status bind_tensor(struct plan *p, struct build_step *step, uint32_t index,
				int64_t *next)
{
	const struct plan_tensor *where = &p->tensor[step->tensor[index]];
	struct ir_sdsc *s = &step->sdsc;
	struct ir_tensor *t = &s->tensor[index];
	uint64_t box;

	t->lx = where->place == SPYRE_SDSC_LX;
	if (!ir_place(s, t))
		return spyre_error(SPYRE_ERROR_LAYOUT, "%s: operand %u has 2^63 bytes or more",
				   s->op, index);
	box = lower_box_bytes(s, t);
	if (!t->lx && box > SPAN_LIMIT)
		return spyre_error(SPYRE_ERROR_SPAN_LIMIT,
				   "%s: operand %u: one of %u cores reaches over %" PRIu64 " bytes, the limit is %llu; use %ssmaller tensors",
				   s->op, index, s->num_cores, box, SPAN_LIMIT,
				   s->num_cores < SPYRE_MAX_CORES ? "more cores or " : "");
	for (uint32_t c = 0; c < s->num_cores; c++) {
		struct ir_value value = { .base = IR_BASE_ARG };

		if (t->lx) {
			t->start[c] = (int64_t)where->at;
			continue;
		}
		value.constant = (int64_t)(offset_of(s, t, c) + step->offset[index]);
		if (where->place == SPYRE_SDSC_POOL) {
			value.base = IR_BASE_POOL;
			value.constant += (int64_t)where->at;
		} else {
			value.arg = (uint32_t)where->at;
		}
		t->start[c] = symbol_of(step, &value, next);
	}
	return SPYRE_SUCCESS;
}

spyre_status plan_bind(struct plan *p)
{
	int64_t next = -1;

	for (uint32_t i = 0; i < p->num_steps; i++) {
		struct build_step *step = &p->step[i];
		struct ir_sdsc *s = &step->sdsc;

		set_slices(p, i);
		snprintf(s->file, sizeof(s->file), "sdsc_%u.json", i);
		/* The name of the kernel, from which the reader of an index's fault knows it. */
		snprintf(s->root, sizeof(s->root), "%u_%.48s", i,
			 step->op->kind == BUILD_INDEX ? step->op->name : s->op);
		step->symbols = calloc((size_t)s->num_tensors * s->num_cores,
				       sizeof(*step->symbols));
		if (!step->symbols)
			return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
					   "no memory for %u addresses of %s",
					   s->num_tensors * s->num_cores, s->root);
		for (uint32_t k = 0; k < s->num_tensors; k++)
			TRY(bind_tensor(p, step, k, &next));
	}
	return SPYRE_SUCCESS;
}

spyre_status plan_bundle(const struct plan *p, struct ir_bundle *bundle)
{
	memset(bundle, 0, sizeof(*bundle));
	bundle->num_args = p->num_args;
	bundle->has_pool = p->pool_bytes;
	bundle->stmts = calloc(p->num_steps, sizeof(*bundle->stmts));
	if (!bundle->stmts)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory for a bundle of %u steps", p->num_steps);
	for (uint32_t i = 0; i < p->num_steps; i++) {
		const struct build_step *step = &p->step[i];
		struct ir_stmt *stmt = &bundle->stmts[bundle->num_stmts++];

		stmt->kind = IR_STMT_EXECUTE;
		stmt->line = i + 1;
		stmt->file = step->sdsc.file;
		stmt->symbols = spyre_region_alloc(&bundle->memory, step->num_symbols *
								    sizeof(*stmt->symbols));
		if (!stmt->symbols) {
			ir_bundle_fini(bundle);
			return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
					   "no memory for %u symbols of %s", step->num_symbols,
					   step->sdsc.file);
		}
		/* Ids were assigned downwards, but statements list them ascending. */
		stmt->num_symbols = step->num_symbols;
		for (uint32_t k = 0; k < step->num_symbols; k++)
			stmt->symbols[k] = step->symbols[step->num_symbols - 1 - k];
	}
	return SPYRE_SUCCESS;
}
