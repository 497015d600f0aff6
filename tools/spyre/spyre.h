/* SPDX-License-Identifier: MIT */
/* Declarations that the subcommands of spyre share. */
#ifndef SPYRE_TOOL_H
#define SPYRE_TOOL_H

#include <getopt.h>

#include <spyre/spyre.h>

enum exit_code {
	EXIT_OK = 0,
	/* An error of the card, the machine or an output file. */
	EXIT_DEVICE = 1,
	/* An error of the command line, the environment or an input: a file, a bundle, a shape. */
	EXIT_USAGE = 2,
};

struct command {
	const char *name;
	const char *summary;
	/* Printed after the synopsis line; ends with a newline. */
	const char *help;
	/* Prints help that is only known at run time; may be NULL. */
	void (*help_more)(void);
	/* argv[0] is the subcommand's name. Returns an exit_code. */
	int (*run)(int argc, char **argv);
};

extern const struct command command_launch;
extern const struct command command_build;
extern const struct command command_compile;
extern const struct command command_estimate;
extern const struct command command_explain;
extern const struct command command_info;
extern const struct command command_doctor;
extern const struct command command_coredump;
extern const struct command command_trace;
extern const struct command command_analyze;

/*
 * A message under construction. Functions that parse input write it; their caller
 * decides where to print it.
 */
struct text {
	char s[768];
};

void write_text(struct text *why, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));

/* Writes @why and evaluates to -1, which the compiler can see: "return explain(why, …)". */
#define explain(why, ...)                     \
	({                                    \
		write_text(why, __VA_ARGS__); \
		-1;                           \
	})

/* Sets the current subcommand for messages; "" before it is known. */
void set_command_name(const char *name);
/* Sets the name of this program if it stands for one subcommand. */
void set_program_name(const char *name);
/* Returns true if this program stands for one subcommand, as dxp_standalone does. */
bool is_own_program(void);

/* Prints "spyre launch: …" to stderr; returns @code. */
int complain(int code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/*
 * Reports a failed library call with the status' name and text; returns the
 * exit_code for that status.
 */
int complain_status(spyre_status status, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));

/* Reports bad usage and names the help to read. */
int complain_usage(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* Reports an option that getopt_long() refuses: unknown, ambiguous, or without its value. */
int complain_option(int option, char **argv, const struct option *options);

/*
 * Parses the arguments of a command whose only option is --json and that takes no
 * other argument; returns 0 or the exit code of the usage error that was reported.
 */
int parse_json_only(int argc, char **argv, bool *json);

/* Parses a decimal number in [@min, @max]; -1 if @text is not one. */
int parse_number(const char *text, int64_t min, int64_t max, int64_t *value);

/* Flushes stdout; returns EXIT_DEVICE if any output was lost. */
int finish_output(int code);

#endif /* SPYRE_TOOL_H */
