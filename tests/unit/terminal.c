/* SPDX-License-Identifier: MIT */
/* A terminal for tests of full-screen programs. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/terminal.h"

/* Seconds before a wait fails, many times those of a slow machine. */
#define PATIENCE 60

static void clear_cells(struct terminal *t, int from_y, int from_x, int to_y, int to_x)
{
	int y, x;

	for (y = from_y; y <= to_y; y++)
		for (x = y == from_y ? from_x : 0; x <= (y == to_y ? to_x : t->columns - 1); x++)
			t->cells[y][x] = ' ';
}

/* A screen of this size; the text stays where it fits, as that of most terminals does. */
static void set_size(struct terminal *t, int lines, int columns)
{
	int y, x;

	ck_assert(lines > 0 && lines <= TERMINAL_LINES && columns > 0 &&
		  columns <= TERMINAL_COLUMNS);
	for (y = 0; y < TERMINAL_LINES; y++) {
		for (x = 0; x < TERMINAL_COLUMNS; x++)
			if (y >= lines || x >= columns || !t->cells[y][x])
				t->cells[y][x] = ' ';
		t->cells[y][columns] = '\0';
	}
	t->lines = lines;
	t->columns = columns;
	t->top = 0;
	t->bottom = lines - 1;
}

/* Moves the lines of the region by one, up if @by is 1 and down if it is -1. */
static void scroll(struct terminal *t, int by)
{
	const int height = t->bottom - t->top;

	if (by > 0)
		memmove(t->cells[t->top], t->cells[t->top + 1], height * sizeof(t->cells[0]));
	else
		memmove(t->cells[t->top + 1], t->cells[t->top], height * sizeof(t->cells[0]));
	memset(t->cells[by > 0 ? t->bottom : t->top], ' ', t->columns);
}

static void line_feed(struct terminal *t)
{
	if (t->y == t->bottom)
		scroll(t, 1);
	else if (t->y < t->lines - 1)
		t->y++;
}

static void put(struct terminal *t, char c)
{
	if (t->wrapped) {
		t->x = 0;
		line_feed(t);
	}
	t->wrapped = t->x == t->columns - 1;
	t->cells[t->y][t->x] = c;
	t->x += !t->wrapped;
}

static int limit(int value, int most)
{
	return value < 0 ? 0 : value > most ? most : value;
}

static void move_to(struct terminal *t, int y, int x)
{
	t->y = limit(y, t->lines - 1);
	t->x = limit(x, t->columns - 1);
	t->wrapped = false;
}

static void erase(struct terminal *t, char what, int mode)
{
	const int last_y = what == 'J' ? t->lines - 1 : t->y, first_y = what == 'J' ? 0 : t->y;

	if (mode == 0)
		clear_cells(t, t->y, t->x, last_y, t->columns - 1);
	else if (mode == 1)
		clear_cells(t, first_y, 0, t->y, t->x);
	else
		clear_cells(t, first_y, 0, last_y, t->columns - 1);
}

/* ESC [ NUMBER ; NUMBER LETTER. Modes and attributes change no text. */
static void control(struct terminal *t, const char *parameters, char letter)
{
	int first = 0, second = 0, count;

	if (*parameters == '?' || letter == 'm' || letter == 'h' || letter == 'l')
		return;
	sscanf(parameters, "%d;%d", &first, &second);
	count = first ? first : 1;
	switch (letter) {
	case 'H':
		move_to(t, first - 1, second - 1);
		break;
	case 'A':
		move_to(t, t->y - count, t->x);
		break;
	case 'B':
		move_to(t, t->y + count, t->x);
		break;
	case 'C':
		move_to(t, t->y, t->x + count);
		break;
	case 'D':
		move_to(t, t->y, t->x - count);
		break;
	case 'J':
	case 'K':
		erase(t, letter, first);
		break;
	case 'r':
		t->top = limit(first - 1, t->lines - 1);
		t->bottom = second ? limit(second - 1, t->lines - 1) : t->lines - 1;
		move_to(t, 0, 0);
		break;
	default:
		ck_assert_msg(!t->strict, "a vt100 does not know ESC [ %s %c", parameters, letter);
	}
}

/* Returns true at the end of the sequence in t->escape. */
static bool escape(struct terminal *t)
{
	const char kind = t->escape[0], last = t->escape[t->used - 1];

	if (kind == '[') {
		if (t->used == 1 || last < '@')
			return false;
		t->escape[t->used - 1] = '\0';
		control(t, t->escape + 1, last);
		return true;
	}
	if (strchr("()#", kind))
		return t->used == 2;	/* character sets */
	if (kind == 'M' && t->y == t->top)
		scroll(t, -1);
	else if (kind == 'M')
		move_to(t, t->y - 1, t->x);
	else
		ck_assert_msg(!t->strict || strchr("=>78H", kind), "a vt100 does not know ESC %c",
			      kind);
	return true;
}

