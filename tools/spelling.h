/* SPDX-License-Identifier: MIT */
/* Explains mistyped words of a command line. Used by all tools. */
#ifndef SPYRE_TOOLS_SPELLING_H
#define SPYRE_TOOLS_SPELLING_H

#include <getopt.h>
#include <stddef.h>

/* A mistyped word, and the nearest of the words that were tried. */
struct spelling {
	const char *typed;
	const char *nearest;	/* NULL: none is near */
	size_t distance;
};

/* Starts a search for the word that the user most likely meant by @typed. */
struct spelling spelling_of(const char *typed);

/* Compares with @name, a valid word. Letters that are swapped count as one mistake. */
void spelling_try(struct spelling *spelling, const char *name);

/*
 * Writes to @text why getopt_long(), whose first option character is ':', returned
 * @option, which is ':' or '?'. The text quotes the word as typed and says what is valid.
 */
void spelling_option(int option, char **argv, const struct option *options, char *text,
		     size_t size);

#endif /* SPYRE_TOOLS_SPELLING_H */
