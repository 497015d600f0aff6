// SPDX-License-Identifier: MIT
/* spyre trace merge: one file of the traces of several ranks, in the time of the first one. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/output.h"
#include "trace_merge.h"
#include "trace_read.h"

#define MAX_FILES 64
/* Numbers of processes in a file are below it (libspyre/runtime/trace.h); 64 files fit 31 bits. */
#define PIDS_OF_FILE 30000000u
#define FLOWS_OF_FILE (1ull << 44)

/* The end of a collective, which all ranks reach at nearly the same time. */
struct meeting {
	uint64_t group, sequence;
	double end_us;
};

struct merge {
	const char *output;
	char *temporary;
	FILE *out;
	bool any;			/* an event has been written */
	/* Of the first file: the clock, and the meetings in their order. */
	uint64_t clock_hz;
	char host[128], boot[128];
	double realtime_us;
	struct meeting *meeting;
	size_t num_meetings;
};

static int by_place(const void *a, const void *b)
{
	const struct meeting *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->sequence != y->sequence ? (x->sequence < y->sequence ? -1 : 1) : 0;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static const char *other_text(const struct trace *trace, const char *name)
{
	const char *text = yyjson_get_str(yyjson_obj_get(trace->other, name));

	return text ? text : "";
}

static double other_number(const struct trace *trace, const char *name)
{
	yyjson_val *value = yyjson_obj_get(trace->other, name);

	return yyjson_is_num(value) ? yyjson_get_num(value) : 0;
}

/* The collectives that have a place in the order of their communicator. */
static struct meeting *meetings_of(const struct trace *trace, size_t *count)
{
	struct meeting *list = calloc(trace->count + 1, sizeof(*list));

	*count = 0;
	for (size_t i = 0; list && i < trace->count; i++) {
		const struct trace_event *e = &trace->event[i];

		if (e->kind == TRACE_COLLECTIVE && e->has_sequence)
			list[(*count)++] = (struct meeting){ e->group, e->sequence,
							     e->start_us + e->duration_us };
	}
	if (list)
		qsort(list, *count, sizeof(*list), by_place);
	return list;
}

/* Median of the differences to the ends of the same collectives in the first file; NaN if none. */
static double collectives_offset(const struct merge *m, const struct trace *trace)
{
	size_t count, n = 0;
	struct meeting *list = meetings_of(trace, &count);
	double *difference = calloc(count + 1, sizeof(*difference)), offset = NAN;

	for (size_t i = 0; list && difference && i < count; i++) {
		const struct meeting *same = bsearch(&list[i], m->meeting, m->num_meetings,
						     sizeof(*same), by_place);

		if (same)
			difference[n++] = same->end_us - list[i].end_us;
	}
	if (n) {
		qsort(difference, n, sizeof(*difference), by_value);
		offset = difference[n / 2];
	}
	free(difference);
	free(list);
	return offset;
}

/* Microseconds to add to the times of a file; *how says where they come from. */
static double offset_of(const struct merge *m, const struct trace *trace, const char **how)
{
	double offset;

	*how = "the same clock";
	if (*m->boot && !strcmp(m->boot, other_text(trace, "boot_id")) &&
	    !strcmp(m->host, other_text(trace, "host")))
		return 0;
	*how = "collectives";
	offset = collectives_offset(m, trace);
	if (!isnan(offset))
		return offset;
	*how = "the system's time";
	return other_number(trace, "realtime_minus_clock_ns") / 1e3 - m->realtime_us;
}

static int set_number(yyjson_mut_val *event, const char *name, uint64_t limit, uint64_t add,
		      struct text *why)
{
	yyjson_mut_val *value = yyjson_mut_obj_get(event, name);

	if (!value)
		return 0;
	if (!yyjson_mut_is_uint(value) || yyjson_mut_get_uint(value) >= limit)
		return explain(why, "an event has a \"%s\" that is not a number below %" PRIu64, name,
			       limit);
	yyjson_mut_set_uint(value, yyjson_mut_get_uint(value) + add);
	return 0;
}

/* Names a process after its rank. */
static void name_process(yyjson_mut_doc *doc, yyjson_mut_val *event, uint64_t rank)
{
	yyjson_mut_val *args = yyjson_mut_obj_get(event, "args");
	const char *name = yyjson_mut_get_str(yyjson_mut_obj_get(args, "name"));
	char text[320];

	if (!yyjson_mut_equals_str(yyjson_mut_obj_get(event, "name"), "process_name") || !name ||
	    strlen(name) > 256)
		return;
	snprintf(text, sizeof(text), "rank %" PRIu64 ": %s", rank, name);
	yyjson_mut_obj_put(args, yyjson_mut_str(doc, "name"), yyjson_mut_strcpy(doc, text));
}

static int move_event(yyjson_mut_doc *doc, yyjson_mut_val *event, uint64_t index, uint64_t rank,
		      double offset, struct text *why)
{
	yyjson_mut_val *ts = yyjson_mut_obj_get(event, "ts");
	double us;

	if (set_number(event, "pid", PIDS_OF_FILE, index * PIDS_OF_FILE, why) ||
	    set_number(event, "id", FLOWS_OF_FILE, index * FLOWS_OF_FILE, why))
		return -1;
	name_process(doc, event, rank);
	if (!ts)
		return 0;
	us = yyjson_mut_get_num(ts) + offset;
	if (!yyjson_mut_is_num(ts) || !(us >= 0 && us < TRACE_MAX_US))
		return explain(why, "the time of an event, moved by %g us, is not a number from 0 to "
			       "%g", offset, TRACE_MAX_US);
	yyjson_mut_set_real(ts, us);
	return 0;
}

static int write_event(struct merge *m, yyjson_val *from, uint64_t index, uint64_t rank,
		       double offset, struct text *why)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *event = doc ? yyjson_val_mut_copy(doc, from) : NULL;
	char *json = NULL;
	int err = -1;

	if (!event)
		write_text(why, "no memory for an event");
	else
		err = move_event(doc, event, index, rank, offset, why);
	if (!err) {
		json = yyjson_mut_val_write(event, 0, NULL);
		err = json ? 0 : explain(why, "no memory for an event");
	}
	if (!err) {
		fputs(m->any ? ",\n" : "\n", m->out);
		fputs(json, m->out);
		m->any = true;
	}
	free(json);
	yyjson_mut_doc_free(doc);
	return err;
}

