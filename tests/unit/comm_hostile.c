/* SPDX-License-Identifier: MIT */
/*
 * Strangers at the sockets of a communicator. Everybody can find them in /proc/net: those of the
 * root, of ranks that wait for others, and of libfabric. Ranks join meanwhile, and get the right
 * numbers.
 */
#include "config.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "comm_calls.h"
#include "libspyre/comm/address.h"

#define SIZE 3
/* Far less than the strangers could waste if ranks waited for one after the other: 60 x 2 s. */
#define LIMIT_MS 60000
#define MOMENT_US 300000
#define MAX_SOCKETS 16
/* Below the usual limit of open files. */
#define MAX_STRANGERS 900

enum manner {
	/* Sends nothing. */
	MANNER_SILENT,
	MANNER_GARBAGE,
	/* Lengths that are as large as possible. */
	MANNER_HUGE,
	/* Sends a part of a message, and no more. */
	MANNER_HALF_CLOSED,
	/* The messages of ranks, with another key. */
	MANNER_WRONG_KEY,
	MANNER_RESET,
	MANNERS,
};

/* Memory of all processes of a test. */
struct board {
	_Atomic int pid[SIZE];
};

struct target {
	int family;
	union {
		struct sockaddr any;
		struct sockaddr_in tcp;
		struct sockaddr_un local;
	} address;
	socklen_t bytes;
};

struct targets {
	struct target all[MAX_SOCKETS];
	uint32_t count;
};

/* True if process @pid has the socket with this inode open. */
static bool owns(int pid, unsigned long inode)
{
	char folder[64], path[320], link[64], want[64];
	struct dirent *entry;
	bool found = false;
	DIR *files;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", pid);
	snprintf(want, sizeof(want), "socket:[%lu]", inode);
	files = opendir(folder);
	while (files && !found && (entry = readdir(files))) {
		ssize_t n;

		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		n = readlink(path, link, sizeof(link) - 1);
		link[n < 0 ? 0 : n] = 0;
		found = !strcmp(link, want);
	}
	if (files)
		closedir(files);
	return found;
}

static void add_tcp(struct targets *targets, int pid)
{
	FILE *file = fopen("/proc/net/tcp", "r");
	unsigned int address, port, state;
	unsigned long inode;
	char line[256];

	while (file && targets->count < MAX_SOCKETS && fgets(line, sizeof(line), file)) {
		struct target *target = &targets->all[targets->count];

		if (sscanf(line, "%*d: %x:%x %*x:%*x %x %*s %*s %*s %*s %*s %lu", &address, &port,
			   &state, &inode) != 4 || state != 10 || !owns(pid, inode))
			continue;
		*target = (struct target){
			.family = AF_INET, .bytes = sizeof(target->address.tcp),
		};
		target->address.tcp.sin_family = AF_INET;
		target->address.tcp.sin_addr.s_addr = address ? address : htonl(INADDR_LOOPBACK);
		target->address.tcp.sin_port = htons((uint16_t)port);
		targets->count++;
	}
	if (file)
		fclose(file);
}

static void add_local(struct targets *targets, int pid)
{
	FILE *file = fopen("/proc/net/unix", "r");
	char line[256], name[101];
	unsigned int flags;
	unsigned long inode;

	while (file && targets->count < MAX_SOCKETS && fgets(line, sizeof(line), file)) {
		struct target *target = &targets->all[targets->count];
		struct sockaddr_un *address = &target->address.local;

		/* Of sockets that listen, and have abstract names. */
		if (sscanf(line, "%*s %*s %*s %x %*s %*s %lu @%100s", &flags, &inode, name) != 3 ||
		    flags != 0x10000 || !owns(pid, inode))
			continue;
		*target = (struct target){ .family = AF_UNIX };
		address->sun_family = AF_UNIX;
		memcpy(address->sun_path + 1, name, strlen(name));
		target->bytes = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name);
		targets->count++;
	}
	if (file)
		fclose(file);
}

/* All sockets of the other ranks that listen. */
static struct targets find_targets(const struct board *board, uint32_t own)
{
	struct targets targets = { 0 };

	for (uint32_t i = 0; i < SIZE; i++) {
		if (i == own)
			continue;
		add_tcp(&targets, board->pid[i]);
		add_local(&targets, board->pid[i]);
	}
	return targets;
}

