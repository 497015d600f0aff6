// SPDX-License-Identifier: MIT
/*
 * Reads case.json, the operands of a bundle. It ignores the fields that only a
 * checker of results needs (reference, rtol, atol), and base_addresses and
 * pool_size, which the library chooses. It ignores pad as well: copies to the card
 * always zero the padding, and every case relies on that.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yyjson.h>

#include "case.h"

/* The cases of the corpus have 3 kB. */
#define MAX_CASE_BYTES (1 << 20)

struct field {
	const char *path; /* the file */
	const char *list; /* "inputs" or "outputs" */
	uint32_t position;
	struct text *why;
};

static int bad_field(const struct field *f, const char *name, const char *expected)
{
	return explain(f->why, "%s: %s[%u].%s: expected %s", f->path, f->list, f->position, name,
		       expected);
}

static int read_sizes(const struct field *f, yyjson_val *object, const char *name, int64_t min,
		      uint32_t max_count, int64_t *size, uint32_t *count)
{
	yyjson_val *array = yyjson_obj_get(object, name), *value;
	size_t i, n;

	if (!yyjson_is_arr(array))
		return bad_field(f, name, "an array of integers");
	if (yyjson_arr_size(array) > max_count)
		return bad_field(f, name,
				 max_count == SPYRE_MAX_RANK ? "at most 7 sizes"
							     : "at most 8 sizes");
	yyjson_arr_foreach(array, i, n, value)
	{
		bool huge = yyjson_is_uint(value) && yyjson_get_uint(value) > INT64_MAX;

		if (!yyjson_is_int(value) || huge || yyjson_get_sint(value) < min)
			return bad_field(f, name,
					 min ? "integers of at least -1"
					     : "integers of at least 0");
		size[i] = yyjson_get_sint(value);
	}
	*count = n;
	return 0;
}

static int read_format(const struct field *f, yyjson_val *object, const char *name,
		       spyre_format *format)
{
	const char *text = yyjson_get_str(yyjson_obj_get(object, name));

	*format = text ? spyre_format_from_name(text) : SPYRE_FORMAT_INVALID;
	if (*format == SPYRE_FORMAT_INVALID)
		return bad_field(f, name, "the name of a format");
	return 0;
}

static int read_layout(const struct field *f, yyjson_val *object, struct tensor *tensor)
{
	int64_t size[SPYRE_MAX_DEVICE_RANK], stride[SPYRE_MAX_DEVICE_RANK];
	yyjson_val *bytes = yyjson_obj_get(object, "device_bytes");
	uint32_t rank, strides;
	spyre_format format;

	if (read_format(f, object, "device_dtype", &format) ||
	    read_sizes(f, object, "device_size", 0, SPYRE_MAX_DEVICE_RANK, size, &rank) ||
	    read_sizes(f, object, "stride_map", -1, SPYRE_MAX_DEVICE_RANK, stride, &strides))
		return -1;
	if (rank != strides)
		return bad_field(f, "stride_map", "as many entries as device_size has");
	if (spyre_layout_init_explicit(&tensor->layout, rank, size, stride, format,
				       SPYRE_EA_STANDARD))
		return explain(f->why, "%s: %s[%u]: %s", f->path, f->list, f->position,
			       spyre_last_error());
	if (bytes && yyjson_get_uint(bytes) != spyre_layout_bytes(&tensor->layout))
		return explain(f->why, "%s: %s[%u].device_bytes: %llu, but device_size takes %llu",
			       f->path, f->list, f->position,
			       (unsigned long long)yyjson_get_uint(bytes),
			       (unsigned long long)spyre_layout_bytes(&tensor->layout));
	tensor->layout_given = true;
	return 0;
}

