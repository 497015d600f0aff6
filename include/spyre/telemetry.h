/* SPDX-License-Identifier: MIT */
/*
 * Telemetry: what spyre-smi shows. Nothing here opens or initialises a card:
 * kernel cards are read from sysfs and /proc, embedded ones from the small
 * file that each process with an embedded card publishes for its own user.
 */
#ifndef SPYRE_TELEMETRY_H
#define SPYRE_TELEMETRY_H

#include <spyre/device.h>
#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A reading of one card. UINT64_MAX, UINT32_MAX: not available. Since 0.1. */
typedef struct spyre_telemetry_card {
	/** in: sizeof(struct spyre_telemetry_card). */
	size_t struct_size;
	spyre_device_properties properties;
	/** Process that hosts an embedded card, 0 for kernel cards. */
	int32_t host_pid;
	/** CLOCK_MONOTONIC of the reading. */
	uint64_t timestamp_ns;
	uint64_t memory_total;
	uint64_t memory_used;
	/** Running totals. Utilisation = difference of busy_ns over time. */
	uint64_t busy_ns;
	uint64_t jobs;
	uint64_t errors;
	uint64_t cycles;
	uint64_t macs;
	uint64_t bytes_read;
	uint64_t bytes_written;
	/**
	 * Share of the last second that the card was busy, percent: between two
	 * readings of this process that lie 0.1 to 2 seconds apart.
	 */
	uint32_t utilization;
	/** Modelled. */
	uint32_t power_mw;
	uint32_t power_limit_mw;
	uint32_t temperature_mc;
	/** Resets since the module was loaded; not available of embedded cards. */
	uint64_t generation;
	/** Version of the kernel module, "" if unknown and for embedded cards. */
	char driver_version[32];
} spyre_telemetry_card;

/** A process that uses a card. Since 0.1. */
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
} spyre_telemetry_process;

/**
 * Reads all cards: kernel cards in order, then embedded cards of running
 * processes of this user (all users' for root) by process id. Writes at most
 * @capacity entries of @stride bytes (sizeof(spyre_telemetry_card)) and the full
 * number to @count; @cards may be NULL if @capacity is 0. Takes 0.1 s longer when
 * no reading of the last 2 seconds is there to compare with; with @capacity 0
 * never. Since 0.1.
 * Errors: INVALID_ARGUMENT, NO_PERMISSION (sysfs), OUT_OF_HOST_MEMORY, SYSTEM.
 */
SPYRE_API spyre_status spyre_telemetry_cards(spyre_telemetry_card *cards, size_t stride,
					     int capacity, int *count);
/**
 * Reads all processes that hold a card open, as far as /proc shows them to
 * this user; a card shared with a forked child counts for the parent. Since 0.1.
 */
SPYRE_API spyre_status spyre_telemetry_processes(spyre_telemetry_process *processes,
						 size_t stride, int capacity, int *count);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_TELEMETRY_H */
