// SPDX-License-Identifier: MIT
/* The compiler: makes a program and its argument table from a parsed bundle. */
#include "libspyre/sdsc/lower/compile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/array.h"
#include "libspyre/base/error.h"
#include "libspyre/sdsc/lower/lower_apart.h"
#include "libspyre/sdsc/lower/lower_fit.h"
#include "libspyre/sdsc/lower/operations.h"
#include "libspyre/sdsc/lower/resident.h"
#include "libspyre/sdsc/lower/symbol_cut.h"
#include "libspyre/sdsc/lower/written.h"
#include "libspyre/sdsc/parse/source.h"
#include "libspyre/sdsc/parse/symbols.h"

struct compiler {
	uint32_t max_cores;
	struct spyre_bundle *out;
	const struct bundle_source *source;
	const int64_t *values;		/* of the symbols; NULL: the maxima */
	struct encoder encoder;
	bool baked_pool;
	bool baked;		/* an address is a number instead of a symbol */
	bool wrote_first, read_first;	/* first use of baked segment 0 */
	uint32_t scratch;
	size_t image_bytes;	/* if each SDSC takes one instruction per core, as most do */
	uint32_t num_args;	/* highest argument number used, + 1 */
	bool stated[SPYRE_MAX_OPERANDS];	/* arguments whose rows a file states */
	struct ir_sdsc fitted;	/* the current SDSC, cut to its memory */
	size_t max_labels;
	struct written written;
	struct symbol_cut cut;
};

static bool is_output(const struct ir_sdsc *s, uint32_t tensor)
{
	return tensor == s->output;
}

/*
 * Collects properties of all SDSCs before the first is lowered: the end of the tensors in
 * LX, the likely size of the program, and whether segment 0 of baked addresses is a pool.
 * Only the order of use shows the latter: a pool is written before it is read, and argument
 * 0 is the first to be used.
 */
static spyre_status survey(struct compiler *c, const struct ir_sdsc *s)
{
	if (s->core[s->num_cores - 1] >= c->max_cores)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s: uses core %u, the card has %u; compile the bundle with SENCORES=%u (docs/unsupported.md)",
				   s->file, s->core[s->num_cores - 1], c->max_cores, c->max_cores);
	c->written.enabled = c->written.enabled || s->indirect;
	c->image_bytes += s->num_cores * (sizeof(struct spyre_prog_stream) +
					  sizeof(struct spyre_instr) +
					  (s->num_inputs + 1) * sizeof(struct spyre_view));
	for (uint32_t t = 0; t < s->num_tensors; t++) {
		const struct ir_tensor *tensor = &s->tensor[t];
		uint64_t end = lower_box_bytes(s, tensor);

		for (uint32_t i = 0; i < s->num_cores; i++) {
			uint64_t start = (uint64_t)tensor->start[i];

			if (tensor->lx && end <= SPYRE_LX_BYTES && start + end > c->scratch &&
			    start < SPYRE_LX_BYTES)
				c->scratch = (uint32_t)(start + end + SPYRE_STICK_BYTES - 1) &
					     ~(SPYRE_STICK_BYTES - 1);
		}
		c->baked = c->baked || (!tensor->lx && tensor->start[0] >= 0);
		if (tensor->lx || tensor->start[0] < 0 || tensor->start[0] >> IR_SEGMENT_SHIFT)
			continue;
		if (lower_is_input(s, t) && !c->wrote_first)
			c->read_first = true;
		if (lower_is_input(s, t) && c->wrote_first)
			c->baked_pool = true;
	}
	for (uint32_t t = 0; t < s->num_tensors; t++) {
		const struct ir_tensor *tensor = &s->tensor[t];

		if (is_output(s, t) && !tensor->lx && tensor->start[0] >= 0 &&
		    !(tensor->start[0] >> IR_SEGMENT_SHIFT) && !c->read_first)
			c->wrote_first = true;
	}
	return SPYRE_SUCCESS;
}

/*
 * Derives row-major device dimensions from the tensor's order and extents. Dims
 * that it does not vary along are left out, except for the tile index of the stick.
 */
