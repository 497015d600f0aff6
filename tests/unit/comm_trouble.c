/* SPDX-License-Identifier: MIT */
/*
 * Ranks that disagree, are missing, slow, stopped or without memory: each case ends with an error
 * that names the rank, on every rank and in time, and the next communicator on the same cards
 * works. comm_kills kills ranks at every point of a collective.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>

#include "comm_calls.h"
#include "tests/order.h"

/* Limits that do not pass, and that do while a rank is stopped or missing. */
#define LIMIT_MS 60000
#define SHORT_LIMIT_MS 1000
/* Limit within which all ranks but those that are missing arrive, on busy machines as well. */
#define JOIN_LIMIT_MS 3000
#define MOMENT_US 300000
#define MIB (1ull << 20)
#define SUM ((spyre_reduction){ .op = SPYRE_REDUCE_SUM })

static spyre_layout layout_of(int64_t rows)
{
	const int64_t size[2] = { rows, 64 };
	spyre_layout layout;

	rank_ok(spyre_layout_init(&layout, 2, size, SPYRE_FORMAT_IEEE_FP16));
	return layout;
}

static spyre_devptr alloc(struct rank *rank, uint64_t bytes)
{
	spyre_devptr address;

	rank_ok(spyre_mem_alloc(rank->context, bytes, &address));
	return address;
}

static void expect(spyre_status got, spyre_status want, const char *part)
{
	rank_check(got == want, "%s instead of %s: %s", spyre_status_name(got),
		   spyre_status_name(want), spyre_last_error());
	rank_check(strstr(spyre_last_error(), part), "\"%s\" does not mention \"%s\"",
		   spyre_last_error(), part);
}

/* Runs the ranks, each of which has to end with exit code 0, or by SIGKILL if it is @killed. */
static void run(uint32_t size, rank_fn fn, const void *argument, int killed)
{
	int codes[8];

	ranks_spawn(size, fn, argument, codes);
	for (uint32_t i = 0; i < size; i++)
		ck_assert_msg(codes[i] == ((int)i == killed ? -SIGKILL : 0),
			      "rank %u ended with %d", i, codes[i]);
}

/* The card works as before: a reduction in a communicator of its own. */
static void check_works(struct rank *rank)
{
	const spyre_layout layout = layout_of(64);
	const spyre_devptr x = alloc(rank, spyre_layout_bytes(&layout));
	spyre_comm *comm;

	rank_ok(spyre_comm_init_all(&rank->context, 1, NULL, &comm));
	rank_ok(spyre_context_reset(rank->context));
	rank_ok(spyre_all_reduce(comm, x, x, &layout, SUM, rank->stream));
	rank_ok(spyre_stream_synchronize(rank->stream));
	rank_ok(spyre_comm_destroy(comm));
}

/* Executes every collective, and compares its numbers. */
static void call_all(const struct calls *calls, spyre_comm *comm,
		     const struct call_members *members)
{
	for (enum call_kind kind = CALL_ALL_REDUCE; kind <= CALL_BARRIER; kind++) {
		calls_clear(calls);
		rank_ok(calls_queue(calls, kind, comm, members->size - 1));
		rank_ok(spyre_stream_synchronize(calls->rank->stream));
		calls_check(calls, kind, members, members->size - 1);
	}
}

/* Ranks that disagree on one property of a collective. */
static const char *const differences[] = {
	"rows", "operator", "operation", "order", "format", "layout",
};

#define DIFFERENCES ((int)(sizeof(differences) / sizeof(differences[0])))

static spyre_status call_different(struct rank *rank, const char *what)
{
	const bool odd = rank->rank == 1;
	spyre_layout layout = layout_of(!strcmp(what, "rows") && odd ? 96 : 192);
	const spyre_devptr x = alloc(rank, MIB);
	spyre_reduction reduction = SUM;

	if (!strcmp(what, "operator") && odd)
		reduction.op = SPYRE_REDUCE_MAX;
	if (!strcmp(what, "format") && odd) {
		const int64_t size[2] = { 64, 32 };

		rank_ok(spyre_layout_init(&layout, 2, size, SPYRE_FORMAT_IEEE_FP32));
	}
	if (!strcmp(what, "layout") && odd) {
		const int64_t size[2] = { 64, 192 };

		rank_ok(spyre_layout_init(&layout, 2, size, SPYRE_FORMAT_IEEE_FP16));
	}
	if (!strcmp(what, "operation") && odd)
		return spyre_all_to_all(rank->comm, x, x + MIB / 2, &layout, 1, rank->stream);
	if (!strcmp(what, "order") && odd)
		return spyre_barrier(rank->comm, rank->stream);
	return spyre_all_reduce(rank->comm, x, x, &layout, reduction, rank->stream);
}

