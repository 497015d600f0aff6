/* SPDX-License-Identifier: MIT */
/*
 * SPYRE_TRACE_LEVEL=cores, over all bundles of the conformance tests: the modelled time of
 * phases, cores and engines adds up to that of the launch exactly, and no byte of a result
 * depends on the trace.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <yyjson.h>

#include "runtime_check.h"

#define MODEL_PID 20000000u
#define MAX_ARGS 32

static char folder[] = "/tmp/spyre-cores-XXXXXX";

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static char *in_folder(const char *name)
{
	static char path[2][96];
	static int next;

	next = !next;
	snprintf(path[next], sizeof(path[next]), "%s/%s", folder, name);
	return path[next];
}

static void teardown(void)
{
	unlink(in_folder("trace.json"));
	unlink(in_folder("with"));
	unlink(in_folder("without"));
	rmdir(folder);
}

/* Numbers of the size of activations; indices and counts are 0, which every table has. */
static void fill(void *data, const spyre_arg_info *info, uint64_t bytes)
{
	memset(data, 0, bytes);
	if (info->format == SPYRE_FORMAT_SEN169_FP16 || info->format == SPYRE_FORMAT_IEEE_FP32)
		for (uint64_t i = 0; i < bytes; i++)
			((uint8_t *)data)[i] = (uint8_t)(0x30 + (i * 7 + i / 64) % 12);
}

static void bind(spyre_kernel *kernel, uint32_t num, spyre_symbol_info *symbols,
		 spyre_binding *bindings)
{
	ck_assert_uint_le(num, 8);
	for (uint32_t i = 0; i < num; i++) {
		ck_ok(spyre_kernel_get_symbol(kernel, (int)i, &symbols[i]));
		bindings[i] = (spyre_binding){ symbols[i].name, symbols[i].max };
	}
}

/* Launches a bundle and appends the contents of all its arguments to @out. */
static void launch(spyre_context *context, const char *directory, FILE *out)
{
	spyre_kernel_info info = { .struct_size = sizeof(info) };
	spyre_launch_arg args[MAX_ARGS] = { 0 };
	spyre_binding bindings[8];
	spyre_symbol_info symbols[8];
	spyre_launch_params params = { .struct_size = sizeof(params), .args = args,
				       .bindings = bindings };
	spyre_stream *stream = get_stream(context, 0);
	uint64_t bytes[MAX_ARGS];
	spyre_kernel *kernel;
	void *data;

	ck_ok(spyre_kernel_load(context, directory, &kernel));
	ck_ok(spyre_kernel_get_info(kernel, &info));
	ck_assert_uint_le(info.num_args, MAX_ARGS);
	params.num_args = info.num_args;
	params.num_bindings = info.num_symbols;
	bind(kernel, info.num_symbols, symbols, bindings);
	for (uint32_t i = 0; i < info.num_args; i++) {
		spyre_arg_info arg;

		ck_ok(spyre_kernel_get_arg(kernel, (int)i, &arg));
		bytes[i] = (arg.bytes + 127) / 128 * 128 + 128;
		data = malloc(bytes[i]);
		fill(data, &arg, bytes[i]);
		ck_ok(spyre_mem_alloc(context, bytes[i], &args[i].address));
		ck_ok(spyre_memcpy_h2d(context, args[i].address, data, bytes[i]));
		free(data);
	}
	ck_ok(spyre_launch_ex(stream, kernel, &params));
	ck_ok(spyre_stream_synchronize(stream));
	for (uint32_t i = 0; i < info.num_args; i++) {
		data = malloc(bytes[i]);
		ck_ok(spyre_memcpy_d2h(context, data, args[i].address, bytes[i]));
		ck_assert_uint_eq(fwrite(data, 1, bytes[i], out), bytes[i]);
		free(data);
		ck_ok(spyre_mem_free(context, args[i].address));
	}
	ck_ok(spyre_kernel_unload(kernel));
}

static int is_bundle(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static const char *bundles(void)
{
	static char path[512];
	const char *top = getenv("SPYRE_SRCDIR");

	ck_assert_ptr_nonnull(top);
	snprintf(path, sizeof(path), "%s/tests/conformance/bundles", top);
	return path;
}

static void launch_all(const char *results)
{
	spyre_context *context = open_card();
	FILE *out = fopen(results, "w");
	struct dirent **list;
	char path[1024];
	int n = scandir(bundles(), &list, is_bundle, alphasort);

	ck_assert_int_gt(n, 40);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", bundles(), list[i]->d_name);
		launch(context, path, out);
		free(list[i]);
	}
	free(list);
	ck_assert_int_eq(fclose(out), 0);
	ck_ok(spyre_context_destroy(context));
}

