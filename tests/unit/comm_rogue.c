/* SPDX-License-Identifier: MIT */
/*
 * A rank that has the key of the job but does not follow the protocol: it passes a file that it
 * can shorten, a foreign one, none or two, spoils the shared memory, sends wrong lengths, or ends
 * early. The other rank gets an error that names it, keeps no file of it open, and the next job on
 * the same cards gets the right numbers.
 */
#define _GNU_SOURCE
#include "config.h"

#include <fcntl.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm_calls.h"
#include "libspyre/backend/futex.h"
#include "libspyre/comm/comm.h"
#include "libspyre/comm/root.h"
#include "libspyre/comm/socket.h"
#include "tests/order.h"

#define SIZE 2
#define LIMIT_MS 60000
#define MOMENT_US 200000
#define CHUNK_KIB "16"
#define CHUNK (16u << 10)
#define PAGE 4096
/* Of a segment (shm.c): the ring of collectives from @sender, and its first two slots. */
#define RING_AT(sender) (128 + (sender) * 192)
#define POSTED 0
#define BYTES 32
#define SLOT_AT(sender, slot) (PAGE + ((sender) * 8 + (slot)) * CHUNK)
/* Letters of more bytes than the connection holds. */
#define FLOOD 100000

/* Rank 1 as it deals with rank 0. */
struct rogue {
	struct rank *rank;
	struct comm_identity identity;
	int64_t deadline_ns;
	/* The connection, and the segment that rank 0 has passed. */
	int control;
	int theirs;
	off_t bytes;
};

struct manner {
	const char *name;
	/* Part of the error of rank 0. */
	const char *text;
	/* NULL if it deals with the root only. */
	void (*act)(struct rogue *rogue);
	/* Size of the communicator, as it tells the root. */
	uint32_t size;
};

/* The name of this machine by which ranks know that they share memory (rendezvous.c). */
static void name_machine(struct comm_address *address)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
	struct stat net;
	char boot[48];

	rank_check(file && fscanf(file, "%40s", boot) == 1 && !stat("/proc/self/ns/net", &net),
		   "no name of this machine");
	fclose(file);
	snprintf(address->machine, sizeof(address->machine), "%s:%llu", boot,
		 (unsigned long long)net.st_ino);
}

/* Arrives at the root as a rank with this socket, "" for none. Returns the connection. */
static int say_hello(const struct rogue *rogue, uint32_t rank, uint32_t size, const char *socket)
{
	struct comm_hello hello = {
		.magic = COMM_MAGIC, .version = COMM_VERSION, .key = rogue->identity.key,
		.size = size, .rank = rank, .chunk = CHUNK, .transport = COMM_TRANSPORT_AUTO,
		.timeout_ms = LIMIT_MS, .address = { .pid = getpid(), .process = 1, .host = "rogue" },
	};
	int fd;

	name_machine(&hello.address);
	snprintf(hello.address.socket, sizeof(hello.address.socket), "%s", socket);
	rank_ok(comm_connect_tcp(rogue->identity.host, rogue->identity.port, rogue->deadline_ns,
				 &fd));
	rank_ok(comm_send_all(fd, &hello, sizeof(hello), rogue->deadline_ns));
	return fd;
}

/* Arrives at the root as rank 1. Returns the address of rank 0 if there is an answer. */
static struct comm_address arrive(struct rogue *rogue, uint32_t size)
{
	const int fd = say_hello(rogue, 1, size, "");
	struct comm_address address = { 0 };
	struct comm_answer answer;

	rank_ok(comm_recv_all(fd, &answer, sizeof(answer), rogue->deadline_ns));
	if (!answer.status)
		rank_ok(comm_recv_all(fd, &address, sizeof(address), rogue->deadline_ns));
	close(fd);
	return address;
}

