// SPDX-License-Identifier: MIT
/*
 * Bundles whose memory ends before the padded iteration: they load, take arguments
 * of exactly the size of their layouts, compute the right elements and store
 * nothing beyond them.
 */
#include <stdio.h>

#include "bundle_files.h"
#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/load.h"
#include "runtime_check.h"

#define ROWS 100
#define COLUMNS 150
#define GUARD 16384
#define FILL 0x5a

struct side {
	spyre_format format;		/* of the device */
	int64_t shape[2], size[3], map[3];
};

struct sample {
	const char *bundle;
	const char *spec;		/* replaces the bundle's launch_spec.json */
	bool transposed;
	struct side side[2];
};

#define LAYOUT(n, role, size) \
	"{\"arg_index\": " #n ", \"role\": \"" role "\", \"layout\": \"SpyreTensorLayout(" \
	"device_size=" size ", device_dtype=SEN169_FP16)\"}"
#define DL16 SPYRE_FORMAT_SEN169_FP16
#define TALL(rows) { DL16, { ROWS, COLUMNS }, { 3, rows, 64 }, { 64, COLUMNS, 1 } }
#define WIDE(rows) { DL16, { COLUMNS, ROWS }, { 2, rows, 64 }, { 64, ROWS, 1 } }

static const struct sample samples[] = {
	{ "restickify_gap", NULL, true, { TALL(100), WIDE(150) } },
	{ "restickify_gap", "{\"args\": [" LAYOUT(0, "input", "[3, 100, 64]") ", "
	  LAYOUT(1, "output", "[2, 150, 64]") "]}", true, { TALL(100), WIDE(150) } },
	/* Here the layouts declare the same gaps as space after the padded iteration. */
	{ "restickify_gap", "{\"args\": [" LAYOUT(0, "input", "[3, 156, 64]") ", "
	  LAYOUT(1, "output", "[2, 234, 64]") "]}", true, { TALL(156), WIDE(234) } },
	{ "cast_short", NULL, false,
	  { TALL(100), { SPYRE_FORMAT_IEEE_FP32, { ROWS, COLUMNS }, { 5, ROWS, 32 },
			 { 32, COLUMNS, 1 } } } },
};

static char folder[64];

static void setup(void)
{
	files_make(folder);
}

static void teardown(void)
{
	files_remove(folder);
}

static float value(int row, int column)
{
	return (float)((row * 7 + column * 3) % 509 - 254);
}

static void check_result(const struct sample *s, const float *result)
{
	for (int row = 0; row < ROWS; row++)
		for (int column = 0; column < COLUMNS; column++)
			ck_assert_float_eq(result[s->transposed ? column * ROWS + row :
						  row * COLUMNS + column], value(row, column));
}

START_TEST(launches)
{
	const struct sample *s = &samples[_i];
	static float host[ROWS * COLUMNS];
	static uint8_t guard[GUARD], clean[GUARD];
	spyre_context *context = open_card();
	spyre_stream *stream = get_stream(context, 0);
	spyre_host_tensor tensor[2];
	spyre_layout layout[2];
	spyre_kernel *kernel;
	spyre_arg_info info;
	spyre_arg args[2];
	uint64_t bytes = 0;

	files_copy(folder, s->bundle);
	if (s->spec)
		files_write(folder, "launch_spec.json", s->spec);
	ck_ok(spyre_kernel_load(context, folder, &kernel));
	for (int i = 0; i < 2; i++) {
		const struct side *side = &s->side[i];

		ck_ok(spyre_layout_init_explicit(&layout[i], 3, side->size, side->map,
						 side->format, SPYRE_EA_STANDARD));
		ck_ok(spyre_host_tensor_dense(&tensor[i], host, SPYRE_FORMAT_IEEE_FP32, 2,
					      side->shape));
		bytes = spyre_layout_bytes(&layout[i]);
		ck_ok(spyre_kernel_get_arg(kernel, i, &info));
		ck_assert_uint_le(info.bytes, bytes);
		ck_ok(spyre_mem_alloc(context, bytes + (i ? GUARD : 0), &args[i].address));
		args[i].layout = &layout[i];
	}
	for (int i = 0; i < ROWS * COLUMNS; i++)
		host[i] = value(i / COLUMNS, i % COLUMNS);
	ck_ok(spyre_copy_h2d(context, args[0].address, &layout[0], &tensor[0]));
	memset(clean, FILL, sizeof(clean));
	ck_ok(spyre_memcpy_h2d(context, args[1].address + bytes, clean, GUARD));
	ck_ok(spyre_launch(stream, kernel, args, 2));
	ck_ok(spyre_copy_d2h(context, &tensor[1], args[1].address, &layout[1]));
	check_result(s, host);
	ck_ok(spyre_memcpy_d2h(context, guard, args[1].address + bytes, GUARD));
	ck_assert_mem_eq(guard, clean, GUARD);
	ck_ok(spyre_kernel_unload(kernel));
	ck_ok(spyre_context_destroy(context));
}
END_TEST

