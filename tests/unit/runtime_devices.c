/* SPDX-License-Identifier: MIT */
/* Enumeration: the rules of SPYRE_DEVICES and friends, and properties. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime_check.h"

#include "libspyre/base/error.h"
#include "libspyre/runtime/visible.h"

static int visible(int total, const char *devices, const char *world)
{
	struct spyre_visible list;

	ck_ok(spyre_visible_parse(&list, total, "SPYRE_DEVICES", devices, world, NULL, NULL));
	return list.count;
}

/* The vectors of upstream's test_device_enum. */
START_TEST(counts)
{
	ck_assert_int_eq(visible(4, NULL, NULL), 4);
	ck_assert_int_eq(visible(4, NULL, "2"), 2);
	ck_assert_int_eq(visible(4, NULL, "4"), 4);
	ck_assert_int_eq(visible(4, NULL, "5"), 4);
	ck_assert_int_eq(visible(4, "0", NULL), 1);
	ck_assert_int_eq(visible(4, "0,1", NULL), 2);
	ck_assert_int_eq(visible(4, "0,1,1", NULL), 2);
	ck_assert_int_eq(visible(4, "1,0", NULL), 2);
	ck_assert_int_eq(visible(4, "0, 5", NULL), 1);
	ck_assert_int_eq(visible(4, "0", "2"), 1);
	ck_assert_int_eq(visible(4, "0,1", "2"), 2);
	ck_assert_int_eq(visible(0, NULL, NULL), 0);
	ck_assert_int_eq(visible(0, NULL, "2"), 0);
	ck_assert_int_eq(visible(0, "0", NULL), 0);
}
END_TEST

/* Blanks, the edge of the range, large numbers; SPYRE_DEVICES wins upwards too. */
START_TEST(more_counts)
{
	ck_assert_int_eq(visible(4, " 0 ,\t3 ", NULL), 2);
	ck_assert_int_eq(visible(4, "4", NULL), 0);
	ck_assert_int_eq(visible(4, "3", NULL), 1);
	ck_assert_int_eq(visible(4, "99999999999999999999999", NULL), 0);
	ck_assert_int_eq(visible(4, "0,1,2", "1"), 3);
	ck_assert_int_eq(visible(4, NULL, "0"), 0);
	ck_assert_int_eq(visible(4, NULL, " 3 "), 3);
	ck_assert_int_eq(visible(4, "", "2"), 2);
	ck_assert_int_eq(visible(4, "  ", NULL), 4);
}
END_TEST

START_TEST(order)
{
	struct spyre_visible list;

	ck_ok(spyre_visible_parse(&list, 4, "SPYRE_DEVICES", "3,1,3,9,0", NULL, NULL, NULL));
	ck_assert_int_eq(list.count, 3);
	ck_assert_int_eq(list.physical[0], 3);
	ck_assert_int_eq(list.physical[1], 1);
	ck_assert_int_eq(list.physical[2], 0);
}
END_TEST

START_TEST(garbage)
{
	static const char *const bad[] = { "x", "0,x", "0,,1", "0,", ",", "-1", "0x1", "1.5", "0;1" };
	static const char *const bad_world[] = { "x", "-1", "2,3", "1.5" };
	struct spyre_visible list;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_status(spyre_visible_parse(&list, 4, "SPYRE_DEVICES", bad[i], NULL, NULL, NULL),
			  SPYRE_ERROR_CONFIGURATION);
		ck_mentions("SPYRE_DEVICES");
		ck_mentions(bad[i]);
	}
	for (size_t i = 0; i < sizeof(bad_world) / sizeof(bad_world[0]); i++) {
		ck_status(spyre_visible_parse(&list, 4, "SPYRE_DEVICES", NULL, bad_world[i], NULL, NULL),
			  SPYRE_ERROR_CONFIGURATION);
		ck_mentions("AIU_WORLD_SIZE");
	}
	/* An error names the older variable if it is the cause. */
	setenv("SPYRE_BACKEND", "embedded", 1);
	setenv("SPYRE_VISIBLE_DEVICES", "zero", 1);
	ck_status(spyre_device_count(&(int){ 0 }), SPYRE_ERROR_CONFIGURATION);
	ck_mentions("SPYRE_VISIBLE_DEVICES");
	setenv("SPYRE_DEVICES", "0", 1);
	ck_ok(spyre_device_count(&(int){ 0 }));
}
END_TEST

