/* SPDX-License-Identifier: MIT */
/* SPYRE_TRACE: the file is complete in every way in which a process can end, and harms nothing. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <yyjson.h>

#include "libspyre/runtime/trace_event.h"
#include "libspyre/runtime/trace_file.h"
#include "runtime_check.h"

#define CARD_PID 10000000u

/*
 * ASan's allocator in GCC 12 leaves a lock to the child of fork() that another thread held, as
 * threads do that start. A child that opens a card and looks for leaks then never ends. TSan ends
 * a child of a process with threads as soon as the child starts one.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHILDREN_RUN false
#else
#define CHILDREN_RUN true
#endif

static char folder[] = "/tmp/spyre-trace-XXXXXX";
static char file[64], messages[64];

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/trace.json", folder);
	snprintf(messages, sizeof(messages), "%s/stderr", folder);
}

static void teardown(void)
{
	unlink(file);
	unlink(messages);
	rmdir(folder);
}

/* Runs @main in a process with SPYRE_TRACE=@trace, whose stderr goes to the file of messages. */
static pid_t start(void (*main)(void), const char *trace)
{
	pid_t pid = fork();
	int out;

	ck_assert_int_ge(pid, 0);
	if (pid)
		return pid;
	out = open(messages, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(out, STDERR_FILENO);
	setenv("SPYRE_TRACE", trace, 1);
	main();
	exit(0);
}

static void run(void (*main)(void), const char *trace)
{
	int status;

	ck_assert_int_gt(waitpid(start(main, trace), &status, 0), 0);
	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "status 0x%x", status);
}

/* How often the messages contain @text. */
static int said(const char *text)
{
	char all[8192] = "";
	FILE *from = fopen(messages, "r");
	int n = 0;

	ck_assert_ptr_nonnull(from);
	ck_assert_uint_lt(fread(all, 1, sizeof(all) - 1, from), sizeof(all) - 1);
	fclose(from);
	for (const char *at = all; (at = strstr(at, text)); at++)
		n++;
	return n;
}

static yyjson_doc *parse(void)
{
	yyjson_read_err err;
	yyjson_doc *doc = yyjson_read_file(file, 0, NULL, &err);

	ck_assert_msg(doc != NULL, "%s at byte %zu", err.msg, err.pos);
	return doc;
}

static yyjson_val *events(yyjson_doc *doc)
{
	yyjson_val *all = yyjson_obj_get(yyjson_doc_get_root(doc), "traceEvents");

	ck_assert(yyjson_is_arr(all));
	return all;
}

static uint64_t arg(yyjson_val *event, const char *name)
{
	yyjson_val *value = yyjson_obj_get(yyjson_obj_get(event, "args"), name);

	ck_assert_msg(yyjson_is_uint(value), "no number %s", name);
	return yyjson_get_uint(value);
}

static bool is(yyjson_val *event, const char *field, const char *value)
{
	return yyjson_equals_str(yyjson_obj_get(event, field), value);
}

static int count(yyjson_doc *doc, const char *field, const char *value)
{
	yyjson_val *event;
	size_t i, n;
	int found = 0;

	yyjson_arr_foreach(events(doc), i, n, event)
		found += is(event, field, value);
	return found;
}

