/* SPDX-License-Identifier: MIT */
/* dmon and pmon: a line per card or process and interval, with rates between two snapshots. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/smi/monitor.h"

struct column {
	char group;
	const char *name, *unit;
	int width, decimals;
	smi_get_value *get;
};

static double unknown(const struct smi_row *row)
{
	(void)row;
	return NAN;
}

static const struct column device_columns[] = {
	{ 'p', "pwr", "W", 6, 1, smi_power },
	{ 'p', "temp", "C", 6, 1, smi_temperature },
	{ 'u', "busy", "%", 5, 0, smi_busy },
	{ 'u', "pt", "%", 5, 0, smi_pt },
	{ 'u', "sfu", "%", 5, 0, smi_sfu },
	{ 'c', "clk", "MHz", 6, 0, smi_clock },
	{ 'm', "mem", "MiB", 7, 0, smi_used },
	{ 'm', "peak", "MiB", 7, 0, smi_peak },
	{ 'm', "rdmem", "GB/s", 8, 3, smi_rdmem },
	{ 'm', "wrmem", "GB/s", 8, 3, smi_wrmem },
	{ 't', "rxpci", "GB/s", 8, 3, smi_rxpci },
	{ 't', "txpci", "GB/s", 8, 3, smi_txpci },
	{ 'r', "rdrdma", "GB/s", 8, 3, smi_rdrdma },
	{ 'r', "wrrdma", "GB/s", 8, 3, smi_wrrdma },
	{ 0 },
};

/* aiu-smi's names and order; the card does not tell reserved memory from active memory. */
static const struct column aiu_columns[] = {
	{ 0, "hostcpu", NULL, 7, 1, smi_host_cpu },
	{ 0, "hostmem", NULL, 7, 1, smi_host_memory },
	{ 0, "pwr", NULL, 6, 1, smi_power },
	{ 0, "gtemp", NULL, 6, 1, smi_temperature },
	{ 0, "busy", NULL, 4, 0, smi_busy },
	{ 0, "rdmem", NULL, 7, 3, smi_rdmem },
	{ 0, "wrmem", NULL, 7, 3, smi_wrmem },
	{ 0, "rxpci", NULL, 7, 3, smi_rxpci },
	{ 0, "txpci", NULL, 7, 3, smi_txpci },
	{ 0, "rdrdma", NULL, 7, 3, smi_rdrdma },
	{ 0, "wrrdma", NULL, 7, 3, smi_wrrdma },
	{ 0, "rsvmem", NULL, 7, 0, smi_used },
	{ 0, "actmem", NULL, 7, 0, unknown },
	{ 0, "peakmem", NULL, 7, 0, smi_peak },
	{ 0, "pt_active", NULL, 9, 1, smi_pt },
	{ 0 },
};

static const struct column process_columns[] = {
	{ 'u', "busy", "%", 5, 0, smi_busy },
	{ 'u', "pt", "%", 5, 0, smi_pt },
	{ 'u', "sfu", "%", 5, 0, smi_sfu },
	{ 'm', "mem", "MiB", 7, 0, smi_used },
	{ 'm', "peak", "MiB", 7, 0, smi_peak },
	{ 'm', "rdmem", "GB/s", 8, 3, smi_rdmem },
	{ 'm', "wrmem", "GB/s", 8, 3, smi_wrmem },
	{ 't', "rxpci", "GB/s", 8, 3, smi_rxpci },
	{ 't', "txpci", "GB/s", 8, 3, smi_txpci },
	{ 'r', "rdrdma", "GB/s", 8, 3, smi_rdrdma },
	{ 'r', "wrrdma", "GB/s", 8, 3, smi_wrrdma },
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

static void print_values(const struct smi_options *options, const struct smi_row *row)
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

static void print_row(const struct smi_options *options, const struct smi_row *row,
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
		if (smi_vf_of(row->card))
			printf(" %3d", smi_vf_of(row->card));
		else
			printf(" %3s", "-");
	}
	print_values(options, row);
	if (row->process)
		printf(" %s", row->process->name);
	putchar('\n');
}

static void print_processes(const struct smi_snapshot *now, const struct smi_snapshot *then,
			    const struct smi_options *options)
{
	struct smi_row row;
	int i;

	for (i = 0; i < now->num_processes; i++) {
		if (!now->chosen[now->processes[i].card])
			continue;
		row = smi_process_row(now, then, i);
		print_row(options, &row, &now->time);
	}
}

void smi_monitor_rows(const struct smi_snapshot *now, const struct smi_snapshot *then,
		      const struct smi_host *host, const struct smi_options *options)
{
	struct smi_row row;
	int i;

	if (options->mode == SMI_PMON) {
		print_processes(now, then, options);
		return;
	}
	for (i = 0; i < now->num_cards; i++) {
		if (!now->chosen[i])
			continue;
		row = smi_card_row(now, then, i);
		row.host = host;
		print_row(options, &row, &now->time);
	}
}
