/* SPDX-License-Identifier: MIT */
/* Findings of `spyre doctor`. */
#ifndef SPYRE_TOOL_FINDING_H
#define SPYRE_TOOL_FINDING_H

#include "spyre.h"

enum finding_level {
	FINDING_OK,
	/* Works, but slower or only with embedded cards. */
	FINDING_WARN,
	/* Cards cannot be used. */
	FINDING_FAIL,
};

struct finding {
	/* One of a fixed set of names that scripts can rely on, such as "io_uring". */
	const char *check;
	enum finding_level level;
	char text[512];
	/* The remedy; "" if none is needed. */
	char fix[512];
};

#define FINDING_MAX 64

struct findings {
	uint32_t count;
	struct finding at[FINDING_MAX];
};

/* Adds a finding with its text; finding_fix() adds the remedy. */
void finding_add(struct findings *findings, const char *check, enum finding_level level,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Sets the remedy of the last finding added. */
void finding_fix(struct findings *findings, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Sets the remedy for a kernel @release without the module, by the package manager of the
 * distribution that the file @os_release names.
 */
void finding_fix_no_module(struct findings *findings, const char *os_release,
			   const char *release);

/* The checks of the machine, in output order. */
void finding_module(struct findings *findings);
void finding_nodes(struct findings *findings);
void finding_memlock(struct findings *findings);
void finding_io_uring(struct findings *findings);
void finding_hugepages(struct findings *findings);
void finding_vector_units(struct findings *findings);

#endif /* SPYRE_TOOL_FINDING_H */