/* Check's assertions write to a file, which a limit of this test would concern. */
#define ok(call)                                                                        \
	do {                                                                            \
		if (call) {                                                             \
			fprintf(stderr, "%s: %s\n", #call, spyre_last_error());         \
			_exit(1);                                                       \
		}                                                                       \
	} while (0)

/* Four operations: in, a fill, a copy on the card, and out. */
static spyre_stream *work(spyre_context *context, int times)
{
	static uint8_t host[4096];
	uint32_t pattern = 7;
	spyre_stream *stream;
	spyre_devptr device;

	ok(spyre_stream_get(context, 3, &stream));
	ok(spyre_mem_alloc(context, 8192, &device));
	for (int i = 0; i < times; i++) {
		ok(spyre_memcpy_h2d_async(stream, device, host, 4096));
		ok(spyre_memset_async(stream, device + 4096, &pattern, 4, 512));
		ok(spyre_memcpy_d2d_async(stream, device + 1024, device + 4096, 512));
		ok(spyre_memcpy_d2h_async(stream, host, device, 2048));
	}
	return stream;
}

static void main_synchronised(void)
{
	spyre_context *context = open_card();

	ok(spyre_stream_synchronize(work(context, 1)));
	ok(spyre_context_destroy(context));
}

/* The runtime event that queued the work; its flow begins there and ends at the work. */
static void check_call(yyjson_doc *doc, yyjson_val *of)
{
	const uint64_t call = arg(of, "call");
	yyjson_val *event;
	size_t i, n;
	int calls = 0, begins = 0, ends = 0;

	yyjson_arr_foreach(events(doc), i, n, event) {
		const bool mine = yyjson_get_uint(yyjson_obj_get(event, "id")) == call;

		begins += mine && is(event, "ph", "s");
		ends += mine && is(event, "ph", "f");
		if (is(event, "cat", "runtime") && yyjson_obj_get(event, "args") &&
		    arg(event, "call") == call) {
			calls++;
			ck_assert(yyjson_get_num(yyjson_obj_get(event, "ts")) <=
				  yyjson_get_num(yyjson_obj_get(of, "ts")));
		}
	}
	ck_assert_int_eq(calls, 1);
	ck_assert_int_eq(begins, 1);
	ck_assert_int_eq(ends, 1);
}

START_TEST(kinds)
{
	yyjson_doc *doc;
	yyjson_val *event;
	size_t i, n;
	uint64_t read = 0, written = 0;

	run(main_synchronised, file);
	doc = parse();
	ck_assert_int_eq(count(doc, "cat", "copy"), 3);
	ck_assert_int_eq(count(doc, "cat", "fill"), 1);
	ck_assert_int_eq(count(doc, "name", "spyre_stream_synchronize"), 1);
	ck_assert_int_eq(count(doc, "name", "spyre_mem_alloc"), 1);
	yyjson_arr_foreach(events(doc), i, n, event) {
		if (!is(event, "cat", "copy") && !is(event, "cat", "fill"))
			continue;
		ck_assert_uint_eq(yyjson_get_uint(yyjson_obj_get(event, "pid")), CARD_PID);
		ck_assert_uint_eq(yyjson_get_uint(yyjson_obj_get(event, "tid")), 3);
		ck_assert_uint_gt(arg(event, "cycles"), 0);
		read += arg(event, "bytes_read");
		written += arg(event, "bytes_written");
		check_call(doc, event);
	}
	ck_assert_uint_eq(read, 512 + 2048);
	ck_assert_uint_eq(written, 4096 + 512 + 512);
	yyjson_doc_free(doc);
}
END_TEST

static void main_unsynchronised(void)
{
	work(open_card(), 200);
}

static void main_curves(void)
{
	spyre_context *context = open_card();
	spyre_devptr device;

	ok(spyre_mem_alloc(context, 1 << 20, &device));
	ok(spyre_stream_synchronize(work(context, 50)));
	ok(spyre_mem_free(context, device));
	ok(spyre_context_destroy(context));
}

static int64_t ns_of(yyjson_val *event, const char *field)
{
	return llround(1000 * yyjson_get_num(yyjson_obj_get(event, field)));
}

/* When the call with this number queued its work. */
static int64_t queued_at(yyjson_doc *doc, uint64_t call)
{
	yyjson_val *event;
	size_t i, n;

	yyjson_arr_foreach(events(doc), i, n, event)
		if (is(event, "ph", "s") && yyjson_get_uint(yyjson_obj_get(event, "id")) == call)
			return ns_of(event, "ts");
	ck_abort_msg("no call %llu", (unsigned long long)call);
}

#define CURVE_OPERATIONS 200

static struct {
	int64_t queued, end;
} operations[CURVE_OPERATIONS];

static void read_operations(yyjson_doc *doc)
{
	yyjson_val *event;
	size_t i, n;
	int found = 0;

	yyjson_arr_foreach(events(doc), i, n, event) {
		if (!is(event, "cat", "copy") && !is(event, "cat", "fill"))
			continue;
		ck_assert_int_lt(found, CURVE_OPERATIONS);
		operations[found].queued = queued_at(doc, arg(event, "call"));
		operations[found++].end = ns_of(event, "ts") + ns_of(event, "dur");
	}
	ck_assert_int_eq(found, CURVE_OPERATIONS);
}

/* Operations that were queued at @ns and had not ended. */
static int depth_at(int64_t ns)
{
	int depth = 0;

	for (int i = 0; i < CURVE_OPERATIONS; i++)
		depth += operations[i].queued <= ns && operations[i].end > ns;
	return depth;
}

static double value_of(yyjson_val *event)
{
	return yyjson_get_num(yyjson_obj_get(yyjson_obj_get(event, "args"), "value"));
}

/* The length of the queue and the memory in use, at each change. */
START_TEST(curves)
{
	const double memory[] = { 1 << 20, (1 << 20) + 8192, 8192 };
	int64_t ns, last = INT64_MIN;
	double value = -1;
	int allocations = 0, changes = 0;
	yyjson_doc *doc;
	yyjson_val *event;
	size_t i, n;

	run(main_curves, file);
	doc = parse();
	read_operations(doc);
	yyjson_arr_foreach(events(doc), i, n, event) {
		if (is(event, "name", "device memory bytes")) {
			ck_assert_int_lt(allocations, 3);
			ck_assert_double_eq(value_of(event), memory[allocations++]);
		}
		if (!is(event, "name", "queue depth, stream 3"))
			continue;
		ck_assert_uint_eq(yyjson_get_uint(yyjson_obj_get(event, "pid")), CARD_PID);
		ns = ns_of(event, "ts");
		/* Of changes at the same time the last one counts. */
		if (ns != last && changes)
			ck_assert_double_eq(value, depth_at(last));
		ck_assert_int_ge(ns, last);
		value = value_of(event);
		last = ns;
		changes++;
	}
	ck_assert_int_eq(allocations, 3);
	ck_assert_int_eq(changes, 2 * CURVE_OPERATIONS);
	ck_assert_double_eq(value, 0);
	yyjson_doc_free(doc);
}
END_TEST

#define MANY 200

/* Operations of stream 77 as its work would report them: three that overlap, then many at once. */
static void main_queue(void)
{
	const uint64_t queued[] = { 1000, 2000, 3000 }, ends[] = { 2500, 4000, 4500 };
	spyre_activity activity = { .stream = 77 };

	open_card();
	for (int i = 0; i < 3 + MANY; i++) {
		activity.queue_start_ns = i < 3 ? queued[i] : 5000;
		activity.end_ns = i < 3 ? ends[i] : 6000 + i;
		trace_add_queued(&trace_file_out, &activity);
	}
}

START_TEST(queue_curve)
{
	static const struct {
		int64_t ns;
		int depth;
	} steps[] = {
		{ 1000, 1 }, { 2000, 2 }, { 2500, 1 }, { 3000, 2 }, { 4000, 1 }, { 4500, 0 },
	};
	yyjson_doc *doc;
	yyjson_val *event;
	size_t i, n;
	int at = 0, expected;

	run(main_queue, file);
	doc = parse();
	yyjson_arr_foreach(events(doc), i, n, event) {
		if (!is(event, "name", "queue depth, stream 77"))
			continue;
		if (at < 6) {
			expected = steps[at].depth;
			ck_assert_int_eq(ns_of(event, "ts"), steps[at].ns);
		} else {
			expected = at < 6 + MANY ? at - 5 : 6 + 2 * MANY - 1 - at;
			ck_assert_int_eq(ns_of(event, "ts"), at < 6 + MANY ? 5000 :
								6003 + at - 6 - MANY);
		}
		ck_assert_double_eq(value_of(event), expected);
		at++;
	}
	ck_assert_int_eq(at, 6 + 2 * MANY);
	yyjson_doc_free(doc);
}
END_TEST

/* Work without a result at exit is counted. */
START_TEST(unsynchronised)
{
	yyjson_doc *doc;
	yyjson_val *event;
	size_t i, n;
	int found;

	run(main_unsynchronised, file);
	doc = parse();
	found = count(doc, "cat", "copy") + count(doc, "cat", "fill");
	yyjson_arr_foreach(events(doc), i, n, event)
		if (is(event, "name", "the process ended with unfinished operations"))
			found += (int)arg(event, "operations");
	ck_assert_int_eq(found, 800);
	yyjson_doc_free(doc);
}
END_TEST

static void main_forks(void)
{
	spyre_context *context = open_card();
	int status;
	pid_t pid;

	ck_ok(spyre_stream_synchronize(work(context, 1)));
	pid = fork();
	if (!pid) {
		ck_ok(spyre_stream_synchronize(work(open_card(), 50)));
		exit(0);
	}
	waitpid(pid, &status, 0);
	ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
	ck_ok(spyre_stream_synchronize(work(context, 1)));
}

/* The child's exit writes nothing, and the parent's events after it follow those before. */
START_TEST(only_the_parent_writes)
{
	yyjson_doc *doc;

	run(main_forks, file);
	doc = parse();
	ck_assert_int_eq(count(doc, "cat", "copy"), 6);
	ck_assert_int_eq(count(doc, "cat", "fill"), 2);
	yyjson_doc_free(doc);
}
END_TEST

static void main_waits(void)
{
	spyre_context *context = open_card();

	ck_ok(spyre_stream_synchronize(work(context, 1)));
	kill(getpid(), SIGSTOP);
}

START_TEST(two_processes)
{
	pid_t first = start(main_waits, file);
	yyjson_doc *doc;
	int status;

	ck_assert_int_eq(waitpid(first, &status, WUNTRACED), first);
	ck_assert(WIFSTOPPED(status));
	run(main_synchronised, file);
	ck_assert_int_eq(said("another process writes it"), 1);
	kill(first, SIGCONT);
	ck_assert_int_eq(waitpid(first, &status, 0), first);
	doc = parse();
	ck_assert_int_eq(count(doc, "cat", "copy"), 3);
	yyjson_doc_free(doc);
}
END_TEST

#define LIMIT (300u << 10)

static void main_limited(void)
{
	const struct rlimit limit = { LIMIT, LIMIT };
	spyre_context *context = open_card();

	ok(setrlimit(RLIMIT_FSIZE, &limit));
	ok(spyre_stream_synchronize(work(context, 2000)));
	ok(spyre_stream_synchronize(work(context, 2000)));
	ok(spyre_context_destroy(context));
}

/* A file that can grow no more, as on a full disk, keeps the events that it has. */
START_TEST(full)
{
	yyjson_doc *doc;
	struct stat st;

	run(main_limited, file);
	ck_assert_int_eq(said("cannot write the trace"), 1);
	ck_assert_int_eq(said("it holds the events up to there"), 1);
	ck_assert_int_eq(stat(file, &st), 0);
	ck_assert_uint_le(st.st_size, LIMIT);
	doc = parse();
	ck_assert_int_gt(count(doc, "cat", "copy"), 100);
	yyjson_doc_free(doc);
}
END_TEST

/* Each is reported once, and the work is done. */
START_TEST(unwritable)
{
	run(main_synchronised, "/nowhere/trace.json");
	ck_assert_int_eq(said("SPYRE_TRACE=\"/nowhere/trace.json\": No such file"), 1);
	run(main_synchronised, "/dev/full");
	ck_assert_int_eq(said("it is not a regular file"), 1);
	ck_assert_int_eq(said("cannot write the trace"), 2);
}
END_TEST

START_TEST(names_of_processes)
{
	char pattern[64], named[96];
	pid_t pid;
	int status;

	snprintf(pattern, sizeof(pattern), "%s/%%p-%%r.json", folder);
	setenv("RANK", "5", 1);
	pid = start(main_synchronised, pattern);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	snprintf(named, sizeof(named), "%s/%d-5.json", folder, pid);
	ck_assert_int_eq(rename(named, file), 0);
	yyjson_doc_free(parse());
}
END_TEST

/* Any bytes become a JSON string. */
START_TEST(strings)
{
	static const char *const hostile[] = {
		"\"\\\n\x1b[2J\x7f", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82",
		"\xff\xfe", "\xe2\x82\xac ok", "\xf0\x80\x80\x80", "</script>",
	};

	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		struct trace_text text = { 0 };
		yyjson_doc *doc;

		trace_put_string(&text, hostile[i]);
		doc = yyjson_read(text.text, text.used, 0);
		ck_assert_msg(doc != NULL, "string %zu: %.*s", i, (int)text.used, text.text);
		ck_assert(yyjson_is_str(yyjson_doc_get_root(doc)));
		yyjson_doc_free(doc);
	}
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("runtime_trace");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, kinds);
	tcase_add_test(tests, curves);
	tcase_add_test(tests, queue_curve);
	tcase_add_test(tests, unsynchronised);
	if (CHILDREN_RUN)
		tcase_add_test(tests, only_the_parent_writes);
	tcase_add_test(tests, two_processes);
	tcase_add_test(tests, full);
	tcase_add_test(tests, unwritable);
	tcase_add_test(tests, names_of_processes);
	tcase_add_test(tests, strings);
	return run_suite("runtime_trace", tests);
}
