// SPDX-License-Identifier: MIT
/* Builder: bundle.mlir, which derives each core's addresses from the arguments. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/plan/plan.h"
#include "libspyre/sdsc/write/write_file.h"
#include "libspyre/sdsc/write/write_mlir.h"

#define TYPE "!sdscbundle.input_arg<index>"

struct writer {
	FILE *file;
	const struct plan *plan;
	/* Hash set of defined addresses: open addressing, size a power of two. */
	struct ir_value *seen;
	uint64_t mask;
};

static void put_param(struct writer *w, uint32_t arg, uint32_t count, bool extract)
{
	if (extract)
		fprintf(w->file, "\t\t%%arg_%u = sdscbundle.input_arg_extract value from %%arg_%u_base_addr : "
			TYPE " -> index\n", arg, arg);
	else
		fprintf(w->file, "%s%%arg_%u_base_addr: " TYPE, count ? ", " : "", arg);
}

/* Writes arguments in the order of their first use, unused ones last. */
static void each_param(struct writer *w, bool extract, uint8_t *done)
{
	const struct plan *p = w->plan;
	uint32_t count = p->pool_bytes > 0;

	for (uint32_t i = 0; i < p->num_args; i++)
		done[i] = 0;
	for (uint32_t i = 0; i < p->num_steps; i++)
		for (uint32_t k = 0; k < p->step[i].num_symbols; k++) {
			const struct ir_value *v = &p->step[i].symbols[k].value;

			if (v->base != IR_BASE_ARG || done[v->arg])
				continue;
			done[v->arg] = 1;
			put_param(w, v->arg, count++, extract);
		}
	for (uint32_t i = 0; i < p->num_args; i++)
		if (!done[i])
			put_param(w, i, count++, extract);
}

static void put_params(struct writer *w, uint8_t *done)
{
	fprintf(w->file, "module {\n\tfunc.func @sdsc_bundle(");
	if (w->plan->pool_bytes)
		fprintf(w->file, "%%pool_base_addr: " TYPE);
	each_param(w, false, done);
	fprintf(w->file, ") {\n");
	if (w->plan->pool_bytes)
		fprintf(w->file, "\t\t%%pool = sdscbundle.input_arg_extract value from %%pool_base_addr : "
			TYPE " -> index\n");
	each_param(w, true, done);
}

/* True if an address was not defined yet; adds it to the set. */
static bool is_new(struct writer *w, const struct ir_value *v)
{
	uint64_t at = (uint64_t)v->constant / SPYRE_STICK_BYTES * 0x9e3779b97f4a7c15u +
		      v->arg * 0xff51afd7ed558ccdu + v->base;

	for (at ^= at >> 32;; at++) {
		struct ir_value *s = &w->seen[at & w->mask];

		if (s->base == IR_BASE_NONE) {
			*s = *v;
			return true;
		}
		if (s->base == v->base && s->arg == v->arg && s->constant == v->constant)
			return false;
	}
}

static void put_address(struct writer *w, const struct ir_value *v)
{
	int64_t at = v->constant;

	if ((v->base == IR_BASE_ARG && !at) || !is_new(w, v))
		return;
	if (v->base == IR_BASE_POOL) {
		fprintf(w->file, "\t\t%%pool_offset_%" PRId64 " = arith.constant %" PRId64 " : index\n",
			at, at);
		fprintf(w->file, "\t\t%%pool_addr_%" PRId64 " = arith.addi %%pool, %%pool_offset_%"
			PRId64 " : index\n", at, at);
		return;
	}
	fprintf(w->file, "\t\t%%arg_%u_core_offset_%" PRId64 " = arith.constant %" PRId64 " : index\n",
		v->arg, at, at);
	fprintf(w->file, "\t\t%%arg_%u_core_%" PRId64 " = arith.addi %%arg_%u, %%arg_%u_core_offset_%"
		PRId64 " : index\n", v->arg, at, v->arg, v->arg, at);
}

static void put_execute(struct writer *w, const struct build_step *step)
{
	fprintf(w->file, "\t\tsdscbundle.sdsc_execute (");
	for (uint32_t k = 0; k < step->num_symbols; k++) {
		const struct ir_value *v = &step->symbols[k].value;

		fprintf(w->file, "%s", k ? ", " : "");
		if (v->base == IR_BASE_POOL)
			fprintf(w->file, "%%pool_addr_%" PRId64, v->constant);
		else if (v->constant)
			fprintf(w->file, "%%arg_%u_core_%" PRId64, v->arg, v->constant);
		else
			fprintf(w->file, "%%arg_%u", v->arg);
	}
	fprintf(w->file, ") {sdsc_filename=\"%s\", \"symbol_ids\"=[", step->sdsc.file);
	for (uint32_t k = 0; k < step->num_symbols; k++)
		fprintf(w->file, "%s%" PRId64, k ? ", " : "", step->symbols[k].id);
	fprintf(w->file, "]}\n");
}

static spyre_status no_memory(void)
{
	return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "bundle.mlir: no memory to write it");
}

static spyre_status put_all(struct writer *w)
{
	const struct plan *p = w->plan;
	uint8_t *done = calloc(p->num_args + 1, 1);
	uint64_t symbols = 1, slots = 64;

	for (uint32_t i = 0; i < p->num_steps; i++)
		symbols += p->step[i].num_symbols;
	while (slots < 2 * symbols)
		slots *= 2;
	w->mask = slots - 1;
	w->seen = calloc(slots, sizeof(*w->seen));
	if (!w->seen || !done) {
		free(done);
		free(w->seen);
		return no_memory();
	}
	put_params(w, done);
	for (uint32_t i = 0; i < p->num_steps; i++)
		for (uint32_t k = 0; k < p->step[i].num_symbols; k++)
			put_address(w, &p->step[i].symbols[k].value);
	for (uint32_t i = 0; i < p->num_steps; i++)
		put_execute(w, &p->step[i]);
	fprintf(w->file, "\t\treturn\n\t}\n}\n");
	free(done);
	free(w->seen);
	return SPYRE_SUCCESS;
}

spyre_status build_write_mlir(const struct plan *plan, const char *directory)
{
	struct writer w = { .plan = plan };
	spyre_status status;
	char *text = NULL;
	size_t size = 0;

	w.file = open_memstream(&text, &size);
	if (!w.file)
		return no_memory();
	status = put_all(&w);
	if (fclose(w.file) && !status)
		status = no_memory();
	if (!status)
		status = build_write_file(directory, "bundle.mlir", text, size);
	free(text);
	return status;
}
