// SPDX-License-Identifier: MIT
/*
 * spyre-smi diag on embedded cards: good ones pass, and each kind of damage, which the wrapped
 * calls of the library do to what they return, is found and told.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>
#include <yyjson.h>

#include "suite.h"
#include "tools/smi/diag.h"
#include "tests/order.h"

static enum { NONE, LINEAR, LARGE, TENSOR, PEER, COMPILE } damage;

spyre_status __real_spyre_memcpy_d2h(spyre_context *context, void *target, spyre_devptr source,
				     uint64_t bytes);
spyre_status __wrap_spyre_memcpy_d2h(spyre_context *context, void *target, spyre_devptr source,
				     uint64_t bytes);
spyre_status __real_spyre_copy_d2h(spyre_context *context, const spyre_host_tensor *target,
				   spyre_devptr device, const spyre_layout *layout);
spyre_status __wrap_spyre_copy_d2h(spyre_context *context, const spyre_host_tensor *target,
				   spyre_devptr device, const spyre_layout *layout);
spyre_status __real_spyre_memcpy_peer_async(spyre_stream *stream, spyre_context *target_context,
					    spyre_devptr target, spyre_context *source_context,
					    spyre_devptr source, uint64_t bytes);
spyre_status __wrap_spyre_memcpy_peer_async(spyre_stream *stream, spyre_context *target_context,
					    spyre_devptr target, spyre_context *source_context,
					    spyre_devptr source, uint64_t bytes);
spyre_status __real_spyre_launch(spyre_stream *stream, spyre_kernel *kernel, const spyre_arg *args,
				 uint32_t num_args);
spyre_status __wrap_spyre_launch(spyre_stream *stream, spyre_kernel *kernel, const spyre_arg *args,
				 uint32_t num_args);

/* One bit of the last byte. */
spyre_status __wrap_spyre_memcpy_d2h(spyre_context *context, void *target, spyre_devptr source,
				     uint64_t bytes)
{
	spyre_status status = __real_spyre_memcpy_d2h(context, target, source, bytes);

	if ((damage == LINEAR && bytes == 4095) || (damage == LARGE && bytes == 16u << 20))
		((unsigned char *)target)[bytes - 1] ^= 0x10;
	return status;
}

/* One bit of the last element. */
spyre_status __wrap_spyre_copy_d2h(spyre_context *context, const spyre_host_tensor *target,
				   spyre_devptr device, const spyre_layout *layout)
{
	spyre_status status = __real_spyre_copy_d2h(context, target, device, layout);
	uint32_t *words = target->data;

	if (damage == TENSOR)
		words[target->size[0] * target->size[1] - 1] ^= 0x800000;
	return status;
}

/* Nothing is copied. */
spyre_status __wrap_spyre_memcpy_peer_async(spyre_stream *stream, spyre_context *target_context,
					    spyre_devptr target, spyre_context *source_context,
					    spyre_devptr source, uint64_t bytes)
{
	if (damage == PEER)
		return SPYRE_SUCCESS;
	return __real_spyre_memcpy_peer_async(stream, target_context, target, source_context,
					      source, bytes);
}

/* An argument is missing, which the library refuses. */
spyre_status __wrap_spyre_launch(spyre_stream *stream, spyre_kernel *kernel, const spyre_arg *args,
				 uint32_t num_args)
{
	return __real_spyre_launch(stream, kernel, args, num_args - (damage == COMPILE));
}

/* Runs diag as JSON; the caller frees the document. */
static yyjson_doc *diag(const struct smi_options *options, int expected)
{
	char path[] = "/tmp/smi-diag-XXXXXX";
	int file = mkstemp(path), old = dup(STDOUT_FILENO), status;
	yyjson_doc *doc;

	ck_assert(file >= 0 && old >= 0);
	unlink(path);
	fflush(stdout);
	dup2(file, STDOUT_FILENO);
	status = smi_diag(options);
	fflush(stdout);
	dup2(old, STDOUT_FILENO);
	close(old);
	ck_assert_int_eq(status, expected);
	lseek(file, 0, SEEK_SET);
	doc = yyjson_read_fp(fdopen(file, "r"), 0, NULL, NULL);
	return doc;
}

static yyjson_val *card_of(yyjson_doc *doc, size_t index)
{
	return yyjson_arr_get(yyjson_obj_get(yyjson_doc_get_root(doc), "devices"), index);
}