static void shape_of(const struct ir_tensor *t, spyre_arg_info *info, uint64_t *elements)
{
	uint32_t n = 0;

	*elements = t->lanes;
	for (uint32_t k = t->num_order; k-- > 0;) {
		uint32_t d = t->order[k];

		if (d != t->stick && t->scale[d] < 0 && !(t->rows && (t->indexed >> d & 1)))
			continue;
		if (n < SPYRE_MAX_DEVICE_RANK - 1)
			info->device_size[n++] = (int64_t)t->extent[d];
		else	/* merged with the last one */
			info->device_size[n - 1] *= (int64_t)t->extent[d];
		*elements *= t->extent[d];
	}
	info->device_size[n++] = t->lanes;
	info->device_rank = n;
	info->format = (spyre_format)t->format;
}

/*
 * Records arguments; one with different shapes in several SDSCs gets the largest. A table whose
 * file does not state its rows has as many as its memory holds, so it has no shape.
 */
static spyre_status note_args(struct compiler *c, const struct lower *l, uint64_t *elements)
{
	const struct ir_sdsc *s = l->sdsc;

	for (uint32_t t = 0; t < s->num_tensors; t++) {
		const struct spyre_bundle_operand *kind;
		spyre_arg_info shape = { 0 }, *info;
		uint64_t n;

		if (s->tensor[t].lx || (!lower_is_input(s, t) && !is_output(s, t)))
			continue;
		kind = &c->encoder.kind[l->address[t][0].operand];
		if (kind->kind != SPYRE_OPERAND_ARG)
			continue;
		shape_of(&s->tensor[t], &shape, &n);
		info = &c->out->args[kind->arg];
		if (kind->arg >= c->num_args)
			c->num_args = kind->arg + 1;
		if (s->tensor[t].indexed && s->tensor[t].rows)
			c->stated[kind->arg] = true;
		else if (s->tensor[t].indexed)
			c->out->table[kind->arg] = true;
		if (c->stated[kind->arg] && c->out->table[kind->arg])
			return lower_unsupported(l, "argument %u is a table whose rows only one of several SDSCs states; use indexedSizes_ in all of them",
						 kind->arg);
		if (s->tensor[t].indexed && !s->tensor[t].rows) {
			if (!info->format)
				info->format = shape.format;
			continue;
		}
		if (n <= elements[kind->arg])
			continue;
		elements[kind->arg] = n;
		info->format = shape.format;
		info->device_rank = shape.device_rank;
		memcpy(info->device_size, shape.device_size, sizeof(shape.device_size));
	}
	return SPYRE_SUCCESS;
}

static void note_name(struct compiler *c, const char *root)
{
	char *name = c->out->name;
	size_t used = strlen(name);

	snprintf(name + used, sizeof(c->out->name) - used, "%s%s", used ? "+" : "", root);
}

/* The steps from here on belong to this SDSC. */
static spyre_status note_label(struct compiler *c, const char *root)
{
	struct spyre_bundle *out = c->out;
	struct bundle_label *label;

	if (!spyre_array_reserve(&out->labels, &c->max_labels, out->num_labels + 1,
				 sizeof(*label)))
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory for the names of %u SDSCs", out->num_labels + 1);
	label = &out->labels[out->num_labels++];
	label->first_step = (uint32_t)c->encoder.num_steps;
	snprintf(label->name, sizeof(label->name), "%s", root);
	return SPYRE_SUCCESS;
}

/* Lowers the groups of cores that bound values cut the current SDSC into. */
static spyre_status lower_groups(struct compiler *c, struct lower *l, enum lower_pass pass)
{
	spyre_status status = symbol_cut_begin(l, &c->source->symbols, c->values, &c->cut);

	l->sdsc = &c->cut.part;
	l->pass = pass;
	while (!status && symbol_cut_next(&c->cut))
		status = lower_sdsc(l);
	l->sdsc = &c->fitted;
	l->pass = LOWER_ALL;
	return status;
}

/* Sets *@clash if a group stores where a later one still has to read. */
static spyre_status compare_groups(struct compiler *c, struct lower *l, bool *clash)
{
	struct apart_groups groups = { .num = 0 };
	spyre_status status = symbol_cut_begin(l, &c->source->symbols, c->values, &c->cut);

	*clash = false;
	l->encoder->file = c->fitted.file;
	l->sdsc = &c->cut.part;
	while (!status && !*clash && symbol_cut_next(&c->cut))
		status = apart_add_group(&groups, l, clash);
	l->sdsc = &c->fitted;
	return status;
}

/* Lowers the current SDSC, in parts if bound values cut it. */
static spyre_status lower_parts(struct compiler *c, struct lower *l)
{
	bool clash;

	if (!c->fitted.symbolic)
		return lower_sdsc(l);
	TRY(compare_groups(c, l, &clash));
	if (!clash)
		return lower_groups(c, l, LOWER_ALL);
	TRY(lower_groups(c, l, LOWER_MAKE));
	return lower_groups(c, l, LOWER_STORE);
}

