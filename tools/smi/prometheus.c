/* SPDX-License-Identifier: MIT */
/*
 * Metrics in Prometheus' text format. Each takes its value from a field of --query-device or
 * --query-compute-apps, in the base unit of JSON, so that all of them give the same numbers.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/output.h"
#include "tools/smi/prometheus.h"

struct metric {
	const char *name;
	const char *type;		/* NULL: as the metric before it, of which it is a sample */
	const char *field;
	const char *label;		/* besides those of the card or process, or NULL */
	const char *help;		/* NULL: the field's */
};

/* The first ten have the names of the public exporter, which has gauges for totals. */
static const struct metric card_metrics[] = {
	{ "spyre_power_watts", "gauge", "power.draw", NULL, NULL },
	{ "spyre_temperature_celsius", "gauge", "temperature.device", NULL, NULL },
	{ "spyre_read_memory_bytes", "gauge", "memory.read", NULL, NULL },
	{ "spyre_write_memory_bytes", "gauge", "memory.written", NULL, NULL },
	{ "spyre_rxpci_bytes", "gauge", "pcie.rx", NULL, NULL },
	{ "spyre_txpci_bytes", "gauge", "pcie.tx", NULL, NULL },
	{ "spyre_rdma_read_bytes", "gauge", "rdma.read", NULL, NULL },
	{ "spyre_rdma_write_bytes", "gauge", "rdma.written", NULL, NULL },
	{ "spyre_peak_memory_bytes", "gauge", "memory.peak", NULL, NULL },
	{ "spyre_memory_used_bytes", "gauge", "memory.used", NULL, NULL },
	{ "spyre_memory_size_bytes", "gauge", "memory.total", NULL, NULL },
	{ "spyre_power_limit_watts", "gauge", "power.limit", NULL, NULL },
	{ "spyre_clock_hertz", "gauge", "clocks.core", NULL, NULL },
	{ "spyre_cores", "gauge", "cores", NULL, NULL },
	{ "spyre_processes", "gauge", "processes.count", NULL, NULL },
	{ "spyre_busy_seconds_total", "counter", "busy.time", NULL, NULL },
	{ "spyre_energy_joules_total", "counter", "energy.total", NULL, NULL },
	{ "spyre_jobs_total", "counter", "jobs.completed", NULL, NULL },
	{ "spyre_failed_jobs_total", "counter", "jobs.failed", NULL, NULL },
	{ "spyre_launches_total", "counter", "launches", NULL, NULL },
	{ "spyre_copies_total", "counter", "copies", NULL, NULL },
	{ "spyre_cycles_total", "counter", "cycles", NULL, NULL },
	{ "spyre_unit_cycles_total", "counter", "cycles.pt", "unit=\"pt\"",
	  "Modelled cycles of PT arrays and SFUs, summed over the cores, and of DMA and copies." },
	{ "spyre_unit_cycles_total", NULL, "cycles.sfu", "unit=\"sfu\"", NULL },
	{ "spyre_unit_cycles_total", NULL, "cycles.dma", "unit=\"dma\"", NULL },
	{ "spyre_macs_total", "counter", "macs", NULL, NULL },
	{ "spyre_resets_total", "counter", "reset.count", NULL, NULL },
	{ "spyre_faults_total", "counter", "faults.timeout", "kind=\"timeout\"",
	  "Contexts that failed, by kind of fault." },
	{ "spyre_faults_total", NULL, "faults.access", "kind=\"access\"", NULL },
	{ "spyre_faults_total", NULL, "faults.escape", "kind=\"escape\"", NULL },
	{ "spyre_faults_total", NULL, "faults.compute", "kind=\"compute\"", NULL },
	{ NULL },
};

static const struct metric process_metrics[] = {
	{ "spyre_process_memory_bytes", "gauge", "used_memory", NULL, NULL },
	{ "spyre_process_peak_memory_bytes", "gauge", "memory.peak", NULL, NULL },
	{ "spyre_process_busy_seconds_total", "counter", "busy.time", NULL, NULL },
	{ "spyre_process_energy_joules_total", "counter", "energy.total", NULL, NULL },
	{ "spyre_process_jobs_total", "counter", "jobs.completed", NULL, NULL },
	{ "spyre_process_launches_total", "counter", "launches", NULL, NULL },
	{ "spyre_process_cycles_total", "counter", "cycles", NULL, NULL },
	{ "spyre_process_memory_read_bytes_total", "counter", "memory.read", NULL, NULL },
	{ "spyre_process_memory_written_bytes_total", "counter", "memory.written", NULL, NULL },
	{ "spyre_process_pcie_rx_bytes_total", "counter", "pcie.rx", NULL, NULL },
	{ "spyre_process_pcie_tx_bytes_total", "counter", "pcie.tx", NULL, NULL },
	{ NULL },
};