static const char *text(yyjson_val *object, const char *key)
{
	return yyjson_get_str(yyjson_obj_get(object, key));
}

static yyjson_val *test_of(yyjson_val *card, const char *name)
{
	yyjson_val *one;
	size_t i, n;

	yyjson_arr_foreach(yyjson_obj_get(card, "tests"), i, n, one)
		if (!strcmp(text(one, "test"), name))
			return one;
	ck_abort_msg("no test '%s' was run", name);
}

START_TEST(good_cards)
{
	struct smi_options options = { .mode = SMI_DIAG, .format = SMI_JSON, .level = 2 };
	yyjson_doc *doc = diag(&options, SMI_OK);
	yyjson_val *one;
	size_t i, n;

	for (int card = 0; card < 2; card++) {
		ck_assert_str_eq(text(card_of(doc, card), "result"), "pass");
		yyjson_arr_foreach(yyjson_obj_get(card_of(doc, card), "tests"), i, n, one)
			ck_assert_str_eq(text(one, "result"), "pass");
		ck_assert_uint_eq(n, 5);
	}
	ck_assert_ptr_null(card_of(doc, 2));
	yyjson_doc_free(doc);
}
END_TEST

/* Without a second card there is no copy to test, which is no failure. */
START_TEST(one_card)
{
	struct smi_options options = { .mode = SMI_DIAG, .format = SMI_JSON, .level = 2 };
	yyjson_doc *doc;

	setenv("SPYRE_EMBEDDED_CARDS", "1", 1);
	doc = diag(&options, SMI_OK);
	ck_assert_str_eq(text(test_of(card_of(doc, 0), "peer copies"), "result"), "skip");
	yyjson_doc_free(doc);
}
END_TEST

static const struct {
	int damage;
	const char *test;
	const char *detail;
} failures[] = {
	{ LINEAR, "dma", "byte 4094 at 0x" },
	{ LARGE, "memory", "byte 16777215 at 0x" },
	{ TENSOR, "arithmetic", "add: element [255, 511] is " },
	/* Words are the place's number, whose first bytes are 0 in either order. */
	{ PEER, "peer copies", BIG_ENDIAN_HOST ? "byte 5 at 0x" : "byte 2 at 0x" },
	{ COMPILE, "arithmetic", "add: " },
};

START_TEST(damage_is_found)
{
	struct smi_options options = {
		.mode = SMI_DIAG, .format = SMI_JSON, .level = 2, .ids = "1",
	};
	yyjson_val *one;
	yyjson_doc *doc;

	damage = failures[_i].damage;
	doc = diag(&options, SMI_FAILED);
	ck_assert_str_eq(text(card_of(doc, 0), "result"), "fail");
	one = test_of(card_of(doc, 0), failures[_i].test);
	ck_assert_str_eq(text(one, "result"), "fail");
	ck_assert_msg(!strncmp(text(one, "detail"), failures[_i].detail,
			       strlen(failures[_i].detail)), "%s", text(one, "detail"));
	/* The others are run all the same. */
	ck_assert_str_eq(text(test_of(card_of(doc, 0), "properties"), "result"), "pass");
	ck_assert_uint_eq(yyjson_arr_size(yyjson_obj_get(card_of(doc, 0), "tests")), 5);
	ck_assert_ptr_null(card_of(doc, 1));
	yyjson_doc_free(doc);
}
END_TEST

START_TEST(unknown_card)
{
	struct smi_options options = {
		.mode = SMI_DIAG, .format = SMI_JSON, .level = 1, .ids = "0,7",
	};

	ck_assert_ptr_null(diag(&options, SMI_NOT_FOUND));
}
END_TEST

static void two_cards(void)
{
	setenv("SPYRE_BACKEND", "embedded", 1);
	setenv("SPYRE_EMBEDDED_CARDS", "2", 1);
	unsetenv("SPYRE_DEVICES");
	damage = NONE;
}

int main(void)
{
	Suite *suite = suite_create("smi_diag");
	TCase *tcase = tcase_create("diag");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, two_cards, NULL);
	tcase_add_test(tcase, good_cards);
	tcase_add_test(tcase, one_card);
	tcase_add_loop_test(tcase, damage_is_found, 0, sizeof(failures) / sizeof(failures[0]));
	tcase_add_test(tcase, unknown_card);
	return suite_run(suite);
}