static spyre_status lower_all(struct compiler *c)
{
	const struct ir_bundle *bundle = &c->source->bundle;
	struct lower l = { .encoder = &c->encoder, .bundle = bundle,
			   .baked_pool = c->baked_pool, .scratch = c->scratch,
			   .written = &c->written };
	uint64_t elements[SPYRE_MAX_OPERANDS] = { 0 };

	for (uint32_t i = 0; i < bundle->num_stmts; i++) {
		const struct ir_stmt *stmt = &bundle->stmts[i];

		if (stmt->kind == IR_STMT_LOOP) {
			if (!c->encoder.depth)
				c->written.first_stmt = i;
			TRY(encoder_loop(&c->encoder, stmt->count));
			continue;
		}
		if (stmt->kind == IR_STMT_END) {
			TRY(encoder_end(&c->encoder));
			continue;
		}
		l.stmt = stmt;
		ir_copy_sdsc(&c->fitted, bundle_source_sdsc(c->source, i));
		l.sdsc = &c->fitted;
		TRY(lower_fit(&l, c->source, &c->fitted));
		TRY(note_label(c, l.sdsc->root));
		TRY(lower_parts(c, &l));
		TRY(written_note(&c->written, &l));
		TRY(note_args(c, &l, elements));
		note_name(c, l.sdsc->root);
		c->out->num_sdscs++;
	}
	return SPYRE_SUCCESS;
}

/*
 * Places intermediates one after the other: first the pool, which the bundle
 * divides itself, then each allocation.
 */
static spyre_status place_pool(struct compiler *c)
{
	struct spyre_bundle *out = c->out;

	out->pool_bytes = c->source->spec.pool_size;
	for (uint32_t pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < out->num_operands; i++) {
			struct spyre_bundle_operand *o = &out->operands[i];
			uint64_t extent = c->encoder.operand[i].extent;

			if (o->kind != SPYRE_OPERAND_POOL || (o->arg != 0) != pass)
				continue;
			if (!pass && extent <= c->source->spec.pool_size)
				continue;
			if (!pass && c->source->spec.has_pool_size)
				return spyre_error(SPYRE_ERROR_PARSE,
						   "launch_spec.json: pool_size is %" PRIu64 ", the SDSCs use %" PRIu64 " bytes of the pool",
						   c->source->spec.pool_size, extent);
			if (pass && extent > c->source->bundle.mem[o->arg - 1].bytes)
				return spyre_error(SPYRE_ERROR_PARSE,
						   "bundle.mlir:%u: device_mem_allocate of %" PRIu64 " bytes, the SDSCs use %" PRIu64,
						   c->source->bundle.mem[o->arg - 1].line,
						   c->source->bundle.mem[o->arg - 1].bytes, extent);
			o->offset = pass ? out->pool_bytes : 0;
			out->pool_bytes = (o->offset + extent + SPYRE_STICK_BYTES - 1) &
					  ~(uint64_t)(SPYRE_STICK_BYTES - 1);
		}
	return SPYRE_SUCCESS;
}

/* Numbers arguments from 0 on, named and baked ones; SDSCs need not use all of them. */
static void fill_args(struct compiler *c)
{
	struct spyre_bundle *out = c->out;
	const struct encoder *e = &c->encoder;
	uint32_t named = c->source->bundle.num_args;

	if (named > c->num_args)
		c->num_args = named;
	/* A tensor that its operation does not use still has an address. */
	for (uint32_t i = 0; i < e->num_operands; i++)
		if (e->kind[i].kind == SPYRE_OPERAND_ARG && e->kind[i].arg >= c->num_args)
			c->num_args = e->kind[i].arg + 1;
	out->num_args = c->num_args;
	out->named_args = c->source->symbolic_args;
	out->num_operands = e->num_operands;
	memcpy(out->operands, e->kind, sizeof(out->operands));
	for (uint32_t i = 0; i < e->num_operands; i++) {
		spyre_arg_info *info = &out->args[e->kind[i].arg];

		if (e->kind[i].kind == SPYRE_OPERAND_POOL)
			continue;
		info->bytes = e->operand[i].extent;
		info->role = e->operand[i].flags == SPYRE_OPERAND_WRITE ? SPYRE_ARG_OUTPUT :
			     e->operand[i].flags & SPYRE_OPERAND_WRITE ? SPYRE_ARG_INPUT_OUTPUT :
			     SPYRE_ARG_INPUT;
	}
	for (uint32_t i = 0; i < c->num_args; i++) {
		out->args[i].index = (int)i;
		if (!out->args[i].role)
			out->args[i].role = SPYRE_ARG_INPUT;
	}
}

