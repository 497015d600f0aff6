/* SPDX-License-Identifier: MIT */
/* RAS records: every field, every code, and when the library writes a record. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <yyjson.h>

#include "runtime_check.h"

#define MIB (1ull << 20)

static const char *const fields[] = {
	"action", "category", "code", "description", "message", "name", "severity", "step", "type",
	"collect_flightlogs", "cb_name", "rb_hmierr_addr", "rb_hmierr_mode", "rb_hmierr_snid",
	"rb_hmierr_syndrome", "cb_cmpt_bootaddr", "cb_ctrl_contextid", "VfId", "MessageTag",
	"MessageType",
};
#define NUM_FIELDS (sizeof(fields) / sizeof(fields[0]))

static const struct {
	spyre_ras_code code;
	const char *text, *name, *action;
} codes[] = {
	{ SPYRE_RAS_STREAM_IN_ERROR_STATE, "0x8758", "RUNTIMESCHEDULER::StreamInErrorState",
	  "information" },
	{ SPYRE_RAS_COMPUTE_HARDWARE_ERROR, "0x7b1b", "RUNTIMESCHEDULER::ComputeHardwareError",
	  "information" },
	{ SPYRE_RAS_CONTROL_BLOCK_SOFT_FAIL, "0x1274", "CBRB::ControlBlockSoftFail",
	  "information" },
	{ SPYRE_RAS_MESSAGE_TIMEOUT, "0xd9ec", NULL, "reset" },
	{ SPYRE_RAS_UNSUPPORTED_MESSAGE, "0x1d8c", NULL, "information" },
	{ SPYRE_RAS_INCORRECT_SPYRE_DEVICES_VAR, "0xdbf4",
	  "CONFIGURATION::IncorrectSpyreDevicesVar", "information" },
};

static const char *string(yyjson_doc *doc, const char *field)
{
	return yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), field));
}

/* One line of JSON with all fields and no others. */
static yyjson_doc *read_record(const char *text)
{
	yyjson_doc *doc = yyjson_read(text, strlen(text), 0);

	ck_assert_msg(doc, "no JSON: %s", text);
	ck_assert_ptr_null(strchr(text, '\n'));
	ck_assert_uint_eq(yyjson_obj_size(yyjson_doc_get_root(doc)), NUM_FIELDS);
	for (size_t i = 0; i < NUM_FIELDS; i++)
		ck_assert_msg(yyjson_obj_get(yyjson_doc_get_root(doc), fields[i]), "no %s in %s",
			      fields[i], text);
	return doc;
}

START_TEST(formats)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		spyre_ras_record record = {
			.struct_size = sizeof(record), .code = codes[i].code,
			.message = "a \"message\"\n with all", .address = 0x400000000,
		};
		char text[2048];
		yyjson_doc *doc;

		ck_ok(spyre_ras_format(&record, text, sizeof(text)));
		doc = read_record(text);
		ck_assert_str_eq(string(doc, "code"), codes[i].text);
		ck_assert_str_eq(string(doc, "action"), codes[i].action);
		if (codes[i].name)
			ck_assert_str_eq(string(doc, "name"), codes[i].name);
		ck_assert_str_eq(string(doc, "message"), record.message);
		ck_assert_str_eq(string(doc, "rb_hmierr_addr"), "0x400000000");
		yyjson_doc_free(doc);
	}
}
END_TEST

