/* SPDX-License-Identifier: MIT */
/* Values of a card or a process between two snapshots. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "tools/smi/rates.h"

static double seconds_between(const struct smi_row *row)
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
#define RATE(row, name) (GROWTH(row, name) / seconds_between(row))
#define VALUE(row, name) known((row)->process ? (row)->process->name : (row)->card->name)

#define GETTER(name) double smi_##name(const struct smi_row *row)

GETTER(busy)
{
	const double share = 100 * RATE(row, busy_ns) / 1e9;

	return share > 100 ? 100 : share;	/* fmin() would make 100 of an unknown one */
}

GETTER(rdmem) { return RATE(row, bytes_read) / 1e9; }
GETTER(wrmem) { return RATE(row, bytes_written) / 1e9; }
GETTER(rxpci) { return RATE(row, pcie_rx_bytes) / 1e9; }
GETTER(txpci) { return RATE(row, pcie_tx_bytes) / 1e9; }
GETTER(rdrdma) { return RATE(row, rdma_read) / 1e9; }
GETTER(wrrdma) { return RATE(row, rdma_written) / 1e9; }
GETTER(jobs) { return RATE(row, jobs); }
GETTER(used) { return VALUE(row, memory_used) / (1 << 20); }
GETTER(peak) { return VALUE(row, memory_peak) / (1 << 20); }

/* The share of the units' modelled time, which host time is not. An idle card uses none. */
static double unit_share(const struct smi_row *row, double cycles)
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

int smi_vf_of(const spyre_telemetry_card *card)
{
	const char *at = strstr(card->properties.name, " VF ");
	int vf = 0;

	return at && sscanf(at, " VF %d", &vf) == 1 ? vf : 0;
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

struct smi_row smi_card_row(const struct smi_snapshot *now, const struct smi_snapshot *then,
			    int card)
{
	return (struct smi_row){
		.card = &now->cards[card],
		.old_card = find_card(then, &now->cards[card]),
		.index = card,
	};
}

struct smi_row smi_process_row(const struct smi_snapshot *now, const struct smi_snapshot *then,
			       int process)
{
	struct smi_row row = smi_card_row(now, then, now->processes[process].card);

	row.process = &now->processes[process];
	row.old_process = find_process(then, row.old_card, row.process->pid);
	return row;
}
