// SPDX-License-Identifier: MIT
/* Explains mistyped words of a command line. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tools/spelling.h"

#define MAX_LETTERS 31
/* More mistakes than this give another word rather than a mistyped one. */
#define MAX_MISTAKES 2

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The number of letters that are inserted, removed, replaced or swapped between two words. */
static size_t distance_of(const char *typed, const char *name)
{
	const size_t n = strlen(typed), m = strlen(name);
	size_t cost[MAX_LETTERS + 1][MAX_LETTERS + 1];

	if (n > MAX_LETTERS || m > MAX_LETTERS)
		return SIZE_MAX;
	for (size_t i = 0; i <= n; i++)
		for (size_t j = 0; j <= m; j++) {
			if (!i || !j) {
				cost[i][j] = i + j;
				continue;
			}
			cost[i][j] = least(cost[i - 1][j - 1] + (typed[i - 1] != name[j - 1]),
					   1 + least(cost[i - 1][j], cost[i][j - 1]));
			if (i > 1 && j > 1 && typed[i - 1] == name[j - 2] &&
			    typed[i - 2] == name[j - 1])
				cost[i][j] = least(cost[i][j], cost[i - 2][j - 2] + 1);
		}
	return cost[n][m];
}

struct spelling spelling_of(const char *typed)
{
	return (struct spelling){ .typed = typed, .distance = MAX_MISTAKES + 1 };
}

void spelling_try(struct spelling *spelling, const char *name)
{
	const size_t distance = distance_of(spelling->typed, name);

	/* As many mistakes as letters would make any short word resemble any other. */
	if (distance < spelling->distance && distance < strlen(spelling->typed)) {
		spelling->distance = distance;
		spelling->nearest = name;
	}
}

__attribute__((format(printf, 3, 4)))
static void append(char *text, size_t size, const char *format, ...)
{
	const size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, size - used, format, args);
	va_end(args);
}

/* Appends the long options of which the first @length letters of @prefix are the beginning. */
static void append_options(const struct option *options, const char *prefix, size_t length,
			   char *text, size_t size)
{
	const char *separator = "";

	for (; options->name; options++)
		if (!strncmp(options->name, prefix, length)) {
			append(text, size, "%s--%s", separator, options->name);
			separator = ", ";
		}
}

static void explain_unknown(const char *word, const char *name, const struct option *options,
			    char *text, size_t size)
{
	char typed[MAX_LETTERS + 2];
	struct spelling spelling;

	snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(name, "="), name);
	spelling = spelling_of(typed);
	for (const struct option *o = options; o->name; o++)
		spelling_try(&spelling, o->name);
	snprintf(text, size, "unknown option '%s'; ", word);
	if (spelling.nearest) {
		append(text, size, "did you mean '--%s'?", spelling.nearest);
		return;
	}
	append(text, size, "valid: ");
	append_options(options, "", 0, text, size);
}

/* Finds the option that "--name" or the beginning of a name selects; NULL if none does. */
static const struct option *find_long(const char *word, const struct option *options,
				      bool *ambiguous)
{
	const size_t length = strcspn(word + 2, "=");
	const struct option *found = NULL;

	*ambiguous = false;
	if (strncmp(word, "--", 2))
		return NULL;
	for (const struct option *o = options; o->name; o++) {
		if (strncmp(o->name, word + 2, length))
			continue;
		if (strlen(o->name) == length) {
			*ambiguous = false;
			return o;
		}
		/* Two names of one option are not ambiguous. */
		*ambiguous |= found && found->val != o->val;
		found = o;
	}
	return found;
}

/* The word with the short option @letter, behind which getopt_long() moves once it is done. */
static const char *word_of(int letter, char **argv)
{
	const char *last = argv[optind - 1];

	if (last[0] == '-' && last[strlen(last) - 1] == letter)
		return last;
	return argv[optind] ? argv[optind] : last;
}

void spelling_option(int option, char **argv, const struct option *options, char *text, size_t size)
{
	const char *word = argv[optind - 1], *value = strchr(word, '=');
	const struct option *found;
	bool ambiguous;

	if (option == ':') {
		snprintf(text, size, "option '%s' requires a value", word);
		return;
	}
	found = find_long(word, options, &ambiguous);
	/* Only an unknown or ambiguous long option leaves optopt 0. */
	if (!optopt && ambiguous) {
		snprintf(text, size, "ambiguous option '%s'; valid: ", word);
		append_options(options, word + 2, strcspn(word + 2, "="), text, size);
	} else if (!optopt) {
		explain_unknown(word, word + 2, options, text, size);
	} else if (found && value && found->has_arg == no_argument) {
		snprintf(text, size, "unexpected value '%s': option '--%s' takes none", value + 1,
			 found->name);
	} else {
		const char letter[] = { '-', (char)optopt, '\0' };

		word = word_of(optopt, argv);
		/* A word whose first letter is unknown may be a long option with one dash. */
		if (word[1] != letter[1])
			word = letter;
		explain_unknown(word, word + 1, options, text, size);
	}
}
