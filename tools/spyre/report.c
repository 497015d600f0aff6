// SPDX-License-Identifier: MIT
/* Prints the results of `spyre launch` as text or JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <yyjson.h>

#include "report.h"

#define CORNER_ROWS 4
#define CORNER_COLUMNS 6

/* The leading sub-matrix, at index 0 of the outer dimensions. */
struct corner {
	int64_t rows, columns; /* of the tensor */
	int64_t shown_rows, shown_columns;
};

static struct corner corner_of(const spyre_host_tensor *host)
{
	struct corner c = {1, 1, 1, 1};
	bool empty = !shape_elements(host->rank, host->size);

	if (host->rank > 0)
		c.columns = host->size[host->rank - 1];
	if (host->rank > 1)
		c.rows = host->size[host->rank - 2];
	c.shown_rows = empty ? 0 : c.rows < CORNER_ROWS ? c.rows : CORNER_ROWS;
	c.shown_columns = empty ? 0 : c.columns < CORNER_COLUMNS ? c.columns : CORNER_COLUMNS;
	return c;
}

static double corner_value(const struct tensor *tensor, int64_t row, int64_t column)
{
	int64_t index[SPYRE_MAX_RANK] = {0};
	uint32_t rank = tensor->host.rank;

	if (rank > 0)
		index[rank - 1] = column;
	if (rank > 1)
		index[rank - 2] = row;
	return tensor_value(tensor, index);
}

static void print_corner(const struct tensor *tensor)
{
	struct corner c = corner_of(&tensor->host);

	for (int64_t row = 0; row < c.shown_rows; row++) {
		fputs("   ", stdout);
		for (int64_t column = 0; column < c.shown_columns; column++)
			printf(" %10.6g", corner_value(tensor, row, column));
		puts(c.columns > c.shown_columns ? " …" : "");
	}
	if (c.rows > c.shown_rows && c.shown_rows)
		puts("             …");
}

static void print_tensor(const struct tensor *tensor)
{
	char shape[160];

	shape_format(tensor->host.rank, tensor->host.size, shape, sizeof(shape));
	printf("%s %u: %s %s", tensor->output ? "output" : "input", tensor->position, shape,
	       shape_format_name(tensor->host.format));
	if (tensor->output)
		printf(", checksum %016" PRIx64, tensor_checksum(tensor));
	if (tensor->path)
		printf(", %s", tensor->path);
	else if (!tensor->output)
		printf(", %s", tensor_init_name(tensor->init));
	putchar('\n');
	if (tensor->output)
		print_corner(tensor);
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct spread {
	uint64_t min, median;
};

/* Returns the spread of one field over all samples; @offset is that of a uint64_t. */
static struct spread spread_of(const struct run *run, size_t offset)
{
	uint64_t *values = calloc(run->launches, sizeof(*values));
	struct spread s = {0, 0};

	if (!values)
		return s;
	for (uint32_t i = 0; i < run->launches; i++)
		values[i] = *(const uint64_t *)((const char *)&run->samples[i] + offset);
	qsort(values, run->launches, sizeof(*values), compare_u64);
	s.min = values[0];
	s.median = values[run->launches / 2];
	free(values);
	return s;
}

static void print_stats(const struct run *run)
{
	struct spread wall = spread_of(run, offsetof(struct run_sample, wall_ns));
	struct spread host = spread_of(run, offsetof(struct run_sample, host_ns));
	struct spread cycles = spread_of(run, offsetof(struct run_sample, cycles));

	printf("launches            %12u\n", run->launches);
	printf("modelled cycles     %12" PRIu64 " per launch, %.3f us at %u MHz\n", cycles.median,
	       cycles.median * 1e3 / run->device.clock_khz, run->device.clock_khz / 1000);
	printf("multiply-adds       %12" PRIu64 " per launch\n", run->kernel_info.macs);
	printf("LPDDR5 bytes        %12" PRIu64 " read, %" PRIu64 " written per launch\n",
	       run->kernel_info.bytes_read, run->kernel_info.bytes_written);
	printf("host, launch to end %12.3f us min, %.3f us median\n", wall.min / 1e3,
	       wall.median / 1e3);
	printf("host, executing     %12.3f us min, %.3f us median\n", host.min / 1e3,
	       host.median / 1e3);
}

void report_text(const struct run *run, const struct tensor_list *list, bool stats)
{
	const spyre_kernel_info *info = &run->kernel_info;

	printf("%s on card %d (%s, %s): %u SDSC%s, %u cores, %u arguments\n", info->name,
	       run->device.index, run->device.bus_id,
	       run->device.backend == SPYRE_BACKEND_DRM ? "drm" : "embedded", info->num_sdscs,
	       info->num_sdscs == 1 ? "" : "s", info->num_cores, info->num_args);
	for (uint32_t i = 0; i < list->count; i++)
		print_tensor(&list->at[i]);
	if (stats)
		print_stats(run);
}

static void add_spread(yyjson_mut_doc *doc, yyjson_mut_val *root, const char *name, struct spread s)
{
	yyjson_mut_val *object = yyjson_mut_obj_add_obj(doc, root, name);

	yyjson_mut_obj_add_uint(doc, object, "min", s.min);
	yyjson_mut_obj_add_uint(doc, object, "median", s.median);
}

static void add_corner(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct tensor *tensor)
{
	yyjson_mut_val *rows = yyjson_mut_obj_add_arr(doc, object, "corner");
	struct corner c = corner_of(&tensor->host);

	for (int64_t row = 0; row < c.shown_rows; row++) {
		yyjson_mut_val *values = yyjson_mut_arr_add_arr(doc, rows);

		for (int64_t column = 0; column < c.shown_columns; column++)
			yyjson_mut_arr_add_real(doc, values, corner_value(tensor, row, column));
	}
}

static void add_tensor(yyjson_mut_doc *doc, yyjson_mut_val *array, const struct tensor *tensor)
{
	yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, array);
	yyjson_mut_val *shape;
	char text[1024];

	yyjson_mut_obj_add_uint(doc, object, "arg_index", tensor->arg_index);
	shape = yyjson_mut_obj_add_arr(doc, object, "shape");
	for (uint32_t d = 0; d < tensor->host.rank; d++)
		yyjson_mut_arr_add_sint(doc, shape, tensor->host.size[d]);
	yyjson_mut_obj_add_str(doc, object, "dtype", shape_format_name(tensor->host.format));
	spyre_layout_format_string(&tensor->layout, text, sizeof(text));
	yyjson_mut_obj_add_strcpy(doc, object, "layout", text);
	yyjson_mut_obj_add_uint(doc, object, "device_bytes", spyre_layout_bytes(&tensor->layout));
	if (tensor->path)
		yyjson_mut_obj_add_str(doc, object, "file", tensor->path);
	else
		yyjson_mut_obj_add_null(doc, object, "file");
	if (!tensor->output)
		return;
	snprintf(text, sizeof(text), "%016" PRIx64, tensor_checksum(tensor));
	yyjson_mut_obj_add_strcpy(doc, object, "checksum", text);
	add_corner(doc, object, tensor);
}

