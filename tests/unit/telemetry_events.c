/* SPDX-License-Identifier: MIT */
/* The stream of events: the kernel's rings, logs of processes, and logs that lie. */
#include "config.h"
#include "suite.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libspyre/telemetry/event_log.h"
#include "libspyre/telemetry/page.h"
#include "tests/unit/fake_cards.h"

#define RING "/sys/devices/platform/spyre_vdev.%d/%s"

static spyre_telemetry_events *events;
static spyre_telemetry_event event;
static char folder[160];

static const spyre_device_properties embedded = {
	.struct_size = sizeof(embedded),
	.uuid = "00000000-0000-4000-8000-00000000000e",
	.bus_id = "embedded.0",
	.backend = SPYRE_BACKEND_EMBEDDED,
};

static void setup(void)
{
	char pages[128];

	fake_begin();
	snprintf(pages, sizeof(pages), "%s/pages", fake_root());
	ck_assert_int_eq(mkdir(pages, 0755), 0);
	setenv("SPYRE_TELEMETRY_DIR", pages, 1);
	snprintf(folder, sizeof(folder), "%s/spyre-%u", pages, (unsigned int)geteuid());
	/* The pages of live processes are told from those of dead ones by the real /proc. */
	unsetenv("SPYRE_FSROOT");
}

static void use_fake_cards(void)
{
	setenv("SPYRE_FSROOT", fake_root(), 1);
	fake_card(0, 0, "/dev/null");
}

static void teardown(void)
{
	spyre_telemetry_events_close(events);
	events = NULL;
	fake_end();
}

static void open_events(uint32_t flags)
{
	ck_assert_int_eq(spyre_telemetry_events_open(flags, &events), SPYRE_SUCCESS);
}

/* Cards of this machine's kernel may have events of their own. */
static bool is_test_event(void)
{
	return getenv("SPYRE_FSROOT") || event.uid != UINT32_MAX;
}

static void next(spyre_telemetry_event_kind kind)
{
	do {
		event.struct_size = sizeof(event);
		ck_assert_int_eq(spyre_telemetry_events_next(events, UINT64_MAX, &event),
				 SPYRE_SUCCESS);
	} while (!is_test_event());
	ck_assert_int_eq(event.kind, kind);
	ck_assert_uint_eq(event.struct_size, sizeof(event));
}

/* Logs an event and expects that it is the next one: there was no other before it. */
static void nothing_else(void)
{
	struct spyre_telemetry_page page = { .pid = 77, .properties = embedded };

	spyre_event_log(&page, SPYRE_TELEMETRY_CARD_RESET, SPYRE_FAULT_NONE, 4711);
	next(SPYRE_TELEMETRY_CARD_RESET);
	ck_assert_uint_eq(event.value, 4711);
}