static void run(const char *results, const char *trace)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		setenv("SPYRE_KERNEL_CACHE", "0", 1);
		if (trace) {
			setenv("SPYRE_TRACE", trace, 1);
			setenv("SPYRE_TRACE_LEVEL", "cores", 1);
		}
		launch_all(results);
		exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
}

static uint64_t arg(yyjson_val *event, const char *name)
{
	yyjson_val *value = yyjson_obj_get(yyjson_obj_get(event, "args"), name);

	ck_assert_msg(yyjson_is_uint(value), "%s lacks %s",
		      yyjson_get_str(yyjson_obj_get(event, "name")), name);
	return yyjson_get_uint(value);
}

static bool is(yyjson_val *event, const char *category)
{
	return yyjson_equals_str(yyjson_obj_get(event, "cat"), category);
}

struct sums {
	yyjson_val *launch, *phase;
	uint64_t launches, phases, cores;	/* numbers of them */
	/* Of the phases of a launch, and of the cores of a phase. */
	uint64_t cycles, read, written, macs;
	uint64_t longest, core_read, core_written, core_macs, num_cores;
	uint64_t next_cycle, core_cycles;
	/* Cycles of the PT of all cores in the phase, and the counters that follow the phase. */
	uint64_t pt_cycles, card_cores;
	int curves;
	double curve_sum;
};

static void end_phase(struct sums *s)
{
	if (!s->phase)
		return;
	ck_assert_uint_eq(s->num_cores, arg(s->phase, "cores"));
	ck_assert_uint_eq(s->longest, arg(s->phase, "core_cycles"));
	ck_assert_uint_eq(s->core_read, arg(s->phase, "bytes_read"));
	ck_assert_uint_eq(s->core_written, arg(s->phase, "bytes_written"));
	ck_assert_uint_eq(s->core_macs, arg(s->phase, "macs"));
	s->phase = NULL;
}

static void end_launch(struct sums *s)
{
	end_phase(s);
	if (!s->launch)
		return;
	ck_assert_uint_eq(s->cycles, arg(s->launch, "cycles"));
	ck_assert_uint_eq(s->read, arg(s->launch, "bytes_read"));
	ck_assert_uint_eq(s->written, arg(s->launch, "bytes_written"));
	s->launch = NULL;
}

static void begin_launch(struct sums *s, yyjson_val *event)
{
	end_launch(s);
	s->launch = event;
	s->launches++;
	s->cycles = s->read = s->written = s->macs = 0;
	s->next_cycle = arg(event, "start_cycle");
	s->card_cores = arg(event, "card_cores");
	s->curves = 0;
}

static void add_phase(struct sums *s, yyjson_val *event)
{
	const uint64_t core = arg(event, "core_cycles"), lpddr = arg(event, "lpddr_cycles");

	end_phase(s);
	s->phase = event;
	s->phases++;
	ck_assert_uint_eq(arg(event, "cycles"),
			  (core > lpddr ? core : lpddr) + arg(event, "barrier_cycles"));
	ck_assert_uint_eq(arg(event, "start_cycle"), s->next_cycle);
	s->next_cycle += arg(event, "cycles");
	s->cycles += arg(event, "cycles");
	s->read += arg(event, "bytes_read");
	s->written += arg(event, "bytes_written");
	s->longest = s->core_read = s->core_written = s->core_macs = s->num_cores = 0;
	s->pt_cycles = 0;
	s->curves = 3;
}

static void add_core(struct sums *s, yyjson_val *event)
{
	s->cores++;
	s->num_cores++;
	s->core_cycles = arg(event, "cycles");
	if (s->core_cycles > s->longest)
		s->longest = s->core_cycles;
	ck_assert_uint_gt(arg(event, "tiles"), 0);
	s->core_read += arg(event, "bytes_read");
	s->core_written += arg(event, "bytes_written");
	s->core_macs += arg(event, "macs");
	ck_assert_uint_eq(arg(event, "call"), arg(s->phase, "call"));
}

/* docs/timing.md: idle, clocks while anything runs, pJ of each multiply-add and of each byte. */
#define IDLE_WATTS 20.0
#define BUSY_WATTS 9.0
#define MAC_PJ 0.56
#define BYTE_PJ 90.0
#define MOST_WATTS 75.0