static void add_kernel(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct run *run)
{
	yyjson_mut_val *kernel = yyjson_mut_obj_add_obj(doc, root, "kernel");
	const spyre_kernel_info *info = &run->kernel_info;

	yyjson_mut_obj_add_str(doc, kernel, "name", info->name);
	yyjson_mut_obj_add_uint(doc, kernel, "arguments", info->num_args);
	yyjson_mut_obj_add_uint(doc, kernel, "sdscs", info->num_sdscs);
	yyjson_mut_obj_add_uint(doc, kernel, "cores", info->num_cores);
	yyjson_mut_obj_add_uint(doc, kernel, "lx_bytes", info->lx_bytes);
	yyjson_mut_obj_add_uint(doc, kernel, "pool_bytes", info->pool_bytes);
	yyjson_mut_obj_add_uint(doc, kernel, "program_bytes", info->program_bytes);
	yyjson_mut_obj_add_uint(doc, kernel, "bytes_read", info->bytes_read);
	yyjson_mut_obj_add_uint(doc, kernel, "bytes_written", info->bytes_written);
	yyjson_mut_obj_add_uint(doc, kernel, "macs", info->macs);
}

int report_json(const struct run *run, const struct run_options *options,
		const struct tensor_list *list)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *device, *inputs, *outputs;
	char *text;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_uint(doc, root, "schema_version", 1);
	yyjson_mut_obj_add_str(doc, root, "directory", options->directory);
	device = yyjson_mut_obj_add_obj(doc, root, "device");
	yyjson_mut_obj_add_sint(doc, device, "index", run->device.index);
	yyjson_mut_obj_add_str(doc, device, "bus_id", run->device.bus_id);
	yyjson_mut_obj_add_str(doc, device, "backend",
			       run->device.backend == SPYRE_BACKEND_DRM ? "drm" : "embedded");
	yyjson_mut_obj_add_uint(doc, device, "clock_hz", run->device.clock_khz * 1000ull);
	add_kernel(doc, root, run);
	yyjson_mut_obj_add_sint(doc, root, "stream", options->stream);
	yyjson_mut_obj_add_uint(doc, root, "launches", run->launches);
	add_spread(doc, root, "cycles", spread_of(run, offsetof(struct run_sample, cycles)));
	add_spread(doc, root, "wall_ns", spread_of(run, offsetof(struct run_sample, wall_ns)));
	add_spread(doc, root, "host_ns", spread_of(run, offsetof(struct run_sample, host_ns)));
	inputs = yyjson_mut_obj_add_arr(doc, root, "inputs");
	outputs = yyjson_mut_obj_add_arr(doc, root, "outputs");
	for (uint32_t i = 0; i < list->count; i++)
		add_tensor(doc, list->at[i].output ? outputs : inputs, &list->at[i]);
	text = yyjson_mut_write(doc, YYJSON_WRITE_INF_AND_NAN_AS_NULL, NULL);
	yyjson_mut_doc_free(doc);
	if (!text)
		return -1;
	puts(text);
	free(text);
	return 0;
}
