// SPDX-License-Identifier: MIT
/*
 * The counters of cards and processes: one table for sysfs, fdinfo and the pages of
 * embedded cards, so that each of them has all counters that the others have.
 */
#include "config.h"

#include <string.h>

#include "libspyre/telemetry/page.h"
#include "libspyre/telemetry/sources.h"

/* A counter that sysfs, fdinfo and pages have; its field has the same name in all structs. */
#define COUNTER(name, attribute, key)                                                             \
	{ attribute, key, offsetof(spyre_telemetry_card, name),                                    \
	  offsetof(spyre_telemetry_process, name), offsetof(struct spyre_telemetry_page, name) }

const struct spyre_counter spyre_telemetry_counters[] = {
	COUNTER(jobs, "jobs", "spyre-jobs"),
	COUNTER(errors, "errors", "spyre-errors"),
	COUNTER(cycles, "cycles", "spyre-cycles"),
	COUNTER(macs, "macs", "spyre-macs"),
	COUNTER(bytes_read, "bytes_read", "spyre-bytes-read"),
	COUNTER(bytes_written, "bytes_written", "spyre-bytes-written"),
	COUNTER(rdma_read, "rdma_read", "spyre-rdma-read"),
	COUNTER(rdma_written, "rdma_written", "spyre-rdma-written"),
	COUNTER(pcie_rx_bytes, "pcie_rx_bytes", "spyre-pcie-rx"),
	COUNTER(pcie_tx_bytes, "pcie_tx_bytes", "spyre-pcie-tx"),
	COUNTER(pt_cycles, "pt_cycles", "spyre-pt-cycles"),
	COUNTER(sfu_cycles, "sfu_cycles", "spyre-sfu-cycles"),
	COUNTER(dma_cycles, "dma_cycles", "spyre-dma-cycles"),
	COUNTER(launches, "launches", "spyre-launches"),
	COUNTER(copies, "copies", "spyre-copies"),
	COUNTER(memory_peak, "lpddr_peak", "spyre-peak-lpddr5"),
	COUNTER(faults_timeout, "faults_timeout", "spyre-faults-timeout"),
	COUNTER(faults_access, "faults_access", "spyre-faults-access"),
	COUNTER(faults_escape, "faults_escape", "spyre-faults-escape"),
	COUNTER(faults_compute, "faults_compute", "spyre-faults-compute"),
	/* Follows from the others: pages do not have it. */
	{ "energy_mj", "spyre-energy-mj", offsetof(spyre_telemetry_card, energy_mj),
	  offsetof(spyre_telemetry_process, energy_mj), 0 },
	/* Of a card and of contexts. */
	{ "generation", NULL, offsetof(spyre_telemetry_card, generation), 0,
	  offsetof(struct spyre_telemetry_page, generation) },
	{ NULL, "spyre-resets", 0, offsetof(spyre_telemetry_process, resets),
	  offsetof(struct spyre_telemetry_page, resets) },
};

const int spyre_telemetry_num_counters =
	sizeof(spyre_telemetry_counters) / sizeof(spyre_telemetry_counters[0]);

uint64_t *spyre_counter_of_card(const struct spyre_counter *counter, spyre_telemetry_card *card)
{
	return counter->card ? (uint64_t *)((char *)card + counter->card) : NULL;
}

uint64_t *spyre_counter_of_process(const struct spyre_counter *counter,
				   spyre_telemetry_process *process)
{
	return counter->process ? (uint64_t *)((char *)process + counter->process) : NULL;
}