START_TEST(backends)
{
	int count = -1;

	setenv("SPYRE_BACKEND", "cuda", 1);
	ck_status(spyre_device_count(&count), SPYRE_ERROR_CONFIGURATION);
	ck_mentions("SPYRE_BACKEND");
	unsetenv("SPYRE_BACKEND");
	setenv("FLEX_DEVICE", "MOCK", 1);
	setenv("SPYRE_EMBEDDED_CARDS", "3", 1);
	ck_ok(spyre_device_count(&count));
	ck_assert_int_eq(count, 3);
	setenv("FLEX_DEVICE", "XF", 1);
	ck_status(spyre_device_count(&count), SPYRE_ERROR_CONFIGURATION);
	ck_mentions("FLEX_DEVICE");
	ck_mentions("XF");
	setenv("SPYRE_EMBEDDED_CARDS", "0", 1);
	setenv("FLEX_DEVICE", "MOCK", 1);
	ck_ok(spyre_device_count(&count));
	ck_assert_int_eq(count, 0);
	ck_status(spyre_context_create(0, 0, &(spyre_context *){ NULL }), SPYRE_ERROR_NO_DEVICE);
	ck_mentions("0 of 0");
}
END_TEST

START_TEST(embedded_limits)
{
	static const char *const names[] = {
		"SPYRE_EMBEDDED_CARDS", "SPYRE_EMBEDDED_CORES", "SPYRE_EMBEDDED_THREADS",
		"SPYRE_EMBEDDED_LPDDR_MIB",
	};
	spyre_device_properties p = { .struct_size = sizeof(p) };
	int units = 0;

	setenv("SPYRE_BACKEND", "embedded", 1);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		setenv(names[i], "many", 1);
		ck_status(spyre_device_get_properties(0, &p), SPYRE_ERROR_CONFIGURATION);
		ck_mentions(names[i]);
		setenv(names[i], "9999999999", 1);
		ck_status(spyre_device_get_properties(0, &p), SPYRE_ERROR_CONFIGURATION);
		unsetenv(names[i]);
	}
	setenv("SPYRE_UNIT", "abacus", 1);
	ck_status(spyre_device_get_properties(0, &p), SPYRE_ERROR_CONFIGURATION);
	ck_mentions("SPYRE_UNIT");
	for (const char *const *unit = spyre_host_units(); *unit; unit++) {
		ck_mentions(*unit);
		units++;
	}
	ck_assert_int_gt(units, 0);
	ck_assert_str_eq(spyre_host_units()[0], "scalar");
	for (int i = 0; i < units; i++) {
		setenv("SPYRE_UNIT", spyre_host_units()[i], 1);
		ck_ok(spyre_device_get_properties(0, &p));
		ck_assert_str_eq(p.unit, spyre_host_units()[i]);
	}
	unsetenv("SPYRE_UNIT");
	ck_ok(spyre_device_get_properties(0, &p));
	ck_assert_str_eq(p.unit, spyre_host_units()[units - 1]);
	setenv("SPYRE_UNIT", "scalar", 1);
	setenv("SPYRE_EMBEDDED_CORES", "7", 1);
	setenv("SPYRE_EMBEDDED_LPDDR_MIB", "64", 1);
	ck_ok(spyre_device_get_properties(0, &p));
	ck_assert_str_eq(p.unit, "scalar");
	ck_assert_uint_eq(p.num_cores, 7);
	ck_assert_uint_eq(p.memory_bytes, 64ull << 20);
}
END_TEST

