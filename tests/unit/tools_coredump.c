// SPDX-License-Identifier: MIT
/* Coredumps: the printed contents of valid ones, and the errors of invalid ones. */
#include <errno.h>
#include <stdio.h>

#include <yyjson.h>

#include "tools/spyre/coredump.h"

#include "coredump_sample.h"
#include "tests/order.h"
#include "tools_check.h"

#define SAMPLE_HASH 0xafbf24b84865afc0ull

static uint8_t sample[COREDUMP_SAMPLE_MAX];
static size_t sample_bytes;

static void setup(void)
{
	sample_bytes = coredump_sample(sample);
}

/* Produces every output of the command for @size bytes, which end at the end of an allocation. */
static int digest(const uint8_t *data, size_t size, char **printed)
{
	/* A malloc() for each length lets a sanitizer detect the first byte too many. */
	uint8_t *copy = malloc(size ? size : 1);
	struct coredump dump;
	struct text why = { "" };
	size_t length, strange = 0;
	char *text;
	FILE *out;
	int ret;

	memcpy(copy, data, size);
	ret = coredump_parse(&dump, copy, size, &why);
	if (ret) {
		ck_assert(*why.s);
		free(copy);
		return ret;
	}
	out = open_memstream(&text, &length);
	coredump_print(&dump, out);
	fclose(out);
	for (size_t i = 0; i < length; i++)
		strange += (unsigned char)text[i] < ' ' && text[i] != '\n';
	ck_assert_uint_eq(strange, 0);
	ck_assert_uint_lt(length, 1 << 20);
	if (printed)
		*printed = text;
	else
		free(text);
	text = coredump_json(&dump);
	ck_assert_ptr_nonnull(text);
	yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
	ck_assert_msg(doc, "no JSON: %s", text);
	yyjson_doc_free(doc);
	free(text);
	text = coredump_ras(&dump);
	ck_assert_ptr_nonnull(text);
	free(text);
	free(copy);
	return 0;
}

START_TEST(good)
{
	static const char *const parts[] = {
		"access, EFAULT (-14)", "queue 5, job 6, control block 1 of 3", "DMA_RANGE (19)",
		"2023-11-14 22:13:20 UTC, kernel 6.12.0-test", "process     4711 \"a?[31mname\"",
		"context     17", "card        1 VF 3, abcd0000-", "41.5 degrees",
		"0 done     FILL dst 0x8000 4096 bytes", ">   1 failed   EXEC",
		"2 not run  DMA dst 0x400000080 512 bytes", "operand 0", "0x0400000000",
		"8192 bytes -w", "dim 1: 64 steps of 2 bytes", "the first", "loop, 7 times",
		"box, device offset 640, device strides 256 4\n",
		"MOVE", "[64x2]", "operand 0+0x0 LX+0x80",
		"context 18 queue 1 low: 3 taken, 2 ended, error 0, runs job 3",
	};
	char *text;

	ck_assert_int_eq(digest(sample, sample_bytes, &text), 0);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		ck_assert_msg(strstr(text, parts[i]), "no '%s' in:\n%s", parts[i], text);
	ck_assert_ptr_null(strstr(text, "is truncated"));
	free(text);
}
END_TEST

START_TEST(json)
{
	struct coredump dump;
	struct text why;
	yyjson_doc *doc;
	char *text;

	ck_assert_int_eq(coredump_parse(&dump, sample, sample_bytes, &why), 0);
	text = coredump_json(&dump);
	doc = yyjson_read(text, strlen(text), 0);
	ck_assert_ptr_nonnull(doc);
	ck_assert_str_eq(yyjson_get_str(yyjson_doc_ptr_get(doc, "/fault/name")), "access");
	ck_assert_int_eq(yyjson_get_sint(yyjson_doc_ptr_get(doc, "/fault/error")), -14);
	ck_assert_uint_eq(yyjson_get_uint(yyjson_doc_ptr_get(doc, "/context/id")), 17);
	ck_assert_str_eq(yyjson_get_str(yyjson_doc_ptr_get(doc, "/control_blocks/1/state")),
			 "failed");
	ck_assert_uint_eq(yyjson_get_uint(yyjson_doc_ptr_get(doc,
			  "/control_blocks/1/operands/1/address")), 0x400002000);
	ck_assert_uint_eq(yyjson_get_uint(yyjson_doc_ptr_get(doc,
			  "/control_blocks/2/dma/device_offset")), 640);
	ck_assert_uint_eq(yyjson_get_uint(yyjson_doc_ptr_get(doc,
			  "/control_blocks/2/dma/dims/0/device_stride")), 256);
	ck_assert(yyjson_is_null(yyjson_doc_ptr_get(doc, "/truncated")));
	yyjson_doc_free(doc);
	free(text);
}
END_TEST

