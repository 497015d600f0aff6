/* SPDX-License-Identifier: MIT */
/*
 * The counters of a card, a process and a context: what known work adds to them, and that
 * sysfs, fdinfo, DEV_QUERY, telemetry, streams and spyre-smi give the same numbers.
 */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <drm/spyre_accel.h>
#include <yyjson.h>

#include "runtime_check.h"

#define SIDE 256
#define ELEMENTS (SIDE * SIDE)
#define BYTES (ELEMENTS * 2ull)		/* of fp16 and of DL16 */

/* Totals that only grow; their names are the same everywhere, but spyre-smi's keys. */
#define TOTALS(X)                                                                                  \
	X(jobs, "jobs_completed_total") X(errors, "jobs_failed_total") X(cycles, "cycles_total")   \
	X(macs, "macs_total") X(bytes_read, "memory_read_bytes_total")                             \
	X(bytes_written, "memory_written_bytes_total") X(rdma_read, "rdma_read_bytes_total")       \
	X(rdma_written, "rdma_written_bytes_total") X(pcie_rx_bytes, "pcie_rx_bytes_total")        \
	X(pcie_tx_bytes, "pcie_tx_bytes_total") X(pt_cycles, "pt_cycles_total")                    \
	X(sfu_cycles, "sfu_cycles_total") X(dma_cycles, "dma_cycles_total")                        \
	X(launches, "launches_total") X(copies, "copies_total") X(energy_mj, NULL)                 \
	X(faults_timeout, "faults_timeout_total") X(faults_access, "faults_access_total")          \
	X(faults_escape, "faults_escape_total") X(faults_compute, "faults_compute_total")

enum {
#define NUMBER(name, json) AT_##name,
	TOTALS(NUMBER)
#undef NUMBER
	NUM_TOTALS
};

static const struct {
	const char *name, *json;
	size_t card, process, counters, context;
} totals[] = {
#define ROW(name, json)                                                                            \
	{ #name, json, offsetof(spyre_telemetry_card, name),                                       \
	  offsetof(spyre_telemetry_process, name), offsetof(struct drm_spyre_counters, name),      \
	  offsetof(struct drm_spyre_context_info, name) },
	TOTALS(ROW)
#undef ROW
};

struct numbers {
	uint64_t of[NUM_TOTALS];
};

static const int64_t shape[] = { SIDE, SIDE };
static spyre_context *context;
static spyre_stream *stream;
static spyre_layout layout;
static spyre_kernel *add, *matmul;
static spyre_arg args[3];
static uint16_t host[ELEMENTS];

static spyre_kernel *load(const char *operation)
{
	char folder[] = "/tmp/spyre-counters-XXXXXX", command[64];
	spyre_sdsc_operand operands[3];
	spyre_kernel *kernel;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	for (int i = 0; i < 3; i++) {
		operands[i].rank = 2;
		memcpy(operands[i].size, shape, sizeof(shape));
		operands[i].layout = layout;
	}
	ck_ok(spyre_sdsc_build(operation, operands, 3, 0, folder));
	ck_ok(spyre_kernel_load(context, folder, &kernel));
	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
	return kernel;
}

static void setup(void)
{
	ck_ok(spyre_layout_init(&layout, 2, shape, SPYRE_FORMAT_IEEE_FP16));
	context = open_card();
	stream = get_stream(context, 0);
	add = load("add");
	matmul = load("matmul");
	for (int i = 0; i < 3; i++) {
		ck_ok(spyre_mem_alloc(context, spyre_layout_bytes(&layout), &args[i].address));
		args[i].layout = &layout;
	}
}

static void teardown(void)
{
	ck_ok(spyre_context_destroy(context));
}

static spyre_telemetry_card card_now(void)
{
	spyre_telemetry_card cards[64];
	bool embedded = is_embedded(context);
	int count;

	ck_ok(spyre_telemetry_cards(cards, sizeof(cards[0]), 64, &count));
	for (int i = 0; i < count && i < 64; i++)
		if (cards[i].host_pid == (embedded ? getpid() : 0) &&
		    cards[i].properties.physical_index == 0)
			return cards[i];
	ck_abort_msg("card 0 is not among the %d cards of telemetry", count);
}