static int read_operand(const struct field *f, yyjson_val *object, struct tensor *tensor)
{
	const char *init = yyjson_get_str(yyjson_obj_get(object, "init"));
	yyjson_val *index = yyjson_obj_get(object, "arg_index");
	int64_t size[SPYRE_MAX_RANK];
	spyre_format format;
	struct text why;
	uint32_t rank;

	if (!yyjson_is_obj(object))
		return explain(f->why, "%s: %s[%u]: expected an object", f->path, f->list,
			       f->position);
	if (!yyjson_is_uint(index) || yyjson_get_uint(index) >= TENSOR_MAX)
		return bad_field(f, "arg_index", "an integer below 256");
	tensor->arg_index = yyjson_get_uint(index);
	tensor->init = tensor_init_from_name(init ? init : "randn");
	if (tensor->init == TENSOR_INIT_COUNT)
		return bad_field(f, "init", "randn, small, positive, bool, ints, ones or zero");
	if (read_sizes(f, object, "shape", 0, SPYRE_MAX_RANK, size, &rank) ||
	    read_format(f, object, "dtype", &format) || read_layout(f, object, tensor))
		return -1;
	if (tensor_alloc(tensor, rank, size, format, &why))
		return explain(f->why, "%s: %s[%u]: %s", f->path, f->list, f->position, why.s);
	return 0;
}

static int read_operands(const char *path, yyjson_val *root, bool output, struct tensor_list *list,
			 struct text *why)
{
	struct field f = {.path = path, .list = output ? "outputs" : "inputs", .why = why};
	yyjson_val *array = yyjson_obj_get(root, f.list), *object;
	size_t i, n;

	if (!yyjson_is_arr(array))
		return explain(why, "%s: %s: expected an array", path, f.list);
	yyjson_arr_foreach(array, i, n, object)
	{
		struct tensor *tensor = tensor_add(list, output, why);

		f.position = i;
		if (!tensor || read_operand(&f, object, tensor))
			return -1;
	}
	return 0;
}

/* Checks that the argument positions are 0 … n-1, each used once. */
static int check_arguments(const char *path, const struct tensor_list *list, struct text *why)
{
	bool seen[TENSOR_MAX] = {false};

	for (uint32_t i = 0; i < list->count; i++) {
		int index = list->at[i].arg_index;

		if (index >= list->count)
			return explain(why, "%s: arg_index %d is out of range for %u operands",
				       path, index, list->count);
		if (seen[index])
			return explain(why, "%s: arg_index %d appears twice", path, index);
		seen[index] = true;
	}
	return 0;
}

static char *read_text(const char *path, size_t *length, struct text *why)
{
	FILE *file = fopen(path, "re");
	char *text;

	if (!file) {
		explain(why, "cannot open %s: %s", path, strerror(errno));
		return NULL;
	}
	text = malloc(MAX_CASE_BYTES + 1);
	*length = text ? fread(text, 1, MAX_CASE_BYTES + 1, file) : 0;
	if (!text)
		explain(why, "cannot read %s: no memory for %d bytes of text", path,
			MAX_CASE_BYTES + 1);
	else if (ferror(file))
		explain(why, "cannot read %s: %s", path, strerror(errno));
	else if (*length > MAX_CASE_BYTES)
		explain(why, "cannot read %s: it has more than %d bytes", path, MAX_CASE_BYTES);
	else
		goto out;
	free(text);
	text = NULL;
out:
	fclose(file);
	return text;
}

int case_read(const char *path, struct tensor_list *list, struct text *why)
{
	yyjson_read_err error;
	yyjson_doc *doc;
	size_t length;
	char *text;
	int err;

	text = read_text(path, &length, why);
	if (!text)
		return -1;
	doc = yyjson_read_opts(text, length, 0, NULL, &error);
	free(text);
	if (!doc)
		return explain(why, "%s: offset %zu: %s", path, error.pos, error.msg);
	err = read_operands(path, yyjson_doc_get_root(doc), false, list, why);
	if (!err)
		err = read_operands(path, yyjson_doc_get_root(doc), true, list, why);
	if (!err)
		err = check_arguments(path, list, why);
	yyjson_doc_free(doc);
	return err;
}
