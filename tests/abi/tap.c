/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tests, failures;

static void say(const char *verdict, const char *format, va_list args)
{
	printf("%s %d - ", verdict, ++tests);
	vprintf(format, args);
}

static bool result(bool pass, const char *format, va_list args)
{
	say(pass ? "ok" : "not ok", format, args);
	putchar('\n');
	failures += !pass;
	/* Lines printed before an oops are the only trace of it. */
	fflush(stdout);
	return pass;
}

static const char *error_name(int error)
{
	const char *name = error ? strerrorname_np(-error) : "0";

	return name ? name : "?";
}

bool tap_ok(bool pass, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	result(pass, format, args);
	va_end(args);
	return pass;
}

bool tap_ret(int got, int want, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	result(got == want, format, args);
	va_end(args);
	if (got != want)
		tap_note("got %s (%d), expected %s (%d)", error_name(got), got, error_name(want),
			 want);
	return got == want;
}

bool tap_ret2(int got, int want, int or_want, const char *format, ...)
{
	bool pass = got == want || got == or_want;
	va_list args;

	va_start(args, format);
	result(pass, format, args);
	va_end(args);
	if (!pass)
		tap_note("got %s (%d), expected %s or %s", error_name(got), got, error_name(want),
			 error_name(or_want));
	return pass;
}

bool tap_eq(uint64_t got, uint64_t want, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	result(got == want, format, args);
	va_end(args);
	if (got != want)
		tap_note("got %llu (0x%llx), expected %llu (0x%llx)", (unsigned long long)got,
			 (unsigned long long)got, (unsigned long long)want,
			 (unsigned long long)want);
	return got == want;
}

void tap_skip(const char *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("ok", format, args);
	va_end(args);
	printf(" # SKIP %s\n", why);
	fflush(stdout);
}

void tap_note(const char *format, ...)
{
	va_list args;

	fputs("# ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

void tap_bail(const char *format, ...)
{
	va_list args;

	fputs("Bail out! ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	exit(1);
}

void tap_skip_all(const char *format, ...)
{
	va_list args;

	fputs("1..0 # SKIP ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	exit(0);
}

int tap_done(void)
{
	printf("1..%d\n", tests);
	if (failures)
		tap_note("%d of %d failed", failures, tests);
	return failures != 0;
}
