// SPDX-License-Identifier: MIT
/* JSON cursor: see json.h. */
#include "libspyre/sdsc/parse/json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/error.h"

#define MAX_DEPTH 32

/* Writes the path as "$.0_add.dscs_[0].add", cut to fit. */
static void path_of(const struct json *at, char *out, size_t size)
{
	const struct json *way[MAX_DEPTH];
	size_t used = 1;
	int depth = 0;

	snprintf(out, size, "$");
	for (; at && at->up && depth < MAX_DEPTH; at = at->up)
		way[depth++] = at;
	while (depth-- > 0 && used < size) {
		int n;

		if (way[depth]->key)
			n = snprintf(out + used, size - used, ".%.64s", way[depth]->key);
		else
			n = snprintf(out + used, size - used, "[%zu]", way[depth]->index);
		used += n > 0 ? (size_t)n : 0;
	}
}

static void found_of(yyjson_val *val, char *out, size_t size)
{
	if (!val)
		snprintf(out, size, "nothing");
	else if (yyjson_is_uint(val))
		snprintf(out, size, "%" PRIu64, yyjson_get_uint(val));
	else if (yyjson_is_sint(val))
		snprintf(out, size, "%" PRId64, yyjson_get_sint(val));
	else if (yyjson_is_real(val))
		snprintf(out, size, "the fraction %g", yyjson_get_real(val));
	else if (yyjson_is_str(val))
		snprintf(out, size, "\"%.64s\"", yyjson_get_str(val));
	else if (yyjson_is_arr(val))
		snprintf(out, size, "an array of %zu", yyjson_arr_size(val));
	else if (yyjson_is_obj(val))
		snprintf(out, size, "an object of %zu", yyjson_obj_size(val));
	else
		snprintf(out, size, "%s", yyjson_get_type_desc(val));
}

spyre_status json_wrong(const struct json *at, const char *expected, ...)
{
	char path[512], found[128], want[256];
	va_list args;

	va_start(args, expected);
	vsnprintf(want, sizeof(want), expected, args);
	va_end(args);
	path_of(at, path, sizeof(path));
	found_of(at->val, found, sizeof(found));
	return spyre_error(SPYRE_ERROR_PARSE, "%s: %s: found %s, expected %s", at->file, path,
			   found, want);
}

spyre_status json_open(struct json *root, char *text, size_t size, yyjson_doc **doc)
{
	yyjson_read_err err;

	*doc = yyjson_read_opts(text, size, YYJSON_READ_INSITU, NULL, &err);
	if (!*doc && err.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "%s: no memory to read %zu bytes",
				   root->file, size);
	if (!*doc)
		return spyre_error(SPYRE_ERROR_PARSE, "%s: not JSON: %s at byte %zu of %zu",
				   root->file, err.msg, err.pos, size);
	root->val = yyjson_doc_get_root(*doc);
	return SPYRE_SUCCESS;
}

bool json_find(const struct json *up, const char *key, struct json *out)
{
	*out = (struct json){ .file = up->file, .up = up, .key = key,
			      .val = yyjson_obj_get(up->val, key) };
	return out->val;
}

spyre_status json_expect(const struct json *at, enum json_type type)
{
	static const char *const name[] = {
		[JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array",
		[JSON_STRING] = "a string", [JSON_INTEGER] = "an integer",
	};
	bool ok = false;

	switch (type) {
	case JSON_OBJECT:
		ok = yyjson_is_obj(at->val);
		break;
	case JSON_ARRAY:
		ok = yyjson_is_arr(at->val);
		break;
	case JSON_STRING:
		/* A string with a NUL inside is refused, as the copy below would truncate it. */
		ok = yyjson_is_str(at->val) &&
		     strlen(yyjson_get_str(at->val)) == yyjson_get_len(at->val);
		break;
	case JSON_INTEGER:
		ok = yyjson_is_int(at->val);
		break;
	}
	return ok ? SPYRE_SUCCESS : json_wrong(at, "%s", name[type]);
}

spyre_status json_member(const struct json *up, const char *key, enum json_type type,
			 struct json *out)
{
	json_find(up, key, out);
	return json_expect(out, type);
}

spyre_status json_element(const struct json *up, size_t index, enum json_type type,
			  struct json *out)
{
	*out = (struct json){ .file = up->file, .up = up, .index = index,
			      .val = yyjson_arr_get(up->val, index) };
	return json_expect(out, type);
}

size_t json_length(const struct json *at)
{
	return yyjson_is_arr(at->val) ? yyjson_arr_size(at->val) : yyjson_obj_size(at->val);
}

static spyre_status out_of_range(const struct json *at, int64_t min, int64_t max)
{
	return json_wrong(at, "an integer from %" PRId64 " to %" PRId64, min, max);
}

spyre_status json_integer(const struct json *at, int64_t min, int64_t max, int64_t *out)
{
	if (!yyjson_is_int(at->val) ||
	    (yyjson_is_uint(at->val) && yyjson_get_uint(at->val) > INT64_MAX))
		return out_of_range(at, min, max);
	*out = yyjson_get_sint(at->val);
	return *out < min || *out > max ? out_of_range(at, min, max) : SPYRE_SUCCESS;
}

spyre_status json_member_integer(const struct json *up, const char *key, int64_t min,
				 int64_t max, int64_t *out)
{
	struct json at;

	json_find(up, key, &at);
	return json_integer(&at, min, max, out);
}

static bool decimal(const char *text, size_t len, int64_t *out)
{
	bool minus = len && *text == '-';
	uint64_t n = 0;

	if (len == (size_t)minus)
		return false;
	for (size_t i = minus; i < len; i++) {
		if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(text[i] - '0'), &n))
			return false;
	}
	if (n > INT64_MAX)
		return false;
	*out = minus ? -(int64_t)n : (int64_t)n;
	return true;
}

spyre_status json_decimal(const struct json *at, int64_t min, int64_t max, int64_t *out)
{
	const char *text = yyjson_get_str(at->val);

	if (!text || !decimal(text, yyjson_get_len(at->val), out) || *out < min || *out > max)
		return json_wrong(at, "a decimal number from %" PRId64 " to %" PRId64
				  " in a string", min, max);
	return SPYRE_SUCCESS;
}

void json_walk(const struct json *up, struct json_walk *walk)
{
	walk->up = up;
	if (!yyjson_obj_iter_init(up->val, &walk->it))
		memset(&walk->it, 0, sizeof(walk->it));
}

bool json_walk_find(struct json_walk *walk, const char *key, size_t len, struct json *out)
{
	*out = (struct json){ .file = walk->up->file, .up = walk->up, .key = key,
			      .val = yyjson_obj_iter_getn(&walk->it, key, len) };
	return out->val;
}

spyre_status json_text(const struct json *at, char *out, size_t size)
{
	spyre_status status = json_expect(at, JSON_STRING);

	if (status)
		return status;
	if (yyjson_get_len(at->val) >= size)
		return json_wrong(at, "a string of at most %zu bytes", size - 1);
	memcpy(out, yyjson_get_str(at->val), yyjson_get_len(at->val) + 1);
	return SPYRE_SUCCESS;
}

spyre_status json_member_text(const struct json *up, const char *key, char *out, size_t size)
{
	struct json at;

	json_find(up, key, &at);
	return json_text(&at, out, size);
}
