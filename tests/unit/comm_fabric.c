/* SPDX-License-Identifier: MIT */
/*
 * Links over libfabric on loopback: a receiver that is slow, ranks that leave or are killed, and
 * messages that no correct rank sends.
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "comm_ranks.h"
#include "libspyre/comm/fabric.h"
#include "libspyre/comm/fabric_link.h"

#define MIB (1ull << 20)
#define SUM ((spyre_reduction){ .op = SPYRE_REDUCE_SUM })
#define MOMENT_US 300000
/* A failure is known at once; this is for a machine with other work. */
#define LIMIT_S 10

static spyre_layout layout_of(uint64_t bytes)
{
	const int64_t size[2] = { (int64_t)(bytes / 128), 64 };
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

static spyre_comm_part part_of(struct rank *rank, uint64_t bytes)
{
	const spyre_layout layout = layout_of(bytes);
	spyre_comm_part part;

	rank_ok(spyre_comm_part_init(&part, alloc(rank, bytes), &layout));
	return part;
}

static void write_pattern(struct rank *rank, const spyre_comm_part *part, uint64_t bytes)
{
	uint32_t *host = malloc(bytes);

	for (uint64_t i = 0; i < bytes / 4; i++)
		host[i] = (uint32_t)i * 2654435761u;
	rank_ok(spyre_memcpy_h2d_async(rank->stream, part->address, host, bytes));
	rank_ok(spyre_stream_synchronize(rank->stream));
	free(host);
}

static void check_pattern(struct rank *rank, const spyre_comm_part *part, uint64_t bytes)
{
	uint32_t *host = malloc(bytes);

	rank_ok(spyre_memcpy_d2h_async(rank->stream, host, part->address, bytes));
	rank_ok(spyre_stream_synchronize(rank->stream));
	for (uint64_t i = 0; i < bytes / 4; i++)
		rank_check(host[i] == (uint32_t)i * 2654435761u, "word %llu is %u",
			   (unsigned long long)i, host[i]);
	free(host);
}

/* The sender stops when all slots are full, whatever else is executed meanwhile. */
static void slow_receiver(struct rank *rank)
{
	const uint64_t bytes = 16 * MIB;
	const spyre_comm_part part = part_of(rank, bytes);
	spyre_comm_info info = { .struct_size = sizeof(info) };
	spyre_stream *other;

	rank_ok(spyre_stream_create(rank->context, 0, &other));
	if (!rank->rank) {
		write_pattern(rank, &part, bytes);
		rank_ok(spyre_send(rank->comm, &part, 1, rank->stream));
		while (!info.bytes_sent)
			rank_ok(spyre_comm_get_info(rank->comm, &info));
		usleep(MOMENT_US);
		rank_ok(spyre_comm_get_info(rank->comm, &info));
		rank_check(!strcmp(info.transport, "tcp"), "transport %s", info.transport);
		rank_check(info.bytes_sent <= FABRIC_SLOTS * info.chunk_bytes,
			   "%llu bytes were sent", (unsigned long long)info.bytes_sent);
	}
	rank_ok(spyre_barrier(rank->comm, other));
	rank_ok(spyre_stream_synchronize(other));
	if (rank->rank) {
		rank_ok(spyre_recv(rank->comm, &part, 0, rank->stream));
		check_pattern(rank, &part, bytes);
	}
	rank_ok(spyre_stream_synchronize(rank->stream));
}

START_TEST(test_slow_receiver)
{
	ranks_run(RANKS_AS_PROCESSES, 2, slow_receiver, NULL);
}
END_TEST

/* The sender has left before the receiver looks for its messages. */
static void leave(struct rank *rank)
{
	const spyre_comm_part part = part_of(rank, MIB);

	if (!rank->rank) {
		write_pattern(rank, &part, MIB);
		rank_ok(spyre_send(rank->comm, &part, 1, rank->stream));
		return;
	}
	usleep(MOMENT_US);
	rank_ok(spyre_recv(rank->comm, &part, 0, rank->stream));
	check_pattern(rank, &part, MIB);
}

START_TEST(test_leave)
{
	for (int i = 0; i < 4; i++)
		ranks_run(RANKS_AS_PROCESSES, 2, leave, NULL);
}
END_TEST

static void *kill_later(void *argument)
{
	const useconds_t *after_us = argument;

	usleep(*after_us);
	raise(SIGKILL);
	return NULL;
}

/*
 * Rank 1 is killed while reductions follow each other, or connections are made for the first
 * one; the others fail soon and name it.
 */
static void killed(struct rank *rank)
{
	const spyre_layout layout = layout_of(MIB);
	spyre_status status = SPYRE_SUCCESS;
	pthread_t thread;
	spyre_devptr x;

	rank_ok(ranks_join(rank, 60000));
	x = alloc(rank, MIB);
	if (rank->rank == 1)
		pthread_create(&thread, NULL, kill_later, (void *)rank->argument);
	while (!status || rank->rank == 1) {
		status = spyre_all_reduce(rank->comm, x, x, &layout, SUM, rank->stream);
		if (!status)
			status = spyre_stream_synchronize(rank->stream);
	}
	rank_check(status == SPYRE_ERROR_REMOTE && strstr(spyre_last_error(), "rank 1"), "%s: %s",
		   spyre_status_name(status), spyre_last_error());
	rank_ok(spyre_context_reset(rank->context));
}

START_TEST(test_killed)
{
	for (useconds_t after_us = 0; after_us < 60000; after_us += 3000) {
		const time_t start = time(NULL);
		int codes[3];

		ranks_spawn(3, killed, &after_us, codes);
		ck_assert_int_eq(codes[0], 0);
		ck_assert_int_eq(codes[1], -SIGKILL);
		ck_assert_int_eq(codes[2], 0);
		ck_assert_int_lt(time(NULL) - start, 30);
	}
}
END_TEST

/*
 * Rank 1 is stopped, as if its machine did not answer. The other one gives up after its limit
 * and closes connections on which messages are under way.
 */
static void stopped(struct rank *rank)
{
	const spyre_layout layout = layout_of(16 * MIB);
	spyre_status status = SPYRE_SUCCESS;
	spyre_devptr x;
	pid_t other;

	rank_ok(ranks_join(rank, 3000));
	x = alloc(rank, 16 * MIB);
	other = rank->comm->peers[1].address.pid;
	for (int i = 0; !status; i++) {
		status = spyre_all_reduce(rank->comm, x, x, &layout, SUM, rank->stream);
		if (rank->rank && i == 3) {
			usleep(10000);
			raise(SIGSTOP);
		}
		if (!status)
			status = spyre_stream_synchronize(rank->stream);
	}
	rank_check(status == SPYRE_ERROR_TIMEOUT && strstr(spyre_last_error(), "rank 1"), "%s: %s",
		   spyre_status_name(status), spyre_last_error());
	rank_ok(spyre_comm_destroy(rank->comm));
	rank->comm = NULL;
	rank_ok(spyre_context_reset(rank->context));
	kill(other, SIGKILL);
}

START_TEST(test_stopped)
{
	int codes[2];

	for (int i = 0; i < 3; i++) {
		ranks_spawn(2, stopped, NULL, codes);
		ck_assert_int_eq(codes[0], 0);
		ck_assert_int_eq(codes[1], -SIGKILL);
	}
}
END_TEST

static struct comm_link *p2p_link(struct rank *rank, enum comm_direction direction)
{
	return &rank->comm->peers[!rank->rank].link[COMM_P2P][direction];
}

/* Sends bytes with a tag of the test's choice to the other rank. */
static void inject(struct rank *rank, uint64_t tag, const void *data, size_t bytes)
{
	struct comm_fabric *fabric = rank->comm->fabric;
	ssize_t err;

	do {
		pthread_mutex_lock(&fabric->lock);
		err = fi_tinject(fabric->ep, data, bytes, fabric->peers[!rank->rank].address, tag);
		pthread_mutex_unlock(&fabric->lock);
		if (err == -FI_EAGAIN)
			rank_ok(comm_fabric_progress(rank->comm));
	} while (err == -FI_EAGAIN);
	rank_check(!err, "fi_tinject: %zd", err);
}

static uint64_t credit_tag(const struct rank *rank)
{
	return rank->comm->fabric->secret | rank->rank << 7 | COMM_P2P << 6 | FABRIC_CREDIT << 4;
}

/* Messages of a sender without the key: they match no receive. */
static void unknown_tags(struct rank *rank)
{
	const spyre_layout layout = layout_of(MIB);
	const spyre_comm_part part = part_of(rank, MIB);
	const char junk[64] = "junk";

	if (!rank->rank)
		write_pattern(rank, &part, MIB);
	for (uint64_t i = 0; rank->rank && i < 64; i++)
		inject(rank, i << 32 | i, junk, sizeof(junk));
	rank_ok(spyre_broadcast(rank->comm, rank->rank ? 0 : part.address, part.address, &layout, 0,
				rank->stream));
	check_pattern(rank, &part, MIB);
}

START_TEST(test_unknown_tags)
{
	ranks_run(RANKS_AS_PROCESSES, 2, unknown_tags, NULL);
}
END_TEST

struct hostile {
	void (*act)(struct rank *rank);
	const char *text;
};

static void send_long(struct rank *rank)
{
	struct comm_link *link = p2p_link(rank, COMM_SEND);

	rank_ok(link->ops->post(link, rank->comm->chunk + 128));
}

static void send_short(struct rank *rank)
{
	struct comm_link *link = p2p_link(rank, COMM_SEND);

	rank_ok(link->ops->post(link, 3));
}

static void send_credit(struct rank *rank)
{
	struct comm_link *link = p2p_link(rank, COMM_RECV);

	rank_ok(link->ops->release(link));
}

static void send_long_credit(struct rank *rank)
{
	inject(rank, credit_tag(rank), "extra", 5);
}

static const struct hostile hostiles[] = {
	{ send_long, "sent a message that exceeds SPYRE_COMM_CHUNK_KIB" },
	{ send_short, "rank 1 executes another part of a collective" },
	{ send_credit, "returned a message that this rank has not sent" },
	{ send_long_credit, "sent a credit with contents" },
};

#define HOSTILES ((int)(sizeof(hostiles) / sizeof(hostiles[0])))

/* Waits until the communicator has failed. */
static spyre_status wait_error(struct rank *rank)
{
	spyre_status error = SPYRE_SUCCESS;

	for (int i = 0; !error && i < LIMIT_S * 100; i++) {
		usleep(10000);
		rank_ok(spyre_comm_get_error(rank->comm, &error));
	}
	return error;
}

/* Rank 1 sends what no correct rank does, while rank 0 waits for a message. */
static void hostile(struct rank *rank)
{
	const struct hostile *hostile = rank->argument;
	const spyre_comm_part part = part_of(rank, MIB);
	spyre_status status;

	rank_ok(ranks_join(rank, 60000));
	if (rank->rank) {
		usleep(MOMENT_US);
		hostile->act(rank);
		rank_check(wait_error(rank), "the other rank has noticed nothing");
		return;
	}
	rank_ok(spyre_recv(rank->comm, &part, 1, rank->stream));
	status = spyre_stream_synchronize(rank->stream);
	rank_check(status == SPYRE_ERROR_REMOTE || status == SPYRE_ERROR_ARGUMENT_MISMATCH, "%s: %s",
		   spyre_status_name(status), spyre_last_error());
	rank_check(strstr(spyre_last_error(), "rank 1 ") && strstr(spyre_last_error(), hostile->text),
		   "\"%s\" does not mention \"%s\"", spyre_last_error(), hostile->text);
	rank_ok(spyre_context_reset(rank->context));
}

START_TEST(test_hostile)
{
	int codes[2];

	ranks_spawn(2, hostile, &hostiles[_i], codes);
	ck_assert_int_eq(codes[0], 0);
	ck_assert_int_eq(codes[1], 0);
}
END_TEST

/* Errors of the configuration, each before the rank waits for any other one. */
START_TEST(test_configuration)
{
	spyre_context *context = open_card();
	spyre_comm_id id;
	spyre_comm *comm;

	ck_ok(spyre_comm_get_id(&id));
	setenv("SPYRE_COMM_PROVIDER", "nothing", 1);
	ck_status(spyre_comm_init_rank(context, 2, &id, 0, NULL, &comm), SPYRE_ERROR_CONFIGURATION);
	ck_mentions("SPYRE_COMM_PROVIDER=nothing");
	unsetenv("SPYRE_COMM_PROVIDER");
	setenv("SPYRE_COMM_ADDRESS", "192.0.2.1", 1);
	ck_status(spyre_comm_init_rank(context, 2, &id, 0, NULL, &comm), SPYRE_ERROR_CONFIGURATION);
	ck_mentions("192.0.2.1");
	ck_ok(spyre_context_destroy(context));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("comm_fabric");
	TCase *tcase = tcase_create("fabric");

	setenv("SPYRE_EMBEDDED_CARDS", "4", 0);
	setenv("SPYRE_COMM_TRANSPORT", "tcp", 1);
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, test_slow_receiver);
	tcase_add_test(tcase, test_leave);
	/*
	 * ofi_rxm of libfabric 1.17 crashes in a few of a hundred of these, when it closes what it
	 * still had to send to a rank that is gone.
	 */
	if (getenv("SPYRE_TEST_LOST_RANKS")) {
		tcase_add_test(tcase, test_killed);
		tcase_add_test(tcase, test_stopped);
	}
	tcase_add_test(tcase, test_unknown_tags);
	tcase_add_loop_test(tcase, test_hostile, 0, HOSTILES);
	tcase_add_test(tcase, test_configuration);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