static void say(int fd, const void *data, size_t bytes)
{
	send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void misbehave(int fd, enum manner manner, uint64_t *random)
{
	const struct linger reset = { .l_onoff = 1 };
	struct comm_hello hello = {
		.magic = COMM_MAGIC, .version = COMM_VERSION, .size = SIZE, .timeout_ms = 1,
	};
	const struct comm_greeting greeting = { .magic = COMM_MAGIC, .rank = SIZE - 1 };
	uint8_t bytes[4096];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = manner == MANNER_HUGE ? 0xff : (uint8_t)random_next(random);
	if (manner == MANNER_GARBAGE || manner == MANNER_HUGE)
		say(fd, bytes, sizeof(bytes));
	if (manner == MANNER_HALF_CLOSED) {
		say(fd, &greeting, sizeof(greeting) / 2);
		shutdown(fd, SHUT_WR);
	}
	if (manner == MANNER_WRONG_KEY && random_next(random) % 2)
		say(fd, &hello, sizeof(hello));
	else if (manner == MANNER_WRONG_KEY)
		say(fd, &greeting, sizeof(greeting));
	if (manner == MANNER_RESET)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

struct strangers {
	int fds[MAX_STRANGERS];
	uint32_t count;
	uint64_t random;
};

/* @each connections to each target, which stay open but for those that are reset. */
static void send_strangers(struct strangers *strangers, const struct targets *targets,
			   uint32_t each)
{
	for (uint32_t i = 0; i < targets->count * each; i++) {
		const struct target *target = &targets->all[i % targets->count];
		const enum manner manner = (enum manner)(i / targets->count % MANNERS);
		int fd = socket(target->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		rank_check(fd >= 0, "no socket");
		if (strangers->count < MAX_STRANGERS &&
		    (!connect(fd, &target->address.any, target->bytes) || errno == EINPROGRESS)) {
			misbehave(fd, manner, &strangers->random);
			strangers->fds[strangers->count++] = fd;
			if (manner != MANNER_RESET)
				continue;
			strangers->count--;
		}
		close(fd);
	}
}

static void close_strangers(struct strangers *strangers)
{
	while (strangers->count)
		close(strangers->fds[--strangers->count]);
}

/* Rank 2 knows the sockets of the others, which wait for it, and attacks them before it joins. */
static void be_attacked(struct rank *rank)
{
	const struct call_members all = call_members(SIZE, SIZE);
	struct board *board = (struct board *)rank->argument;
	static struct strangers strangers = { .random = 1 };
	struct targets targets;
	struct calls calls;

	calls_open(&calls, rank, SIZE);
	board->pid[rank->rank] = getpid();
	if (rank->rank == SIZE - 1) {
		do {
			usleep(MOMENT_US);
			targets = find_targets(board, rank->rank);
		} while (targets.count < SIZE);
		send_strangers(&strangers, &targets, 60);
		usleep(MOMENT_US);
	}
	rank_ok(ranks_join(rank, LIMIT_MS));
	for (enum call_kind kind = CALL_ALL_REDUCE; kind <= CALL_BARRIER; kind++) {
		calls_clear(&calls);
		if (rank->rank == SIZE - 1) {
			close_strangers(&strangers);
			targets = find_targets(board, rank->rank);
			send_strangers(&strangers, &targets, 12);
		}
		rank_ok(calls_queue(&calls, kind, rank->comm, 0));
		rank_ok(spyre_stream_synchronize(rank->stream));
		calls_check(&calls, kind, &all, 0);
	}
	close_strangers(&strangers);
	calls_close(&calls);
}

static const char *const transports[] = {
	"auto",
#ifdef HAVE_LIBFABRIC
	"tcp",
#endif
};

#define TRANSPORTS ((int)(sizeof(transports) / sizeof(transports[0])))

START_TEST(test_strangers)
{
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int codes[SIZE];

	ck_assert_ptr_ne(board, MAP_FAILED);
	setenv("SPYRE_COMM_TRANSPORT", transports[_i], 1);
	ranks_spawn(SIZE, be_attacked, board, codes);
	for (int i = 0; i < SIZE; i++)
		ck_assert_msg(!codes[i], "%s: rank %d ended with %d", transports[_i], i, codes[i]);
	unsetenv("SPYRE_COMM_TRANSPORT");
	munmap(board, sizeof(*board));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("comm_hostile");
	TCase *tcase = tcase_create("hostile");

	setenv("SPYRE_EMBEDDED_CARDS", "3", 0);
	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, test_strangers, 0, TRANSPORTS);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