static void differ(struct rank *rank)
{
	spyre_status status, error;

	rank_ok(ranks_join(rank, 20000));
	/* A rank that calls late has the error from its call, the others as they wait. */
	status = call_different(rank, rank->argument);
	if (!status)
		status = spyre_stream_synchronize(rank->stream);
	rank_check(status == SPYRE_ERROR_ARGUMENT_MISMATCH || status == SPYRE_ERROR_REMOTE,
		   "%s: %s", (const char *)rank->argument, spyre_status_name(status));
	rank_check(strstr(spyre_last_error(), "must call the same collectives"), "%s",
		   spyre_last_error());
	rank_ok(spyre_comm_get_error(rank->comm, &error));
	rank_check(error == status, "%s", spyre_status_name(error));
	rank_check(spyre_barrier(rank->comm, rank->stream) == status, "%s", spyre_last_error());
	check_works(rank);
}

START_TEST(test_differences)
{
	run(2, differ, differences[_i], -1);
	run(3, differ, differences[_i], -1);
}
END_TEST

/* Two ranks wait as roots for each other, so that only their limit can end this. */
static void two_roots(struct rank *rank)
{
	const spyre_layout layout = layout_of(64);
	const spyre_devptr x = alloc(rank, spyre_layout_bytes(&layout));
	spyre_status status;

	rank_ok(ranks_join(rank, 1000));
	rank_ok(spyre_reduce(rank->comm, x, x, &layout, SUM, rank->rank, rank->stream));
	status = spyre_stream_synchronize(rank->stream);
	rank_check(status == SPYRE_ERROR_TIMEOUT || status == SPYRE_ERROR_REMOTE, "%s",
		   spyre_status_name(status));
	rank_check(strstr(spyre_last_error(), "while waiting for rank"), "%s", spyre_last_error());
	check_works(rank);
}

START_TEST(test_two_roots)
{
	run(2, two_roots, NULL, -1);
}
END_TEST

static void join_missing(struct rank *rank)
{
	rank->size++;
	expect(ranks_join(rank, JOIN_LIMIT_MS), SPYRE_ERROR_TIMEOUT, " 2; start");
	rank->comm = NULL;
}

static void join_wrong_size(struct rank *rank)
{
	if (rank->rank == 1)
		rank->size = 3;
	expect(ranks_join(rank, 20000), SPYRE_ERROR_INVALID_ARGUMENT, "disagree on the size");
	rank->comm = NULL;
}

static void join_twice(struct rank *rank)
{
	if (rank->rank == 1)
		usleep(100000);
	rank->size = 3;
	rank->rank = rank->rank ? 1 : 0;
	expect(ranks_join(rank, 20000), SPYRE_ERROR_INVALID_ARGUMENT, "rank 1 joined twice");
	rank->comm = NULL;
}

static void join_killed(struct rank *rank)
{
	if (rank->rank == 1)
		raise(SIGKILL);
	expect(ranks_join(rank, 1000), SPYRE_ERROR_TIMEOUT, "missing: 1");
	rank->comm = NULL;
}

START_TEST(test_joining)
{
	run(2, join_missing, NULL, -1);
	run(2, join_wrong_size, NULL, -1);
	run(3, join_twice, NULL, -1);
	run(2, join_killed, NULL, 1);
}
END_TEST

/* Rank 1 does not call; the others give up after the limit of their call. */
static void be_slow(struct rank *rank)
{
	const spyre_layout layout = layout_of(64);
	const spyre_devptr x = alloc(rank, spyre_layout_bytes(&layout));

	rank_ok(ranks_join(rank, LIMIT_MS));
	expect(spyre_comm_set_timeout(rank->comm, 0), SPYRE_ERROR_INVALID_ARGUMENT, "0 ms");
	rank_ok(spyre_comm_set_timeout(rank->comm, SHORT_LIMIT_MS));
	if (rank->rank == 1)
		sleep(2);
	else
		rank_ok(spyre_all_reduce(rank->comm, x, x, &layout, SUM, rank->stream));
	if (rank->rank != 1)
		expect(spyre_stream_synchronize(rank->stream), rank->rank ? SPYRE_ERROR_REMOTE :
		       SPYRE_ERROR_TIMEOUT, "waiting for rank 1");
	else
		expect(spyre_barrier(rank->comm, rank->stream), SPYRE_ERROR_REMOTE,
		       "waiting for rank 1");
	check_works(rank);
}

START_TEST(test_slow)
{
	run(2, be_slow, NULL, -1);
}
END_TEST

