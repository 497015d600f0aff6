/* SPDX-License-Identifier: MIT */
/* TAP for programs that test a kernel: no framework, no fork per test. */
#ifndef ABI_TAP_H
#define ABI_TAP_H

#include <stdbool.h>
#include <stdint.h>

/* Prints one result line. Returns @pass, so that dependent checks can be skipped. */
bool tap_ok(bool pass, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Passes if an ioctl returned @want: 0 or a negative errno. */
bool tap_ret(int got, int want, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Passes if @got is one of the two. */
bool tap_ret2(int got, int want, int or_want, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Passes if the numbers are equal. */
bool tap_eq(uint64_t got, uint64_t want, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void tap_skip(const char *why, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tap_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Reports that a requirement of the test is missing, and exits with 1. */
void tap_bail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Reports that the machine has no such device: an empty plan, exits with 0. */
void tap_skip_all(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Prints the plan. Returns the exit status. */
int tap_done(void);

#endif /* ABI_TAP_H */
