// SPDX-License-Identifier: MIT
/* Trace files: see trace_read.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace_read.h"

static const char *const kind_names[TRACE_KINDS] = {
	[TRACE_KERNEL] = "kernel",
	[TRACE_COPY] = "copy",
	[TRACE_FILL] = "fill",
	[TRACE_PEER_COPY] = "peer copy",
	[TRACE_COLLECTIVE] = "collective",
	[TRACE_RUNTIME] = "runtime",
	[TRACE_LAUNCH] = "launch",
	[TRACE_PHASE] = "phase",
	[TRACE_CORE] = "core",
	[TRACE_ENGINE] = "engine",
};

void trace_add(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

const char *trace_kind_name(enum trace_kind kind)
{
	return kind_names[kind];
}

/* Opening does not wait: a fifo without a writer is refused like any other file of its kind. */
static FILE *open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && !file)
		close(fd);
	return file;
}

/* Reads the whole file, NUL-terminated for the parser's error positions. */
static char *read_all(const char *path, size_t *bytes, struct text *why)
{
	FILE *file = open_file(path);
	char *data = NULL;
	struct stat st;

	if (!file || fstat(fileno(file), &st)) {
		write_text(why, "cannot read %s: %s", path, strerror(errno));
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		write_text(why, "cannot read %s: it is not a regular file", path);
		goto out;
	}
	if (st.st_size > (off_t)TRACE_MAX_BYTES) {
		write_text(why, "cannot read %s: it has %lld bytes, the limit is %u; trace fewer "
			   "operations", path, (long long)st.st_size, TRACE_MAX_BYTES);
		goto out;
	}
	data = malloc((size_t)st.st_size + 1);
	if (!data) {
		write_text(why, "cannot read %s: no memory for its %lld bytes", path,
			   (long long)st.st_size);
		goto out;
	}
	*bytes = fread(data, 1, (size_t)st.st_size, file);
	if (ferror(file)) {
		write_text(why, "cannot read %s: %s", path, strerror(errno));
		free(data);
		data = NULL;
	}
out:
	if (file)
		fclose(file);
	return data;
}

static yyjson_doc *parse(const char *path, struct text *why)
{
	yyjson_read_err err;
	yyjson_doc *doc;
	size_t bytes = 0;
	char *data = read_all(path, &bytes, why);

	if (!data)
		return NULL;
	doc = yyjson_read_opts(data, bytes, YYJSON_READ_NOFLAG, NULL, &err);
	free(data);
	if (!doc)
		write_text(why, "cannot read %s: it is not JSON: %s at byte %zu of %zu; is it "
			   "truncated?", path, err.msg, err.pos, bytes);
	return doc;
}

static uint64_t number(yyjson_val *object, const char *name)
{
	yyjson_val *value = yyjson_obj_get(object, name);

	return yyjson_is_uint(value) ? yyjson_get_uint(value) : 0;
}

/* A time in microseconds; NaN if it is missing, negative or beyond 300 years. */
static double time_of(yyjson_val *event, const char *name)
{
	yyjson_val *value = yyjson_obj_get(event, name);
	double us = yyjson_is_num(value) ? yyjson_get_num(value) : NAN;

	return us >= 0 && us < TRACE_MAX_US ? us : NAN;
}

static bool kind_of(yyjson_val *event, enum trace_kind *kind)
{
	const char *category = yyjson_get_str(yyjson_obj_get(event, "cat"));
	const char *phase = yyjson_get_str(yyjson_obj_get(event, "ph"));

	if (!category || !phase || strcmp(phase, "X"))
		return false;
	for (int i = 0; i < TRACE_KINDS; i++) {
		if (strcmp(category, kind_names[i]))
			continue;
		*kind = (enum trace_kind)i;
		return true;
	}
	return false;
}

/* Numbers of a file are limited, so that sums and products of a hostile one do not wrap. */
static uint64_t limited(yyjson_val *object, const char *name)
{
	const uint64_t value = number(object, name);

	return value < TRACE_MAX_NUMBER ? value : TRACE_MAX_NUMBER;
}

