/* SPDX-License-Identifier: MIT */
/* The cards of top: a title, and a bar and a plot for each metric. */
#include "config.h"

#include <curses.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/smi/top.h"

#define MAX_PLOT 4		/* lines */
#define MIN_CELL 25		/* columns of a metric */
#define GIB 1024.0		/* MiB */
/* The top of the bar and the plot of the temperature, in degrees Celsius. */
#define MAX_CELSIUS 100

static const char *const names[TOP_NUM_METRICS] = {
	[TOP_BUSY] = "busy", [TOP_PT] = "pt  ", [TOP_MEMORY] = "mem ",
	[TOP_PCIE] = "pcie", [TOP_POWER] = "pwr ", [TOP_TEMPERATURE] = "temp",
};

static double value_of(const struct smi_row *row, enum top_metric metric)
{
	switch (metric) {
	case TOP_BUSY:
		return smi_busy(row);
	case TOP_PT:
		return smi_pt(row);
	case TOP_MEMORY:
		return smi_used(row);
	case TOP_PCIE:
		return smi_rxpci(row) + smi_txpci(row);
	case TOP_POWER:
		return smi_power(row);
	case TOP_TEMPERATURE:
		return smi_temperature(row);
	default:
		return NAN;
	}
}

static bool is_of(const struct top_history *history, const spyre_telemetry_card *card)
{
	return history->host_pid == card->host_pid &&
	       !strcmp(history->uuid, card->properties.uuid) &&
	       !strcmp(history->bus_id, card->properties.bus_id);
}

static struct top_history *find(const struct top *top, const spyre_telemetry_card *card)
{
	int i;

	for (i = 0; i < top->num_histories; i++)
		if (is_of(&top->histories[i], card))
			return &top->histories[i];
	return NULL;
}

static struct top_history *add(struct top *top, const spyre_telemetry_card *card)
{
	struct top_history *grown, *history;
	int i, j;

