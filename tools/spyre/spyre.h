/* SPDX-License-Identifier: MIT */
/* The spyre command: what its subcommands share. */
#ifndef SPYRE_TOOL_H
#define SPYRE_TOOL_H

#include <spyre/spyre.h>

enum exit_code {
	EXIT_OK = 0,
	/* The card, the machine or an output file. */
	EXIT_DEVICE = 1,
	/* The command line, the environment or an input: a file, a bundle, a shape. */
	EXIT_USAGE = 2,
};

struct command {
	const char *name;
	const char *summary;
	/* After the synopsis line; ends with a newline. */
	const char *help;
	/* Prints what the help cannot know beforehand; may be NULL. */
	void (*help_more)(void);
	/* argv[0] is the subcommand's name. Returns an exit_code. */
	int (*run)(int argc, char **argv);
};

extern const struct command command_launch;
extern const struct command command_build;
extern const struct command command_compile;
extern const struct command command_info;
extern const struct command command_doctor;
extern const struct command command_coredump;

/* A message under construction: functions that read input leave it here, the
 * caller decides where it goes. */
struct text {
	char s[768];
};

void write_text(struct text *why, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));

/* Writes @why and is -1, also to the compiler: "return explain(why, …)". */
#define explain(why, ...)                     \
	({                                    \
		write_text(why, __VA_ARGS__); \
		-1;                           \
	})

/* The subcommand that runs, for messages; "" before it is known. */
void set_command_name(const char *name);
/* A name of this program that stands for one subcommand. */
void set_program_name(const char *name);

/* "spyre launch: …" on stderr; returns @code. */
int complain(int code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/*
 * The same for a failed library call: adds the code's name and its text. Returns
 * the exit_code of that status' cause.
 */
int complain_status(spyre_status status, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));

/* Bad usage: the message, and where to read on. */
int complain_usage(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* The result of getopt_long() for an option that it does not know, or that lacks a value. */
int complain_option(int option, char **argv);

/* A decimal number in [@min, @max]; -1 if @text is not one. */
int parse_number(const char *text, int64_t min, int64_t max, int64_t *value);

/* Flushes stdout; EXIT_DEVICE if anything written to it was lost. */
int finish_output(int code);

#endif /* SPYRE_TOOL_H */