static void receive(struct terminal *t, char c)
{
	if (t->escaping) {
		ck_assert_uint_lt(t->used, sizeof(t->escape));
		t->escape[t->used++] = c;
		if (escape(t)) {
			t->escaping = false;
			t->used = 0;
		}
		return;
	}
	switch (c) {
	case '\033':
		t->escaping = true;
		break;
	case '\r':
		move_to(t, t->y, 0);
		break;
	case '\n':
		line_feed(t);
		break;
	case '\b':
		move_to(t, t->y, t->x - 1);
		break;
	case '\t':
		move_to(t, t->y, (t->x / 8 + 1) * 8);
		break;
	default:
		/* A character of several bytes has one column. */
		if ((unsigned char)c >= ' ' && ((unsigned char)c & 0xc0) != 0x80)
			put(t, c);
	}
}

static void keep_raw(struct terminal *t, const char *bytes, size_t count)
{
	const size_t most = sizeof(t->raw) - 1;

	if (t->num_raw + count > most) {
		memmove(t->raw, t->raw + most / 2, t->num_raw - most / 2);
		t->num_raw -= most / 2;
	}
	memcpy(t->raw + t->num_raw, bytes, count);
	t->num_raw += count;
	t->raw[t->num_raw] = '\0';
}

/* Receives some bytes; false at the end of the program, or after a minute without any. */
static bool read_some(struct terminal *t)
{
	struct pollfd ready = { .fd = t->fd, .events = POLLIN };
	char bytes[4096];
	ssize_t got;

	if (poll(&ready, 1, PATIENCE * 1000) != 1)
		return false;
	got = read(t->fd, bytes, sizeof(bytes));
	if (got <= 0)
		return false;
	keep_raw(t, bytes, got);
	for (ssize_t i = 0; i < got; i++)
		receive(t, bytes[i]);
	return true;
}

void terminal_run(struct terminal *t, const char *const argv[], const char *type, uid_t uid,
		  int lines, int columns)
{
	struct winsize size = { .ws_row = lines, .ws_col = columns };

	memset(t, 0, sizeof(*t));
	t->strict = !strcmp(type, "vt100");
	set_size(t, lines, columns);
	t->pid = forkpty(&t->fd, NULL, NULL, &size);
	ck_assert_int_ge(t->pid, 0);
	if (t->pid)
		return;
	setenv("TERM", type, 1);
	unsetenv("LINES");
	unsetenv("COLUMNS");
	if (uid != getuid() && setuid(uid))
		_exit(126);
	execv(argv[0], (char *const *)argv);
	_exit(127);
}

void terminal_resize(struct terminal *t, int lines, int columns)
{
	const struct winsize size = { .ws_row = lines, .ws_col = columns };

	set_size(t, lines, columns);
	ck_assert_int_eq(ioctl(t->fd, TIOCSWINSZ, &size), 0);
}

void terminal_type(struct terminal *t, const char *keys)
{
	ck_assert_int_eq(write(t->fd, keys, strlen(keys)), strlen(keys));
}

const char *terminal_find(const struct terminal *t, const char *text)
{
	int y;

	for (y = 0; y < t->lines; y++)
		if (strstr(t->cells[y], text))
			return t->cells[y];
	return NULL;
}

/* Prints the screen, which is too long for a message of Check. */
static const char *print_screen(const struct terminal *t)
{
	int y;

	for (y = 0; y < t->lines; y++)
		printf("# %2d|%s|\n", y, t->cells[y]);
	fflush(stdout);
	return "see above";
}

/* Returns -1 if no line has @text. */
static int line_of(const struct terminal *t, const char *text)
{
	int y;

	for (y = 0; y < t->lines; y++)
		if (strstr(t->cells[y], text))
			return y;
	return -1;
}

/* The clock on the screen sends bytes each second, so silence cannot end a wait: it has a limit. */
static bool read_until(struct terminal *t, time_t limit)
{
	return time(NULL) < limit && read_some(t);
}

const char *terminal_wait(struct terminal *t, const char *text)
{
	const time_t limit = time(NULL) + PATIENCE;
	const char *found;

	while (!(found = terminal_find(t, text)))
		ck_assert_msg(read_until(t, limit), "\"%s\" did not come to the screen: %s", text,
			      print_screen(t));
	return found;
}

void terminal_wait_gone(struct terminal *t, const char *text)
{
	const time_t limit = time(NULL) + PATIENCE;

	while (terminal_find(t, text))
		ck_assert_msg(read_until(t, limit), "\"%s\" stays on the screen: %s", text,
			      print_screen(t));
}

void terminal_wait_order(struct terminal *t, const char *const texts[3])
{
	const time_t limit = time(NULL) + PATIENCE;
	int a, b, c;

	for (;;) {
		a = line_of(t, texts[0]);
		b = line_of(t, texts[1]);
		c = line_of(t, texts[2]);
		if (a >= 0 && a < b && b < c)
			return;
		ck_assert_msg(read_until(t, limit), "%s, %s, %s are in lines %d, %d, %d: %s",
			      texts[0], texts[1], texts[2], a, b, c, print_screen(t));
	}
}

int terminal_end(struct terminal *t)
{
	const time_t limit = time(NULL) + PATIENCE;
	int status;

	while (read_until(t, limit))
		;
	/* One that does not end has a status that no test expects. */
	if (time(NULL) >= limit)
		kill(t->pid, SIGKILL);
	ck_assert_int_eq(waitpid(t->pid, &status, 0), t->pid);
	close(t->fd);
	t->fd = -1;
	return status;
}
