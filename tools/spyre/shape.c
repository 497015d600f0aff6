// SPDX-License-Identifier: MIT
/* Parses operands of the command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shape.h"

/* Exceeds the memory of eight cards of 128 GiB, and keeps sizes in bytes within int64. */
#define MAX_ELEMENTS (1ll << 42)

int64_t shape_elements(uint32_t rank, const int64_t *size)
{
	int64_t elements = 1;

	for (uint32_t d = 0; d < rank; d++) {
		if (size[d] < 0)
			return -1;
		if (!size[d])
			return 0;
	}
	for (uint32_t d = 0; d < rank; d++)
		if (__builtin_mul_overflow(elements, size[d], &elements) || elements > MAX_ELEMENTS)
			return -1;
	return elements;
}

void shape_format(uint32_t rank, const int64_t *size, char *buffer, size_t bytes)
{
	size_t used = 0;

	snprintf(buffer, bytes, "%s", rank ? "" : "scalar");
	for (uint32_t d = 0; d < rank && used < bytes; d++)
		used += snprintf(buffer + used, bytes - used, "%s%lld", d ? "x" : "",
				 (long long)size[d]);
}

const char *shape_format_name(spyre_format format)
{
	static const char *const names[] = {"dl16",  "fp16",  "fp32",  "bf16",	"fp64", "int8",
					    "int16", "int32", "int64", "uint8", "bool",
					    "fp8_e4m3", "fp8_e5m2"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (spyre_format_from_name(names[i]) == format)
			return names[i];
	return spyre_format_name(format) ? spyre_format_name(format) : "unknown";
}

static int expected(struct text *why, const char *word, const char *at, const char *what)
{
	if (*at)
		return explain(why, "'%s': expected %s at character %d, found '%c'", word, what,
			       (int)(at - word) + 1, *at);
	return explain(why, "'%s': expected %s at its end", word, what);
}

/* "512x1024" or "scalar" up to @end. */
static int parse_shape(const char *word, const char *end, struct shape_spec *spec, struct text *why)
{
	const char *at = word;

	spec->has_shape = true;
	if (end - word == 6 && !strncmp(word, "scalar", 6))
		return 0;
	for (;;) {
		int64_t size = 0;

		if (spec->rank == SPYRE_MAX_RANK)
			return explain(why, "'%s': more than %d dimensions", word, SPYRE_MAX_RANK);
		if (at == end || *at < '0' || *at > '9')
			return expected(why, word, at, "a number");
		for (; at < end && *at >= '0' && *at <= '9'; at++) {
			size = size * 10 + (*at - '0');
			if (size > MAX_ELEMENTS)
				return explain(why, "'%s': a dimension exceeds %lld", word,
					       MAX_ELEMENTS);
		}
		spec->size[spec->rank++] = size;
		if (at == end)
			break;
		if (*at != 'x')
			return expected(why, word, at, "'x' or '@'");
		at++;
	}
	if (shape_elements(spec->rank, spec->size) < 0)
		return explain(why, "'%s': more than %lld elements", word, MAX_ELEMENTS);
	return 0;
}

/* "sparse" or "1,0,2" or "0,1,-1": the dim_order of the layout. */
static int parse_order(const char *word, const char *order, struct shape_spec *spec,
		       struct text *why)
{
	const char *at = order;

	if (!strcmp(order, "sparse")) {
		spec->order = SHAPE_ORDER_SPARSE;
		return 0;
	}
	spec->order = SHAPE_ORDER_GIVEN;
	for (;;) {
		char *end;
		long dim;

		if (!(*at == '-' || (*at >= '0' && *at <= '9')))
			return expected(why, word, at, "a dimension or 'sparse'");
		dim = strtol(at, &end, 10);
		if (dim < -1 || dim >= SPYRE_MAX_RANK)
			return explain(why, "'%s': dimension %.*s is out of range", word,
				       (int)(end - at), at);
		if (spec->order_len == SPYRE_MAX_RANK + 1)
			return explain(why, "'%s': the order has more than %d dimensions", word,
				       SPYRE_MAX_RANK + 1);
		spec->dim_order[spec->order_len++] = dim;
		if (!*end)
			return 0;
		if (*end != ',')
			return expected(why, word, end, "','");
		at = end + 1;
	}
}

/* "fp16" or "fp16:ORDER", up to the end of the word. */
static int parse_format(const char *word, const char *text, struct shape_spec *spec,
			struct text *why)
{
	const char *colon = strchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : strlen(text);
	char name[32];

	snprintf(name, sizeof(name), "%.*s", (int)length, text);
	spec->format = length < sizeof(name) ? spyre_format_from_name(name) : SPYRE_FORMAT_INVALID;
	if (spec->format == SPYRE_FORMAT_INVALID)
		return explain(why,
			       "'%s': unknown format '%s'; valid: fp16, bf16, fp32, bool, int8, "
			       "int16, int32, int64, uint8, fp8_e4m3, fp8_e5m2",
			       word, name);
	return colon ? parse_order(word, colon + 1, spec, why) : 0;
}

static int parse_shape_and_format(const char *word, struct shape_spec *spec, struct text *why)
{
	const char *at = strchr(word, '@');

	if (!at)
		return explain(
			why, "'%s': the format is missing; write SHAPE@FORMAT, as in 512x1024@fp16",
			word);
	if (parse_shape(word, at, spec, why))
		return -1;
	return parse_format(word, at + 1, spec, why);
}

int shape_parse_default(const char *word, spyre_format format, struct shape_spec *spec,
			struct text *why)
{
	memset(spec, 0, sizeof(*spec));
	if (strchr(word, '@'))
		return parse_shape_and_format(word, spec, why);
	spec->format = format;
	return parse_shape(word, word + strlen(word), spec, why);
}

/* Returns the end of ".npy" at the end of @word or before an '@'; NULL if there is none. */
static const char *file_end(const char *word)
{
	const char *end = NULL;

	for (const char *at = word; (at = strstr(at, ".npy")); at += 4)
		if (at > word && (!at[4] || at[4] == '@'))
			end = at + 4;
	return end;
}

static int set_path(struct shape_spec *spec, const char *path, size_t length, struct text *why)
{
	spec->path = strndup(path, length);
	return spec->path ? 0 : explain(why, "no memory for %zu bytes of a path", length + 1);
}

int shape_parse_input(const char *word, struct shape_spec *spec, struct text *why)
{
	const char *end = file_end(word);
	int err;

	memset(spec, 0, sizeof(*spec));
	if (!end) {
		err = parse_shape_and_format(word, spec, why);
	} else {
		err = set_path(spec, word, end - word, why);
		if (!err && *end)
			err = parse_format(word, end + 1, spec, why);
	}
	if (err)
		shape_fini(spec);
	return err;
}

int shape_parse_output(const char *word, struct shape_spec *spec, struct text *why)
{
	const char *equals = strchr(word, '=');
	char *shape;
	int err;

	memset(spec, 0, sizeof(*spec));
	if (!equals && file_end(word))
		return explain(why, "'%s': an output needs a shape; write SHAPE@FORMAT=FILE.npy",
			       word);
	if (equals && !equals[1])
		return explain(why, "'%s': the file name after '=' is missing", word);
	shape = strndup(word, equals ? (size_t)(equals - word) : strlen(word));
	if (!shape)
		return explain(why, "no memory for %zu bytes of operand '%s'", strlen(word) + 1,
			       word);
	err = parse_shape_and_format(shape, spec, why);
	free(shape);
	if (!err && equals)
		err = set_path(spec, equals + 1, strlen(equals + 1), why);
	if (err)
		shape_fini(spec);
	return err;
}

void shape_fini(struct shape_spec *spec)
{
	free(spec->path);
	spec->path = NULL;
}

spyre_status shape_layout(const struct shape_spec *spec, spyre_layout *layout)
{
	int64_t stride[SPYRE_MAX_RANK], step = 1;
	int32_t order[SPYRE_MAX_RANK + 1];
	uint32_t length = spec->order_len;

	if (spec->order == SHAPE_ORDER_AUTO)
		return spyre_layout_init(layout, spec->rank, spec->size, spec->format);
	for (uint32_t d = spec->rank; d-- > 0;) {
		stride[d] = step;
		step *= spec->size[d] ? spec->size[d] : 1;
	}
	memcpy(order, spec->dim_order, sizeof(order));
	if (spec->order == SHAPE_ORDER_SPARSE) {
		length = spec->rank + 1;
		for (uint32_t d = 0; d < spec->rank; d++)
			order[d] = d;
		order[spec->rank] = -1;
	}
	return spyre_layout_init_strided(layout, spec->rank, spec->size, stride, spec->format,
					 order, length);
}
