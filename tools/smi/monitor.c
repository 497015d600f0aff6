/* SPDX-License-Identifier: MIT */
/* dmon and pmon: a line per card or process and interval, with rates between two snapshots. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/smi/monitor.h"

/* The parts of a row; NULL: there was no such card or process at the last round. */
struct row {
	const spyre_telemetry_card *card, *old_card;
	const spyre_telemetry_process *process, *old_process;
	int index;			/* of the card */
	const struct smi_host *host;
};

/* Returns NAN for a value that is not available. */
typedef double get_value(const struct row *row);

struct column {
	char group;
	const char *name, *unit;
	int width, decimals;
	get_value *get;
};

static double seconds_between(const struct row *row)
{
	return row->old_card ? (double)(row->card->timestamp_ns - row->old_card->timestamp_ns) / 1e9
			     : NAN;
}

/* A counter that has decreased belongs to an earlier load of the module. */
static double growth(uint64_t now, uint64_t then)
{
	return now == UINT64_MAX || then == UINT64_MAX || now < then ? NAN : (double)(now - then);
}

static double known(uint64_t value)
{
	return value == UINT64_MAX ? NAN : (double)value;
}

/* The growth of a counter of the process, or of the card if the row has no process. */
#define GROWTH(row, name)                                                                          \
	((row)->process ? ((row)->old_process ? growth((row)->process->name,                       \
						       (row)->old_process->name) : NAN) :          \
			  ((row)->old_card ? growth((row)->card->name, (row)->old_card->name) :    \
					     NAN))
#define VALUE(row, name) known((row)->process ? (row)->process->name : (row)->card->name)

#define GETTER(name) static double get_##name(const struct row *row)

GETTER(busy) { return fmin(100, 100 * GROWTH(row, busy_ns) / 1e9 / seconds_between(row)); }
GETTER(rdmem) { return GROWTH(row, bytes_read) / 1e9 / seconds_between(row); }
GETTER(wrmem) { return GROWTH(row, bytes_written) / 1e9 / seconds_between(row); }
GETTER(rxpci) { return GROWTH(row, pcie_rx_bytes) / 1e9 / seconds_between(row); }
GETTER(txpci) { return GROWTH(row, pcie_tx_bytes) / 1e9 / seconds_between(row); }
GETTER(rdrdma) { return GROWTH(row, rdma_read) / 1e9 / seconds_between(row); }
GETTER(wrrdma) { return GROWTH(row, rdma_written) / 1e9 / seconds_between(row); }
GETTER(used) { return VALUE(row, memory_used) / (1 << 20); }
GETTER(peak) { return VALUE(row, memory_peak) / (1 << 20); }

/* The share of the units' modelled time, which host time is not. An idle card uses none. */
static double unit_share(const struct row *row, double cycles)
{
	double all = GROWTH(row, cycles) * row->card->properties.num_cores;

	return all == 0 ? 0 : 100 * cycles / all;
}

GETTER(pt) { return unit_share(row, GROWTH(row, pt_cycles)); }
GETTER(sfu) { return unit_share(row, GROWTH(row, sfu_cycles)); }

GETTER(power)
{
	return row->card->power_mw == UINT32_MAX ? NAN : row->card->power_mw / 1e3;
}

GETTER(temperature)
{
	return row->card->temperature_mc == UINT32_MAX ? NAN : row->card->temperature_mc / 1e3;
}

GETTER(clock)
{
	return row->card->properties.clock_khz ? row->card->properties.clock_khz / 1e3 : NAN;
}

GETTER(host_cpu) { return row->host->cpu_percent; }
GETTER(host_memory) { return row->host->memory_percent; }
GETTER(unknown)
{
	(void)row;
	return NAN;
}