START_TEST(refused)
{
	spyre_ras_record record = { .struct_size = sizeof(record), .code = 0x1274 };
	char text[2048];

	ck_status(spyre_ras_format(NULL, text, sizeof(text)), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_ras_format(&record, NULL, 0), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_ras_format(&record, text, 100), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("the buffer has 100");
	record.code = 0x1234;
	ck_status(spyre_ras_format(&record, text, sizeof(text)), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("0x1234");
	record.struct_size = 0;
	ck_status(spyre_ras_format(&record, text, sizeof(text)), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("struct_size");
}
END_TEST

/* One stream's work runs too long; the other's is cancelled with it. */
static int fail_work(void)
{
	spyre_context *context;
	spyre_stream *slow, *other;
	spyre_status status;
	spyre_devptr big;

	if (spyre_context_create(0, 0, &context) || spyre_stream_create(context, 0, &other) ||
	    spyre_mem_alloc(context, 512 * MIB, &big))
		return 1;
	setenv("SPYRE_TIMEOUT_MS", "1", 1);
	if (spyre_stream_create(context, 0, &slow))
		return 1;
	for (int i = 0; i < 4; i++) {
		/* A copy may be over its limit before the call has queued all of it. */
		status = spyre_memcpy_d2d_async(slow, big + 256 * MIB, big, 256 * MIB);
		if (status && status != SPYRE_ERROR_TIMEOUT)
			return 2;
	}
	if (spyre_stream_synchronize(slow) != SPYRE_ERROR_TIMEOUT)
		return 3;
	if (spyre_memset_async(other, big, "x", 1, 4096) != SPYRE_ERROR_CANCELLED)
		return 4;
	/* Once for each stream. */
	if (spyre_stream_synchronize(slow) != SPYRE_ERROR_TIMEOUT ||
	    spyre_stream_synchronize(other) != SPYRE_ERROR_CANCELLED)
		return 5;
	return spyre_context_destroy(context) ? 6 : 0;
}

static int bad_devices(void)
{
	int count;

	setenv("SPYRE_DEVICES", "nonsense", 1);
	for (int i = 0; i < 3; i++)
		if (spyre_device_count(&count) != SPYRE_ERROR_CONFIGURATION)
			return 1;
	return 0;
}

static int few_devices(void)
{
	int count;

	setenv("SPYRE_DEVICES", "0", 1);
	setenv("AIU_WORLD_SIZE", "2", 1);
	return spyre_device_count(&count) || count != 1;
}

/* Runs @fn in a separate process, because variables are read once; returns its records. */
static size_t records_of(int (*fn)(void), char lines[4][4096])
{
	char path[] = "/tmp/spyre-ras-XXXXXX";
	int fd = mkstemp(path), status;
	size_t n = 0;
	FILE *file;
	pid_t pid;

	ck_assert_int_ge(fd, 0);
	close(fd);
	pid = fork();
	if (!pid) {
		alarm(100);
		setenv("SPYRE_RAS_LOG", path, 1);
		_exit(fn());
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "child: status 0x%x", status);
	file = fopen(path, "r");
	while (n < 4 && fgets(lines[n], sizeof(lines[0]), file)) {
		lines[n][strcspn(lines[n], "\n")] = '\0';
		n++;
	}
	fclose(file);
	unlink(path);
	return n;
}

START_TEST(written)
{
	static char lines[4][4096];
	yyjson_doc *doc;

	ck_assert_uint_eq(records_of(fail_work, lines), 2);
	doc = read_record(lines[0]);
	ck_assert_str_eq(string(doc, "code"), "0xd9ec");
	ck_assert_str_eq(string(doc, "cb_name"), "plain copy on the device");
	ck_assert_ptr_nonnull(strstr(string(doc, "message"), "time limit"));
	ck_assert_uint_eq(yyjson_get_uint(yyjson_obj_get(yyjson_doc_get_root(doc), "MessageTag")),
			  1);
	ck_assert_uint_eq(yyjson_get_uint(yyjson_obj_get(yyjson_doc_get_root(doc),
							 "cb_ctrl_contextid")), 1);
	yyjson_doc_free(doc);
	doc = read_record(lines[1]);
	ck_assert_str_eq(string(doc, "code"), "0x8758");
	yyjson_doc_free(doc);
}
END_TEST

START_TEST(configuration)
{
	static char lines[4][4096];
	yyjson_doc *doc;

	ck_assert_uint_eq(records_of(bad_devices, lines), 1);
	doc = read_record(lines[0]);
	ck_assert_str_eq(string(doc, "code"), "0xdbf4");
	ck_assert_ptr_nonnull(strstr(string(doc, "message"), "nonsense"));
	yyjson_doc_free(doc);
	ck_assert_uint_eq(records_of(few_devices, lines), 1);
	doc = read_record(lines[0]);
	ck_assert_ptr_nonnull(strstr(string(doc, "message"), "AIU_WORLD_SIZE is 2"));
	yyjson_doc_free(doc);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("ras");

	tcase_add_test(tests, formats);
	tcase_add_test(tests, refused);
	tcase_add_test(tests, written);
	tcase_add_test(tests, configuration);
	return run_suite("runtime_ras", tests);
}