START_TEST(ras)
{
	static const char *const parts[] = {
		"\"code\":\"0x1274\"", "\"name\":\"CBRB::ControlBlockSoftFail\"", "\"step\":1",
		"\"cb_name\":\"EXEC\"", "\"rb_hmierr_addr\":\"0x400000000\"", "\"rb_hmierr_mode\":1",
		"\"rb_hmierr_snid\":5", "\"rb_hmierr_syndrome\":19", "\"cb_ctrl_contextid\":17",
		"\"VfId\":3", "\"MessageTag\":6", "\"MessageType\":1",
	};
	struct coredump dump;
	struct text why;
	char *text;

	ck_assert_int_eq(coredump_parse(&dump, sample, sample_bytes, &why), 0);
	text = coredump_ras(&dump);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		ck_assert_msg(strstr(text, parts[i]), "no '%s' in: %s", parts[i], text);
	ck_assert_ptr_null(strchr(text, '\n'));
	free(text);
}
END_TEST

START_TEST(truncated)
{
	size_t size, cut = 0;
	char *text;

	for (size = 0; size < sample_bytes; size++) {
		text = NULL;
		if (digest(sample, size, &text))
			ck_assert_uint_lt(size, sizeof(struct drm_spyre_coredump_header));
		else
			cut += strstr(text, "is truncated") != NULL;
		free(text);
	}
	/* Only the padding of the last section may be missing without an error. */
	ck_assert_uint_ge(cut, sample_bytes - sizeof(struct drm_spyre_coredump_header) - 8);
}
END_TEST

static void check_refused(size_t at, uint8_t value, const char *part)
{
	uint8_t old = sample[at];
	struct coredump dump;
	struct text why;

	sample[at] = value;
	ck_assert_int_eq(coredump_parse(&dump, sample, sample_bytes, &why), -1);
	ck_mentions(why, part);
	sample[at] = old;
}

START_TEST(refused)
{
	check_refused(0, 'X', "does not begin with");
	check_refused(8, 2, "version 2");
	check_refused(12, 31, "31 bytes");
	check_refused(12, 33, "33 bytes");
	check_refused(15, 0x80, "bytes, expected");
}
END_TEST

/* Each struct is converted as a whole, also a field that a newer driver appends. */
START_TEST(whole_structs)
{
	static const struct {
		uint32_t type;
		size_t bytes;
	} structs[] = {
		{ 0, sizeof(struct drm_spyre_coredump_header) },
		{ COREDUMP_SECTION, sizeof(struct drm_spyre_coredump_section) },
		{ DRM_SPYRE_COREDUMP_INFO, sizeof(struct drm_spyre_coredump_info) },
		{ DRM_SPYRE_COREDUMP_CARD, sizeof(struct drm_spyre_card_info) },
		{ DRM_SPYRE_COREDUMP_MEMORY, sizeof(struct drm_spyre_memory_info) },
		{ DRM_SPYRE_COREDUMP_COUNTERS, sizeof(struct drm_spyre_counters) },
		{ DRM_SPYRE_COREDUMP_CONTEXT, sizeof(struct drm_spyre_context_info) },
		{ DRM_SPYRE_COREDUMP_FAULT, sizeof(struct drm_spyre_coredump_fault) },
		{ DRM_SPYRE_COREDUMP_CB, sizeof(struct drm_spyre_coredump_cb) },
		{ DRM_SPYRE_COREDUMP_OPERANDS, sizeof(struct drm_spyre_coredump_operand) },
		{ DRM_SPYRE_COREDUMP_DMA, sizeof(struct drm_spyre_dma) },
		{ DRM_SPYRE_COREDUMP_QUEUES, sizeof(struct drm_spyre_coredump_queue) },
	};
	static uint8_t bytes[4096];

	for (size_t i = 0; i < sizeof(structs) / sizeof(structs[0]); i++)
		ck_assert_uint_eq(coredump_order(structs[i].type, bytes), structs[i].bytes);
	/* These have no structs. */
	ck_assert_uint_eq(coredump_order(DRM_SPYRE_COREDUMP_PROGRAM, bytes), 0);
	ck_assert_uint_eq(coredump_order(~0u, bytes), 0);
}
END_TEST

