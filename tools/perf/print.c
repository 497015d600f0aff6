// SPDX-License-Identifier: MIT
/* The table, and the JSON object. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "tools/perf/perf.h"

struct perf_table {
	const struct perf_rank *rank;
	const struct perf_options *options;
	yyjson_mut_doc *doc;
	yyjson_mut_val *rows;
	/* For the average. */
	double bus_bandwidths;
	uint32_t count;
	uint64_t wrong;
};

static const char *op_name(const struct perf_options *options)
{
	return options->operation->reduces ? options->op->name : "none";
}

static int root_of(const struct perf_options *options)
{
	return options->operation->has_root ? (int)options->root : -1;
}

static uint64_t count_of(const struct perf_options *options, const struct perf_size *size)
{
	return size->bytes / spyre_format_bytes(options->format->device);
}

/* GB/s of @bytes in @seconds. */
static double bandwidth(uint64_t bytes, double seconds)
{
	return seconds > 0 ? (double)bytes / seconds * 1e-9 : 0;
}

/* 0: not known. */
static double modelled_bandwidth(const struct perf_table *table, uint64_t bytes, uint64_t cycles)
{
	if (!cycles || !table->rank->clock_khz)
		return 0;
	return bandwidth(bytes, (double)cycles / (table->rank->clock_khz * 1e3)) *
	       perf_bus_factor(table->options);
}

static void print_header(const struct perf_rank *rank)
{
	const struct perf_options *options = rank->options;
	spyre_comm_info info = { .struct_size = sizeof(info) };

	spyre_comm_get_info(rank->comm, &info);
	printf("# %s: %u ranks as %s, transport %s, %u calls timed after %u, %s\n",
	       options->operation->name, options->ranks, options->threads ? "threads" : "processes",
	       info.transport, options->iterations, options->warmup,
	       options->check ? "results checked" : "results not checked");
	printf("# %49s %41s\n", "out of place", "in place");
	printf("# %11s %11s %6s %6s %4s %10s %8s %8s %8s %6s %10s %8s %8s %8s %6s\n", "size",
	       "count", "type", "redop", "root", "time", "algbw", "busbw", "model", "#wrong", "time",
	       "algbw", "busbw", "model", "#wrong");
	printf("# %11s %11s %6s %6s %4s %10s %8s %8s %8s %6s %10s %8s %8s %8s %6s\n", "B",
	       "elements", "", "", "", "us", "GB/s", "GB/s", "GB/s", "", "us", "GB/s", "GB/s",
	       "GB/s", "");
	/* A reader of a file or a pipe sees that the communicator exists. */
	fflush(stdout);
}

struct perf_table *perf_table_open(const struct perf_rank *rank)
{
	struct perf_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->rank = rank;
	table->options = rank->options;
	if (!rank->options->json) {
		print_header(rank);
		return table;
	}
	table->doc = yyjson_mut_doc_new(NULL);
	table->rows = table->doc ? yyjson_mut_arr(table->doc) : NULL;
	if (table->rows)
		return table;
	perf_table_drop(table);
	return NULL;
}

void perf_table_drop(struct perf_table *table)
{
	if (table)
		yyjson_mut_doc_free(table->doc);
	free(table);
}

static void print_result(const struct perf_table *table, const struct perf_row *row,
			 enum perf_place place)
{
	const struct perf_result *result = &row->result[place];
	const double algbw = bandwidth(row->size.bytes, result->seconds);
	char wrong[24] = "N/A";

	if (!result->valid) {
		printf(" %10s %8s %8s %8s %6s", "-", "-", "-", "-", "-");
		return;
	}
	if (table->options->check)
		snprintf(wrong, sizeof(wrong), "%" PRIu64, result->wrong);
	printf(" %10.2f %8.3f %8.3f %8.3f %6s", result->seconds * 1e6, algbw,
	       algbw * perf_bus_factor(table->options),
	       modelled_bandwidth(table, row->size.bytes, result->cycles), wrong);
}

static void print_row(const struct perf_table *table, const struct perf_row *row)
{
	const struct perf_options *options = table->options;

	printf("  %11" PRIu64 " %11" PRIu64 " %6s %6s %4d", row->size.bytes,
	       count_of(options, &row->size), options->format->name, op_name(options),
	       root_of(options));
	for (int place = 0; place < PERF_PLACES; place++)
		print_result(table, row, place);
	putchar('\n');
	fflush(stdout);
}

static bool add_result(struct perf_table *table, yyjson_mut_val *object, const struct perf_row *row,
		       enum perf_place place)
{
	static const char *const keys[] = { "out_of_place", "in_place" };
	const struct perf_result *result = &row->result[place];
	const double algbw = bandwidth(row->size.bytes, result->seconds);
	yyjson_mut_doc *doc = table->doc;
	yyjson_mut_val *entry;

