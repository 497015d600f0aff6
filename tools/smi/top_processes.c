/* SPDX-License-Identifier: MIT */
/* The processes of top: a table with a sort column and a selected row. */
#include "config.h"

#include <ctype.h>
#include <curses.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/smi/top.h"

/* Columns that the name of the process needs at least; others give way to it. */
#define MIN_NAME 12

enum { CARD, PID, USER, FIRST_VALUE, NAME = 14 };

static const struct column {
	const char *name;
	int width, decimals;
	int rank;			/* those with large ones give way first */
	char key;			/* sorts by it, 0: none */
	smi_get_value *get;
} columns[] = {
	[CARD] = { "card", 4, 0, 0, 'c', NULL },
	[PID] = { "pid", 8, 0, 0, 'N', NULL },
	[USER] = { "user", 9, 0, 3, 'U', NULL },
	[FIRST_VALUE] = { "busy%", 6, 1, 0, 'P', smi_busy },
	{ "pt%", 6, 1, 1, 't', smi_pt },
	{ "sfu%", 6, 1, 4, 0, smi_sfu },
	{ "MiB", 7, 0, 0, 'M', smi_used },
	{ "peak", 7, 0, 5, 0, smi_peak },
	{ "rdmem", 7, 3, 2, 'm', smi_rdmem },
	{ "wrmem", 7, 3, 2, 0, smi_wrmem },
	{ "rxpci", 7, 3, 6, 0, smi_rxpci },
	{ "txpci", 7, 3, 6, 0, smi_txpci },
	{ "peers", 7, 3, 7, 0, NULL },
	{ "jobs/s", 8, 1, 8, 'j', smi_jobs },
	[NAME] = { "command", MIN_NAME, 0, 0, 'n', NULL },
};
#define NUM_COLUMNS ((int)(sizeof(columns) / sizeof(columns[0])))

const char *top_column_name(int column)
{
	return columns[column].name;
}

int top_num_columns(void)
{
	return NUM_COLUMNS;
}

int top_column_of_key(int key)
{
	int column;

	for (column = 0; column < NUM_COLUMNS; column++)
		if (columns[column].key && columns[column].key == key)
			return column;
	return -1;
}

bool top_is_ascending(int column)
{
	return column < FIRST_VALUE || column == NAME;
}

static double value_of(const struct smi_row *row, int column)
{
	switch (column) {
	case CARD:
		return row->index;
	case PID:
		return row->process->pid;
	case USER:
		return row->process->uid;
	default:
		/* Copies of both directions; only their sum has a column. */
		return columns[column].get ? columns[column].get(row) :
					     smi_rdrdma(row) + smi_wrrdma(row);
	}
}

static int compare_values(double a, double b)
{
	/* Unknown values are less than all others. */
	if (isnan(a) || isnan(b))
		return !isnan(a) - !isnan(b);
	return (a > b) - (a < b);
}

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct smi_row *a = left, *b = right;
	const struct top *top = context;
	int order;

	if (top->sort == NAME)
		order = strcmp(a->process->name, b->process->name);
	else
		order = compare_values(value_of(a, top->sort), value_of(b, top->sort));
	if (order)
		return top->ascending ? order : -order;
	/* Rows that are equal must not change places from one screen to the next. */
	order = compare_values(a->process->pid, b->process->pid);
	return order ? order : a->index - b->index;
}

static struct top_key key_of(const struct smi_row *row)
{
	struct top_key key = { .pid = row->process->pid, .host_pid = row->card->host_pid };

	snprintf(key.uuid, sizeof(key.uuid), "%s", row->card->properties.uuid);
	return key;
}

/* The selection stays with its process; if that has ended, with its place in the table. */
static void find_selected(struct top *top)
{
	int i;

	for (i = 0; i < top->num_rows; i++) {
		const struct top_key key = key_of(&top->rows[i]);

		if (key.pid == top->selection.pid && key.host_pid == top->selection.host_pid &&
		    !strcmp(key.uuid, top->selection.uuid)) {
			top->selected = i;
			return;
		}
	}
	top_select(top, 0);
}