START_TEST(arguments)
{
	spyre_telemetry_event unset = { 0 };

	ck_assert_int_eq(spyre_telemetry_events_open(0, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_telemetry_events_open(2, &events), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_ptr_null(events);
	ck_assert_int_eq(spyre_telemetry_events_next(NULL, 0, &event),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	open_events(0);
	ck_assert_int_eq(spyre_telemetry_events_next(events, 0, NULL),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_telemetry_events_next(events, 0, &unset),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_telemetry_events_fd(NULL), -1);
	spyre_telemetry_events_close(NULL);
}
END_TEST

START_TEST(rings_of_a_card)
{
	char path[128];

	use_fake_cards();
	fake_file("/sys/devices/platform/spyre_vdev.0/events",
		  "0 2\n0 1000 reset 1 0\n1 3000 vfs 2 0\n");
	fake_file("/sys/devices/platform/spyre_vdev.0/context_events",
		  "7 10\n7 2000 fault 1 44\n8 2500 of_a_newer_module 9 9\n9 4000 context_reset 3 44\n");
	open_events(SPYRE_TELEMETRY_EVENTS_KEPT);
	next(SPYRE_TELEMETRY_CARD_RESET);
	ck_assert_uint_eq(event.value, 1);
	ck_assert_uint_eq(event.time_ns, 1000);
	ck_assert_str_eq(event.bus_id, "spyre_vdev.0");
	ck_assert_str_eq(event.uuid, "0b5a9c3e-0000-4000-8000-000000000000");
	ck_assert_uint_eq(event.uid, UINT32_MAX);
	ck_assert_int_eq(event.pid + event.host_pid, 0);
	next(SPYRE_TELEMETRY_FAULT);
	ck_assert_int_eq(event.fault, SPYRE_FAULT_TIMEOUT);
	ck_assert_uint_eq(event.context, 44);
	next(SPYRE_TELEMETRY_CARD_VFS);
	ck_assert_uint_eq(event.value, 2);
	next(SPYRE_TELEMETRY_CONTEXT_RESET);
	ck_assert_uint_eq(event.context, 44);
	/* Files that a plain user may not read do not hide the rest. */
	snprintf(path, sizeof(path), RING, 0, "context_events");
	fake_remove(path);
	fake_file("/sys/devices/platform/spyre_vdev.0/events", "5 6\n5 9000 reset 6 0\n");
	next(SPYRE_TELEMETRY_CARD_RESET);
	ck_assert_uint_eq(event.value, 6);
	next(SPYRE_TELEMETRY_LOST);
	ck_assert_uint_eq(event.value, 3);
	nothing_else();
}
END_TEST

START_TEST(only_new_events)
{
	use_fake_cards();
	fake_file("/sys/devices/platform/spyre_vdev.0/events", "0 1\n0 1000 reset 1 0\n");
	open_events(0);
	fake_file("/sys/devices/platform/spyre_vdev.0/events",
		  "0 2\n0 1000 reset 1 0\n1 2000 reset 2 0\n");
	next(SPYRE_TELEMETRY_CARD_RESET);
	ck_assert_uint_eq(event.value, 2);
}
END_TEST

START_TEST(cards_come_and_go)
{
	use_fake_cards();
	open_events(SPYRE_TELEMETRY_EVENTS_KEPT);
	fake_card(1, 1, "/dev/zero");
	next(SPYRE_TELEMETRY_CARD_ADDED);
	ck_assert_str_eq(event.bus_id, "spyre_vdev.1");
	fake_remove("/sys/class/accel/accel0");
	next(SPYRE_TELEMETRY_CARD_REMOVED);
	ck_assert_str_eq(event.bus_id, "spyre_vdev.0");
	ck_assert_uint_gt(event.time_ns, 0);
	nothing_else();
}
END_TEST

static const char *const bad_rings[] = {
	"", "x", "1", "2 1\n", "0 18446744073709551615\n", "0 1\n0 1 fault 99 1\n",
	"0 1\n0 1\n", "0 1\n0 1 reset\n\n\n\n", "-1 -1\n",
	"0 1\n0 1 resetresetresetresetreset 1 1\n",
};

START_TEST(wrong_rings)
{
	use_fake_cards();
	fake_file("/sys/devices/platform/spyre_vdev.0/context_events", "%s", bad_rings[_i]);
	open_events(SPYRE_TELEMETRY_EVENTS_KEPT);
	nothing_else();
}
END_TEST

/* A process with an embedded card, which ends when it is told, or is killed. */
static pid_t start_process(int *tell)
{
	struct spyre_telemetry_page *page;
	int pipe_to[2];
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(pipe_to), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		close(pipe_to[1]);
		page = spyre_telemetry_publish(&embedded);
		spyre_event_log(page, SPYRE_TELEMETRY_FAULT, SPYRE_FAULT_ACCESS, 0);
		spyre_event_log_ras(&embedded, 0x1274, "{\"code\":\"0x1274\"}");
		if (read(pipe_to[0], &byte, 1) == 1)
			spyre_telemetry_unpublish(page);
		_exit(0);
	}
	close(pipe_to[0]);
	*tell = pipe_to[1];
	return pid;
}

START_TEST(processes)
{
	pid_t pid;
	int tell;

	open_events(0);
	pid = start_process(&tell);
	next(SPYRE_TELEMETRY_CARD_ADDED);
	ck_assert_str_eq(event.bus_id, "embedded.0");
	ck_assert_str_eq(event.uuid, embedded.uuid);
	ck_assert_int_eq(event.host_pid, pid);
	ck_assert_int_eq(event.pid, pid);
	ck_assert_uint_eq(event.uid, geteuid());
	ck_assert_str_eq(event.process, program_invocation_short_name);
	next(SPYRE_TELEMETRY_FAULT);
	ck_assert_int_eq(event.fault, SPYRE_FAULT_ACCESS);
	next(SPYRE_TELEMETRY_RAS);
	ck_assert_uint_eq(event.value, 0x1274);
	ck_assert_str_eq(event.record, "{\"code\":\"0x1274\"}");
	ck_assert_int_eq(event.host_pid, pid);
	if (_i)
		kill(pid, SIGKILL);
	else
		ck_assert_int_eq(write(tell, "x", 1), 1);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	close(tell);
	next(SPYRE_TELEMETRY_CARD_REMOVED);
	ck_assert_int_eq(event.host_pid, pid);
	ck_assert_str_eq(event.uuid, embedded.uuid);
	nothing_else();
}
END_TEST

START_TEST(descriptor)
{
	struct pollfd fd;

	open_events(0);
	fd = (struct pollfd){ .fd = spyre_telemetry_events_fd(events), .events = POLLIN };
	nothing_else();
	/* Readable at the latest with the next event; NOT_READY once it is read. */
	do
		ck_assert_int_eq(poll(&fd, 1, -1), 1);
	while (spyre_telemetry_events_next(events, 0, &event) != SPYRE_NOT_READY);
	ck_assert_int_eq(poll(&fd, 1, 0), 0);
}
END_TEST

/* More than two logs take: the newest are kept, a reader that follows gets all. */
START_TEST(full_logs)
{
	struct spyre_telemetry_page page = { .pid = 77, .properties = embedded };
	const uint64_t number = 4000;
	spyre_telemetry_events *late;
	uint64_t i, kept = 0;
	struct stat st;
	char path[200];

	open_events(0);
	for (i = 0; i < number; i++) {
		spyre_event_log(&page, SPYRE_TELEMETRY_CARD_RESET, SPYRE_FAULT_NONE, i);
		next(SPYRE_TELEMETRY_CARD_RESET);
		ck_assert_uint_eq(event.value, i);
		/* Reading one by one would wait for the timer each time. */
		for (uint64_t more = 0; more < 100 && i + 1 < number; more++)
			spyre_event_log(&page, SPYRE_TELEMETRY_CARD_RESET, SPYRE_FAULT_NONE, ++i);
		for (uint64_t at = i - i % 101 + 1; at <= i; at++) {
			next(SPYRE_TELEMETRY_CARD_RESET);
			ck_assert_uint_eq(event.value, at);
		}
	}
	snprintf(path, sizeof(path), "%s/" SPYRE_EVENT_LOG_OLD, folder);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_ge(st.st_size, SPYRE_EVENT_LOG_BYTES);
	ck_assert_int_lt(st.st_size, SPYRE_EVENT_LOG_BYTES + 4096);
	late = events;
	open_events(SPYRE_TELEMETRY_EVENTS_KEPT);
	spyre_telemetry_events_close(late);
	next(SPYRE_TELEMETRY_CARD_RESET);
	for (i = event.value; i + 1 < number; kept++) {
		next(SPYRE_TELEMETRY_CARD_RESET);
		ck_assert_uint_eq(event.value, ++i);
	}
	ck_assert_uint_gt(kept, SPYRE_EVENT_LOG_BYTES / 512);
}
END_TEST

/* An event that the limit of file sizes forbids is lost, and sends no signal. */
START_TEST(limited_log)
{
	struct spyre_telemetry_page page = { .pid = 77, .properties = embedded };
	const struct rlimit limit = { .rlim_cur = 100, .rlim_max = RLIM_INFINITY };
	struct rlimit old;

	open_events(0);
	spyre_event_log(&page, SPYRE_TELEMETRY_CARD_RESET, SPYRE_FAULT_NONE, 1);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
	/* The assertions of libcheck write to a file, so there is none while the limit is low. */
	setrlimit(RLIMIT_FSIZE, &limit);
	spyre_event_log(&page, SPYRE_TELEMETRY_CARD_RESET, SPYRE_FAULT_NONE, 2);
	setrlimit(RLIMIT_FSIZE, &old);
	spyre_event_log(&page, SPYRE_TELEMETRY_CARD_RESET, SPYRE_FAULT_NONE, 3);
	next(SPYRE_TELEMETRY_CARD_RESET);
	ck_assert_uint_eq(event.value, 1);
	next(SPYRE_TELEMETRY_CARD_RESET);
	ck_assert_uint_eq(event.value, 3);
}
END_TEST

static void write_log(const char *bytes, size_t count)
{
	char path[200];
	FILE *file;

	mkdir(folder, 0700);
	snprintf(path, sizeof(path), "%s/" SPYRE_EVENT_LOG, folder);
	file = fopen(path, "a");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
	ck_assert_int_eq(fclose(file), 0);
}

#define REST "\"host_pid\":1,\"pid\":1,\"bus_id\":\"b\",\"uuid\":\"u\",\"process\":\"p\",\"record\":\"\"}\n"

static const char *const bad_lines[] = {
	"\n\n\n", "{\n", "[1,2]\n", "null\n", "\"text\"\n", "{}\n", "\x80\xff\n",
	"{\"time_ns\":1,\"kind\":0,\"fault\":0,\"value\":0," REST,
	"{\"time_ns\":1,\"kind\":8,\"fault\":0,\"value\":0," REST,
	"{\"time_ns\":1,\"kind\":6,\"fault\":5,\"value\":0," REST,
	"{\"time_ns\":-1,\"kind\":6,\"fault\":1,\"value\":0," REST,
	"{\"time_ns\":1.5,\"kind\":6,\"fault\":1,\"value\":0," REST,
	"{\"time_ns\":1,\"kind\":6,\"fault\":1,\"value\":\"x\"," REST,
	"{\"time_ns\":1,\"kind\":6,\"fault\":1,\"value\":0,\"host_pid\":4294967296,\"pid\":1,"
	"\"bus_id\":\"b\",\"uuid\":\"u\",\"process\":\"p\",\"record\":\"\"}\n",
	"{\"time_ns\":1,\"kind\":6,\"fault\":1,\"value\":0,\"host_pid\":1,\"pid\":1,"
	"\"bus_id\":7,\"uuid\":\"u\",\"process\":\"p\",\"record\":\"\"}\n",
	"a line without an end is one with the next",
};

START_TEST(wrong_lines)
{
	write_log(bad_lines[_i], strlen(bad_lines[_i]));
	if (bad_lines[_i][strlen(bad_lines[_i]) - 1] != '\n')
		write_log("\n", 1);
	open_events(SPYRE_TELEMETRY_EVENTS_KEPT);
	nothing_else();
}
END_TEST

START_TEST(long_and_odd_lines)
{
	static char garbage[3 * SPYRE_EVENT_LOG_BYTES];
	static const char odd[] =
		"{\"time_ns\":1,\"kind\":6,\"fault\":1,\"value\":0,\"host_pid\":1,\"pid\":1,"
		"\"bus_id\":\"\\u001b[2J\",\"uuid\":\"0123456789012345678901234567890123456789\","
		"\"process\":\"a\\nb\\u0000c\",\"record\":\"\"}\n";

	memset(garbage, 'x', sizeof(garbage));
	write_log(garbage, sizeof(garbage));
	write_log("\n", 1);
	write_log(odd, sizeof(odd) - 1);
	open_events(SPYRE_TELEMETRY_EVENTS_KEPT);
	next(SPYRE_TELEMETRY_FAULT);
	ck_assert_str_eq(event.bus_id, "?[2J");
	ck_assert_str_eq(event.uuid, "");
	ck_assert_str_eq(event.process, "");
	nothing_else();
}
END_TEST

/* Files that are not logs are neither waited for nor followed. */
START_TEST(not_a_log)
{
	char path[200];

	ck_assert_int_eq(mkdir(folder, 0700), 0);
	snprintf(path, sizeof(path), "%s/" SPYRE_EVENT_LOG, folder);
	if (_i == 0)
		ck_assert_int_eq(mkfifo(path, 0600), 0);
	else if (_i == 1)
		ck_assert_int_eq(symlink("/etc/passwd", path), 0);
	else
		ck_assert_int_eq(mkdir(path, 0700), 0);
	open_events(SPYRE_TELEMETRY_EVENTS_KEPT);
	/* Neither does a process that has an event wait. */
	spyre_event_log_ras(NULL, 1, "{}");
	ck_assert_int_eq(_i == 2 ? rmdir(path) : unlink(path), 0);
	nothing_else();
}
END_TEST

START_TEST(a_log_that_is_cut)
{
	char path[200];

	open_events(0);
	nothing_else();
	nothing_else();
	snprintf(path, sizeof(path), "%s/" SPYRE_EVENT_LOG, folder);
	ck_assert_int_eq(truncate(path, 0), 0);
	nothing_else();
	ck_assert_int_eq(unlink(path), 0);
	nothing_else();
}
END_TEST

/* A reader that follows skips a hole of a tebibyte, which would take it minutes to read. */
START_TEST(a_log_with_a_hole)
{
	char path[200];

	open_events(0);
	nothing_else();
	snprintf(path, sizeof(path), "%s/" SPYRE_EVENT_LOG, folder);
	ck_assert_int_eq(truncate(path, (off_t)1 << 40), 0);
	/* The writer begins another log, since this one is full. */
	nothing_else();
	ck_assert_int_eq(truncate(path, (off_t)1 << 40), 0);
	write_log("\n", 1);
	nothing_else();
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("events");
	Suite *suite = suite_create("telemetry_events");

	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, arguments);
	tcase_add_test(tests, rings_of_a_card);
	tcase_add_test(tests, only_new_events);
	tcase_add_test(tests, cards_come_and_go);
	tcase_add_loop_test(tests, wrong_rings, 0, sizeof(bad_rings) / sizeof(bad_rings[0]));
	tcase_add_loop_test(tests, processes, 0, 2);
	tcase_add_test(tests, descriptor);
	tcase_add_test(tests, full_logs);
	tcase_add_test(tests, limited_log);
	tcase_add_loop_test(tests, wrong_lines, 0, sizeof(bad_lines) / sizeof(bad_lines[0]));
	tcase_add_test(tests, long_and_odd_lines);
	tcase_add_loop_test(tests, not_a_log, 0, 3);
	tcase_add_test(tests, a_log_that_is_cut);
	tcase_add_test(tests, a_log_with_a_hole);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}
