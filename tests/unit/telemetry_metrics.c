/* SPDX-License-Identifier: MIT */
/*
 * Files of SPYRE_METRICS, read by a reader that knows the description of the form alone: 32 bytes
 * of header, 8 for each section, and in each section 32 bytes, 8 for each metric and its words.
 */
#include "config.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <yyjson.h>

#include "runtime_check.h"
#include "tests/order.h"

#define UNKNOWN UINT64_MAX

static char folder[] = "/tmp/spyre-metrics-XXXXXX", file[128];
static unsigned char bytes[4096];
static size_t size;

static uint64_t number(size_t at, size_t width)
{
	uint64_t value = 0;

	ck_assert_uint_le(at + width, size);
	/* Readers are programs of the same machine, so that the file has its byte order. */
	memcpy(&value, bytes + at, width);
	return BIG_ENDIAN_HOST ? value >> (64 - 8 * width) : value;
}

/* Reads the file; false while it is being written or does not exist yet. */
static bool read_file(void)
{
	int fd = open(file, O_RDONLY);
	ssize_t got = fd < 0 ? 0 : read(fd, bytes, sizeof(bytes));
	unsigned char first = 0;

	if (fd >= 0)
		ck_assert_int_ge(pread(fd, &first, 1, 0), 0);
	if (fd >= 0)
		close(fd);
	size = got > 0 ? (size_t)got : 0;
	return size && bytes[0] == 'A' && first == 'A';
}

/* Returns a metric, and checks all that leads to it. */
static uint64_t metric(uint32_t section, uint32_t id)
{
	const size_t sections = number(12, 4);
	size_t at = 32 + 8 * sections;
	uint64_t found = UNKNOWN;

	ck_assert(!memcmp(bytes, "AiuM", 4));
	ck_assert_uint_eq(number(4, 4), size);
	ck_assert(!memcmp(bytes + 8, "\1\0\0\1", 4));
	for (size_t i = 0; i < sections; i++) {
		const size_t metrics = number(at + 12, 4);
		size_t words = at + 32 + 8 * metrics;

		ck_assert_uint_eq(number(32 + 8 * i, 4), number(at, 4));
		ck_assert_uint_eq(number(36 + 8 * i, 4), number(at + 4, 4));
		ck_assert_uint_eq(number(at + 16, 8), number(16, 8));
		ck_assert_uint_eq(number(at + 24, 4), 1000);
		for (size_t k = 0; k < metrics; k++) {
			if (number(at, 4) == section && number(at + 32 + 8 * k, 4) == id)
				found = number(words, 8);
			words += 8 * number(at + 36 + 8 * k, 4);
		}
		ck_assert_uint_eq(words, at + number(at + 4, 4));
		at = words;
	}
	ck_assert_uint_eq(at, size);
	return found;
}

/* Waits for the next update; the thread needs no more than a few seconds for one. */
static void next_update(void)
{
	const uint64_t last = size ? number(32 + 8 * number(12, 4) + 8, 4) : 0;
	const struct timespec pause = { .tv_nsec = 20000000 };

	do
		nanosleep(&pause, NULL);
	while (!read_file() || number(32 + 8 * number(12, 4) + 8, 4) == last);
}

static void setup(void)
{
	char pattern[64];

	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(pattern, sizeof(pattern), "%s/metrics.%%BUSID", folder);
	setenv("SPYRE_METRICS", pattern, 1);
	size = 0;
}

static void teardown(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}

static void name_file(void)
{
	spyre_device_properties properties = { .struct_size = sizeof(properties) };

	ck_ok(spyre_device_get_properties(0, &properties));
	snprintf(file, sizeof(file), "%s/metrics.%s", folder, properties.bus_id);
}

static double smi_number(yyjson_val *card, const char *key)
{
	yyjson_val *value = yyjson_obj_get(card, key);

	ck_assert_msg(value != NULL, "spyre-smi has no %s", key);
	return yyjson_is_null(value) ? -1 : yyjson_get_num(value);
}

/* spyre-smi's object of this process's card, or of the first card of the kernel. */
static yyjson_doc *smi(spyre_context *context, yyjson_val **mine)
{
	const char *build = getenv("SPYRE_BUILDDIR");
	static char text[1 << 20];
	char command[512];
	yyjson_doc *doc;
	yyjson_val *each;
	size_t i, n;
	FILE *pipe;

	snprintf(command, sizeof(command), "'%s/tools/spyre-smi' -q --format=json",
		 build ? build : ".");
	pipe = popen(command, "r");
	ck_assert_ptr_nonnull(pipe);
	text[fread(text, 1, sizeof(text) - 1, pipe)] = '\0';
	ck_assert_int_eq(pclose(pipe), 0);
	doc = yyjson_read(text, strlen(text), 0);
	*mine = NULL;
	yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "devices"), i, n, each)
		if (!*mine && yyjson_get_int(yyjson_obj_get(each, "host_pid")) ==
			      (is_embedded(context) ? getpid() : 0))
			*mine = each;
	ck_assert_msg(*mine != NULL, "spyre-smi does not list the card: %s", text);
	return doc;
}