static spyre_telemetry_process process_now(void)
{
	spyre_telemetry_process processes[64];
	int count;

	ck_ok(spyre_telemetry_processes(processes, sizeof(processes[0]), 64, &count));
	for (int i = 0; i < count && i < 64; i++)
		if (processes[i].pid == getpid())
			return processes[i];
	ck_abort_msg("this process is not among the %d of telemetry", count);
}

/* Queries by the node that libspyre has open, so that the context is the same. */
static void query(uint32_t type, void *info, uint32_t size)
{
	struct drm_spyre_dev_query ask = { .type = type, .size = size, .pointer = (uintptr_t)info };
	char path[64], target[32];
	ssize_t length = 0;
	int fd;

	for (fd = 3; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, target, sizeof(target));
		if (length > 11 && !memcmp(target, "/dev/accel/", 11))
			break;
	}
	ck_assert_msg(length > 11, "this process has no node open");
	ck_assert_int_eq(ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &ask), 0);
	ck_assert_uint_eq(ask.size, size);
}

static void pick(struct numbers *to, const void *from, const size_t *offset)
{
	for (int i = 0; i < NUM_TOTALS; i++)
		memcpy(&to->of[i], (const char *)from + *(const size_t *)((const char *)offset +
							      i * sizeof(totals[0])), 8);
}

static struct numbers of_process(void)
{
	spyre_telemetry_process process = process_now();
	struct numbers numbers;

	pick(&numbers, &process, &totals[0].process);
	return numbers;
}

static struct numbers of_card(void)
{
	spyre_telemetry_card card = card_now();
	struct numbers numbers;

	pick(&numbers, &card, &totals[0].card);
	return numbers;
}

/* The context's numbers; those of an embedded card's only context are its process's. */
static struct numbers of_context(void)
{
	struct drm_spyre_context_info info = { 0 };
	struct numbers numbers;

	if (is_embedded(context))
		return of_process();
	query(DRM_SPYRE_DEV_QUERY_CONTEXT, &info, sizeof(info));
	pick(&numbers, &info, &totals[0].context);
	return numbers;
}

/* The card's by DEV_QUERY; a plain user gets those of the context. */
static struct numbers of_query(void)
{
	struct drm_spyre_counters info = { 0 };
	struct numbers numbers;

	if (is_embedded(context))
		return of_card();
	query(DRM_SPYRE_DEV_QUERY_COUNTERS, &info, sizeof(info));
	pick(&numbers, &info, &totals[0].counters);
	return numbers;
}

static void check_order(const char *what, const struct numbers *earlier,
			const struct numbers *later)
{
	for (int i = 0; i < NUM_TOTALS; i++)
		ck_assert_msg(earlier->of[i] <= later->of[i], "%s: %s fell from %llu to %llu", what,
			      totals[i].name, (unsigned long long)earlier->of[i],
			      (unsigned long long)later->of[i]);
}

/* The energy depends on the time of the query unless it is that of work alone. */
static void check_equal(const char *what, const struct numbers *a, const struct numbers *b,
			bool energy)
{
	for (int i = 0; i < NUM_TOTALS; i++)
		ck_assert_msg((i == AT_energy_mj && !energy) || a->of[i] == b->of[i],
			      "%s: %s is %llu and %llu", what, totals[i].name,
			      (unsigned long long)a->of[i], (unsigned long long)b->of[i]);
}

static void copy_in(int i)
{
	spyre_host_tensor tensor;

	ck_ok(spyre_host_tensor_dense(&tensor, host, SPYRE_FORMAT_IEEE_FP16, 2, shape));
	ck_ok(spyre_copy_h2d(context, args[i].address, &layout, &tensor));
}

static void work(void)
{
	spyre_host_tensor tensor;

	copy_in(0);
	copy_in(1);
	ck_ok(spyre_launch(stream, add, args, 3));
	ck_ok(spyre_launch(stream, matmul, args, 3));
	ck_ok(spyre_memset_async(stream, args[1].address, "x", 1, BYTES));
	ck_ok(spyre_memcpy_d2d_async(stream, args[0].address, args[1].address, BYTES));
	ck_ok(spyre_stream_synchronize(stream));
	ck_ok(spyre_host_tensor_dense(&tensor, host, SPYRE_FORMAT_IEEE_FP16, 2, shape));
	ck_ok(spyre_copy_d2h(context, &tensor, args[2].address, &layout));
	ck_ok(spyre_context_synchronize(context));
}