static void read_modelled(struct trace_event *e, yyjson_val *args)
{
	e->engine = yyjson_get_str(yyjson_obj_get(args, "engine"));
	e->start_cycle = limited(args, "start_cycle");
	e->core = limited(args, "core");
	e->cores = limited(args, "cores");
	e->core_cycles = limited(args, "core_cycles");
	e->lpddr_cycles = limited(args, "lpddr_cycles");
	e->barrier_cycles = limited(args, "barrier_cycles");
	e->lx_bytes = limited(args, "lx_bytes");
	e->lx_bytes_read = limited(args, "lx_bytes_read");
	e->lx_bytes_written = limited(args, "lx_bytes_written");
	e->card_cores = limited(args, "card_cores");
}

/* Returns -1 if the event is of a known kind and lacks what it needs. */
static int read_event(struct trace *trace, yyjson_val *from, size_t index, const char *path,
		      struct text *why)
{
	struct trace_event *e = &trace->event[trace->count];
	yyjson_val *args = yyjson_obj_get(from, "args");

	if (!yyjson_is_obj(from))
		return explain(why, "cannot read %s: event %zu is not an object", path, index);
	if (!kind_of(from, &e->kind))
		return 0;
	e->name = yyjson_get_str(yyjson_obj_get(from, "name"));
	e->start_us = time_of(from, "ts");
	e->duration_us = time_of(from, "dur");
	if (!e->name || isnan(e->start_us) || isnan(e->duration_us))
		return explain(why, "cannot read %s: event %zu of the category \"%s\" lacks a name "
			       "or its times", path, index, kind_names[e->kind]);
	e->pid = number(from, "pid");
	e->tid = number(from, "tid");
	e->cycles = limited(args, "cycles");
	e->bytes_read = limited(args, "bytes_read");
	e->bytes_written = limited(args, "bytes_written");
	e->macs = limited(args, "macs");
	e->rdma_read = limited(args, "rdma_read");
	e->rdma_written = limited(args, "rdma_written");
	e->bytes_sent = limited(args, "bytes_sent");
	e->bytes_received = limited(args, "bytes_received");
	e->group = limited(args, "group_id");
	e->sequence = limited(args, "sequence");
	e->has_sequence = yyjson_is_uint(yyjson_obj_get(args, "sequence"));
	if (e->kind >= TRACE_FIRST_MODELLED)
		read_modelled(e, args);
	if (e->kind < TRACE_FIRST_MODELLED && (!trace->end_us || e->start_us < trace->start_us))
		trace->start_us = e->start_us;
	if (e->kind < TRACE_FIRST_MODELLED && e->start_us + e->duration_us > trace->end_us)
		trace->end_us = e->start_us + e->duration_us;
	trace->count++;
	return 0;
}

static int read_events(struct trace *trace, const char *path, struct text *why)
{
	yyjson_val *root = yyjson_doc_get_root(trace->doc), *event;
	const char *writer;
	size_t i, n;

	trace->events = yyjson_obj_get(root, "traceEvents");
	trace->other = yyjson_obj_get(root, "otherData");
	writer = yyjson_get_str(yyjson_obj_get(trace->other, "writer"));
	if (!yyjson_is_arr(trace->events))
		return explain(why, "cannot read %s: it is JSON without the array \"traceEvents\" "
			       "of a trace", path);
	if (!writer || strncmp(writer, "libspyre ", 9))
		return explain(why, "cannot read %s: it is a trace, but not one of libspyre "
			       "(otherData.writer); make one with SPYRE_TRACE or 'spyre trace run'",
			       path);
	trace->clock_hz = number(trace->other, "clock_hz");
	if (trace->clock_hz < 1000000 || trace->clock_hz > 100000000000)
		return explain(why, "cannot read %s: its clock of %" PRIu64 " Hz (otherData.clock_hz) "
			       "is not between 1 MHz and 100 GHz", path, trace->clock_hz);
	trace->event = calloc(yyjson_arr_size(trace->events) + 1, sizeof(*trace->event));
	if (!trace->event)
		return explain(why, "cannot read %s: no memory for %zu events", path,
			       yyjson_arr_size(trace->events));
	yyjson_arr_foreach(trace->events, i, n, event) {
		if (read_event(trace, event, i, path, why))
			return -1;
		trace_add(&trace->unfinished, number(yyjson_obj_get(event, "args"), "operations"));
	}
	return 0;
}

