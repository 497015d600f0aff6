// SPDX-License-Identifier: MIT
/*
 * The layout of an argument in launch_spec.json, as an object or as text:
 * "SpyreTensorLayout(device_size=[4, 512, 64], stride_map =[64, 256, 1],
 * device_dtype=DataFormats.SEN169_FP16)". The values of stride_map are not used.
 */
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/parse/launch_layout.h"
#include "libspyre/sdsc/parse/launch_spec.h"

#define MAX_SIZE (INT64_C(1) << 40)

static bool arrangement_of(const char *name, spyre_element_arrangement *out)
{
	static const char *const names[] = {
		[SPYRE_EA_STANDARD] = "STANDARD", [SPYRE_EA_DL16_TO_FP32] = "DL16_TO_FP32",
		[SPYRE_EA_QFP8CH] = "QFP8CH", [SPYRE_EA_EXX2] = "EXX2",
		[SPYRE_EA_FP32_TO_DL16] = "FP32_TO_DL16", [SPYRE_EA_QFP8WT] = "QFP8WT",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name)) {
			*out = (spyre_element_arrangement)i;
			return true;
		}
	return false;
}

/* Strips the prefix of "DataFormats.SEN169_FP16". */
static const char *last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

static spyre_status set_format(const struct json *at, const char *name,
			       struct launch_spec_arg *arg)
{
	arg->device_format = spyre_format_from_name(last_part(name));
	return arg->device_format ? SPYRE_SUCCESS : json_wrong(at, "a device data format");
}

static spyre_status set_arrangement(const struct json *at, const char *name,
				    struct launch_spec_arg *arg)
{
	return arrangement_of(last_part(name), &arg->spec.arrangement) ? SPYRE_SUCCESS :
	       json_wrong(at, "an element arrangement");
}

static spyre_status read_object(const struct json *at, struct launch_spec_arg *arg)
{
	char name[IR_NAME_BYTES];
	struct json list, entry, text;

	TRY(json_member(at, "device_size", JSON_ARRAY, &list));
	if (json_length(&list) < 2 || json_length(&list) > SPYRE_MAX_DEVICE_RANK)
		return json_wrong(&list, "2 to %d dimensions", SPYRE_MAX_DEVICE_RANK);
	arg->device_rank = (uint32_t)json_length(&list);
	for (uint32_t i = 0; i < arg->device_rank; i++) {
		TRY(json_element(&list, i, JSON_INTEGER, &entry));
		TRY(json_integer(&entry, 1, MAX_SIZE, &arg->device_size[i]));
	}
	TRY(json_member(at, "device_dtype", JSON_STRING, &text));
	TRY(json_text(&text, name, sizeof(name)));
	TRY(set_format(&text, name, arg));
	if (!json_find(at, "element_arrangement", &text))
		return SPYRE_SUCCESS;
	TRY(json_text(&text, name, sizeof(name)));
	return set_arrangement(&text, name, arg);
}

/* Finds the text after "key", blanks and "="; NULL if the key is missing. */
static const char *value_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	if (!at)
		return NULL;
	at += strlen(key);
	at += strspn(at, " ");
	if (*at != '=')
		return NULL;
	return at + 1 + strspn(at + 1, " ");
}

/* Copies a name up to ',' or ')'. */
static bool copy_name(const char *at, char *out, size_t size)
{
	size_t len = at ? strcspn(at, ",) ") : 0;

	if (!len || len >= size)
		return false;
	memcpy(out, at, len);
	out[len] = '\0';
	return true;
}

static spyre_status read_text(const struct json *at, struct launch_spec_arg *arg)
{
	const char *text = yyjson_get_str(at->val), *c = value_of(text, "device_size");
	char name[IR_NAME_BYTES];

	if (strncmp(text, "SpyreTensorLayout(", 18) || !c || *c != '[')
		return json_wrong(at, "\"SpyreTensorLayout(device_size=[…], …)\"");
	do {
		char *end;
		long long n;

		c += 1 + strspn(c + 1, " ");
		n = strtoll(c, &end, 10);
		if (end == c || n < 1 || n > MAX_SIZE || arg->device_rank == SPYRE_MAX_DEVICE_RANK)
			return json_wrong(at, "a device_size of 2 to %d positive numbers",
					  SPYRE_MAX_DEVICE_RANK);
		arg->device_size[arg->device_rank++] = n;
		c = end + strspn(end, " ");
	} while (*c == ',');
	if (*c != ']' || arg->device_rank < 2)
		return json_wrong(at, "a device_size of 2 to %d positive numbers",
				  SPYRE_MAX_DEVICE_RANK);
	if (!copy_name(value_of(text, "device_dtype"), name, sizeof(name)))
		return json_wrong(at, "a device_dtype");
	TRY(set_format(at, name, arg));
	if (!copy_name(value_of(text, "element_arrangement"), name, sizeof(name)))
		return SPYRE_SUCCESS;
	return set_arrangement(at, name, arg);
}

spyre_status launch_spec_layout(const struct json *at, struct launch_spec_arg *arg)
{
	arg->spec.has_layout = true;
	if (yyjson_is_obj(at->val))
		return read_object(at, arg);
	TRY(json_expect(at, JSON_STRING));
	return read_text(at, arg);
}