/* After one rank has died the others go on in a smaller communicator. */
static void shrink(struct rank *rank)
{
	const uint32_t dead = *(const uint32_t *)rank->argument;
	const struct call_members rest = call_members(rank->size, dead);
	spyre_comm_info info = { .struct_size = sizeof(info) };
	struct calls calls;
	spyre_comm *shrunk;

	rank_ok(ranks_join(rank, LIMIT_MS));
	if (rank->rank == dead)
		raise(SIGKILL);
	calls_open(&calls, rank, rank->size);
	while (!calls_queue(&calls, CALL_ALL_REDUCE, rank->comm, 0) &&
	       !spyre_stream_synchronize(rank->stream))
		;
	rank_ok(spyre_comm_abort(rank->comm));
	rank_ok(spyre_context_reset(rank->context));
	rank_ok(spyre_comm_shrink(rank->comm, &dead, 1, NULL, &shrunk));
	rank_ok(spyre_comm_get_info(shrunk, &info));
	rank_check(info.size == rank->size - 1 && info.rank == rank->rank - (rank->rank > dead),
		   "rank %u of %u", info.rank, info.size);
	call_all(&calls, shrunk, &rest);
	rank_ok(spyre_comm_destroy(shrunk));
	calls_close(&calls);
}

START_TEST(test_shrink)
{
	const uint32_t dead = _i;

	run(4, shrink, &dead, (int)dead);
}
END_TEST

/* Memory that the processes of a test share. */
struct board {
	_Atomic int pid;
	_Atomic bool stopped;
};

static struct board *board_new(void)
{
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(board, MAP_FAILED);
	return board;
}

/* Stops a process, and returns when none of its threads runs. */
static void stop(int pid)
{
	char path[64], state = 0;

	rank_check(!kill(pid, SIGSTOP), "cannot stop process %d", pid);
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (state != 'T') {
		FILE *file = fopen(path, "r");

		rank_check(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1, "no %s", path);
		fclose(file);
		usleep(1000);
	}
}

/*
 * Rank 0 stops rank 1 somewhere in a collective, for a moment. Nothing fails meanwhile. Rank 1
 * has begun the next collective at most, so the one after that cannot end.
 */
static void pause_other(struct calls *calls, enum call_kind kind, struct board *board)
{
	struct rank *rank = calls->rank;
	spyre_status error;

	rank_ok(calls_queue(calls, kind, rank->comm, 0));
	stop(board->pid);
	rank_ok(calls_queue(calls, kind, rank->comm, 0));
	rank_ok(calls_queue(calls, kind, rank->comm, 0));
	usleep(MOMENT_US);
	rank_check(spyre_stream_query(rank->stream) == SPYRE_NOT_READY, "%s",
		   spyre_last_error());
	rank_ok(spyre_comm_get_error(rank->comm, &error));
	rank_ok(error);
	rank_check(!kill(board->pid, SIGCONT), "cannot continue process %d", board->pid);
	rank_ok(spyre_stream_synchronize(rank->stream));
}

static void be_paused(struct rank *rank)
{
	const struct call_members all = call_members(rank->size, rank->size);
	struct board *board = (struct board *)rank->argument;
	struct calls calls;

	calls_open(&calls, rank, rank->size);
	if (rank->rank == 1)
		board->pid = getpid();
	rank_ok(ranks_join(rank, LIMIT_MS));
	for (enum call_kind kind = CALL_ALL_REDUCE; kind <= CALL_REDUCE_SCATTER; kind++) {
		if (!rank->rank)
			pause_other(&calls, kind, board);
		for (int i = 0; rank->rank && i < 3; i++) {
			rank_ok(calls_queue(&calls, kind, rank->comm, 0));
			rank_ok(spyre_stream_synchronize(rank->stream));
		}
		calls_check(&calls, kind, &all, 0);
	}
	calls_close(&calls);
}

START_TEST(test_paused)
{
	struct board *board = board_new();

	run(3, be_paused, board, -1);
	munmap(board, sizeof(*board));
}
END_TEST

/*
 * Rank 0 stops rank 1 until the others have given up. Then rank 1 fails as well, and all of them
 * go on in another communicator.
 */