void top_select(struct top *top, int by)
{
	int to = top->selected + by;

	to = to < top->num_rows ? to : top->num_rows - 1;
	top->selected = to > 0 ? to : 0;
	top->selection = top->num_rows ? key_of(&top->rows[top->selected]) : (struct top_key){ 0 };
}

void top_sort_rows(struct top *top)
{
	if (top->num_rows)
		qsort_r(top->rows, top->num_rows, sizeof(*top->rows), compare_rows, top);
	find_selected(top);
}

bool top_make_rows(struct top *top)
{
	int i;

	free(top->rows);
	top->num_rows = 0;
	top->rows = calloc(top->now.num_processes + 1, sizeof(*top->rows));
	if (!top->rows)
		return false;
	for (i = 0; i < top->now.num_processes; i++)
		if (top->now.chosen[top->now.processes[i].card])
			top->rows[top->num_rows++] = smi_process_row(&top->now, &top->then, i);
	top_sort_rows(top);
	return true;
}

/* Returns the largest rank whose columns fit beside a name. */
static int fitting_rank(void)
{
	int rank, column, width;

	for (rank = 8; rank > 0; rank--) {
		width = 0;
		for (column = 0; column < NUM_COLUMNS; column++)
			if (columns[column].rank <= rank)
				width += columns[column].width + 1;
		if (width <= COLS)
			break;
	}
	return rank;
}

static void cell_text(const struct smi_snapshot *snapshot, const struct smi_row *row, int column,
		      char *text, size_t size)
{
	const struct smi_subject subject = {
		.snapshot = snapshot, .card = row->card, .index = row->index,
		.process = row->process,
	};
	double value;

	if (column == USER) {
		smi_field_text(smi_find_field(smi_app_fields, "user", 4), &subject, false, "-",
			       text, size);
		return;
	}
	value = value_of(row, column);
	if (isnan(value))
		snprintf(text, size, "-");
	else
		snprintf(text, size, "%.*f", columns[column].decimals, value);
}

static void draw_head(const struct top *top, int y, int rank)
{
	int column, x = 0;

	attron(A_REVERSE);
	mvhline(y, 0, ' ', COLS);
	for (column = 0; column < NUM_COLUMNS; column++) {
		const struct column *c = &columns[column];

		if (c->rank > rank)
			continue;
		if (column == top->sort)
			attron(A_BOLD | A_UNDERLINE);
		if (column == NAME)
			top_text(&top->style, y, x, COLS - x, "%s", c->name);
		else
			top_text(&top->style, y, x, COLS - x, "%*s", c->width, c->name);
		attroff(A_BOLD | A_UNDERLINE);
		x += c->width + 1;
	}
	attroff(A_REVERSE);
}

static void draw_row(const struct top *top, const struct smi_row *row, int y, int rank)
{
	int column, x = 0;
	char text[96];

	for (column = 0; column < NAME; column++) {
		const struct column *c = &columns[column];

		if (c->rank > rank)
			continue;
		cell_text(&top->now, row, column, text, sizeof(text));
		top_text(&top->style, y, x, COLS - x, "%*.*s", c->width, c->width, text);
		x += c->width + 1;
	}
	top_text(&top->style, y, x, COLS - x, "%s", row->process->name);
}

void top_draw_processes(struct top *top, int y, int lines)
{
	const int rank = fitting_rank();
	int i;

	top->page = lines > 1 ? lines - 1 : 1;
	if (lines < 1)
		return;
	draw_head(top, y, rank);
	if (top->selected < top->first_row)
		top->first_row = top->selected;
	if (top->selected >= top->first_row + top->page)
		top->first_row = top->selected - top->page + 1;
	if (top->first_row > top->num_rows - top->page)
		top->first_row = top->num_rows > top->page ? top->num_rows - top->page : 0;
	for (i = 0; i + 1 < lines && top->first_row + i < top->num_rows; i++) {
		if (top->first_row + i == top->selected) {
			attron(A_REVERSE);
			mvhline(y + 1 + i, 0, ' ', COLS);
		}
		draw_row(top, &top->rows[top->first_row + i], y + 1 + i, rank);
		attroff(A_REVERSE);
	}
}