	if (!result->valid)
		return yyjson_mut_obj_add_null(doc, object, keys[place]);
	entry = yyjson_mut_obj(doc);
	return entry && yyjson_mut_obj_add_val(doc, object, keys[place], entry) &&
	       yyjson_mut_obj_add_real(doc, entry, "time_us", result->seconds * 1e6) &&
	       yyjson_mut_obj_add_real(doc, entry, "algbw", algbw) &&
	       yyjson_mut_obj_add_real(doc, entry, "busbw",
				       algbw * perf_bus_factor(table->options)) &&
	       yyjson_mut_obj_add_uint(doc, entry, "cycles", result->cycles) &&
	       yyjson_mut_obj_add_real(doc, entry, "modelled_busbw",
				       modelled_bandwidth(table, row->size.bytes,
							  result->cycles)) &&
	       (table->options->check ?
		yyjson_mut_obj_add_uint(doc, entry, "wrong", result->wrong) :
		yyjson_mut_obj_add_null(doc, entry, "wrong"));
}

static bool add_row(struct perf_table *table, const struct perf_row *row)
{
	yyjson_mut_doc *doc = table->doc;
	yyjson_mut_val *object = yyjson_mut_obj(doc);

	return object && yyjson_mut_arr_append(table->rows, object) &&
	       yyjson_mut_obj_add_uint(doc, object, "bytes", row->size.bytes) &&
	       yyjson_mut_obj_add_uint(doc, object, "count",
				       count_of(table->options, &row->size)) &&
	       add_result(table, object, row, PERF_OUT_OF_PLACE) &&
	       add_result(table, object, row, PERF_IN_PLACE);
}

bool perf_table_row(struct perf_table *table, const struct perf_row *row)
{
	for (int place = 0; place < PERF_PLACES; place++) {
		const struct perf_result *result = &row->result[place];

		if (!result->valid)
			continue;
		table->bus_bandwidths += bandwidth(row->size.bytes, result->seconds) *
					 perf_bus_factor(table->options);
		table->count++;
		table->wrong += result->wrong;
	}
	if (table->doc)
		return add_row(table, row);
	print_row(table, row);
	return true;
}

/* Completes the object and prints it. */
static bool print_document(struct perf_table *table, double average)
{
	const struct perf_options *options = table->options;
	spyre_comm_info info = { .struct_size = sizeof(info) };
	yyjson_mut_val *root = yyjson_mut_obj(table->doc);
	yyjson_mut_doc *doc = table->doc;
	char *text;
	bool good;

	spyre_comm_get_info(table->rank->comm, &info);
	yyjson_mut_doc_set_root(doc, root);
	good = yyjson_mut_obj_add_str(doc, root, "operation", options->operation->name) &&
	       yyjson_mut_obj_add_uint(doc, root, "ranks", options->ranks) &&
	       yyjson_mut_obj_add_str(doc, root, "as", options->threads ? "threads" : "processes") &&
	       yyjson_mut_obj_add_strcpy(doc, root, "transport", info.transport) &&
	       yyjson_mut_obj_add_str(doc, root, "type", options->format->name) &&
	       yyjson_mut_obj_add_str(doc, root, "redop", op_name(options)) &&
	       yyjson_mut_obj_add_int(doc, root, "root", root_of(options)) &&
	       yyjson_mut_obj_add_uint(doc, root, "iterations", options->iterations) &&
	       yyjson_mut_obj_add_uint(doc, root, "clock_khz", table->rank->clock_khz) &&
	       yyjson_mut_obj_add_val(doc, root, "sizes", table->rows) &&
	       yyjson_mut_obj_add_real(doc, root, "average_busbw", average);
	text = good ? yyjson_mut_write(doc, YYJSON_WRITE_PRETTY, NULL) : NULL;
	if (!text)
		return false;
	puts(text);
	free(text);
	return true;
}

int perf_table_close(struct perf_table *table)
{
	const double average = table->count ? table->bus_bandwidths / table->count : 0;
	const uint64_t wrong = table->wrong;
	bool good = true;

	if (table->doc)
		good = print_document(table, average);
	else
		printf("# average bus bandwidth: %.4f GB/s\n", average);
	perf_table_drop(table);
	if (!good) {
		fputs("spyre-perf: no memory for the JSON text\n", stderr);
		return PERF_FAILED;
	}
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "spyre-perf: cannot write to standard output: %s\n",
			strerror(errno));
		return PERF_FAILED;
	}
	if (wrong)
		fprintf(stderr, "spyre-perf: %" PRIu64 " elements are wrong\n", wrong);
	return wrong ? PERF_FAILED : PERF_OK;
}