static void be_stopped(struct rank *rank)
{
	const struct call_members all = call_members(rank->size, rank->size);
	const spyre_comm_config config = { .struct_size = sizeof(config), .timeout_ms = LIMIT_MS };
	struct board *board = (struct board *)rank->argument;
	spyre_status status = SPYRE_SUCCESS;
	struct calls calls;
	spyre_comm *again;

	calls_open(&calls, rank, rank->size);
	if (rank->rank == 1)
		board->pid = getpid();
	rank_ok(ranks_join(rank, SHORT_LIMIT_MS));
	if (!rank->rank)
		stop(board->pid);
	while (!status) {
		status = calls_queue(&calls, CALL_ALL_REDUCE, rank->comm, 0);
		if (!status)
			status = spyre_stream_synchronize(rank->stream);
	}
	rank_check(status == SPYRE_ERROR_TIMEOUT || status == SPYRE_ERROR_REMOTE, "%s: %s",
		   spyre_status_name(status), spyre_last_error());
	rank_check(strstr(spyre_last_error(), rank->rank == 1 ? "while waiting for rank " :
			  "while waiting for rank 1 ("), "%s", spyre_last_error());
	if (!rank->rank)
		rank_check(!kill(board->pid, SIGCONT), "cannot continue process %d", board->pid);
	rank_ok(spyre_context_reset(rank->context));
	rank_ok(spyre_comm_shrink(rank->comm, NULL, 0, &config, &again));
	call_all(&calls, again, &all);
	rank_ok(spyre_comm_destroy(again));
	calls_close(&calls);
}

START_TEST(test_stopped)
{
	struct board *board = board_new();

	run(3, be_stopped, board, -1);
	munmap(board, sizeof(*board));
}
END_TEST

/* Rank 1 has the error @own, of which the others hear, with its name. */
static void expect_of_1(const struct rank *rank, spyre_status got, spyre_status own,
			const char *part)
{
	expect(got, rank->rank == 1 ? own : SPYRE_ERROR_REMOTE, part);
	rank_check(rank->rank == 1 || strstr(spyre_last_error(), "rank 1 (process "), "%s",
		   spyre_last_error());
}

/* Allocates all memory of the card but less than one piece of the smallest size. */
static uint32_t fill_card(struct rank *rank, spyre_devptr *pieces, uint32_t most)
{
	spyre_memory_info info = { .struct_size = sizeof(info) };
	uint32_t count = 0;

	rank_ok(spyre_mem_info(rank->context, &info));
	for (uint64_t bytes = info.total; bytes >= MIB; bytes /= 2)
		while (count < most && !spyre_mem_alloc(rank->context, bytes, &pieces[count]))
			count++;
	rank_check(count < most, "the card is not full with %u pieces", count);
	return count;
}

/* The first reduction needs scratch memory, which the card of rank 1 does not have. */
static void card_full(struct rank *rank)
{
	int cards;
	const struct call_members all = call_members(rank->size, rank->size);
	spyre_devptr pieces[256];
	uint32_t count = 0;
	struct calls calls;
	spyre_status status;
	spyre_comm *again;

	calls_open(&calls, rank, rank->size);
	rank_ok(ranks_join(rank, LIMIT_MS));
	if (rank->rank == 1)
		count = fill_card(rank, pieces, 256);
	status = calls_queue(&calls, CALL_ALL_REDUCE, rank->comm, 0);
	if (!status)
		status = spyre_stream_synchronize(rank->stream);
	rank_ok(spyre_device_count(&cards));
	if (cards >= (int)rank->size)
		expect_of_1(rank, status, SPYRE_ERROR_OUT_OF_DEVICE_MEMORY, " is out of memory");
	else
		/* The ranks share a card, whose memory each of them may miss first. */
		expect(status, status == SPYRE_ERROR_REMOTE ? status :
		       SPYRE_ERROR_OUT_OF_DEVICE_MEMORY, " is out of memory");
	while (count)
		rank_ok(spyre_mem_free(rank->context, pieces[--count]));
	rank_ok(spyre_context_reset(rank->context));
	rank_ok(spyre_comm_shrink(rank->comm, NULL, 0, NULL, &again));
	call_all(&calls, again, &all);
	rank_ok(spyre_comm_destroy(again));
	calls_close(&calls);
}

START_TEST(test_card_full)
{
	run(3, card_full, NULL, -1);
}
END_TEST

/* A segment of test_slots_full: 8 slots for 3 ranks, collectives and messages. */
#define SEGMENT_BYTES (48ull * 16 * MIB)

/* Limits the memory that this process may map to @bytes more than it has. */
static void limit_memory(uint64_t bytes)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long long pages;
	struct rlimit limit;

	rank_check(file && fscanf(file, "%llu", &pages) == 1, "no /proc/self/statm");
	fclose(file);
	rank_check(!getrlimit(RLIMIT_AS, &limit), "no limit of memory");
	limit.rlim_cur = pages * (unsigned long)sysconf(_SC_PAGESIZE) + bytes;
	rank_check(!setrlimit(RLIMIT_AS, &limit), "cannot limit the memory");
}

