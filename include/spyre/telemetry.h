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
	/**
	 * The most bytes that were in use at a time. That of a process with several contexts on a
	 * card of the kernel is the sum of each context's own peak, which they need not have had
	 * at the same time: an upper bound.
	 */
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

/** Kinds of events. Since 0.1. */
typedef enum spyre_telemetry_event_kind {
	/** A card appeared: a node of the kernel module, or the card of a process. */
	SPYRE_TELEMETRY_CARD_ADDED = 1,
	SPYRE_TELEMETRY_CARD_REMOVED = 2,
	/** The card was reset; @value is its new generation. */
	SPYRE_TELEMETRY_CARD_RESET = 3,
	/** The card was split into @value virtual functions, or joined (0). */
	SPYRE_TELEMETRY_CARD_VFS = 4,
	/** spyre_context_reset() succeeded; @value is the number of queues, 0 if unknown. */
	SPYRE_TELEMETRY_CONTEXT_RESET = 5,
	/** Work of a context failed on the card; @fault has the kind. */
	SPYRE_TELEMETRY_FAULT = 6,
	/** The library of a process wrote a RAS record; @value is its code, @record the text. */
	SPYRE_TELEMETRY_RAS = 7,
	/** @value events were overwritten before they were read. */
	SPYRE_TELEMETRY_LOST = 8,
} spyre_telemetry_event_kind;

/** An event. The texts are NUL-terminated and have no control characters. Since 0.1. */
typedef struct spyre_telemetry_event {
	/** in: sizeof(struct spyre_telemetry_event). */
	size_t struct_size;
	spyre_telemetry_event_kind kind;
	/** Of a FAULT, else SPYRE_FAULT_NONE. */
	spyre_fault fault;
	/** Nanoseconds since 1970 (CLOCK_REALTIME) at which it happened. */
	uint64_t time_ns;
	uint64_t value;
	/** drm-client-id of the context in fdinfo, on cards of the kernel module; 0 if unknown. */
	uint64_t context;
	/** Process that hosts an embedded card; 0 for cards of the kernel module. */
	int32_t host_pid;
	/** Process that reported the event; 0 if the kernel module did. */
	int32_t pid;
	/** User of @pid; UINT32_MAX if the kernel module reported the event. */
	uint32_t uid;
	uint32_t reserved;
	/** Card of the event, as in spyre_device_properties; "" if it concerns no card. */
	char bus_id[32];
	char uuid[40];
	/** Name of @pid, "" if unknown. */
	char process[64];
	/** Of RAS: the line of JSON that <spyre/ras.h> describes, else "". */
	char record[2048];
} spyre_telemetry_event;

/** A reader of events. One thread at a time may use it. Since 0.1. */
typedef struct spyre_telemetry_events spyre_telemetry_events;

/** Begin with the events that are still kept, not with those from now on. Since 0.1. */
#define SPYRE_TELEMETRY_EVENTS_KEPT 1u

/**
 * Opens a reader of events of all cards; @flags is 0 or SPYRE_TELEMETRY_EVENTS_KEPT. The caller
 * closes *@events with spyre_telemetry_events_close(). Events arrive in the order of their time
 * among those that are found together, at the latest a tenth of a second after they happened.
 *
 * Events of the kernel's cards are kept by the module (32 of each card, and 32 of its contexts),
 * those of processes in files of their user (two of 256 KiB). A user sees resets, VFs, coming
 * and going of the kernel's cards and everything of the own processes; faults and resets
 * of contexts on the kernel's cards are for root, unless the module was loaded with
 * counters_paranoid=0. Root sees everything. Since 0.1.
 * Errors: INVALID_ARGUMENT, NO_PERMISSION (sysfs), OUT_OF_HOST_MEMORY, SYSTEM.
 */
SPYRE_API spyre_status spyre_telemetry_events_open(uint32_t flags,
						   spyre_telemetry_events **events);

/**
 * Writes the next event to @event. Waits for it for at most @timeout_ns nanoseconds: 0 does not
 * wait, UINT64_MAX waits without a limit. Returns NOT_READY if there is none by then, or if a
 * signal handler of the thread ran meanwhile. Since 0.1.
 * Errors: INVALID_ARGUMENT, and those of spyre_telemetry_events_open().
 */
SPYRE_API spyre_status spyre_telemetry_events_next(spyre_telemetry_events *events,
						   uint64_t timeout_ns,
						   spyre_telemetry_event *event);

/**
 * Returns a descriptor that poll(), epoll and the like report as readable when there may be
 * events: call spyre_telemetry_events_next() with a timeout of 0 until it returns NOT_READY.
 * It belongs to @events; do not read or close it. -1 if @events is NULL. Since 0.1.
 */
SPYRE_API int spyre_telemetry_events_fd(const spyre_telemetry_events *events);

/** Closes @events, which may be NULL. Since 0.1. */
SPYRE_API void spyre_telemetry_events_close(spyre_telemetry_events *events);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_TELEMETRY_H */