/* Connects to rank 0 and takes its segment, before it passes an own one. */
static void connect_to_rank(struct rogue *rogue, const struct comm_address *address)
{
	const struct comm_greeting greeting = {
		.magic = COMM_MAGIC, .rank = 1, .key = rogue->identity.key,
	};
	struct stat stat;

	rank_ok(comm_connect_unix(address->socket, rogue->deadline_ns, &rogue->control));
	rank_ok(comm_send_all(rogue->control, &greeting, sizeof(greeting), rogue->deadline_ns));
	rank_ok(comm_recv_fd(rogue->control, rogue->deadline_ns, &rogue->theirs));
	rank_check(rogue->theirs >= 0 && !fstat(rogue->theirs, &stat), "no segment");
	rogue->bytes = stat.st_size;
}

static int memory_file(off_t bytes, int seals)
{
	int fd = memfd_create("rogue", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	rank_check(fd >= 0 && !ftruncate(fd, bytes) && !fcntl(fd, F_ADD_SEALS, seals), "no memory");
	return fd;
}

static void pass(const struct rogue *rogue, int fd)
{
	rank_check(fd >= 0, "no file");
	rank_ok(comm_send_fd(rogue->control, fd, rogue->deadline_ns));
}

static void say(const struct rogue *rogue, const void *data, size_t bytes)
{
	rank_ok(comm_send_all(rogue->control, data, bytes, rogue->deadline_ns));
}

static void close_early(struct rogue *rogue)
{
	close(rogue->control);
}

static void pass_unsealed(struct rogue *rogue)
{
	const int fd = memory_file(rogue->bytes, 0);

	pass(rogue, fd);
	rank_check(!ftruncate(fd, 0), "cannot shorten a file without seals");
}

static void pass_short(struct rogue *rogue)
{
	pass(rogue, memory_file(rogue->bytes - PAGE, F_SEAL_SHRINK));
}

static void pass_long(struct rogue *rogue)
{
	pass(rogue, memory_file(rogue->bytes + PAGE, F_SEAL_SHRINK));
}

static void pass_read_only(struct rogue *rogue)
{
	pass(rogue, memory_file(rogue->bytes, F_SEAL_SHRINK | F_SEAL_WRITE));
}

static void pass_null(struct rogue *rogue)
{
	pass(rogue, open("/dev/null", O_RDWR | O_CLOEXEC));
}

static void pass_connection(struct rogue *rogue)
{
	pass(rogue, rogue->control);
}

static void pass_disk_file(struct rogue *rogue)
{
	FILE *file = tmpfile();

	rank_check(file && !ftruncate(fileno(file), rogue->bytes), "no file");
	pass(rogue, fileno(file));
}

/* Memory of the card is a file on cards of the kernel only. */
static void pass_card_memory(struct rogue *rogue)
{
	uint64_t offset, bytes;
	spyre_devptr memory;
	int fd = -1;

	rank_ok(spyre_mem_alloc(rogue->rank->context, (uint64_t)rogue->bytes, &memory));
	if (spyre_mem_export_dmabuf(rogue->rank->context, memory, &fd, &offset, &bytes))
		fd = eventfd(0, EFD_CLOEXEC);
	pass(rogue, fd);
}

static void pass_two(struct rogue *rogue)
{
	const int fds[2] = {
		memory_file(rogue->bytes, F_SEAL_SHRINK), memory_file(rogue->bytes, F_SEAL_SHRINK),
	};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(fds))] = { 0 };
	char zero = 0;
	struct iovec byte = { &zero, 1 };
	struct msghdr message = {
		.msg_iov = &byte, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	*header = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(sizeof(fds)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
	};
	memcpy(CMSG_DATA(header), fds, sizeof(fds));
	rank_check(sendmsg(rogue->control, &message, MSG_NOSIGNAL) == 1, "cannot pass files");
}

static void pass_nothing(struct rogue *rogue)
{
	say(rogue, "", 1);
}

/* A message of a control connection (watch.c) with more bytes than one may have. */
static void send_long_message(struct rogue *rogue)
{
	uint32_t message[3] = { 1, 0, UINT32_MAX };

	/* The kind is the first byte. */
	order_le(message, 1, sizeof(*message));
	say(rogue, message, sizeof(message));
}