static void unlimit_memory(void)
{
	struct rlimit limit;

	rank_check(!getrlimit(RLIMIT_AS, &limit), "no limit of memory");
	limit.rlim_cur = limit.rlim_max;
	rank_check(!setrlimit(RLIMIT_AS, &limit), "cannot end the limit of memory");
}

/* False under qemu-user, which has the limit set without an effect. */
static bool memory_is_limited(void)
{
	const size_t bytes = 64 * MIB;
	void *at;

	limit_memory(bytes / 2);
	at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unlimit_memory();
	if (at == MAP_FAILED)
		return true;
	munmap(at, bytes);
	return false;
}

/* Rank 1 cannot map its own segment: it never arrives. */
static void own_slots_full(struct rank *rank)
{
	spyre_status status;

	if (rank->rank == 1)
		limit_memory(SEGMENT_BYTES / 2);
	status = ranks_join(rank, JOIN_LIMIT_MS);
	if (rank->rank == 1)
		expect(status, SPYRE_ERROR_OUT_OF_HOST_MEMORY, "bytes of shared memory");
	else
		expect(status, SPYRE_ERROR_TIMEOUT, "missing: 1");
	rank->comm = NULL;
	unlimit_memory();
	check_works(rank);
}

/* Rank 1 can map its own segment, but not that of another rank. */
static void other_slots_full(struct rank *rank)
{
	spyre_status status;

	if (rank->rank == 1)
		limit_memory(SEGMENT_BYTES + SEGMENT_BYTES / 2);
	status = ranks_join(rank, LIMIT_MS);
	/* A rank that has joined before learns of it later. */
	if (!status)
		status = spyre_barrier(rank->comm, rank->stream);
	if (!status)
		status = spyre_stream_synchronize(rank->stream);
	expect_of_1(rank, status, SPYRE_ERROR_OUT_OF_HOST_MEMORY, "bytes of shared memory");
	unlimit_memory();
	check_works(rank);
}

START_TEST(test_slots_full)
{
	setenv("SPYRE_COMM_CHUNK_KIB", "16384", 1);
	run(3, own_slots_full, NULL, -1);
	run(3, other_slots_full, NULL, -1);
	unsetenv("SPYRE_COMM_CHUNK_KIB");
}
END_TEST

/*
 * Two jobs of three ranks each on the same cards. Rank 4 is killed while both of them work; the
 * other job does not notice.
 */
static void two_jobs(struct rank *rank)
{
	const uint32_t job = rank->rank / 3, index = rank->rank % 3;
	const struct call_members members = { 3, { job * 3, job * 3 + 1, job * 3 + 2 } };
	struct calls calls;
	spyre_comm_id id;

	calls_open(&calls, rank, 3);
	ranks_get_id(job, !index, &id);
	rank_ok(spyre_comm_init_rank(rank->context, 3, &id, index, NULL, &rank->comm));
	for (int i = 0; i < (job ? 2 : 4); i++)
		call_all(&calls, rank->comm, &members);
	if (rank->rank == 4)
		raise(SIGKILL);
	if (job) {
		spyre_status status = spyre_barrier(rank->comm, rank->stream);

		expect(status ? status : spyre_stream_synchronize(rank->stream),
		       SPYRE_ERROR_REMOTE, "rank 1 (process ");
		rank_ok(spyre_context_reset(rank->context));
	}
	calls_close(&calls);
}

START_TEST(test_two_jobs)
{
	run(6, two_jobs, NULL, 4);
}
END_TEST

/* One rank aborts while the others wait for it. */
static void abort_all(struct rank *rank)
{
	const spyre_layout layout = layout_of(64);
	const spyre_devptr x = alloc(rank, spyre_layout_bytes(&layout));

	rank_ok(ranks_join(rank, 20000));
	if (rank->rank == 2) {
		usleep(50000);
		rank_ok(spyre_comm_abort(rank->comm));
		expect(spyre_barrier(rank->comm, rank->stream), SPYRE_ERROR_CANCELLED, "aborted");
	} else {
		rank_ok(spyre_all_reduce(rank->comm, x, x, &layout, SUM, rank->stream));
		expect(spyre_stream_synchronize(rank->stream), SPYRE_ERROR_CANCELLED,
		       "rank 2 (process");
	}
	check_works(rank);
}

START_TEST(test_abort)
{
	run(3, abort_all, NULL, -1);
}
END_TEST

