/* SPDX-License-Identifier: MIT */
/* Traces in memory have the curves and the modelled time that a file of SPYRE_TRACE has. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

#include <yyjson.h>

#include <spyre/trace.h>

#include "runtime_check.h"

#define MODEL_PID 20000000u
#define MAX_EVENTS 20000

static char file[64];
/* Each event as a line, without times that depend on the moment at which a trace begins. */
static char lines[2][MAX_EVENTS][160];
static uint32_t counts[2];

static void setup(void)
{
	snprintf(file, sizeof(file), "/tmp/spyre-trace-memory-%d.json", getpid());
}

static void teardown(void)
{
	unlink(file);
}

static spyre_kernel *load(spyre_context *context, uint64_t *bytes)
{
	spyre_kernel_info info = { .struct_size = sizeof(info) };
	spyre_arg_info arg;
	spyre_kernel *kernel;
	char path[512];

	snprintf(path, sizeof(path), "%s/tests/conformance/bundles/add", getenv("SPYRE_SRCDIR"));
	ck_ok(spyre_kernel_load(context, path, &kernel));
	ck_ok(spyre_kernel_get_info(kernel, &info));
	ck_assert_uint_eq(info.num_args, 3);
	for (int i = 0; i < 3; i++) {
		ck_ok(spyre_kernel_get_arg(kernel, i, &arg));
		bytes[i] = (arg.bytes + 127) / 128 * 128;
	}
	return kernel;
}

/* Three fills, @launches launches on two streams, and allocations before and after them. */
static void work(spyre_context *context, int launches)
{
	spyre_launch_arg args[2][3] = { 0 };
	spyre_launch_params params = { .struct_size = sizeof(params), .num_args = 3 };
	spyre_stream *streams[2] = { get_stream(context, 0), NULL };
	uint64_t bytes[3];
	spyre_kernel *kernel = load(context, bytes);

	ck_ok(spyre_stream_create(context, 0, &streams[1]));
	for (int i = 0; i < 3; i++) {
		ck_ok(spyre_mem_alloc(context, bytes[i], &args[0][i].address));
		ck_ok(spyre_memset_async(streams[0], args[0][i].address, &(uint16_t){ 0x3e00 }, 2,
					 bytes[i]));
	}
	/* Each stream has a result of its own, since they run at the same time. */
	memcpy(args[1], args[0], sizeof(args[0]));
	ck_ok(spyre_mem_alloc(context, bytes[2], &args[1][2].address));
	ck_ok(spyre_stream_synchronize(streams[0]));
	for (int i = 0; i < launches; i++) {
		params.args = args[i % 2];
		ck_ok(spyre_launch_ex(streams[i % 2], kernel, &params));
	}
	ck_ok(spyre_stream_synchronize(streams[0]));
	ck_ok(spyre_stream_synchronize(streams[1]));
	for (int i = 0; i < 3; i++)
		ck_ok(spyre_mem_free(context, args[0][i].address));
	ck_ok(spyre_mem_free(context, args[1][2].address));
	ck_ok(spyre_kernel_unload(kernel));
}

static void add_line(int which, const char *line)
{
	ck_assert_uint_lt(counts[which], MAX_EVENTS);
	snprintf(lines[which][counts[which]++], sizeof(lines[0][0]), "%s", line);
}

static void on_event(void *data, const spyre_trace_event *event)
{
	const char *curve = event->modelled ? "modelled" : "host";
	uint64_t sum = 0, start = 0;
	char line[160];

	(void)data;
	ck_assert_uint_eq(event->struct_size, sizeof(*event));
	switch (event->kind) {
	case SPYRE_TRACE_PROCESS:
	case SPYRE_TRACE_ROW:
		snprintf(line, sizeof(line), "row %u %s", event->row, event->name);
		break;
	case SPYRE_TRACE_COUNTER:
		snprintf(line, sizeof(line), "curve %s %s %" PRIu64, curve, event->name,
			 event->hundredths);
		break;
	default:
		ck_assert_int_eq(event->kind, SPYRE_TRACE_SPAN);
		ck_assert_ptr_nonnull(event->activity);
		ck_assert_int_eq(event->activity->device, event->device);
		ck_assert_uint_ge(event->end_ns, event->start_ns);
		for (uint32_t i = 0; i < event->num_arguments; i++) {
			sum += event->arguments[i].value;
			if (!strcmp(event->arguments[i].name, "start_cycle"))
				start = event->arguments[i].value;
		}
		snprintf(line, sizeof(line), "span %s %u %s %s %" PRIu64 " %u %" PRIu64,
			 event->category, event->row, event->name,
			 event->engine ? event->engine : "-", start, event->num_arguments, sum);
	}
	add_line(0, line);
}

