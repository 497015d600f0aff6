/* SPDX-License-Identifier: MIT */
/*
 * A cursor into a JSON document that knows its path, so that errors name the path
 * of a wrong or missing field, the value found and the value expected. Internal.
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
	const char *key;	/* NULL for element @index of an array */
	size_t index;
	yyjson_val *val;
};

/*
 * Parses a file's text in place: the text is modified, needs BUNDLE_FILE_PADDING
 * zero bytes after it and must outlive @doc. @root gets the value.
 */
spyre_status json_open(struct json *root, char *text, size_t size, yyjson_doc **doc);

/* Returns PARSE with the text "file: path: found …, expected @expected". */
spyre_status json_wrong(const struct json *at, const char *expected, ...)
	__attribute__((format(printf, 2, 3)));

/* Gets the member @key; fails if it is missing or of another type. */
spyre_status json_member(const struct json *up, const char *key, enum json_type type,
			 struct json *out);
/* False if the member is missing; @out then has its path, for error texts. */
bool json_find(const struct json *up, const char *key, struct json *out);
/*
 * Lookup of members in about the order of the document: each search continues
 * where the last one ended.
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

/* Reads an integer, which must lie in [min, max]. */
spyre_status json_integer(const struct json *at, int64_t min, int64_t max, int64_t *out);
spyre_status json_member_integer(const struct json *up, const char *key, int64_t min,
				 int64_t max, int64_t *out);
/* Reads a decimal number in a string. */
spyre_status json_decimal(const struct json *at, int64_t min, int64_t max, int64_t *out);
/* Copies a string, which must fit in @size bytes with its NUL. */
spyre_status json_text(const struct json *at, char *out, size_t size);
spyre_status json_member_text(const struct json *up, const char *key, char *out, size_t size);

#endif /* SPYRE_SDSC_JSON_H */
