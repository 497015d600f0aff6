/* SPDX-License-Identifier: MIT */
/*
 * The page that a process with an embedded card publishes for spyre-smi. One
 * file per open card, ${SPYRE_TELEMETRY_DIR:-/tmp}/spyre-<uid>/<pid>.<card>.<n>,
 * in a folder that only the user can read. Internal.
 */
#ifndef SPYRE_TELEMETRY_PAGE_H
#define SPYRE_TELEMETRY_PAGE_H

#include <stdatomic.h>

#include <spyre/device.h>

#define SPYRE_TELEMETRY_MAGIC 0x4d545953u	/* "SYTM" */
#define SPYRE_TELEMETRY_VERSION 2u

struct spyre_telemetry_page {
	uint32_t magic;
	uint32_t version;
	uint32_t bytes;
	int32_t pid;
	uint64_t start_time;	/* field 22 of /proc/pid/stat: tells pid reuse */
	uint32_t uid;
	uint32_t sequence;	/* last part of the file's name */
	char process[64];
	spyre_device_properties properties;
	uint64_t memory_total;
	_Atomic uint64_t memory_used;
	_Atomic uint64_t busy_ns;	/* finished busy periods */
	_Atomic uint64_t busy_since_ns;	/* CLOCK_MONOTONIC, 0 when idle */
	_Atomic uint64_t jobs;
	_Atomic uint64_t errors;
	_Atomic uint64_t cycles;
	_Atomic uint64_t macs;
	_Atomic uint64_t bytes_read;
	_Atomic uint64_t bytes_written;
	_Atomic uint64_t rdma_read;	/* since version 2 */
	_Atomic uint64_t rdma_written;
};

/*
 * Publishes a page for a card that this process opened. Does not fail: without
 * a file the page is private memory (logged at "warn") and, if memory is short,
 * NULL; callers check for NULL before they update it.
 */
struct spyre_telemetry_page *spyre_telemetry_publish(const spyre_device_properties *properties);
void spyre_telemetry_unpublish(struct spyre_telemetry_page *page);

#endif /* SPYRE_TELEMETRY_PAGE_H */
