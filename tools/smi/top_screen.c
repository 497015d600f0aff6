/* SPDX-License-Identifier: MIT */
/* The terminal of top: its modes, and the messages and signals that arrive meanwhile. */
#include "config.h"

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/smi/top.h"

/* Defines words such as "lines" as macros. */
#include <term.h>

volatile sig_atomic_t top_interrupted;

static void interrupt(int number)
{
	(void)number;
	top_interrupted = 1;
}

/* Messages on standard error would be drawn over, so they are kept until the screen is left. */
static void keep_messages(struct top_screen *screen)
{
	screen->saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	screen->kept = memfd_create("spyre-smi", MFD_CLOEXEC);
	if (screen->saved >= 0 && screen->kept >= 0)
		dup2(screen->kept, STDERR_FILENO);
}

void top_drop_messages(struct top_screen *screen)
{
	if (screen->saved >= 0 && screen->kept >= 0 && !ftruncate(screen->kept, 0))
		lseek(screen->kept, 0, SEEK_SET);
}

static void print_messages(struct top_screen *screen, bool wanted)
{
	char text[4096];
	ssize_t length;

	if (screen->saved >= 0 && screen->kept >= 0) {
		fflush(stderr);
		dup2(screen->saved, STDERR_FILENO);
		length = pread(screen->kept, text, sizeof(text), 0);
		if (wanted && length > 0)
			fwrite(text, 1, (size_t)length, stderr);
	}
	if (screen->saved >= 0)
		close(screen->saved);
	if (screen->kept >= 0)
		close(screen->kept);
}

static void watch_signals(void)
{
	const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action = { .sa_handler = interrupt };
	size_t i;

	/* Without SA_RESTART they end the wait for a key. */
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
}

static void set_style(struct top_style *style)
{
	const char *no_color = getenv("NO_COLOR");

	style->blocks = !strcmp(nl_langinfo(CODESET), "UTF-8");
	style->colors = has_colors() && !(no_color && *no_color);
	if (!style->colors || start_color() != OK)
		return;
	use_default_colors();
	init_pair(TOP_GREEN, COLOR_GREEN, -1);
	init_pair(TOP_YELLOW, COLOR_YELLOW, -1);
	init_pair(TOP_RED, COLOR_RED, -1);
	init_pair(TOP_CYAN, COLOR_CYAN, -1);
}

/* Returns NULL for a terminal that can show the screen, else the reason. */
static const char *find_terminal(const char *type)
{
	const char *reason;
	int error;

	if (!type || !*type)
		return "TERM is not set";
	if (setupterm(type, STDOUT_FILENO, &error) != OK)
		return error < 0 ? "the terminfo database is missing" :
		       error ? "it has no cursor" : "it is not in the terminfo database";
	reason = cursor_address ? NULL : "it cannot move its cursor";
	/* The screen has a description of its own. */
	del_curterm(cur_term);
	return reason;
}

static void set_modes(void)
{
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	/* The wait for the rest of a function key, in milliseconds. */
	set_escdelay(25);
	curs_set(0);
}

int top_open_screen(struct top_screen *screen, struct top_style *style)
{
	const char *type = getenv("TERM"), *reason;

	setlocale(LC_CTYPE, "");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		fputs("spyre-smi: cannot show top: standard input and output are not both a "
		      "terminal; use dmon or pmon\n", stderr);
		return SMI_BAD_ARGUMENT;
	}
	reason = find_terminal(type);
	watch_signals();
	screen->screen = reason ? NULL : newterm(NULL, stdout, stdin);
	if (!screen->screen) {
		fprintf(stderr, "spyre-smi: cannot show top on the terminal type '%s': %s; set TERM, "
			"or use dmon or pmon\n", type ? type : "", reason ? reason :
			"ncurses refuses it");
		return SMI_BAD_ARGUMENT;
	}
	set_modes();
	set_style(style);
	keep_messages(screen);
	return SMI_OK;
}

void top_close_screen(struct top_screen *screen, bool failed)
{
	endwin();
	delscreen(screen->screen);
	print_messages(screen, failed);
}
