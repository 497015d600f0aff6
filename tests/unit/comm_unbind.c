/* SPDX-License-Identifier: MIT */
/*
 * The card of a rank is unbound from its driver while a collective runs, as if it were pulled
 * out. Each rank ends with an error that names that rank, and the next job, on the same cards,
 * gets the right numbers. For root and cards of the kernel module.
 */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comm_calls.h"

#define DRIVER "/sys/bus/platform/drivers/spyre_vdev/"
#define SIZE 3
#define VICTIM 1
#define LIMIT_MS 60000
/* Range of the pause between the beginning of a collective and the unbinding. */
#define PAUSE_US 20000

/* Memory of all processes of a test. */
struct board {
	char bus_id[32];
	/* Ranks that have checked the results from before the loss. */
	_Atomic uint32_t checked;
	/* Ranks whose communicator has failed, so that the card may come back. */
	_Atomic uint32_t failed;
	uint64_t random;
};

struct plan {
	enum call_kind kind;
	struct board *board;
};

static bool write_driver(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

static void *unbind(void *argument)
{
	struct board *board = argument;

	usleep(random_next(&board->random) % PAUSE_US);
	rank_check(write_driver(DRIVER "unbind", board->bus_id), "cannot unbind %s", board->bus_id);
	return NULL;
}

static spyre_status call(const struct calls *calls, enum call_kind kind)
{
	const spyre_status status = calls_queue(calls, kind, calls->rank->comm, 0);

	return status ? status : spyre_stream_synchronize(calls->rank->stream);
}

static void lose_card(struct rank *rank)
{
	const struct plan *plan = rank->argument;
	const struct call_members all = call_members(SIZE, SIZE);
	spyre_status status;
	struct calls calls;
	pthread_t thread;

	calls_open(&calls, rank, SIZE);
	rank_ok(ranks_join(rank, LIMIT_MS));
	rank_ok(call(&calls, plan->kind));
	calls_check(&calls, plan->kind, &all, 0);
	atomic_fetch_add(&plan->board->checked, 1);
	for (int i = 0; i < LIMIT_MS && atomic_load(&plan->board->checked) < SIZE; i++)
		usleep(1000);
	if (!rank->rank)
		rank_check(!pthread_create(&thread, NULL, unbind, plan->board), "no thread");
	do {
		status = call(&calls, plan->kind);
	} while (!status);
	rank_check(rank->rank == VICTIM ? status != SPYRE_ERROR_TIMEOUT :
		   status == SPYRE_ERROR_REMOTE, "%s: %s", spyre_status_name(status),
		   spyre_last_error());
	rank_check(rank->rank == VICTIM || strstr(spyre_last_error(), "rank 1 (process "), "%s",
		   spyre_last_error());
	fprintf(stderr, "# rank %u: %s: %s\n", rank->rank, spyre_status_name(status),
		spyre_last_error());
	atomic_fetch_add(&plan->board->failed, 1);
	for (int i = 0; i < LIMIT_MS && atomic_load(&plan->board->failed) < SIZE; i++)
		usleep(1000);
	if (!rank->rank) {
		pthread_join(thread, NULL);
		rank_check(write_driver(DRIVER "bind", plan->board->bus_id), "cannot bind %s",
			   plan->board->bus_id);
	}
	/* Memory of a card that is gone can be freed, like that of others. */
	calls_close(&calls);
}

static void work(struct rank *rank)
{
	const struct call_members all = call_members(SIZE, SIZE);
	struct calls calls;

	calls_open(&calls, rank, SIZE);
	rank_ok(ranks_join(rank, LIMIT_MS));
	for (enum call_kind kind = CALL_ALL_REDUCE; kind <= CALL_BARRIER; kind++) {
		calls_clear(&calls);
		rank_ok(calls_queue(&calls, kind, rank->comm, 0));
		rank_ok(spyre_stream_synchronize(rank->stream));
		calls_check(&calls, kind, &all, 0);
	}
	calls_close(&calls);
}

static void find_card(struct board *board)
{
	spyre_device_properties properties = { .struct_size = sizeof(properties) };

	ck_ok(spyre_device_get_properties(VICTIM, &properties));
	snprintf(board->bus_id, sizeof(board->bus_id), "%s", properties.bus_id);
}

/* Waits until the card has its node again. */
static void wait_for_cards(int cards)
{
	int now = 0;

	for (int i = 0; i < 600 && now != cards; i++) {
		ck_ok(spyre_device_count(&now));
		if (now != cards)
			usleep(100000);
	}
	ck_assert_int_eq(now, cards);
}

static void run(rank_fn fn, const struct plan *plan)
{
	int codes[SIZE];

	ranks_spawn(SIZE, fn, plan, codes);
	for (int i = 0; i < SIZE; i++)
		ck_assert_msg(!codes[i], "collective %d: rank %d ended with %d", (int)plan->kind, i,
			      codes[i]);
}

START_TEST(test_unbind)
{
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const struct plan plan = { .kind = (enum call_kind)_i, .board = board };
	int cards;

	ck_assert_ptr_ne(board, MAP_FAILED);
	ck_ok(spyre_device_count(&cards));
	board->random = (uint64_t)_i + 1;
	find_card(board);
	run(lose_card, &plan);
	wait_for_cards(cards);
	run(work, &plan);
	munmap(board, sizeof(*board));
}
END_TEST

int main(void)
{
	const char *backend = getenv("SPYRE_BACKEND");
	Suite *suite;
	TCase *tcase;

	if (!backend || strcmp(backend, "drm") || geteuid()) {
		puts("1..0 # SKIP it unbinds a card of the kernel module, as root with SPYRE_BACKEND=drm");
		return EXIT_SUCCESS;
	}
	suite = suite_create("comm_unbind");
	tcase = tcase_create("unbind");
	tcase_set_timeout(tcase, 300);
	/* A barrier does not use the card, and goes on without it. */
	tcase_add_loop_test(tcase, test_unbind, 0, CALL_BARRIER);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
