/* SPDX-License-Identifier: MIT */
/* Bars, plots and boxes of top. */
#include "config.h"

#include <curses.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "tools/smi/top.h"

/* From an eighth of a line to a whole one. */
static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
static const char *const ascii[] = { " ", ".", ":", "|" };
#define NUM_BLOCKS ((int)(sizeof(blocks) / sizeof(blocks[0])))
#define NUM_ASCII ((int)(sizeof(ascii) / sizeof(ascii[0])))

void top_text(const struct top_style *style, int y, int x, int width, const char *format, ...)
{
	char text[1024], *at;
	va_list args;

	if (width <= 0)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* Other locales write such bytes with more columns than there may be. */
	for (at = text; !style->blocks && *at; at++)
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	mvaddnstr(y, x, text, width);
}

static int color_of(double share)
{
	if (share < 0.6)
		return TOP_GREEN;
	return share < 0.85 ? TOP_YELLOW : TOP_RED;
}

void top_bar(const struct top_style *style, int y, int x, int width, const char *name,
	     double share, const char *text)
{
	int inner = width - (int)strlen(name) - 3, length = (int)strlen(text), filled;

	if (inner < 1)
		return;
	filled = isnan(share) ? 0 : (int)lround(fmax(0, fmin(1, share)) * inner);
	mvprintw(y, x, "%s [%*s]", name, inner, "");
	x += (int)strlen(name) + 2;
	if (style->colors)
		attron(COLOR_PAIR(color_of(share)));
	mvhline(y, x, '|', filled);
	if (style->colors)
		attroff(COLOR_PAIR(color_of(share)));
	if (length > inner) {
		text += length - inner;
		length = inner;
	}
	attron(A_BOLD);
	mvaddstr(y, x + inner - length, text);
	attroff(A_BOLD);
}

void top_plot(const struct top_style *style, int y, int x, int width, int height,
	      const struct top_history *history, enum top_metric metric, double scale)
{
	const char *const *levels = style->blocks ? blocks : ascii;
	const int steps = (style->blocks ? NUM_BLOCKS : NUM_ASCII) - 1;
	int column, line, level;

	if (style->colors)
		attron(COLOR_PAIR(TOP_CYAN));
	for (column = 0; column < width && column < TOP_HISTORY; column++) {
		const int at = (history->next + 2 * TOP_HISTORY - 1 - column) % TOP_HISTORY;
		const double value = history->values[metric][at];

		if (isnan(value))
			continue;
		level = scale > 0 ? (int)ceil(fmin(1, value / scale) * height * steps) : 0;
		/* A known value leaves a mark, so that idle time differs from no data. */
		level = level > 1 ? level : 1;
		for (line = 0; line < height && level > 0; line++, level -= steps)
			mvaddstr(y + height - 1 - line, x + width - 1 - column,
				 levels[level < steps ? level : steps]);
	}
	if (style->colors)
		attroff(COLOR_PAIR(TOP_CYAN));
}

void top_box(int lines, int columns, int *y, int *x)
{
	int line;

	*y = LINES > lines + 2 ? (LINES - lines) / 2 : 1;
	*x = COLS > columns + 2 ? (COLS - columns) / 2 : 1;
	for (line = -1; line <= lines; line++)
		mvhline(*y + line, *x - 1, line < 0 || line == lines ? '-' : ' ', columns + 2);
	for (line = 0; line < lines; line++) {
		mvaddch(*y + line, *x - 1, '|');
		mvaddch(*y + line, *x + columns, '|');
	}
}

void top_complain(struct top *top, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(top->message, sizeof(top->message), format, args);
	va_end(args);
	top->error = true;
}
