// SPDX-License-Identifier: MIT
/* The compiler: reads a bundle directory, drives parsing and lowering. */
#include "libspyre/sdsc/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libspyre/runtime/error.h"
#include "libspyre/sdsc/lower.h"

/* Executes of one file share one parse. */
struct unit {
	const char *file;	/* of the first statement that names it */
	struct ir_sdsc sdsc;
};

struct compiler {
	const char *directory;
	uint32_t max_cores;
	struct spyre_bundle *out;
	struct ir_bundle bundle;
	struct unit *units;
	uint32_t num_units;
	uint32_t *unit_of;	/* by statement */
	struct encoder encoder;
	bool baked_pool;
	bool wrote_first, read_first;	/* baked segment 0 */
	uint32_t scratch;
	uint32_t num_args;	/* highest argument number used, + 1 */
};

static spyre_status file_error(const char *path, const char *what)
{
	return spyre_error(SPYRE_ERROR_FILE, "%s: cannot %s: %s", path, what, strerror(errno));
}

static spyre_status read_all(int fd, const char *path, char *text, size_t size)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = read(fd, text + got, size - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return file_error(path, "read it");
		if (!n)
			return spyre_error(SPYRE_ERROR_FILE,
					   "%s: ends after %zu of %zu bytes; is it being written?",
					   path, got, size);
		got += (size_t)n;
	}
	return SPYRE_SUCCESS;
}

/* A whole file of the bundle, to be freed. */
static spyre_status load(const char *directory, const char *file, char **text, size_t *size)
{
	char path[4096];
	spyre_status status;
	struct stat st;
	int fd;

	*text = NULL;
	if (snprintf(path, sizeof(path), "%s/%s", directory, file) >= (int)sizeof(path))
		return spyre_error(SPYRE_ERROR_FILE, "%s: path longer than %zu bytes", file,
				   sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return file_error(path, "open it");
	if (fstat(fd, &st)) {
		status = file_error(path, "stat it");
	} else if (!S_ISREG(st.st_mode)) {
		status = spyre_error(SPYRE_ERROR_FILE, "%s: not a regular file", path);
	} else if (st.st_size > IR_MAX_FILE_BYTES) {
		status = spyre_error(SPYRE_ERROR_FILE, "%s: %lld bytes, the limit is %u", path,
				     (long long)st.st_size, IR_MAX_FILE_BYTES);
	} else {
		*size = (size_t)st.st_size;
		*text = malloc(*size + 1);
		status = *text ? read_all(fd, path, *text, *size) :
				 spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
					     "%s: no memory for %zu bytes", path, *size);
	}
	close(fd);
	return status;
}

static spyre_status parse_unit(struct compiler *c, uint32_t stmt)
{
	const char *file = c->bundle.stmts[stmt].file;
	struct unit *unit;
	spyre_status status;
	char *text;
	size_t size;

	for (uint32_t i = 0; i < c->num_units; i++)
		if (!strcmp(c->units[i].file, file)) {
			c->unit_of[stmt] = i;
			return SPYRE_SUCCESS;
		}
	unit = &c->units[c->num_units];
	status = load(c->directory, file, &text, &size);
	if (status == SPYRE_SUCCESS)
		status = ir_parse_sdsc(file, text, size, &unit->sdsc);
	free(text);
	if (status != SPYRE_SUCCESS)
		return status;
	unit->file = file;
	c->unit_of[stmt] = c->num_units++;
	return SPYRE_SUCCESS;
}

static spyre_status parse_all(struct compiler *c)
{
	spyre_status status;
	uint32_t executes = 0;
	char *text;
	size_t size;

	status = load(c->directory, "bundle.mlir", &text, &size);
	if (status == SPYRE_SUCCESS)
		status = ir_parse_mlir("bundle.mlir", text, size, &c->bundle);
	free(text);
	if (status != SPYRE_SUCCESS)
		return status;
	for (uint32_t i = 0; i < c->bundle.num_stmts; i++)
		executes += c->bundle.stmts[i].kind == IR_STMT_EXECUTE;
	c->units = calloc(executes, sizeof(*c->units));
	c->unit_of = calloc(c->bundle.num_stmts, sizeof(*c->unit_of));
	if (!c->units || !c->unit_of)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory for a bundle of %u SDSCs", executes);
	for (uint32_t i = 0; i < c->bundle.num_stmts && status == SPYRE_SUCCESS; i++)
		if (c->bundle.stmts[i].kind == IR_STMT_EXECUTE)
			status = parse_unit(c, i);
	return status;
}

static bool is_output(const struct ir_sdsc *s, uint32_t tensor)
{
	return tensor == s->output;
}

