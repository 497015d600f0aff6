/* SPDX-License-Identifier: MIT */
/*
 * Counts the executions that a fuzzer has compared with its reference, by form,
 * format and arithmetic unit.
 */
#ifndef SPYRE_FUZZ_COVER_H
#define SPYRE_FUZZ_COVER_H

#include <stdbool.h>
#include <stdint.h>

#define FUZZ_COVER_FORMS 192u
#define FUZZ_COVER_FORMATS 512u

/* Returns true if valid inputs can combine @form and @format. */
typedef bool (*fuzz_reachable_fn)(uint32_t form, uint32_t format);
/* Names of a form and of a format, valid until the next call. */
typedef const char *(*fuzz_name_fn)(uint32_t number);

void fuzz_cover_add(uint32_t form, uint32_t format, uint32_t unit);

/*
 * Prints a line per form: the number of reachable formats that each unit has
 * executed, the number of executions, and the fewest of a format; with --table, a
 * line per form and format. Returns false if any of them has no execution.
 */
bool fuzz_cover_report(uint32_t forms, uint32_t formats, fuzz_name_fn form_name,
		       fuzz_name_fn format_name, fuzz_reachable_fn reachable);

#endif /* SPYRE_FUZZ_COVER_H */