static spyre_status compile(struct compiler *c)
{
	const struct ir_bundle *bundle = &c->source->bundle;
	const struct launch_spec *spec = &c->source->spec;

	c->image_bytes = sizeof(struct spyre_prog_header) + sizeof(c->encoder.operand) +
			 bundle->num_stmts * sizeof(struct spyre_prog_step);
	for (uint32_t i = 0; i < bundle->num_stmts; i++)
		if (bundle->stmts[i].kind == IR_STMT_EXECUTE)
			TRY(survey(c, bundle_source_sdsc(c->source, i)));
	c->baked_pool |= c->baked && !c->read_first && !c->wrote_first;
	/* Other kernels' tensors may lie there. */
	if (c->scratch < c->source->lx_kept)
		c->scratch = c->source->lx_kept;
	c->encoder.lx_kept = c->source->lx_kept;
	/* pool_size of launch_spec.json, if present, decides whether there is a pool. */
	if (spec->has_pool_size)
		c->baked_pool = spec->pool_size;
	c->baked_pool |= bundle->has_pool;
	TRY(encoder_expect(&c->encoder, c->image_bytes));
	TRY(lower_all(c));
	TRY(resident_check(c->source));
	fill_args(c);
	TRY(place_pool(c));
	TRY(encoder_finish(&c->encoder, &c->out->image, &c->out->image_bytes));
	c->out->num_cores = c->encoder.num_cores;
	c->out->lx_bytes = c->encoder.lx_bytes;
	c->out->lx_kept = encoder_lx_kept(&c->encoder);
	c->out->lx_asked = c->source->lx_kept;
	return SPYRE_SUCCESS;
}

/* Adds the remedy to the overflow of a bundle that keeps LX. */
static spyre_status explain_overflow(spyre_status status, uint32_t lx_kept)
{
	return spyre_error(status,
			   "%s; the first %u bytes of LX are kept for other kernels, so keep fewer (lx_kept; torch-spyre: a larger DXP_LX_FRAC_AVAIL)",
			   spyre_last_error(), lx_kept);
}

spyre_status spyre_bundle_lower(const struct bundle_source *source, const int64_t *values,
				uint32_t max_cores, struct spyre_bundle *bundle)
{
	struct compiler *c = calloc(1, sizeof(*c));
	spyre_status status;

	memset(bundle, 0, sizeof(*bundle));
	if (!c)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory to compile a bundle");
	c->source = source;
	c->written.source = source;
	c->values = values;
	c->max_cores = max_cores;
	c->out = bundle;
	status = compile(c);
	if (!status)
		status = launch_spec_apply(&source->spec, &source->symbols, bundle);
	if (status == SPYRE_ERROR_LX_OVERFLOW && source->lx_kept)
		status = explain_overflow(status, source->lx_kept);
	encoder_fini(&c->encoder);
	written_fini(&c->written);
	free(c);
	if (status)
		spyre_bundle_fini(bundle);
	return status;
}

spyre_status spyre_bundle_compile_parsed(const struct ir_bundle *parsed,
					 struct ir_sdsc *const *sdscs, uint32_t max_cores,
					 struct spyre_bundle *bundle)
{
	struct bundle_source source = { .bundle = *parsed, .symbolic_args = true,
					.num_units = parsed->num_stmts };
	spyre_status status;

	memset(bundle, 0, sizeof(*bundle));
	source.units = calloc(parsed->num_stmts, sizeof(*source.units));
	source.unit_of = calloc(parsed->num_stmts, sizeof(*source.unit_of));
	if (source.units && source.unit_of) {
		for (uint32_t i = 0; i < parsed->num_stmts; i++) {
			source.units[i] = (struct bundle_unit){ parsed->stmts[i].file, sdscs[i] };
			source.unit_of[i] = i;
		}
		status = spyre_bundle_lower(&source, NULL, max_cores, bundle);
	} else {
		status = spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				     "no memory to compile a bundle");
	}
	free(source.units);
	free(source.unit_of);
	return status;
}
