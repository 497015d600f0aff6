/* SPDX-License-Identifier: MIT */
/* Parts of top, the full-screen monitor. Only these files use ncurses. */
#ifndef SMI_TOP_H
#define SMI_TOP_H

#include <signal.h>

#include "tools/smi/rates.h"

enum top_metric {
	TOP_BUSY,
	TOP_PT,
	TOP_MEMORY,
	TOP_PCIE,
	TOP_POWER,
	TOP_TEMPERATURE,
	TOP_NUM_METRICS,
};

/* Samples that a plot can show; screens have fewer columns in a plot. */
#define TOP_HISTORY 256

/* Past values of a card; NAN: there was none. */
struct top_history {
	int32_t host_pid;
	char uuid[40], bus_id[32];
	bool seen;			/* in the snapshot that is being taken over */
	int next;			/* where the next sample goes */
	float values[TOP_NUM_METRICS][TOP_HISTORY];
};

/* A process, found again by card and process id after the next snapshot. */
struct top_key {
	int32_t pid, host_pid;
	char uuid[40];
};

enum top_mode {
	TOP_TABLE,
	TOP_HELP,
	TOP_SIGNALS,			/* choosing a signal */
	TOP_CONFIRM,
};

/* How the terminal can draw. */
struct top_style {
	bool blocks;			/* the locale has block characters */
	bool colors;
};

/* The terminal, and where messages on standard error are meanwhile. */
struct top_screen {
	void *screen;			/* SCREEN of ncurses */
	int saved, kept;		/* standard error and a file instead of it, or -1 */
};

enum top_color {
	TOP_GREEN = 1,
	TOP_YELLOW,
	TOP_RED,
	TOP_CYAN,
};

struct top {
	const struct smi_options *options;
	struct top_style style;
	struct smi_snapshot now, then;
	bool seen_card;			/* there was one since the start */
	struct top_history *histories;
	int num_histories;
	/* The table: chosen processes of @now in the order of the sort column. */
	struct smi_row *rows;
	int num_rows;
	int sort;			/* column */
	bool ascending;
	struct top_key selection;	/* pid 0: none */
	int selected, first_row;	/* of the table */
	int first_card;			/* of those that are shown */
	int num_shown;			/* cards on the screen */
	int page;			/* rows of the table on the screen */
	enum top_mode mode;
	int signal;			/* in the list of signals */
	int pidfd;			/* of the process to signal, -1: none */
	char target[160];		/* its description */
	char message[256];
	bool error;			/* @message is one */
};

/* top_cards.c */
/* Adds a sample of each card of @top->now; returns false if out of memory. */
bool top_remember(struct top *top);
/* Draws cards from line @y on, in @lines if one of them fits; returns how many it used. */
int top_draw_cards(struct top *top, int y, int lines);

/* top_processes.c */
/* Makes the rows of @top->now and finds the selected one; returns false if out of memory. */
bool top_make_rows(struct top *top);
void top_sort_rows(struct top *top);
void top_draw_processes(struct top *top, int y, int lines);
/* Moves the selection by @by rows, or to an end of the table. */
void top_select(struct top *top, int by);
const char *top_column_name(int column);
int top_num_columns(void);
/* The column that a key chooses, -1: none. */
int top_column_of_key(int key);
/* Big values first, names and numbers in their order. */
bool top_is_ascending(int column);

/* top_signal.c */
/* Opens the list of signals for the selected process, or sets the message that says why not. */
void top_choose_signal(struct top *top);
void top_draw_signals(const struct top *top);
/* Handle a key of the list or of the question. */
void top_signal_key(struct top *top, int key);
void top_confirm_key(struct top *top, int key);
/* Forgets the process to signal. */
void top_end_signal(struct top *top);

/* top_draw.c */
/* Prints text at @y, @x, in at most @width columns. */
void top_text(const struct top_style *style, int y, int x, int width, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* A bar of @width columns with a name before it and a text in it. @share: 0 to 1, NAN: unknown. */
void top_bar(const struct top_style *style, int y, int x, int width, const char *name,
	     double share, const char *text);
/* Plots the last samples of @metric, the newest at the right; @scale fills the height. */
void top_plot(const struct top_style *style, int y, int x, int width, int height,
	      const struct top_history *history, enum top_metric metric, double scale);
/* Draws an empty box in the middle of the screen; returns its first line and column. */
void top_box(int lines, int columns, int *y, int *x);

__attribute__((format(printf, 2, 3)))
void top_complain(struct top *top, const char *format, ...);

/* top_screen.c */
/* Set by a signal that ends the program. */
extern volatile sig_atomic_t top_interrupted;
/* Returns an exit status, and prints the reason if it is not SMI_OK. */
int top_open_screen(struct top_screen *screen, struct top_style *style);
/* Forgets messages of a round that succeeded. */
void top_drop_messages(struct top_screen *screen);
/* Prints the kept messages if the program has @failed. */
void top_close_screen(struct top_screen *screen, bool failed);

/* top.c: returns an exit status. */
int smi_top(const struct smi_options *options);

#endif /* SMI_TOP_H */