/* Passes a segment as correct ranks do. */
static int join(struct rogue *rogue)
{
	const int own = memory_file(rogue->bytes, F_SEAL_SHRINK);

	pass(rogue, own);
	return own;
}

static uint8_t *map(const struct rogue *rogue, int fd)
{
	void *memory = mmap(NULL, (size_t)rogue->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	rank_check(memory != MAP_FAILED, "cannot map a segment");
	return memory;
}

static void join_and_close(struct rogue *rogue)
{
	join(rogue);
	close(rogue->control);
}

static void join_and_send_long_message(struct rogue *rogue)
{
	join(rogue);
	send_long_message(rogue);
	usleep(MOMENT_US);
}

/* Unread letters must not fill the memory of rank 0. */
static void join_and_flood(struct rogue *rogue)
{
	uint32_t letter[3] = { COMM_LETTER_COLOR, 0, 8 };
	uint8_t bytes[sizeof(letter) + 8] = { 0 };
	int sent = 0;

	order_le(letter, 1, sizeof(*letter));
	join(rogue);
	memcpy(bytes, letter, sizeof(letter));
	while (sent < FLOOD && !comm_send_all(rogue->control, bytes, sizeof(bytes),
					      rogue->deadline_ns))
		sent++;
	rank_check(sent < FLOOD, "rank 0 has taken %d letters", sent);
}

/* Rank 0 cannot be made to touch memory that is not there any more. */
static void join_and_shorten(struct rogue *rogue)
{
	const int own = join(rogue);

	rank_check(ftruncate(own, 0) && errno == EPERM, "a sealed file was shortened");
	rank_check(ftruncate(rogue->theirs, 0) && errno == EPERM, "rank 0's file was shortened");
	rank_check(fcntl(rogue->theirs, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) && errno == EPERM,
		   "rank 0's file was sealed");
	for (int i = 0; i < 100; i++) {
		fallocate(own, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, rogue->bytes);
		fallocate(rogue->theirs, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			  rogue->bytes);
		usleep(MOMENT_US / 100);
	}
}

/* Any counters, lengths and data in both segments. */
static void join_and_spoil(struct rogue *rogue)
{
	uint8_t *memory[2] = { map(rogue, join(rogue)), map(rogue, rogue->theirs) };
	const int64_t end_ns = (int64_t)spyre_now_ns() + MOMENT_US * 1000ll;
	uint64_t random = 1;

	while ((int64_t)spyre_now_ns() < end_ns)
		for (uint32_t at = 0; at < PAGE; at += 4) {
			_Atomic uint32_t *word = (_Atomic uint32_t *)(memory[at / 4 % 2] + at);
			const uint32_t value = (uint32_t)random_next(&random);

			/* Counts are small, so that some are in the range of those of rank 0. */
			atomic_store(word, value % 2 ? value : value >> 28);
		}
}

/* Repeats the first message of rank 0, which is what rank 0 expects, and a length that is not. */
static void join_and_exceed(struct rogue *rogue)
{
	uint8_t *own = map(rogue, join(rogue)), *theirs = map(rogue, rogue->theirs);
	_Atomic uint32_t *ring = (_Atomic uint32_t *)(theirs + RING_AT(1));
	_Atomic uint32_t *heard = (_Atomic uint32_t *)(own + RING_AT(0));

	while (!atomic_load(&heard[POSTED]) && (int64_t)spyre_now_ns() < rogue->deadline_ns)
		usleep(1000);
	memcpy(theirs + SLOT_AT(1, 0), own + SLOT_AT(0, 0), CHUNK);
	atomic_store(&ring[BYTES], atomic_load(&heard[BYTES]));
	atomic_store(&ring[BYTES + 1], UINT32_MAX);
	atomic_store(&ring[POSTED], 2);
	usleep(MOMENT_US);
}

static const struct manner manners[] = {
	{ "a size of 4294967295", "rank 1 of 4294967295 is not valid", NULL, UINT32_MAX },
	{ "a size of 65", "rank 1 of 65 is not valid", NULL,
	  SPYRE_COMM_MAX_RANKS + 1 },
	{ "closes early", "the connection ended", close_early, SIZE },
	{ "a file that shrinks", "is not sealed", pass_unsealed, SIZE },
	{ "a short file", "does not have the expected", pass_short, SIZE },
	{ "a long file", "does not have the expected", pass_long, SIZE },
	{ "a file without writing", "cannot map", pass_read_only, SIZE },
	{ "/dev/null", "is not sealed", pass_null, SIZE },
	{ "its own connection", "is not sealed", pass_connection, SIZE },
	{ "a file on a disk", "is not sealed", pass_disk_file, SIZE },
	{ "memory of a card", "is not sealed", pass_card_memory, SIZE },
	{ "two files", "more than one file", pass_two, SIZE },
	{ "no file", "sent no file", pass_nothing, SIZE },
	{ "a long message", "is not valid", send_long_message, SIZE },
	{ "joins and closes", "has ended", join_and_close, SIZE },
	{ "joins, a long message", "has ended", join_and_send_long_message, SIZE },
	{ "joins, many letters", "has ended", join_and_flood, SIZE },
	{ "joins, shortens", "rank 1", join_and_shorten, SIZE },
	{ "joins, spoils", "rank 1", join_and_spoil, SIZE },
	{ "joins, a long length", "sent 4294967295 bytes instead of", join_and_exceed, SIZE },
};

#define MANNERS ((int)(sizeof(manners) / sizeof(manners[0])))

static struct rogue rogue_of(struct rank *rank)
{
	struct rogue rogue = {
		.rank = rank, .deadline_ns = (int64_t)spyre_now_ns() + LIMIT_MS * 1000000ll,
	};
	spyre_comm_id id;

	ranks_get_id(0, false, &id);
	memcpy(&rogue.identity, &id, sizeof(id));
	return rogue;
}

static void be_rogue(struct rank *rank, const struct manner *manner)
{
	struct rogue rogue = rogue_of(rank);
	struct comm_address address;

	address = arrive(&rogue, manner->size);
	if (!manner->act)
		return;
	connect_to_rank(&rogue, &address);
	manner->act(&rogue);
	/* Rank 0 shall notice by what was sent, not by the end of this process. */
	if (rogue.control >= 0)
		usleep(MOMENT_US);
}

static void be_betrayed(struct rank *rank, const struct manner *manner)
{
	const spyre_comm_config config = { .struct_size = sizeof(config), .timeout_ms = LIMIT_MS };
	struct rank_holdings before;
	spyre_status status;
	struct calls calls;
	spyre_comm_id id;

	calls_open(&calls, rank, SIZE);
	before = ranks_warm_up(rank);
	ranks_get_id(0, true, &id);
	/* The root believes the first rank that arrives. */
	if (!manner->act)
		usleep(MOMENT_US);
	status = spyre_comm_init_rank(rank->context, SIZE, &id, 0, &config, &rank->comm);
	while (!status) {
		status = calls_queue(&calls, CALL_ALL_REDUCE, rank->comm, 0);
		if (!status)
			status = spyre_stream_synchronize(rank->stream);
	}
	rank_check(status == SPYRE_ERROR_REMOTE || status == SPYRE_ERROR_ARGUMENT_MISMATCH ||
		   (!manner->act && status == SPYRE_ERROR_INVALID_ARGUMENT), "%s: %s: %s",
		   manner->name, spyre_status_name(status), spyre_last_error());
	rank_check(strstr(spyre_last_error(), "rank 1") &&
		   strstr(spyre_last_error(), manner->text), "%s: \"%s\" does not mention \"%s\"",
		   manner->name, spyre_last_error(), manner->text);
	rank_ok(spyre_context_reset(rank->context));
	rank_ok(spyre_comm_destroy(rank->comm));
	rank->comm = NULL;
	ranks_check_holdings(&before);
	calls_close(&calls);
}

static void meet(struct rank *rank)
{
	const struct manner *manner = rank->argument;

	if (rank->rank)
		be_rogue(rank, manner);
	else
		be_betrayed(rank, manner);
}

static void work(struct rank *rank)
{
	const struct call_members all = call_members(SIZE, SIZE);
	struct calls calls;

	calls_open(&calls, rank, SIZE);
	rank_ok(calls_queue(&calls, CALL_ALL_REDUCE, rank->comm, 0));
	rank_ok(spyre_stream_synchronize(rank->stream));
	calls_check(&calls, CALL_ALL_REDUCE, &all, 0);
	calls_close(&calls);
}

START_TEST(test_rogue)
{
	const struct manner *manner = &manners[_i];
	int codes[SIZE];

	ranks_spawn(SIZE, meet, manner, codes);
	for (int i = 0; i < SIZE; i++)
		ck_assert_msg(!codes[i], "%s: rank %d ended with %d", manner->name, i, codes[i]);
	ranks_run(RANKS_AS_PROCESSES, SIZE, work, NULL);
}
END_TEST

/* Ends as ranks 0 and 1 of 3, before they listen or when rank 2 has connected to both of them. */
static void end_as_two(struct rank *rank, bool listens)
{
	struct rogue rogue = rogue_of(rank);
	struct pollfd listener = { .events = POLLIN };
	struct comm_answer answer;
	char name[64] = "";
	int fd[2];

	for (uint32_t i = 0; i < 2; i++) {
		if (listens) {
			snprintf(name, sizeof(name), "spyre-rogue-%d-%u", getpid(), i);
			rank_ok(comm_listen_unix(name, &listener.fd));
		}
		fd[i] = say_hello(&rogue, i, 3, name);
	}
	/* The answer, or the end of rank 2, which has had its own. */
	comm_recv_all(fd[0], &answer, sizeof(answer), rogue.deadline_ns);
	if (!listens)
		return;
	rank_check(poll(&listener, 1, LIMIT_MS) == 1, "rank 2 does not connect");
	/* It also passes its segment, and waits for that of rank 0. */
	usleep(200000);
}

/*
 * Ranks 0 and 1 of 3 end before they accept rank 2. Rank 0 may have given up because of rank 1
 * and cannot tell rank 2, which therefore names both.
 */
static void end_before_all(struct rank *rank)
{
	const spyre_comm_config config = { .struct_size = sizeof(config), .timeout_ms = LIMIT_MS };
	spyre_status status;
	spyre_comm_id id;

	if (rank->rank) {
		end_as_two(rank, *(const bool *)rank->argument);
		return;
	}
	ranks_get_id(0, true, &id);
	status = spyre_comm_init_rank(rank->context, 3, &id, 2, &config, &rank->comm);
	rank_check(status == SPYRE_ERROR_REMOTE && strstr(spyre_last_error(), "rank 0 (process ") &&
		   strstr(spyre_last_error(), "rank 1 (process "), "%s: %s",
		   spyre_status_name(status), spyre_last_error());
}

START_TEST(test_end_before_all)
{
	const bool listens = _i;
	int codes[SIZE];

	ranks_spawn(SIZE, end_before_all, &listens, codes);
	for (int i = 0; i < SIZE; i++)
		ck_assert_msg(!codes[i], "process %d ended with %d", i, codes[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("comm_rogue");
	TCase *tcase = tcase_create("rogue");

	setenv("SPYRE_EMBEDDED_CARDS", "2", 0);
	setenv("SPYRE_COMM_CHUNK_KIB", CHUNK_KIB, 1);
	unsetenv("SPYRE_COMM_TRANSPORT");
	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, test_rogue, 0, MANNERS);
	tcase_add_loop_test(tcase, test_end_before_all, 0, 2);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
