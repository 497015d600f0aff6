/* SPDX-License-Identifier: MIT */
/*
 * spyre-perf measures collectives. Every rank executes the same measurements; the numbers are
 * collected by a collective, and rank 0 prints them.
 */
#ifndef SPYRE_TOOLS_PERF_H
#define SPYRE_TOOLS_PERF_H

#include <stdbool.h>
#include <stdint.h>

#include <spyre/spyre.h>

#define PERF_OK 0
#define PERF_FAILED 1
#define PERF_USAGE 2

#define PERF_STICK 128u

/* Rows of the table: out of place and in place. */
enum perf_place {
	PERF_OUT_OF_PLACE,
	PERF_IN_PLACE,
	PERF_PLACES,
};

/* An element format of the command line. */
struct perf_format {
	const char *name;
	/* As host format of a layout, and as the elements that the card stores. */
	spyre_format host;
	spyre_format device;
	bool integer;
};

struct perf_operator {
	const char *name;
	spyre_reduce_op op;
};

struct perf_operation;

struct perf_options {
	const struct perf_operation *operation;
	const struct perf_format *format;
	const struct perf_operator *op;
	uint64_t min_bytes;
	uint64_t max_bytes;
	/* One of them is set. */
	uint64_t step_factor;
	uint64_t step_bytes;
	/* All ranks; those of this command: @local from @first on. */
	uint32_t ranks;
	uint32_t local;
	uint32_t first;
	uint32_t root;
	uint32_t iterations;
	uint32_t warmup;
	bool threads;
	bool check;
	bool blocking;
	bool json;
	/* File through which several commands share the id; NULL: this one has all ranks. */
	const char *id_file;
};

/* One rank of this command. */
struct perf_rank {
	const struct perf_options *options;
	uint32_t rank;
	spyre_context *context;
	spyre_comm *comm;
	spyre_stream *stream;
	/* Device memory for the largest size, and for the numbers of all ranks. */
	spyre_devptr send;
	spyre_devptr recv;
	spyre_devptr numbers;
	/* Host memory for the largest size. */
	uint8_t *host;
	uint32_t clock_khz;
};

/* A size: sticks of the whole tensor and of one rank's part, which can be equal. */
struct perf_size {
	uint64_t bytes;
	uint64_t part_bytes;
};

/* A call as an operation makes it. */
struct perf_call {
	struct perf_rank *rank;
	struct perf_size size;
	spyre_devptr send;
	spyre_devptr recv;
	spyre_layout whole;
	spyre_layout part;
};

/* A range of a rank's tensor that a rank receives. */
struct perf_source {
	/* Rank whose values these are, PERF_REDUCED for those of all ranks. */
	uint32_t rank;
	/* First byte in that rank's tensor. */
	uint64_t first;
	uint64_t bytes;
};

#define PERF_REDUCED UINT32_MAX

struct perf_operation {
	const char *name;
	const char *about;
	bool reduces;
	bool has_root;
	/* The whole tensor is divided among the ranks on this side. */
	bool divided;
	bool sends_part;
	bool receives_part;
	bool in_place;
	/* busbw is algbw times @scale * (n - 1) / n of n ranks, or times 1 if this is 0. */
	uint32_t scale;
	spyre_status (*run)(const struct perf_call *call);
	/* Describes the @i-th range that @rank receives. Returns false after the last one. */
	bool (*source)(const struct perf_rank *rank, const struct perf_size *size, uint32_t i,
		       struct perf_source *source);
};

/* Numbers of one size and place: the slowest rank's. */
struct perf_result {
	bool valid;
	double seconds;
	/* Modelled cycles of the card for one call; 0: not known. */
	uint64_t cycles;
	uint64_t wrong;
};

struct perf_row {
	struct perf_size size;
	struct perf_result result[PERF_PLACES];
};

/* options.c */
/* Returns false with the exit status if the command ends here. */
bool perf_parse_options(int argc, char **argv, struct perf_options *options, int *status);

/* operation.c */
extern const struct perf_operation perf_operations[];
struct perf_size perf_size_of(const struct perf_options *options, uint64_t bytes);
double perf_bus_factor(const struct perf_options *options);

/* data.c */
/* Fills @bytes at @to with the values of @rank from byte @first of its tensor on. */
void perf_fill(const struct perf_options *options, uint32_t rank, uint64_t first, uint8_t *to,
	       uint64_t bytes);
/* Counts the elements of @got that differ from those of @source. */
uint64_t perf_compare(const struct perf_options *options, const struct perf_source *source,
		      const uint8_t *got);
/* Makes the tables of values. Called once, before ranks start. */
bool perf_values_init(const struct perf_options *options);
/* The factor of PREMUL_SUM. */
#define PERF_FACTOR 0.375f

/* measure.c */
/* Measures one size. All ranks get the same @row. */
spyre_status perf_measure(struct perf_rank *rank, uint64_t bytes, struct perf_row *row);

/* ranks.c */
/* Runs all ranks of the command. Returns the exit status. */
int perf_run_ranks(const struct perf_options *options);

/* main.c */
/* All sizes of a rank whose communicator exists. Returns the exit status. */
int perf_rank_main(struct perf_rank *rank);

/* print.c */
struct perf_table;
struct perf_table *perf_table_open(const struct perf_rank *rank);
bool perf_table_row(struct perf_table *table, const struct perf_row *row);
/* Prints the average or, with --json, everything. Returns the exit status. */
int perf_table_close(struct perf_table *table);
void perf_table_drop(struct perf_table *table);

#endif /* SPYRE_TOOLS_PERF_H */
