/* SPDX-License-Identifier: MIT */
/* Tests that root runs, of what other users may do. */
#ifndef TESTS_ABI_USER_H
#define TESTS_ABI_USER_H

#include <stdbool.h>
#include <stdint.h>

/* Users without a right but for the node's group. */
#define USER_A 1001u
#define USER_B 1002u

/* True if the process may be other users; if not, it is one without rights itself. */
bool user_is_root(void);
/* Becomes @uid with the node's group, until user_back(); bails out if it cannot. */
void user_be(uint32_t uid);
void user_back(void);
/* A file of the card that @uid opened. */
int user_open(uint32_t uid);

#endif /* TESTS_ABI_USER_H */
