// SPDX-License-Identifier: MIT
/* Builder: the operations, and the way from operands to files. */
#include "libspyre/sdsc/build.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libspyre/runtime/error.h"
#include "libspyre/sdsc/lower.h"

static const struct build_op operations[] = {
	{ "add", "add", BUILD_POINTWISE, 2 },
	{ "sub", "sub", BUILD_POINTWISE, 2 },
	{ "mul", "mul", BUILD_POINTWISE, 2 },
	{ "maximum", "maximum", BUILD_POINTWISE, 2 },
	{ "minimum", "minimum", BUILD_POINTWISE, 2 },
	{ "relu", "relufwd", BUILD_POINTWISE, 1 },
	{ "neg", "neg", BUILD_POINTWISE, 1 },
	{ "abs", "abs", BUILD_POINTWISE, 1 },
	{ "identity", "identity", BUILD_POINTWISE, 1 },
	{ "eq", "equal", BUILD_POINTWISE, 2 },
	{ "ne", "notequal", BUILD_POINTWISE, 2 },
	{ "gt", "greaterthan", BUILD_POINTWISE, 2 },
	{ "lt", "lesserthan", BUILD_POINTWISE, 2 },
	{ "ge", "greaterequal", BUILD_POINTWISE, 2 },
	{ "le", "lesserequal", BUILD_POINTWISE, 2 },
	{ "where", "where3", BUILD_POINTWISE, 3 },
	{ "sum", "sum", BUILD_REDUCE, 1 },
	{ "mean", "mean", BUILD_REDUCE, 1 },
	{ "amax", "max", BUILD_REDUCE, 1 },
	{ "amin", "min", BUILD_REDUCE, 1 },
	{ "matmul", "batchmatmul", BUILD_MATMUL, 2 },
};

#define NUM_OPERATIONS (sizeof(operations) / sizeof(operations[0]))

const char *const *spyre_sdsc_operations(void)
{
	static const char *const names[] = {
		"add", "sub", "mul", "maximum", "minimum", "relu", "neg", "abs", "identity",
		"eq", "ne", "gt", "lt", "ge", "le", "where", "sum", "mean", "amax", "amin",
		"matmul", NULL,
	};

	_Static_assert(sizeof(names) / sizeof(names[0]) == NUM_OPERATIONS + 1,
		       "every operation has its name here");
	return names;
}

/* What is wrong with the environment is said, not guessed around. */
static spyre_status default_cores(uint32_t *cores)
{
	const char *text = getenv("SENCORES");
	char *end;
	long n;

	*cores = SPYRE_MAX_CORES;
	if (!text || !*text)
		return SPYRE_SUCCESS;
	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || *end || n < 1 || n > (long)SPYRE_MAX_CORES)
		return spyre_error(SPYRE_ERROR_CONFIGURATION,
				   "SENCORES=%s: expected a number of cores from 1 to %u", text,
				   SPYRE_MAX_CORES);
	*cores = (uint32_t)n;
	return SPYRE_SUCCESS;
}

uint64_t build_offset(const struct ir_sdsc *s, const struct ir_tensor *t, uint32_t core)
{
	uint64_t offset = 0;

	for (uint32_t d = 0; d < s->num_dims; d++)
		if (t->scale[d] > 0)
			offset += s->slice[core][d] * t->stride[d] *
				  (uint64_t)(d == t->stick ? s->el[d] / t->lanes : s->el[d]);
	return offset;
}

spyre_status build_place(struct ir_sdsc *s)
{
	s->num_cores = 1;
	for (uint32_t d = 0; d < s->num_dims; d++) {
		s->el[d] = s->size[d] / s->slices[d];
		s->num_cores *= (uint32_t)s->slices[d];
	}
	for (uint32_t c = 0; c < s->num_cores; c++) {
		uint32_t rest = c;

		s->core[c] = c;
		for (uint32_t d = 0; d < s->num_dims; d++) {
			s->slice[c][d] = rest % (uint32_t)s->slices[d];
			rest /= (uint32_t)s->slices[d];
		}
	}
	for (uint32_t i = 0; i < s->num_tensors; i++) {
		struct ir_tensor *t = &s->tensor[i];
		uint64_t box;

		if (!ir_place(s, t))
			return spyre_error(SPYRE_ERROR_LAYOUT, "%s: operand %u has 2^63 bytes or more",
					   s->op, i);
		box = lower_box_bytes(s, t);
		if (box > SPAN_LIMIT)
			return spyre_error(SPYRE_ERROR_SPAN_LIMIT,
					   "%s: operand %u: one of %u cores reaches over %" PRIu64 " bytes, the limit is %llu; use more cores or smaller tensors",
					   s->op, i, s->num_cores, box, SPAN_LIMIT);
	}
	return SPYRE_SUCCESS;
}