	grown = realloc(top->histories, (top->num_histories + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	top->histories = grown;
	history = &grown[top->num_histories++];
	*history = (struct top_history){ .host_pid = card->host_pid };
	snprintf(history->uuid, sizeof(history->uuid), "%s", card->properties.uuid);
	snprintf(history->bus_id, sizeof(history->bus_id), "%s", card->properties.bus_id);
	for (i = 0; i < TOP_NUM_METRICS; i++)
		for (j = 0; j < TOP_HISTORY; j++)
			history->values[i][j] = NAN;
	return history;
}

/* Drops the histories of cards that are gone, and says so unless a key's answer is shown. */
static void drop_gone(struct top *top)
{
	int i, kept = 0;

	for (i = 0; i < top->num_histories; i++) {
		if (top->histories[i].seen)
			top->histories[kept++] = top->histories[i];
		else if (!top->message[0])
			top_complain(top, "card %s is gone", top->histories[i].bus_id);
	}
	top->num_histories = kept;
}

bool top_remember(struct top *top)
{
	struct top_history *history;
	struct smi_row row;
	int card, metric;

	for (card = 0; card < top->num_histories; card++)
		top->histories[card].seen = false;
	for (card = 0; card < top->now.num_cards; card++) {
		if (!top->now.chosen[card])
			continue;
		row = smi_card_row(&top->now, &top->then, card);
		history = find(top, row.card);
		if (!history)
			history = add(top, row.card);
		if (!history)
			return false;
		history->seen = true;
		for (metric = 0; metric < TOP_NUM_METRICS; metric++)
			history->values[metric][history->next] = (float)value_of(&row, metric);
		history->next = (history->next + 1) % TOP_HISTORY;
	}
	drop_gone(top);
	return true;
}

/* PCIe has no limit in the model: its scale is the most of the samples that are kept. */
static double most_of(const struct top_history *history, enum top_metric metric)
{
	double most = 0;
	int i;

	for (i = 0; i < TOP_HISTORY; i++)
		if (history->values[metric][i] > most)
			most = history->values[metric][i];
	return most;
}

static double scale_of(const spyre_telemetry_card *card, const struct top_history *history,
		       enum top_metric metric)
{
	switch (metric) {
	case TOP_MEMORY:
		return card->memory_total == UINT64_MAX ? 0 :
							  (double)card->memory_total / (1 << 20);
	case TOP_PCIE:
		return most_of(history, metric);
	case TOP_POWER:
		return card->power_limit_mw == UINT32_MAX ? 0 : card->power_limit_mw / 1e3;
	case TOP_TEMPERATURE:
		return MAX_CELSIUS;
	default:
		return 100;
	}
}

static void describe(char *text, size_t size, enum top_metric metric, double value, double scale)
{
	if (isnan(value)) {
		snprintf(text, size, "-");
		return;
	}
	switch (metric) {
	case TOP_MEMORY:
		snprintf(text, size, "%.0fMiB/%.1fGiB", value, scale / GIB);
		break;
	case TOP_PCIE:
		snprintf(text, size, "%.3fGB/s", value);
		break;
	case TOP_POWER:
		snprintf(text, size, "%.1fW/%.0fW", value, scale);
		break;
	case TOP_TEMPERATURE:
		snprintf(text, size, "%.1fC", value);
		break;
	default:
		snprintf(text, size, "%.1f%%", value);
	}
}

static void rate_text(char *text, size_t size, double value)
{
	if (isnan(value))
		snprintf(text, size, "-");
	else
		snprintf(text, size, "%.3f", value);
}

static void draw_title(const struct top *top, const struct smi_row *row, int y)
{
	const spyre_telemetry_card *card = row->card;
	char host[32] = "", clock[32] = "", read[24], written[24];

	if (card->host_pid)
		snprintf(host, sizeof(host), "  in process %" PRId32, card->host_pid);
	if (!isnan(smi_clock(row)))
		snprintf(clock, sizeof(clock), "  %.0f MHz", smi_clock(row));
	rate_text(read, sizeof(read), smi_rdmem(row));
	rate_text(written, sizeof(written), smi_wrmem(row));
	attron(A_BOLD);
	top_text(&top->style, y, 0, COLS, "%d %s  %s%s%s  LPDDR5 read %s, written %s GB/s",
		 row->index, card->properties.name, card->properties.bus_id, host, clock, read,
		 written);
	attroff(A_BOLD);
}

/* How the cards fit on the screen. */
struct plan {
	int columns;			/* cells in a line */
	int plot;			/* lines of a plot, 0: bars only */
	int height;			/* of a card */
};

static struct plan plan_cards(int cards, int lines)
{
	struct plan plan = { .columns = COLS / MIN_CELL, .plot = MAX_PLOT };
	int bars;

	/* Only divisors of the number of cells fill their lines. */
	plan.columns = plan.columns >= 6 ? 6 : plan.columns >= 3 ? 3 : plan.columns >= 2 ? 2 : 1;
	bars = TOP_NUM_METRICS / plan.columns;
	for (;; plan.plot--) {
		plan.height = 1 + bars * (1 + plan.plot);
		if (!plan.plot || cards * plan.height <= lines)
			return plan;
	}
}

static void draw_card(const struct top *top, const struct smi_row *row, int y,
		      const struct plan *plan)
{
	const struct top_history *history = find(top, row->card);
	const int width = COLS / plan->columns;
	int metric, line, x;
	char text[48];

	draw_title(top, row, y++);
	for (metric = 0; metric < TOP_NUM_METRICS; metric++) {
		const double value = value_of(row, metric);
		const double scale = scale_of(row->card, history, metric);

		x = metric % plan->columns * width;
		line = y + metric / plan->columns * (1 + plan->plot);
		describe(text, sizeof(text), metric, value, scale);
		top_bar(&top->style, line, x, width - 1, names[metric],
			scale > 0 ? value / scale : NAN, text);
		top_plot(&top->style, line + 1, x, width - 1, plan->plot, history, metric, scale);
	}
}

int top_draw_cards(struct top *top, int y, int lines)
{
	const int cards = top->now.num_chosen, start = y;
	struct plan plan;
	int card, skip, left;

	if (!cards) {
		top_text(&top->style, y, 0, COLS, "No card found: waiting for spyre_vdev, or for a "
			 "program with SPYRE_BACKEND=embedded");
		return 1;
	}
	plan = plan_cards(cards, lines);
	top->num_shown = lines / plan.height < 1 ? 1 : lines / plan.height;
	if (top->num_shown > cards)
		top->num_shown = cards;
	if (top->first_card > cards - top->num_shown)
		top->first_card = cards - top->num_shown;
	skip = top->first_card;
	left = top->num_shown;
	for (card = 0; card < top->now.num_cards && left > 0; card++) {
		const struct smi_row row = smi_card_row(&top->now, &top->then, card);

		if (!top->now.chosen[card] || skip-- > 0)
			continue;
		draw_card(top, &row, y, &plan);
		y += plan.height;
		left--;
	}
	return y - start;
}
