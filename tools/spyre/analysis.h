/* SPDX-License-Identifier: MIT */
/* The limits of the kernels of a trace, and the possible gains. */
#ifndef SPYRE_TOOL_ANALYSIS_H
#define SPYRE_TOOL_ANALYSIS_H

#include "trace_read.h"

/* Peaks of the model in 16-bit multiply-adds and bytes per cycle (docs/timing.md). */
#define PEAK_MACS_OF_CORE 1024
#define PEAK_LPDDR_BYTES 100

/* The resources that can determine the time of a phase. */
enum bound {
	BOUND_PT,
	BOUND_SFU,
	BOUND_DMA,
	BOUND_LX,
	BOUND_RING,
	BOUND_LPDDR,
	/* Barriers, and cores that only issue instructions. */
	BOUND_LAUNCH,
	BOUNDS,
};

/* A kernel: the sums over its launches. All times are modelled cycles. */
struct kernel {
	const char *name;
	uint64_t launches, cycles, bytes_read, bytes_written, macs;
	/* Launches, and cycles, of which the trace has the time of cores. */
	uint64_t detailed, detailed_cycles;
	uint64_t bound[BOUNDS];
	uint64_t phases;
	/* Cores that phases use, and those of the card, each times the time of the cores. */
	double used_core_cycles, all_core_cycles;
	/* Cycles in which cores of a phase work, and those of its slowest one times all of them. */
	double busy_core_cycles, longest_core_cycles;
	uint64_t lx_bytes, lx_moved, card_cores;
};

enum advice_kind {
	ADVICE_LPDDR,
	ADVICE_IDLE_CORES,
	ADVICE_BALANCE,
	ADVICE_LAUNCH,
	ADVICE_COPIES,
};

/* The largest possible gain, in cycles of the whole trace. */
struct advice {
	enum advice_kind kind;
	const struct kernel *kernel;	/* NULL for copies */
	double cycles;
};

struct analysis {
	const struct trace *trace;
	struct kernel *kernel;		/* in the order of their cycles */
	size_t num_kernels;
	uint64_t cycles;		/* of all kernels */
	uint64_t copies, copy_cycles, copy_bytes;
	struct advice *advice;		/* the largest gain first */
	size_t num_advice;
};

extern const char *const bound_names[BOUNDS];

/* Returns 0, or -1 with @why: the file's order of events is none of libspyre, or no memory. */
int analysis_make(struct analysis *a, const struct trace *trace, struct text *why);
void analysis_free(struct analysis *a);

/* The resource behind most of the kernel's time; BOUNDS if the trace has no time of cores. */
enum bound analysis_bound(const struct kernel *kernel);
/* A sentence with the numbers of an advice. */
void analysis_sentence(const struct analysis *a, const struct advice *advice, struct text *to);
/* Bytes that the kernel moves from and to LPDDR5. */
uint64_t analysis_bytes(const struct kernel *kernel);
double analysis_us(const struct analysis *a, double cycles);

void analysis_text(const struct analysis *a);
/* These return an exit_code. */
int analysis_json(const struct analysis *a);
int analysis_html(const struct analysis *a, const char *title);

#endif /* SPYRE_TOOL_ANALYSIS_H */