/* The line of an event of the file; false for those that traces in memory do not have. */
static bool line_of(yyjson_val *event, char *line, size_t bytes)
{
	const uint64_t pid = yyjson_get_uint(yyjson_obj_get(event, "pid"));
	const uint64_t row = yyjson_get_uint(yyjson_obj_get(event, "tid"));
	const char *name = yyjson_get_str(yyjson_obj_get(event, "name"));
	const char *engine = "-", *kind = yyjson_get_str(yyjson_obj_get(event, "ph"));
	yyjson_val *args = yyjson_obj_get(event, "args"), *key, *value;
	uint64_t sum = 0, start = 0;
	unsigned int n = 0;
	size_t i, max;

	if (*kind == 'C') {
		double number = yyjson_get_num(yyjson_obj_get(args, "value")) * 100 + 0.5;

		snprintf(line, bytes, "curve %s %s %" PRIu64,
			 pid >= MODEL_PID ? "modelled" : "host", name, (uint64_t)number);
		return true;
	}
	if (pid < MODEL_PID)
		return false;
	if (*kind == 'M') {
		snprintf(line, bytes, "row %" PRIu64 " %s", row,
			 yyjson_get_str(yyjson_obj_get(args, "name")));
		return true;
	}
	yyjson_obj_foreach(args, i, max, key, value) {
		if (yyjson_equals_str(key, "call"))
			continue;
		if (yyjson_equals_str(key, "engine")) {
			engine = yyjson_get_str(value);
			continue;
		}
		sum += yyjson_get_uint(value);
		n++;
		if (yyjson_equals_str(key, "start_cycle"))
			start = yyjson_get_uint(value);
	}
	snprintf(line, bytes, "span %s %" PRIu64 " %s %s %" PRIu64 " %u %" PRIu64,
		 yyjson_get_str(yyjson_obj_get(event, "cat")), row, name, engine, start, n, sum);
	return true;
}

static void read_file(void)
{
	yyjson_doc *doc = yyjson_read_file(file, 0, NULL, NULL);
	yyjson_val *event;
	char line[160];
	size_t i, n;

	ck_assert_ptr_nonnull(doc);
	yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "traceEvents"), i, n, event)
		if (line_of(event, line, sizeof(line)))
			add_line(1, line);
	yyjson_doc_free(doc);
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void write_lines(void)
{
	spyre_context *context = open_card();
	char name[80];
	uint64_t dropped;
	spyre_trace *trace;
	FILE *out;

	ck_ok(spyre_trace_keep_cores());
	ck_ok(spyre_trace_open(0, &trace));
	work(context, 10);
	ck_ok(spyre_trace_stop(trace, &dropped));
	ck_ok(spyre_context_destroy(context));
	ck_ok(spyre_trace_events(trace, on_event, NULL));
	ck_assert_uint_eq(dropped, 0);
	ck_ok(spyre_trace_close(trace));
	snprintf(name, sizeof(name), "%s.lines", file);
	out = fopen(name, "w");
	for (uint32_t i = 0; i < counts[0]; i++)
		fprintf(out, "%s\n", lines[0][i]);
	ck_assert_int_eq(fclose(out), 0);
}

static void read_lines(void)
{
	char name[80], line[160];
	FILE *in;

	snprintf(name, sizeof(name), "%s.lines", file);
	in = fopen(name, "r");
	ck_assert_ptr_nonnull(in);
	while (fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = '\0';
		add_line(0, line);
	}
	fclose(in);
	unlink(name);
}

