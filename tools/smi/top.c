/* SPDX-License-Identifier: MIT */
/* spyre-smi top: cards and processes on the whole screen, until a key ends it. */
#include "config.h"

#include <curses.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/smi/top.h"

/* A change of the size may arrive just before the wait for a key, which is thus short. */
#define MAX_WAIT 1.0
/* The first rates come after this time at most; later ones after the delay. */
#define FIRST_WAIT 0.5

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Marks the cards of -i. Once one of them was there, each may go away and come back. */
static int choose(const struct top *top, struct smi_snapshot *snapshot)
{
	const char *ids = top->options->ids;
	char id[64];
	size_t length;

	if (!ids || !top->seen_card)
		return smi_choose(snapshot, ids);
	for (;; ids += length + 1) {
		length = strcspn(ids, ",");
		snprintf(id, sizeof(id), "%.*s", (int)length, ids);
		smi_choose(snapshot, id);
		if (!ids[length])
			return SMI_OK;
	}
}

/* Replaces the snapshot and all that is made from it. Returns an exit status. */
static int sample(struct top *top)
{
	struct smi_snapshot next;
	int status;

	status = smi_take_snapshot(&next);
	if (status == SMI_OK && next.num_cards)
		status = choose(top, &next);
	if (status != SMI_OK) {
		smi_free_snapshot(&next);
		return status;
	}
	smi_free_snapshot(&top->then);
	top->then = top->now;
	top->now = next;
	top->seen_card |= next.num_chosen > 0;
	if (top_remember(top) && top_make_rows(top))
		return SMI_OK;
	return smi_no_memory("the rows of top");
}

static void draw_head(const struct top *top)
{
	char time[32];
	struct tm tm;

	localtime_r(&top->now.time.tv_sec, &tm);
	strftime(time, sizeof(time), "%H:%M:%S", &tm);
	top_text(&top->style, 0, 0, COLS,
		 "spyre-smi  %s  cards %d  processes %d  every %g s  sort: %s, %s", time,
		 top->now.num_chosen, top->num_rows, top->options->interval,
		 top_column_name(top->sort), top->ascending ? "ascending" : "descending");
	if (top->num_shown < top->now.num_chosen)
		top_text(&top->style, 1, 0, COLS, "cards %d to %d of %d: [ and ] show others",
			 top->first_card + 1, top->first_card + top->num_shown,
			 top->now.num_chosen);
}

static void draw_foot(const struct top *top)
{
	const int y = LINES - 1;

	if (!top->message[0]) {
		top_text(&top->style, y, 0, COLS - 1, "q quit  h help  < > sort column  r reverse  "
			 "k signal  arrows select  [ ] cards");
		return;
	}
	if (top->style.colors)
		attron(COLOR_PAIR(top->error ? TOP_RED : TOP_GREEN));
	top_text(&top->style, y, 0, COLS - 1, "%s", top->message);
	if (top->style.colors)
		attroff(COLOR_PAIR(top->error ? TOP_RED : TOP_GREEN));
}

static const char *const help[] = {
	" Up, Down, PgUp, PgDn, Home, End   select a process",
	" < >, Left, Right                  sort by another column",
	" P busy  t PT  M memory  m LPDDR5  sort by this column",
	" N pid  U user  c card  n command  j jobs/s",
	" r, I                              reverse the order",
	" k, F9                             send a signal, after a question",
	" [ ]                               other cards, if not all fit",
	" Ctrl-L                            draw the screen anew",
	" q, F10                            quit",
	" Any key: back",
};
#define HELP_LINES ((int)(sizeof(help) / sizeof(help[0])))

static void draw_help(const struct top *top)
{
	int i, y, x;

	top_box(HELP_LINES, 66, &y, &x);
	for (i = 0; i < HELP_LINES; i++)
		top_text(&top->style, y + i, x, 66, "%s", help[i]);
}

static void draw(struct top *top)
{
	/* The table keeps its head and three rows if at least a card fits above it. */
	const int free_lines = LINES - 3 - 4;
	int used;

	erase();
	used = top_draw_cards(top, 2, free_lines);
	draw_head(top);
	top_draw_processes(top, 2 + used + 1, LINES - 1 - (2 + used + 1));
	draw_foot(top);
	if (top->mode == TOP_HELP)
		draw_help(top);
	else if (top->mode != TOP_TABLE)
		top_draw_signals(top);
	refresh();
}

