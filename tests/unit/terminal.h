/* SPDX-License-Identifier: MIT */
/*
 * A terminal for tests of full-screen programs: runs one on a pty and keeps the text of its screen,
 * as a vt100 would show it. It knows those sequences that ncurses uses for one; of other types
 * only the raw bytes are of use.
 */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

#define TERMINAL_LINES 60
#define TERMINAL_COLUMNS 200

struct terminal {
	int fd;				/* of the pty, -1: closed */
	pid_t pid;
	int lines, columns;
	int y, x;
	int top, bottom;		/* of the region that scrolls */
	bool strict;			/* fails for sequences that a vt100 does not know */
	bool wrapped;			/* the last column was written, the next one wraps */
	bool escaping;			/* within the sequence in @escape */
	char escape[64];
	size_t used;
	char cells[TERMINAL_LINES][TERMINAL_COLUMNS + 1];
	char raw[1 << 16];		/* the last bytes received */
	size_t num_raw;
};

/* Runs @argv as @uid, with TERM=@type, on a screen of this size. */
void terminal_run(struct terminal *terminal, const char *const argv[], const char *type, uid_t uid,
		  int lines, int columns);
void terminal_resize(struct terminal *terminal, int lines, int columns);
/* Types @keys; control sequences of keys are those of a vt100. */
void terminal_type(struct terminal *terminal, const char *keys);
/* Reads until a line has @text, and returns that line; fails after a minute without it. */
const char *terminal_wait(struct terminal *terminal, const char *text);
/* Reads until no line has @text. */
void terminal_wait_gone(struct terminal *terminal, const char *text);
/* Reads until lines with these texts follow each other. */
void terminal_wait_order(struct terminal *terminal, const char *const texts[3]);
/* Returns the line that has @text now, or NULL. */
const char *terminal_find(const struct terminal *terminal, const char *text);
/* Reads to the end of the program and returns its status of waitpid(). */
int terminal_end(struct terminal *terminal);

#endif /* TERMINAL_H */