static bool same(yyjson_val *card, const char *key, double unit, uint64_t value)
{
	const double want = smi_number(card, key);

	return want < 0 ? value == UNKNOWN : (uint64_t)(want / unit + 1e-6) == value;
}

/* Power and temperature settle within seconds after the work. */
START_TEST(as_spyre_smi)
{
	spyre_context *context = open_card();
	yyjson_val *card;
	yyjson_doc *doc;
	spyre_devptr memory;
	static char data[3 << 20];
	bool settled = false;

	name_file();
	ck_ok(spyre_mem_alloc(context, 5 << 20, &memory));
	ck_ok(spyre_memcpy_h2d(context, memory, data, sizeof(data)));
	ck_ok(spyre_memcpy_d2h(context, data, memory, 1 << 20));
	ck_ok(spyre_context_synchronize(context));
	next_update();
	for (int tries = 0; tries < 60 && !settled; tries++) {
		next_update();
		doc = smi(context, &card);
		settled = same(card, "power_draw_watts", 0.1, metric(0x20, 0x10)) &&
			  same(card, "temperature_celsius", 0.1, metric(0x20, 0x11)) &&
			  same(card, "pcie_rx_bytes_total", 1024, metric(0x20, 0x14));
		if (settled) {
			ck_assert(same(card, "memory_read_bytes_total", 1024, metric(0x20, 0x12)));
			ck_assert(same(card, "memory_written_bytes_total", 1024,
				       metric(0x20, 0x13)));
			ck_assert(same(card, "pcie_tx_bytes_total", 1024, metric(0x20, 0x15)));
			ck_assert(same(card, "rdma_read_bytes_total", 1024, metric(0x20, 0x16)));
			ck_assert(same(card, "rdma_written_bytes_total", 1024,
				       metric(0x20, 0x17)));
			ck_assert(same(card, "memory_used_bytes", 1 << 20, metric(0x10, 0x81)));
			ck_assert(same(card, "memory_peak_bytes", 1 << 20, metric(0x10, 0x82)));
			ck_assert_uint_ge(metric(0x10, 0x81), 5);
		}
		yyjson_doc_free(doc);
	}
	ck_assert(settled);
	ck_ok(spyre_context_destroy(context));
	/* The last values stay, whole. */
	ck_assert(read_file());
	ck_assert_uint_ge(metric(0x10, 0x82), 5);
}
END_TEST

/* Contexts share the file of their card; it goes on until the last of them ends. */
START_TEST(several_contexts)
{
	spyre_context *first = open_card(), *second = open_card();

	name_file();
	next_update();
	ck_ok(spyre_context_destroy(first));
	next_update();
	next_update();
	ck_ok(spyre_context_destroy(second));
	first = open_card();
	/* A new file begins with number 1, so this may have to wait for a number of before. */
	next_update();
	ck_ok(spyre_context_destroy(first));
}
END_TEST

/* A child has no thread; its own card has. The parent's file is not its own. */
START_TEST(fork_and_open)
{
	spyre_context *context = open_card();
	int status;
	pid_t pid;

	name_file();
	next_update();
	pid = fork();
	if (!pid) {
		spyre_context *own = open_card();

		_exit(spyre_context_destroy(own) != SPYRE_SUCCESS);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	next_update();
	ck_ok(spyre_context_destroy(context));
}
END_TEST

static const char *const places[] = {
	"/nonexistent/metrics.%BUSID", "/dev/null", "/dev/full", "/tmp", "%BUSID%BUSID/",
};

/* Metrics that cannot be written do no harm to the work. */
START_TEST(no_file)
{
	spyre_context *context;
	spyre_devptr memory;
	char data[64];

	setenv("SPYRE_METRICS", places[_i], 1);
	context = open_card();
	ck_ok(spyre_mem_alloc(context, sizeof(data), &memory));
	ck_ok(spyre_memcpy_h2d(context, memory, data, sizeof(data)));
	ck_ok(spyre_context_destroy(context));
}
END_TEST

/* A disk without space for the file, as a limit of a file's size. */
START_TEST(full_disk)
{
	const struct rlimit none = { .rlim_cur = 100, .rlim_max = RLIM_INFINITY };
	spyre_context *context;
	struct stat st;
	int status;
	pid_t pid;

	name_file();
	pid = fork();
	if (!pid) {
		/*
		 * None of the files may send SIGXFSZ: the page of an embedded card is in memory
		 * then as well. The assertions of libcheck write to a file, so there are none here.
		 */
		if (setrlimit(RLIMIT_FSIZE, &none))
			_exit(1);
		if (spyre_context_create(0, 0, &context) || spyre_context_synchronize(context))
			_exit(2);
		_exit(spyre_context_destroy(context) ? 3 : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(stat(file, &st), 0);
	ck_assert_int_eq(st.st_size, 0);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("metrics");
	Suite *suite = suite_create("telemetry_metrics");

	tcase_set_timeout(tests, 300);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, as_spyre_smi);
	tcase_add_test(tests, several_contexts);
	tcase_add_test(tests, fork_and_open);
	tcase_add_loop_test(tests, no_file, 0, sizeof(places) / sizeof(places[0]));
	tcase_add_test(tests, full_disk);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}