static void sort_by(struct top *top, int column)
{
	/* The key of the present column reverses it. */
	top->ascending = column == top->sort ? !top->ascending : top_is_ascending(column);
	top->sort = column;
	top_sort_rows(top);
}

/* Handles keys that change the order or the part of the cards that is shown. */
static void order_key(struct top *top, int key)
{
	const int columns = top_num_columns();

	switch (key) {
	case '>':
	case KEY_RIGHT:
		sort_by(top, (top->sort + 1) % columns);
		break;
	case '<':
	case KEY_LEFT:
		sort_by(top, (top->sort + columns - 1) % columns);
		break;
	case 'r':
	case 'I':
		sort_by(top, top->sort);
		break;
	case '[':
		top->first_card -= top->first_card > 0;
		break;
	case ']':
		top->first_card++;	/* drawing limits it */
		break;
	default:
		if (top_column_of_key(key) >= 0)
			sort_by(top, top_column_of_key(key));
	}
}

/* Returns false if the key ends the program. */
static bool table_key(struct top *top, int key)
{
	switch (key) {
	case 'q':
	case 'Q':
	case KEY_F(10):
		return false;
	case KEY_UP:
		top_select(top, -1);
		break;
	case KEY_DOWN:
		top_select(top, 1);
		break;
	case KEY_PPAGE:
		top_select(top, -top->page);
		break;
	case KEY_NPAGE:
		top_select(top, top->page);
		break;
	case KEY_HOME:
		top_select(top, -top->num_rows);
		break;
	case KEY_END:
		top_select(top, top->num_rows);
		break;
	case 'k':
	case KEY_F(9):
		top_choose_signal(top);
		break;
	case 'h':
	case '?':
	case KEY_F(1):
		top->mode = TOP_HELP;
		break;
	default:
		order_key(top, key);
	}
	return true;
}

static bool handle_key(struct top *top, int key)
{
	if (key == KEY_RESIZE)
		return true;
	if (key == ('L' & 0x1f)) {
		clearok(stdscr, TRUE);
		return true;
	}
	if (top->mode != TOP_CONFIRM)
		top->message[0] = '\0';
	switch (top->mode) {
	case TOP_HELP:
		top->mode = TOP_TABLE;
		return true;
	case TOP_SIGNALS:
		top_signal_key(top, key);
		return true;
	case TOP_CONFIRM:
		top_confirm_key(top, key);
		return true;
	default:
		return table_key(top, key);
	}
}

/* True if the terminal has gone away, which getch() reports like no key. */
static bool has_hung_up(void)
{
	struct pollfd terminal = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&terminal, 1, 0) > 0 && terminal.revents & (POLLHUP | POLLERR | POLLNVAL);
}

static int run(struct top *top, struct top_screen *screen)
{
	double due = seconds(), wait;
	unsigned long rounds = 0;
	int status, key;

	for (;;) {
		if (seconds() >= due) {
			due = seconds() + (rounds ? top->options->interval :
						    fmin(top->options->interval, FIRST_WAIT));
			status = sample(top);
			if (status != SMI_OK)
				return status;
			top_drop_messages(screen);
			rounds++;
		}
		draw(top);
		/* The first round has no rates. */
		if (top->options->count && rounds > top->options->count)
			return top->seen_card ? SMI_OK : SMI_NO_DRIVER;
		wait = fmax(0, fmin(due - seconds(), MAX_WAIT));
		timeout((int)ceil(wait * 1000));
		key = getch();
		if (top_interrupted || (key == ERR && has_hung_up()) ||
		    (key != ERR && !handle_key(top, key)))
			return SMI_OK;
	}
}

int smi_top(const struct smi_options *options)
{
	struct top top = { .options = options, .pidfd = -1, .sort = top_column_of_key('P') };
	struct top_screen screen;
	int status;

	status = top_open_screen(&screen, &top.style);
	if (status != SMI_OK)
		return status;
	status = run(&top, &screen);
	top_close_screen(&screen, status != SMI_OK);
	top_end_signal(&top);
	smi_free_snapshot(&top.now);
	smi_free_snapshot(&top.then);
	free(top.histories);
	free(top.rows);
	return status;
}
