// SPDX-License-Identifier: MIT
/* Messages of the spyre command, and the numbers on its command line. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spyre.h"

static const char *current = "";

void set_command_name(const char *name)
{
	current = name;
}

void write_text(struct text *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why->s, sizeof(why->s), format, args);
	va_end(args);
}

static void print_prefix(void)
{
	fflush(stdout);
	fprintf(stderr, "spyre%s%s: ", *current ? " " : "", current);
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

int complain_status(spyre_status status, const char *format, ...)
{
	const char *text = spyre_last_error();
	va_list args;

	print_prefix();
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s: %s\n", spyre_status_name(status),
		*text ? text : spyre_status_text(status));
	return EXIT_DEVICE;
}

int complain_usage(const char *format, ...)
{
	va_list args;

	print_prefix();
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
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
		complain(EXIT_DEVICE, "standard output: %s", strerror(errno));
		return code ? code : EXIT_DEVICE;
	}
	return code;
}
