/* SPDX-License-Identifier: MIT */
/* Runs spyre-smi top on a terminal: keys, sizes, signals, cards that go away. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libspyre/telemetry/page.h"
#include "runtime_check.h"
#include "tests/unit/fake_cards.h"
#include "tests/unit/terminal.h"

#define VT100_UP "\033OA"
#define VT100_DOWN "\033OB"
#define NOBODY 65534

static struct terminal terminal;
static char pages[128];
static pid_t children[2];

static void setup(void)
{
	fake_begin();
	snprintf(pages, sizeof(pages), "%s/pages", fake_root());
	ck_assert_int_eq(mkdir(pages, 0755), 0);
	ck_assert_int_eq(chmod(fake_root(), 0755), 0);
	setenv("SPYRE_TELEMETRY_DIR", pages, 1);
	setenv("LC_ALL", "C", 1);
	unsetenv("SPYRE_DEVICES");
	unsetenv("NO_COLOR");
	fake_file("/proc/uptime", "1\n");
}

static void teardown(void)
{
	for (int i = 0; i < 2; i++) {
		if (children[i] > 0 && !kill(children[i], SIGKILL))
			waitpid(children[i], NULL, 0);
		children[i] = 0;
	}
	fake_end();
}

/* Starts top with options that end with a NULL. */
static void top(const char *type, uid_t uid, int lines, int columns, const char *option,
		const char *value)
{
	const char *build = getenv("SPYRE_BUILDDIR");
	char program[1024];
	const char *const argv[] = { program, "top", "-d", "0.05", option, value, NULL };

	snprintf(program, sizeof(program), "%s/tools/spyre-smi", build ? build : ".");
	terminal_run(&terminal, argv, type, uid, lines, columns);
}

static void quit(void)
{
	terminal_type(&terminal, "q");
	ck_assert_int_eq(terminal_end(&terminal), 0);
}

/* Process @pid with its name and memory on card 1, and a client for it. */
static void process(int pid, const char *name, unsigned long mib)
{
	fake_open_node(pid, name, 5, "/dev/zero", pid, mib << 10);
}

static void cards_and_processes(void)
{
	fake_card(0, 0, "/dev/null");
	fake_card(1, 1, "/dev/zero");
	process(4242, "alpha", 300);
	process(4243, "gamma", 100);
	process(4244, "beta", 200);
}

/* True if a sequence ESC [ 3 DIGIT m, or one with more numbers, sets a colour. */
static bool has_colors(void)
{
	const char *at = terminal.raw;
	int color, end;

	while ((at = strstr(at, "\033["))) {
		at += 2;
		while (sscanf(at, "%d%n", &color, &end) == 1) {
			at += end;
			if (color >= 30 && color <= 37 && at[strspn(at, "0123456789;")] == 'm')
				return true;
			at += *at == ';';
		}
	}
	return false;
}

START_TEST(screen)
{
	const char *line;

	cards_and_processes();
	top("vt100", getuid(), 40, 120, NULL, NULL);
	terminal_wait(&terminal, "cards 2  processes 3  every 0.05 s  sort: busy%, descending");
	line = terminal_wait(&terminal, "spyre_vdev.1");
	ck_assert_ptr_nonnull(strstr(line, "1500 MHz"));
	/* Rates need two readings: unknown at first, then that of an idle card. */
	line = terminal_wait(&terminal, "busy [");
	ck_assert_ptr_nonnull(strstr(line, "pt   ["));
	ck_assert_ptr_nonnull(strstr(line, "3072MiB/16.0GiB]"));
	terminal_wait(&terminal, " 0.0%]");
	ck_assert_ptr_nonnull(strstr(terminal.raw, "pwr  ["));
	terminal_wait(&terminal, "31.2W/");
	terminal_wait(&terminal, "41.5C]");
	terminal_wait(&terminal, "0.000GB/s]");
	line = terminal_wait(&terminal, "card      pid      user");
	ck_assert_ptr_nonnull(strstr(line, "command"));
	ck_assert_ptr_nonnull(strstr(terminal_wait(&terminal, "4243"), "100"));
	ck_assert_ptr_nonnull(strstr(terminal_wait(&terminal, "4243"), "gamma"));
	/* A vt100 has no colours, and the C locale no blocks. */
	ck_assert(!has_colors());
	ck_assert_ptr_null(strchr(terminal.raw, '\xe2'));
	terminal_type(&terminal, "h");
	terminal_wait(&terminal, "Up, Down, PgUp");
	terminal_type(&terminal, "x");
	terminal_wait_gone(&terminal, "Up, Down, PgUp");
	quit();
}
END_TEST

