/* SPDX-License-Identifier: MIT */
/* spyre-exporter as its clients see it: pages, and clients that are slow, wrong or many. */
#include "config.h"
#include "suite.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/fake_cards.h"

#define MAX_CLIENTS 4

static pid_t exporter;
static int port;
static bool unprivileged;	/* the exporter runs as another user than root */
static char answer[8 << 20];

/* Labels that the exporter adds; NULL: none. */
static const char *added[2];

/* Starts the exporter on a free port of 127.0.0.1. */
static void start(const char *timeout)
{
	const char *build = getenv("SPYRE_BUILDDIR");
	char program[512], limit[64], line[128] = "";
	int out[2];
	FILE *file;

	snprintf(program, sizeof(program), "%s/tools/spyre-exporter", build ? build : ".");
	snprintf(limit, sizeof(limit), "--timeout=%s", timeout);
	ck_assert_int_eq(pipe(out), 0);
	exporter = fork();
	if (!exporter) {
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		if (unprivileged && setuid(65534) && !geteuid())
			_exit(126);
		execl(program, program, "--listen=:0", "--max-clients=4", limit, added[0], added[1],
		      (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	file = fdopen(out[0], "r");
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
	fclose(file);
	ck_assert_int_eq(sscanf(line, "listening on http://127.0.0.1:%d/metrics", &port), 1);
}

static void setup(void)
{
	char pages[128];

	fake_begin();
	snprintf(pages, sizeof(pages), "%s/pages", fake_root());
	setenv("SPYRE_TELEMETRY_DIR", pages, 1);
	fake_file("/proc/uptime", "1\n");
	fake_card(0, 0, "/dev/null");
	fake_card(1, 1, "/dev/zero");
	fake_open_node(4242, "a\\b\"c", 5, "/dev/zero", 7, 437 << 10);
}

/* Ends the exporter, which must still be there and end by itself. */
static void stop(void)
{
	int status;

	ck_assert_int_eq(waitpid(exporter, &status, WNOHANG), 0);
	ck_assert_int_eq(kill(exporter, SIGTERM), 0);
	ck_assert_int_eq(waitpid(exporter, &status, 0), exporter);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Connects; with @small, the exporter can send only little before the answer is read. */
static int connect_small(bool small)
{
	const int window = 2048, segment = 512;
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval limit = { .tv_sec = 60 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_ge(fd, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (small) {
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof(window));
		setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment));
	}
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static int try_connect(void)
{
	return connect_small(false);
}

static void send_all(int fd, const char *bytes, size_t count)
{
	ssize_t sent;

	for (; count; bytes += sent, count -= (size_t)sent) {
		sent = send(fd, bytes, count, MSG_NOSIGNAL);
		/* The exporter may have answered and closed before it has read everything. */
		if (sent < 0)
			return;
	}
}

/* Reads until the exporter closes, and closes; returns the status, 0: no answer. */
static int finish(int fd)
{
	size_t used = 0;
	ssize_t got;
	int status = 0;

	while ((got = recv(fd, answer + used, sizeof(answer) - 1 - used, 0)) > 0)
		used += (size_t)got;
	ck_assert_msg(got == 0 || errno == ECONNRESET, "recv: %s", strerror(errno));
	answer[used] = '\0';
	close(fd);
	sscanf(answer, "HTTP/1.1 %d ", &status);
	return status;
}

static int ask(const char *request)
{
	int fd = try_connect();

	send_all(fd, request, strlen(request));
	return finish(fd);
}

static const char *body(void)
{
	const char *at = strstr(answer, "\r\n\r\n");

	ck_assert_ptr_nonnull(at);
	return at + 4;
}

static void works(void)
{
	ck_assert_int_eq(ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
	ck_assert_ptr_nonnull(strstr(body(), "\nspyre_cards 2\n"));
}

START_TEST(pages)
{
	unsigned long bytes;

	start("60");
	works();
	ck_assert_ptr_nonnull(strstr(answer, "Content-Type: text/plain; version=0.0.4"));
	ck_assert_int_eq(sscanf(strstr(answer, "Content-Length: "), "Content-Length: %lu", &bytes), 1);
	ck_assert_uint_eq(bytes, strlen(body()));
	ck_assert_ptr_nonnull(strstr(body(), "spyre_power_watts{card=\"1\",spyre=\"spyre_vdev.1\","
					     "type=\"pf\",uuid=\"0b5a9c3e-0000-4000-8000-000000000001\""
					     "} 31.25\n"));
	ck_assert_ptr_nonnull(strstr(body(), "spyre_rxpci_bytes{card=\"0\","));
	ck_assert_ptr_nonnull(strstr(body(), "} 5242880\n"));
	ck_assert_ptr_nonnull(strstr(body(), ",kind=\"escape\"} 3\n"));
	ck_assert_ptr_nonnull(strstr(body(), "spyre_energy_joules_total"));
	ck_assert_ptr_nonnull(strstr(body(), "} 123.456\n"));
	ck_assert_ptr_nonnull(strstr(body(), ",pid=\"4242\",process=\"a\\\\b\\\"c\"} 458227712\n"));
	ck_assert_int_eq(ask("GET / HTTP/1.0\n\n"), 200);
	ck_assert_ptr_nonnull(strstr(body(), "<a href=\"/metrics\">"));
	ck_assert_int_eq(ask("HEAD /metrics?x=y HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
	ck_assert_str_eq(body(), "");
	stop();
}
END_TEST

/* In the order given, in each sample of cards and processes and in the number of cards. */
START_TEST(labels)
{
	added[0] = "--label=pod=a\\b\"c";
	added[1] = "--label=node=n,1";
	start("60");
	ck_assert_int_eq(ask("GET /metrics HTTP/1.1\r\n\r\n"), 200);
	ck_assert_ptr_nonnull(strstr(body(), "\nspyre_cards{pod=\"a\\\\b\\\"c\",node=\"n,1\"} 2\n"));
	ck_assert_ptr_nonnull(strstr(body(), "0001\",pod=\"a\\\\b\\\"c\",node=\"n,1\"} 31.25\n"));
	ck_assert_ptr_nonnull(strstr(body(), ",node=\"n,1\",kind=\"escape\"} 3\n"));
	ck_assert_ptr_nonnull(strstr(body(), ",node=\"n,1\"} 458227712\n"));
	stop();
}
END_TEST

static const struct {
	const char *request;
	int status;
} wrong[] = {
	{ "GET /etc/passwd HTTP/1.1\r\n\r\n", 404 },
	{ "GET /metrics/../../etc/passwd HTTP/1.1\r\n\r\n", 404 },
	{ "GET //metrics HTTP/1.1\r\n\r\n", 404 },
	{ "POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405 },
	{ "DELETE / HTTP/1.1\r\n\r\n", 405 },
	{ "GET http://elsewhere/metrics HTTP/1.1\r\n\r\n", 200 },
	{ "GET HTTP://elsewhere HTTP/1.1\r\n\r\n", 200 },
	{ "GET http://elsewhere/etc/passwd HTTP/1.1\r\n\r\n", 404 },
	{ "GET http:/metrics HTTP/1.1\r\n\r\n", 400 },
	{ "GET ftp://elsewhere/metrics HTTP/1.1\r\n\r\n", 400 },
	{ "GET /metrics\r\n\r\n", 400 },
	{ "GET /metrics HTTP/2.0\r\n\r\n", 400 },
	{ "GET  HTTP/1.1\r\n\r\n", 400 },
	{ "GET /metrics HTTP/1.1 x\r\n\r\n", 400 },
	{ "\r\n\r\n", 400 },
	{ "\n\n", 400 },
	{ " \n\n", 400 },
	{ "\x16\x03\x01\x02", 400 },	/* the start of TLS */
	{ "GET /\x01 HTTP/1.1\r\n\r\n", 400 },
};

START_TEST(wrong_requests)
{
	start("60");
	ck_assert_msg(ask(wrong[_i].request) == wrong[_i].status, "request %d: %s", _i, answer);
	works();
	stop();
}
END_TEST

START_TEST(large_requests)
{
	static char many[1 << 20];
	int fd;

	start("60");
	memset(many, 'a', sizeof(many));
	memcpy(many, "GET /metrics HTTP/1.1\r\nX: ", 26);
	fd = try_connect();
	send_all(fd, many, 8192);
	ck_assert_int_eq(finish(fd), 431);
	/* The rest is never read: no answer, or the same. */
	fd = try_connect();
	send_all(fd, many, sizeof(many));
	fd = finish(fd);
	ck_assert(fd == 431 || fd == 0);
	works();
	stop();
}
END_TEST

/* Random bytes, in random parts, cut off anywhere. */
START_TEST(random_requests)
{
	static const char start_of[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
	uint64_t state = 88172645463325252ull;
	char bytes[512];

	start("60");
	for (int i = 0; i < 300; i++) {
		int fd = try_connect(), length = (int)(state % sizeof(bytes));

		for (int j = 0; j < length; j++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			bytes[j] = state & 1 && j < (int)sizeof(start_of) - 1 ? start_of[j] :
				   (char)(state >> 8);
		}
		send_all(fd, bytes, (size_t)length);
		shutdown(fd, SHUT_WR);
		if (i % 3)
			finish(fd);
		else
			close(fd);
	}
	works();
	stop();
}
END_TEST

/* More idle clients than places: each newcomer takes the place of the oldest. */
START_TEST(idle_clients)
{
	int idle[4 * MAX_CLIENTS];

	start("3600");
	for (int i = 0; i < 4 * MAX_CLIENTS; i++) {
		idle[i] = try_connect();
		send_all(idle[i], "GET /met", 8);
	}
	for (int i = 0; i < 2 * MAX_CLIENTS; i++)
		works();
	ck_assert_int_eq(finish(idle[0]), 0);
	for (int i = 1; i < 4 * MAX_CLIENTS; i++)
		close(idle[i]);
	works();
	stop();
}
END_TEST

/* As many clients as there are places ask for an answer, and do not read it. */
START_TEST(clients_that_do_not_read)
{
	const char request[] = "GET /metrics HTTP/1.1\r\n\r\n";
	const struct timespec moment = { .tv_nsec = 100000000 };
	int deaf[MAX_CLIENTS];

	/* An answer that does not fit into the buffers of a connection. */
	for (int i = 0; i < 1000; i++)
		fake_open_node(5000 + i, "many", 5, "/dev/zero", 5000 + i, 1024);
	start("3600");
	works();
	for (int i = 0; i < MAX_CLIENTS; i++) {
		deaf[i] = connect_small(true);
		send_all(deaf[i], request, sizeof(request) - 1);
	}
	nanosleep(&moment, NULL);
	for (int i = 0; i < MAX_CLIENTS; i++)
		works();
	for (int i = 0; i < MAX_CLIENTS; i++)
		close(deaf[i]);
	stop();
}
END_TEST

/* A client that sends a byte at a time, or reads nothing, is dropped in the end. */
START_TEST(slow_clients)
{
	struct timespec pause = { .tv_nsec = 50000000 };
	int slow, deaf;
	char byte;

	start("1");
	deaf = try_connect();
	send_all(deaf, "GET /metrics HTTP/1.1\r\n", 23);
	slow = try_connect();
	while (send(slow, "x", 1, MSG_NOSIGNAL) == 1 &&
	       !(recv(slow, &byte, 1, MSG_DONTWAIT) == 0))
		nanosleep(&pause, NULL);
	close(slow);
	ck_assert_int_eq(finish(deaf), 0);
	works();
	stop();
}
END_TEST

/* Requests in parts of one byte are still requests. */
START_TEST(small_parts)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
	int fd, one = 1;

	start("60");
	fd = try_connect();
	setsockopt(fd, IPPROTO_TCP, 1, &one, sizeof(one));
	for (size_t i = 0; i < sizeof(request) - 1; i++)
		send_all(fd, request + i, 1);
	ck_assert_int_eq(finish(fd), 200);
	stop();
}
END_TEST

/* Clients cannot take the descriptors that reading the cards needs. */
START_TEST(few_descriptors)
{
	struct rlimit old, few;
	int idle[MAX_CLIENTS - 1];

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = 9;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	start("3600");
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	for (int i = 0; i < MAX_CLIENTS - 1; i++) {
		idle[i] = try_connect();
		send_all(idle[i], "GET /met", 8);
	}
	works();
	/* A connection that cannot be accepted yet is served once it can be; poll() needs five. */
	old.rlim_cur = 5;
	ck_assert_int_eq(prlimit(exporter, RLIMIT_NOFILE, &old, &few), 0);
	close(idle[0]);
	idle[0] = try_connect();
	send_all(idle[0], "GET / HTTP/1.1\r\n\r\n", 18);
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	ck_assert_int_eq(recv(idle[0], answer, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(prlimit(exporter, RLIMIT_NOFILE, &few, NULL), 0);
	ck_assert_int_eq(finish(idle[0]), 200);
	for (int i = 1; i < MAX_CLIENTS - 1; i++)
		close(idle[i]);
	stop();
}
END_TEST

static int occurrences(const char *text)
{
	int count = 0;

	for (const char *at = body(); (at = strstr(at, text)); at++)
		count++;
	return count;
}

START_TEST(a_thousand_processes)
{
	for (int i = 0; i < 1000; i++)
		fake_open_node(5000 + i, "many", 5, "/dev/zero", 5000 + i, 1024);
	start("60");
	works();
	ck_assert_int_eq(occurrences("\nspyre_process_memory_bytes{"), 1001);
	ck_assert_int_eq(occurrences("\nspyre_power_watts{"), 2);
	stop();
}
END_TEST

/* A card comes and goes while it is read: each page has it or not. */
START_TEST(a_card_that_goes_away)
{
	/* Requests share a page for half a second. */
	const struct timespec stale = { .tv_nsec = 600000000 };
	pid_t pid;

	start("60");
	pid = fork();
	for (; !pid;) {
		fake_remove("/sys/devices/platform/spyre_vdev.1");
		fake_remove("/sys/class/accel/accel1");
		fake_card(1, 1, "/dev/zero");
	}
	for (int i = 0; i < 6; i++) {
		nanosleep(&stale, NULL);
		ck_assert_int_eq(ask("GET /metrics HTTP/1.1\r\n\r\n"), 200);
		ck_assert_int_eq(occurrences("\nspyre_cards 2\n") +
				 occurrences("\nspyre_cards 1\n"), 1);
		ck_assert_ptr_nonnull(strstr(body(), "spyre_power_watts{card=\"0\","));
	}
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	fake_card(1, 1, "/dev/zero");
	nanosleep(&stale, NULL);
	works();
	stop();
}
END_TEST

/* Files that the exporter may not read are left out; the rest is there. */
START_TEST(reader_without_rights)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/sys/devices/platform/spyre_vdev.0/launches", fake_root());
	ck_assert_int_eq(chmod(path, 0), 0);
	snprintf(path, sizeof(path), "%s/proc/4242/fd", fake_root());
	ck_assert_int_eq(chmod(path, 0), 0);
	ck_assert_int_eq(chmod(fake_root(), 0755), 0);
	unprivileged = true;
	start("60");
	works();
	ck_assert_int_eq(occurrences("\nspyre_launches_total{card=\"0\""), 0);
	ck_assert_int_eq(occurrences("\nspyre_launches_total{card=\"1\""), 1);
	ck_assert_int_eq(occurrences("\nspyre_power_watts{"), 2);
	ck_assert_int_eq(occurrences("\nspyre_process_memory_bytes{"), 0);
	stop();
	snprintf(path, sizeof(path), "%s/proc/4242/fd", fake_root());
	ck_assert_int_eq(chmod(path, 0755), 0);
}
END_TEST

static int run(const char *arguments)
{
	const char *build = getenv("SPYRE_BUILDDIR");
	char command[512];
	int status;

	snprintf(command, sizeof(command), "timeout 60 '%s/tools/spyre-exporter' %s >/dev/null 2>&1",
		 build ? build : ".", arguments);
	status = system(command);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

START_TEST(too_few_descriptors)
{
	struct rlimit limit = { .rlim_cur = 90, .rlim_max = 90 };

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(run("--listen=:0 --max-clients=27"), 1);
}
END_TEST

START_TEST(arguments)
{
	char taken[64];

	ck_assert_int_eq(run("--listen=nonsense"), 1);
	ck_assert_int_eq(run("--listen=1.2.3.4:"), 1);
	ck_assert_int_eq(run("--listen=::1:80"), 1);
	ck_assert_int_eq(run("--max-clients=0"), 2);
	ck_assert_int_eq(run("--timeout=nan"), 2);
	ck_assert_int_eq(run("extra"), 2);
	ck_assert_int_eq(run("--nope"), 2);
	ck_assert_int_eq(run("--version"), 0);
	start("60");
	snprintf(taken, sizeof(taken), "--listen=127.0.0.1:%d", port);
	ck_assert_int_eq(run(taken), 1);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("exporter");
	TCase *tests = tcase_create("exporter");

	signal(SIGPIPE, SIG_IGN);
	tcase_add_checked_fixture(tests, setup, fake_end);
	tcase_set_timeout(tests, 300);
	tcase_add_test(tests, pages);
	tcase_add_test(tests, labels);
	tcase_add_loop_test(tests, wrong_requests, 0, sizeof(wrong) / sizeof(wrong[0]));
	tcase_add_test(tests, large_requests);
	tcase_add_test(tests, random_requests);
	tcase_add_test(tests, idle_clients);
	tcase_add_test(tests, clients_that_do_not_read);
	tcase_add_test(tests, slow_clients);
	tcase_add_test(tests, a_thousand_processes);
	tcase_add_test(tests, a_card_that_goes_away);
	tcase_add_test(tests, reader_without_rights);
	tcase_add_test(tests, small_parts);
	tcase_add_test(tests, few_descriptors);
	tcase_add_test(tests, too_few_descriptors);
	tcase_add_test(tests, arguments);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}
