/* SPDX-License-Identifier: MIT */
/*
 * A rank is killed while the ranks join, at the beginning, in the middle and at the end of each
 * collective, and while they leave. Each of the others gets an error that names it, its card and
 * memory are as before, and a communicator of the rest gives the right numbers.
 *
 * SPYRE_TEST_KILLS sets the number of kills for each collective, SPYRE_TEST_SEED their moments.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comm_calls.h"

#define SIZE 3
/* Each rank once in each phase. */
#define DEFAULT_KILLS "15"
/* Limit of a communicator, and of one whose rank may be killed before the root knows it. */
#define LIMIT_MS 60000
#define JOIN_LIMIT_MS 2000
/* Range of the pauses behind the beginning of a call, and behind its last byte. */
#define START_US 50
#define END_US 200
/* Small messages, so that there are many between the first and the last one of a call. */
#define CHUNK_KIB "16"

enum phase {
	PHASE_JOIN,
	PHASE_START,
	PHASE_DATA,
	PHASE_END,
	PHASE_LEAVE,
	PHASES,
};

struct subject {
	const char *name;
	enum call_kind kind;
	const char *algorithm;
};

static const struct subject subjects[] = {
	{ "all_reduce, one-shot", CALL_ALL_REDUCE, "one-shot" },
	{ "all_reduce, owners", CALL_ALL_REDUCE, "owners" },
	{ "all_gather", CALL_ALL_GATHER, "auto" },
	{ "reduce_scatter", CALL_REDUCE_SCATTER, "auto" },
	{ "broadcast", CALL_BROADCAST, "auto" },
	{ "reduce", CALL_REDUCE, "auto" },
	{ "all_to_all", CALL_ALL_TO_ALL, "auto" },
	{ "gather", CALL_GATHER, "auto" },
	{ "scatter", CALL_SCATTER, "auto" },
	{ "all_gather_v", CALL_ALL_GATHER_V, "auto" },
	{ "reduce_scatter_v", CALL_REDUCE_SCATTER_V, "auto" },
	{ "all_to_all_v", CALL_ALL_TO_ALL_V, "auto" },
	{ "gather_v", CALL_GATHER_V, "auto" },
	{ "scatter_v", CALL_SCATTER_V, "auto" },
	{ "send and recv", CALL_MESSAGES, "auto" },
	{ "barrier", CALL_BARRIER, "auto" },
};

#define SUBJECTS ((int)(sizeof(subjects) / sizeof(subjects[0])))

/* Memory of all processes of a subject. */
struct board {
	/* Duration of a creation without a kill. */
	_Atomic uint32_t join_us;
	/* Where the victims were. */
	_Atomic uint32_t seen[PHASES];
	/* Survivors of this kill whose communicator has failed, or was not created. */
	_Atomic uint32_t failed;
	_Atomic uint32_t refused;
};

struct plan {
	enum call_kind kind;
	struct board *board;
	/* SIZE if no rank is killed. */
	uint32_t victim;
	uint32_t root;
	enum phase phase;
	/* The moment: after a part of the call's bytes, in thousandths, and a pause. */
	uint32_t permille;
	uint32_t pause_us;
};

/* Process of a rank that will be killed. */
struct victim {
	const struct plan *plan;
	struct rank *rank;
	/* -1, PHASE_JOIN, PHASE_START from the call on in which it may be killed, PHASE_LEAVE. */
	_Atomic int stage;
	/* Bytes and collectives before that call, and bytes of the call. */
	uint64_t bytes;
	uint64_t operations;
	uint64_t call_bytes;
};

static spyre_comm_info info_of(spyre_comm *comm)
{
	spyre_comm_info info = { .struct_size = sizeof(info) };

	rank_ok(spyre_comm_get_info(comm, &info));
	return info;
}

static uint64_t bytes_of(spyre_comm *comm)
{
	const spyre_comm_info info = info_of(comm);

	return info.bytes_sent + info.bytes_received;
}

/* The victim's phase. Its communicator exists in PHASE_START. */
static enum phase phase_of(const struct victim *victim)
{
	spyre_comm_info info;
	uint64_t moved;

	if (atomic_load(&victim->stage) != PHASE_START)
		return (enum phase)atomic_load(&victim->stage);
	info = info_of(victim->rank->comm);
	moved = info.bytes_sent + info.bytes_received - victim->bytes;
	if (info.operations > victim->operations || (moved && moved == victim->call_bytes))
		return PHASE_END;
	return moved ? PHASE_DATA : PHASE_START;
}

/* Without sleeping, which takes longer than a phase. */
static void pause_exactly(uint32_t pause_us)
{
	struct timespec begin, now;
	uint64_t passed_us;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
		passed_us = (now.tv_sec - begin.tv_sec) * 1000000 +
			    (now.tv_nsec - begin.tv_nsec) / 1000;
	} while (passed_us < pause_us);
}

/* Kills this process after the plan's pause. */
static void strike(const struct victim *victim)
{
	pause_exactly(victim->plan->pause_us);
	atomic_fetch_add(&victim->plan->board->seen[phase_of(victim)], 1);
	kill(getpid(), SIGKILL);
}