/* A reset of the context of a rank ends its collective, and with it that of the others. */
static void reset(struct rank *rank)
{
	const spyre_layout layout = layout_of(64);
	const spyre_devptr x = alloc(rank, spyre_layout_bytes(&layout));

	spyre_status status;

	rank_ok(ranks_join(rank, 20000));
	if (rank->rank)
		usleep(200000);
	status = spyre_all_reduce(rank->comm, x, x, &layout, SUM, rank->stream);
	if (!rank->rank) {
		rank_ok(status);
		rank_ok(spyre_context_reset(rank->context));
		rank_ok(spyre_stream_synchronize(rank->stream));
	} else {
		if (!status)
			status = spyre_stream_synchronize(rank->stream);
		expect(status, SPYRE_ERROR_REMOTE, "rank 0 (process");
	}
	check_works(rank);
}

START_TEST(test_reset)
{
	run(2, reset, NULL, -1);
}
END_TEST

/* Colours and keys: even and odd ranks in reverse order, and rank 3 in no group. */
static void split(struct rank *rank)
{
	const int color = rank->rank == 3 ? SPYRE_COMM_NO_COLOR : (int)rank->rank % 2;
	spyre_comm_info info = { .struct_size = sizeof(info) };
	spyre_comm *half;

	rank_ok(ranks_join(rank, 20000));
	for (int i = 0; i < 3; i++) {
		rank_ok(spyre_comm_split(rank->comm, color, -(int)rank->rank, NULL, &half));
		rank_check((rank->rank == 3) == !half, "rank %u", rank->rank);
		if (!half)
			continue;
		rank_ok(spyre_comm_get_info(half, &info));
		rank_check(info.size == (color ? 1u : 2u) && info.rank == (rank->rank == 0),
			   "rank %u of %u", info.rank, info.size);
		rank_ok(spyre_barrier(half, rank->stream));
		rank_ok(spyre_stream_synchronize(rank->stream));
		rank_ok(spyre_comm_destroy(half));
	}
}

START_TEST(test_split)
{
	run(4, split, NULL, -1);
}
END_TEST

/* Why a split does not end: rank 0 is killed, aborts the communicator or does not call. */
enum split_loss {
	SPLIT_KILLED,
	SPLIT_ABORTED,
	SPLIT_SLOW,
	SPLIT_LOSSES,
};

/*
 * The letters of the split that have arrived do not disturb the communicator of the rest. Rank 0
 * comes so late that the others wait for it in the split and in the shrink, whose limit is longer.
 */
static void lose_split(struct rank *rank)
{
	const enum split_loss loss = *(const enum split_loss *)rank->argument;
	const uint32_t excluded = 0, gone = loss == SPLIT_KILLED ? excluded : rank->size;
	const struct call_members rest = call_members(rank->size, gone);
	const spyre_comm_config config = { .struct_size = sizeof(config), .timeout_ms = LIMIT_MS };
	struct calls calls;
	spyre_status status;
	spyre_comm *comm;

	calls_open(&calls, rank, rank->size);
	rank_ok(ranks_join(rank, loss == SPLIT_SLOW ? SHORT_LIMIT_MS : LIMIT_MS));
	if (!rank->rank)
		usleep(loss == SPLIT_SLOW ? 3 * SHORT_LIMIT_MS * 1000 : MOMENT_US);
	if (!rank->rank && loss == SPLIT_KILLED)
		raise(SIGKILL);
	if (!rank->rank && loss == SPLIT_ABORTED)
		rank_ok(spyre_comm_abort(rank->comm));
	status = spyre_comm_split(rank->comm, 0, 0, NULL, &comm);
	rank_check(status == (loss == SPLIT_ABORTED ? SPYRE_ERROR_CANCELLED : SPYRE_ERROR_REMOTE) ||
		   (loss == SPLIT_SLOW && status == SPYRE_ERROR_TIMEOUT), "%s: %s",
		   spyre_status_name(status), spyre_last_error());
	rank_check(!rank->rank || strstr(spyre_last_error(), "rank 0 "), "%s", spyre_last_error());
	expect(spyre_barrier(rank->comm, rank->stream), status, "");
	rank_ok(spyre_comm_shrink(rank->comm, &excluded, loss == SPLIT_KILLED, &config, &comm));
	call_all(&calls, comm, &rest);
	rank_ok(spyre_comm_destroy(comm));
	calls_close(&calls);
}

START_TEST(test_lost_split)
{
	const enum split_loss loss = (enum split_loss)_i;

	run(4, lose_split, &loss, loss == SPLIT_KILLED ? 0 : -1);
}
END_TEST