static void check_order(const char *first, const char *second, const char *third)
{
	terminal_wait_order(&terminal, (const char *const[]){ first, second, third });
}

START_TEST(sort)
{
	cards_and_processes();
	top("vt100", getuid(), 40, 120, NULL, NULL);
	terminal_wait(&terminal, "processes 3  ");
	terminal_type(&terminal, "M");
	terminal_wait(&terminal, "sort: MiB, descending");
	terminal_wait(&terminal, "gamma");
	check_order("alpha", "beta", "gamma");
	terminal_type(&terminal, "r");
	terminal_wait(&terminal, "sort: MiB, ascending");
	check_order("gamma", "beta", "alpha");
	terminal_type(&terminal, "N");
	terminal_wait(&terminal, "sort: pid, ascending");
	check_order("4242", "4243", "4244");
	/* The same key again reverses the order. */
	terminal_type(&terminal, "N");
	terminal_wait(&terminal, "sort: pid, descending");
	check_order("4244", "4243", "4242");
	terminal_type(&terminal, "<");
	terminal_wait(&terminal, "sort: card, ascending");
	terminal_type(&terminal, "<");
	terminal_wait(&terminal, "sort: command, ascending");
	check_order("alpha", "beta", "gamma");
	terminal_type(&terminal, ">");
	terminal_wait(&terminal, "sort: card, ascending");
	quit();
}
END_TEST

START_TEST(sizes)
{
	const char *line;

	cards_and_processes();
	top("vt100", getuid(), 24, 80, NULL, NULL);
	line = terminal_wait(&terminal, "card      pid");
	ck_assert_ptr_null(strstr(line, "rxpci"));
	ck_assert_ptr_nonnull(strstr(line, "command"));
	terminal_resize(&terminal, 50, 160);
	line = terminal_wait(&terminal, "rxpci");
	ck_assert_ptr_nonnull(strstr(line, "jobs/s"));
	/* All metrics of a card are in one line now. */
	line = terminal_wait(&terminal, "busy [");
	ck_assert_ptr_nonnull(strstr(line, "temp ["));
	/* Few lines: a part of the cards, and keys for the others. */
	terminal_resize(&terminal, 10, 60);
	terminal_wait(&terminal, "cards 1 to 1 of 2");
	terminal_type(&terminal, "]");
	terminal_wait(&terminal, "cards 2 to 2 of 2");
	terminal_wait(&terminal, "spyre_vdev.1");
	terminal_resize(&terminal, 1, 1);
	terminal_type(&terminal, "h");
	terminal_resize(&terminal, 3, 7);
	terminal_type(&terminal, "x");
	terminal_resize(&terminal, 24, 80);
	terminal_wait(&terminal, "processes 3  ");
	quit();
}
END_TEST

/* The selection stays with its process, and the table scrolls to it. */
START_TEST(selection)
{
	char name[16];

	fake_card(1, 1, "/dev/zero");
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "name%02d", i);
		process(5000 + i, name, 100 + i);
	}
	top("vt100", getuid(), 24, 120, NULL, NULL);
	terminal_wait(&terminal, "name00");
	terminal_type(&terminal, "N");
	terminal_wait(&terminal, "sort: pid, ascending");
	ck_assert_ptr_null(terminal_find(&terminal, "name39"));
	terminal_type(&terminal, VT100_DOWN "n");
	terminal_wait(&terminal, "sort: command, ascending");
	terminal_type(&terminal, "n");
	terminal_wait(&terminal, "sort: command, descending");
	/* name01 is near the end now. */
	terminal_wait(&terminal, "name01");
	ck_assert_ptr_null(terminal_find(&terminal, "name39"));
	terminal_type(&terminal, VT100_UP VT100_UP);
	terminal_wait(&terminal, "name02");
	quit();
}
END_TEST

