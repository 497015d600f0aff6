/* SPDX-License-Identifier: MIT */
/* Values of a card or a process between two snapshots, for dmon, pmon and top. */
#ifndef SMI_RATES_H
#define SMI_RATES_H

#include "tools/smi/smi.h"

/* Load of the host between two readings; NAN: unknown. */
struct smi_host {
	double cpu_percent;		/* summed over the processors, as in top */
	double memory_percent;
	uint64_t busy, idle;		/* of the last reading, in ticks */
};

/* host.c: reads the load since the last call; a first one sets only the memory. */
void smi_read_host(struct smi_host *host);

/* The parts of a row; NULL: there was no such card or process at the last round. */
struct smi_row {
	const spyre_telemetry_card *card, *old_card;
	const spyre_telemetry_process *process, *old_process;
	int index;			/* of the card */
	const struct smi_host *host;
};

struct smi_row smi_card_row(const struct smi_snapshot *now, const struct smi_snapshot *then,
			    int card);
struct smi_row smi_process_row(const struct smi_snapshot *now, const struct smi_snapshot *then,
			       int process);

/* The number of a virtual function, from its card's name; 0: a whole card. */
int smi_vf_of(const spyre_telemetry_card *card);

/* Returns NAN for a value that is not available, or that needs an earlier round. */
typedef double smi_get_value(const struct smi_row *row);

/* Percentages; those of the units are shares of the modelled cycles of all cores. */
smi_get_value smi_busy, smi_pt, smi_sfu;
/* 10^9 bytes per second of host time. */
smi_get_value smi_rdmem, smi_wrmem, smi_rxpci, smi_txpci, smi_rdrdma, smi_wrrdma;
/* MiB. */
smi_get_value smi_used, smi_peak;
/* Submissions per second. */
smi_get_value smi_jobs;
/* Watts, degrees Celsius, MHz; of cards only. */
smi_get_value smi_power, smi_temperature, smi_clock;
/* Percent; only if the row has a host. */
smi_get_value smi_host_cpu, smi_host_memory;

#endif /* SMI_RATES_H */