static const struct column device_columns[] = {
	{ 'p', "pwr", "W", 6, 1, get_power },
	{ 'p', "temp", "C", 6, 1, get_temperature },
	{ 'u', "busy", "%", 5, 0, get_busy },
	{ 'u', "pt", "%", 5, 0, get_pt },
	{ 'u', "sfu", "%", 5, 0, get_sfu },
	{ 'c', "clk", "MHz", 6, 0, get_clock },
	{ 'm', "mem", "MiB", 7, 0, get_used },
	{ 'm', "peak", "MiB", 7, 0, get_peak },
	{ 'm', "rdmem", "GB/s", 8, 3, get_rdmem },
	{ 'm', "wrmem", "GB/s", 8, 3, get_wrmem },
	{ 't', "rxpci", "GB/s", 8, 3, get_rxpci },
	{ 't', "txpci", "GB/s", 8, 3, get_txpci },
	{ 'r', "rdrdma", "GB/s", 8, 3, get_rdrdma },
	{ 'r', "wrrdma", "GB/s", 8, 3, get_wrrdma },
	{ 0 },
};

/* aiu-smi's names and order; the card does not tell reserved memory from active memory. */
static const struct column aiu_columns[] = {
	{ 0, "hostcpu", NULL, 7, 1, get_host_cpu },
	{ 0, "hostmem", NULL, 7, 1, get_host_memory },
	{ 0, "pwr", NULL, 6, 1, get_power },
	{ 0, "gtemp", NULL, 6, 1, get_temperature },
	{ 0, "busy", NULL, 4, 0, get_busy },
	{ 0, "rdmem", NULL, 7, 3, get_rdmem },
	{ 0, "wrmem", NULL, 7, 3, get_wrmem },
	{ 0, "rxpci", NULL, 7, 3, get_rxpci },
	{ 0, "txpci", NULL, 7, 3, get_txpci },
	{ 0, "rdrdma", NULL, 7, 3, get_rdrdma },
	{ 0, "wrrdma", NULL, 7, 3, get_wrrdma },
	{ 0, "rsvmem", NULL, 7, 0, get_used },
	{ 0, "actmem", NULL, 7, 0, get_unknown },
	{ 0, "peakmem", NULL, 7, 0, get_peak },
	{ 0, "pt_active", NULL, 9, 1, get_pt },
	{ 0 },
};

static const struct column process_columns[] = {
	{ 'u', "busy", "%", 5, 0, get_busy },
	{ 'u', "pt", "%", 5, 0, get_pt },
	{ 'u', "sfu", "%", 5, 0, get_sfu },
	{ 'm', "mem", "MiB", 7, 0, get_used },
	{ 'm', "peak", "MiB", 7, 0, get_peak },
	{ 'm', "rdmem", "GB/s", 8, 3, get_rdmem },
	{ 'm', "wrmem", "GB/s", 8, 3, get_wrmem },
	{ 't', "rxpci", "GB/s", 8, 3, get_rxpci },
	{ 't', "txpci", "GB/s", 8, 3, get_txpci },
	{ 'r', "rdrdma", "GB/s", 8, 3, get_rdrdma },
	{ 'r', "wrrdma", "GB/s", 8, 3, get_wrrdma },
	{ 0 },
};

static const struct column *columns_of(const struct smi_options *options)
{
	if (options->aiu)
		return aiu_columns;
	return options->mode == SMI_PMON ? process_columns : device_columns;
}

const char *smi_monitor_groups(const struct smi_options *options)
{
	return options->mode == SMI_PMON ? "umtr" : "pucmtr";
}

static bool is_shown(const struct smi_options *options, const struct column *column)
{
	return !column->group || !options->groups || strchr(options->groups, column->group);
}

static bool has_stamp(const struct smi_options *options, char stamp)
{
	return options->aiu || (options->stamps && strchr(options->stamps, stamp));
}

static void print_aiu_header(void)
{
	const struct column *column;

	fputs("#ID Date     Time    ", stdout);
	for (column = aiu_columns; column->name; column++)
		printf(" %*s", column->width, column->name);
	putchar('\n');
}

static void print_header(const struct smi_options *options, bool units)
{
	const struct column *column;

	putchar('#');
	if (has_stamp(options, 'D'))
		printf("%-9s", units ? "YYYYMMDD" : "Date");
	if (has_stamp(options, 'T'))
		printf("%-9s", units ? "HH:MM:SS" : "Time");
	printf("%4s", units ? "Idx" : "card");
	if (options->mode == SMI_PMON)
		printf(" %8s %3s", units ? "#" : "pid", units ? "#" : "vf");
	for (column = columns_of(options); column->name; column++)
		if (is_shown(options, column))
			printf(" %*s", column->width, units ? column->unit : column->name);
	if (options->mode == SMI_PMON)
		printf(" %s", units ? "name" : "command");
	putchar('\n');
}