/* Prints the rest of a label behind its first quote: names of processes may contain anything. */
static void print_quoted(FILE *out, const char *value)
{
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			fputc('\\', out);
		fputc(*value, out);
	}
	fputc('"', out);
}

static void print_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, ",%s=\"", name);
	print_quoted(out, value);
}

/* Labels that the user adds to each sample, each with a comma in front. */
static char added[4096];

/* Labels of the samples, which an added one would repeat. */
static bool is_taken(const char *name, size_t length)
{
	static const char *const taken[] = {
		"card", "spyre", "type", "uuid", "pid", "process", "unit", "kind", "name",
		"driver_version",
	};
	const char *at = added;
	size_t i;

	for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (strlen(taken[i]) == length && !strncmp(taken[i], name, length))
			return true;
	/* A value has a quote only behind a backslash, so a comma after a quote begins a label. */
	for (; *at; at += strcspn(at, "\"") + 1) {
		if (*at == ',' && !strncmp(at + 1, name, length) && at[1 + length] == '=')
			return true;
		at += strcspn(at, "\"") + 1;
		while (*at && *at != '"')
			at += *at == '\\' ? 2 : 1;
	}
	return false;
}

const char *smi_prometheus_label(const char *text)
{
	const size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
					   "0123456789");
	const size_t used = strlen(added);
	const char *value = text + length + 1, *c;
	FILE *to;

	if (!length || text[length] != '=' || (*text >= '0' && *text <= '9') ||
	    !strncmp(text, "__", 2))
		return "expected NAME=VALUE with a NAME of letters, digits and _, which begins "
		       "with neither a digit nor __";
	if (is_taken(text, length))
		return "the metrics have a label of that name";
	for (c = value; *c; c++)
		if (*c < ' ' || *c > '~')
			return "a value consists of printable ASCII characters";
	/* Each character of the value may need a backslash. */
	if (used + length + 2 * strlen(value) + 5 > sizeof(added))
		return "all labels together have more than 4000 characters";
	to = fmemopen(added + used, sizeof(added) - used, "w");
	if (!to)
		return "no memory for it";
	fprintf(to, ",%.*s=\"", (int)length, text);
	print_quoted(to, value);
	fclose(to);
	return NULL;
}

static const char *type_of(const spyre_telemetry_card *card)
{
	if (card->host_pid)
		return "embedded";
	return strstr(card->properties.name, " VF ") ? "vf" : "pf";
}

/* spyre is the public exporter's label for the address of a card on its bus. */
static void print_labels(FILE *out, const struct smi_subject *subject)
{
	const spyre_telemetry_card *card = subject->card;

	fprintf(out, "card=\"%d\"", subject->index);
	print_label(out, "spyre", card->properties.bus_id);
	print_label(out, "type", type_of(card));
	print_label(out, "uuid", card->properties.uuid);
	if (subject->process) {
		fprintf(out, ",pid=\"%" PRId32 "\"", subject->process->pid);
		print_label(out, "process", subject->process->name);
	} else if (card->host_pid) {
		fprintf(out, ",pid=\"%" PRId32 "\"", card->host_pid);
	}
	fputs(added, out);
}

static bool read_value(const struct smi_field *field, const struct smi_subject *subject,
		       struct smi_value *value)
{
	value->kind = SMI_NONE;
	field->get(subject, value);
	return value->kind == SMI_NUMBER;
}

static void print_head(FILE *out, const struct metric *metric, const struct smi_field *field)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metric->name,
		metric->help ? metric->help : field->help, metric->name, metric->type);
}

static void print_sample(FILE *out, const struct metric *metric, const struct smi_field *field,
			 const struct smi_subject *subject, const struct smi_value *value)
{
	fprintf(out, "%s{", metric->name);
	print_labels(out, subject);
	if (metric->label)
		fprintf(out, ",%s", metric->label);
	if (field->json_divisor == 1)
		fprintf(out, "} %" PRIu64 "\n", value->number);
	else
		fprintf(out, "} %.15g\n", (double)value->number / field->json_divisor);
}