START_TEST(card_goes_away)
{
	cards_and_processes();
	top("vt100", getuid(), 40, 120, NULL, NULL);
	terminal_wait(&terminal, "cards 2  ");
	fake_remove("/sys/class/accel/accel1");
	terminal_wait(&terminal, "card spyre_vdev.1 is gone");
	terminal_wait(&terminal, "cards 1  processes 0");
	fake_remove("/sys/class/accel/accel0");
	terminal_wait(&terminal, "No card found: waiting");
	terminal_type(&terminal, "k");
	terminal_wait(&terminal, "cannot send a signal: no process uses a card");
	fake_card(0, 0, "/dev/null");
	terminal_wait(&terminal, "cards 1  ");
	terminal_wait_gone(&terminal, "No card found");
	quit();
	/* A card of -i has to be there at the start, but not later. */
	top("vt100", getuid(), 24, 80, "-i", "0");
	terminal_wait(&terminal, "cards 1  ");
	fake_card(1, 1, "/dev/zero");
	fake_remove("/sys/class/accel/accel0");
	terminal_wait(&terminal, "spyre_vdev.0 is gone");
	quit();
	top("vt100", getuid(), 24, 80, "-i", "7");
	ck_assert_int_eq(WEXITSTATUS(terminal_end(&terminal)), 6);
	ck_assert_ptr_nonnull(strstr(terminal.raw, "cannot find card '7'"));
}
END_TEST

/* Processes of another system are shown, but their numbers mean nothing here. */
START_TEST(no_signal_to_another_system)
{
	cards_and_processes();
	top("vt100", getuid(), 24, 120, NULL, NULL);
	terminal_wait(&terminal, "4242");
	terminal_type(&terminal, "k");
	terminal_wait(&terminal, "cannot send a signal to process 4242 (alpha): SPYRE_FSROOT is set");
	quit();
}
END_TEST

