// SPDX-License-Identifier: MIT
/* The table and the JSON file of the results. */
#include "bench/bench.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <yyjson.h>

#define BENCH_SCHEMA 1

static double ratio(const struct bench_result *r)
{
	return r->value / r->peer_value;
}

static bool aim_met(const struct bench_result *r)
{
	const double found = r->aim_is_value ? r->value : ratio(r);

	return r->higher_is_better ? found >= r->aim : found <= r->aim;
}

static void cpu_model(char *model, size_t size)
{
	char line[256], *value;
	FILE *file = fopen("/proc/cpuinfo", "r");

	snprintf(model, size, "unknown CPU");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "model name", 10) || !(value = strchr(line, ':')))
			continue;
		value += strspn(value, ": \t");
		value[strcspn(value, "\n")] = 0;
		snprintf(model, size, "%s", value);
		break;
	}
	if (file)
		fclose(file);
}

/* One line that says on what the figures were measured. */
static void machine(char *text, size_t size, const struct bench_options *options)
{
	spyre_device_properties card = { .struct_size = sizeof(card) };
	const double gib = (double)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / (1 << 30);
	struct utsname system;
	char model[128], unit[64] = "";

	cpu_model(model, sizeof(model));
	if (uname(&system))
		memset(&system, 0, sizeof(system));
	if (!spyre_device_get_properties(0, &card))
		snprintf(unit, sizeof(unit), ", card %s%s%s", card.bus_id,
			 card.unit[0] ? " unit " : "", card.unit);
	snprintf(text, size, "%s, %ld CPUs (%d used), %.0f GiB, %s %s%s", model,
		 sysconf(_SC_NPROCESSORS_ONLN), options->threads, gib, system.sysname,
		 system.release, unit);
}

void bench_print_machine(const struct bench_options *options)
{
	char text[512];

	machine(text, sizeof(text), options);
	printf("%s\n", text);
}

void bench_print(const struct bench_report *report)
{
	printf("%-40s %9s %9s  %-7s %6s %8s  %-9s %s\n", "benchmark", "spyre", "peer", "unit",
	       "ratio", "at best", "aim", "peer is");
	for (int i = 0; i < report->count; i++) {
		const struct bench_result *r = &report->result[i];
		char aim[24] = "";

		if (r->aim > 0)
			snprintf(aim, sizeof(aim), "%s %.2g%s%s", r->higher_is_better ? ">=" : "<=",
				 r->aim, r->aim_is_value ? r->unit : "", aim_met(r) ? "" : " !");
		printf("%-40s %9.2f %9.2f  %-7s %6.2f %8.2f  %-9s %s\n", r->name, r->value,
		       r->peer_value, r->unit, ratio(r), r->best / r->peer_best, aim, r->peer);
	}
}

static void write_result(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct bench_result *r)
{
	yyjson_mut_val *entry = yyjson_mut_arr_add_obj(doc, list);

	yyjson_mut_obj_add_strcpy(doc, entry, "name", r->name);
	yyjson_mut_obj_add_strcpy(doc, entry, "unit", r->unit);
	yyjson_mut_obj_add_strcpy(doc, entry, "better", r->higher_is_better ? "higher" : "lower");
	yyjson_mut_obj_add_real(doc, entry, "value", r->value);
	yyjson_mut_obj_add_real(doc, entry, "spread_percent", r->spread);
	yyjson_mut_obj_add_strcpy(doc, entry, "peer", r->peer);
	yyjson_mut_obj_add_real(doc, entry, "peer_value", r->peer_value);
	yyjson_mut_obj_add_real(doc, entry, "peer_spread_percent", r->peer_spread);
	yyjson_mut_obj_add_real(doc, entry, "best", r->best);
	yyjson_mut_obj_add_real(doc, entry, "peer_best", r->peer_best);
	yyjson_mut_obj_add_real(doc, entry, "ratio", ratio(r));
	if (r->aim > 0)
		yyjson_mut_obj_add_real(doc, entry, "aim", r->aim);
	else
		yyjson_mut_obj_add_null(doc, entry, "aim");
	yyjson_mut_obj_add_str(doc, entry, "aim_of", r->aim_is_value ? "value" : "ratio");
	yyjson_mut_obj_add_int(doc, entry, "samples", r->samples);
}

bool bench_write_json(const struct bench_report *report, const char *path,
		      const struct bench_options *options)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *list;
	yyjson_write_err error;
	char text[512], date[32];
	const time_t now = time(NULL);
	bool ok;

	machine(text, sizeof(text), options);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_int(doc, root, "schema_version", BENCH_SCHEMA);
	yyjson_mut_obj_add_str(doc, root, "date", date);
	yyjson_mut_obj_add_str(doc, root, "machine", text);
	yyjson_mut_obj_add_int(doc, root, "threads", options->threads);
	list = yyjson_mut_obj_add_arr(doc, root, "results");
	for (int i = 0; i < report->count; i++)
		write_result(doc, list, &report->result[i]);
	ok = yyjson_mut_write_file(path, doc, YYJSON_WRITE_PRETTY, NULL, &error);
	if (!ok)
		fprintf(stderr, "spyre-bench: cannot write %s: %s\n", path, error.msg);
	yyjson_mut_doc_free(doc);
	return ok;
}

static void read_text(yyjson_val *entry, const char *key, char *to, size_t size)
{
	const char *text = yyjson_get_str(yyjson_obj_get(entry, key));

	snprintf(to, size, "%s", text ? text : "");
}

bool bench_read_json(struct bench_report *report, const char *path)
{
	yyjson_read_err error;
	yyjson_doc *doc = yyjson_read_file(path, 0, NULL, &error);
	yyjson_val *list = yyjson_obj_get(yyjson_doc_get_root(doc), "results"), *entry;
	const size_t capacity = sizeof(report->result) / sizeof(report->result[0]);
	size_t i, count;
	char better[8], aim_of[8];

	if (!yyjson_is_arr(list)) {
		fprintf(stderr, "spyre-bench: %s holds no results%s%s\n", path, doc ? "" : ": ",
			doc ? "" : error.msg);
		yyjson_doc_free(doc);
		return false;
	}
	yyjson_arr_foreach(list, i, count, entry) {
		struct bench_result r = { 0 };

		if ((size_t)report->count == capacity)
			break;
		read_text(entry, "name", r.name, sizeof(r.name));
		read_text(entry, "unit", r.unit, sizeof(r.unit));
		read_text(entry, "peer", r.peer, sizeof(r.peer));
		read_text(entry, "better", better, sizeof(better));
		read_text(entry, "aim_of", aim_of, sizeof(aim_of));
		r.higher_is_better = !strcmp(better, "higher");
		r.aim_is_value = !strcmp(aim_of, "value");
		r.value = yyjson_get_num(yyjson_obj_get(entry, "value"));
		r.peer_value = yyjson_get_num(yyjson_obj_get(entry, "peer_value"));
		r.best = yyjson_get_num(yyjson_obj_get(entry, "best"));
		r.peer_best = yyjson_get_num(yyjson_obj_get(entry, "peer_best"));
		r.spread = yyjson_get_num(yyjson_obj_get(entry, "spread_percent"));
		r.peer_spread = yyjson_get_num(yyjson_obj_get(entry, "peer_spread_percent"));
		r.aim = yyjson_get_num(yyjson_obj_get(entry, "aim"));
		r.samples = yyjson_get_int(yyjson_obj_get(entry, "samples"));
		report->result[report->count++] = r;
	}
	yyjson_doc_free(doc);
	return true;
}