static spyre_comm_part part_of(spyre_devptr address, uint64_t sticks)
{
	return (spyre_comm_part){
		.address = address, .format = SPYRE_FORMAT_SEN169_FP16, .rows = 1,
		.row_bytes = sticks * 128, .pitch = sticks * 128,
	};
}

/* A rank must receive as many bytes from itself as it sends, or memory beyond would change. */
static void own_arguments(struct rank *rank, spyre_devptr x)
{
	const uint32_t own = rank->rank;
	const spyre_comm_part part = part_of(x, 1);
	const spyre_comm_part even[2] = { part, part };
	spyre_comm_part uneven[2] = { part, part }, sent[2], received[2];
	spyre_comm *comm = rank->comm;
	spyre_stream *s = rank->stream;

	uneven[own] = part_of(x, 2);
	expect(spyre_gather_v(comm, &uneven[own], even, own, s), SPYRE_ERROR_LAYOUT, "its own");
	expect(spyre_scatter_v(comm, uneven, &part, own, s), SPYRE_ERROR_LAYOUT, "its own");
	expect(spyre_all_to_all_v(comm, uneven, even, s), SPYRE_ERROR_LAYOUT, "its own");
	expect(spyre_all_gather_v(comm, &part, uneven, s), SPYRE_ERROR_LAYOUT, "its own");
	expect(spyre_reduce_scatter_v(comm, even, &uneven[own], SUM, s), SPYRE_ERROR_LAYOUT,
	       "its own");
	sent[0] = part_of(x, 2);
	sent[1] = part_of(x, 1);
	received[0] = part_of(x, 1);
	received[1] = part_of(x, 32);
	rank_ok(spyre_group_begin());
	for (int i = 0; i < 2; i++) {
		rank_ok(spyre_send(comm, &sent[i], own, s));
		rank_ok(spyre_recv(comm, &received[i], own, s));
	}
	expect(spyre_group_end(), SPYRE_ERROR_INVALID_ARGUMENT, "other bytes");
}

static void arguments(struct rank *rank)
{
	const spyre_layout layout = layout_of(64), two = layout_of(128), odd = layout_of(100);
	const spyre_devptr x = alloc(rank, spyre_layout_bytes(&two));
	spyre_stream *s = rank->stream;
	spyre_reduction reduction = SUM;
	spyre_comm_part part;
	spyre_context *other;
	spyre_stream *foreign;
	spyre_comm *comm;
	spyre_comm_id id;

	rank_ok(ranks_join(rank, 20000));
	comm = rank->comm;
	expect(spyre_all_reduce(NULL, x, x, &layout, SUM, s), SPYRE_ERROR_INVALID_ARGUMENT, "NULL");
	expect(spyre_all_reduce(comm, x, x, NULL, SUM, s), SPYRE_ERROR_INVALID_ARGUMENT, "layout");
	reduction.op = (spyre_reduce_op)9;
	expect(spyre_all_reduce(comm, x, x, &layout, reduction, s),
	       SPYRE_ERROR_INVALID_ARGUMENT, "unknown operator 9");
	reduction.op = SPYRE_REDUCE_BXOR;
	expect(spyre_all_reduce(comm, x, x, &layout, reduction, s),
	       SPYRE_ERROR_FORMAT, "BXOR does not exist for SEN169_FP16");
	expect(spyre_all_reduce(comm, x + 128, x, &two, SUM, s), SPYRE_ERROR_INVALID_ADDRESS,
	       "exceed");
	expect(spyre_all_reduce(comm, x + 2, x, &layout, SUM, s), SPYRE_ERROR_INVALID_ARGUMENT,
	       "multiples of 128");
	expect(spyre_broadcast(comm, x, x, &layout, 2, s), SPYRE_ERROR_INVALID_ARGUMENT, "root 2");
	expect(spyre_all_gather(comm, x, &layout, x, &odd, s), SPYRE_ERROR_LAYOUT, "2 times");
	expect(spyre_all_to_all(comm, x, x, &layout, 2, s), SPYRE_ERROR_INVALID_ARGUMENT, "stick");
	rank_ok(spyre_comm_part_init(&part, x, &layout));
	expect(spyre_send(comm, &part, 2, s), SPYRE_ERROR_INVALID_ARGUMENT, "peer 2");
	expect(spyre_send(comm, &part, rank->rank, s), SPYRE_ERROR_INVALID_ARGUMENT, "to itself");
	expect(spyre_send(comm, NULL, 1 - rank->rank, s), SPYRE_ERROR_INVALID_ARGUMENT, "NULL");
	own_arguments(rank, x);
	expect(spyre_group_end(), SPYRE_ERROR_INVALID_ARGUMENT, "no group");
	expect(spyre_comm_part_slice(&part, x, &layout, 1, 60, 5), SPYRE_ERROR_INVALID_ARGUMENT,
	       "not within");
	expect(spyre_comm_init_rank(rank->context, 2, &id, 2, NULL, &comm),
	       SPYRE_ERROR_INVALID_ARGUMENT, "rank 2 of 2");
	memset(&id, 0, sizeof(id));
	expect(spyre_comm_init_rank(rank->context, 2, &id, 0, NULL, &comm),
	       SPYRE_ERROR_INVALID_ARGUMENT, "id");
	memcpy(&id, BIG_ENDIAN_HOST ? "MOCS" : "SCOM", 4);
	expect(spyre_comm_init_rank(rank->context, 2, &id, 0, NULL, &comm),
	       SPYRE_ERROR_UNSUPPORTED, "the other byte order");
	rank_ok(spyre_context_create(0, 0, &other));
	rank_ok(spyre_stream_get(other, 0, &foreign));
	expect(spyre_barrier(rank->comm, foreign), SPYRE_ERROR_INVALID_ARGUMENT, "stream");
	rank_ok(spyre_context_destroy(other));
	/* None of the refused calls has left anything in the order of collectives. */
	rank_ok(spyre_barrier(rank->comm, s));
	rank_ok(spyre_stream_synchronize(s));
}