/* Reductions list their output among the inputs; it is not read. */
static bool is_input(const struct ir_sdsc *s, uint32_t tensor)
{
	for (uint32_t i = 0; i < s->num_inputs; i++)
		if (s->input[i] == tensor && tensor != s->output)
			return true;
	return false;
}

/*
 * What has to be known of all SDSCs before the first is lowered: where the
 * tensors in LX end, and whether baked addresses keep a pool in segment 0.
 * Nothing but the order of use tells the latter: a pool is written before it
 * is read.
 */
static spyre_status survey(struct compiler *c, const struct ir_sdsc *s)
{
	if (s->core[s->num_cores - 1] >= c->max_cores)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s: uses core %u, the card has %u; compile the bundle with SENCORES=%u (docs/unsupported.md)",
				   s->file, s->core[s->num_cores - 1], c->max_cores, c->max_cores);
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
		if (tensor->lx || tensor->start[0] < 0 || tensor->start[0] >> IR_SEGMENT_SHIFT)
			continue;
		if (is_input(s, t) && !c->wrote_first)
			c->read_first = true;
		if (is_input(s, t) && c->wrote_first)
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
 * Device dimensions as the tensor's order and extents imply them, row-major.
 * Dims that it does not vary along are no dims of the argument, but for the
 * tile index of the stick.
 */
static void shape_of(const struct ir_tensor *t, spyre_arg_info *info, uint64_t *elements)
{
	uint32_t n = 0;

	*elements = t->lanes;
	for (uint32_t k = t->num_order; k-- > 0;) {
		uint32_t d = t->order[k];

		if (d != t->stick && t->scale[d] < 0)
			continue;
		if (n < SPYRE_MAX_DEVICE_RANK - 1)
			info->device_size[n++] = (int64_t)t->extent[d];
		*elements *= t->extent[d];
	}
	info->device_size[n++] = t->lanes;
	info->device_rank = n;
	info->format = (spyre_format)t->format;
}

/* An argument that several SDSCs see differently has the largest of the shapes. */
static void note_args(struct compiler *c, const struct lower *l, uint64_t *elements)
{
	const struct ir_sdsc *s = l->sdsc;

	for (uint32_t t = 0; t < s->num_tensors; t++) {
		const struct spyre_bundle_operand *kind;
		spyre_arg_info shape = { 0 }, *info;
		uint64_t n;

		if (s->tensor[t].lx || (!is_input(s, t) && !is_output(s, t)))
			continue;
		kind = &c->encoder.kind[l->address[t][0].operand];
		if (kind->kind != SPYRE_OPERAND_ARG)
			continue;
		shape_of(&s->tensor[t], &shape, &n);
		info = &c->out->args[kind->arg];
		if (kind->arg >= c->num_args)
			c->num_args = kind->arg + 1;
		if (n <= elements[kind->arg])
			continue;
		elements[kind->arg] = n;
		info->format = shape.format;
		info->device_rank = shape.device_rank;
		memcpy(info->device_size, shape.device_size, sizeof(shape.device_size));
	}
}

static void note_name(struct compiler *c, const char *root)
{
	char *name = c->out->name;
	size_t used = strlen(name);

	snprintf(name + used, sizeof(c->out->name) - used, "%s%s", used ? "+" : "", root);
}

static spyre_status lower_all(struct compiler *c)
{
	struct lower l = { .encoder = &c->encoder, .bundle = &c->bundle,
			   .baked_pool = c->baked_pool, .scratch = c->scratch };
	uint64_t elements[SPYRE_MAX_OPERANDS] = { 0 };
	spyre_status status = SPYRE_SUCCESS;

	for (uint32_t i = 0; i < c->bundle.num_stmts && status == SPYRE_SUCCESS; i++) {
		const struct ir_stmt *stmt = &c->bundle.stmts[i];

		if (stmt->kind == IR_STMT_LOOP) {
			status = encoder_loop(&c->encoder, stmt->count);
			continue;
		}
		if (stmt->kind == IR_STMT_END) {
			status = encoder_end(&c->encoder);
			continue;
		}
		l.stmt = stmt;
		l.sdsc = &c->units[c->unit_of[i]].sdsc;
		status = lower_sdsc(&l);
		if (status != SPYRE_SUCCESS)
			break;
		note_args(c, &l, elements);
		note_name(c, l.sdsc->root);
		c->out->num_sdscs++;
	}
	return status;
}