/* Takes the time of the first file. */
static int take_clock(struct merge *m, const struct trace *trace, struct text *why)
{
	m->clock_hz = trace->clock_hz;
	snprintf(m->host, sizeof(m->host), "%s", other_text(trace, "host"));
	snprintf(m->boot, sizeof(m->boot), "%s", other_text(trace, "boot_id"));
	m->realtime_us = other_number(trace, "realtime_minus_clock_ns") / 1e3;
	m->meeting = meetings_of(trace, &m->num_meetings);
	fprintf(m->out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"writer\":\"libspyre merged\","
		"\"clock_hz\":%" PRIu64 "},\"traceEvents\":[", m->clock_hz);
	return m->meeting ? 0 : explain(why, "no memory for its collectives");
}

static int merge_file(struct merge *m, const char *path, uint64_t index, struct text *why)
{
	struct text reason = { "" };
	struct trace trace;
	yyjson_val *event, *number;
	const char *how = "";
	uint64_t rank;
	double offset = 0;
	size_t i, n;
	int err = 0;

	if (trace_read(path, &trace, why))
		return -1;
	number = yyjson_obj_get(trace.other, "rank");
	rank = yyjson_get_uint(number);
	if (number && !yyjson_is_uint(number))
		err = explain(&reason, "its rank (otherData.rank) is not a natural number");
	if (!err && !index)
		err = take_clock(m, &trace, &reason);
	if (!err && trace.clock_hz != m->clock_hz)
		err = explain(&reason, "its card has a clock of %" PRIu64 " Hz, that of the first "
			      "file has %" PRIu64, trace.clock_hz, m->clock_hz);
	if (!err)
		offset = offset_of(m, &trace, &how);
	if (!err)
		yyjson_arr_foreach(trace.events, i, n, event)
			if (!err)
				err = write_event(m, event, index, rank, offset, &reason);
	if (err)
		write_text(why, "cannot merge %s: %s", path, reason.s);
	else
		printf("%s: rank %" PRIu64 ", moved by %.3f us (%s)\n", path, rank, offset, how);
	trace_close(&trace);
	return err;
}

/* The output appears when it is complete. */
static int finish(struct merge *m, int code)
{
	int err;

	if (!code)
		fputs("\n]}\n", m->out);
	err = ferror(m->out);
	if (fclose(m->out) || err)
		code = code ? code : complain(EXIT_DEVICE, "cannot write %s: %s", m->temporary,
					      strerror(errno));
	if (!code && rename(m->temporary, m->output))
		code = complain(EXIT_DEVICE, "cannot create %s: %s", m->output, strerror(errno));
	if (code)
		unlink(m->temporary);
	free(m->temporary);
	free(m->meeting);
	return code;
}

static int merge(const char *output, char **files, int count)
{
	const char *refused = output_refused(output);
	struct merge m = { .output = output };
	int code = EXIT_OK, fd = -1;
	struct text why;

	if (refused)
		return complain(EXIT_USAGE, "cannot replace %s: %s; name another file with -o",
				output, refused);
	if (asprintf(&m.temporary, "%s.XXXXXX", output) < 0)
		return complain(EXIT_DEVICE, "no memory for the name of %s", output);
	fd = mkostemp(m.temporary, 0);
	if (fd >= 0)
		fchmod(fd, 0644);
	m.out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!m.out) {
		code = complain(EXIT_DEVICE, "cannot create %s: %s", m.temporary, strerror(errno));
		free(m.temporary);
		return code;
	}
	for (int i = 0; !code && i < count; i++)
		if (merge_file(&m, files[i], (uint64_t)i, &why))
			code = complain(EXIT_USAGE, "%s", why.s);
	return finish(&m, code);
}

int trace_merge(int argc, char **argv)
{
	static const struct option options[] = {
		{"output", required_argument, NULL, 'o'},
		{NULL, 0, NULL, 0},
	};
	const char *output = NULL;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":o:", options, NULL)) != -1) {
		if (option != 'o')
			return complain_option(option, argv, options);
		output = optarg;
	}
	if (!output || !*output)
		return complain_usage("no output file given; add -o FILE");
	if (optind == argc)
		return complain_usage("no traces to merge given");
	if (argc - optind > MAX_FILES)
		return complain_usage("cannot merge %d traces: the limit is %d", argc - optind,
				      MAX_FILES);
	return finish_output(merge(output, argv + optind, argc - optind));
}