START_TEST(test_arguments)
{
	run(2, arguments, NULL, -1);
}
END_TEST

START_TEST(test_port_in_use)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char port[16];
	spyre_comm_id id;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert(!bind(fd, (struct sockaddr *)&address, sizeof(address)) && !listen(fd, 1));
	ck_assert(!getsockname(fd, (struct sockaddr *)&address, &bytes));
	snprintf(port, sizeof(port), "%d", ntohs(address.sin_port));
	setenv("SPYRE_COMM_PORT", port, 1);
	ck_status(spyre_comm_get_id(&id), SPYRE_ERROR_SYSTEM);
	ck_mentions(port);
	unsetenv("SPYRE_COMM_PORT");
	setenv("SPYRE_COMM_ADDRESS", "192.0.2.1", 1);
	ck_status(spyre_comm_get_id(&id), SPYRE_ERROR_CONFIGURATION);
	ck_mentions("SPYRE_COMM_ADDRESS");
	unsetenv("SPYRE_COMM_ADDRESS");
	close(fd);
}
END_TEST

#define MANY 64

/* Communicators of which all are in use at once. */
static void many(struct rank *rank)
{
	const struct call_members all = call_members(rank->size, rank->size);
	spyre_comm *comms[MANY];
	struct calls calls;

	calls_open(&calls, rank, rank->size);

	rank_ok(ranks_join(rank, 20000));
	for (int i = 0; i < MANY; i++)
		rank_ok(spyre_comm_split(rank->comm, 0, (int)rank->rank, NULL, &comms[i]));
	for (int i = 0; i < MANY; i++)
		rank_ok(calls_queue(&calls, (enum call_kind)(i % CALL_BARRIER), comms[i], 0));
	rank_ok(spyre_stream_synchronize(rank->stream));
	calls_check(&calls, (enum call_kind)((MANY - 1) % CALL_BARRIER), &all, 0);
	for (int i = 0; i < MANY; i++)
		rank_ok(spyre_comm_destroy(comms[i]));
	calls_close(&calls);
}

START_TEST(test_many)
{
	run(2, many, NULL, -1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("comm_trouble");
	TCase *tcase = tcase_create("trouble");

	setenv("SPYRE_EMBEDDED_CARDS", "4", 0);
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, test_arguments);
	tcase_add_loop_test(tcase, test_differences, 0, DIFFERENCES);
	tcase_add_test(tcase, test_two_roots);
	tcase_add_test(tcase, test_joining);
	tcase_add_test(tcase, test_slow);
	tcase_add_loop_test(tcase, test_shrink, 0, 4);
	tcase_add_test(tcase, test_paused);
	tcase_add_test(tcase, test_stopped);
	tcase_add_test(tcase, test_card_full);
	if (memory_is_limited())
		tcase_add_test(tcase, test_slots_full);
	else
		puts("# RLIMIT_AS has no effect here: test_slots_full is left out");
	tcase_add_test(tcase, test_two_jobs);
	tcase_add_test(tcase, test_abort);
	tcase_add_test(tcase, test_reset);
	tcase_add_test(tcase, test_split);
	tcase_add_loop_test(tcase, test_lost_split, 0, SPLIT_LOSSES);
	tcase_add_test(tcase, test_port_in_use);
	tcase_add_test(tcase, test_many);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