/* Arguments are numbered from 0 on without a gap, whether named or baked. */
static spyre_status fill_args(struct compiler *c)
{
	struct spyre_bundle *out = c->out;
	const struct encoder *e = &c->encoder;

	if (c->bundle.num_args > c->num_args)
		c->num_args = c->bundle.num_args;
	/* A tensor that its operation does not name has an address all the same. */
	for (uint32_t i = 0; i < e->num_operands; i++)
		if (e->kind[i].kind == SPYRE_OPERAND_ARG && e->kind[i].arg >= c->num_args)
			c->num_args = e->kind[i].arg + 1;
	out->num_args = c->num_args;
	out->num_operands = e->num_operands;
	memcpy(out->operands, e->kind, sizeof(out->operands));
	for (uint32_t i = 0; i < e->num_operands; i++) {
		spyre_arg_info *info = &out->args[e->kind[i].arg];

		if (e->kind[i].kind == SPYRE_OPERAND_POOL) {
			out->pool_bytes = e->operand[i].extent;
			continue;
		}
		info->bytes = e->operand[i].extent;
		info->role = e->operand[i].flags == SPYRE_OPERAND_WRITE ? SPYRE_ARG_OUTPUT :
			     e->operand[i].flags & SPYRE_OPERAND_WRITE ? SPYRE_ARG_INPUT_OUTPUT :
			     SPYRE_ARG_INPUT;
	}
	for (uint32_t i = 0; i < c->num_args; i++) {
		if (!out->args[i].role && i >= c->bundle.num_args)
			return spyre_error(SPYRE_ERROR_PARSE,
					   "the bundle uses argument %u but not %u; its addresses must number the arguments without a gap",
					   c->num_args - 1, i);
		out->args[i].index = (int)i;
		if (!out->args[i].role)	/* named, but no SDSC touches it */
			out->args[i].role = SPYRE_ARG_INPUT;
	}
	return SPYRE_SUCCESS;
}

static spyre_status compile(struct compiler *c)
{
	spyre_status status = c->directory ? parse_all(c) : SPYRE_SUCCESS;

	c->baked_pool = c->bundle.has_pool;
	for (uint32_t i = 0; i < c->bundle.num_stmts && status == SPYRE_SUCCESS; i++)
		if (c->bundle.stmts[i].kind == IR_STMT_EXECUTE)
			status = survey(c, &c->units[c->unit_of[i]].sdsc);
	if (status == SPYRE_SUCCESS)
		status = lower_all(c);
	if (status == SPYRE_SUCCESS)
		status = fill_args(c);
	if (status == SPYRE_SUCCESS)
		status = encoder_finish(&c->encoder, &c->out->image, &c->out->image_bytes);
	c->out->num_cores = c->encoder.num_cores;
	c->out->lx_bytes = c->encoder.lx_bytes;
	return status;
}

spyre_status spyre_bundle_compile(const char *directory, uint32_t max_cores,
				  struct spyre_bundle *bundle)
{
	struct compiler *c = calloc(1, sizeof(*c));
	spyre_status status;

	memset(bundle, 0, sizeof(*bundle));
	if (!directory || !c) {
		free(c);
		return directory ? spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
					       "no memory to compile a bundle") :
				   spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					       "the bundle's directory is NULL");
	}
	c->directory = directory;
	c->max_cores = max_cores;
	c->out = bundle;
	status = compile(c);
	encoder_fini(&c->encoder);
	ir_bundle_fini(&c->bundle);
	free(c->units);
	free(c->unit_of);
	free(c);
	if (status != SPYRE_SUCCESS) {
		spyre_bundle_fini(bundle);
		return spyre_error_prefix(status, "bundle %s", directory);
	}
	return SPYRE_SUCCESS;
}

spyre_status spyre_bundle_compile_parsed(struct ir_bundle *parsed,
					 const struct ir_sdsc *const *sdscs, uint32_t max_cores,
					 struct spyre_bundle *bundle)
{
	struct compiler *c = calloc(1, sizeof(*c));
	uint32_t n = parsed->num_stmts;
	spyre_status status;

	memset(bundle, 0, sizeof(*bundle));
	if (c) {
		c->units = calloc(n, sizeof(*c->units));
		c->unit_of = calloc(n, sizeof(*c->unit_of));
	}
	if (!c || !c->units || !c->unit_of) {
		status = spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory to compile a bundle");
	} else {
		c->max_cores = max_cores;
		c->out = bundle;
		c->bundle = *parsed;
		c->num_units = n;
		for (uint32_t i = 0; i < n; i++) {
			c->units[i] = (struct unit){ parsed->stmts[i].file, *sdscs[i] };
			c->unit_of[i] = i;
		}
		status = compile(c);
		encoder_fini(&c->encoder);
	}
	if (c) {
		free(c->units);
		free(c->unit_of);
	}
	free(c);
	if (status != SPYRE_SUCCESS)
		spyre_bundle_fini(bundle);
	return status;
}

void spyre_bundle_fini(struct spyre_bundle *bundle)
{
	free(bundle->image);
	memset(bundle, 0, sizeof(*bundle));
}