int trace_read(const char *path, struct trace *trace, struct text *why)
{
	memset(trace, 0, sizeof(*trace));
	trace->doc = parse(path, why);
	if (!trace->doc)
		return -1;
	if (!read_events(trace, path, why))
		return 0;
	trace_close(trace);
	return -1;
}

void trace_close(struct trace *trace)
{
	yyjson_doc_free(trace->doc);
	free(trace->event);
	memset(trace, 0, sizeof(*trace));
}

static int by_kind_and_name(const void *a, const void *b)
{
	const struct trace_sum *x = a, *y = b;

	return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->name, y->name);
}

static int by_cycles(const void *a, const void *b)
{
	const struct trace_sum *x = a, *y = b;

	if (x->cycles != y->cycles)
		return x->cycles < y->cycles ? 1 : -1;
	if (x->duration_us != y->duration_us)
		return x->duration_us < y->duration_us ? 1 : -1;
	return by_kind_and_name(a, b);
}

static void sum_add(struct trace_sum *to, const struct trace_sum *more)
{
	trace_add(&to->count, more->count);
	trace_add(&to->cycles, more->cycles);
	trace_add(&to->bytes_read, more->bytes_read);
	trace_add(&to->bytes_written, more->bytes_written);
	trace_add(&to->macs, more->macs);
	trace_add(&to->rdma, more->rdma);
	to->duration_us += more->duration_us;
}

struct trace_sum *trace_sums(const struct trace *trace, size_t *count)
{
	struct trace_sum *sums = calloc(trace->count + 1, sizeof(*sums));
	size_t n = 0, all = 0;

	if (!sums)
		return NULL;
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_event *e = &trace->event[i];

		if (e->kind >= TRACE_FIRST_MODELLED)
			continue;
		sums[all] = (struct trace_sum){
			.kind = e->kind, .name = e->name, .count = 1, .cycles = e->cycles,
			.bytes_read = e->bytes_read, .bytes_written = e->bytes_written,
			.macs = e->macs, .duration_us = e->duration_us,
		};
		trace_add(&sums[all].rdma, e->rdma_read);
		trace_add(&sums[all].rdma, e->rdma_written);
		if (e->kind == TRACE_COLLECTIVE) {
			sums[all].bytes_read = e->bytes_sent;
			sums[all].bytes_written = e->bytes_received;
		}
		all++;
	}
	qsort(sums, all, sizeof(*sums), by_kind_and_name);
	for (size_t i = 0; i < all; i++) {
		if (n && !by_kind_and_name(&sums[n - 1], &sums[i]))
			sum_add(&sums[n - 1], &sums[i]);
		else
			sums[n++] = sums[i];
	}
	qsort(sums, n, sizeof(*sums), by_cycles);
	*count = n;
	return sums;
}

void trace_print_name(FILE *out, const char *name, int width)
{
	int n = 0;

	for (const unsigned char *s = (const unsigned char *)name; *s; s++) {
		/* The bytes after the first one of a character take no column. */
		if ((*s & 0xc0) != 0x80 && n++ == width)
			return;
		/* Control characters have one byte, or are U+0080 to U+009F. */
		if (*s == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0)
			fputc('?', out), s++;
		else
			fputc(*s < 0x20 || *s == 0x7f ? '?' : *s, out);
	}
	for (; n < width; n++)
		fputc(' ', out);
}

void trace_print_summary(const struct trace *trace, const struct trace_sum *sums, size_t count)
{
	const double cycles_per_us = (double)trace->clock_hz / 1e6;

	printf("%-12s %-40s %8s %14s %14s %14s %14s\n", "kind", "name", "count", "modelled us",
	       "host us", "bytes read", "bytes written");
	for (size_t i = 0; i < count; i++) {
		printf("%-12s ", kind_names[sums[i].kind]);
		trace_print_name(stdout, sums[i].name, 40);
		printf(" %8" PRIu64 " %14.3f %14.3f %14" PRIu64 " %14" PRIu64 "\n", sums[i].count,
		       (double)sums[i].cycles / cycles_per_us, sums[i].duration_us,
		       sums[i].bytes_read, sums[i].bytes_written);
	}
	printf("%.3f ms from the first event to the last one", (trace->end_us - trace->start_us) /
	       1e3);
	if (trace->unfinished)
		printf("; %" PRIu64 " operations had not finished", trace->unfinished);
	putchar('\n');
}