/* The kernel counts work shortly after its fence. */
static void settle(void)
{
	struct numbers last = of_context(), now;
	struct timespec pause = { .tv_nsec = 20000000 };

	for (int same = 0; same < 3; last = now) {
		nanosleep(&pause, NULL);
		now = of_context();
		same = memcmp(&last, &now, sizeof(now)) ? 0 : same + 1;
	}
}

START_TEST(known_work)
{
	spyre_kernel_info sums = { .struct_size = sizeof(sums) }, products = sums;
	struct numbers before, after;
	uint64_t d[NUM_TOTALS];

	ck_ok(spyre_kernel_get_info(add, &sums));
	ck_ok(spyre_kernel_get_info(matmul, &products));
	settle();
	before = of_context();
	work();
	settle();
	after = of_context();
	for (int i = 0; i < NUM_TOTALS; i++)
		d[i] = after.of[i] - before.of[i];
	ck_assert_uint_eq(d[AT_launches], 2);
	/* Three transfers, a fill and a copy. */
	ck_assert_uint_eq(d[AT_copies], 5);
	ck_assert_uint_eq(d[AT_pcie_rx_bytes], 2 * BYTES);
	ck_assert_uint_eq(d[AT_pcie_tx_bytes], BYTES);
	ck_assert_uint_eq(d[AT_macs], (uint64_t)SIDE * SIDE * SIDE);
	ck_assert_uint_eq(d[AT_cycles], sums.cycles + products.cycles + d[AT_dma_cycles]);
	/* One beat of the SFU for two sticks of 64; the PT multiplies 1,024 pairs in a cycle. */
	ck_assert_uint_ge(d[AT_sfu_cycles], ELEMENTS / 64 / 2);
	ck_assert_uint_ge(d[AT_pt_cycles], d[AT_macs] / 1024);
	ck_assert_uint_lt(d[AT_pt_cycles], 32 * products.cycles);
	ck_assert_uint_lt(d[AT_sfu_cycles], 32 * (sums.cycles + products.cycles));
	ck_assert_uint_gt(d[AT_bytes_read], 0);
	ck_assert_uint_eq(d[AT_errors] + d[AT_rdma_read] + d[AT_rdma_written], 0);
}
END_TEST

static _Atomic bool ends;

static void *work_on(void *unused)
{
	while (!ends)
		work();
	return unused;
}

/* While a thread works, a later reading by any way is never behind an earlier one by another. */
START_TEST(ways_agree)
{
	struct numbers context_before, process, context_after, query_before, card, query_after;
	bool sees_card;
	pthread_t thread;

	ends = false;
	card = of_card();
	/* A plain user gets no exact totals of a card of the kernel. */
	sees_card = card.of[AT_jobs] != UINT64_MAX;
	ck_assert(sees_card == (is_embedded(context) || !geteuid()));
	ck_assert_int_eq(pthread_create(&thread, NULL, work_on, NULL), 0);
	for (int i = 0; i < 20; i++) {
		context_before = of_context();
		process = of_process();
		context_after = of_context();
		check_order("context, then process", &context_before, &process);
		check_order("process, then context", &process, &context_after);
		query_before = of_query();
		card = of_card();
		query_after = of_query();
		if (!sees_card)
			continue;
		check_order("DEV_QUERY, then card", &query_before, &card);
		check_order("card, then DEV_QUERY", &card, &query_after);
		check_order("process, then card", &process, &card);
	}
	ends = true;
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	settle();
	context_after = of_context();
	process = of_process();
	check_equal("context and process", &context_after, &process, true);
	query_after = of_query();
	card = of_card();
	check_equal("DEV_QUERY and card", &query_after, sees_card ? &card : &process, !sees_card);
}
END_TEST