spyre_status build_write_file(const char *directory, const char *file, const char *text,
			      size_t size)
{
	char path[4096], draft[4096];
	bool ok;
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/%s", directory, file) >= (int)sizeof(path) ||
	    snprintf(draft, sizeof(draft), "%s/.%s.new", directory, file) >= (int)sizeof(draft))
		return spyre_error(SPYRE_ERROR_FILE, "%s: path longer than %zu bytes", file,
				   sizeof(path));
	/* A reader never sees half a file. */
	f = fopen(draft, "we");
	if (!f)
		return spyre_error(SPYRE_ERROR_FILE, "%s: cannot create it: %s", draft,
				   strerror(errno));
	ok = fwrite(text, 1, size, f) == size;
	if (fclose(f) || !ok || rename(draft, path)) {
		spyre_status status = spyre_error(SPYRE_ERROR_FILE, "%s: cannot write it: %s", path,
						  strerror(errno));

		unlink(draft);
		return status;
	}
	return SPYRE_SUCCESS;
}

static spyre_status check_slices(const struct ir_sdsc *s)
{
	int64_t product = 1;

	for (uint32_t d = 0; d < s->num_dims; d++) {
		int64_t unit = 1;

		for (uint32_t i = 0; i < s->num_tensors; i++)
			if (s->tensor[i].stick == d && s->tensor[i].lanes > unit)
				unit = s->tensor[i].lanes;
		if (s->slices[d] < 1 || s->size[d] / unit % s->slices[d])
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s: %" PRId64 " slices do not divide %s of %" PRId64,
					   s->op, s->slices[d], s->dim[d], s->size[d]);
		product *= s->slices[d];
		if (product > (int64_t)SPYRE_MAX_CORES)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s: more slices than the %u cores of a card", s->op,
					   SPYRE_MAX_CORES);
	}
	return SPYRE_SUCCESS;
}

spyre_status build_bundle(const char *name, const spyre_sdsc_operand *operands,
			  uint32_t num_operands, uint32_t cores, const int64_t *slices,
			  const char *directory)
{
	struct ir_sdsc *s = calloc(1, sizeof(*s));
	const struct build_op *op = NULL;
	spyre_status status;

	if (!s)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory to build %s", name);
	for (size_t i = 0; i < NUM_OPERATIONS; i++)
		if (!strcmp(operations[i].name, name))
			op = &operations[i];
	status = op ? build_shapes(op, operands, num_operands, s) :
		 spyre_error(SPYRE_ERROR_UNSUPPORTED,
			     "\"%s\" is no operation of the builder; spyre_sdsc_operations() lists them",
			     name);
	if (status == SPYRE_SUCCESS && slices) {
		memcpy(s->slices, slices, s->num_dims * sizeof(*slices));
		status = check_slices(s);
	} else if (status == SPYRE_SUCCESS) {
		build_divide(op, cores, s);
	}
	if (status == SPYRE_SUCCESS)
		status = build_place(s);
	if (status == SPYRE_SUCCESS && mkdir(directory, 0777) && errno != EEXIST)
		status = spyre_error(SPYRE_ERROR_FILE, "%s: cannot make the directory: %s",
				     directory, strerror(errno));
	if (status == SPYRE_SUCCESS)
		status = build_write_json(s, op->kind, directory);
	if (status == SPYRE_SUCCESS)
		status = build_write_mlir(s, directory);
	free(s);
	return status;
}

spyre_status spyre_sdsc_build(const char *op, const spyre_sdsc_operand *operands,
			      uint32_t num_operands, uint32_t cores, const char *directory)
{
	spyre_status status = SPYRE_SUCCESS;

	if (!op || !operands || !directory)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_build: op, operands or directory is NULL");
	if (cores > SPYRE_MAX_CORES)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_build: %u cores, a card has at most %u", cores,
				   SPYRE_MAX_CORES);
	if (!cores)
		status = default_cores(&cores);
	if (status == SPYRE_SUCCESS)
		status = build_bundle(op, operands, num_operands, cores, NULL, directory);
	return status;
}