/* Advances to the next chosen card, or process of one; returns false after the last. */
static bool next(const struct smi_snapshot *snapshot, bool processes, int *position,
		 struct smi_subject *subject)
{
	int count = processes ? snapshot->num_processes : snapshot->num_cards;

	while (*position < count) {
		int at = (*position)++;

		*subject = (struct smi_subject){ .snapshot = snapshot };
		subject->process = processes ? &snapshot->processes[at] : NULL;
		subject->index = processes ? subject->process->card : at;
		subject->card = &snapshot->cards[subject->index];
		if (snapshot->chosen[subject->index])
			return true;
	}
	return false;
}

/* A metric without any value has no lines at all. */
static void print_metrics(FILE *out, const struct smi_snapshot *snapshot,
			  const struct metric *metric, const struct smi_field *fields,
			  bool processes)
{
	const struct metric *first = NULL;
	struct smi_subject subject;
	struct smi_value value;
	bool has_head = false;
	int position;

	for (; metric->name; metric++) {
		const struct smi_field *field = smi_find_field(fields, metric->field,
							       strlen(metric->field));

		if (metric->type) {
			first = metric;
			has_head = false;
		}
		for (position = 0; next(snapshot, processes, &position, &subject);) {
			if (!read_value(field, &subject, &value))
				continue;
			if (!has_head)
				print_head(out, first, field);
			has_head = true;
			print_sample(out, metric, field, &subject, &value);
		}
	}
}

static void print_info(FILE *out, const struct smi_snapshot *snapshot)
{
	struct smi_subject subject;
	int position = 0;

	fputs("# HELP spyre_info Names of the card and versions.\n# TYPE spyre_info gauge\n", out);
	while (next(snapshot, false, &position, &subject)) {
		fputs("spyre_info{", out);
		print_labels(out, &subject);
		print_label(out, "name", subject.card->properties.name);
		print_label(out, "driver_version", subject.card->driver_version);
		fputs("} 1\n", out);
	}
}

void smi_prometheus(FILE *out, const struct smi_snapshot *snapshot)
{
	fprintf(out, "# HELP spyre_cards Number of cards found.\n# TYPE spyre_cards gauge\n"
		     "spyre_cards%s%s%s %d\n", *added ? "{" : "", *added ? added + 1 : "",
		*added ? "}" : "", snapshot->num_cards);
	if (!snapshot->num_cards)
		return;
	print_info(out, snapshot);
	print_metrics(out, snapshot, card_metrics, smi_device_fields, false);
	print_metrics(out, snapshot, process_metrics, smi_app_fields, true);
}

static int complain_file(const char *path, const char *what)
{
	fprintf(stderr, "spyre-smi: cannot %s %s: %s\n", what, path, strerror(errno));
	return SMI_OTHER;
}

int smi_prometheus_file(const char *path, const struct smi_snapshot *snapshot)
{
	const char *refused = path ? output_refused(path) : NULL;
	char draft[4096];
	bool failed;
	FILE *out;
	int fd;

	if (!path) {
		smi_prometheus(stdout, snapshot);
		return SMI_OK;
	}
	if (refused) {
		fprintf(stderr, "spyre-smi: cannot replace %s: %s; name another file, or none for "
			"standard output\n", path, refused);
		return SMI_OTHER;
	}
	/* The draft is in the same folder, and its name is not one that node_exporter reads. */
	if (snprintf(draft, sizeof(draft), "%s.XXXXXX", path) >= (int)sizeof(draft)) {
		errno = ENAMETOOLONG;
		return complain_file(path, "write");
	}
	fd = mkstemp(draft);
	if (fd < 0)
		return complain_file(path, "write a draft of");
	out = fdopen(fd, "w");
	if (!out) {
		close(fd);
		unlink(draft);
		return complain_file(path, "write");
	}
	/* Readers are other users; the metrics are what this user may see. */
	failed = fchmod(fd, 0644);
	smi_prometheus(out, snapshot);
	failed |= ferror(out) != 0;
	failed |= fclose(out) != 0;
	if (!failed && !rename(draft, path))
		return SMI_OK;
	fd = errno;
	unlink(draft);
	errno = fd;
	return complain_file(path, "write");
}
