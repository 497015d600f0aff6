// SPDX-License-Identifier: MIT
/* spyre trace: runs a program with SPYRE_TRACE and prints what it did on the cards. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spyre.h"
#include "tools/output.h"
#include "trace_merge.h"
#include "trace_read.h"

#define DEFAULT_FILE "spyre-trace.json"
/* Exit codes of shells for commands that cannot be run, and of those that a signal ended. */
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127
#define EXIT_SIGNAL 128

static volatile pid_t child;

/* A launcher that ends this command means the program. */
static void forward(int signal)
{
	kill(child, signal);
}

/* The program may change its working directory before it opens the file. */
static int set_file(const char *file, const char *level)
{
	char *directory = *file == '/' ? NULL : getcwd(NULL, 0), *path;
	int err;

	if (*file != '/' && !directory)
		return complain(EXIT_DEVICE, "cannot find the current directory: %s",
				strerror(errno));
	if (asprintf(&path, "%s%s%s", directory ? directory : "", directory ? "/" : "", file) < 0)
		path = NULL;
	free(directory);
	if (!path)
		return complain(EXIT_DEVICE, "no memory for the name of the trace");
	err = setenv("SPYRE_TRACE", path, 1) || setenv("SPYRE_TRACE_LEVEL", level, 1);
	free(path);
	return err ? complain(EXIT_DEVICE, "cannot set SPYRE_TRACE: %s", strerror(errno)) : EXIT_OK;
}

/* Runs the program; *code is its exit code, as a shell has it. */
static int run_program(char **argv, int *code)
{
	struct sigaction action = { .sa_handler = SIG_IGN }, old_int, old_quit;
	int status;

	/* The terminal sends these to the program as well. */
	sigaction(SIGINT, &action, &old_int);
	sigaction(SIGQUIT, &action, &old_quit);
	fflush(stdout);
	child = fork();
	if (child < 0)
		return complain(EXIT_DEVICE, "cannot run %s: %s", argv[0], strerror(errno));
	if (!child) {
		sigaction(SIGINT, &old_int, NULL);
		sigaction(SIGQUIT, &old_quit, NULL);
		execvp(argv[0], argv);
		status = errno;
		complain(EXIT_DEVICE, "cannot run %s: %s", argv[0], strerror(status));
		_exit(status == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
	}
	action.sa_handler = forward;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return complain(EXIT_DEVICE, "cannot wait for %s: %s", argv[0],
					strerror(errno));
	*code = WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
	return EXIT_OK;
}

static int summarise(const char *file)
{
	struct trace_sum *sums;
	struct trace trace;
	struct text why;
	size_t count;

	if (strchr(file, '%')) {
		fprintf(stderr, "spyre trace: each process wrote a trace of its own, %s\n", file);
		return EXIT_OK;
	}
	if (access(file, F_OK) && errno == ENOENT)
		return complain(EXIT_DEVICE, "there is no trace %s: the program has opened no card "
				"with libspyre", file);
	if (trace_read(file, &trace, &why))
		return complain(EXIT_DEVICE, "%s", why.s);
	sums = trace_sums(&trace, &count);
	if (sums)
		trace_print_summary(&trace, sums, count);
	free(sums);
	trace_close(&trace);
	if (!sums)
		return complain(EXIT_DEVICE, "no memory to sum up %s", file);
	fprintf(stderr, "spyre trace: wrote %s, for https://ui.perfetto.dev\n", file);
	return finish_output(EXIT_OK);
}

/* Removes an older trace, which would be taken for the program's. */
static int remove_old(const char *file)
{
	const char *why = strchr(file, '%') ? NULL : output_refused(file);

	if (why)
		return complain(EXIT_USAGE, "cannot replace %s: %s; name another file with -o",
				file, why);
	if (strchr(file, '%') || !unlink(file) || errno == ENOENT)
		return EXIT_OK;
	return complain(EXIT_USAGE, "cannot replace %s: %s", file, strerror(errno));
}

static int trace_run(int argc, char **argv)
{
	static const struct option options[] = {
		{"output", required_argument, NULL, 'o'},
		{"cores", no_argument, NULL, 'c'},
		{NULL, 0, NULL, 0},
	};
	const char *file = DEFAULT_FILE, *level = "operations";
	int option, code, own;

	opterr = 0;
	/* "+": the program's options are its own. */
	while ((option = getopt_long(argc, argv, "+:o:", options, NULL)) != -1) {
		if (option == 'o')
			file = optarg;
		else if (option == 'c')
			level = "cores";
		else
			return complain_option(option, argv, options);
	}
	if (optind == argc)
		return complain_usage("no command to run; append it, as in 'spyre trace run -- "
				      "./program'");
	if (!*file)
		return complain_usage("invalid value '' for --output: expected a file");
	own = remove_old(file);
	if (!own)
		own = set_file(file, level);
	if (!own)
		own = run_program(argv + optind, &code);
	if (own)
		return own;
	if (code == EXIT_NOT_FOUND || code == EXIT_NOT_EXECUTABLE)
		return code;
	own = summarise(file);
	return code ? code : own;
}

static int run(int argc, char **argv)
{
	if (argc < 2)
		return complain_usage("no action given; valid: run, merge");
	if (!strcmp(argv[1], "run"))
		return trace_run(argc - 1, argv + 1);
	if (!strcmp(argv[1], "merge"))
		return trace_merge(argc - 1, argv + 1);
	return complain_usage("unknown action '%s'; valid: run, merge", argv[1]);
}

const struct command command_trace = {
	.name = "trace",
	.summary = "record what a program does on the cards",
	.help = "run [-o FILE] [--cores] [--] COMMAND [ARGUMENT]...\n"
		"Runs COMMAND, which uses libspyre, with the variable SPYRE_TRACE, and prints how\n"
		"often and how long each kernel and copy ran. The file is for ui.perfetto.dev.\n\n"
		"  -o, --output FILE  the trace; %p is the process, %r the rank\n"
		"                     (default: spyre-trace.json)\n"
		"      --cores        with the modelled time of each phase, core and engine\n\n"
		"Exit status: that of COMMAND, 127 if it is not found.\n\n"
		"Usage: spyre trace merge -o FILE TRACE...\n"
		"Writes the traces of several ranks as one, in the time of the first one.\n",
	.run = run,
};
