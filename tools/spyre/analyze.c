// SPDX-License-Identifier: MIT
/* spyre analyze: what limits the kernels of a trace or of a bundle. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis.h"

enum format {
	FORMAT_TEXT,
	FORMAT_JSON,
	FORMAT_HTML,
};

static int print(const char *file, const char *title, enum format format)
{
	struct analysis analysis;
	struct trace trace;
	int code = EXIT_OK;
	struct text why;

	if (trace_read(file, &trace, &why))
		return complain(EXIT_USAGE, "%s", why.s);
	if (analysis_make(&analysis, &trace, &why)) {
		code = complain(EXIT_USAGE, "%s", why.s);
	} else {
		if (format == FORMAT_TEXT)
			analysis_text(&analysis);
		else if (format == FORMAT_JSON)
			code = analysis_json(&analysis);
		else
			code = analysis_html(&analysis, title);
		analysis_free(&analysis);
	}
	trace_close(&trace);
	return finish_output(code);
}

/* Launches the bundle once on memory of zeros, which no index of is out of range. */
static spyre_status launch(spyre_context *context, const char *directory)
{
	spyre_kernel_info info = { .struct_size = sizeof(info) };
	spyre_launch_arg args[64] = { 0 };
	spyre_binding bindings[16];
	spyre_symbol_info symbols[16];
	spyre_launch_params params = { .struct_size = sizeof(params), .args = args,
				       .bindings = bindings };
	spyre_status status;
	spyre_stream *stream;
	spyre_kernel *kernel;
	spyre_arg_info arg;

	status = spyre_kernel_load(context, directory, &kernel);
	if (!status)
		status = spyre_kernel_get_info(kernel, &info);
	params.num_args = info.num_args;
	params.num_bindings = info.num_symbols;
	for (uint32_t i = 0; !status && i < info.num_symbols && i < 16; i++) {
		status = spyre_kernel_get_symbol(kernel, (int)i, &symbols[i]);
		bindings[i] = (spyre_binding){ symbols[i].name, symbols[i].max };
	}
	for (uint32_t i = 0; !status && i < info.num_args && i < 64; i++) {
		status = spyre_kernel_get_arg(kernel, (int)i, &arg);
		if (!status)
			status = spyre_mem_alloc(context, arg.bytes ? arg.bytes : 1,
						 &args[i].address);
	}
	if (!status)
		status = spyre_stream_get(context, 0, &stream);
	if (!status)
		status = spyre_launch_ex(stream, kernel, &params);
	return status ? status : spyre_stream_synchronize(stream);
}

/*
 * The child's work: the trace begins with its context. An embedded card runs the bundle; the
 * modelled time is that of any card.
 */
static int launch_traced(const char *directory, const char *trace)
{
	spyre_context *context;
	spyre_status status;

	if (setenv("SPYRE_TRACE", trace, 1) || setenv("SPYRE_TRACE_LEVEL", "cores", 1) ||
	    setenv("SPYRE_BACKEND", "embedded", 1) || unsetenv("SPYRE_DEVICES"))
		return complain(EXIT_DEVICE, "cannot set the environment: %s", strerror(errno));
	status = spyre_context_create(0, 0, &context);
	if (status)
		return complain_status(status, "cannot open an embedded card");
	status = launch(context, directory);
	if (status)
		return complain_status(status, "cannot launch %s", directory);
	(void)spyre_context_destroy(context);
	return EXIT_OK;
}

static int analyze_bundle(const char *directory, enum format format)
{
	const char *tmp = getenv("TMPDIR");
	int fd, status, code = EXIT_DEVICE;
	char trace[4096];
	pid_t pid;

	snprintf(trace, sizeof(trace), "%s/spyre-analyze-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	fd = mkstemp(trace);
	if (fd < 0)
		return complain(EXIT_DEVICE, "cannot create %s: %s", trace, strerror(errno));
	close(fd);
	fflush(stdout);
	pid = fork();
	if (!pid)
		exit(launch_traced(directory, trace));
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		complain(EXIT_DEVICE, "cannot run %s: %s", directory, strerror(errno));
	else if (!WIFEXITED(status))
		complain(EXIT_DEVICE, "cannot run %s: signal %d ended its process", directory,
			 WTERMSIG(status));
	else
		code = WEXITSTATUS(status) ? WEXITSTATUS(status) : print(trace, directory, format);
	unlink(trace);
	return code;
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		{"format", required_argument, NULL, 'f'},
		{NULL, 0, NULL, 0},
	};
	enum format format = FORMAT_TEXT;
	struct stat st;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (option != 'f')
			return complain_option(option, argv, options);
		if (!strcmp(optarg, "text"))
			format = FORMAT_TEXT;
		else if (!strcmp(optarg, "json"))
			format = FORMAT_JSON;
		else if (!strcmp(optarg, "html"))
			format = FORMAT_HTML;
		else
			return complain_usage("unknown format '%s'; valid: text, json, html",
					      optarg);
	}
	if (argc - optind != 1)
		return complain_usage("expected one trace or one bundle directory");
	if (stat(argv[optind], &st))
		return complain(EXIT_USAGE, "cannot read %s: %s", argv[optind], strerror(errno));
	if (S_ISDIR(st.st_mode))
		return analyze_bundle(argv[optind], format);
	return print(argv[optind], argv[optind], format);
}

const struct command command_analyze = {
	.name = "analyze",
	.summary = "what limits the kernels of a trace or a bundle",
	.help = "[--format FORMAT] TRACE|BUNDLE\n"
		"Prints for each kernel its modelled time, bytes, multiply-adds, what its time\n"
		"follows from (PT, SFU, DMA, LX, ring, LPDDR5 or launch), the part of the cores that\n"
		"it uses and its LX; then what could be gained, the largest first.\n\n"
		"TRACE is a file of SPYRE_TRACE with SPYRE_TRACE_LEVEL=cores. A BUNDLE directory is\n"
		"launched once, with zeros, on an embedded card.\n\n"
		"      --format FORMAT  text (default), json, or html: one page with plots\n",
	.run = run,
};