struct edit {
	const char *bundle, *from, *to;
	spyre_status status;
	const char *words[2];
};

#define GAP(dim, n) "\"backGapCore_\": {\"" dim "\": {\"-1\": \"" n "\"}}, \"startAddressCore"
#define START "\"startAddressCore"

static const struct edit edits[] = {
	{ "restickify_gap", "\"28\"", "\"-128\"", SPYRE_ERROR_PARSE,
	  { "backGapCore_.out", "a gap above -128, the extent of out" } },
	{ "restickify_gap", "\"28\"", "\"-9223372036854775807\"", SPYRE_ERROR_PARSE,
	  { "backGapCore_.out", "decimal number" } },
	{ "restickify_gap", "\"28\"", "\"99999999999999999999\"", SPYRE_ERROR_PARSE,
	  { "backGapCore_.out", "decimal number" } },
	{ "restickify_gap", "\"28\"", "\"1099511627776\"", SPYRE_ERROR_SPAN_LIMIT,
	  { "Tensor0", "the limit is" } },
	{ "restickify_gap", "\"28\"", "\"-1099511627776\"", SPYRE_ERROR_PARSE,
	  { "backGapCore_.out", "above -128" } },
	{ "restickify_pad", START, GAP("out", "-28"), SPYRE_ERROR_UNSUPPORTED,
	  { "memory holds 100 of the 128 elements of out", "divided over cores" } },
	{ "restickify_pad", START, GAP("mb", "-65"), SPYRE_ERROR_PARSE, { "whole sticks of 64" } },
	{ "add", START, GAP("out", "-1024"), SPYRE_ERROR_PARSE, { "above -1024" } },
	{ "cast_short", "\"mb_\": 100", "\"mb_\": 99", SPYRE_ERROR_PARSE, { "mb" } },
};

START_TEST(refused)
{
	const struct edit *e = &edits[_i];
	struct spyre_bundle bundle;

	files_copy(folder, e->bundle);
	files_edit(folder, "sdsc_0.json", e->from, e->to);
	ck_status(spyre_bundle_load(folder, 32, CODE_CACHE_OFF, &bundle, NULL), e->status);
	for (int i = 0; i < 2 && e->words[i]; i++)
		ck_mentions(e->words[i]);
	ck_assert_ptr_null(bundle.image);
}
END_TEST

/* Layouts that lack more than padding, or have more, contradict the SDSC. */
static const char *const layouts[] = {
	"[2, 100, 64]", "[3, 64, 64]", "[3, 101, 64]", "[3, 157, 64]", "[4, 100, 64]",
	"[3, 100, 32]", "[1099511627776, 1099511627776, 64]",
};

START_TEST(other_layouts)
{
	struct spyre_bundle bundle;
	char text[256];

	files_copy(folder, "restickify_gap");
	snprintf(text, sizeof(text), "{\"args\": [" LAYOUT(0, "input", "%s")
		 ", {\"arg_index\": 1, \"role\": \"output\"}]}", layouts[_i]);
	files_write(folder, "launch_spec.json", text);
	ck_status(spyre_bundle_load(folder, 32, CODE_CACHE_OFF, &bundle, NULL), SPYRE_ERROR_PARSE);
	ck_mentions("argument 0 has a layout of other device sizes");
}
END_TEST

#define COUNT(x) (int)(sizeof(x) / sizeof(x[0]))

int main(void)
{
	TCase *tests = tcase_create("short");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_loop_test(tests, launches, 0, COUNT(samples));
	tcase_add_loop_test(tests, refused, 0, COUNT(edits));
	tcase_add_loop_test(tests, other_layouts, 0, COUNT(layouts));
	return run_suite("bundle_short", tests);
}