/* The sample has the same bytes on every host: a hash of those of a little-endian one. */
START_TEST(byte_order)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < sample_bytes; i++)
		hash = (hash ^ sample[i]) * 0x100000001b3ull;
	ck_assert_msg(hash == SAMPLE_HASH, "the sample's hash is 0x%016llx",
		      (unsigned long long)hash);
}
END_TEST

/* Any bytes give an answer soon, of bounded length. */
START_TEST(hostile)
{
	static uint8_t bytes[COREDUMP_SAMPLE_MAX];
	uint64_t state = _i + 1;

	for (int round = 0; round < 2000; round++) {
		memcpy(bytes, sample, sample_bytes);
		for (int n = 0; n < 1 + round % 8; n++) {
			state = state * 6364136223846793005ull + 1442695040888963407ull;
			/* The header is not changed, since the file would only be refused. */
			bytes[16 + (state >> 33) % (sample_bytes - 16)] = state >> 25;
		}
		digest(bytes, sample_bytes, NULL);
	}
}
END_TEST

/* Any number may stand in place of an errno: the smallest cannot be negated. */
START_TEST(strange_error)
{
	static const int32_t errors[] = { INT32_MIN, INT32_MAX, 0, -1 };
	static uint8_t bytes[COREDUMP_SAMPLE_MAX];
	uint8_t was[4];
	char expect[32], *text;

	put_le(was, (uint32_t)-EFAULT, sizeof(was));
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		memcpy(bytes, sample, sample_bytes);
		for (size_t at = 0; at + sizeof(was) <= sample_bytes; at += sizeof(was))
			if (!memcmp(bytes + at, was, sizeof(was)))
				put_le(bytes + at, (uint32_t)errors[i], sizeof(was));
		ck_assert_int_eq(digest(bytes, sample_bytes, &text), 0);
		snprintf(expect, sizeof(expect), "errno (%d)", errors[i]);
		ck_assert_msg(strstr(text, expect), "no '%s' in:\n%s", expect, text);
		free(text);
	}
}
END_TEST

/* A huge number of empty sections. */
START_TEST(many)
{
	static uint8_t bytes[1 << 20];
	struct drm_spyre_coredump_header header;
	struct drm_spyre_coredump_section head = { .type = DRM_SPYRE_COREDUMP_CB };
	char *text;

	memcpy(&header, sample, sizeof(header));
	header.num_sections = ~0u;
	coredump_order(COREDUMP_SECTION, &head);
	memcpy(bytes, &header, sizeof(header));
	for (size_t at = sizeof(header); at + sizeof(head) <= sizeof(bytes); at += sizeof(head))
		memcpy(bytes + at, &head, sizeof(head));
	ck_assert_int_eq(digest(bytes, sizeof(bytes), &text), 0);
	ck_assert_ptr_nonnull(strstr(text, "exceed the limit of 1024"));
	free(text);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("coredump");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, good);
	tcase_add_test(tests, json);
	tcase_add_test(tests, ras);
	tcase_add_test(tests, truncated);
	tcase_add_test(tests, refused);
	tcase_add_test(tests, whole_structs);
	tcase_add_test(tests, byte_order);
	tcase_add_loop_test(tests, hostile, 0, 4);
	tcase_add_test(tests, strange_error);
	tcase_add_test(tests, many);
	return run_case("tools_coredump", tests);
}
