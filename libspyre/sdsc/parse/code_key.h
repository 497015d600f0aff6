/* SPDX-License-Identifier: MIT */
/*
 * The key of a compiled bundle: a 128-bit hash of the compiler's identity and the
 * contents of all source files. File times do not affect it. Internal.
 */
#ifndef SPYRE_SDSC_CODE_KEY_H
#define SPYRE_SDSC_CODE_KEY_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#define CODE_IMAGE_VERSION 1u	/* version of the encoding (code_image.h), part of the key */

struct code_key {
	uint64_t word[2];
};

/* A hash of files in the order of code_key_add(). */
struct code_key_state {
	struct code_key now;
};

/* Hashes bytes; the hash is not cryptographic. */
struct code_key code_hash(const void *data, size_t size);
bool code_key_equal(struct code_key a, struct code_key b);

/* Starts a key with the compiler's identity: version, encoding, build. */
void code_key_begin(struct code_key_state *state);
/* Adds a file; @text is NULL if the file does not exist. */
void code_key_add(struct code_key_state *state, const char *file, const char *text, size_t size);

#endif /* SPYRE_SDSC_CODE_KEY_H */
