/* SPDX-License-Identifier: MIT */
/* The counters that cards and processes share, as rows of both tables of fields. */
#ifndef SMI_COUNTER_FIELDS_H
#define SMI_COUNTER_FIELDS_H

#include "tools/smi/smi.h"

/* Each reads the counter of the subject's process, or of its card if it has none. */
#define SMI_COUNTERS(X)                                                                            \
	X(jobs) X(errors) X(busy_ns) X(cycles) X(macs) X(bytes_read) X(bytes_written)              \
	X(rdma_read) X(rdma_written) X(pcie_rx_bytes) X(pcie_tx_bytes) X(pt_cycles) X(sfu_cycles)  \
	X(dma_cycles) X(launches) X(copies) X(memory_peak) X(energy_mj) X(faults_timeout)          \
	X(faults_access) X(faults_escape) X(faults_compute)

#define SMI_DECLARE(name) \
	void smi_get_##name(const struct smi_subject *subject, struct smi_value *value);
SMI_COUNTERS(SMI_DECLARE)
#undef SMI_DECLARE

#define SMI_MIB (1024.0 * 1024.0)
#define SMI_COUNT(name, json, label, section, get, help) \
	{ name, NULL, json, label, section, NULL, 1, 0, 1, get, help }
#define SMI_BYTES(name, json, label, section, get, help) \
	{ name, NULL, json, label, section, "MiB", SMI_MIB, 0, 1, get, help }

#define SMI_COUNTER_ROWS(section, of)                                                              \
	SMI_COUNT("jobs.completed", "jobs_completed_total", "Jobs", section, smi_get_jobs,         \
		  "Jobs completed."),                                                              \
	SMI_COUNT("jobs.failed", "jobs_failed_total", "Failed Jobs", section, smi_get_errors,      \
		  "Jobs that failed, timed out or were cancelled."),                               \
	{ "busy.time", NULL, "busy_seconds_total", "Busy Time", section, "ms", 1e6, 3, 1e9,        \
	  smi_get_busy_ns, "Host time during which at least one job " of " ran." },                \
	SMI_COUNT("launches", "launches_total", "Launches", section, smi_get_launches,             \
		  "Programs that were run to their end."),                                         \
	SMI_COUNT("copies", "copies_total", "Copies", section, smi_get_copies,                     \
		  "DMA transfers, copies and fills that were done."),                              \
	SMI_COUNT("cycles", "cycles_total", "Cycles", section, smi_get_cycles,                     \
		  "Modelled cycles."),                                                             \
	SMI_COUNT("cycles.pt", "pt_cycles_total", "PT Cycles", section, smi_get_pt_cycles,         \
		  "Modelled cycles in which PT arrays computed, summed over the cores."),          \
	SMI_COUNT("cycles.sfu", "sfu_cycles_total", "SFU Cycles", section, smi_get_sfu_cycles,     \
		  "Modelled cycles in which SFUs computed, summed over the cores."),               \
	SMI_COUNT("cycles.dma", "dma_cycles_total", "DMA Cycles", section, smi_get_dma_cycles,     \
		  "Modelled cycles of DMA, copies and fills."),                                    \
	SMI_COUNT("macs", "macs_total", "Multiply-Adds", section, smi_get_macs,                    \
		  "Multiply-adds of the PT arrays."),                                              \
	SMI_BYTES("memory.read", "memory_read_bytes_total", "Memory Read", section,                \
		  smi_get_bytes_read, "Device memory read by " of "."),                            \
	SMI_BYTES("memory.written", "memory_written_bytes_total", "Memory Written", section,       \
		  smi_get_bytes_written, "Device memory written by " of "."),                      \
	SMI_BYTES("pcie.rx", "pcie_rx_bytes_total", "Read from Host", section,                     \
		  smi_get_pcie_rx_bytes, "Bytes that DMA of " of " brought from host memory."),    \
	SMI_BYTES("pcie.tx", "pcie_tx_bytes_total", "Written to Host", section,                    \
		  smi_get_pcie_tx_bytes, "Bytes that DMA of " of " took to host memory."),         \
	SMI_BYTES("rdma.read", "rdma_read_bytes_total", "Read from Peers", section,                \
		  smi_get_rdma_read, "Bytes that copies of " of " brought from other cards."),     \
	SMI_BYTES("rdma.written", "rdma_written_bytes_total", "Written to Peers", section,         \
		  smi_get_rdma_written, "Bytes that copies of " of " took to other cards."),       \
	SMI_COUNT("faults.timeout", "faults_timeout_total", "Timeouts", section,                   \
		  smi_get_faults_timeout, "Contexts that failed because a job took too long."),    \
	SMI_COUNT("faults.access", "faults_access_total", "Access Faults", section,                \
		  smi_get_faults_access, "Contexts that failed at an access or an index."),        \
	SMI_COUNT("faults.escape", "faults_escape_total", "Escape Faults", section,                \
		  smi_get_faults_escape, "Contexts whose program exceeded what was verified."),    \
	SMI_COUNT("faults.compute", "faults_compute_total", "Compute Faults", section,             \
		  smi_get_faults_compute, "Contexts that failed in a core or the DMA engine.")

#endif /* SMI_COUNTER_FIELDS_H */
