/* SPDX-License-Identifier: MIT */
/*
 * Telemetry: the readings that spyre-smi displays. These calls do not open or
 * initialise a card. Cards of the kernel module are read from sysfs and /proc,
 * embedded cards from a small file that their process publishes for its own user.
 */
#ifndef SPYRE_TELEMETRY_H
#define SPYRE_TELEMETRY_H

#include <spyre/device.h>
#include <spyre/peer.h>
#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A reading of one card. UINT64_MAX and UINT32_MAX mean "not available". Since 0.1. */
typedef struct spyre_telemetry_card {
	/** in: sizeof(struct spyre_telemetry_card). */
	size_t struct_size;
	spyre_device_properties properties;
	/** Process that hosts an embedded card; 0 for cards of the kernel module. */
	int32_t host_pid;
	/** CLOCK_MONOTONIC of the reading. */
	uint64_t timestamp_ns;
	uint64_t memory_total;
	uint64_t memory_used;
	/** Totals since the card started. Utilisation is the growth of busy_ns over time. */
	uint64_t busy_ns;
	uint64_t jobs;		/* submissions, also those in @errors */
	uint64_t errors;	/* that failed, timed out or were cancelled */
	uint64_t cycles;
	uint64_t macs;
	uint64_t bytes_read;	/* of LPDDR5 */
	uint64_t bytes_written;
	/**
	 * Percentage of time that the card was busy between two readings of this
	 * process, 0.1 to 2 seconds apart.
	 */
	uint32_t utilization;
	/** Modelled power in milliwatts and temperature in thousandths of a degree Celsius. */
	uint32_t power_mw;
	uint32_t power_limit_mw;
	uint32_t temperature_mc;
	/** Resets since the module was loaded, or since the process of an embedded card started. */
	uint64_t generation;
	/** Version of the kernel module, "" if unknown and for embedded cards. */
	char driver_version[32];
	/** Bytes that peer copies of this card brought from other cards, and took to them. */
	uint64_t rdma_read;
	uint64_t rdma_written;
	/**
	 * Physical card among those of the kernel module, or of the process @host_pid; virtual
	 * functions have that of their card. -1: the module executes no copies between cards.
	 */
	int32_t physical_card;
	uint32_t reserved;
	/**
	 * Host processors and NUMA nodes that are near the card, as lists such as "0-3,8". Those of
	 * an embedded card are those that its process may use. "" if unknown.
	 */
	char cpu_list[128];
	char numa_list[32];
	/** Bytes that DMA of this card brought from host memory, and took to it. */
	uint64_t pcie_rx_bytes;
	uint64_t pcie_tx_bytes;
	/** Modelled cycles of the PT arrays and of the SFUs, each summed over the cores. */
	uint64_t pt_cycles;
	uint64_t sfu_cycles;
	/** Modelled cycles of DMA, copies and fills. */
	uint64_t dma_cycles;
	/** Programs that were run to their end; DMA transfers, copies and fills. */
	uint64_t launches;
	uint64_t copies;
	/** The most bytes that were in use at a time. */
	uint64_t memory_peak;
	/** Modelled energy in millijoules. */
	uint64_t energy_mj;
	/** Faults of contexts, by kind (docs/error-and-reset.md). */
	uint64_t faults_timeout;
	uint64_t faults_access;
	uint64_t faults_escape;
	uint64_t faults_compute;
} spyre_telemetry_card;

/** A process that has a card open. UINT64_MAX means "not available". Since 0.1. */
typedef struct spyre_telemetry_process {
	/** in: sizeof(struct spyre_telemetry_process). */
	size_t struct_size;
	/** Index of the card in the list of spyre_telemetry_cards(). */
	int card;
	int32_t pid;
	uint32_t uid;
	char name[64];
	uint64_t memory_used;
	uint64_t busy_ns;
	/** Totals of the contexts that the process has open, as those of a card. */
	uint64_t jobs;
	uint64_t errors;
	uint64_t cycles;
	uint64_t macs;
	uint64_t bytes_read;
	uint64_t bytes_written;
	uint64_t rdma_read;
	uint64_t rdma_written;
	/** Bytes that DMA of this process brought from host memory, and took to it. */
	uint64_t pcie_rx_bytes;
	uint64_t pcie_tx_bytes;
	/** Modelled cycles of the PT arrays and of the SFUs, each summed over the cores. */
	uint64_t pt_cycles;
	uint64_t sfu_cycles;
	/** Modelled cycles of DMA, copies and fills. */
	uint64_t dma_cycles;
	/** Programs that were run to their end; DMA transfers, copies and fills. */
	uint64_t launches;
	uint64_t copies;
	/** The most bytes that were in use at a time. */
	uint64_t memory_peak;
	/** Modelled energy in millijoules of its work, without the power of an idle card. */
	uint64_t energy_mj;
	/** Faults of contexts, by kind (docs/error-and-reset.md). */
	uint64_t faults_timeout;
	uint64_t faults_access;
	uint64_t faults_escape;
	uint64_t faults_compute;
	/** Resets of contexts. */
	uint64_t resets;
} spyre_telemetry_process;

/**
 * Reads all cards: cards of the kernel module in order, then embedded cards of running
 * processes of this user (of all users for root) by process id. Writes at most
 * @capacity entries of @stride bytes (sizeof(spyre_telemetry_card)) to @cards, which
 * may be NULL if @capacity is 0, and the number of all cards to @count.
 *
 * Utilisation needs a previous reading that is 0.1 to 2 seconds old; without one the
 * call takes 0.1 s longer, unless @capacity is 0. Since 0.1.
 * Errors: INVALID_ARGUMENT, NO_PERMISSION (sysfs), OUT_OF_HOST_MEMORY, SYSTEM.
 */
SPYRE_API spyre_status spyre_telemetry_cards(spyre_telemetry_card *cards, size_t stride,
					     int capacity, int *count);

/**
 * Returns in @path the way of copies between two cards of spyre_telemetry_cards(); it is the
 * same in both directions. A card with itself is SAME_CARD. Cards of the kernel module and
 * embedded ones, and those of two processes, have no path. The caller leaves @struct_size as
 * spyre_telemetry_cards() has set it. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_telemetry_peer_path(const spyre_telemetry_card *card,
						 const spyre_telemetry_card *peer,
						 spyre_peer_path *path);

/**
 * Reads all processes that have a card open, as far as /proc shows them to this user.
 * A card shared with a forked child counts for the parent. Writes at most @capacity
 * entries of @stride bytes (sizeof(spyre_telemetry_process)) to @processes, and the
 * number of all processes to @count. Since 0.1.
 * Errors: those of spyre_telemetry_cards().
 */
SPYRE_API spyre_status spyre_telemetry_processes(spyre_telemetry_process *processes,
						 size_t stride, int capacity, int *count);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_TELEMETRY_H */