static double watts(yyjson_val *phase)
{
	const double ns = floor((double)arg(phase, "cycles") / 1.5);
	const double bytes = (double)(arg(phase, "bytes_read") + arg(phase, "bytes_written"));
	const double sum = IDLE_WATTS + BUSY_WATTS + 1e-3 / ns *
			   (MAC_PJ * (double)arg(phase, "macs") + BYTE_PJ * bytes);

	return sum < MOST_WATTS ? sum : MOST_WATTS;
}

/* Each phase has its averages from its start on, each launch ends with zeros. */
static void check_counter(struct sums *s, yyjson_val *event)
{
	const double value = yyjson_get_num(yyjson_obj_get(yyjson_obj_get(event, "args"), "value"));
	const char *name = yyjson_get_str(yyjson_obj_get(event, "name"));
	double expected = 0;

	if (!s->launch || !strcmp(name, "LX bytes")) {
		if (s->launch && !s->phase)
			ck_assert_double_eq(value, (double)arg(s->launch, "lx_bytes"));
		return;
	}
	if (s->curves) {
		const double cycles = (double)arg(s->phase, "cycles");

		s->curves--;
		ck_assert_double_eq(yyjson_get_num(yyjson_obj_get(event, "ts")),
				    yyjson_get_num(yyjson_obj_get(s->phase, "ts")));
		if (!strcmp(name, "PT %"))
			expected = 100.0 * (double)s->pt_cycles / (double)s->card_cores / cycles;
		else if (!strcmp(name, "power W"))
			expected = watts(s->phase);
		else
			expected = 1.5 * (double)(arg(s->phase, "bytes_read") +
						  arg(s->phase, "bytes_written")) / cycles;
		s->curve_sum += expected;
	} else if (!strcmp(name, "power W")) {
		expected = IDLE_WATTS;
	}
	/* Values are whole hundredths, of whole milliwatts of each part in the case of power. */
	ck_assert_double_eq_tol(value, expected, strcmp(name, "power W") ? 0.011 : 0.014);
}

START_TEST(adds_up)
{
	struct sums s = { 0 };
	yyjson_doc *doc;
	yyjson_val *event, *kernel = NULL;
	size_t i, n;
	int named = 0;

	run(in_folder("with"), in_folder("trace.json"));
	doc = yyjson_read_file(in_folder("trace.json"), 0, NULL, NULL);
	ck_assert_ptr_nonnull(doc);
	yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "traceEvents"), i, n, event) {
		if (is(event, "kernel")) {
			kernel = event;
		} else if (is(event, "launch")) {
			begin_launch(&s, event);
			ck_assert_uint_eq(arg(kernel, "cycles"), arg(event, "cycles"));
			ck_assert_uint_eq(arg(kernel, "call"), arg(event, "call"));
		} else if (is(event, "phase")) {
			add_phase(&s, event);
			named += strncmp(yyjson_get_str(yyjson_obj_get(event, "name")), "step ",
					 5) != 0;
		} else if (is(event, "core")) {
			add_core(&s, event);
		} else if (is(event, "engine")) {
			ck_assert_uint_le(arg(event, "cycles"), s.core_cycles);
			if (yyjson_equals_str(yyjson_obj_get(yyjson_obj_get(event, "args"),
							     "engine"), "PT"))
				s.pt_cycles += arg(event, "cycles");
		} else if (is(event, "dma")) {
			end_launch(&s);
		} else if (yyjson_equals_str(yyjson_obj_get(event, "ph"), "C") &&
			   yyjson_get_uint(yyjson_obj_get(event, "pid")) >= MODEL_PID) {
			check_counter(&s, event);
		}
	}
	end_launch(&s);
	ck_assert_uint_gt(s.launches, 40);
	ck_assert_uint_ge(s.phases, s.launches);
	ck_assert_uint_ge(s.cores, s.phases);
	ck_assert_int_eq(named, (int)s.phases);
	ck_assert_int_eq(s.curves, 0);
	ck_assert_double_gt(s.curve_sum, 0);
	yyjson_doc_free(doc);
}
END_TEST

START_TEST(same_bytes)
{
	char command[256];

	run(in_folder("with"), in_folder("trace.json"));
	run(in_folder("without"), NULL);
	snprintf(command, sizeof(command), "cmp '%s' '%s'", in_folder("with"),
		 in_folder("without"));
	ck_assert_int_eq(system(command), 0);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("trace_cores");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 300);
	tcase_add_test(tests, adds_up);
	tcase_add_test(tests, same_bytes);
	return run_suite("trace_cores", tests);
}
