/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The card as its host (kernel module or libspyre) sees it: runs a verified
 * program, a checked DMA descriptor, a fill or a copy on memory that the host has
 * already resolved and checked. Nothing here allocates, sleeps by itself or calls
 * the operating system; struct spyre_host provides what the card needs.
 */
#ifndef SPYRE_MODEL_CARD_H
#define SPYRE_MODEL_CARD_H

#include "dma.h"
#include "program.h"

#define SPYRE_CLOCK_HZ 1500000000ull
#define SPYRE_LPDDR_BYTES_PER_S 204800000000ull

struct spyre_unit;		/* an arithmetic unit (simd/unit.h) */

/* Scratch of one host thread for packed tiles; not part of the card's state. */
#define SPYRE_SCRATCH_BYTES (3u << 20)

/* Results of the SFU's functions of one DL16 number (table.h); the same for all units. */
#define SPYRE_TABLES_BYTES (14u * (65536 * 2 + 64))

struct spyre_worker {
	void *scratch;		/* SPYRE_SCRATCH_BYTES, 64-byte aligned */
};

typedef void (*spyre_work_fn)(void *arg, u32 index, struct spyre_worker *worker);

struct spyre_host {
	const struct spyre_unit *unit;
	/*
	 * SPYRE_TABLES_BYTES, 64-byte aligned, which the host's threads fill as they need
	 * them. The host sets them to zero once; without them (NULL) every element is
	 * computed.
	 */
	void *tables;
	/*
	 * Calls fn(arg, i, worker) once for each i < n on any threads and returns
	 * after all have returned. @self is the worker of the calling thread, which
	 * takes part.
	 */
	void (*parallel)(struct spyre_host *host, struct spyre_worker *self,
			 u32 n, spyre_work_fn fn, void *arg);
	/* Bracket vector arithmetic, at most about 50 us at a time; may be NULL. */
	void (*fpu_begin)(struct spyre_host *host);
	void (*fpu_end)(struct spyre_host *host);
	/* Called between tiles outside FPU sections; may be NULL. */
	void (*relax)(struct spyre_host *host);
	/* Polled between tiles; true stops the work soon; may be NULL. */
	bool (*should_stop)(struct spyre_host *host, void *job);
};

/*
 * The units that are built in, the only table of them: index 0 is "scalar", each further one is
 * faster, beyond the last is NULL. The host has to know which of them its processor runs.
 */
const struct spyre_unit *spyre_unit_at(u32 index);
/* A unit by its name; NULL if it is not built in. */
const struct spyre_unit *spyre_unit_find(const char *name);
const char *spyre_unit_name(const struct spyre_unit *unit);

struct spyre_exec {
	struct spyre_host *host;
	void *job;		/* passed to should_stop */
	const struct spyre_program *prog;
	/* operand[i]: at least prog->operands[i].extent bytes, 128-aligned */
	u8 *const *operand;
	/*
	 * lx[c]: at least header->lx_bytes bytes of core c; NULL if that is 0. If the
	 * program keeps LX, the memory that the context's earlier programs left; the host
	 * never passes on that of another context.
	 */
	u8 *const *lx;
};

/*
 * Runs the program to its end. Returns SPYRE_STOP_NONE, _CANCELLED, or _INDEX if GATHER
 * or SCATTER found an index that is not below its extent; the operands that the program
 * writes are then undefined, and nothing else.
 */
enum spyre_stop spyre_card_exec(struct spyre_exec *x, struct spyre_worker *self);

/*
 * Runs a descriptor that spyre_dma_check() accepted. @device has device_bytes
 * bytes; @host_mem is the host span, @host_bytes long. Never touches a byte outside
 * either: each block is checked again before it is moved, and one that would leave
 * them ends the transfer with SPYRE_STOP_EXTENT, which indicates a defect of the
 * engine. Otherwise returns SPYRE_STOP_NONE or _CANCELLED.
 */
enum spyre_stop spyre_card_dma(struct spyre_host *host, void *job,
			       struct spyre_worker *self,
			       const struct spyre_dma_desc *desc, u8 *device,
			       u8 *host_mem, u64 host_bytes);

/* Fills @bytes with a pattern of 1, 2, 4, 8 or 16 bytes. */
enum spyre_stop spyre_card_fill(struct spyre_host *host, void *job,
				struct spyre_worker *self, u8 *device, u64 bytes,
				const void *pattern, u32 pattern_bytes);

/* Copies @bytes; the ranges may overlap. */
enum spyre_stop spyre_card_copy(struct spyre_host *host, void *job,
				struct spyre_worker *self, u8 *dst,
				const u8 *src, u64 bytes);

/* Modelled cost of a fill or copy that reads and writes this many LPDDR5 bytes. */
void spyre_cost_linear(u64 bytes_read, u64 bytes_written,
		       struct spyre_counters *cost);

/*
 * Power and temperature follow from the load: milliwatts and milli-degrees of a
 * card that was busy for @busy_ns out of @window_ns and executed @macs in that
 * window.
 */
void spyre_power_model(u64 busy_ns, u64 window_ns, u64 macs, u64 bytes,
		       u32 *milliwatt, u32 *millicelsius);

/* Microjoules that a card consumes in @window_ns with this load. */
u64 spyre_energy_model(u64 busy_ns, u64 window_ns, u64 macs, u64 bytes);

#endif /* SPYRE_MODEL_CARD_H */
