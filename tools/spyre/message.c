// SPDX-License-Identifier: MIT
/* Prints the messages of the spyre command and parses numbers. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spyre.h"
#include "tools/spelling.h"

static const char *program = "spyre", *current = "";

void set_command_name(const char *name)
{
	current = name;
}

void set_program_name(const char *name)
{
	program = name;
}

void write_text(struct text *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why->s, sizeof(why->s), format, args);
	va_end(args);
}

bool is_own_program(void)
{
	return strcmp(program, "spyre");
}

static void print_prefix(void)
{
	bool own = is_own_program();

	fflush(stdout);
	fprintf(stderr, "%s%s%s: ", program, *current && !own ? " " : "", own ? "" : current);
}

int complain(int code, const char *format, ...)
{
	va_list args;

	print_prefix();
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return code;
}

/* Returns EXIT_USAGE for errors of the input, EXIT_DEVICE for those of the card and machine. */
static int status_code(spyre_status status)
{
	switch (status) {
	case SPYRE_ERROR_INVALID_ARGUMENT:
	case SPYRE_ERROR_LAYOUT:
	case SPYRE_ERROR_FORMAT:
	case SPYRE_ERROR_ARGUMENT_MISMATCH:
	case SPYRE_ERROR_FILE:
	case SPYRE_ERROR_PARSE:
	case SPYRE_ERROR_UNSUPPORTED:
	case SPYRE_ERROR_SPAN_LIMIT:
	case SPYRE_ERROR_LX_OVERFLOW:
	case SPYRE_ERROR_VERIFY:
	case SPYRE_ERROR_CONFIGURATION:
		return EXIT_USAGE;
	default:
		return EXIT_DEVICE;
	}
}

/*
 * Returns the length of @text without the advice that only a program can follow, such as a
 * call of the library; its whole length if it has none. Such advice is a clause of its own.
 */
static size_t length_for_user(const char *text)
{
	static const char *const advice[] = {
		"spyre_context_reset()",
		"spyre_context_get_state()",
		"destroy the context",
	};
	size_t length = strlen(text);

	for (size_t i = 0; i < sizeof(advice) / sizeof(advice[0]); i++) {
		const char *found = strstr(text, advice[i]);
		size_t clause = found ? found - text : 0;

		while (clause > 1 && strncmp(text + clause - 2, "; ", 2) &&
		       strncmp(text + clause - 2, ": ", 2))
			clause--;
		if (clause > 1 && clause - 2 < length)
			length = clause - 2;
	}
	return length;
}

int complain_status(spyre_status status, const char *format, ...)
{
	const char *text = spyre_last_error();
	size_t length;
	va_list args;

	print_prefix();
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	if (!*text)
		text = spyre_status_text(status);
	length = length_for_user(text);
	/* A command has one context, and ends with it. */
	fprintf(stderr, ": %s: %.*s%s\n", spyre_status_name(status), (int)length, text,
		text[length] ? "; run the command again, which opens the card anew" : "");
	return status_code(status);
}

int complain_option(int option, char **argv, const struct option *options)
{
	struct text why;

	spelling_option(option, argv, options, why.s, sizeof(why.s));
	return complain_usage("%s", why.s);
}

int parse_json_only(int argc, char **argv, bool *json)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{NULL, 0, NULL, 0},
	};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option != 'j')
			return complain_option(option, argv, options);
		*json = true;
	}
	if (optind < argc)
		return complain_usage("unexpected argument '%s': %s takes no arguments",
				      argv[optind], current);
	return 0;
}

int complain_usage(const char *format, ...)
{
	va_list args;

	print_prefix();
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	if (is_own_program())
		fprintf(stderr, "\nTry '%s --help'.\n", program);
	else
		fprintf(stderr, "\nTry 'spyre help%s%s'.\n", *current ? " " : "", current);
	return EXIT_USAGE;
}

int parse_number(const char *text, int64_t min, int64_t max, int64_t *value)
{
	char *end;
	long long number;

	if (!(*text == '-' || (*text >= '0' && *text <= '9')))
		return -1;
	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno || end == text || *end || number < min || number > max)
		return -1;
	*value = number;
	return 0;
}

int finish_output(int code)
{
	if (fflush(stdout) || ferror(stdout)) {
		complain(EXIT_DEVICE, "cannot write to standard output: %s", strerror(errno));
		return code ? code : EXIT_DEVICE;
	}
	return code;
}
