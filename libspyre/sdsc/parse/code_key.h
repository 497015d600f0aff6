/* SPDX-License-Identifier: MIT */
/*
 * All that a compiled bundle depends on, as one 128-bit number: the compiler and
 * the contents of every source file. Times of files never count. Internal.
 */
#ifndef SPYRE_SDSC_CODE_KEY_H
#define SPYRE_SDSC_CODE_KEY_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#define CODE_IMAGE_VERSION 1u	/* of the encoding that a key stands for (code_image.h) */

struct code_key {
	uint64_t word[2];
};

/* Files in the order in which they are added. */
struct code_key_state {
	struct code_key now;
};

/* Hash of any bytes; not a cryptographic one. */
struct code_key code_hash(const void *data, size_t size);
bool code_key_equal(struct code_key a, struct code_key b);

/* Starts with the compiler's identity: version, encoding, build. */
void code_key_begin(struct code_key_state *state);
/* @text NULL: the file does not exist. */
void code_key_add(struct code_key_state *state, const char *file, const char *text, size_t size);

#endif /* SPYRE_SDSC_CODE_KEY_H */
