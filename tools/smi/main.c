/* SPDX-License-Identifier: MIT */
/* spyre-smi: shows one snapshot or a loop of them, or resets or tests cards. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "tools/smi/diag.h"
#include "tools/smi/events.h"
#include "tools/smi/monitor.h"
#include "tools/smi/prometheus.h"
#include "tools/smi/top.h"

/* The name of the file that is standard output; NULL: it has none. */
static const char *output;

/* Prints what is neither JSON nor a matrix of links. */
static int show_text(const struct smi_snapshot *snapshot, const struct smi_options *options)
{
	switch (options->mode) {
	case SMI_SCREEN:
		smi_screen(snapshot);
		break;
	case SMI_LIST:
		smi_list(snapshot);
		break;
	case SMI_REPORT:
		if (options->xml)
			smi_xml(snapshot);
		else
			smi_report(snapshot, options->sections);
		break;
	case SMI_QUERY_DEVICE:
	case SMI_QUERY_APPS:
		smi_csv(snapshot, options);
		break;
	case SMI_RESET:
		return smi_reset(snapshot, options);
	case SMI_PROMETHEUS:
		return smi_prometheus_file(options->file, snapshot);
	case SMI_TOPOLOGY:
	case SMI_DMON:
	case SMI_PMON:
	case SMI_DIAG:
	case SMI_EVENTS:
	case SMI_TOP:
		break;
	}
	return SMI_OK;
}

static int show(const struct smi_snapshot *snapshot, const struct smi_options *options)
{
	bool done;

	if (options->mode == SMI_TOPOLOGY)
		done = smi_topology(snapshot, options);
	else if (options->format == SMI_JSON)
		done = smi_json(snapshot, options);
	else
		return show_text(snapshot, options);
	if (done)
		return SMI_OK;
	fputs("spyre-smi: no memory for the JSON text of the cards\n", stderr);
	return SMI_OTHER;
}

static int no_cards(void)
{
	fputs("spyre-smi: cannot find a Spyre card: spyre_vdev has no accel node, and no process "
	      "of this user has an embedded card.\n"
	      "Load the module (sudo modprobe spyre_vdev) or start a program with "
	      "SPYRE_BACKEND=embedded.\n",
	      stderr);
	return SMI_NO_DRIVER;
}

static int check_output(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "spyre-smi: cannot write to %s: %s\n",
		output ? output : "standard output", strerror(errno));
	return SMI_OTHER;
}

/* Makes a file the standard output: its old contents are lost, as those of a shell's are. */
static int redirect(const char *path)
{
	output = path;
	if (freopen(path, "w", stdout))
		return SMI_OK;
	fprintf(stderr, "spyre-smi: cannot open %s: %s; give another file with -f\n", path,
		strerror(errno));
	return SMI_OTHER;
}

/* One iteration. Machine formats print an (empty) document even without a card. */
static int show_once(const struct smi_options *options)
{
	bool looping = options->interval > 0;
	struct smi_snapshot snapshot;
	int status;

	status = smi_take_snapshot(&snapshot);
	if (status == SMI_OK && snapshot.num_cards)
		status = smi_choose(&snapshot, options->ids);
	if (status == SMI_OK && (snapshot.num_cards || looping || options->format == SMI_JSON ||
				 options->xml || options->mode == SMI_PROMETHEUS))
		status = show(&snapshot, options);
	if (status == SMI_OK && !snapshot.num_cards)
		status = looping ? SMI_NO_DRIVER : no_cards();
	smi_free_snapshot(&snapshot);
	return check_output(status);
}

/* Sets @time to the next iteration; missed ones are skipped. */
static void advance(struct timespec *time, double seconds)
{
	struct timespec now;

	time->tv_sec += (time_t)seconds;
	time->tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
	if (time->tv_nsec >= 1000000000) {
		time->tv_nsec -= 1000000000;
		time->tv_sec++;
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (time->tv_sec < now.tv_sec ||
	    (time->tv_sec == now.tv_sec && time->tv_nsec < now.tv_nsec))
		*time = now;
}

static void wait_for(struct timespec *next, double seconds)
{
	advance(next, seconds);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL) == EINTR)
		;
}

/* Continues while cards come and go; returns SMI_NO_DRIVER if it never saw one. */
static int loop(const struct smi_options *options)
{
	int status, result = SMI_NO_DRIVER;
	unsigned long round;
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (round = 1;; round++) {
		status = show_once(options);
		if (status != SMI_OK && status != SMI_NO_DRIVER)
			return status;
		if (status == SMI_OK)
			result = SMI_OK;
		if (options->count && round >= options->count)
			return result == SMI_OK ? SMI_OK : no_cards();
		wait_for(&next, options->interval);
	}
}

/* A round of dmon or pmon; replaces *@then by the new snapshot. */
static int monitor_once(const struct smi_options *options, struct smi_snapshot *then,
			struct smi_host *host)
{
	struct smi_snapshot now;
	int status;

	status = smi_take_snapshot(&now);
	smi_read_host(host);
	if (status == SMI_OK && now.num_cards)
		status = smi_choose(&now, options->ids);
	if (status == SMI_OK)
		smi_monitor_rows(&now, then, host, options);
	if (status == SMI_OK && !now.num_cards)
		status = SMI_NO_DRIVER;
	smi_free_snapshot(then);
	*then = now;
	return check_output(status);
}

/* Like loop(), but each round needs the one before it, of which the first prints nothing. */
static int monitor(const struct smi_options *options)
{
	int status, result = SMI_NO_DRIVER;
	struct smi_host host = { 0 };
	struct smi_snapshot then;
	unsigned long round;
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	smi_read_host(&host);
	status = smi_take_snapshot(&then);
	if (status == SMI_OK)
		smi_monitor_header(options);
	for (round = 0; status == SMI_OK || status == SMI_NO_DRIVER; round++) {
		if (options->count && round >= options->count) {
			status = result == SMI_OK ? SMI_OK : no_cards();
			break;
		}
		wait_for(&next, options->interval);
		status = monitor_once(options, &then, &host);
		if (status == SMI_OK)
			result = SMI_OK;
	}
	smi_free_snapshot(&then);
	return check_output(status);
}

static int show_top(const struct smi_options *options)
{
#ifdef HAVE_NCURSES
	const int status = smi_top(options);

	return status == SMI_NO_DRIVER ? no_cards() : status;
#else
	(void)options;
	fputs("spyre-smi: cannot show top: this spyre-smi was built without ncurses; use dmon or "
	      "pmon, or install libncurses-dev (ncurses-devel) and build it again\n", stderr);
	return SMI_NOT_AVAILABLE;
#endif
}

int main(int argc, char **argv)
{
	struct smi_options options;
	int status;

	if (!smi_parse_options(argc, argv, &options, &status)) {
		if (fflush(stdout))
			status = SMI_OTHER;
		return status;
	}
	if (options.output && redirect(options.output) != SMI_OK)
		return SMI_OTHER;
	if (options.mode == SMI_DMON || options.mode == SMI_PMON)
		return monitor(&options);
	if (options.mode == SMI_TOP)
		return show_top(&options);
	if (options.mode == SMI_DIAG)
		return check_output(smi_diag(&options));
	if (options.mode == SMI_EVENTS)
		return check_output(smi_events(&options));
	/* The rows of a matrix of links have no fields; it prints its own header. */
	if (options.format == SMI_CSV && !options.no_header && options.mode != SMI_TOPOLOGY)
		smi_csv_header(&options);
	return options.interval > 0 ? loop(&options) : show_once(&options);
}
