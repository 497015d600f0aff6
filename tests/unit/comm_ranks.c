/* SPDX-License-Identifier: MIT */
/* Ranks of tests. The first rank creates the id and passes it through shared memory. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm_ranks.h"

#define MAX_RANKS 8
/* Limit of threads that end a moment later. */
#define HOLDINGS_LIMIT_MS 60000

/* Memory that all processes of a test share: the ids of its communicators. */
struct shared {
	struct {
		_Atomic uint32_t ready;
		spyre_comm_id id;
	} meeting[RANKS_MEETINGS];
};

static struct shared *shared;

static void open_context(struct rank *rank)
{
	int cards;

	rank_ok(spyre_device_count(&cards));
	rank_check(cards > 0, "no card");
	rank_ok(spyre_context_create((int)rank->rank % cards, 0, &rank->context));
	rank_ok(spyre_stream_get(rank->context, SPYRE_STREAM_DEFAULT, &rank->stream));
}

void ranks_get_id(uint32_t meeting, bool creates, spyre_comm_id *id)
{
	if (creates) {
		rank_ok(spyre_comm_get_id(&shared->meeting[meeting].id));
		atomic_store(&shared->meeting[meeting].ready, 1);
	}
	while (!atomic_load(&shared->meeting[meeting].ready))
		sched_yield();
	*id = shared->meeting[meeting].id;
}

spyre_status ranks_join(struct rank *rank, uint64_t timeout_ms)
{
	const spyre_comm_config config = {
		.struct_size = sizeof(config), .timeout_ms = timeout_ms, .name = "test",
	};
	spyre_comm_id id;

	ranks_get_id(0, !rank->rank, &id);
	return spyre_comm_init_rank(rank->context, rank->size, &id, rank->rank, &config,
				    &rank->comm);
}

static void rank_close(struct rank *rank)
{
	rank_ok(spyre_comm_destroy(rank->comm));
	rank_ok(spyre_context_destroy(rank->context));
}

static void shared_open(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
}

static void shared_close(void)
{
	munmap(shared, sizeof(*shared));
}

static pid_t start(struct rank *rank, rank_fn fn, bool joins)
{
	const pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid)
		return pid;
	open_context(rank);
	if (joins)
		rank_ok(ranks_join(rank, 60000));
	fn(rank);
	rank_close(rank);
	_exit(0);
}

static int code_of(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void spawn(uint32_t size, rank_fn fn, const void *argument, bool joins, int *codes)
{
	pid_t pids[MAX_RANKS];

	ck_assert_uint_le(size, MAX_RANKS);
	shared_open();
	for (uint32_t i = 0; i < size; i++) {
		struct rank rank = { .rank = i, .size = size, .argument = argument };

		pids[i] = start(&rank, fn, joins);
	}
	for (uint32_t i = 0; i < size; i++)
		codes[i] = code_of(pids[i]);
	shared_close();
}

void ranks_spawn(uint32_t size, rank_fn fn, const void *argument, int *codes)
{
	spawn(size, fn, argument, false, codes);
}

struct thread {
	struct rank rank;
	rank_fn fn;
	pthread_t thread;
};

static void *thread_main(void *argument)
{
	struct thread *thread = argument;

	open_context(&thread->rank);
	rank_ok(ranks_join(&thread->rank, 60000));
	thread->fn(&thread->rank);
	rank_close(&thread->rank);
	return NULL;
}

static void run_threads(uint32_t size, rank_fn fn, const void *argument)
{
	struct thread threads[MAX_RANKS];

	shared_open();
	for (uint32_t i = 0; i < size; i++) {
		threads[i] = (struct thread){
			.rank = { .rank = i, .size = size, .argument = argument }, .fn = fn,
		};
		ck_assert_int_eq(pthread_create(&threads[i].thread, NULL, thread_main, &threads[i]),
				 0);
	}
	for (uint32_t i = 0; i < size; i++)
		pthread_join(threads[i].thread, NULL);
	shared_close();
}

void ranks_run(enum ranks_as as, uint32_t size, rank_fn fn, const void *argument)
{
	int codes[MAX_RANKS];

	if (as == RANKS_AS_THREADS) {
		run_threads(size, fn, argument);
		return;
	}
	spawn(size, fn, argument, true, codes);
	for (uint32_t i = 0; i < size; i++)
		ck_assert_msg(!codes[i], "rank %u of %u ended with %d", i, size, codes[i]);
}

static uint32_t count_entries(const char *folder, bool (*counts)(const char *name))
{
	DIR *entries = opendir(folder);
	struct dirent *entry;
	uint32_t count = 0;

	rank_check(entries, "cannot open %s", folder);
	while ((entry = readdir(entries)))
		count += counts(entry->d_name);
	closedir(entries);
	return count;
}

static bool is_file(const char *name)
{
	return name[0] != '.';
}

/*
 * Threads of streams and communicators have such names. Workers of an embedded card ("spyre0.1")
 * start whenever work finds none that is idle.
 */
static bool is_kept_thread(const char *id)
{
	char path[64], name[32] = "";
	FILE *file;

	if (id[0] == '.')
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", id);
	file = fopen(path, "re");
	if (!file)
		return false;	/* it has ended since the list was read */
	if (!fgets(name, sizeof(name), file))
		name[0] = 0;
	fclose(file);
	return !strncmp(name, "spyre-", strlen("spyre-"));
}

static struct rank_holdings holdings(void)
{
	return (struct rank_holdings){
		count_entries("/proc/self/fd", is_file),
		count_entries("/proc/self/task", is_kept_thread),
	};
}

static void nothing(void *data)
{
}

struct rank_holdings ranks_warm_up(struct rank *rank)
{
	rank_ok(spyre_stream_host_fn(rank->stream, nothing, NULL));
	rank_ok(spyre_stream_synchronize(rank->stream));
	return holdings();
}

void ranks_check_holdings(const struct rank_holdings *before)
{
	const char *transport = getenv("SPYRE_COMM_TRANSPORT");
	struct rank_holdings now = holdings();

	if (transport && !strcmp(transport, "tcp"))
		return;
	for (int i = 0; i < HOLDINGS_LIMIT_MS / 10 && memcmp(&now, before, sizeof(now)); i++) {
		usleep(10000);
		now = holdings();
	}
	rank_check(!memcmp(&now, before, sizeof(now)), "%u open files and %u threads, before %u and %u",
		   now.files, now.threads, before->files, before->threads);
}