/* A process with an embedded card, which waits for a signal. */
static pid_t start_child(void)
{
	int opened[2];
	char byte;
	pid_t pid;

	unsetenv("SPYRE_FSROOT");
	setenv("SPYRE_BACKEND", "embedded", 1);
	ck_assert_int_eq(pipe(opened), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		/* Check's handler would end the test as well. */
		signal(SIGTERM, SIG_DFL);
		open_card();
		if (write(opened[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(opened[1]);
	ck_assert_int_eq(read(opened[0], &byte, 1), 1);
	close(opened[0]);
	return pid;
}

START_TEST(signal_to_a_process)
{
	char text[64];
	int status, last;

	children[0] = start_child();
	children[1] = start_child();
	last = children[1] > children[0];
	snprintf(text, sizeof(text), "process %d", children[last]);
	top("vt100", getuid(), 30, 100, NULL, NULL);
	terminal_wait(&terminal, "processes 2  ");
	terminal_type(&terminal, "N" VT100_DOWN "k");
	terminal_wait(&terminal, "15 SIGTERM");
	terminal_type(&terminal, "\033");
	terminal_wait_gone(&terminal, "15 SIGTERM");
	terminal_type(&terminal, "k");
	terminal_wait(&terminal, "> 15 SIGTERM");
	terminal_type(&terminal, VT100_DOWN VT100_DOWN);
	terminal_wait(&terminal, ">  9 SIGKILL");
	terminal_type(&terminal, "\r");
	terminal_wait(&terminal, "Send SIGKILL to");
	terminal_wait(&terminal, text);
	/* Anything but y is no. */
	terminal_type(&terminal, "n");
	terminal_wait(&terminal, "sent nothing to process");
	terminal_type(&terminal, "k\ry");
	terminal_wait(&terminal, "sent SIGTERM to process");
	ck_assert_int_eq(waitpid(children[last], &status, 0), children[last]);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	children[last] = 0;
	terminal_wait(&terminal, "processes 1  ");
	ck_assert_int_eq(waitpid(children[!last], &status, WNOHANG), 0);
	quit();
}
END_TEST

/* The process ends between the choice of a signal and the answer. */
START_TEST(signal_comes_too_late)
{
	children[0] = start_child();
	top("vt100", getuid(), 30, 100, NULL, NULL);
	terminal_wait(&terminal, "processes 1  ");
	terminal_type(&terminal, "k\r");
	terminal_wait(&terminal, "Send SIGTERM to");
	ck_assert_int_eq(kill(children[0], SIGKILL), 0);
	ck_assert_int_eq(waitpid(children[0], NULL, 0), children[0]);
	children[0] = 0;
	terminal_type(&terminal, "y");
	terminal_wait(&terminal, "cannot send SIGTERM to process");
	terminal_wait(&terminal, "it has ended");
	quit();
}
END_TEST

/* Gives the page of the card of @pid, which is root's, to another user, who may not signal @pid. */
static void give_page_away(pid_t pid)
{
	const uint32_t uid = NOBODY;
	char from[256], to[192];
	int fd;

	snprintf(from, sizeof(from), "%s/spyre-0", pages);
	snprintf(to, sizeof(to), "%s/spyre-%d", pages, NOBODY);
	ck_assert_int_eq(rename(from, to), 0);
	ck_assert_int_eq(chown(to, NOBODY, NOBODY), 0);
	snprintf(from, sizeof(from), "%s/%d.0.0", to, pid);
	fd = open(from, O_WRONLY);
	ck_assert_msg(fd >= 0, "%s: %s", from, strerror(errno));
	ck_assert_int_eq(pwrite(fd, &uid, sizeof(uid), offsetof(struct spyre_telemetry_page, uid)),
			 sizeof(uid));
	ck_assert_int_eq(fchown(fd, NOBODY, NOBODY), 0);
	close(fd);
}

START_TEST(signal_without_permission)
{
	if (getuid())
		return;		/* only root can make a process of another user */
	children[0] = start_child();
	give_page_away(children[0]);
	top("vt100", NOBODY, 30, 120, NULL, NULL);
	terminal_wait(&terminal, "processes 1  ");
	terminal_type(&terminal, "k");
	terminal_wait(&terminal, "it belongs to another user; run spyre-smi as that user or as root");
	quit();
}
END_TEST

START_TEST(colors_and_blocks)
{
	cards_and_processes();
	setenv("LC_ALL", "C.UTF-8", 1);
	top("ansi", getuid(), 40, 120, "-c", "3");
	ck_assert_int_eq(terminal_end(&terminal), 0);
	ck_assert(has_colors());
	ck_assert_ptr_nonnull(strchr(terminal.raw, '\xe2'));
	setenv("NO_COLOR", "1", 1);
	top("ansi", getuid(), 40, 120, "-c", "3");
	ck_assert_int_eq(terminal_end(&terminal), 0);
	ck_assert(!has_colors());
	unsetenv("NO_COLOR");
}
END_TEST

START_TEST(unfit_terminals)
{
	cards_and_processes();
	top("dumb", getuid(), 24, 80, NULL, NULL);
	ck_assert_int_eq(WEXITSTATUS(terminal_end(&terminal)), 2);
	ck_assert_ptr_nonnull(strstr(terminal.raw, "type 'dumb': it cannot move its cursor"));
	top("no-such-terminal", getuid(), 24, 80, NULL, NULL);
	ck_assert_int_eq(WEXITSTATUS(terminal_end(&terminal)), 2);
	ck_assert_ptr_nonnull(strstr(terminal.raw, "it is not in the terminfo database"));
	top("", getuid(), 24, 80, NULL, NULL);
	ck_assert_int_eq(WEXITSTATUS(terminal_end(&terminal)), 2);
	ck_assert_ptr_nonnull(strstr(terminal.raw, "TERM is not set"));
}
END_TEST

/* Signals and a terminal that goes away end it as a key does. */
START_TEST(ends)
{
	int status;

	cards_and_processes();
	top("vt100", getuid(), 24, 80, NULL, NULL);
	terminal_wait(&terminal, "processes 3  ");
	terminal_type(&terminal, "\003");
	ck_assert_int_eq(terminal_end(&terminal), 0);
	top("vt100", getuid(), 24, 80, NULL, NULL);
	terminal_wait(&terminal, "processes 3  ");
	ck_assert_int_eq(kill(terminal.pid, SIGTERM), 0);
	ck_assert_int_eq(terminal_end(&terminal), 0);
	top("vt100", getuid(), 24, 80, NULL, NULL);
	terminal_wait(&terminal, "processes 3  ");
	close(terminal.fd);
	ck_assert_int_eq(waitpid(terminal.pid, &status, 0), terminal.pid);
	ck_assert_int_eq(status, 0);
	/* Without a card it waits; a limited one then says that there was none. */
	fake_remove("/sys/class/accel");
	top("vt100", getuid(), 24, 80, "-c", "2");
	ck_assert_int_eq(WEXITSTATUS(terminal_end(&terminal)), 9);
	ck_assert_ptr_nonnull(strstr(terminal.raw, "cannot find a Spyre card"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("smi_top");
	TCase *tcase = tcase_create("smi_top");

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, screen);
	tcase_add_test(tcase, sort);
	tcase_add_test(tcase, sizes);
	tcase_add_test(tcase, selection);
	tcase_add_test(tcase, card_goes_away);
	tcase_add_test(tcase, no_signal_to_another_system);
	tcase_add_test(tcase, signal_to_a_process);
	tcase_add_test(tcase, signal_comes_too_late);
	tcase_add_test(tcase, signal_without_permission);
	tcase_add_test(tcase, colors_and_blocks);
	tcase_add_test(tcase, unfit_terminals);
	tcase_add_test(tcase, ends);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
