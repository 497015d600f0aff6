/* SPDX-License-Identifier: MIT */
/* The command line of spyre-exporter. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/exporter/exporter.h"
#include "tools/smi/prometheus.h"
#include "tools/spelling.h"

#define BAD_ARGUMENT 2

static const char help[] =
"Usage: spyre-exporter [OPTION]...\n"
"Answers HTTP requests for /metrics with the metrics of Spyre cards, in Prometheus' text\n"
"format. Opens no card.\n"
"\n"
"      --listen=[HOST]:PORT     address to listen on (127.0.0.1:9835); without a HOST it is\n"
"                               127.0.0.1, with PORT 0 any that is free\n"
"      --max-clients=COUNT      connections at a time (32)\n"
"      --timeout=SECONDS        time for a request and its answer (10)\n"
"      --label=NAME=VALUE       a label for all samples, such as pod=NAME; may be repeated\n"
"      --version                version of this tool\n"
"  -h, --help                   this text\n"
"\n"
"Exit status: 0 after SIGINT or SIGTERM, 1 the address cannot be used, 2 bad argument.\n"
"See spyre-exporter(1).\n";

enum { OPTION_LISTEN = 256, OPTION_CLIENTS, OPTION_TIMEOUT, OPTION_LABEL, OPTION_VERSION };

static const struct option long_options[] = {
	{ "listen", required_argument, NULL, OPTION_LISTEN },
	{ "max-clients", required_argument, NULL, OPTION_CLIENTS },
	{ "timeout", required_argument, NULL, OPTION_TIMEOUT },
	{ "label", required_argument, NULL, OPTION_LABEL },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static bool complain(const char *text)
{
	fprintf(stderr, "spyre-exporter: %s\nTry 'spyre-exporter --help'.\n", text);
	return false;
}

/* Parses a number from @least to @most. */
static bool parse_number(const char *option, const char *text, double least, double most,
			 double *value)
{
	char message[256], *end;

	errno = 0;
	*value = strtod(text, &end);
	if (!errno && end != text && !*end && isfinite(*value) && *value >= least &&
	    *value <= most)
		return true;
	snprintf(message, sizeof(message), "invalid value '%.64s' for %s: expected %g to %g", text,
		 option, least, most);
	return complain(message);
}

static bool parse_option(struct exporter_options *options, int option, char **argv)
{
	const char *why;
	char text[768];
	double value;

	switch (option) {
	case OPTION_LISTEN:
		options->listen = optarg;
		return true;
	case OPTION_CLIENTS:
		if (!parse_number("--max-clients", optarg, 1, 1024, &value))
			return false;
		options->max_clients = (int)value;
		return true;
	case OPTION_TIMEOUT:
		return parse_number("--timeout", optarg, 0.1, 3600, &options->timeout);
	case OPTION_LABEL:
		why = smi_prometheus_label(optarg);
		if (!why)
			return true;
		snprintf(text, sizeof(text), "invalid value '%.64s' for --label: %s", optarg, why);
		return complain(text);
	}
	spelling_option(option, argv, long_options, text, sizeof(text));
	return complain(text);
}

int main(int argc, char **argv)
{
	struct exporter_options options = {
		.listen = "127.0.0.1:9835", .max_clients = 32, .timeout = 10,
	};
	char text[256];
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		if (option == 'h' || option == OPTION_VERSION) {
			if (option == 'h')
				fputs(help, stdout);
			else
				printf("spyre-exporter %s\n", VERSION);
			return fflush(stdout) ? 1 : 0;
		}
		if (!parse_option(&options, option, argv))
			return BAD_ARGUMENT;
	}
	if (optind < argc) {
		snprintf(text, sizeof(text), "unexpected argument '%.64s': only options follow",
			 argv[optind]);
		complain(text);
		return BAD_ARGUMENT;
	}
	return exporter_serve(&options);
}
