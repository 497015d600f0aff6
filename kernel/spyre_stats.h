/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Totals of work: of a card, a VF or a context.
 */
#ifndef SPYRE_STATS_H
#define SPYRE_STATS_H

#include <linux/types.h>

#include "model/program.h"

/*
 * The totals that sysfs, fdinfo and DEV_QUERY (struct drm_spyre_counters and
 * struct drm_spyre_context_info) show: name of the attribute and field, and fdinfo's
 * key.  In sysfs all of them are private.
 */
#define SPYRE_COUNTERS(X)				\
	X(jobs, "jobs")					\
	X(errors, "errors")				\
	X(cycles, "cycles")				\
	X(macs, "macs")					\
	X(bytes_read, "bytes-read")			\
	X(bytes_written, "bytes-written")		\
	X(rdma_read, "rdma-read")			\
	X(rdma_written, "rdma-written")			\
	X(pcie_rx_bytes, "pcie-rx")			\
	X(pcie_tx_bytes, "pcie-tx")			\
	X(pt_cycles, "pt-cycles")			\
	X(sfu_cycles, "sfu-cycles")			\
	X(dma_cycles, "dma-cycles")			\
	X(launches, "launches")				\
	X(copies, "copies")				\
	X(energy_mj, "energy-mj")			\
	X(faults_timeout, "faults-timeout")		\
	X(faults_access, "faults-access")		\
	X(faults_escape, "faults-escape")		\
	X(faults_compute, "faults-compute")

/**
 * struct spyre_stats - running totals
 */
struct spyre_stats {
	/** @busy_ns: card: time during which at least one job ran; context: sum of its jobs. */
	u64 busy_ns;
	/** @jobs: jobs that ended. */
	u64 jobs;
	/** @errors: of these, failed, timed out or cancelled. */
	u64 errors;
	/** @faults: contexts that failed, by enum spyre_fault_kind. */
	u64 faults[SPYRE_FAULT_KIND_COUNT];
	/** @cost: modelled totals. */
	struct spyre_counters cost;
};

static inline void spyre_stats_add(struct spyre_stats *sum, const struct spyre_stats *more)
{
	u32 i;

	sum->busy_ns += more->busy_ns;
	sum->jobs += more->jobs;
	sum->errors += more->errors;
	for (i = 0; i < SPYRE_FAULT_KIND_COUNT; i++)
		sum->faults[i] += more->faults[i];
	spyre_counters_add(&sum->cost, &more->cost);
}

#endif
