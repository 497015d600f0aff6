/* SPDX-License-Identifier: MIT */
/*
 * A small mutation fuzzer for code that takes bytes from outside. It needs no
 * instrumented compiler: it starts from valid inputs, and sanitizers detect errors.
 * The current input is kept in a file, which survives a crash.
 */
#ifndef SPYRE_FUZZ_H
#define SPYRE_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Runs one input. Sets @accepted if it passed the checks, for statistics. Reports a
 * violated guarantee with fuzz_fail().
 */
struct fuzz_target {
	const char *name;
	/* Loads the seeds with fuzz_seed(). */
	void (*seeds)(const char *source_dir);
	bool (*run)(const uint8_t *data, size_t size);
	/*
	 * Words of the input's language; NULL for binary inputs, whose mutations
	 * then change aligned integers.
	 */
	const char *const *words;
	/*
	 * Creates an input of at most FUZZ_MAX_INPUT bytes from fuzz_random() and
	 * returns its size, or 0 to use a mutant of a seed; NULL: always a mutant.
	 */
	size_t (*make)(uint8_t *data);
	/* Prints the comparisons made; returns false if a possible one is missing. May be NULL. */
	bool (*report)(void);
};

extern const struct fuzz_target fuzz_target;

struct fuzz_options {
	bool table;		/* the report has a line per triple */
	bool require_all;	/* a run fails if the report returns false */
};

extern struct fuzz_options fuzz_options;

/* Executions whose results were compared; --executions ends the run after this number. */
extern unsigned long long fuzz_compared;

#define FUZZ_MAX_INPUT (256u << 10)

/* Adds a seed; copies the bytes. Ignores seeds that are too long. */
void fuzz_seed(const void *data, size_t size);

/* Returns a deterministic random number below @limit (which is not 0). */
uint32_t fuzz_random(uint32_t limit);

void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Reads a whole file; returns NULL if it cannot. The caller frees it. */
uint8_t *fuzz_read_file(const char *path, size_t *size);

#endif /* SPYRE_FUZZ_H */