START_TEST(has_what_the_file_has)
{
	int status, engines = 0;
	pid_t pid = fork();

	if (!pid) {
		setenv("SPYRE_TRACE", file, 1);
		setenv("SPYRE_TRACE_LEVEL", "cores", 1);
		write_lines();
		exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
	read_lines();
	read_file();
	ck_assert_uint_gt(counts[0], 100);
	for (int which = 0; which < 2; which++)
		qsort(lines[which], counts[which], sizeof(lines[0][0]), compare);
	for (uint32_t i = 0; i < counts[0] && i < counts[1]; i++) {
		ck_assert_str_eq(lines[0][i], lines[1][i]);
		engines += !strncmp(lines[0][i], "span engine", 11);
	}
	ck_assert_uint_eq(counts[0], counts[1]);
	ck_assert_int_ge(engines, 10);
}
END_TEST

struct tally {
	int spans, powers, depths, allocations, idle;
};

static void tally(void *data, const spyre_trace_event *event)
{
	struct tally *t = data;
	spyre_trace *other;

	/* The library is usable here. */
	ck_ok(spyre_trace_open(1, &other));
	ck_ok(spyre_trace_close(other));
	t->spans += event->kind == SPYRE_TRACE_SPAN;
	if (event->kind != SPYRE_TRACE_COUNTER)
		return;
	t->depths += !strncmp(event->name, "queue depth", 11);
	t->allocations += !strcmp(event->name, "device memory bytes");
	if (strcmp(event->name, "power W"))
		return;
	ck_assert_uint_eq(event->modelled, 1);
	t->powers += event->hundredths > 2000;
	t->idle += event->hundredths == 2000;
}

/* Without the time of cores: averages of each operation, and of nothing after the stop. */
START_TEST(without_cores)
{
	spyre_context *context = open_card();
	struct tally first = { 0 }, second = { 0 };
	spyre_trace *trace;

	ck_ok(spyre_trace_open(0, &trace));
	work(context, 300);
	ck_ok(spyre_trace_stop(trace, NULL));
	ck_ok(spyre_trace_stop(trace, NULL));
	work(context, 2);
	ck_ok(spyre_trace_events(trace, tally, &first));
	ck_ok(spyre_context_destroy(context));
	ck_ok(spyre_trace_events(trace, tally, &second));
	ck_assert_int_eq(first.spans, 0);
	ck_assert_int_eq(first.powers, 303);
	ck_assert_int_eq(first.idle, 303);
	ck_assert_int_eq(first.depths, 2 * 303);
	ck_assert_int_ge(first.allocations, 8);
	ck_assert_mem_eq(&first, &second, sizeof(first));
	ck_ok(spyre_trace_close(trace));
}
END_TEST

START_TEST(limit)
{
	spyre_context *context = open_card();
	spyre_trace *small, *large;
	struct tally all = { 0 }, some = { 0 };
	uint64_t dropped;

	ck_ok(spyre_trace_open(0, &large));
	ck_ok(spyre_trace_open(5, &small));
	work(context, 20);
	ck_ok(spyre_trace_stop(large, &dropped));
	ck_assert_uint_eq(dropped, 0);
	ck_ok(spyre_trace_stop(small, &dropped));
	ck_ok(spyre_trace_events(large, tally, &all));
	ck_ok(spyre_trace_events(small, tally, &some));
	ck_assert_int_eq(all.powers + all.allocations,
			 some.powers + some.allocations + (int)dropped);
	ck_assert_int_eq(some.powers + some.allocations, 5);
	ck_ok(spyre_trace_close(small));
	ck_ok(spyre_trace_close(large));
	ck_ok(spyre_trace_close(NULL));
	ck_ok(spyre_context_destroy(context));
}
END_TEST

START_TEST(arguments)
{
	spyre_trace *trace;

	ck_assert_int_eq(spyre_trace_open(0, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_trace_stop(NULL, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_ok(spyre_trace_open(0, &trace));
	ck_assert_int_eq(spyre_trace_events(NULL, tally, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_trace_events(trace, NULL, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_ok(spyre_trace_events(trace, tally, &(struct tally){ 0 }));
	ck_ok(spyre_trace_close(trace));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("trace_memory");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, has_what_the_file_has);
	tcase_add_test(tests, without_cores);
	tcase_add_test(tests, limit);
	tcase_add_test(tests, arguments);
	return run_suite("trace_memory", tests);
}
