/* SPDX-License-Identifier: MIT */
/*
 * A cursor into a JSON document that knows the way it came, so that every
 * wrong or missing field is reported with its path, what was found and what
 * was expected. Internal.
 */
#ifndef SPYRE_SDSC_JSON_H
#define SPYRE_SDSC_JSON_H

#include <spyre/types.h>
#include <yyjson.h>

enum json_type {
	JSON_OBJECT,
	JSON_ARRAY,
	JSON_STRING,
	JSON_INTEGER,
};

struct json {
	const char *file;
	const struct json *up;
	const char *key;	/* NULL: element @index of an array */
	size_t index;
	yyjson_val *val;
};

/*
 * Parses a file's text in place: it is changed, needs BUNDLE_FILE_PADDING zero
 * bytes behind it and stays until @doc is freed. @root gets the value.
 */
spyre_status json_open(struct json *root, char *text, size_t size, yyjson_doc **doc);

/* PARSE error "file: path: found …, expected @expected". */
spyre_status json_wrong(const struct json *at, const char *expected, ...)
	__attribute__((format(printf, 2, 3)));

/* The member @key, which must be there and of the type. */
spyre_status json_member(const struct json *up, const char *key, enum json_type type,
			 struct json *out);
/* False if the member is missing; then @out is at the place where it would be. */
bool json_find(const struct json *up, const char *key, struct json *out);
/*
 * Members that are looked for in about the order in which they are there: each
 * search goes on where the last one ended.
 */
struct json_walk {
	const struct json *up;
	yyjson_obj_iter it;
};

void json_walk(const struct json *up, struct json_walk *walk);
bool json_walk_find(struct json_walk *walk, const char *key, size_t len, struct json *out);

spyre_status json_element(const struct json *up, size_t index, enum json_type type,
			  struct json *out);
spyre_status json_expect(const struct json *at, enum json_type type);
size_t json_length(const struct json *at);

/* Integers must lie in [min, max]. */
spyre_status json_integer(const struct json *at, int64_t min, int64_t max, int64_t *out);
spyre_status json_member_integer(const struct json *up, const char *key, int64_t min,
				 int64_t max, int64_t *out);
/* A decimal number in a string. */
spyre_status json_decimal(const struct json *at, int64_t min, int64_t max, int64_t *out);
/* Copies a string that must fit in @size bytes with its end. */
spyre_status json_text(const struct json *at, char *out, size_t size);
spyre_status json_member_text(const struct json *up, const char *key, char *out, size_t size);

#endif /* SPYRE_SDSC_JSON_H */