START_TEST(streams_agree)
{
	spyre_stream_stats before = { .struct_size = sizeof(before) }, after = before;
	struct numbers first, last;

	settle();
	ck_ok(spyre_stream_get_stats(stream, &before));
	first = of_context();
	work();
	settle();
	last = of_context();
	ck_ok(spyre_stream_get_stats(stream, &after));
	ck_assert_uint_eq(last.of[AT_launches] - first.of[AT_launches],
			  after.launches - before.launches);
	ck_assert_uint_eq(last.of[AT_cycles] - first.of[AT_cycles], after.cycles - before.cycles);
	ck_assert_uint_eq(last.of[AT_macs] - first.of[AT_macs], after.macs - before.macs);
	ck_assert_uint_eq(last.of[AT_bytes_read] - first.of[AT_bytes_read],
			  after.bytes_read - before.bytes_read);
	ck_assert_uint_eq(last.of[AT_bytes_written] - first.of[AT_bytes_written],
			  after.bytes_written - before.bytes_written);
}
END_TEST

/* Runs spyre-smi for the fields of processes and returns this process's object. */
static yyjson_doc *smi(yyjson_val **mine)
{
	static const char fields[] =
		"pid,jobs.completed,jobs.failed,cycles,macs,memory.read,memory.written,rdma.read,"
		"rdma.written,pcie.rx,pcie.tx,cycles.pt,cycles.sfu,cycles.dma,launches,copies,"
		"faults.timeout,faults.access,faults.escape,faults.compute,memory.peak,resets";
	const char *build = getenv("SPYRE_BUILDDIR");
	static char text[1 << 20];
	char command[1024];
	yyjson_doc *doc;
	yyjson_val *each;
	size_t i, n;
	FILE *pipe;

	snprintf(command, sizeof(command),
		 "'%s/tools/spyre-smi' --query-compute-apps=%s --format=json", build ? build : ".",
		 fields);
	pipe = popen(command, "r");
	ck_assert_ptr_nonnull(pipe);
	text[fread(text, 1, sizeof(text) - 1, pipe)] = '\0';
	ck_assert_int_eq(pclose(pipe), 0);
	doc = yyjson_read(text, strlen(text), 0);
	ck_assert_msg(doc != NULL, "%s", text);
	*mine = NULL;
	yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "processes"), i, n, each)
		if (yyjson_get_int(yyjson_obj_get(each, "pid")) == getpid())
			*mine = each;
	ck_assert_msg(*mine != NULL, "spyre-smi does not list process %d: %s", getpid(), text);
	return doc;
}

START_TEST(smi_agrees)
{
	struct numbers numbers;
	yyjson_val *mine;
	yyjson_doc *doc;

	work();
	settle();
	numbers = of_context();
	doc = smi(&mine);
	for (int i = 0; i < NUM_TOTALS; i++)
		if (totals[i].json)
			ck_assert_msg(yyjson_get_uint(yyjson_obj_get(mine, totals[i].json)) ==
				      numbers.of[i], "%s differs", totals[i].json);
	yyjson_doc_free(doc);
}
END_TEST

START_TEST(peak_of_memory)
{
	uint64_t before, peak, total = memory_info(context).total, part = total / 64;
	spyre_devptr big;

	before = process_now().memory_peak;
	ck_ok(spyre_mem_alloc(context, part, &big));
	peak = process_now().memory_peak;
	ck_assert_uint_ge(peak, before);
	ck_assert_uint_ge(peak, part);
	ck_assert_uint_le(peak, total);
	ck_assert_uint_ge(card_now().memory_peak, peak);
	ck_ok(spyre_mem_free(context, big));
	ck_assert_uint_eq(process_now().memory_peak, peak);
	ck_ok(spyre_mem_alloc(context, 4096, &big));
	ck_assert_uint_eq(process_now().memory_peak, peak);
}
END_TEST