START_TEST(properties)
{
	spyre_device_properties p = { .struct_size = sizeof(p) }, q;
	struct { size_t struct_size; char name[4]; char guard; } small = { 12, "", 'g' };
	char devices[128];
	int count;

	setenv("SPYRE_BACKEND", "embedded", 1);
	setenv("SPYRE_EMBEDDED_CARDS", "4", 1);
	setenv("SPYRE_DEVICES", "2,1", 1);
	ck_ok(spyre_device_get_properties(0, &p));
	ck_assert_str_eq(p.name, "Virtual Spyre");
	ck_assert_int_eq(p.index, 0);
	ck_assert_int_eq(p.physical_index, 2);
	ck_assert_str_eq(p.bus_id, "embedded.2");
	ck_assert_uint_eq(strlen(p.uuid), 36);
	ck_assert_uint_eq(p.stick_bytes, SPYRE_STICK);
	ck_assert_uint_eq(p.clock_khz, 1500000);
	ck_assert_uint_eq(p.lx_bytes, 2 << 20);
	ck_status(spyre_device_get_properties(2, &p), SPYRE_ERROR_NO_DEVICE);
	ck_mentions("2 of 4");
	ck_status(spyre_device_get_properties(-1, &p), SPYRE_ERROR_NO_DEVICE);

	/* By bus id and UUID, mixed with numbers. */
	snprintf(devices, sizeof(devices), "embedded.3, %s,0", p.uuid);
	setenv("SPYRE_DEVICES", devices, 1);
	ck_ok(spyre_device_count(&count));
	ck_assert_int_eq(count, 3);
	q.struct_size = sizeof(q);
	ck_ok(spyre_device_get_properties(1, &q));
	ck_assert_str_eq(q.uuid, p.uuid);

	/* A caller with a smaller struct gets fewer fields. */
	ck_ok(spyre_device_get_properties(0, (spyre_device_properties *)&small));
	ck_assert_int_eq(small.guard, 'g');
	ck_assert_mem_eq(small.name, "Virt", 4);
	q.struct_size = 0;
	ck_status(spyre_device_get_properties(0, &q), SPYRE_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(opened)
{
	spyre_device_properties p = { .struct_size = sizeof(p) };
	spyre_context *one = open_card(), *two = open_card();

	ck_ok(spyre_context_get_properties(one, &p));
	ck_assert_int_eq(p.index, 0);
	ck_assert_uint_ge(p.num_cores, 1);
	ck_assert_uint_gt(p.memory_bytes, 0);
	ck_status(spyre_context_create(0, 1, &(spyre_context *){ NULL }),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_context_create(0, 0, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_ok(spyre_context_destroy(one));
	ck_ok(spyre_context_synchronize(two));
	ck_ok(spyre_context_destroy(two));
	ck_ok(spyre_context_destroy(NULL));
	ck_status(spyre_context_synchronize(NULL), SPYRE_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(names)
{
	for (int i = 0; i < SPYRE_STATUS_COUNT; i++) {
		ck_assert_int_eq(strncmp(spyre_status_name(i), "SPYRE_", 6), 0);
		ck_assert_str_ne(spyre_status_name(i), "SPYRE_STATUS_UNKNOWN");
		ck_assert_uint_gt(strlen(spyre_status_text(i)), 10);
	}
	ck_assert_str_eq(spyre_status_name(SPYRE_ERROR_LAYOUT), "SPYRE_ERROR_LAYOUT");
	ck_assert_str_eq(spyre_status_name(-1), "SPYRE_STATUS_UNKNOWN");
	ck_assert_str_eq(spyre_status_name(SPYRE_STATUS_COUNT), "SPYRE_STATUS_UNKNOWN");
	for (int i = 1; i < SPYRE_FORMAT_COUNT; i++)
		ck_assert_int_eq(spyre_format_from_name(spyre_format_name(i)), i);
	ck_assert_int_eq(spyre_format_from_name("bf16"), SPYRE_FORMAT_BFLOAT16);
	ck_assert_int_eq(spyre_format_from_name("float"), SPYRE_FORMAT_INVALID);
	ck_assert_int_eq(spyre_format_from_name(NULL), SPYRE_FORMAT_INVALID);
	ck_assert_ptr_null(spyre_format_name(0));
	ck_assert_ptr_null(spyre_format_name(1000));
	ck_assert_uint_eq(spyre_format_bytes(SPYRE_FORMAT_FP64), 8);
	ck_assert_uint_eq(spyre_format_bytes(SPYRE_FORMAT_SENINT4), 0);
	ck_assert_uint_eq(spyre_format_bytes(-1), 0);
	ck_assert_uint_eq(spyre_version(), 0x000100);
}
END_TEST

START_TEST(error_texts)
{
	char text[2000];

	ck_assert_str_eq(spyre_last_error(), "");
	ck_assert_int_eq(spyre_error(SPYRE_ERROR_FILE, "%s: %d", "x", 3), SPYRE_ERROR_FILE);
	ck_assert_str_eq(spyre_last_error(), "x: 3");
	spyre_error_prefix(SPYRE_ERROR_FILE, "in %s", "y");
	ck_assert_str_eq(spyre_last_error(), "in y: x: 3");
	spyre_error(SPYRE_ERROR_FILE, "again %s", spyre_last_error());
	ck_assert_str_eq(spyre_last_error(), "again in y: x: 3");
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	spyre_error_prefix(SPYRE_ERROR_FILE, "%s", text);
	ck_assert_uint_eq(strlen(spyre_last_error()), 1023);
	spyre_error(SPYRE_ERROR_FILE, "%s", text);
	spyre_error_prefix(SPYRE_ERROR_FILE, "b");
	ck_assert_uint_eq(strlen(spyre_last_error()), 1023);
	ck_assert_int_eq(strncmp(spyre_last_error(), "b: aaa", 6), 0);
}
END_TEST

/* The UUID of card @index, as a separate process sees it if @apart. */
static void uuid_of(int index, bool apart, char uuid[40])
{
	spyre_device_properties p = { .struct_size = sizeof(p) };
	int ends[2], status;
	pid_t child;

	if (!apart) {
		ck_ok(spyre_device_get_properties(index, &p));
		memcpy(uuid, p.uuid, sizeof(p.uuid));
		return;
	}
	ck_assert_int_eq(pipe(ends), 0);
	child = fork();
	if (!child) {
		status = spyre_device_get_properties(index, &p);
		_exit(status || write(ends[1], p.uuid, sizeof(p.uuid)) != sizeof(p.uuid));
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(read(ends[0], uuid, sizeof(p.uuid)), sizeof(p.uuid));
	close(ends[0]);
	close(ends[1]);
}

/* Embedded cards of all processes have distinct UUIDs, which do not change during their life. */
START_TEST(uuids)
{
	char uuid[5][40];

	setenv("SPYRE_BACKEND", "embedded", 1);
	setenv("SPYRE_EMBEDDED_CARDS", "2", 1);
	for (int i = 0; i < 2; i++)
		uuid_of(i, false, uuid[i]);
	uuid_of(0, true, uuid[2]);
	uuid_of(1, true, uuid[3]);
	uuid_of(0, true, uuid[4]);
	for (int i = 0; i < 5; i++) {
		ck_assert_uint_eq(strlen(uuid[i]), 36);
		ck_assert_int_eq(uuid[i][14], '8');
		ck_assert_ptr_nonnull(strchr("89ab", uuid[i][19]));
		for (int k = 0; k < i; k++)
			ck_assert_str_ne(uuid[i], uuid[k]);
	}
	uuid_of(0, false, uuid[4]);
	ck_assert_str_eq(uuid[4], uuid[0]);
}
END_TEST

static void clean_environment(void)
{
	unsetenv("SPYRE_DEVICES");
	unsetenv("SPYRE_VISIBLE_DEVICES");
	unsetenv("AIU_WORLD_SIZE");
	unsetenv("FLEX_DEVICE");
	unsetenv("SPYRE_UNIT");
	unsetenv("SPYRE_EMBEDDED_CARDS");
}

int main(void)
{
	TCase *tests = tcase_create("devices");

	tcase_add_checked_fixture(tests, clean_environment, NULL);
	tcase_add_test(tests, counts);
	tcase_add_test(tests, more_counts);
	tcase_add_test(tests, order);
	tcase_add_test(tests, garbage);
	tcase_add_test(tests, backends);
	tcase_add_test(tests, embedded_limits);
	tcase_add_test(tests, properties);
	tcase_add_test(tests, uuids);
	tcase_add_test(tests, opened);
	tcase_add_test(tests, names);
	tcase_add_test(tests, error_texts);
	return run_suite("runtime_devices", tests);
}
