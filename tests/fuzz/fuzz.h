/* SPDX-License-Identifier: MIT */
/*
 * A small mutation fuzzer for whatever takes bytes from outside. It needs no
 * instrumented compiler: it starts from inputs that are right, and sanitizers
 * judge. The input at work is kept in a file, so that a crash leaves it behind.
 */
#ifndef SPYRE_FUZZ_H
#define SPYRE_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs one input. @accepted: whether it got past the checks, for statistics.
 * A broken promise is reported with fuzz_fail(). */
struct fuzz_target {
	const char *name;
	/* Loads the inputs to start from with fuzz_seed(). */
	void (*seeds)(const char *source_dir);
	bool (*run)(const uint8_t *data, size_t size);
	/* Words that the input's language is made of; NULL for binary inputs,
	 * whose mutations then work on aligned integers. */
	const char *const *words;
	/* Makes an input of at most FUZZ_MAX_INPUT bytes from fuzz_random() and
	 * returns its size, or 0 for a mutant of a seed; NULL: always one. */
	size_t (*make)(uint8_t *data);
	/* Prints what was compared; false if something that can be was not. NULL: nothing is. */
	bool (*report)(void);
};

extern const struct fuzz_target fuzz_target;

struct fuzz_options {
	bool table;		/* the report has a line for each triple */
	bool require_all;	/* a run fails if the report says false */
};

extern struct fuzz_options fuzz_options;

/* Executions whose results were compared; --executions ends the run by them. */
extern unsigned long long fuzz_compared;

#define FUZZ_MAX_INPUT (256u << 10)

/* Adds an input to start from; the bytes are copied. Too long ones are not. */
void fuzz_seed(const void *data, size_t size);

/* A deterministic random number below @limit (which is not 0). */
uint32_t fuzz_random(uint32_t limit);

void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Reads a whole file; NULL if it cannot. The caller frees it. */
uint8_t *fuzz_read_file(const char *path, size_t *size);

#endif /* SPYRE_FUZZ_H */