void smi_monitor_header(const struct smi_options *options)
{
	if (options->aiu) {
		print_aiu_header();
		return;
	}
	print_header(options, false);
	print_header(options, true);
}

static void print_time(const struct smi_options *options, const struct timespec *time)
{
	char text[32];
	struct tm tm;

	localtime_r(&time->tv_sec, &tm);
	if (has_stamp(options, 'D')) {
		strftime(text, sizeof(text), "%Y%m%d", &tm);
		printf("%s ", text);
	}
	if (has_stamp(options, 'T')) {
		strftime(text, sizeof(text), "%H:%M:%S", &tm);
		printf("%s%s", text, options->aiu ? "" : " ");
	}
}

static void print_values(const struct smi_options *options, const struct row *row)
{
	const struct column *column;
	double value;

	for (column = columns_of(options); column->name; column++) {
		if (!is_shown(options, column))
			continue;
		value = column->get(row);
		if (isnan(value))
			printf(" %*s", column->width, "-");
		else
			printf(" %*.*f", column->width, column->decimals, value);
	}
}

/* The number of a virtual function, from its card's name; 0: a whole card. */
static int vf_of(const spyre_telemetry_card *card)
{
	const char *at = strstr(card->properties.name, " VF ");
	int vf = 0;

	return at && sscanf(at, " VF %d", &vf) == 1 ? vf : 0;
}

static void print_row(const struct smi_options *options, const struct row *row,
		      const struct timespec *time)
{
	if (options->aiu)
		printf("%-3d ", row->index);
	else
		putchar(' ');
	print_time(options, time);
	if (!options->aiu)
		printf("%4d", row->index);
	if (row->process) {
		printf(" %8" PRId32, row->process->pid);
		if (vf_of(row->card))
			printf(" %3d", vf_of(row->card));
		else
			printf(" %3s", "-");
	}
	print_values(options, row);
	if (row->process)
		printf(" %s", row->process->name);
	putchar('\n');
}

static const spyre_telemetry_card *find_card(const struct smi_snapshot *snapshot,
					     const spyre_telemetry_card *like)
{
	int i;

	for (i = 0; i < snapshot->num_cards; i++) {
		const spyre_telemetry_card *card = &snapshot->cards[i];

		if (card->host_pid == like->host_pid &&
		    !strcmp(card->properties.uuid, like->properties.uuid) &&
		    !strcmp(card->properties.bus_id, like->properties.bus_id) &&
		    card->timestamp_ns < like->timestamp_ns)
			return card;
	}
	return NULL;
}

static const spyre_telemetry_process *find_process(const struct smi_snapshot *snapshot,
						   const spyre_telemetry_card *card, int32_t pid)
{
	int i;

	for (i = 0; card && i < snapshot->num_processes; i++)
		if (snapshot->processes[i].pid == pid &&
		    &snapshot->cards[snapshot->processes[i].card] == card)
			return &snapshot->processes[i];
	return NULL;
}

static struct row row_of(const struct smi_snapshot *now, const struct smi_snapshot *then, int card)
{
	return (struct row){
		.card = &now->cards[card],
		.old_card = find_card(then, &now->cards[card]),
		.index = card,
	};
}

static void print_processes(const struct smi_snapshot *now, const struct smi_snapshot *then,
			    const struct smi_options *options)
{
	struct row row;
	int i;

	for (i = 0; i < now->num_processes; i++) {
		if (!now->chosen[now->processes[i].card])
			continue;
		row = row_of(now, then, now->processes[i].card);
		row.process = &now->processes[i];
		row.old_process = find_process(then, row.old_card, row.process->pid);
		print_row(options, &row, &now->time);
	}
}

void smi_monitor_rows(const struct smi_snapshot *now, const struct smi_snapshot *then,
		      const struct smi_host *host, const struct smi_options *options)
{
	struct row row;
	int i;

	if (options->mode == SMI_PMON) {
		print_processes(now, then, options);
		return;
	}
	for (i = 0; i < now->num_cards; i++) {
		if (!now->chosen[i])
			continue;
		row = row_of(now, then, i);
		row.host = host;
		print_row(options, &row, &now->time);
	}
}