/* Waits for the plan's phase. */
static void *strike_later(void *argument)
{
	const struct victim *victim = argument;
	const struct plan *plan = victim->plan;
	const int stage = plan->phase == PHASE_LEAVE ? PHASE_LEAVE :
			  plan->phase == PHASE_JOIN ? PHASE_JOIN : PHASE_START;

	while (atomic_load(&victim->stage) < stage)
		sched_yield();
	if (stage == PHASE_START)
		while (bytes_of(victim->rank->comm) - victim->bytes <
		       victim->call_bytes * plan->permille / 1000)
			sched_yield();
	strike(victim);
	return NULL;
}

static spyre_status call(const struct calls *calls, const struct plan *plan)
{
	const spyre_status status = calls_queue(calls, plan->kind, calls->rank->comm, plan->root);

	return status ? status : spyre_stream_synchronize(calls->rank->stream);
}

static spyre_status join(struct rank *rank, const spyre_comm_id *id, const struct plan *plan)
{
	const spyre_comm_config config = {
		.struct_size = sizeof(config), .name = "kills",
		.timeout_ms = plan->phase == PHASE_JOIN ? JOIN_LIMIT_MS : LIMIT_MS,
	};

	return spyre_comm_init_rank(rank->context, rank->size, id, rank->rank, &config,
				    &rank->comm);
}

/* One call shows how many bytes the next one will move, in which the rank may be killed. */
static void be_killed(struct rank *rank, const struct plan *plan)
{
	struct victim victim = { .plan = plan, .rank = rank, .stage = -1 };
	spyre_status status;
	struct calls calls;
	pthread_t thread;
	spyre_comm_id id;

	calls_open(&calls, rank, SIZE);
	if (plan->phase != PHASE_START)
		rank_check(!pthread_create(&thread, NULL, strike_later, &victim), "no thread");
	ranks_get_id(0, !rank->rank, &id);
	atomic_store(&victim.stage, PHASE_JOIN);
	status = join(rank, &id, plan);
	/* On a busy machine it may miss the limit of the others, which name it all the same. */
	while (status && plan->phase == PHASE_JOIN)
		pause();
	rank_ok(status);
	rank_ok(call(&calls, plan));
	victim.operations = info_of(rank->comm).operations;
	victim.bytes = victim.call_bytes = bytes_of(rank->comm);
	atomic_store(&victim.stage, PHASE_START);
	rank_ok(calls_queue(&calls, plan->kind, rank->comm, plan->root));
	/* Another thread would notice too late that the call has begun. */
	if (plan->phase == PHASE_START)
		strike(&victim);
	rank_ok(spyre_stream_synchronize(rank->stream));
	if (plan->phase == PHASE_LEAVE) {
		atomic_store(&victim.stage, PHASE_LEAVE);
		rank_ok(spyre_comm_finalize(rank->comm));
		rank_ok(spyre_comm_destroy(rank->comm));
	}
	for (;;)
		pause();
}

/* The error tells which rank is gone. The process that made the id is that of rank 0. */
static void check_named(spyre_status status, const struct plan *plan)
{
	const char *text = spyre_last_error(), *missing = strstr(text, "missing: ");
	char rank[32], number[2] = { (char)('0' + plan->victim), 0 };

	snprintf(rank, sizeof(rank), "rank %u (process ", plan->victim);
	rank_check(status == SPYRE_ERROR_REMOTE || (plan->phase == PHASE_JOIN &&
		   status == SPYRE_ERROR_TIMEOUT), "%s: %s", spyre_status_name(status), text);
	rank_check(strstr(text, rank) || (missing && strpbrk(missing, number)) ||
		   (!plan->victim && strstr(text, "the process that created the id")),
		   "the error does not name rank %u: %s", plan->victim, text);
}

/* Creates a communicator of the rest; if it has none with all of them, by a new id. */
static spyre_comm *go_on(struct rank *rank, const struct plan *plan)
{
	const spyre_comm_config config = {
		.struct_size = sizeof(config), .timeout_ms = LIMIT_MS, .name = "rest",
	};
	const uint32_t index = rank->rank - (rank->rank > plan->victim);
	spyre_comm *comm = NULL;
	spyre_comm_id id;

	atomic_fetch_add(&plan->board->refused, !rank->comm);
	atomic_fetch_add(&plan->board->failed, 1);
	for (int i = 0; i < LIMIT_MS && atomic_load(&plan->board->failed) < SIZE - 1; i++)
		usleep(1000);
	rank_check(atomic_load(&plan->board->failed) == SIZE - 1, "another rank has noticed nothing");
	if (!atomic_load(&plan->board->refused)) {
		rank_ok(spyre_comm_shrink(rank->comm, &plan->victim, 1, &config, &comm));
		return comm;
	}
	rank_check(plan->phase == PHASE_JOIN, "a rank could not join");
	ranks_get_id(1, !index, &id);
	rank_ok(spyre_comm_init_rank(rank->context, SIZE - 1, &id, index, &config, &comm));
	return comm;
}