/* A time limit that a copy exceeds is a fault of its kind, once, and a job that failed. */
/* The next event of this process or, for root, of its card that is of one of these kinds. */
static void expect_event(spyre_telemetry_events *events, spyre_telemetry_event_kind kind)
{
	spyre_telemetry_event event = { .struct_size = sizeof(event) };

	do
		ck_ok(spyre_telemetry_events_next(events, UINT64_MAX, &event));
	while (event.host_pid != (is_embedded(context) ? getpid() : 0) ||
	       (event.kind != SPYRE_TELEMETRY_FAULT && event.kind != SPYRE_TELEMETRY_RAS &&
		event.kind != SPYRE_TELEMETRY_CONTEXT_RESET));
	ck_assert_int_eq(event.kind, kind);
	ck_assert_int_eq(event.fault, kind == SPYRE_TELEMETRY_FAULT ? SPYRE_FAULT_TIMEOUT :
								      SPYRE_FAULT_NONE);
	if (kind == SPYRE_TELEMETRY_RAS) {
		ck_assert_int_eq(event.pid, getpid());
		ck_assert_uint_eq(event.value, SPYRE_RAS_MESSAGE_TIMEOUT);
		ck_assert_ptr_nonnull(strstr(event.record, "CBRB::MessageTimeout"));
	}
}

START_TEST(faults_and_resets)
{
	const bool sees_contexts = is_embedded(context) || !geteuid();
	spyre_telemetry_events *events;
	const uint64_t half = 128ull << 20;
	spyre_telemetry_process before, after;
	spyre_status status = SPYRE_SUCCESS;
	spyre_stream *slow;
	spyre_devptr big;
	char limit[24];
	int tries;

	ck_ok(spyre_telemetry_events_open(0, &events));
	ck_ok(spyre_mem_alloc(context, 2 * half, &big));
	/* The machine may be less busy now than when the limit was measured. */
	for (tries = 0; !status && tries < 20; tries++) {
		limit_below_copy(stream, big + half, big, half, limit, sizeof(limit));
		settle();
		before = process_now();
		setenv("SPYRE_TIMEOUT_MS", limit, 1);
		ck_ok(spyre_stream_create(context, 0, &slow));
		unsetenv("SPYRE_TIMEOUT_MS");
		ck_ok(spyre_memcpy_d2d_async(slow, big + half, big, half));
		status = spyre_stream_synchronize(slow);
	}
	ck_assert_int_eq(status, SPYRE_ERROR_TIMEOUT);
	settle();
	after = process_now();
	ck_assert_uint_eq(after.faults_timeout - before.faults_timeout, 1);
	ck_assert_uint_eq(after.faults_access - before.faults_access, 0);
	ck_assert_uint_eq(after.errors - before.errors, 1);
	ck_assert_uint_eq(after.copies - before.copies, 0);
	ck_assert_uint_eq(after.resets - before.resets, 0);
	ck_ok(spyre_context_reset(context));
	/* The library stops the work twice, before and after it shuts the streams. */
	ck_assert_uint_eq(process_now().resets - before.resets, 1);
	if (sees_contexts)
		expect_event(events, SPYRE_TELEMETRY_FAULT);
	expect_event(events, SPYRE_TELEMETRY_RAS);
	if (sees_contexts)
		expect_event(events, SPYRE_TELEMETRY_CONTEXT_RESET);
	spyre_telemetry_events_close(events);
}
END_TEST

/* Energy grows with work, and a card's is at least that of its work. */
START_TEST(energy)
{
	uint64_t mine = of_context().of[AT_energy_mj], first = of_query().of[AT_energy_mj];
	struct timespec second = { .tv_sec = 1 };
	uint64_t grown;

	for (int i = 0; i < 10; i++)
		work();
	nanosleep(&second, NULL);
	settle();
	ck_assert_uint_gt(of_context().of[AT_energy_mj], mine);
	grown = of_query().of[AT_energy_mj] - first;
	/* An idle card takes 20 W; a plain user sees the energy of the own work. */
	if (is_embedded(context) || !geteuid())
		ck_assert_uint_ge(grown, 19000);
	else
		ck_assert_uint_eq(grown, of_context().of[AT_energy_mj] - mine);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("counters");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, known_work);
	tcase_add_test(tests, ways_agree);
	tcase_add_test(tests, streams_agree);
	tcase_add_test(tests, smi_agrees);
	tcase_add_test(tests, peak_of_memory);
	tcase_add_test(tests, faults_and_resets);
	tcase_add_test(tests, energy);
	return run_suite("runtime_counters", tests);
}
