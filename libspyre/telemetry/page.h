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
#define SPYRE_TELEMETRY_VERSION 5u

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
	_Atomic uint64_t busy;		/* see spyre_telemetry_busy_word() */
	_Atomic uint64_t busy_ns;	/* finished periods; written and read after @busy */
	_Atomic uint64_t jobs;
	_Atomic uint64_t errors;
	_Atomic uint64_t cycles;
	_Atomic uint64_t macs;
	_Atomic uint64_t bytes_read;
	_Atomic uint64_t bytes_written;
	_Atomic uint64_t rdma_read;	/* since version 2 */
	_Atomic uint64_t rdma_written;
	_Atomic uint64_t pcie_rx_bytes;	/* since version 3, like the rest; 4: two flags in @busy */
	_Atomic uint64_t pcie_tx_bytes;
	_Atomic uint64_t pt_cycles;
	_Atomic uint64_t sfu_cycles;
	_Atomic uint64_t dma_cycles;
	_Atomic uint64_t launches;
	_Atomic uint64_t copies;
	_Atomic uint64_t memory_peak;
	_Atomic uint64_t faults_timeout;
	_Atomic uint64_t faults_access;
	_Atomic uint64_t faults_escape;
	_Atomic uint64_t faults_compute;
	_Atomic uint64_t generation;	/* resets of the card */
	_Atomic uint64_t resets;	/* of contexts */
	uint64_t since_ns;		/* CLOCK_MONOTONIC at which the card was opened */
	uint64_t pid_namespace;		/* in which @pid is a number; since version 5 */
};

/*
 * The busy time in one word, so that no reader sees a part of a change: the time in the upper 62
 * bits, modulo 2^62, and two flags. While idle it is the time so far; while busy, the time that
 * was at CLOCK_MONOTONIC 0 if the period had begun then. A period is marked as ending before the
 * clock is read for its end: a reader that saw it without the mark has read its own clock before.
 */
#define SPYRE_TELEMETRY_BUSY 1u
#define SPYRE_TELEMETRY_ENDING 2u

static inline uint64_t spyre_telemetry_busy_word(uint64_t finished_ns, uint64_t since_ns)
{
	return since_ns ? (finished_ns - since_ns) << 2 | SPYRE_TELEMETRY_BUSY : finished_ns << 2;
}

/*
 * Returns the busy time at @now_ns, which was read before the page: a period that began in
 * between has added nothing to @finished_ns. Later readings are never less, unless the word has
 * SPYRE_TELEMETRY_ENDING: the reader reads again, since the mark lasts for some nanoseconds.
 */
static inline uint64_t spyre_telemetry_busy_ns(uint64_t word, uint64_t finished_ns,
					       uint64_t now_ns)
{
	uint64_t busy = word & SPYRE_TELEMETRY_BUSY ? ((word >> 2) + now_ns) & UINT64_MAX >> 2 :
						      word >> 2;

	return (int64_t)(busy << 2) < 0 || busy < finished_ns ? finished_ns : busy;
}

/* Adds to a total; most of them do not change with most commands. */
static inline void spyre_telemetry_count(_Atomic uint64_t *total, uint64_t more)
{
	if (more)
		atomic_fetch_add_explicit(total, more, memory_order_relaxed);
}

/*
 * Publishes a page for a card that this process opened. Does not fail: without
 * a file the page is private memory (logged at "warn") and, if memory is short,
 * NULL; callers check for NULL before they update it.
 */
struct spyre_telemetry_page *spyre_telemetry_publish(const spyre_device_properties *properties);
void spyre_telemetry_unpublish(struct spyre_telemetry_page *page);

#endif /* SPYRE_TELEMETRY_PAGE_H */