static void survive(struct rank *rank, const struct plan *plan)
{
	const struct call_members all = call_members(SIZE, SIZE);
	const struct call_members rest = call_members(SIZE, plan->victim);
	struct rank_holdings before;
	spyre_status status;
	struct calls calls;
	spyre_comm_id id;
	spyre_comm *comm;

	calls_open(&calls, rank, SIZE);
	before = ranks_warm_up(rank);
	ranks_get_id(0, !rank->rank, &id);
	status = join(rank, &id, plan);
	while (!status) {
		status = call(&calls, plan);
		if (!status)
			calls_check(&calls, plan->kind, &all, plan->root);
	}
	check_named(status, plan);
	rank_ok(spyre_context_reset(rank->context));
	comm = go_on(rank, plan);
	for (uint32_t root = 0; root < rest.size; root++) {
		calls_clear(&calls);
		rank_ok(calls_queue(&calls, plan->kind, comm, root));
		rank_ok(spyre_stream_synchronize(rank->stream));
		calls_check(&calls, plan->kind, &rest, root);
	}
	rank_ok(spyre_comm_destroy(comm));
	rank_ok(spyre_comm_destroy(rank->comm));
	rank->comm = NULL;
	ranks_check_holdings(&before);
	calls_close(&calls);
}

static void play(struct rank *rank)
{
	const struct plan *plan = rank->argument;

	if (rank->rank == plan->victim)
		be_killed(rank, plan);
	else
		survive(rank, plan);
}

static void measure_join(struct rank *rank)
{
	const struct plan *plan = rank->argument;
	struct timespec begin, end;
	spyre_comm_id id;

	ranks_get_id(0, !rank->rank, &id);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	rank_ok(join(rank, &id, plan));
	clock_gettime(CLOCK_MONOTONIC, &end);
	if (!rank->rank)
		atomic_store(&plan->board->join_us, (end.tv_sec - begin.tv_sec) * 1000000 +
			     (end.tv_nsec - begin.tv_nsec) / 1000);
}

static uint64_t setting(const char *name, const char *standard)
{
	const char *text = getenv(name);

	return strtoull(text ? text : standard, NULL, 0);
}

/* Rank and phase take turns; the moment within the phase is random. */
static struct plan plan_of(const struct subject *subject, struct board *board, uint32_t i,
			   uint64_t *random)
{
	struct plan plan = {
		.kind = subject->kind, .board = board, .victim = i % SIZE,
		.phase = (enum phase)(i % PHASES), .root = random_next(random) % SIZE,
	};
	const uint32_t ranges[] = {
		[PHASE_JOIN] = board->join_us + 1, [PHASE_START] = START_US, [PHASE_DATA] = 1,
		[PHASE_END] = END_US, [PHASE_LEAVE] = END_US,
	};

	plan.pause_us = random_next(random) % ranges[plan.phase];
	plan.permille = plan.phase == PHASE_DATA ? random_next(random) % 1000 :
			plan.phase == PHASE_END ? 1000 : 0;
	atomic_store(&board->failed, 0);
	atomic_store(&board->refused, 0);
	return plan;
}

START_TEST(test_kills)
{
	const struct subject *subject = &subjects[_i];
	const uint64_t kills = setting("SPYRE_TEST_KILLS", DEFAULT_KILLS);
	const uint64_t seed = setting("SPYRE_TEST_SEED", "1");
	uint64_t random = (seed << 8) + _i + 1;
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const struct plan unharmed = { .board = board, .victim = SIZE };
	int codes[SIZE];

	ck_assert_ptr_ne(board, MAP_FAILED);
	setenv("SPYRE_COMM_ALGO", subject->algorithm, 1);
	ranks_spawn(SIZE, measure_join, &unharmed, codes);
	for (uint32_t i = 0; i < kills; i++) {
		const struct plan plan = plan_of(subject, board, i, &random);

		ranks_spawn(SIZE, play, &plan, codes);
		for (uint32_t rank = 0; rank < SIZE; rank++)
			ck_assert_msg(codes[rank] == (rank == plan.victim ? -SIGKILL : 0),
				      "%s, seed %llu, kill %u of rank %u in phase %d: rank %u ended "
				      "with %d", subject->name, (unsigned long long)seed, i,
				      plan.victim, (int)plan.phase, rank, codes[rank]);
	}
	fprintf(stderr, "# %s, seed %llu: killed %u joining, %u at the start, %u in the middle, %u "
		"at the end, %u leaving\n", subject->name, (unsigned long long)seed,
		board->seen[PHASE_JOIN], board->seen[PHASE_START], board->seen[PHASE_DATA],
		board->seen[PHASE_END], board->seen[PHASE_LEAVE]);
	munmap(board, sizeof(*board));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("comm_kills");
	TCase *tcase = tcase_create("kills");

	setenv("SPYRE_EMBEDDED_CARDS", "3", 0);
	setenv("SPYRE_COMM_CHUNK_KIB", CHUNK_KIB, 1);
	tcase_set_timeout(tcase, 3600);
	tcase_add_loop_test(tcase, test_kills, 0, SUBJECTS);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
